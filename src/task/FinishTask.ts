/**
 * What follows once an execution is closed: its results are read, their proof is recorded, and the task is
 * settled or tried again. Sessions that customers ran themselves are only read; executions that an earlier
 * process kept at the service are read once more.
 */
import { Clock, Duration, Effect, Random } from "effect"
import { attemptKeys } from "../ledger/FactKeys.ts"
import type { EngineReference, SessionId } from "../service/Ids.ts"
import { countedTotal, sourceNameOf, type ProductsCount } from "../service/FlowResults.ts"
import type { AttemptClosed, Fact } from "../ledger/Fact.ts"
import { awaitsDocuments, type ClosedAttempt } from "../ledger/RunState.ts"
import { waitMs } from "../base/Time.ts"
import { attemptWaits } from "../client/Polling.ts"
import { append } from "../ledger/Ledger.ts"
import { endOfAttempt, own } from "../service/Ends.ts"
import { exchangeTicket, forgetTicket } from "../tokens/ExchangeTicket.ts"
import { guardedReading, keptWhereUnusable } from "./SettleUnusable.ts"
import type { AttemptOrder } from "./AttemptOrder.ts"
import { isHere, movedText } from "./MovedService.ts"
import { triesOf, verdictOfEnd, type KeptAttempt } from "./Next.ts"
import { noteWait, occupied, orderOf, settle, taskOf, type Night, type Row } from "./Night.ts"
import { pullResults } from "./PullResults.ts"
import { dropToken, tokenEndOf } from "../tokens/TokenLogin.ts"
import { judgeReadings, unread, unwanted, verdictOf, verdictOfSession, type Reading } from "./Verdict.ts"
import type { SessionTask } from "./Plan.ts"

/** The records of a session that its customer ran are not counted by anybody. */
const uncounted: ProductsCount = { _tag: "Unknown", why: "no execution counts it" }

const pullSession = Effect.fnUntraced(function* (night: Night, session: SessionTask) {
  const pulled = yield* pull(night, { ...session, engine_reference: undefined }, undefined, false)
  const results = night.states.get(session.task_id)?.results ?? []
  const wasRead = results.some(({ fact }) => fact.landed !== undefined)
  yield* settle(night, session.task_id, verdictOfSession(pulled, wasRead))
})

/** A session that is not settled yet is read again, and one of which a document may still come. */
export const enlistSession = Effect.fnUntraced(function* (night: Night, session: SessionTask) {
  const state = night.run.tasks.get(session.task_id)
  const isOver = state?.settled !== undefined && state.settled.fact.outcome !== "unfinished"
  if (isOver && !awaitsDocuments(state)) return
  if (!isOver) night.ends.delete(session.task_id)
  const partial = Effect.suspend(() =>
    isOver || night.settledHere.has(session.task_id)
      ? Effect.void
      : settle(night, session.task_id, own("RESULTS_PARTIAL")),
  )
  yield* occupied(night, guardedReading(night, session.task_id, pullSession(night, session)), partial)
})

/** What its results prove is a fact, with the task's verdict or with the wait for its next start. */
export const finish = Effect.fnUntraced(function* (night: Night, row: Row, last: ClosedAttempt) {
  const { task_id, prepare } = row.work
  const end = endOfAttempt(last.closed.fact, last.abort)
  const { reason } = end.verdict
  const isFound = yield* isHere(night, row, last)
  if (isFound) yield* settleTokens(orderOf(night, row, last.attempt), last.closed.fact)
  const reading = isFound
    ? yield* readClosed(night, row, last, false)
    : ({ _tag: "Partial", message: movedText(night, last) } satisfies Reading)
  const proof = readingFacts(last.closed.fact, reading)
  const task = taskOf(night, row)
  const tries = Math.max(1, task === undefined ? 0 : triesOf(task))
  const now = yield* Clock.currentTimeMillis
  const until = Math.trunc(now + waitMs(attemptWaits(night.rules.retry), tries, yield* Random.next))
  const again =
    end.retry &&
    // Partial results are read to their end before the login is used again.
    reading._tag !== "Partial" &&
    night.mode === "night" &&
    tries < night.rules.retry.max_attempts &&
    prepare !== undefined &&
    until < (night.rules.deadlineAt ?? Infinity)
  if (again) yield* noteWait(night, task_id, { reason, until }, proof)
  else yield* settle(night, task_id, verdictOfEnd(last, reading), proof)
})

/** If its task ended because it was kept, the task gets the verdict of the execution's end. */
export const readAgain = Effect.fnUntraced(function* (
  night: Night,
  row: Row,
  { last, kept, isEnd }: KeptAttempt,
) {
  if (!(yield* isHere(night, row, last))) return
  const reading = yield* keptWhereUnusable(night, readClosed(night, row, last, true))
  if (reading._tag === "Partial") return
  // Its records are here, whatever the service has of them by now.
  if (reading._tag !== "Drained" && kept.reason === "DOCUMENTS_SHORT") return
  if (reading._tag === "Kept" && reading.reason === kept.reason && reading.message === kept.message) return
  const proof = readingFacts(last.closed.fact, reading)
  if (!isEnd) return yield* append(...proof)
  const { verdict } = endOfAttempt(last.closed.fact, last.abort)
  yield* settle(night, row.work.task_id, verdictOf(verdict, reading), proof)
})

const readingFacts = (closed: typeof AttemptClosed.Type, reading: Reading): ReadonlyArray<Fact> => {
  const keys = { ...attemptKeys(closed), execution_id: closed.execution_id }
  switch (reading._tag) {
    case "Drained": {
      const { basis, families } = reading
      return [{ _tag: "AttemptDrained", ...keys, proof: { basis, families } }]
    }
    case "Kept": {
      const { reason, families, message } = reading
      return [{ _tag: "AttemptKept", ...keys, reason, families, message }]
    }
    case "Partial":
    case "Gone":
      return []
  }
}

/** The ticket of a closed execution is exchanged now or never; a token whose login failed is dropped. */
const settleTokens = Effect.fnUntraced(function* (order: AttemptOrder, closed: typeof AttemptClosed.Type) {
  if (closed.authentication_status === "AUTH_OK") yield* exchangeTicket(order, closed.execution_id, true)
  else yield* forgetTicket(order, closed.execution_id)
  const tokenEnd = tokenEndOf(closed)
  if (order.token_id !== undefined && tokenEnd !== undefined)
    yield* dropToken(order, order.token_id, tokenEnd)
})

const countOf = ({ products_count }: typeof AttemptClosed.Type): ProductsCount =>
  products_count === undefined
    ? { _tag: "Unknown", why: "the state's products_count is missing or cannot be read" }
    : { _tag: "Counted", counts: products_count }

/** Extraction begins with `AUTH_OK` (3.2); a count, also an unreadable one, says that there may be more. */
const mayHold = (closed: typeof AttemptClosed.Type, count: ProductsCount): boolean =>
  count._tag === "Unknown" ||
  countedTotal(count.counts) > 0 ||
  closed.authentication_status === "AUTH_OK" ||
  closed.status_code === "COMPLETED" ||
  closed.status_code === "PARTIAL"

/** `quick`: read once, whether it is final or not. */
const readClosed = Effect.fnUntraced(function* (night: Night, row: Row, last: ClosedAttempt, quick: boolean) {
  const { fact } = last.closed
  // Nothing of it is landed, so nothing of it is deleted either.
  if (fact.landed === undefined) return { _tag: "Gone" } satisfies Reading as Reading
  const isOff = !night.rules.flow_results.enabled
  if (isOff && last.results_off === true) return unwanted
  const count = countOf(fact)
  const { session_id } = fact
  if (session_id === undefined || !mayHold(fact, count)) return judgeReadings(count, [])
  if (isOff) return unread
  return judgeReadings(count, yield* pull(night, { ...row.work, session_id }, last, quick))
})

const pull = (
  night: Night,
  about: SessionTask & { readonly engine_reference: EngineReference | undefined },
  last: ClosedAttempt | undefined,
  quick: boolean,
) => {
  const closed = last?.closed
  const state = night.states.get(about.task_id)
  const ofSession = <R extends { readonly session_id: SessionId }>(one: R) =>
    one.session_id === about.session_id
  const { flow_results, sources } = night.rules
  return pullResults({
    run_id: night.run_id,
    task_id: about.task_id,
    session_id: about.session_id,
    sessionsBefore: last?.sessions_before ?? [],
    customer_id: about.customer_id,
    engine_reference: about.engine_reference,
    refused: state?.refused ?? [],
    count: closed === undefined ? uncounted : countOf(closed.fact),
    sources,
    attempt: closed?.fact.attempt,
    execution_id: closed?.fact.execution_id,
    // If it was closed before this process began, the previous process may have read it.
    mayHaveBeenRead: closed === undefined || closed.seq <= night.run.newest,
    readBefore: new Map(
      state?.results.flatMap(({ fact }) => (ofSession(fact) ? [[sourceNameOf(fact), fact]] : [])),
    ),
    attachmentsBefore: new Map(
      state?.attachments.filter(ofSession).map(({ attachment_id, status }) => [attachment_id, status]),
    ),
    min_interval: flow_results.min_interval,
    wait_final: quick ? Duration.zero : flow_results.wait_final,
    attachments: flow_results.attachments,
    lastAnswerAt: night.ending?.lastAnswerAt ?? Infinity,
  })
}
