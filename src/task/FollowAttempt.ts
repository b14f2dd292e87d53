/**
 * Polls an open execution, when `LookTurns.ts` says, until it is closed (sections 4.2 and 4.4): lands the
 * last state before its closing becomes a fact, and aborts an execution that needs a person or whose time is
 * up.
 */
import { Clock, Duration, Effect } from "effect"
import { given } from "../base/Schemas.ts"
import type { SessionId } from "../service/Ids.ts"
import { Hints } from "../client/Hints.ts"
import { Service, type Body, type CallFailure, type StateAnswer, type StateView } from "../client/Service.ts"
import { idCharactersMax } from "../service/BodyBounds.ts"
import { own, refusalOf, toldOfLogin, type Verdict } from "../service/Ends.ts"
import type { Landing, LandingFailed } from "../landing/Landing.ts"
import type { AbortIntended, AttemptClosed } from "../ledger/Fact.ts"
import type { OpenAttempt } from "../ledger/RunState.ts"
import { waitMs } from "../base/Time.ts"
import { lookWaits } from "../client/Polling.ts"
import { isStranger, readAbort, readState, type Looked } from "./Attempt.ts"
import { append, type Ledger, type LedgerFailed } from "../ledger/Ledger.ts"
import { attemptKeys } from "../ledger/FactKeys.ts"
import { landBody, observed, type AttemptOrder } from "./AttemptOrder.ts"
import { answeredBy, answerOf, lastAnswerWithin, lastCallWithin } from "./Ending.ts"
import { exchangeTicket, hasTicket } from "../tokens/ExchangeTicket.ts"
import { asksTooMuch, endTurn, noteRead, obeyThrottle, skim } from "./LookTurns.ts"
import type { Heads, Turns } from "./LookTurns.ts"
import { isCallFailure } from "./Troubles.ts"
import { AnswerUnusable, handleAnswer, refuseUnusable } from "./Quarantine.ts"
import { gone, judgeDisowned, judgeEnd } from "./StartAttempt.ts"

/**
 * Whoever believes a 404 too soon leaves the execution there and logs in once more: it is repeated for longer
 * than a gateway is usually without a service behind it. In longest pauses between two polls.
 */
const goneReadsMin = 3
const gonePausesMin = 10

/** Reads in a row that did not find it, and when the first of them was answered (milliseconds). */
export interface Missed {
  readonly reads: number
  readonly since: number
}

export const missedAgain = (before: Missed | undefined, now: number): Missed => ({
  reads: (before?.reads ?? 0) + 1,
  since: before?.since ?? now,
})

export const isGone = (missed: Missed, { max }: AttemptOrder["polling"], now: number): boolean =>
  missed.reads >= goneReadsMin && now - missed.since >= gonePausesMin * Duration.toMillis(max)

/** The same holds for somebody else's state: answers may have been mixed up. */
const strangeReadsMin = 3
const abortTriesMax = 8
const looksAfterAbortMax = 20

/** What a process remembers of an execution between its polls. */
export interface Watch extends Turns {
  session_id: SessionId | undefined
  seen: string
  /** A ticket waits for AUTH_OK, which only a read can show. */
  hasTicket: boolean
  gone: Missed | undefined
  /** Reads in a row that showed somebody else's run. */
  strange: number
  challenged: boolean
  /** The last read, if it returned no answer. */
  failure: CallFailure | undefined
  isClosed: boolean
}

/** Hints about it count until the scope ends. */
export const openWatch = Effect.fnUntraced(function* (order: AttemptOrder, open: OpenAttempt) {
  const source = yield* Hints
  const { execution_id, session_id, accepted_at = open.intended_at } = open
  // Starts that answer with such an id are refused now; a ledger from before the limit may hold one.
  if (execution_id.length > idCharactersMax)
    return yield* new AnswerUnusable({ what: "start", why: "its execution_id is too long to be used" })
  const hints = yield* source.watch({
    ids: [execution_id, session_id, order.external_execution_id],
    engine_reference: order.engine_reference,
  })
  const giveUpAt = Math.min(accepted_at + Duration.toMillis(order.max_wait), order.deadlineAt ?? Infinity)
  const waitsForTicket = yield* hasTicket(execution_id)
  // A ticket lives shortly, so that the login is watched for all the time.
  const plan = waitsForTicket ? [] : order.looks
  const restingSince = yield* Clock.currentTimeMillis
  return {
    order,
    execution_id,
    session_id,
    seen: "",
    hints,
    accepted_at,
    giveUpAt,
    plan,
    restingSince,
    looks: 0,
    hinted: false,
    kickAt: undefined,
    ongoing: false,
    headsInARow: 0,
    head: undefined,
    hasTicket: waitsForTicket,
    gone: undefined,
    strange: 0,
    challenged: false,
    failure: undefined,
    isClosed: false,
  } satisfies Watch as Watch
})

/**
 * One poll, and its abort if it needs a person or its time is up. Returns what its task is settled with if it
 * could be neither read nor stopped, or is somebody else's; undefined if it is closed, or polled again later.
 */
export const pollOnce = Effect.fnUntraced(function* (watch: Watch, heads: Heads) {
  const { order, execution_id, giveUpAt, seen } = watch
  watch.hinted = watch.hints.beginLook(yield* Clock.currentTimeMillis)
  if (!watch.hasTicket && (yield* skim(watch, heads)))
    return endTurn(watch, "nothing", yield* Clock.currentTimeMillis)
  const looked = yield* look(watch)
  const now = yield* Clock.currentTimeMillis
  noteRead(watch, heads, looked, now)
  const isNews = watch.seen !== seen || looked?._tag === "Challenge"
  endTurn(watch, looked?._tag === "Closed" ? "end" : isNews ? "news" : "nothing", now)
  if (watch.isClosed) return undefined
  if (watch.strange >= strangeReadsMin || (watch.strange > 0 && now >= giveUpAt)) {
    const disowned = { _tag: "AttemptDisowned", ...attemptKeys(order), execution_id } as const
    yield* append(disowned, ...judgeDisowned(order))
    return own("NOT_OURS")
  }
  if (asksTooMuch(watch.failure, giveUpAt - now)) return leftOpen(watch, "SERVICE_UNREACHABLE")
  const maxWaitAt = watch.accepted_at + Duration.toMillis(order.max_wait)
  const why =
    looked?._tag === "Challenge" ? "challenge" : now < giveUpAt ? undefined : giveUpWhy(maxWaitAt, now)
  if (why === undefined || (why === "max_wait" && isMissed(watch, looked))) return undefined
  return yield* abortAttempt(watch, why)
})

/** The service answered, not often enough yet, that it has no such execution: there is nothing to stop. */
const isMissed = ({ gone, failure, strange }: Watch, looked: Looked | undefined): boolean =>
  looked === undefined && gone !== undefined && failure === undefined && strange === 0

const giveUpWhy = (maxWaitAt: number, now: number) => (now >= maxWaitAt ? "max_wait" : "deadline")

/** With the last answer of the service, if it was not a state. */
const leftOpen = ({ failure }: Watch, reason: "SERVICE_UNREACHABLE" | "NOT_STOPPABLE"): Verdict => ({
  ...own(failure?._tag === "SecretRefused" ? "SECRET_REFUSED" : reason),
  ...given({ message: failure?.message }),
})

/** The time that is left for the calls before the last one, once the time is up. */
const lastCallsMs = Duration.toMillis(Duration.subtract(lastAnswerWithin, lastCallWithin))

/** Until when a call may take; once the time is up, a few seconds. */
const lastAt = (giveUpAt: number) =>
  Effect.map(Clock.currentTimeMillis, (now) => Math.max(giveUpAt, now + Duration.toMillis(lastCallWithin)))

/** One poll; on return, a closed execution is landed and recorded as a fact. */
const look = (watch: Watch) => handleAnswer(handledState(watch), lookOnce(watch))

const handledState = ({ order, execution_id }: Watch) => ({ what: "state", ...order, execution_id })

/** Undefined if the service did not answer. */
const lookOnce = Effect.fnUntraced(function* (watch: Watch) {
  const service = yield* Service
  const { order, execution_id, session_id, giveUpAt } = watch
  const reading = answeredBy(service.readExecution(execution_id), yield* lastAt(giveUpAt))
  const answer = yield* answerOf(reading)
  if (isCallFailure(answer)) {
    watch.failure = answer
    yield* obeyThrottle(answer, giveUpAt)
    return undefined
  }
  watch.failure = undefined
  yield* refuseUnusable(handledState(watch), answer, statusOf(answer))
  if (isStranger(answer, { ...order, execution_id })) {
    watch.strange += 1
    return undefined
  }
  watch.strange = 0
  const looked = readState(answer)
  if (looked._tag === "Gone") {
    const now = yield* Clock.currentTimeMillis
    watch.gone = missedAgain(watch.gone, now)
    if (!isGone(watch.gone, order.polling, now)) return undefined
    yield* closeAttempt(watch, gone)
    return looked
  }
  watch.gone = undefined
  if (looked._tag === "Challenge") {
    if ("body" in answer && !watch.challenged)
      yield* landBody(order, answer.body, {
        kind: "challenge",
        http_status: statusOf(answer),
        execution_id,
        session_id,
      })
    watch.challenged = true
    if ("view" in answer && isNewsOfLogin(order.said(), answer.view)) yield* observe(watch, answer.view)
    return looked
  }
  yield* observe(watch, looked.view)
  if (watch.hasTicket && looked._tag === "Working" && looked.view.authentication_status === "AUTH_OK")
    watch.hasTicket = yield* exchangeTicket(order, execution_id, false)
  if (looked._tag === "Closed") {
    const { status_code, status_reason, view } = looked
    const landable = "body" in answer ? { body: answer.body, http_status: statusOf(answer) } : undefined
    yield* closeAttempt(watch, { ...view, status_code, status_reason }, landable)
  }
  return looked
})

/** A challenge is no state of its own, but what it says of a refused login counts like that of any other. */
const isNewsOfLogin = (before: string | undefined, view: StateView): boolean =>
  refusalOf(toldOfLogin(before, view)) !== refusalOf(before)

/** A service may say in a 200 or 202 what the reference shows with 423. */
const statusOf = ({ _tag }: StateAnswer): number =>
  _tag === "ActionRequired" ? 423 : _tag === "Working" ? 202 : 200

const observe = Effect.fnUntraced(function* (watch: Watch, view: StateView) {
  watch.session_id = view.session_id ?? watch.session_id
  if (view.session_id !== undefined) watch.hints.learn(view.session_id)
  const kick = view.next_kick_date === undefined ? Number.NaN : Date.parse(view.next_kick_date)
  watch.kickAt = Number.isNaN(kick) ? undefined : kick
  const fact = observed(watch.order, watch, view)
  const { status_code, status_reason, authentication_status, session_id } = fact
  const seen = JSON.stringify([status_code, status_reason, authentication_status, session_id])
  if (seen === watch.seen) return
  watch.seen = seen
  yield* append(fact)
})

/** Lands the last state; then its closing and what it says of the login are facts of one transaction. */
const closeAttempt = Effect.fnUntraced(function* (
  watch: Watch,
  state: Pick<StateView, "products_count" | "date_created" | "date_ended"> & {
    readonly status_code: string
    readonly status_reason: string
  },
  answer?: { readonly body: Body; readonly http_status: number },
) {
  const { order, execution_id, session_id } = watch
  const landed =
    answer === undefined
      ? undefined
      : yield* landBody(order, answer.body, { ...answer, kind: "state", execution_id, session_id })
  const { status_code, status_reason, products_count } = state
  const took = Date.parse(state.date_ended ?? "") - Date.parse(state.date_created ?? "")
  const closed: typeof AttemptClosed.Type = {
    _tag: "AttemptClosed",
    ...attemptKeys(order),
    execution_id,
    status_code,
    status_reason,
    ...given({
      authentication_status: order.said(),
      session_id,
      products_count: products_count?._tag === "Counted" ? products_count.counts : undefined,
      took: took >= 0 ? took : undefined,
      landed,
    }),
  }
  yield* append(closed, ...judgeEnd(order, closed, landed !== undefined))
  watch.isClosed = true
})

/** Section 4.4, then polls until the service says that the execution is closed. */
const abortAttempt = Effect.fnUntraced(function* (
  watch: Watch,
  why: (typeof AbortIntended.Type)["why"],
): Effect.fn.Return<
  Verdict | undefined,
  AnswerUnusable | LedgerFailed | LandingFailed,
  Service | Ledger | Landing
> {
  const service = yield* Service
  const { order, execution_id, giveUpAt } = watch
  yield* append({ _tag: "AbortIntended", ...attemptKeys(order), execution_id, why })
  const endAt = Math.max(giveUpAt, yield* Clock.currentTimeMillis) + lastCallsMs
  let stopped = false
  let looked: Looked | undefined
  for (let tries = 1; tries <= (stopped ? looksAfterAbortMax : abortTriesMax); tries++) {
    if (!stopped) {
      const abort = answeredBy(service.abortExecution(execution_id), yield* lastAt(giveUpAt))
      stopped = readAbort(yield* answerOf(abort)) === "look"
    }
    looked = yield* look(watch)
    if (watch.isClosed) return undefined
    const left = endAt - (yield* Clock.currentTimeMillis)
    if (left <= 0 || asksTooMuch(watch.failure, left)) break
    yield* Effect.sleep(Math.min(left, waitMs(lookWaits(order.polling), tries, 0)))
  }
  return leftOpen(watch, looked === undefined ? "SERVICE_UNREACHABLE" : "NOT_STOPPABLE")
})
