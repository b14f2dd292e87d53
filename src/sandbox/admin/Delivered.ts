/**
 * What an execution had retrieved and which of it was ever answered, by sub-family, for the observer: from
 * the service's own plan and from the content of its final answers, never from the `products_count` that it
 * showed.
 */
import { countProducts } from "../executions/PlanResults.ts"
import { retrievedAt } from "../executions/Progress.ts"
import { closesAt } from "../state/SandboxState.ts"
import type { Execution } from "../state/SandboxState.ts"

/** Numbers of records by sub-family. */
export type FamilyCounts = Readonly<Record<string, number>>

/** What it has when it closes, or had when it was deleted; undefined if it never closes. */
export const retrievedBy = (execution: Execution): FamilyCounts | undefined => {
  const at = execution.deletedAt ?? closesAt(execution)
  if (!Number.isFinite(at)) return undefined
  const counted: Record<string, number> = {}
  for (const [key, count] of Object.entries(
    countProducts(execution.started.results, retrievedAt(execution, at)),
  )) {
    const family = key.slice(0, key.lastIndexOf("@"))
    counted[family] = (counted[family] ?? 0) + count
  }
  return counted
}

/** For each family, the most that one source's newest final answer carried. */
export const deliveredBy = ({ delivered }: Execution): FamilyCounts => {
  const most: Record<string, number> = {}
  for (const counts of delivered.values())
    for (const [family, count] of Object.entries(counts)) most[family] = Math.max(most[family] ?? 0, count)
  return most
}

/** Families for which no single source carried every record. */
export const undelivered = (retrieved: FamilyCounts, delivered: FamilyCounts): ReadonlyArray<string> =>
  Object.keys(retrieved).filter((family) => (delivered[family] ?? 0) < (retrieved[family] ?? 0))
