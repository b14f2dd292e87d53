/**
 * How calls that may be repeated are repeated: exponential waits with full jitter, never shorter than the
 * service asked for, a bounded number of times, for ten minutes at most each, and not beyond a moment the
 * caller names. What repeating
 * cannot mend (a refused secret, an answer the reference does not list) is asked twice at most. The last
 * failure is what remains.
 */
import { Clock, Effect, Random } from "effect"
import type { CallFailure } from "./Service.ts"

export const backoffBaseMs = 1_000
export const backoffMaxMs = 60_000
/** No call waits longer than this for its next try: what the service asks beyond it ends the tries. */
export const retryWaitMaxMs = 600_000
/** Tries of a call whose failure repeating is unlikely to mend. */
export const hopelessTriesMax = 2

/**
 * The wait before the next try, in milliseconds. `tries` is how often the call has failed (from 1), `random`
 * lies in [0, 1). The service's Retry-After is a minimum; the jitter comes on top, so that waiters do not
 * return together.
 */
export const nextDelayMs = (failure: CallFailure, tries: number, random: number): number => {
  const ceilingMs = Math.min(backoffMaxMs, backoffBaseMs * 2 ** Math.max(0, tries - 1))
  const atLeastMs = askedMs(failure)
  return Math.round(atLeastMs + random * ceilingMs)
}

/** How long the service asks to wait at least. */
const askedMs = (failure: CallFailure): number =>
  failure._tag === "Throttled" ? (failure.retry_after_ms ?? 0) : 0

export interface RetryOptions {
  /** Calls altogether, the first one included. */
  readonly triesMax: number
  /** Milliseconds since 1970: a wait that would end after it is not begun. */
  readonly untilMs?: number
  /**
   * `repeat` (the default) for reads and idempotent calls. `return` for a start: only what certainly created
   * nothing (NotSent, Throttled) is sent again.
   */
  readonly lostAnswers?: "repeat" | "return"
}

/** How often a call that failed so may be made at all. */
export const triesAllowed = (failure: CallFailure, options: RetryOptions): number => {
  switch (failure._tag) {
    case "NotSent":
    case "Throttled":
      return options.triesMax
    case "AnswerLost":
      return options.lostAnswers === "return" ? 1 : options.triesMax
    case "SecretRefused":
    case "UnexpectedAnswer":
      return options.lostAnswers === "return" ? 1 : Math.min(options.triesMax, hopelessTriesMax)
  }
}

/** Repeats a call as `options` say; fails with the last failure. */
export const retryCall = Effect.fnUntraced(function* <A, R>(
  call: Effect.Effect<A, CallFailure, R>,
  options: RetryOptions,
): Effect.fn.Return<A, CallFailure, R> {
  for (let tries = 1; ; tries++) {
    const result = yield* Effect.result(call)
    if (result._tag === "Success") return result.success
    const failure = result.failure
    if (tries >= triesAllowed(failure, options)) return yield* failure
    const delayMs = nextDelayMs(failure, tries, yield* Random.next)
    const nowMs = yield* Clock.currentTimeMillis
    if (nowMs + delayMs > (options.untilMs ?? Infinity) || askedMs(failure) > retryWaitMaxMs)
      return yield* failure
    yield* Effect.sleep(delayMs)
  }
})
