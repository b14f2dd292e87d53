/**
 * `nightjar accept [RUN]`: publishes a run that a gate holds back, without asking its gates again, deletes at
 * the service what is safe now, and ends the run. The job is loaded again from its file. If it is cut off,
 * the same command goes on.
 */
import { existsSync } from "node:fs"
import { resolve } from "node:path"
import { Effect, Option } from "effect"
import { Argument, Command } from "effect/cli"
import { jsonFlag, optionalFlag, outputFolder } from "../CommonFlags.ts"
import { endWith, refuse } from "../Failures.ts"
import { loadJobs } from "../Jobs.ts"
import { findRun, withLedger } from "../LookAtFolder.ts"
import { say } from "../Output.ts"
import { heldRuns } from "../../tables/HeldRuns.ts"
import { acceptHeld } from "../AcceptRun.ts"

/** The named run, or the newest one that a gate holds back; undefined if there is none. */
const findHeld = Effect.fnUntraced(function* (named: Option.Option<string>) {
  if (Option.isSome(named)) return yield* findRun(named)
  return (yield* heldRuns).at(-1)
})

export const accept = Command.make(
  "accept",
  {
    run: Argument.String("RUN").pipe(
      Argument.withDescription("A run_id (default: the newest one that is held back)"),
      Argument.optional,
    ),
    moved: optionalFlag("job", "FILE", "Where the run's job file is now, if it was moved"),
    json: jsonFlag,
  },
  Effect.fn("Accept.handle")(function* ({ run, moved, json }) {
    const state = yield* withLedger(findHeld(run))
    if (state === undefined) return yield* say("No gate holds a run back: nothing to accept.")
    const { run_id, job: name, job_path } = state.started
    if (state.held === undefined && state.accepted !== true) return yield* refuse("run-not-held", { run_id })
    const path = Option.getOrElse(moved, () => job_path)
    if (!existsSync(path)) return yield* refuse("job-file-gone", { path: resolve(path), run_id })
    const [job] = yield* loadJobs([path])
    if (job === undefined || job.name !== name) return yield* refuse("job-moved", { path, name })
    yield* endWith(yield* acceptHeld(job, { output: yield* outputFolder, run_id, json }))
  }),
).pipe(Command.withDescription("Publishes a run that a gate of its job holds back"))
