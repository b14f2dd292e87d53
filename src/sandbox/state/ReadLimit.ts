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

export interface SessionRead {
  readonly at: number
  readonly is_closed: boolean
}

/** What was requested of a session so far; all times in milliseconds since the epoch. */
export interface SessionReads {
  readonly reads: ReadonlyArray<SessionRead>
  /** Reads that found the lock held by somebody else (504). */
  readonly lockedAt: ReadonlyArray<number>
  /** Reads that came too soon. */
  readonly refusedAt: ReadonlyArray<number>
  /** Until when the last read holds the lock. */
  readonly heldUntil: number
}

export const unread: SessionReads = {
  reads: [],
  lockedAt: [],
  refusedAt: [],
  heldUntil: Number.NEGATIVE_INFINITY,
}

export const afterRead = <Session extends SessionReads>(
  session: Session,
  { at, is_closed, heldUntil: until = at }: SessionRead & { readonly heldUntil?: number },
): Session => ({ ...session, reads: [...session.reads, { at, is_closed }], heldUntil: until })

export const afterLock = <Session extends SessionReads>(session: Session, at: number): Session => ({
  ...session,
  lockedAt: [...session.lockedAt, at],
})

export const afterRefusal = <Session extends SessionReads>(session: Session, at: number): Session => ({
  ...session,
  refusedAt: [...session.refusedAt, at],
})

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
