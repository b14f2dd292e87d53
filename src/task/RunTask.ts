/**
 * One task from the slot it was given to the end of its execution: prepare, start, follow, or wait for a
 * further try. What follows an execution that is closed is in `FinishTask.ts`.
 */
import { Clock, Duration, Effect, Queue, Random } from "effect"
import { Hints, withHintPair } from "../client/Hints.ts"
import { waitMs } from "../base/Time.ts"
import { attemptWaits } from "../client/Polling.ts"
import type { Candidate } from "../service/Execution.ts"
import { refusesTokenizedStart } from "./Attempt.ts"
import { own, verdictOfRefusal } from "../service/Ends.ts"
import { finish } from "./FinishTask.ts"
import { followAttempt } from "./FollowAttempt.ts"
import type { OpenExecution } from "./FollowAttempt.ts"
import { heldLogin } from "./HeldLogin.ts"
import type { Held } from "./HeldLogin.ts"
import { candidateOf, noteWait, orderOf, release, settle, settleWaiting, unstarted } from "./Night.ts"
import type { Book, Failure, Needs, Night } from "./Night.ts"
import { noteAnswered, noteAvailable, noteFailed, noteRefused, noteUnavailable } from "./Outage.ts"
import { tell } from "./Progress.ts"
import type { AnswerUnusable } from "./Quarantine.ts"
import { askEngine, startAttempt } from "./StartAttempt.ts"
import type { StartResult } from "./StartAttempt.ts"
import { dropToken, tokenEndOfRefusal } from "../tokens/TokenLogin.ts"
import type { CallParts } from "./Work.ts"

const notQueued = Effect.die("a task without a preparation is never queued")

/** Nothing of the task is in flight: a failure from here on says nothing about its login. */
const setWaiting = (book: Book): void => {
  book.stage = "waiting"
  book.startedAt = undefined
}

/** Begins one attempt in the slot that was taken for it. */
export const startTask = Effect.fnUntraced(function* (night: Night, book: Book, candidate: Candidate) {
  const { work } = book
  if (book.isOver) return yield* release(night, candidate.task_id)
  if (!book.probe) setWaiting(book)
  const prepared = yield* work.prepare ?? notQueued
  if (prepared._tag === "Verdict") {
    // A start that was never answered may be running, whatever happens to a further one.
    yield* settle(night, work.task_id, book.probe ? own("START_UNKNOWN") : prepared.verdict)
    return yield* leaveSlot(night, book)
  }
  if (prepared._tag === "Unavailable")
    return yield* defer(night, book, "engine_unavailable", prepared.retry_after)
  book.keys = prepared.keys
  const { withParameters } = prepared
  const instead = book.byParameters ? withParameters : undefined
  book.token_id = instead === undefined ? prepared.token?.token_id : undefined
  const { fingerprint, account } = candidateOf(book)
  if (!book.probe && (fingerprint !== candidate.fingerprint || account !== candidate.account)) {
    // Only now is it known which account this is: it queues again, so that two of its logins never run at
    // once.
    yield* release(night, candidate.task_id)
    return night.schedule.add(candidateOf(book))
  }
  const held = yield* heldLogin(night, book)
  if (held !== undefined) return yield* obeyHold(night, book, held)
  const overAt = (yield* Clock.currentTimeMillis) + Duration.toMillis(work.needs ?? Duration.zero)
  if (!book.probe && overAt > (night.rules.deadlineAt ?? Infinity)) {
    yield* settle(night, work.task_id, unstarted(book) ?? own("DEADLINE_REACHED"))
    return yield* release(night, candidate.task_id)
  }
  // Harmless, and asked before each login that may come to nothing.
  const isDoubtful = book.probe || night.breaker.isInDoubt(work.engine_reference)
  if (isDoubtful && (yield* askEngine(work.engine_reference)) !== true)
    return yield* defer(night, book, "engine_unavailable")
  yield* tell({ _tag: "Started", task_id: work.task_id })
  const first = yield* sendStart(night, book, instead ?? prepared.call)
  yield* afterStart(night, book, first, instead === undefined ? withParameters : undefined)
})

const sendStart = Effect.fnUntraced(function* (night: Night, book: Book, parts: CallParts) {
  book.stage = "sent"
  book.startedAt = yield* Clock.currentTimeMillis
  book.closed = undefined
  book.login.status = undefined
  const order = orderOf(night, book)
  const hints = yield* Hints
  return yield* startAttempt(order, callOf(parts, order.external_execution_id, hints.on), book.probe)
})

const callOf = (parts: CallParts, external_execution_id: string, isHinted: boolean) => ({
  ...parts,
  external_execution_id,
  hooks_extra_data: isHinted ? withHintPair(parts.hooks_extra_data) : parts.hooks_extra_data,
})

/** The login may not be sent now: the task waits, or has its verdict. */
const obeyHold = Effect.fnUntraced(function* (night: Night, book: Book, held: Held) {
  const { task_id } = book.work
  if (held._tag === "Ended") {
    // A start that may be running unseen stays unknown, whatever is in the way of its probe.
    yield* settle(night, task_id, unstarted(book) ?? held.verdict)
    return yield* leaveSlot(night, book)
  }
  if (held.until === undefined) return yield* defer(night, book, "foreign")
  if (book.probe) return night.schedule.owe(candidateOf(book), held.until)
  night.schedule.add(candidateOf(book), held.until)
  yield* release(night, task_id)
})

/**
 * If the service refuses the form of a start with a token, the parameters that the token was made with are
 * sent instead, if the job has them: nothing ran, and no login was tried.
 */
const afterStart = Effect.fnUntraced(function* (
  night: Night,
  book: Book,
  first: StartResult,
  withParameters: CallParts | undefined,
) {
  // If an earlier request of this attempt was lost, something may have run.
  const isFormRefused = first.answer === "refused" && !first.probe && refusesTokenizedStart(first.http_status)
  if (!isFormRefused || withParameters === undefined) return yield* settleStart(night, book, first)
  book.token_id = undefined
  book.byParameters = true
  book.attempt += 1
  yield* settleStart(night, book, yield* sendStart(night, book, withParameters))
})

const settleStart = Effect.fnUntraced(function* (night: Night, book: Book, result: StartResult) {
  switch (result.answer) {
    case "accepted":
    case "adopted": {
      const { execution_id, session_id } = result
      book.deferredSince = undefined
      book.deferrals = 0
      book.probe = false
      book.attemptsMade += 1
      yield* noteAvailable(night, book)
      yield* noteAnswered(night, book)
      const accepted_at = yield* Clock.currentTimeMillis
      return yield* follow(night, book, { execution_id, session_id, accepted_at })
    }
    case "not_created":
    case "foreign": {
      // Nothing of ours is in flight; the same attempt is started again later, as a probe if one is owed.
      if (!result.probe) setWaiting(book)
      book.probe = result.probe
      if (result.answer === "not_created" && result.isSecretRefused === true)
        return yield* stopStarts(night, book)
      if (result.answer === "foreign") return yield* defer(night, book, "foreign", undefined)
      const why = result.isEngineAway ? "engine_unavailable" : "not_created"
      if (result.isEngineAway) yield* noteRefused(night, book)
      return yield* defer(night, book, why, result.retry_after)
    }
    case "refused":
      if (result.login === "unproven") yield* noteFailed(night, book)
      setWaiting(book)
      yield* settleRefusal(night, book, result.status_reason)
      return yield* release(night, book.work.task_id)
    case "taken":
      yield* noteFailed(night, book)
      // The slot stays taken: an execution may be open at the service, under whatever name.
      return yield* settle(night, book.work.task_id, own("NOT_OURS"))
    case "lost":
      yield* noteFailed(night, book)
      book.probe = true
      // Whatever it did with the login, what it said is that the engine is not available.
      book.lastVerdict = own(result.http_status === 503 ? "ENGINE_UNAVAILABLE" : "START_UNKNOWN")
      if (!result.probe) return yield* oweProbe(night, book)
      yield* settle(night, book.work.task_id, book.lastVerdict)
      return yield* leaveSlot(night, book)
  }
})

/**
 * How long a lost start gets to arrive before it is sent again with the same external id. While its run is
 * open, the probe finds it whenever it arrives; a short run must not be over by then, or its login would
 * run twice.
 */
const probeAfterMs = 1_000

/**
 * The lost start keeps its slot and its account: its probe goes out as soon as the engine is not in doubt.
 */
const oweProbe = Effect.fnUntraced(function* (night: Night, book: Book) {
  night.schedule.owe(candidateOf(book), (yield* Clock.currentTimeMillis) + probeAfterMs)
  yield* Queue.offer(night.poke, undefined)
})

/** No start is sent any more in this run: every one of them would be refused. */
const stopStarts = Effect.fnUntraced(function* (night: Night, book: Book) {
  const waiting = night.schedule.drain()
  yield* settleWaiting(night, [candidateOf(book), ...waiting], "SERVICE_UNREACHABLE")
  yield* leaveSlot(night, book)
})

export const settleRefusal = Effect.fnUntraced(function* (night: Night, book: Book, status_reason: string) {
  const tokenEnd = tokenEndOfRefusal(status_reason)
  if (book.token_id !== undefined && tokenEnd !== undefined)
    yield* dropToken(orderOf(night, book), book.token_id, tokenEnd)
  yield* settle(night, book.work.task_id, verdictOfRefusal(status_reason))
})

/** A start that may be running unseen frees only its slot: its login is not used again in this run. */
const leaveSlot = (night: Night, { work: { task_id }, probe }: Book) =>
  probe ? Effect.sync(() => night.schedule.abandon(task_id)) : release(night, task_id)

const deferredReasons = {
  foreign: "ALREADY_EXECUTING",
  engine_unavailable: "ENGINE_UNAVAILABLE",
  not_created: "SERVICE_UNREACHABLE",
} as const

const askedText = (asked: Duration.Duration): string => {
  const seconds = Duration.seconds(Math.ceil(Duration.toSeconds(asked)))
  return `the service asked to wait ${Duration.format(seconds)}`
}

/**
 * Queues the same attempt for later, as long as the task may wait, and frees its slot. A probe waits in its
 * slot: the execution that it looks for may be running with this customer and this login.
 */
const defer = Effect.fnUntraced(function* (
  night: Night,
  book: Book,
  why: keyof typeof deferredReasons,
  asked: Duration.Duration = Duration.zero,
): Effect.fn.Return<void, Failure | AnswerUnusable, Needs> {
  const { task_id } = book.work
  const now = yield* Clock.currentTimeMillis
  const since = (book.deferredSince ??= now)
  if (why === "engine_unavailable") return yield* noteUnavailable(night, book, { since, asked })
  book.deferrals += 1
  const wait = waitMs(attemptWaits(night.rules.retry), book.deferrals, yield* Random.next, asked)
  const until = now + wait
  const lastAt = Math.min(since + Duration.toMillis(night.rules.max_wait), night.rules.deadlineAt ?? Infinity)
  if (until > lastAt) {
    const verdict = book.probe ? own("START_UNKNOWN") : own(deferredReasons[why])
    const whenAsked = { ...verdict, message: askedText(asked) }
    yield* settle(night, task_id, wait === Duration.toMillis(asked) ? whenAsked : verdict)
    return yield* leaveSlot(night, book)
  }
  yield* noteWait(night, task_id, deferredReasons[why], until)
  if (book.probe) return night.schedule.owe(candidateOf(book), until)
  night.schedule.add(candidateOf(book), until)
  yield* release(night, task_id)
})

export const follow = Effect.fnUntraced(function* (night: Night, book: Book, open: OpenExecution) {
  book.stage = "open"
  book.startedAt = open.accepted_at
  const followed = yield* followAttempt(orderOf(night, book), open, night.heads)
  if (followed._tag === "Closed") return yield* finish(night, book, followed.closed, followed.abort)
  // The slot stays taken: an execution may still be open at the service.
  const verdict =
    followed._tag === "NotOurs"
      ? own("NOT_OURS")
      : { ...own(followed.reason), ...(followed.message === undefined ? {} : { message: followed.message }) }
  yield* settle(night, book.work.task_id, verdict)
})
