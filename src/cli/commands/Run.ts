/**
 * `nightjar run JOB…`: plans, executes, lands, normalises, publishes, deletes. Resumes an unfinished run,
 * does nothing if the run is already finished, and returns the run's exit code.
 */
import { Duration, Effect, Option } from "effect"
import { Command, Flag } from "effect/cli"
import { isDurationWithin, readDuration } from "../../base/Text.ts"
import { jobArguments, jsonFlag, outputFolder, switchFlag } from "../CommonFlags.ts"
import { endWith } from "../Failures.ts"
import { checkJobs, readableJobs, takeJobs } from "../Jobs.ts"
import { readWebhooksFlag, webhooksFlag } from "../Webhooks.ts"
import { runNights } from "../Nights.ts"
import { toldUnbegun } from "../Notices.ts"

export const run = Command.make(
  "run",
  {
    jobs: jobArguments,
    further: switchFlag("new", "Start another run even if the last one is unfinished"),
    wait: Flag.String("wait").pipe(
      Flag.withMetavar("DURATION"),
      Flag.withDescription("How long to wait for another process in the folder"),
      Flag.filter(
        isDurationWithin({ minimum: "1 second", maximum: "24 hours" }),
        () => "a number and a unit, such as 8 hours, from 1 second to 24 hours",
      ),
      Flag.optional,
    ),
    webhooks: webhooksFlag,
    json: jsonFlag,
  },
  Effect.fn("Run.handle")(function* ({ jobs, further, json, ...flags }) {
    const output = yield* outputFolder
    const checked = yield* checkJobs(jobs)
    const loaded = yield* takeJobs(checked).pipe(toldUnbegun(readableJobs(checked), output))
    const webhooks = yield* readWebhooksFlag(flags.webhooks)
    const wait = Option.getOrElse(Option.flatMap(flags.wait, readDuration), () => Duration.zero)
    const options = { output, json, further, wait, webhooks, parent: undefined, only: undefined }
    yield* endWith(yield* runNights(loaded, options))
  }),
).pipe(
  Command.withShortDescription("Runs each job once, or resumes its unfinished run"),
  Command.withDescription(
    "Runs each job once: plan, execute, land, normalise, publish, delete.\n  " +
      "An unfinished run is resumed.",
  ),
  Command.withExamples([
    { command: "nightjar run jobs/demo.yaml", description: "The demo job" },
    {
      command: "nightjar run jobs/demo.yaml --webhooks 0",
      description: "The same, with webhooks instead of frequent polling",
    },
  ]),
)
