/**
 * How a task ends: pure. The end of its last execution, what its results said, and what was counted become one
 * outcome with a reason, and the word whether its executions may be deleted.
 */
import type { Outcome, WhoActs } from "../ledger/Fact.ts"
import type { End } from "./Ends.ts"
import { ownEnds } from "./Ends.ts"

export interface Verdict {
  readonly outcome: Outcome
  readonly reason: string
  readonly who_acts: WhoActs
  readonly deletable: boolean
}

/** What reading the results of a closed execution came to. */
export type Reading =
  /** Nothing to read: the login never succeeded and nothing was counted, or the job does not want results. */
  | { readonly _tag: "None" }
  | { readonly _tag: "Final" }
  /** Still partial when the time for them was over, or the service did not answer. */
  | { readonly _tag: "Partial" }
  /** Flow results 404 or 412. `readable` holds what the profile body names, `counted` what `products_count` does. */
  | { readonly _tag: "Absent"; readonly counted: number; readonly reachable: boolean }

export const verdictOf = (end: End, reason: string, reading: Reading): Verdict => {
  if (reading._tag === "Partial") return own("RESULTS_PARTIAL", false)
  if (reading._tag === "Absent" && !reading.reachable) {
    if (end.outcome === "succeeded" || end.outcome === "partial") return own("RECORDS_UNREACHABLE", false)
    return { outcome: end.outcome, reason, who_acts: end.who_acts, deletable: false }
  }
  return { outcome: end.outcome, reason, who_acts: end.who_acts, deletable: true }
}

export const own = (reason: keyof typeof ownEnds, deletable = true): Verdict => ({
  outcome: ownEnds[reason].outcome,
  reason,
  who_acts: ownEnds[reason].who_acts,
  deletable,
})

/**
 * Whether everything counted can be read. Without flow results only the profile endpoint is left (section 4.12), so
 * each family of `products_count` must appear among the records of that body.
 */
export const isReachable = (
  products_count: Readonly<Record<string, number>>,
  readableSubFamilies: ReadonlySet<string>,
): boolean =>
  Object.entries(products_count).every(
    ([key, count]) =>
      count <= 0 || readableSubFamilies.has(key.slice(0, key.includes("@") ? key.indexOf("@") : undefined)),
  )

export const countedTotal = (products_count: Readonly<Record<string, number>>): number =>
  Object.values(products_count).reduce((sum, count) => sum + Math.max(0, count), 0)
