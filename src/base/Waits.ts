/**
 * How long to wait before trying again: one formula for every retry. A wait doubles with every failure up to
 * a maximum, a random share is taken off so that waiters do not return together, and the wait that the other
 * side asks for is a minimum. `waitMs` is a pure function, because most waits are entries of a queue that
 * outlives a process; `retrySchedule` gives loops that sleep the same waits as Effect's own `Schedule`.
 */
import { Cause, Duration, Effect, Random, Schedule } from "effect"

export interface WaitPolicy {
  /** The wait after the first failure. */
  readonly base: Duration.Duration
  readonly max: Duration.Duration
  /** The share of a wait, from 0 to 1, that may be taken off at random. */
  readonly jitter: number
}

/** After this many doublings every wait is the longest one. */
const doublingsMax = 30

/**
 * The wait in milliseconds after this many failures (from 1); `random` is in [0, 1). If all of a wait may
 * be random, it is added to what was asked for: otherwise all callers that were asked to wait would return
 * at once.
 */
export const waitMs = (
  { base, max, jitter }: WaitPolicy,
  failures: number,
  random: number,
  asked: Duration.Duration = Duration.zero,
): number => {
  const doublings = Math.min(doublingsMax, Math.max(0, failures - 1))
  const grownMs = Math.min(Duration.toMillis(max), Duration.toMillis(base) * 2 ** doublings)
  const ownMs = grownMs * (1 - jitter * random)
  const askedMs = Duration.toMillis(asked)
  return jitter === 1 ? askedMs + ownMs : Math.max(askedMs, ownMs)
}

export interface RetryBounds<E> {
  /** Calls in total, including the first, for failures of this kind. */
  readonly triesMax: (failure: E) => number
  /** How long the other side asks us to wait. */
  readonly asked?: (failure: E) => Duration.Duration
  /** Milliseconds since 1970: a wait that would end later is not begun. */
  readonly untilAt?: number | undefined
}

/** For `Effect.retry`, which fails with the last failure once the schedule is done. */
export const retrySchedule = <E>(
  policy: WaitPolicy,
  { triesMax, asked, untilAt = Infinity }: RetryBounds<E>,
): Schedule.Schedule<number, E> =>
  Schedule.fromStepWithMetadata(
    Effect.succeed(({ input, attempt, now }: Schedule.InputMetadata<E>) => {
      if (attempt >= triesMax(input)) return Cause.done(attempt)
      return Effect.flatMap(Random.next, (random) => {
        const wait = Math.round(waitMs(policy, attempt, random, asked?.(input)))
        return now + wait > untilAt
          ? Cause.done(attempt)
          : Effect.succeed<[number, Duration.Duration]>([attempt, Duration.millis(wait)])
      })
    }),
  )
