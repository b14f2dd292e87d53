/**
 * `nightjar run JOB…`: plans, executes, lands, normalises, publishes, deletes. Resumes an unfinished run,
 * does nothing if the run is already finished, and returns the run's exit code.
 */
import { Effect } from "effect"
import { Command } from "effect/cli"
import { jobArguments, jsonFlag, outputFolder, switchFlag } from "../CommonFlags.ts"
import { endWith } from "../Failures.ts"
import { checkJobs, readableJobs, takeJobs } from "../Jobs.ts"
import { readWebhooksFlag, webhooksFlag } from "../Webhooks.ts"

export const run = Command.make(
  "run",
  {
    jobs: jobArguments,
    further: switchFlag("new", "Start another run even if the last one is unfinished"),
    webhooks: webhooksFlag,
    json: jsonFlag,
  },
  Effect.fn("Run.handle")(function* ({ jobs, further, json, ...flags }) {
    const { runNights } = yield* Effect.promise(() => import("../Nights.ts"))
    const output = yield* outputFolder
    const checked = yield* checkJobs(jobs)
    const { toldUnbegun } = yield* Effect.promise(() => import("../Notices.ts"))
    const loaded = yield* takeJobs(checked).pipe(toldUnbegun(readableJobs(checked), output))
    const webhooks = yield* readWebhooksFlag(flags.webhooks)
    const options = { output, json, further, webhooks, parent: undefined, only: undefined }
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
