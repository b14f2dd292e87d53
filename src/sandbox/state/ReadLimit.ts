/**
 * Section 8, once for every session, with or without an execution: one read of its results per five
 * seconds, under an exclusive lock. Pure.
 */

const resultsIntervalMs = 5_000
/**
 * Not shown; own choice: a read holds the session's lock for a millisecond per record that it carries, and
 * another read does not wait for it.
 */
const heldMsPerRecord = 1

/** What was requested of a session so far; all times in milliseconds since the epoch. */
export interface SessionReads {
  readonly reads: ReadonlyArray<{ readonly at: number }>
  /** Reads that found the lock held by somebody else (504). */
  readonly lockedAt: ReadonlyArray<number>
  /** Until when the last read holds the lock. */
  readonly heldUntil: number
}

export const heldUntil = (at: number, records: number): number => at + records * heldMsPerRecord

/** A read, and one that found the session locked, count as requests; one that came too soon does not. */
const lastRequestAt = ({ reads, lockedAt }: SessionReads): number =>
  Math.max(reads.at(-1)?.at ?? Number.NEGATIVE_INFINITY, lockedAt.at(-1) ?? Number.NEGATIVE_INFINITY)

/** `elsewhere`: whether somebody else holds the lock. A clock that was set back locks nobody out. */
export const judgeRead = (
  session: SessionReads,
  at: number,
  elsewhere: boolean,
): "FlowResults" | "TooManyRequests" | "LockTimeout" => {
  const last = lastRequestAt(session)
  if (at >= last && at - last < resultsIntervalMs) return "TooManyRequests"
  const held = at >= (session.reads.at(-1)?.at ?? at) && at < session.heldUntil
  return held || elsewhere ? "LockTimeout" : "FlowResults"
}
