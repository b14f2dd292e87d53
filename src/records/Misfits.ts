/**
 * Counts of what did not fit: values by table and column, rejected records by table. Added up per record,
 * per body and per run, so that a person learns which column to look at, however many rows there are.
 */
import type { MisfitCount, RejectedCount } from "../ledger/TableNotes.ts"

/** One count per table and column, in the order in which they first appear. */
export const addUpMisfits = (all: Iterable<MisfitCount>): ReadonlyArray<MisfitCount> => {
  const sums = new Map<string, MisfitCount>()
  for (const each of all) {
    // Names are those of schemas: none has a dot.
    const key = `${each.table}.${each.column}`
    sums.set(key, { ...each, count: each.count + (sums.get(key)?.count ?? 0) })
  }
  return [...sums.values()]
}

/** One count per table, without those of nothing. */
export const addUpRejected = (all: Iterable<RejectedCount>): ReadonlyArray<RejectedCount> => {
  const sums = new Map<string | null, number>()
  for (const { table, count } of all) sums.set(table, count + (sums.get(table) ?? 0))
  return [...sums].flatMap(([table, count]) => (count > 0 ? [{ table, count }] : []))
}
