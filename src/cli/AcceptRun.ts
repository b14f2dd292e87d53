/**
 * What `accept` does once it knows the run: publishes it, finishes it, writes its summary and report again,
 * and tells the job's receivers how the night stands now. In a module of its own, so that the other commands
 * do not load a night.
 */
import { Effect, Layer } from "effect"
import type { RunId } from "../service/Ids.ts"
import type { Job } from "../jobs/Job.ts"
import { acceptRun } from "../run/Nightly.ts"
import { renderSummary } from "../report/RenderSummary.ts"
import { announced } from "./Notices.ts"
import { NoProgressFlag } from "./CommonFlags.ts"
import { reportNight, tidyAfterNight, writeSummary } from "./EndNight.ts"
import { Output, sayJson, sayPainted } from "./Output.ts"
import { ProgressDisplay } from "./ProgressDisplay.ts"
import { holdOutput } from "./RunFolder.ts"
import { Wiring } from "./Wiring.ts"

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
