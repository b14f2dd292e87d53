/**
 * `nightjar pause`, `resume`, `drain` and `limit`: what the night that runs in the output folder starts from
 * now on, and how much of it at once. What is already running is followed to its end in any case. /
 */
import { Effect } from "effect"
import { Argument, Command } from "effect/cli"
import { jsonFlag } from "../CommonFlags.ts"
import { refuse } from "../Failures.ts"
import { steerNight } from "../NightDesk.ts"

export const pause = Command.make("pause", { json: jsonFlag }, ({ json }) =>
  steerNight({ _tag: "Pause" }, json),
).pipe(Command.withDescription("Pauses the running night: it starts nothing until `resume`"))

export const resume = Command.make("resume", { json: jsonFlag }, ({ json }) =>
  steerNight({ _tag: "Resume" }, json),
).pipe(Command.withDescription("Ends the pause of the running night"))

export const drain = Command.make("drain", { json: jsonFlag }, ({ json }) =>
  steerNight({ _tag: "Drain" }, json),
).pipe(
  Command.withShortDescription("Ends the running night once what is running has finished"),
  Command.withDescription(
    "Ends the running night once what is running has finished: it is published, and\n  " +
      "what was not started is left for `nightjar run JOB`.",
  ),
)

// `nightjar limit NAME=N…`: how much of the running night may run at the same time, for the rest of this
// run; never more than its job allows.

type Names = "max_in_flight" | "per_engine"
const written = /^(?<name>max_in_flight|per_engine)=(?<number>[1-9][0-9]{0,4}|100000)$/

/** Undefined if an argument is not NAME=N, or names a limit twice. */
const readLimits = (values: ReadonlyArray<string>): Partial<Record<Names, number>> | undefined => {
  const limits: Partial<Record<Names, number>> = {}
  for (const value of values) {
    const { name, number } = written.exec(value)?.groups ?? {}
    if (name === undefined || limits[name as Names] !== undefined) return undefined
    limits[name as Names] = Number(number)
  }
  return limits
}

export const limit = Command.make(
  "limit",
  {
    limits: Argument.String("NAME=N").pipe(
      Argument.withDescription("max_in_flight=N or per_engine=N"),
      Argument.variadic({ min: 1 }),
    ),
    json: jsonFlag,
  },
  Effect.fn("Limit.handle")(function* ({ limits, json }) {
    const read = readLimits(limits)
    if (read === undefined) return yield* refuse("limit-invalid")
    yield* steerNight({ _tag: "Limit", ...read }, json)
  }),
).pipe(
  Command.withShortDescription("Changes how many executions the running night has at once"),
  Command.withDescription(
    "Changes how many executions the running night has at once, until it ends;\n  " +
      "never more than the job allows.",
  ),
  Command.withExamples([
    { command: "nightjar limit max_in_flight=50 per_engine=5", description: "Both limits" },
  ]),
)
