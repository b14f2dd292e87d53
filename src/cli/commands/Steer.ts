/**
 * `nightjar pause`, `resume` and `drain`: what the night that runs in the output folder starts from now on.
 * What is already running is followed to its end in any case.
 */
import { Command } from "effect/cli"
import { jsonFlag } from "../CommonFlags.ts"
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
