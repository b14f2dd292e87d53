/**
 * What hints (events of section 6, received as webhooks) may change: pure. A hint only makes a poll come
 * sooner, never more often than the job's shortest interval. Once hints have been seen to arrive, polls
 * without one become rare; if an execution ends without one, that is undone.
 */

/**
 * How far the hints of one engine are trusted: engines differ in the events that they raise (section 2.2).
 */
export interface HintTrust {
  /** Hints that led to news, since the last execution that ended without one. */
  readonly useful: number
  /** How many create trust: doubled by every end that no hint announced. */
  readonly needed: number
}
const neededMax = 64

export const noTrust: HintTrust = { useful: 0, needed: 1 }

export const isTrusted = ({ useful, needed }: HintTrust): boolean => useful >= needed

/** The result of one poll. */
export interface LookResult {
  readonly hinted: boolean
  /** The first poll of an execution: it always shows something, and its hint may have come too early. */
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

/** A date further in the future than clocks differ means nothing: it is forged, or from another clock. */
export const aheadMaxMs = 5 * 60_000

/** Times that show the order of deliveries; milliseconds since the epoch. */
export interface HintTimes {
  /** The newest event whose poll showed something. */
  readonly confirmedAt: number
  /** When the last poll began. */
  readonly lookedAt: number
}

/** The date of an event, if it can be one. */
export const plausibleDate = (dateMs: number | undefined, now: number): number | undefined =>
  dateMs === undefined || dateMs > now + aheadMaxMs ? undefined : dateMs

/**
 * Section 6.1: deliveries arrive out of order, and late ones are repeated. An event older than the newest
 * means nothing if the state was read after it; if it was not, it may be true, whatever the others say.
 */
export const isOutdated = (dateMs: number | undefined, { confirmedAt, lookedAt }: HintTimes): boolean =>
  dateMs !== undefined && dateMs < confirmedAt && dateMs <= lookedAt
