/**
 * Reads the records of a session from the endpoints that may return them, one after the other: first flow
 * results, then any other that may hold what was counted and is not here yet (sections 4.10 and 4.12). A
 * session that the service has called by several ids is asked for under each, until one answers with results.
 */
import { Effect } from "effect"
import { isAddressable, type ProductsCount, type ResultsSource } from "../service/FlowResults.ts"
import type { SessionId } from "../service/Ids.ts"
import { isWanted } from "./DrainProof.ts"
import { readSource, type ReadOrder, type SourceReading } from "./ReadSource.ts"

export interface PullOrder extends Omit<ReadOrder, "asked_as"> {
  /** What the service called the session before, newest first. */
  readonly sessionsBefore: ReadonlyArray<SessionId>
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
    const wanted = isWanted(source, count, findings)
    if (pulled.length > 0 && !wanted) continue
    const reading = yield* readCalled(order, source, wanted)
    pulled.push({ source, reading })
    // Results that are not final yet may still become complete: no other endpoint is read before that.
    if (reading._tag === "Unfinished") break
  }
  return pulled satisfies Pulled as Pulled
})

/** First by the id that brought results before, else by the newest. */
const namesOf = ({ session_id, sessionsBefore, readBefore }: PullOrder, { name, path }: ResultsSource) => {
  if (!path.includes("{session_id}")) return [session_id]
  const { landed, asked_as = session_id } = readBefore.get(name) ?? {}
  const names = [session_id, ...sessionsBefore]
  return landed === undefined ? names : [asked_as, ...names.filter((id) => id !== asked_as)]
}

/** An id of before counts only with results: that nothing is there is said of the newest id. */
const readCalled = Effect.fnUntraced(function* (order: PullOrder, source: ResultsSource, wanted: boolean) {
  let said: SourceReading = { _tag: "Refused", http_status: undefined }
  for (const [index, asked_as] of namesOf(order, source).entries()) {
    // To the service it may be the same session, which is asked for once per interval.
    const mayHaveBeenRead = order.mayHaveBeenRead || index > 0
    const reading = yield* readSource({ ...order, asked_as, mayHaveBeenRead }, source)
    const isNewest = asked_as === order.session_id
    if (reading._tag === "Final") return reading
    if (reading._tag === "Unfinished" && (isNewest || reading.message === undefined)) return reading
    if (isNewest && reading._tag === "Nothing" && !wanted) return reading
    if (isNewest) said = reading
  }
  return said
})
