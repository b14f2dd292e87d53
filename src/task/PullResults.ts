/**
 * Reads the records of a session from the endpoints that may return them, one after the other: first flow
 * results, then any other that may hold what was counted and is not here yet (sections 4.10 and 4.12).
 */
import { Effect } from "effect"
import { isAddressable, type ProductsCount, type ResultsSource } from "../service/FlowResults.ts"
import { isWanted } from "./DrainProof.ts"
import { readSource, type ReadOrder, type SourceReading } from "./ReadSource.ts"

export interface PullOrder extends ReadOrder {
  /** What the last state counted; for a session that its customer ran alone, there is no count. */
  readonly count: ProductsCount
  /** The rows of the endpoints, in the order in which they are read. */
  readonly sources: ReadonlyArray<ResultsSource>
}

/** The result of each endpoint that was read, in that order. */
export type Pulled = ReadonlyArray<{ readonly source: ResultsSource; readonly reading: SourceReading }>

/** Always reads the first endpoint, and every other one while something is missing that it may return. */
export const pullResults = Effect.fn("PullResults.pull")(function* (order: PullOrder) {
  const { count } = order
  const sources = order.sources.filter((source) => source.enabled && isAddressable(source, order))
  const pulled: Array<Pulled[number]> = []
  for (const source of sources) {
    const findings = pulled.flatMap(({ reading }) => (reading._tag === "Final" ? [reading.finding] : []))
    if (pulled.length > 0 && !isWanted(source, count, findings)) continue
    const reading = yield* readSource(order, source)
    pulled.push({ source, reading })
    // Results that are not final yet may still become complete: no other endpoint is read before that.
    if (reading._tag === "Unfinished") break
  }
  return pulled satisfies Pulled as Pulled
})
