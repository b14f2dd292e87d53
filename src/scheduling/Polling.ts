/**
 * When to look at an open execution again: pure. The interval grows with the time already waited, so that a
 * short run is seen soon and a three-hour queue costs about two hundred calls; a date the service names for
 * itself is obeyed.
 */
import { Duration } from "effect"
import type { WaitPolicy } from "../foundation/Waits.ts"

export interface PollingRules {
  readonly min: Duration.Duration
  readonly max: Duration.Duration
}

/** An interval is this part of the time already waited, between the job's `polling.min` and `polling.max`. */
const waitedShare = 6
/** A look at least this often even when the service promises to be back later: its clock need not be ours. */
export const kickWaitMax = Duration.minutes(15)

/**
 * Looks where hints are trusted: rare, as nearly every one tells nothing, and still so near that an event
 * that is lost costs a night a quarter of an hour and no more.
 */
export const hintedWaitMax = Duration.minutes(15)

/**
 * Milliseconds until the next look.
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

/** Whether the interval has stopped growing: from here on an execution mostly is as it was. */
export const isSettled = ({ max }: PollingRules, waitedMs: number): boolean =>
  waitedMs >= Duration.toMillis(max) * waitedShare

/** Waits before a further attempt of a task: up to a fifth is taken off. */
export const attemptWaits = ({ base, max }: Pick<WaitPolicy, "base" | "max">): WaitPolicy => ({
  base,
  max,
  jitter: 1 / 5,
})

/** Waits of one execution's own calls that are repeated: an abort, a ticket, a question whose it is. */
export const lookWaits = ({ min, max }: PollingRules): WaitPolicy => ({
  base: min,
  max,
  jitter: 0,
})
