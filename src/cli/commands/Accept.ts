/**
 * `nightjar accept [RUN]`: publishes a run that a gate holds back, without asking its gates again, deletes at
 * the service what is safe now, and ends the run. The job is loaded again from its file. If it is cut off,
 * the same command goes on.
 */
import { existsSync } from "node:fs"
import { resolve } from "node:path"
import { Effect, Layer, Option } from "effect"
import { Argument, Command } from "effect/cli"
import { renderSummary } from "../../report/RenderSummary.ts"
import { summarise } from "../../report/Summary.ts"
import type { Job } from "../../jobs/Job.ts"
import type { RunId } from "../../contract/Ids.ts"
import { jsonFlag, NoProgressFlag, optionalFlag, outputFolder } from "../CommonFlags.ts"
import { endWith, refuse } from "../Failures.ts"
import { loadJobs } from "../Jobs.ts"
import { findRun, withLedger } from "../LedgerOf.ts"
import { Output, say, sayJson } from "../Output.ts"
import { ProgressDisplay } from "../ProgressDisplay.ts"
import { holdOutput, writeRunFile } from "../RunFolder.ts"
import { reportAfterRun } from "../RunReport.ts"
import { Wiring } from "../Wiring.ts"

/** The named run, or the newest one that a gate holds back; undefined if there is none. */
const findHeld = Effect.fnUntraced(function* (named: Option.Option<string>) {
  if (Option.isSome(named)) return yield* findRun(named)
  const { heldRuns } = yield* Effect.promise(() => import("../../publishing/HeldRuns.ts"))
  return (yield* heldRuns).at(-1)
})

const accepted = Effect.fnUntraced(function* (job: Job, output: string, run_id: RunId) {
  const wiring = yield* Wiring
  const silent = yield* NoProgressFlag
  yield* holdOutput(output, [job.share])
  const { acceptRun } = yield* Effect.promise(() => import("../../night/Nightly.ts"))
  const result = yield* acceptRun(job, run_id).pipe(
    Effect.provide(Layer.merge(ProgressDisplay.layer(!silent), wiring.night(job, output))),
  )
  const summary = summarise(result.state, result.night)
  const folder = { output, run_id, share: job.share }
  yield* writeRunFile(folder, "summary.json", `${JSON.stringify(summary, null, 2)}\n`)
  yield* reportAfterRun(folder)
  return { summary, exit_code: result.exit_code }
}, Effect.scoped)

export const accept = Command.make(
  "accept",
  {
    run: Argument.String("RUN").pipe(
      Argument.withDescription("A run_id (default: the newest run that a gate holds back)"),
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
    const { summary, exit_code } = yield* accepted(job, yield* outputFolder, run_id)
    const { out } = yield* Output
    yield* json ? sayJson(summary) : say(renderSummary(summary, out))
    yield* endWith(exit_code)
  }),
).pipe(Command.withDescription("Publishes a run that a gate of its job holds back"))
