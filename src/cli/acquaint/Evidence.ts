/**
 * What recorded answers prove about the records of an execution: the same proof that a run makes before it
 * deletes, made from recorded calls.
 */
import { countedTotal, readProductsCount, subFamilyOf } from "../../service/ProductsCount.ts"
import type { ProductsCount } from "../../service/ProductsCount.ts"
import { mayBring } from "../../service/ResultsSource.ts"
import type { ResultsSource } from "../../service/ResultsSource.ts"
import { findingOf, proveDrain } from "../../task/DrainProof.ts"
import type { DrainProof, SourceFinding } from "../../task/DrainProof.ts"
import { fieldOf, jsonOf } from "./Calls.ts"
import type { RecordedCall } from "./Calls.ts"

/** Statuses that describe the moment, not the execution. */
const passing = (status: number): boolean => status === 429 || status >= 500

/** The last answer of a source that will not change any more. */
export const lastAnswer = (
  { path }: ResultsSource,
  calls: ReadonlyArray<RecordedCall>,
): RecordedCall | undefined =>
  calls.findLast(
    ({ route, http_status }) => route.path === path && http_status !== undefined && !passing(http_status),
  )

/** `products_count` from the last closed state. */
export const countsIn = (calls: ReadonlyArray<RecordedCall>): ProductsCount => {
  const closed = calls.findLast(
    ({ route, http_status }) => route.name === "readExecution" && http_status === 200,
  )
  if (closed === undefined) return { _tag: "Unknown", why: "no closed state was read" }
  return readProductsCount(fieldOf(jsonOf(closed), "products_count"))
}

const findingsOf = (
  source: ResultsSource,
  calls: ReadonlyArray<RecordedCall>,
): ReadonlyArray<SourceFinding> => {
  const call = source.enabled ? lastAnswer(source, calls) : undefined
  return call?.http_status === 200 ? [findingOf(source, jsonOf(call))] : []
}

/** What a run with these sources would find complete, and which records it would miss. */
export const proofOf = (
  sources: ReadonlyArray<ResultsSource>,
  calls: ReadonlyArray<RecordedCall>,
): DrainProof =>
  proveDrain(
    countsIn(calls),
    sources.flatMap((source) => findingsOf(source, calls)),
  )

/** The counts of the families that a source may return. */
const countsFor = (source: ResultsSource, counts: Readonly<Record<string, number>>) =>
  Object.fromEntries(Object.entries(counts).filter(([key]) => mayBring(source, subFamilyOf(key))))

/** Whether the source's answer contains everything counted for it, compared in this way. */
export const meetsCounts = (
  source: ResultsSource,
  calls: ReadonlyArray<RecordedCall>,
  counts: Readonly<Record<string, number>>,
  way: "sub_family" | "product",
): boolean => {
  const asked: ResultsSource = { ...source, counts: way, final: "always" }
  return proveDrain({ _tag: "Counted", counts: countsFor(source, counts) }, findingsOf(asked, calls)).isWhole
}

/** `2 of 3 records`, of those counted for the source. */
export const shareOf = (
  source: ResultsSource,
  calls: ReadonlyArray<RecordedCall>,
  counts: Readonly<Record<string, number>>,
): { readonly read: number; readonly counted: number } => {
  const tallies = findingsOf(source, calls).map(({ tally }) => [...tally.bySubFamily.values()])
  return {
    read: tallies.flat().reduce((sum, count) => sum + count, 0),
    counted: countedTotal(countsFor(source, counts)),
  }
}
