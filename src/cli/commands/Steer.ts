/**
 * `nightjar pause`, `resume` and `drain`: what the night that runs in the output folder starts from now on.
 * What is already running is followed to its end in any case.
 */
import { Command } from "effect/cli"
import { jsonFlag } from "../CommonFlags.ts"
import { steerNight } from "../SteerNight.ts"

export const pause = Command.make("pause", { json: jsonFlag }, ({ json }) =>
  steerNight({ _tag: "Pause" }, json),
).pipe(Command.withDescription("Lets the running night start nothing until `resume`"))

export const resume = Command.make("resume", { json: jsonFlag }, ({ json }) =>
  steerNight({ _tag: "Resume" }, json),
).pipe(Command.withDescription("Ends the pause of the running night"))

export const drain = Command.make("drain", { json: jsonFlag }, ({ json }) =>
  steerNight({ _tag: "Drain" }, json),
).pipe(
  Command.withShortDescription("Lets the running night finish what runs, then end"),
  Command.withDescription(
    "Lets the running night finish what runs, then end: it is published, and what\n  " +
      "was not started is left for `nightjar run JOB`.",
  ),
)
