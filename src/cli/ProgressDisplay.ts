/**
 * The progress of a run on stderr: one live line on a terminal, otherwise a plain line at each stage and
 * now and then. Only counts, so that ten tasks and fifty thousand look the same and cost the same.
 */
import {
  Clock,
  Context,
  Duration,
  Effect,
  Layer,
  LogLevel,
  References,
  Schedule,
  Stdio,
  Stream,
} from "effect"
import type { ProgressEvent } from "../execution/Progress.ts"
import { Progress } from "../execution/Progress.ts"
import { outcomes } from "../ends/EndRow.ts"
import type { Outcome } from "../ends/EndRow.ts"
import { listed } from "../foundation/Counted.ts"
import type { RunNews } from "../ledger/LiveFacts.ts"
import { cut, plain, span } from "../report/TextTable.ts"
import { runFactText } from "../report/Timeline.ts"
import { KnownSecrets } from "../secrets/KnownSecrets.ts"
import { Output } from "./Output.ts"

/** What is known about the current run. */
export interface NightView {
  run_id: string
  stage: "executing" | "publishing" | "deleting" | "ended"
  /** What the operator asked for, if the run does not start what it could. */
  held: "paused" | "draining" | undefined
  /** What is wrong at the service, as long as it is. */
  readonly troubles: Map<string, string>
  tasks: number
  /** Tasks that were already over when this process resumed the run. */
  over: number
  readonly open: Set<string>
  readonly waiting: Map<string, string>
  readonly settled: Map<string, Outcome>
}

export const emptyView = (): NightView => ({
  run_id: "",
  stage: "executing",
  held: undefined,
  troubles: new Map(),
  tasks: 0,
  over: 0,
  open: new Set(),
  waiting: new Map(),
  settled: new Map(),
})

const noteFact = (view: NightView, fact: RunNews): void => {
  if (fact._tag === "InterimPublished" || fact._tag === "InterimRefused") return
  if (fact._tag === "RunSteered") {
    if (fact.order === "limit") return
    view.held = fact.order === "pause" ? "paused" : fact.order === "drain" ? "draining" : undefined
    return
  }
  const what = { silent: "no usable answer", throttled: "throttled", engine: `${fact.engine_reference} away` }
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
      view.open.clear()
      view.waiting.clear()
      view.settled.clear()
      return true
    case "ServiceAway":
      return false
    case "Noted":
      noteFact(view, event.fact)
      return false
    case "Stage":
      view.stage = event.stage
      return event.stage !== "ended"
    case "Started":
      view.waiting.delete(event.task_id)
      view.open.add(event.task_id)
      return false
    case "Closed":
      view.open.delete(event.task_id)
      return false
    case "Waiting":
      view.open.delete(event.task_id)
      view.waiting.set(event.task_id, event.why)
      return false
    case "Settled":
      view.open.delete(event.task_id)
      view.waiting.delete(event.task_id)
      view.settled.set(event.task_id, event.outcome)
      return false
  }
}

export const renderView = (view: NightView, elapsedMs: number): string => {
  const counts = new Map<Outcome, number>()
  for (const outcome of view.settled.values()) counts.set(outcome, (counts.get(outcome) ?? 0) + 1)
  const parts = [
    ...(view.held !== undefined && view.stage === "executing" ? [view.held] : []),
    `${view.stage} ${view.over + view.settled.size}/${view.tasks}`,
    ...(view.open.size > 0 ? [`${view.open.size} running`] : []),
    ...(view.waiting.size > 0 ? [`${view.waiting.size} waiting`] : []),
    ...outcomes.flatMap((outcome) => (counts.has(outcome) ? [`${counts.get(outcome)} ${outcome}`] : [])),
    ...listedTroubles(view),
    span(elapsedMs),
  ]
  return `${parts.join(", ")}  ${view.run_id}`
}

const troublesShown = 2

const listedTroubles = ({ stage, troubles }: NightView): ReadonlyArray<string> =>
  stage === "executing" && troubles.size > 0 ? [listed([...troubles.values()], troublesShown)] : []

const warned: ReadonlySet<RunNews["_tag"]> = new Set(["TroubleBegan", "InterimRefused"])

/** What happened, for a line of its own, and from which `--log-level` on it is shown. */
const noticeOf = (event: ProgressEvent): readonly [level: LogLevel.LogLevel, text: string] | undefined => {
  switch (event._tag) {
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

const timeText = (ms: number): string => new Date(Math.trunc(ms)).toISOString()

const liveEvery = Duration.millis(200)
const plainEvery = Duration.seconds(30)
const clearLine = "\r\u001b[2K"

/** The display for one command, on the machine's own clock whatever clock the run uses. */
export const ProgressDisplay = {
  /** Without progress, what happens to the run is still told, as far as `--log-level` asks for it. */
  layer: (enabled: boolean) =>
    Layer.unwrap(
      Effect.gen(function* () {
        const stdio = yield* Stdio.Stdio
        const { err } = yield* Output
        const { clean } = yield* KnownSecrets
        const clock = yield* Clock.Clock
        const level = yield* References.MinimumLogLevel
        const startedAt = clock.monotonicTimeNanosUnsafe()
        const view = emptyView()
        const write = (text: string) => Effect.ignore(Stream.run(Stream.make(text), stdio.stderr()))
        const elapsedMs = () => Number((clock.monotonicTimeNanosUnsafe() - startedAt) / 1_000_000n)
        const line = () => renderView(view, elapsedMs())
        let drawn = false
        const draw = Effect.suspend(() => {
          if (!enabled || view.run_id === "" || view.stage === "ended") return Effect.void
          drawn = true
          return write(err.isTerminal ? `${clearLine}${cut(line(), err.width - 1)}` : `${line()}\n`)
        })
        const erase = Effect.suspend(() => (err.isTerminal && drawn ? write(clearLine) : Effect.void))
        const every = err.isTerminal ? liveEvery : plainEvery
        const notice = ([from, text]: readonly [LogLevel.LogLevel, string]) =>
          LogLevel.isGreaterThanOrEqualTo(from, level)
            ? Effect.andThen(erase, write(`${plain(clean(text, "own"))}\n`))
            : Effect.void
        const tell = (event: ProgressEvent) =>
          Effect.suspend(() => {
            const told = noticeOf(event)
            const stage = foldProgress(view, event)
            if (told !== undefined) return notice(told)
            if (event._tag === "Stage" && event.stage === "ended") return erase
            return stage && !err.isTerminal ? draw : Effect.void
          })
        const ticking = Layer.effectDiscard(
          Effect.gen(function* () {
            yield* Effect.addFinalizer(() => erase)
            yield* Effect.forkScoped(
              Effect.andThen(Effect.sleep(every), draw).pipe(
                Effect.repeat(Schedule.forever),
                Effect.provideService(Clock.Clock, clock),
              ),
            )
          }),
        )
        const telling = Layer.succeedContext(Context.make(Progress, { tell }))
        return enabled ? Layer.merge(telling, ticking) : telling
      }),
    ),
}
