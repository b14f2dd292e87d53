/**
 * How a task ends: pure. The end of its last execution, what its results said, and what was counted become
 * one outcome with a reason and the word who must act.
 */
import type { Outcome, WhoActs } from "../ledger/Fact.ts"
import type { End } from "./Ends.ts"
import { ownEnds } from "./Ends.ts"

export interface Verdict {
  readonly outcome: Outcome
  readonly reason: string
  readonly who_acts: WhoActs
}

/** What reading the results of a closed execution came to. */
export type Reading =
  /** Nothing to read: the login never succeeded and nothing was counted, or the job does not want results. */
  | { readonly _tag: "None" }
  | { readonly _tag: "Final" }
  /** Still partial when the time for them was over, or the service did not answer. */
  | { readonly _tag: "Partial" }
  /**
   * Flow results 404 or 412. `readable` holds what the profile body names, `counted` what `products_count`
   * does.
   */
  | { readonly _tag: "Absent"; readonly counted: number; readonly reachable: boolean }

/** Nothing is left at the service that is not here. */
export const isDrained = (reading: Reading): boolean =>
  reading._tag === "None" || reading._tag === "Final" || (reading._tag === "Absent" && reading.reachable)

export const verdictOf = (end: End, reason: string, reading: Reading): Verdict => {
  if (reading._tag === "Partial") return own("RESULTS_PARTIAL")
  const unreachable = reading._tag === "Absent" && !reading.reachable
  if (unreachable && (end.outcome === "succeeded" || end.outcome === "partial"))
    return own("RECORDS_UNREACHABLE")
  return { outcome: end.outcome, reason, who_acts: end.who_acts }
}

export const own = (reason: keyof typeof ownEnds): Verdict => ({
  outcome: ownEnds[reason].outcome,
  reason,
  who_acts: ownEnds[reason].who_acts,
})

/**
 * Whether everything counted can be read. Without flow results only the profile endpoint is left (section
 * 4.12), so each family of `products_count` must appear among the records of that body.
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
