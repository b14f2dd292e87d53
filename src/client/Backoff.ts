/**
 * How calls that may be repeated are repeated: with growing waits of full jitter, never shorter than the
 * service asked for, a bounded number of times, for ten minutes at most each, and not beyond a moment that
 * the caller names. What repeating cannot mend (a refused secret, an answer the reference does not list) is
 * asked twice at most. The last failure is what remains.
 */
import { Duration, Effect } from "effect"
import { retrySchedule } from "../foundation/Waits.ts"
import type { WaitPolicy } from "../foundation/Waits.ts"
import type { CallFailure } from "./Service.ts"

export const callWaits: WaitPolicy = { base: Duration.seconds(1), max: Duration.minutes(1), jitter: 1 }
/** No call waits longer than this for its next try: what the service asks beyond it ends the tries. */
export const retryWaitMax = Duration.minutes(10)
/** Tries of a call whose failure repeating is unlikely to mend. */
const hopelessTriesMax = 2

/** How long the service asks to be left alone. */
export const askedWait = (failure: CallFailure): Duration.Duration =>
  (failure._tag === "Throttled" ? failure.retry_after : undefined) ?? Duration.zero

export interface RetryOptions {
  /** Calls altogether, the first one included. */
  readonly triesMax: number
  /** Milliseconds since 1970: a wait that would end after it is not begun. */
  readonly untilAt?: number
  /**
   * `repeat` (the default) for reads and idempotent calls. `return` for a start: only what certainly created
   * nothing (NotSent, Throttled) is sent again.
   */
  readonly lostAnswers?: "repeat" | "return"
}

/** How often a call that failed so may be made at all. */
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

/** Repeats a call as `options` say; fails with the last failure. */
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
