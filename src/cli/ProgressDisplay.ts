/**
 * The progress of a run on stderr: one live line on a terminal, otherwise a plain line at each stage and
 * now and then. Only counts, so that ten tasks and fifty thousand look the same and cost the same.
 */
import { Clock, Context, Duration, Effect, Layer, Schedule, Stdio, Stream } from "effect"
import type { ProgressEvent } from "../execution/Progress.ts"
import { Progress } from "../execution/Progress.ts"
import { outcomes } from "../ends/EndRow.ts"
import type { Outcome } from "../ends/EndRow.ts"
import { cut, span } from "../report/TextTable.ts"
import { Output } from "./Output.ts"

/** What is known about the current run. */
export interface NightView {
  run_id: string
  stage: "executing" | "publishing" | "deleting" | "ended"
  /** What the operator asked for, if the run does not start what it could. */
  held: "paused" | "draining" | undefined
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
  tasks: 0,
  over: 0,
  open: new Set(),
  waiting: new Map(),
  settled: new Map(),
})

/** Processes an event; returns true if it begins a stage. */
export const foldProgress = (view: NightView, event: ProgressEvent): boolean => {
  switch (event._tag) {
    case "Planned":
      Object.assign(view, { run_id: event.run_id, stage: "executing", held: undefined })
      Object.assign(view, { tasks: event.tasks, over: event.over })
      view.open.clear()
      view.waiting.clear()
      view.settled.clear()
      return true
    case "ServiceAway":
      return false
    case "Steered":
      if (event.order === "limit") return false
      view.held = event.order === "pause" ? "paused" : event.order === "drain" ? "draining" : undefined
      return true
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
    span(elapsedMs),
  ]
  return `${parts.join(", ")}  ${view.run_id}`
}

const liveEvery = Duration.millis(200)
const plainEvery = Duration.seconds(30)
const clearLine = "\r\u001b[2K"

/** The display for one command, on the machine's own clock whatever clock the run uses. */
export const ProgressDisplay = {
  layer: (enabled: boolean) =>
    Layer.unwrap(
      Effect.gen(function* () {
        if (!enabled) return Layer.empty
        const stdio = yield* Stdio.Stdio
        const { err } = yield* Output
        const clock = yield* Clock.Clock
        const startedAt = clock.monotonicTimeNanosUnsafe()
        const view = emptyView()
        const write = (text: string) => Effect.ignore(Stream.run(Stream.make(text), stdio.stderr()))
        const elapsedMs = () => Number((clock.monotonicTimeNanosUnsafe() - startedAt) / 1_000_000n)
        const line = () => renderView(view, elapsedMs())
        let drawn = false
        const draw = Effect.suspend(() => {
          if (view.run_id === "" || view.stage === "ended") return Effect.void
          drawn = true
          return write(err.isTerminal ? `${clearLine}${cut(line(), err.width - 1)}` : `${line()}\n`)
        })
        const erase = Effect.suspend(() => (err.isTerminal && drawn ? write(clearLine) : Effect.void))
        const every = err.isTerminal ? liveEvery : plainEvery
        const tell = (event: ProgressEvent) =>
          Effect.suspend(() => {
            if (event._tag === "ServiceAway")
              return write(
                `${event.message}: waiting for the service until ${new Date(event.until).toISOString()}\n`,
              )
            const stage = foldProgress(view, event)
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
        return Layer.merge(Layer.succeedContext(Context.make(Progress, { tell })), ticking)
      }),
    ),
}
