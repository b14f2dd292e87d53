/**
 * When to poll an open execution again: pure. The interval grows with the time already waited, so that the
 * end of a short run is seen soon and a three-hour queue costs about two hundred calls; a date that the
 * service gives is respected.
 */
import { Duration } from "effect"
import type { WaitPolicy } from "../base/Time.ts"

export interface PollingRules {
  readonly min: Duration.Duration
  readonly max: Duration.Duration
}

/** An interval is this part of the time already waited, between the job's `polling.min` and `polling.max`. */
const waitedShare = 6
/** Poll at least this often even if the service gives a later date: its clock may differ from ours. */
export const kickWaitMax = Duration.minutes(15)

/** The interval if hints are trusted: a lost event costs a run no more than a quarter of an hour. */
export const hintedWaitMax = Duration.minutes(15)

/**
 * Milliseconds until the next poll.
 *
 * @param waitedMs since the execution was accepted
 * @param kickInMs until `next_kick_date` (section 2.4), where one is known
 * @param trusted whether a hint will come when there is something to see
 */
export const nextLookInMs = (
  rules: PollingRules,
  waitedMs: number,
  kickInMs: number | undefined = undefined,
  trusted = false,
): number => {
  const minMs = Duration.toMillis(rules.min)
  const maxMs = Duration.toMillis(rules.max)
  if (trusted) return Math.max(Duration.toMillis(hintedWaitMax), maxMs)
  const grown = Math.min(maxMs, Math.max(minMs, waitedMs / waitedShare))
  if (kickInMs === undefined || !(kickInMs > grown)) return grown
  return Math.min(kickInMs + minMs, Math.max(Duration.toMillis(kickWaitMax), maxMs))
}

/** Whether the interval has stopped growing: from here on, an execution has rarely changed. */
export const isSettled = ({ max }: PollingRules, waitedMs: number): boolean =>
  waitedMs >= Duration.toMillis(max) * waitedShare

/** Waits before another attempt of a task: up to a fifth is taken off at random. */
export const attemptWaits = ({ base, max }: Pick<WaitPolicy, "base" | "max">): WaitPolicy => ({
  base,
  max,
  jitter: 1 / 5,
})

/** Waits between repeated calls about one execution: an abort, a ticket, a check of whose it is. */
export const lookWaits = ({ min, max }: PollingRules): WaitPolicy => ({
  base: min,
  max,
  jitter: 0,
})
