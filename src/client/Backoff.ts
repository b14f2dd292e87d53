/**
 * How repeatable calls are retried: with growing waits and full jitter, never sooner than the service
 * asked, a limited number of times, waiting at most ten minutes each time, and not beyond a moment that the
 * caller names. What a retry cannot fix (a refused secret, an answer the reference does not list) is tried
 * at most twice. The last failure is the result.
 */
import { Duration, Effect } from "effect"
import { retrySchedule } from "../base/Waits.ts"
import type { WaitPolicy } from "../base/Waits.ts"
import type { CallFailure } from "./Service.ts"

export const callWaits: WaitPolicy = { base: Duration.seconds(1), max: Duration.minutes(1), jitter: 1 }
/** No call waits longer than this for its next try: if the service asks for more, the tries end. */
export const retryWaitMax = Duration.minutes(10)
/** Tries of a call whose failure a retry is unlikely to fix. */
const hopelessTriesMax = 2

/** How long the service asks us to wait. */
export const askedWait = (failure: CallFailure): Duration.Duration =>
  (failure._tag === "Throttled" ? failure.retry_after : undefined) ?? Duration.zero

export interface RetryOptions {
  /** Calls in total, including the first one. */
  readonly triesMax: number
  /** Milliseconds since 1970: a wait that would end later is not begun. */
  readonly untilAt?: number
  /**
   * `repeat` (the default) for reads and idempotent calls. `return` for a start: only a request that
   * certainly created nothing (NotSent, Throttled) is sent again.
   */
  readonly lostAnswers?: "repeat" | "return"
}

/** How often a call that failed in this way may be made in total. */
const triesAllowed = (failure: CallFailure, options: RetryOptions): number => {
  switch (failure._tag) {
    case "NotSent":
      return options.triesMax
    case "Throttled":
      return Duration.isGreaterThan(askedWait(failure), retryWaitMax) ? 1 : options.triesMax
    case "AnswerLost":
      return options.lostAnswers === "return" ? 1 : options.triesMax
    case "SecretRefused":
    case "UnexpectedAnswer":
      return options.lostAnswers === "return" ? 1 : Math.min(options.triesMax, hopelessTriesMax)
  }
}

/** Retries a call as `options` say; fails with the last failure. */
export const retryCall = <A, R>(
  call: Effect.Effect<A, CallFailure, R>,
  options: RetryOptions,
): Effect.Effect<A, CallFailure, R> =>
  Effect.retry(
    call,
    retrySchedule(callWaits, {
      triesMax: (failure) => triesAllowed(failure, options),
      asked: askedWait,
      untilAt: options.untilAt,
    }),
  )
