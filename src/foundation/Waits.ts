/**
 * How long to wait before trying again: one formula for every retry. A wait doubles from failure to failure
 * up to a longest one, chance takes a share off it so that waiters do not return together, and what the other
 * side asks for is a minimum. `waitMs` is a pure function, because most waits are entries of a queue that
 * outlives a process; `retrySchedule` gives loops that sleep the same waits as Effect's own `Schedule`.
 */
import { Cause, Duration, Effect, Random, Schedule } from "effect"

export interface WaitPolicy {
  /** The wait after the first failure. */
  readonly base: Duration.Duration
  readonly max: Duration.Duration
  /** The share of a wait, from 0 to 1, that chance may take off. */
  readonly jitter: number
}

/** Beyond so many doublings every wait is the longest one. */
const doublingsMax = 30

/**
 * The wait in milliseconds after so many failures (from 1); `random` lies in [0, 1). Where chance may take
 * all of a wait, the rest of it comes on top of what was asked for: otherwise all who were asked to wait
 * would return at once.
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
  /** Calls altogether, the first one included, of what fails in this way. */
  readonly triesMax: (failure: E) => number
  /** How long the other side asks to be left alone. */
  readonly asked?: (failure: E) => Duration.Duration
  /** Milliseconds since 1970: a wait that would end after it is not begun. */
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
