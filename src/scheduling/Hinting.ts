/**
 * What hints (events of section 6, received as webhooks) may change: pure. A hint only makes a look come
 * sooner, never more often than the job's shortest interval. Where hints have shown that they come, looks
 * without one become rare; where an execution ended without one, that is taken back.
 */

/**
 * How far the hints of one engine are trusted: engines differ in the events that they raise (section 2.2).
 */
export interface HintTrust {
  /** Hints that led to news, since the last execution that ended without one. */
  readonly useful: number
  /** How many make trust: doubled by every end that no hint announced. */
  readonly needed: number
}
const neededMax = 64

export const noTrust: HintTrust = { useful: 0, needed: 1 }

export const isTrusted = ({ useful, needed }: HintTrust): boolean => useful >= needed

/** One look, after it. */
export interface LookResult {
  readonly hinted: boolean
  /** The first look at an execution: it tells something in any case, and its hint may have come too early. */
  readonly first: boolean
  readonly told: "nothing" | "news" | "end"
}

export const trustAfter = (trust: HintTrust, { hinted, first, told }: LookResult): HintTrust => {
  if (hinted && (told === "end" || (told === "news" && !first)))
    return { ...trust, useful: Math.min(neededMax, trust.useful + 1) }
  if (!hinted && told === "end" && !first && isTrusted(trust))
    return { useful: 0, needed: Math.min(neededMax, trust.needed * 2) }
  return trust
}

/** A date further ahead than clocks differ says nothing: it is forged, or of another clock. */
export const aheadMaxMs = 5 * 60_000

/** Times by which the order of deliveries is told; milliseconds since the epoch. */
export interface HintTimes {
  /** The newest event whose look told something. */
  readonly confirmedAt: number
  /** When the last look began. */
  readonly lookedAt: number
}

/** The date of an event, where it can be one. */
export const plausibleDate = (dateMs: number | undefined, now: number): number | undefined =>
  dateMs === undefined || dateMs > now + aheadMaxMs ? undefined : dateMs

/**
 * Section 6.1: deliveries arrive out of order, and late ones once more. An event older than the newest tells
 * nothing where the state was read after it; where it was not, it may be true, whatever the others say.
 */
export const isOutdated = (dateMs: number | undefined, { confirmedAt, lookedAt }: HintTimes): boolean =>
  dateMs !== undefined && dateMs < confirmedAt && dateMs <= lookedAt
