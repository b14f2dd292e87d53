/**
 * Reads what a session holds from the endpoints that may bring it, one after the other: flow results first,
 * and whatever else could hold what was counted and is not here yet (sections 4.10 and 4.12).
 */
import { Effect } from "effect"
import { isAddressable } from "../contract/ResultsSource.ts"
import type { ResultsSource } from "../contract/ResultsSource.ts"
import type { ProductsCount } from "../contract/ProductsCount.ts"
import { isWanted } from "./DrainProof.ts"
import { readSource } from "./ReadSource.ts"
import type { ReadOrder, SourceReading } from "./ReadSource.ts"

export interface PullOrder extends Omit<ReadOrder, "mayHold"> {
  /** What the last state counted; of a session that its customer ran alone, nobody said. */
  readonly count: ProductsCount
  /** The rows of the endpoints, in the order in which they are asked. */
  readonly sources: ReadonlyArray<ResultsSource>
}

/** What each endpoint that was asked came to, in that order. */
export type Pulled = ReadonlyArray<{ readonly source: ResultsSource; readonly reading: SourceReading }>

const mayHold = (count: ProductsCount): boolean =>
  count._tag === "Unknown" || Object.values(count.counts).some((counted) => counted > 0)

/** Asks the first endpoint in any case, and every other one while something is missing that it may bring. */
export const pullResults = Effect.fn("PullResults.pull")(function* (order: PullOrder) {
  const { count } = order
  const sources = order.sources.filter((source) => source.enabled && isAddressable(source, order))
  const pulled: Array<Pulled[number]> = []
  for (const source of sources) {
    const findings = pulled.flatMap(({ reading }) => (reading._tag === "Final" ? [reading.finding] : []))
    if (pulled.length > 0 && !isWanted(source, count, findings)) continue
    const reading = yield* readSource({ ...order, mayHold: mayHold(count) }, source)
    pulled.push({ source, reading })
    // What is not final yet may still bring everything: nothing else is asked before it is.
    if (reading._tag === "Unfinished") break
  }
  return pulled satisfies Pulled as Pulled
})
