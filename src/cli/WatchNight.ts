/**
 * Follows the nights that run in an output folder until they are over: on a terminal a screen that is drawn
 * in place and follows its size, otherwise a line whenever something changed. The terminal is left as it
 * was found, however the watching ends.
 */
import { Duration, Effect, Stdio, Stream } from "effect"
import type { NightPicture } from "../task/NightPicture.ts"
import { renderNight, renderNightLine } from "../report/RenderNight.ts"
import { cleanValue } from "../privacy/CleanValue.ts"
import { KnownSecrets } from "../privacy/KnownSecrets.ts"
import { runningNights } from "./NightDesk.ts"
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

/** Returns whether there was anything to watch, once it is over. */
export const watchNight = Effect.fn("WatchNight.watch")(function* (output: string, json: boolean) {
  const stdio = yield* Stdio.Stdio
  const first = yield* runningNights(output)
  if (first.length === 0) return false
  const isDrawn = !json && (yield* stdio.stdoutIsTerminal)
  yield* isDrawn ? draw(output, first) : list(output, first, json)
  return true
})

type Nights = ReadonlyArray<NightPicture>

/**
 * Calls `show` with every picture of the nights that go on, until those that were there at first are over.
 */
const follow = <E, R>(
  output: string,
  first: Nights,
  every: Duration.Duration,
  show: (nights: Nights) => Effect.Effect<void, E, R>,
) =>
  Effect.gen(function* () {
    const watched = new Set(first.map(({ run_id }) => run_id))
    for (let nights = first; nights.some(({ run_id }) => watched.has(run_id));) {
      yield* show(nights)
      if (nights.every(({ run_id, stage }) => stage === "ended" || !watched.has(run_id))) return
      yield* Effect.sleep(every)
      nights = yield* runningNights(output)
    }
  })

const draw = Effect.fnUntraced(function* (output: string, first: Nights) {
  const { out } = yield* Output
  const stdio = yield* Stdio.Stdio
  const write = (text: string) => Effect.ignore(Stream.run(Stream.make(text), stdio.stdout()))
  yield* Effect.acquireRelease(write(enter), () => write(leave))
  yield* follow(output, first, frameEvery, (nights) => {
    // The size may change while we look on.
    const { columns, rows } = process.stdout
    const height = Math.floor((rows || 24) / nights.length)
    const screen = { width: (columns || 80) - 1, height, colour: out.colour, timezone: undefined }
    return write(frame(nights.flatMap((night) => renderNight(night, screen))))
  })
}, Effect.scoped)

const list = Effect.fnUntraced(function* (output: string, first: Nights, json: boolean) {
  const known = yield* KnownSecrets
  const last = new Map<string, string>()
  yield* follow(output, first, lineEvery, (nights) =>
    Effect.forEach(
      nights,
      (night) => {
        const line = renderNightLine(night)
        if (line === last.get(night.run_id)) return Effect.void
        last.set(night.run_id, line)
        const told = json ? JSON.stringify(cleanValue(night, known, "own")) : known.clean(line, "own")
        return writeOut(Stream.make(`${told}\n`))
      },
      { discard: true },
    ),
  )
})
