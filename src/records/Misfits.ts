/**
 * Counts of what did not fit: values by table and column, rejected records by table,
 * records without a schema by family. Added up per record,
 * per body and per run, so that a person learns which column to look at, however many rows there are.
 */
import { cutText } from "../service/BodyBounds.ts"
import type { FamilyCount, MisfitCount, OtherRecords, RejectedCount } from "../ledger/RunFacts.ts"

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

/** One count per family, in the order in which they first appear. */
export const addUpFamilies = (all: Iterable<FamilyCount>): ReadonlyArray<FamilyCount> => {
  const sums = new Map<string, FamilyCount>()
  for (const { product, sub_family, records } of all) {
    // Names of the service contain anything: the length says where the first one ends.
    const key = `${product.length} ${product}${sub_family}`
    sums.set(key, { product, sub_family, records: records + (sums.get(key)?.records ?? 0) })
  }
  return [...sums.values()]
}

/** How many families are named, and how much of a name, which may be of any length. */
const familiesMax = 10
const nameMax = 100

/** Of all records of families without a schema; the families with the most are named. */
export const otherRecordsOf = (all: Iterable<FamilyCount>): OtherRecords => {
  const families = addUpFamilies(all)
  const byName = (a: FamilyCount, b: FamilyCount) =>
    a.product < b.product || (a.product === b.product && a.sub_family < b.sub_family) ? -1 : 1
  return {
    records: families.reduce((sum, { records }) => sum + records, 0),
    families: families.length,
    most: families
      .toSorted((a, b) => b.records - a.records || byName(a, b))
      .slice(0, familiesMax)
      .map(({ product, sub_family, records }) => ({
        product: cutText(product, nameMax),
        sub_family: cutText(sub_family, nameMax),
        records,
      })),
  }
}
