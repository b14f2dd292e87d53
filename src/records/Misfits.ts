/**
 * Counts of what did not fit, added up per record, body and run, so that a person learns which column to look
 * at, however many rows there are.
 */
import { cutText } from "../service/BodyBounds.ts"
import type { FamilyCount, MisfitCount, OtherRecords, RejectedCount } from "../ledger/RunFacts.ts"
import type { FeatureLeft, FeaturesLeft } from "../ledger/RunFacts.ts"

/** One sum of those with the same key, in the order in which they first appear. */
const addUp =
  <A>(keyOf: (one: A) => string | null, add: (sum: A, one: A) => A) =>
  (all: Iterable<A>): ReadonlyArray<A> => {
    const sums = new Map<string | null, A>()
    for (const one of all) {
      const key = keyOf(one)
      const sum = sums.get(key)
      sums.set(key, sum === undefined ? one : add(sum, one))
    }
    return [...sums.values()]
  }
const addCounts = <A extends { readonly count: number }>(sum: A, { count }: A): A => ({
  ...sum,
  count: sum.count + count,
})

/** By table and column. Names are those of schemas: none has a dot. */
export const addUpMisfits = addUp<MisfitCount>(({ table, column }) => `${table}.${column}`, addCounts)

const byTable = addUp<RejectedCount>(({ table }) => table, addCounts)
/** By table, without those of nothing. */
export const addUpRejected = (all: Iterable<RejectedCount>): ReadonlyArray<RejectedCount> =>
  byTable(all).filter(({ count }) => count > 0)

/** By family. Names of the service contain anything: the length says where the first one ends. */
export const addUpFamilies = addUp<FamilyCount>(
  ({ product, sub_family }) => `${product.length} ${product}${sub_family}`,
  (sum, { records }) => ({ ...sum, records: sum.records + records }),
)

/** How many families or features are named, and how much of a name, which may be of any length. */
const namedMax = 10
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
      .slice(0, namedMax)
      .map(({ product, sub_family, records }) => ({
        product: cutText(product, nameMax),
        sub_family: cutText(sub_family, nameMax),
        records,
      })),
  }
}

const byFeature = addUp<FeatureLeft>(({ feature, reason }) => JSON.stringify([feature, reason]), addCounts)

/** Undefined if none is left; the features with the most are named. */
export const featuresLeftOf = (all: ReadonlyArray<FeatureLeft>): FeaturesLeft | undefined => {
  if (all.length === 0) return undefined
  const most = byFeature(all).toSorted((a, b) => b.count - a.count || (a.feature < b.feature ? -1 : 1))
  return {
    count: all.length,
    most: most.slice(0, namedMax).map(({ feature, reason, count }) => ({
      feature: cutText(feature, nameMax),
      reason: cutText(reason, nameMax),
      count,
    })),
  }
}
