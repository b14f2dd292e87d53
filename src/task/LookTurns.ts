/**
 * When the next poll of an open execution comes, and whether a HEAD is enough (sections 4.2, 4.12 and 6):
 * carries out what the scheduling room decides about intervals, hints and HEAD. Nothing here reads a state
 * or ends an attempt.
 */
import { Clock, Duration, Effect } from "effect"
import type { HintWatch, LookResult } from "../client/Hints.ts"
import { askedWait, retryWaitMax } from "../client/Pacing.ts"
import { isSettled, nextLookInMs } from "../client/Polling.ts"
import { Service, type CallFailure, type PollAnswer } from "../client/Service.ts"
import type { ExecutionId } from "../service/Ids.ts"
import type { Looked } from "./Attempt.ts"
import type { AttemptOrder } from "./AttemptOrder.ts"
import { answerOf } from "./Ending.ts"

// Whether a poll may be a HEAD (section 4.12) instead of a read: pure. What HEAD answers is not shown, so
// it must first agree with a read, replaces only a few reads, and one contradiction ends its use. It never
// ends an execution: anything other than "still working" is read.

/** How far HEAD is trusted in one run. `trying`: the first one is under way, or its check is. */
export type HeadTrial = "untried" | "trying" | "proven" | "off"

/** The results of polling one execution so far. */
interface LookedBefore {
  /** The last read said that the execution is still running, and named no future date to poll again. */
  readonly ongoing: boolean
  /** It has waited so long that most polls show nothing: otherwise a HEAD is one more request at the end. */
  readonly settled: boolean
  readonly headsInARow: number
}

/** A read at least every fourth poll: HEAD does not show changes of state. */
const headsInARowMax = 3

export const mayHead = (trial: HeadTrial, before: LookedBefore): boolean =>
  (trial === "untried" || trial === "proven") &&
  before.ongoing &&
  before.settled &&
  before.headsInARow < headsInARowMax

export const beforeHead = (trial: HeadTrial): HeadTrial => (trial === "untried" ? "trying" : trial)

/** What follows a HEAD: nothing, or an immediate read, which then shows whether HEAD was right. */
export const afterHead = (
  trial: HeadTrial,
  answer: "working" | "changed" | "unanswered",
): { readonly trial: HeadTrial; readonly next: "rest" | "read" } => {
  if (answer === "unanswered") return { trial: "off", next: "read" }
  return answer === "working" && trial === "proven" ? { trial, next: "rest" } : { trial, next: "read" }
}

/** If a HEAD failed, or its read did, it says nothing: the next one is tried as if it were the first. */
export const afterNothing = (trial: HeadTrial): HeadTrial => (trial === "trying" ? "untried" : trial)

/** A read right after a HEAD that the service answered: both must agree. */
export const afterRead = (
  trial: HeadTrial,
  head: "working" | "changed",
  read: "working" | "changed",
): HeadTrial => {
  if (trial === "off" || head !== read) return "off"
  return head === "working" ? "proven" : afterNothing(trial)
}

/** How far HEAD is trusted; shared by all executions of a run. */
export interface Heads {
  trial: HeadTrial
}

/** The polls of one execution. */
export interface Turns {
  readonly order: AttemptOrder
  readonly execution_id: ExecutionId
  readonly hints: HintWatch
  readonly accepted_at: number
  readonly giveUpAt: number
  /** When to look, in milliseconds since its acceptance, as far as earlier executions tell. */
  readonly plan: ReadonlyArray<number>
  looks: number
  /** When the last poll was over, or the first one began to be waited for (milliseconds). */
  restingSince: number
  /** The poll that is due follows a hint. */
  hinted: boolean
  /** `next_kick_date` of the last read (section 2.4). */
  kickAt: number | undefined
  ongoing: boolean
  headsInARow: number
  /** What HEAD said in this poll, until a read confirms or corrects it. */
  head: Exclude<PollAnswer, "unanswered"> | undefined
}

/** When the next poll is due: by its interval or, not sooner than `polling.min`, by a hint (milliseconds). */
export const dueOf = ({ order, ...turns }: Turns): number => {
  const { hints, accepted_at, kickAt, giveUpAt, looks, plan, restingSince } = turns
  const waited = Math.max(0, restingSince - accepted_at)
  // An execution that has waited long is polled first: an earlier process followed it.
  if (looks === 0 && waited > Duration.toMillis(order.polling.max)) return restingSince
  const kickInMs = kickAt === undefined ? undefined : kickAt - restingSince
  // The first poll is never delayed: its hint may have come before anybody watched for it.
  const trusted = looks > 0 && hints.isTrusted()
  const wait = nextLookInMs(order.polling, waited, { kickInMs, trusted, plan })
  const hinted = hints.isHinted() ? Duration.toMillis(order.polling.min) : Infinity
  const due = restingSince + Math.min(wait, hinted)
  return restingSince < giveUpAt ? Math.min(due, giveUpAt) : due
}

/** Whether the service asks for more time than is left: then this run does not wait for it. */
export const asksTooMuch = (failure: CallFailure | undefined, left: number): boolean =>
  failure !== undefined &&
  Duration.toMillis(askedWait(failure)) > Math.max(left, Duration.toMillis(retryWaitMax))

/** If the service asks us to wait, we do, but not beyond the time at which the attempt is given up. */
export const obeyThrottle = Effect.fnUntraced(function* (failure: CallFailure, giveUpAt: number) {
  const left = giveUpAt - (yield* Clock.currentTimeMillis)
  if (failure._tag !== "Throttled" || asksTooMuch(failure, left)) return
  yield* Effect.sleep(Math.max(0, Math.min(Duration.toMillis(askedWait(failure)), left)))
})

/**
 * True: that was the poll, and as far as is known the execution still runs. One that had a hint, is about to
 * be given up, or is polled rarely because hints are trusted, is read instead.
 */
export const skim = Effect.fnUntraced(function* (turns: Turns, heads: Heads) {
  turns.head = undefined
  const now = yield* Clock.currentTimeMillis
  const settled = isSettled(turns.order.polling, now - turns.accepted_at)
  if (!mayHead(heads.trial, { ...turns, settled })) return false
  if (turns.hinted || turns.hints.isTrusted() || now >= turns.giveUpAt) return false
  const service = yield* Service
  heads.trial = beforeHead(heads.trial)
  const answer = yield* answerOf(service.pollExecution(turns.execution_id))
  turns.headsInARow += 1
  if (typeof answer !== "string") {
    heads.trial = afterNothing(heads.trial)
    yield* obeyThrottle(answer, turns.giveUpAt)
    return true
  }
  if (answer !== "unanswered") turns.head = answer
  const { trial, next } = afterHead(heads.trial, answer)
  heads.trial = trial
  return next === "rest"
})

/** What a read says about later polls, and about the HEAD before it. */
export const noteRead = (turns: Turns, heads: Heads, looked: Looked | undefined, now: number): void => {
  const { head } = turns
  turns.headsInARow = 0
  turns.ongoing = false
  if (looked === undefined) {
    if (head !== undefined) heads.trial = afterNothing(heads.trial)
    return
  }
  const works = looked._tag === "Working"
  if (head !== undefined) heads.trial = afterRead(heads.trial, head, works ? "working" : "changed")
  const kicked = turns.kickAt === undefined || turns.kickAt <= now
  turns.ongoing = works && looked.view.status_code === "ONGOING" && kicked
}

/** The poll is over; its result counts for the trust in hints. */
export const endTurn = (turns: Turns, told: LookResult["told"], now: number): void => {
  turns.restingSince = now
  turns.hints.endLook({ hinted: turns.hinted, first: turns.looks === 0, told })
  turns.looks += 1
}
