/**
 * `nightjar run JOB…`: plans, executes, lands, normalises, publishes, deletes. Takes up what an earlier call
 * left, does nothing on a finished night, and answers with the night's exit code.
 */
import { Effect } from "effect"
import { Command, Flag } from "effect/cli"
import { jobArguments, jsonFlag, outputFolder } from "./CommonFlags.ts"
import { endWith } from "./Failures.ts"
import { loadJobs } from "./Jobs.ts"

export const run = Command.make(
  "run",
  {
    jobs: jobArguments,
    further: Flag.Boolean("new").pipe(
      Flag.withoutNegation,
      Flag.withDescription("Force a further run, even where a night is unfinished or done"),
      Flag.withDefault(false),
    ),
    json: jsonFlag,
  },
  Effect.fn("Run.handle")(function* ({ jobs, further, json }) {
    const { runNights } = yield* Effect.promise(() => import("./Nights.ts"))
    const output = yield* outputFolder
    const loaded = yield* loadJobs(jobs)
    yield* endWith(yield* runNights(loaded, { output, json, further, parent: undefined, only: undefined }))
  }),
).pipe(
  Command.withDescription(
    "Runs one night of each job: plan, execute, land, normalise, publish, delete. Resumes an unfinished run.",
  ),
  Command.withExamples([{ command: "nightjar run jobs/demo.yaml", description: "The demo night" }]),
)
