/**
 * What the results of one execution hold against what its closed state counts, family by family. The same
 * questions as a night asks before it deletes, asked of recorded answers.
 */
import { countedTotal, productOf, readProductsCount, subFamilyOf } from "../contract/ProductsCount.ts"
import type { ProductsCount } from "../contract/ProductsCount.ts"
import { mayBring, recordsIn } from "../contract/ResultsSource.ts"
import type { ResultsSource } from "../contract/ResultsSource.ts"
import { findRecords } from "../records/FindRecords.ts"
import { fieldOf, jsonOf } from "./Calls.ts"
import type { RecordedCall } from "./Calls.ts"

type Tally = ReadonlyMap<string, number>

/** Statuses that say something about now and nothing about the execution. */
const passing = (status: number): boolean => status === 429 || status >= 500

/** The last answer that a source gave and that stays so. */
export const lastAnswer = (
  { path }: ResultsSource,
  calls: ReadonlyArray<RecordedCall>,
): RecordedCall | undefined =>
  calls.findLast(
    ({ route, http_status }) => route.path === path && http_status !== undefined && !passing(http_status),
  )

/** The last closed state. */
export const closedState = (calls: ReadonlyArray<RecordedCall>): RecordedCall | undefined =>
  calls.findLast(({ route, http_status }) => route.name === "readExecution" && http_status === 200)

export const countsIn = (calls: ReadonlyArray<RecordedCall>): ProductsCount => {
  const closed = closedState(calls)
  if (closed === undefined) return { _tag: "Unknown", why: "no closed state was read" }
  return readProductsCount(fieldOf(jsonOf(closed), "products_count"))
}

const sumBy = (entries: Iterable<readonly [string, number]>): Tally => {
  const sums = new Map<string, number>()
  for (const [key, count] of entries) if (count > 0) sums.set(key, (sums.get(key) ?? 0) + count)
  return sums
}

export const recordsOf = (source: ResultsSource, call: RecordedCall) =>
  call.http_status === 200 ? findRecords(recordsIn(source, jsonOf(call))).records : []

const isEqual = (left: Tally, right: Tally): boolean =>
  left.size === right.size && [...left].every(([key, count]) => right.get(key) === count)

/** What is counted of the families that a source may bring. */
export const countedFor = (source: ResultsSource, counts: Readonly<Record<string, number>>): number =>
  countedTotal(
    Object.fromEntries(Object.entries(counts).filter(([key]) => mayBring(source, subFamilyOf(key)))),
  )

/** In which ways a source's records meet the counts of the families that it may bring. */
export const waysOfCounting = (
  source: ResultsSource,
  call: RecordedCall,
  counts: Readonly<Record<string, number>>,
): ReadonlyArray<"sub_family" | "product"> => {
  const records = recordsOf(source, call)
  const counted = Object.entries(counts).filter(([key]) => mayBring(source, subFamilyOf(key)))
  const bySubFamily = isEqual(
    sumBy(counted.map(([key, count]) => [subFamilyOf(key), count])),
    sumBy(records.map(({ sub_family }) => [sub_family, 1])),
  )
  const byProduct = isEqual(
    sumBy(counted.map(([key, count]) => [productOf(key) ?? key, count])),
    sumBy(records.map(({ product }) => [product, 1])),
  )
  return [...(bySubFamily ? (["sub_family"] as const) : []), ...(byProduct ? (["product"] as const) : [])]
}

export interface Shortfall {
  readonly family: string
  readonly counted: number
  readonly read: number
}

/** Families of which no source gave as many records as were counted; a record is not counted twice. */
export const shortfalls = (
  sources: ReadonlyArray<ResultsSource>,
  calls: ReadonlyArray<RecordedCall>,
  counts: Readonly<Record<string, number>>,
): ReadonlyArray<Shortfall> => {
  const tallies = sources.flatMap((source) => {
    const call = source.enabled ? lastAnswer(source, calls) : undefined
    if (call === undefined) return []
    const keyOf = source.counts === "product" ? "product" : "sub_family"
    return [{ by: keyOf, tally: sumBy(recordsOf(source, call).map((record) => [record[keyOf], 1])) }]
  })
  const groups = new Map<string, { counted: number; read: number }>()
  for (const [key, count] of Object.entries(counts)) {
    const family = subFamilyOf(key)
    const read = Math.max(
      0,
      ...tallies.map(({ by, tally }) => tally.get(by === "product" ? (productOf(key) ?? key) : family) ?? 0),
    )
    const group = groups.get(family) ?? { counted: 0, read: 0 }
    groups.set(family, { counted: group.counted + count, read: Math.max(group.read, read) })
  }
  return [...groups].flatMap(([family, { counted, read }]) =>
    read < counted ? [{ family, counted, read }] : [],
  )
}
