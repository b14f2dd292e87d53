/**
 * The progress of a run on stderr: one live line on a terminal, otherwise a plain line at each stage and now
 * and then. Only counts, so that ten tasks and fifty thousand cost the same.
 */
import { Clock, Duration, Effect, Layer, LogLevel, References, Stdio, Stream } from "effect"
import type { NightPicture } from "../task/NightPicture.ts"
import type { ProgressEvent } from "../task/Progress.ts"
import type { RunNews } from "../ledger/Fact.ts"
import { renderNightLine } from "../report/RenderSummary.ts"
import { cut, plain, span } from "../report/TextTable.ts"
import { runFactText } from "../report/Timeline.ts"
import { KnownSecrets } from "../privacy/KnownSecrets.ts"
import { openDesk } from "./NightDesk.ts"
import { Output } from "./Output.ts"

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

const liveEvery = Duration.seconds(1)
const plainEvery = Duration.seconds(30)
const clearLine = "\r\u001b[2K"

/**
 * Where the progress of runs is shown until the scope ends; `nights` looks at those that execute, each of
 * which is one walk over its tasks.
 */
const open = Effect.fnUntraced(function* (enabled: boolean, nights: () => ReadonlyArray<NightPicture>) {
  const stdio = yield* Stdio.Stdio
  const { err } = yield* Output
  const { clean } = yield* KnownSecrets
  const clock = yield* Clock.Clock
  const level = yield* References.MinimumLogLevel
  const since = clock.monotonicTimeNanosUnsafe()
  const write = (text: string) => Effect.ignore(Stream.run(Stream.make(text), stdio.stderr()))
  let drawn = false
  /** How many are printing something else. */
  let quiet = 0
  const draw = Effect.suspend(() => {
    const shown = enabled && quiet === 0 ? nights().filter(({ stage }) => stage !== "ended") : []
    if (shown.length === 0) return Effect.void
    drawn = true
    const elapsed = span(Number((clock.monotonicTimeNanosUnsafe() - since) / 1_000_000n))
    const lines = shown.map((night) => renderNightLine(night, err.isTerminal && shown.length > 1))
    return write(
      err.isTerminal
        ? `${clearLine}${cut(`${elapsed}  ${lines.join("; ")}`, err.width - 1)}`
        : lines.map((line) => `${line}, ${elapsed}\n`).join(""),
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
    const drawLater = Effect.andThen(Effect.sleep(every), draw)
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
    const whose = name === undefined ? "" : `${name}: `
    const tell = (event: ProgressEvent) =>
      Effect.suspend(() => {
        const told = noticeOf(event)
        if (told !== undefined) return notice(told, whose)
        if (event._tag !== "Stage") return Effect.void
        return event.stage === "ended" ? erase : err.isTerminal ? Effect.void : draw
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
  layer: (output: string, enabled: boolean) =>
    Layer.effectContext(
      Effect.gen(function* () {
        const desk = yield* openDesk(output)
        const { join } = yield* open(enabled, desk.look)
        return yield* desk.join(join())
      }),
    ),
}
