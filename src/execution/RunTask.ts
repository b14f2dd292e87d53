/**
 * One task from the slot it was given to its verdict: prepare, start, follow, read, settle, or wait for a
 * further try.
 */
import { Clock, Effect, Queue, Random } from "effect"
import { Hints, withHintPair } from "../client/Hints.ts"
import type { AttemptClosed } from "../ledger/Fact.ts"
import type { AttemptState } from "../ledger/RunState.ts"
import { retryWaitMs } from "../scheduling/Polling.ts"
import type { Candidate } from "../scheduling/Schedule.ts"
import { append } from "./AttemptOrder.ts"
import type { AttemptOrder } from "./AttemptOrder.ts"
import { endOfAttempt, endOfRefusal, endOfRejected, ownEnds, refusalOf } from "./Ends.ts"
import { externalExecutionId } from "./ExternalId.ts"
import { followAttempt } from "./FollowAttempt.ts"
import type { OpenExecution } from "./FollowAttempt.ts"
import { candidateOf, release, settle, unstarted } from "./Night.ts"
import type { Book, Night } from "./Night.ts"
import { noteUnavailable } from "./Outage.ts"
import { tell } from "./Progress.ts"
import { pullResults } from "./PullResults.ts"
import { startAttempt } from "./StartAttempt.ts"
import { exchangeTicket, forgetTicket, ticketSecrets } from "./ExchangeTicket.ts"
import { dropToken, tokenEndOf, tokenEndOfRefusal } from "./TokenEnds.ts"
import type { StartResult } from "./StartAttempt.ts"
import { countedTotal, isDrained, own, verdictOf } from "./Verdict.ts"
import type { Reading } from "./Verdict.ts"
import type { CallParts, SessionWork } from "./Work.ts"

export const pullSession = Effect.fnUntraced(function* (night: Night, session: SessionWork) {
  const reading = yield* read(night, { ...session, engine_reference: undefined, secrets: [] }, undefined, {})
  const missing = reading._tag === "Absent"
  yield* settle(
    night,
    session.task_id,
    missing ? own("SESSION_UNKNOWN") : verdictOf(ownEnds.COMPLETED, "COMPLETED", reading),
  )
})

/** Begins one attempt in the slot that was taken for it. */
export const startTask = Effect.fnUntraced(function* (night: Night, book: Book, candidate: Candidate) {
  const { work } = book
  const prepared = work.prepare === undefined ? undefined : yield* work.prepare
  if (prepared === undefined || prepared._tag === "Verdict") {
    yield* settle(night, work.task_id, prepared?.verdict ?? own("NIGHT_OVER"))
    return yield* release(night, candidate.task_id)
  }
  if (prepared._tag === "Unavailable") return yield* defer(night, book, "engine_unavailable", undefined)
  book.fingerprint = prepared.fingerprint
  book.secrets = prepared.secrets
  book.token_id = prepared.token?.token_id
  if (prepared.fingerprint !== candidate.fingerprint) {
    // Only now is it known which login this is: it queues again, so that the same login never runs twice at
    // once.
    yield* release(night, candidate.task_id)
    return night.schedule.add(candidateOf(book))
  }
  const refused = book.fingerprint === undefined ? undefined : night.rejected.get(book.fingerprint)
  if (refused !== undefined) {
    yield* settle(night, work.task_id, verdictOf(endOfRejected(refused), refused, { _tag: "None" }))
    return yield* release(night, candidate.task_id)
  }
  const overAt = (yield* Clock.currentTimeMillis) + (work.expected_ms ?? 0)
  if (!book.probe && overAt > (night.rules.deadlineAt ?? Infinity)) {
    yield* settle(night, work.task_id, unstarted(book) ?? own("DEADLINE_REACHED"))
    return yield* release(night, candidate.task_id)
  }
  yield* tell({ _tag: "Started", task_id: work.task_id })
  const order = orderOf(night, book)
  const hints = yield* Hints
  const call = callOf(prepared.call, order.external_execution_id, hints.on)
  yield* afterStart(night, book, yield* startAttempt(order, call, book.probe))
})

const callOf = (parts: CallParts, external_execution_id: string, isHinted: boolean) => ({
  ...parts,
  external_execution_id,
  hooks_extra_data: isHinted ? withHintPair(parts.hooks_extra_data) : parts.hooks_extra_data,
})

const orderOf = (night: Night, book: Book): AttemptOrder => ({
  run_id: night.run_id,
  task_id: book.work.task_id,
  customer_id: book.work.customer_id,
  engine_reference: book.work.engine_reference,
  attempt: book.attempt,
  external_execution_id: externalExecutionId(night.key, book.work.task_id, book.attempt),
  fingerprint: book.fingerprint,
  ...(book.token_id === undefined ? {} : { token_id: book.token_id }),
  secrets: book.secrets,
  polling: night.rules.polling,
  max_wait_ms: night.rules.max_wait_ms,
  deadlineAt: night.rules.deadlineAt,
})

const afterStart = Effect.fnUntraced(function* (night: Night, book: Book, result: StartResult) {
  switch (result._tag) {
    case "Open":
      book.deferredSince = undefined
      book.deferrals = 0
      book.probe = false
      book.attemptsMade += 1
      night.outages.delete(book.work.engine_reference)
      return yield* follow(night, book, result)
    case "Deferred":
      book.probe = result.probe
      return yield* defer(night, book, result.why, result.retry_after_ms)
    case "NeverStarted":
      yield* settleRefusal(night, book, result.status_reason)
      return yield* release(night, book.work.task_id)
    case "StartUnknown":
      yield* settle(night, book.work.task_id, own("START_UNKNOWN"))
      return yield* release(night, book.work.task_id)
  }
})

export const settleRefusal = Effect.fnUntraced(function* (night: Night, book: Book, status_reason: string) {
  const tokenEnd = tokenEndOfRefusal(status_reason)
  if (book.token_id !== undefined && tokenEnd !== undefined)
    yield* dropToken(orderOf(night, book), book.token_id, tokenEnd)
  const verdict = verdictOf(endOfRefusal(status_reason), status_reason, { _tag: "None" })
  yield* settle(night, book.work.task_id, verdict)
})

const deferredReasons = { foreign: "ALREADY_EXECUTING", not_created: "SERVICE_UNREACHABLE" } as const

/** Gives the slot back and queues the same attempt for later, as long as the task may wait at all. */
const defer = Effect.fnUntraced(function* (
  night: Night,
  book: Book,
  why: Extract<StartResult, { _tag: "Deferred" }>["why"],
  retry_after_ms: number | undefined,
) {
  const { task_id } = book.work
  const now = yield* Clock.currentTimeMillis
  book.deferredSince ??= now
  if (why === "engine_unavailable") return yield* noteUnavailable(night, book, retry_after_ms)
  book.deferrals += 1
  const wait = Math.max(
    retry_after_ms ?? 0,
    retryWaitMs(night.rules.retry, book.deferrals, yield* Random.next),
  )
  const until = now + wait
  const lastAt = Math.min(book.deferredSince + night.rules.max_wait_ms, night.rules.deadlineAt ?? Infinity)
  if (until > lastAt) {
    yield* settle(night, task_id, book.probe ? own("START_UNKNOWN") : own(deferredReasons[why]))
  } else {
    night.schedule.add(candidateOf(book), until)
    yield* tell({ _tag: "Waiting", task_id, why: deferredReasons[why], until })
  }
  yield* release(night, task_id)
})

export const follow = Effect.fnUntraced(function* (night: Night, book: Book, open: OpenExecution) {
  book.secrets = [...book.secrets, ...(yield* ticketSecrets(open.execution_id))]
  const followed = yield* followAttempt(orderOf(night, book), open, night.heads)
  if (followed._tag === "Closed") return yield* finish(night, book, followed.closed, followed.abort)
  // The slot stays taken: the execution is still open at the service.
  yield* settle(night, book.work.task_id, own(followed.reason))
})

/** The execution is over: its slot is free, its results are read, and the task is settled or tried again. */
export const finish = Effect.fnUntraced(function* (
  night: Night,
  book: Book,
  closed: typeof AttemptClosed.Type,
  abort: AttemptState["abort"],
) {
  const { task_id } = book.work
  const { end, reason } = endOfAttempt(closed, abort)
  yield* tell({ _tag: "Closed", task_id, status_reason: reason })
  if (end.opensBreaker && book.fingerprint !== undefined)
    night.rejected.set(book.fingerprint, refusalOf(closed.authentication_status) ?? reason)
  yield* release(night, task_id)
  yield* settleTokens(night, book, closed)
  const reading = yield* readClosed(night, book, closed)
  if (isDrained(reading)) yield* append(drained(night, closed))
  const verdict = verdictOf(end, reason, reading)
  const now = yield* Clock.currentTimeMillis
  // What is still partial is read to its end before the login is used again.
  const again =
    end.retry &&
    reading._tag !== "Partial" &&
    night.mode === "night" &&
    book.attemptsMade < night.rules.retry.max_attempts
  const waitMs = retryWaitMs(night.rules.retry, book.attemptsMade, yield* Random.next)
  if (!again || book.work.prepare === undefined || now + waitMs >= (night.rules.deadlineAt ?? Infinity))
    return yield* settle(night, task_id, verdict)
  book.lastVerdict = verdict
  book.attempt += 1
  night.schedule.add(candidateOf(book), now + waitMs)
  yield* tell({ _tag: "Waiting", task_id, why: reason, until: now + waitMs })
  yield* Queue.offer(night.poke, undefined)
})

/** The ticket of a closed run is exchanged now or never; a token whose login failed is used no more. */
const settleTokens = Effect.fnUntraced(function* (
  night: Night,
  book: Book,
  closed: typeof AttemptClosed.Type,
) {
  const order = orderOf(night, book)
  if (closed.authentication_status === "AUTH_OK") yield* exchangeTicket(order, closed.execution_id, true)
  else yield* forgetTicket(order, closed.execution_id)
  const tokenEnd = tokenEndOf(closed)
  if (book.token_id !== undefined && tokenEnd !== undefined) yield* dropToken(order, book.token_id, tokenEnd)
})

const drained = (night: Night, { task_id, attempt, execution_id }: typeof AttemptClosed.Type) =>
  ({ _tag: "AttemptDrained", run_id: night.run_id, task_id, attempt, execution_id }) as const

const readClosed = Effect.fnUntraced(function* (night: Night, book: Book, closed: typeof AttemptClosed.Type) {
  const { session_id, products_count = {} } = closed
  const counted = countedTotal(products_count)
  const none: Reading = { _tag: "None" }
  const mayHold =
    closed.authentication_status === "AUTH_OK" ||
    counted > 0 ||
    closed.status_code === "COMPLETED" ||
    closed.status_code === "PARTIAL"
  if (!night.rules.flow_results.enabled || !mayHold) return none
  if (session_id === undefined)
    return { _tag: "Absent", counted, reachable: counted === 0 } satisfies Reading as Reading
  return yield* read(night, { ...book.work, session_id, secrets: book.secrets }, closed, products_count)
})

const read = (
  night: Night,
  about: {
    readonly task_id: string
    readonly session_id: string
    readonly customer_id: string | undefined
    readonly engine_reference: string | undefined
    readonly secrets: ReadonlyArray<string>
  },
  closed: typeof AttemptClosed.Type | undefined,
  products_count: Readonly<Record<string, number>>,
) => {
  const state = night.run.tasks.get(about.task_id)
  const ofSession = <R extends { readonly session_id: string }>(one: R) => one.session_id === about.session_id
  return pullResults({
    run_id: night.run_id,
    task_id: about.task_id,
    session_id: about.session_id,
    customer_id: about.customer_id,
    engine_reference: about.engine_reference,
    secrets: about.secrets,
    products_count,
    attempt: closed?.attempt,
    execution_id: closed?.execution_id,
    // What was closed before this process began may have been asked for by the one before it.
    mayHaveBeenRead:
      closed === undefined ||
      state?.attempts.some(
        ({ attempt, closed: known }) => attempt === closed.attempt && known !== undefined,
      ) === true,
    attachmentsKnown: new Set(
      state?.attachments
        .filter((one) => ofSession(one) && one.status !== "failed")
        .map((one) => one.attachment_id),
    ),
    min_interval_ms: night.rules.flow_results.min_interval_ms,
    wait_final_ms: night.rules.flow_results.wait_final_ms,
    attachments: night.rules.flow_results.attachments,
  })
}
