/**
 * What follows a night, whether `run` or `accept` ended it: its summary is written, then come the report,
 * names for new documents and what `retain` says. Nothing but the summary can fail.
 */
import { Effect, Layer } from "effect"
import type { Job } from "../jobs/Job.ts"
import type { NightResult } from "../run/Nightly.ts"
import { summarise } from "../report/Summary.ts"
import { namedOutput } from "./CommonFlags.ts"
import { applyRetain, nameDocumentsAfterNight } from "./PruneJobs.ts"
import { warn } from "./Output.ts"
import { writeRunFile } from "./RunFolder.ts"
import { isReportDue, reportAfterRun } from "./RunReport.ts"
import { Wiring } from "./Wiring.ts"

const folderOf = ({ share }: Job, output: string, { run_id }: NightResult) => ({ output, run_id, share })

/** As it is written to `runs/<run_id>/summary.json`. */
export const writeSummary = Effect.fnUntraced(function* (job: Job, output: string, result: NightResult) {
  const summary = summarise(result.state, result.night, namedOutput(output))
  yield* writeRunFile(folderOf(job, output, result), "summary.json", `${JSON.stringify(summary, null, 2)}\n`)
  return summary
})

/** The report, unless there was nothing to do and it says all of the run; never fails. */
export const reportNight = Effect.fnUntraced(function* (job: Job, output: string, result: NightResult) {
  const target = folderOf(job, output, result)
  if (!result.nothingToDo || (yield* isReportDue(target, result.state.newest))) yield* reportAfterRun(target)
})

/** Names for documents, and what `retain` says: once no other run writes here. Never fails. */
export const tidyAfterNight = Effect.fnUntraced(function* (job: Job, output: string, result: NightResult) {
  const wiring = yield* Wiring
  if (!result.nothingToDo) yield* nameDocumentsAfterNight(output, job)
  yield* applyRetain(output, job).pipe(
    Effect.provide(Layer.merge(wiring.ledger(output, "read-write"), wiring.database)),
    Effect.catchTag("LedgerFailed", ({ message }) => warn("prune-failed", { why: message })),
  )
})
