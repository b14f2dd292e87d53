/**
 * When to look at an open execution again: pure. The interval grows with the time already waited, so that a
 * short run is seen soon and a three-hour queue costs about two hundred calls; a date the service names for
 * itself is obeyed.
 */
import { Duration } from "effect"
import type { WaitPolicy } from "../foundation/Waits.ts"

export interface PollingRules {
  readonly min_ms: number
  readonly max_ms: number
}

/** An interval is this part of the time already waited, between the job's `polling.min` and `polling.max`. */
const waitedShare = 6
/** A look at least this often even when the service promises to be back later: its clock need not be ours. */
export const kickWaitMaxMs = 15 * 60_000

/**
 * Looks where hints are trusted: rare, as nearly every one tells nothing, and still so near that an event
 * that is lost costs a night a quarter of an hour and no more.
 */
export const hintedWaitMaxMs = 15 * 60_000

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
  if (trusted) return Math.max(hintedWaitMaxMs, rules.max_ms)
  const grown = Math.min(rules.max_ms, Math.max(rules.min_ms, waitedMs / waitedShare))
  if (kickInMs === undefined || !(kickInMs > grown)) return grown
  return Math.min(kickInMs + rules.min_ms, Math.max(kickWaitMaxMs, rules.max_ms))
}

/** Whether the interval has stopped growing: from here on an execution mostly is as it was. */
export const isSettled = ({ max_ms }: PollingRules, waitedMs: number): boolean =>
  waitedMs >= max_ms * waitedShare

/** Waits before a further attempt of a task: up to a fifth is taken off. */
export const attemptWaits = (retry: { readonly base_ms: number; readonly max_ms: number }): WaitPolicy => ({
  base: Duration.millis(retry.base_ms),
  max: Duration.millis(retry.max_ms),
  jitter: 1 / 5,
})

/** Waits of one execution's own calls that are repeated: an abort, a ticket, a question whose it is. */
export const lookWaits = ({ min_ms, max_ms }: PollingRules): WaitPolicy => ({
  base: Duration.millis(min_ms),
  max: Duration.millis(max_ms),
  jitter: 0,
})
