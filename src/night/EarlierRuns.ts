/**
 * The runs that a run is compared with, read from the ledger: how everybody stood before it began.
 */
import { Effect } from "effect"
import type { RunId } from "../contract/Ids.ts"
import { foldRun } from "../ledger/FoldRun.ts"
import { Ledger } from "../ledger/Ledger.ts"
import { runsBefore } from "../report/Changes.ts"

/** Oldest first. Folded here: the ledger keeps only the state of the current run. */
export const earlierRuns = Effect.fn("EarlierRuns.load")(function* (run_id: RunId) {
  const ledger = yield* Ledger
  const states = yield* Effect.forEach(runsBefore(yield* ledger.runs, run_id), ({ fact }) =>
    Effect.map(ledger.facts(fact.run_id), (facts) => foldRun(facts)),
  )
  return states.filter((state) => state !== undefined)
})
