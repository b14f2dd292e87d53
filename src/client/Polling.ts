/**
 * When to poll an open execution again: pure. Where earlier ends are known, when it has probably just ended.
 * Otherwise the interval grows with the root of the time already waited, so that the end of a short run is
 * seen soon and a three-hour queue costs about two hundred calls. A date that the service gives is respected.
 */
import { Duration } from "effect"
import type { WaitPolicy } from "../base/Time.ts"

export interface PollingRules {
  readonly min: Duration.Duration
  readonly max: Duration.Duration
}

/** Poll at least this often even if the service gives a later date: its clock may differ from ours. */
export const kickWaitMax = Duration.minutes(15)

/** The interval if hints are trusted: a lost event costs a run no more than a quarter of an hour. */
export const hintedWaitMax = Duration.minutes(15)

/**
 * The interval at which the looks at an execution and how late they see its end cost least together, if it is
 * as likely as not to be over before it has waited twice as long, and a look costs as much as seeing the end
 * half of `polling.min` later.
 */
const growingMs = ({ min, max }: PollingRules, waitedMs: number): number => {
  const minMs = Duration.toMillis(min)
  return Math.min(Duration.toMillis(max), Math.max(minMs, Math.round(Math.sqrt(minMs * waitedMs))))
}

interface LookAhead {
  /** Until `next_kick_date` (section 2.4), where one is known: milliseconds. */
  readonly kickInMs?: number | undefined
  /** A hint will come when there is something to see. */
  readonly trusted?: boolean
  /** Of `planLooks`. */
  readonly plan?: ReadonlyArray<number>
}

/**
 * Milliseconds until the next poll; at most a quarter of an hour, or `polling.max` if that is longer. However
 * long others took, it is at most as long again as the execution has waited: this one may be another case.
 *
 * @param waitedMs since the execution was accepted
 */
export const nextLookInMs = (
  rules: PollingRules,
  waitedMs: number,
  { kickInMs, trusted = false, plan = [] }: LookAhead = {},
): number => {
  const minMs = Duration.toMillis(rules.min)
  const maxMs = Duration.toMillis(rules.max)
  if (trusted) return Math.max(Duration.toMillis(hintedWaitMax), maxMs)
  const longest = Math.max(Duration.toMillis(kickWaitMax), maxMs)
  const plannedAt = plan.find((at) => at > waitedMs)
  // Longer than all before it: it may end at any moment, as if it had just been accepted.
  const beyond = waitedMs - (plan.at(-1) ?? 0)
  const grown =
    plannedAt === undefined
      ? growingMs(rules, beyond)
      : Math.min(longest, Math.max(maxMs, waitedMs), Math.max(minMs, plannedAt - waitedMs))
  if (kickInMs === undefined || !(kickInMs > grown)) return grown
  return Math.min(kickInMs + minMs, longest)
}

/** When an execution that ends after this time is seen to be over, both since it was accepted. */
export const seenAfterMs = (rules: PollingRules, endedMs: number, plan: ReadonlyArray<number>): number => {
  let waited = 0
  do waited += nextLookInMs(rules, waited, { plan })
  while (waited < endedMs)
  return waited
}

/** With fewer earlier ends, nothing is known. */
const endsMin = 10
/** So many stand for all of them. */
const endsMax = 64

/** Evenly spread over these, which are in ascending order. */
const spread = (ends: ReadonlyArray<number>, count: number): ReadonlyArray<number> =>
  Array.from({ length: count }, (_, at) => ends[Math.floor(((at + 0.5) / count) * ends.length)] ?? 0)

/**
 * When to look at an execution, in milliseconds since its acceptance and in ascending order: where, over
 * executions that take as long as these, the looks and how late they see the end cost least together. A look
 * costs as much as seeing an end a quarter of `polling.min`, or a thousandth of what it took, later.
 *
 * @param ends what earlier executions took, ascending; empty plans nothing
 * @param own those among them that count for half of all, such as a customer's own
 */
export const planLooks = (
  { min }: PollingRules,
  ends: ReadonlyArray<number>,
  own: ReadonlyArray<number> = [],
): ReadonlyArray<number> => {
  if (ends.length < endsMin) return []
  const half = endsMax / 2
  const some =
    own.length === 0
      ? spread(ends, Math.min(endsMax, ends.length))
      : [...spread(ends, half), ...spread(own, half)]
  const sorted = some.toSorted((one, other) => one - other)
  const dear = (end: number): number => 1 / Math.max(Duration.toMillis(min) / 4, end / 1_000)
  // From the last end to the first: what the looks from this end on cost, and which end the next look is at.
  const costs = Array.from(sorted, () => Infinity)
  const nexts = Array.from(sorted, () => sorted.length)
  for (let first = sorted.length - 1; first >= 0; first--) {
    let late = 0
    let growing = 0
    for (let next = first; next < sorted.length; next++) {
      late += growing * ((sorted[next] ?? 0) - (sorted[next - 1] ?? 0))
      growing += dear(sorted[next] ?? 0)
      const cost = sorted.length - first + late + (costs[next + 1] ?? 0)
      if (cost >= (costs[first] ?? Infinity)) continue
      costs[first] = cost
      nexts[first] = next
    }
  }
  const looks: Array<number> = []
  for (let at = 0; at < sorted.length; at = (nexts[at] ?? at) + 1) looks.push(sorted[nexts[at] ?? at] ?? 0)
  return looks
}

/** After so many of the longest intervals, an execution has rarely changed when it is looked at. */
const settledAfter = 6

export const isSettled = ({ max }: PollingRules, waitedMs: number): boolean =>
  waitedMs >= Duration.toMillis(max) * settledAfter

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
