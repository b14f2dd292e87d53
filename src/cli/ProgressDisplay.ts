/**
 * The progress of a run on stderr: one live line on a terminal, otherwise a plain line at each stage and now
 * and then. Only counts, so that ten tasks and fifty thousand cost the same.
 */
import { Clock, Context, Duration, Effect, Layer, LogLevel, References, Stdio, Stream } from "effect"
import { Progress, type ProgressEvent } from "../task/Progress.ts"
import { outcomes, type Outcome } from "../service/EndTable.ts"
import { listed, sumOf } from "../base/Text.ts"
import type { RunNews } from "../ledger/Fact.ts"
import { cut, plain, span } from "../report/TextTable.ts"
import { runFactText } from "../report/Timeline.ts"
import { KnownSecrets } from "../privacy/KnownSecrets.ts"
import { Output } from "./Output.ts"

type StageOf<Event> = Event extends { readonly stage: infer Stage } ? Stage : never

/** What is known about the current run. `since`: in nanoseconds of the machine's own clock. */
export const emptyView = (since = 0n) => ({
  since,
  run_id: "",
  stage: "executing" as "executing" | StageOf<ProgressEvent>,
  /** While the tables are built anew from every run. */
  built: undefined as { readonly done: number; readonly runs: number } | undefined,
  /** What the operator asked for, if the run does not start what it could. */
  held: undefined as "paused" | "draining" | undefined,
  /** What is wrong at the service, as long as it is. */
  troubles: new Map<string, string>(),
  tasks: 0,
  /** Tasks that were already over when this process resumed the run. */
  over: 0,
  /** What is known of each task that this process has begun or put off. */
  states: new Map<string, "running" | "waiting" | "closed" | Outcome>(),
})
type NightView = ReturnType<typeof emptyView>

const heldBy = { pause: "paused", drain: "draining", resume: undefined } as const

const noteFact = (view: NightView, fact: RunNews): void => {
  if (fact._tag === "InterimPublished" || fact._tag === "InterimRefused") return
  if (fact._tag === "RunSteered") {
    if (fact.order !== "limit") view.held = heldBy[fact.order]
    return
  }
  const what = {
    silent: "no usable answer",
    throttled: "throttled",
    engine: `${fact.engine_reference} unavailable`,
  }
  const key = `${fact.trouble} ${fact.engine_reference ?? ""}`
  if (fact._tag === "TroubleEnded") view.troubles.delete(key)
  else view.troubles.set(key, `${what[fact.trouble]} since ${fact.since.slice(11, 19)}`)
}

/** Processes an event; returns true if it begins a stage. */
export const foldProgress = (view: NightView, event: ProgressEvent): boolean => {
  switch (event._tag) {
    case "Planned":
      Object.assign(view, { run_id: event.run_id, stage: "executing", held: undefined })
      Object.assign(view, { tasks: event.tasks, over: event.over })
      view.troubles.clear()
      view.states.clear()
      return true
    case "ServiceAway":
      return false
    case "Noted":
      noteFact(view, event.fact)
      return false
    case "Building":
      view.built = event
      return false
    case "Stage":
      view.stage = event.stage
      view.built = undefined
      return event.stage !== "ended"
    case "Started":
      view.states.set(event.task_id, "running")
      return false
    case "Closed":
      if (view.states.get(event.task_id) === "running") view.states.set(event.task_id, "closed")
      return false
    case "Waiting":
      view.states.set(event.task_id, "waiting")
      return false
    case "Settled":
      view.states.set(event.task_id, event.outcome)
      return false
  }
}

const countsOf = ({ states, over }: NightView) => {
  const counts = new Map<string, number>()
  for (const state of states.values()) counts.set(state, (counts.get(state) ?? 0) + 1)
  const of = (state: string) => counts.get(state) ?? 0
  return { of, over: over + sumOf(outcomes.map(of)) }
}

const troublesShown = 2

export const renderView = (view: NightView, elapsedMs: number): string => {
  const { stage, held, built, troubles } = view
  const { of, over } = countsOf(view)
  const parts = [
    (stage === "executing" && held) || "",
    `${stage} ${over}/${view.tasks}`,
    built === undefined ? "" : `${built.done} of ${built.runs} runs in the tables`,
    ...["running", "waiting", ...outcomes].map((state) => (of(state) > 0 ? `${of(state)} ${state}` : "")),
    stage === "executing" && troubles.size > 0 ? listed([...troubles.values()], troublesShown) : "",
    span(elapsedMs),
  ]
  return `${parts.filter((part) => part !== "").join(", ")}  ${view.run_id}`
}

const warned: ReadonlySet<RunNews["_tag"]> = new Set(["TroubleBegan", "InterimRefused"])

/** What happened, for a line of its own, and from which `--log-level` on it is shown. */
export const noticeOf = (
  event: ProgressEvent,
): readonly [level: LogLevel.LogLevel, text: string] | undefined => {
  switch (event._tag) {
    case "Planned":
      return event.writtenOut === undefined ? undefined : ["Warn", writtenOutText(event.writtenOut)]
    case "ServiceAway":
      return ["Warn", `${event.message}: waiting for the service until ${timeText(event.until)}`]
    case "Noted":
      return [warned.has(event.fact._tag) ? "Warn" : "Info", runFactText(event.fact)]
    case "Waiting":
      return ["Debug", `${event.task_id} waits until ${timeText(event.until)}: ${event.why}`]
    default:
      return undefined
  }
}

const writtenOutText = (count: number): string => {
  const what =
    count === 1
      ? "a secret of a login is written out in a file"
      : `secrets of logins are written out in files (${count} times)`
  return `warning: ${what}: use env:, file: or exec:; \`nightjar plan\` says where`
}

const timeText = (ms: number): string => new Date(Math.trunc(ms)).toISOString()

const liveEvery = Duration.millis(200)
const plainEvery = Duration.seconds(30)
const clearLine = "\r\u001b[2K"

/** Several runs in one line: how many tasks of each are finished, and how many are running. */
export const renderViews = (views: ReadonlyArray<NightView>, elapsedMs: number): string => {
  const [only] = views
  if (only !== undefined && views.length === 1) return renderView(only, elapsedMs)
  const parts = views.map((view) => {
    const { run_id, held, stage, tasks } = view
    const { of, over } = countsOf(view)
    const running = of("running") > 0 ? `, ${of("running")} running` : ""
    const what = held !== undefined && stage === "executing" ? held : stage
    return `${run_id} ${what} ${over}/${tasks}${running}`
  })
  return `${parts.join("; ")}; ${span(elapsedMs)}`
}

const isShown = ({ run_id, stage }: NightView): boolean => run_id !== "" && stage !== "ended"

/** Where the progress of runs is shown until the scope ends; each run that joins has a view of its own. */
const open = Effect.fnUntraced(function* (enabled: boolean) {
  const stdio = yield* Stdio.Stdio
  const { err } = yield* Output
  const { clean } = yield* KnownSecrets
  const clock = yield* Clock.Clock
  const level = yield* References.MinimumLogLevel
  const views: Array<NightView> = []
  const write = (text: string) => Effect.ignore(Stream.run(Stream.make(text), stdio.stderr()))
  const now = () => clock.monotonicTimeNanosUnsafe()
  const elapsedMs = ({ since }: NightView) => Number((now() - since) / 1_000_000n)
  let drawn = false
  /** How many are printing something else. */
  let quiet = 0
  const draw = (wanted: () => ReadonlyArray<NightView>) =>
    Effect.suspend(() => {
      const shown = enabled && quiet === 0 ? wanted().filter(isShown) : []
      const [longest] = shown
      if (longest === undefined) return Effect.void
      drawn = true
      return write(
        err.isTerminal
          ? `${clearLine}${cut(plain(renderViews(shown, elapsedMs(longest))), err.width - 1)}`
          : shown.map((view) => `${plain(renderView(view, elapsedMs(view)))}\n`).join(""),
      )
    })
  const erase = Effect.suspend(() => (err.isTerminal && drawn ? write(clearLine) : Effect.void))
  const every = err.isTerminal ? liveEvery : plainEvery
  const notice = ([from, text]: readonly [LogLevel.LogLevel, string], whose: string) =>
    LogLevel.isGreaterThanOrEqualTo(from, level)
      ? Effect.andThen(erase, write(`${plain(clean(`${whose}${text}`, "own"))}\n`))
      : Effect.void
  if (enabled) {
    yield* Effect.addFinalizer(() => erase)
    const drawLater = Effect.andThen(
      Effect.sleep(every),
      draw(() => views),
    )
    yield* Effect.forkScoped(Effect.provideService(Effect.forever(drawLater), Clock.Clock, clock))
  }
  const quietly = <A, E, R>(print: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.suspend(() => {
      quiet += 1
      return Effect.ensuring(
        Effect.andThen(erase, print),
        Effect.sync(() => void quiet--),
      )
    })
  /** `name` is told with what happens, if there is somebody else whom it could have happened to. */
  const join = (name?: string) => {
    const view = emptyView(now())
    views.push(view)
    const whose = name === undefined ? "" : `${name}: `
    const tell = (event: ProgressEvent) =>
      Effect.suspend(() => {
        const told = noticeOf(event)
        const stage = foldProgress(view, event)
        if (event._tag === "Stage" && event.stage === "ended") return erase
        const line = stage && !err.isTerminal ? draw(() => [view]) : Effect.void
        return told === undefined ? line : Effect.andThen(notice(told, whose), line)
      })
    return { tell }
  }
  return { join, quietly }
})
export type Display = Effect.Success<ReturnType<typeof open>>

/** On the machine's own clock, whatever clock a run uses. */
export const ProgressDisplay = {
  open,
  /** For one run. Without progress, what happens to it is still told, as far as `--log-level` asks for it. */
  layer: (enabled: boolean) =>
    Layer.effectContext(Effect.map(open(enabled), ({ join }) => Context.make(Progress, join()))),
}
