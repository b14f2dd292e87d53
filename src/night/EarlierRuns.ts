/**
 * The runs that a run is compared with, read from the ledger: how everybody stood before it began. The end of
 * a run and its report both need them.
 */
import { Effect } from "effect"
import type { RunId } from "../contract/Ids.ts"
import { Ledger } from "../ledger/Ledger.ts"
import { statesOf } from "../ledger/WholeNight.ts"
import { runsBefore } from "../report/Changes.ts"

/** Oldest first, and the newest run of the job before this one, whatever became of it. */
export const earlierRuns = Effect.fn("EarlierRuns.load")(function* (run_id: RunId) {
  const ledger = yield* Ledger
  const headers = yield* ledger.runs
  const before = yield* statesOf(ledger, runsBefore(headers, run_id))
  const at = headers.findIndex(({ fact }) => fact.run_id === run_id)
  const job = headers[at]?.fact.job
  const previous = headers.slice(0, Math.max(0, at)).findLast(({ fact }) => fact.job === job)
  return { before, previous }
})
