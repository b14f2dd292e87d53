/**
 * `nightjar accept [RUN]`: publishes a run that a gate holds back, without asking its gates again, deletes at
 * the service what is safe now, and ends the run. The job is loaded again from its file. If it is cut off,
 * the same command goes on.
 */
import { existsSync } from "node:fs"
import { resolve } from "node:path"
import { Effect, Layer, Option } from "effect"
import { Argument, Command } from "effect/cli"
import { NoProgressFlag, jsonFlag, optionalFlag, outputFolder } from "../CommonFlags.ts"
import { endWith, refuse } from "../Failures.ts"
import { loadJobs } from "../Jobs.ts"
import { findRun, withLedger } from "../LookAtFolder.ts"
import { reportNight, tidyAfterNight, writeSummary } from "../Nights.ts"
import { announced } from "../Notices.ts"
import { Output, say, sayJson, sayPainted } from "../Output.ts"
import { ProgressDisplay } from "../ProgressDisplay.ts"
import { holdOutput } from "../RunFolder.ts"
import { Wiring } from "../Wiring.ts"
import type { Job } from "../../jobs/Job.ts"
import { renderSummary } from "../../report/RenderSummary.ts"
import { acceptRun } from "../../run/Nightly.ts"
import type { RunId } from "../../service/Ids.ts"
import { heldRuns } from "../../tables/HeldRuns.ts"

// What `accept` does once it knows the run: publishes it, finishes it, writes its summary and report again,
// and tells the job's receivers how the night stands now. In a module of its own, so that the other commands
// do not load a night.

export interface Accepting {
  readonly output: string
  readonly run_id: RunId
  readonly json: boolean
}

/** Returns the exit code of the night. */
export const acceptHeld = Effect.fn("AcceptRun.accept")(function* (job: Job, accepting: Accepting) {
  yield* holdOutput(accepting.output, [job.share])
  const { exit_code } = yield* acceptedNight(job, accepting).pipe(announced(job, accepting.output))
  return exit_code
}, Effect.scoped)

const acceptedNight = Effect.fnUntraced(function* (job: Job, { output, run_id, json }: Accepting) {
  const wiring = yield* Wiring
  const silent = yield* NoProgressFlag
  const result = yield* acceptRun(job, run_id).pipe(
    Effect.provide(Layer.merge(ProgressDisplay.layer(!silent), wiring.night(job, output))),
  )
  const summary = yield* writeSummary(job, output, result)
  const { out } = yield* Output
  yield* json ? sayJson(summary) : sayPainted(renderSummary(summary, out))
  yield* reportNight(job, output, result)
  yield* tidyAfterNight(job, output, result)
  const { exit_code, recovered, news } = result
  return { exit_code, ending: { job: job.name, exit_code, summary, recovered, news } }
})

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
