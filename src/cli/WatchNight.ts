/**
 * Follows the night that runs in an output folder until it is over: on a terminal a screen that is drawn in
 * place and follows its size, otherwise a line whenever something changed. The terminal is left as it was
 * found, however the watching ends.
 */
import { Duration, Effect, Option, Stdio, Stream } from "effect"
import type { NightPicture } from "../execution/NightPicture.ts"
import { renderNight, renderNightLine } from "../report/RenderNight.ts"
import { cleanValue } from "../secrets/CleanValue.ts"
import { KnownSecrets } from "../secrets/KnownSecrets.ts"
import { runningNight } from "./NightDesk.ts"
import { Output, writeOut } from "./Output.ts"

const frameEvery = Duration.seconds(1)
const lineEvery = Duration.seconds(5)

const escape = "\u001b["
/** A screen of our own, without a cursor; and back to what was there. */
const enter = `${escape}?1049h${escape}?25l`
const leave = `${escape}?25h${escape}?1049l`

/** One frame: written over the last one, so that nothing flickers. */
const frame = (lines: ReadonlyArray<string>): string =>
  `${escape}H${lines.map((line) => `${line}${escape}K`).join("\r\n")}${escape}J`

/** Returns the run that was watched, once it is over; none if there was nothing to watch. */
export const watchNight = Effect.fn("WatchNight.watch")(function* (output: string, json: boolean) {
  const stdio = yield* Stdio.Stdio
  const first = yield* runningNight(output)
  if (Option.isNone(first)) return Option.none<string>()
  const isDrawn = !json && (yield* stdio.stdoutIsTerminal)
  yield* isDrawn ? draw(output, first.value) : list(output, first.value, json)
  return Option.some(first.value.run_id)
})

/** Calls `show` with every picture of the run, until the run is over. */
const follow = <E, R>(
  output: string,
  first: NightPicture,
  every: Duration.Duration,
  show: (night: NightPicture) => Effect.Effect<void, E, R>,
) =>
  Effect.gen(function* () {
    for (let night = Option.some(first); Option.isSome(night) && night.value.run_id === first.run_id;) {
      yield* show(night.value)
      if (night.value.stage === "ended") return
      yield* Effect.sleep(every)
      night = yield* runningNight(output)
    }
  })

const draw = Effect.fnUntraced(function* (output: string, first: NightPicture) {
  const { out } = yield* Output
  const stdio = yield* Stdio.Stdio
  const write = (text: string) => Effect.ignore(Stream.run(Stream.make(text), stdio.stdout()))
  yield* Effect.acquireRelease(write(enter), () => write(leave))
  yield* follow(output, first, frameEvery, (night) => {
    // The size may change while we look on.
    const { columns, rows } = process.stdout
    const screen = { width: (columns || 80) - 1, height: rows || 24, colour: out.colour, timezone: undefined }
    return write(frame(renderNight(night, screen)))
  })
}, Effect.scoped)

const list = Effect.fnUntraced(function* (output: string, first: NightPicture, json: boolean) {
  const known = yield* KnownSecrets
  let last = ""
  yield* follow(output, first, lineEvery, (night) => {
    const line = renderNightLine(night)
    if (line === last) return Effect.void
    last = line
    const told = json ? JSON.stringify(cleanValue(night, known, "own")) : known.clean(line, "own")
    return writeOut(Stream.make(`${told}\n`))
  })
})
