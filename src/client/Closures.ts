/**
 * Pure: whom a Retry-After keeps away, and for how long. It is obeyed in full for what the call was about: its
 * execution, its session, its login, or the endpoint where it names none. The other calls to that endpoint
 * stay away too, for a minute at most and only once for each of those who complain, so that one answer with an
 * absurd wait costs its own task and no other.
 */

/** Whom a call asks, and about what; the reference limits flow results per session (section 8). */
export interface Asked {
  readonly host: string
  readonly endpoint: string
  /** The execution, session, login or engine; absent where a call is about none of them. */
  readonly subject?: string
  /** A limit of the session alone says nothing about the endpoint, nor about the pace of its host. */
  readonly limit?: "host" | "session"
}

/** What one complaint may cost calls about something else at the same endpoint. */
export const endpointClosedMaxMs = 60_000

export interface Closure {
  readonly closedUntilMs: number
  readonly http_status: number
}

/** By endpoint, or endpoint and subject; bounded by the calls of a night. */
export type Closures = Map<string, Closure>

const endpointKey = ({ host, endpoint }: Asked): string => JSON.stringify([host, endpoint])
const subjectKey = ({ host, endpoint, subject }: Asked): string => JSON.stringify([host, endpoint, subject])
const ownKey = (asked: Asked): string =>
  asked.subject === undefined ? endpointKey(asked) : subjectKey(asked)

const extend = (closures: Closures, key: string, closure: Closure): void => {
  if (closure.closedUntilMs > (closures.get(key)?.closedUntilMs ?? 0)) closures.set(key, closure)
}

/** The service asked to be left alone, in answer to this call. */
export const noteRetryAfter = (
  closures: Closures,
  asked: Asked,
  nowMs: number,
  { http_status, retry_after_ms }: { readonly http_status: number; readonly retry_after_ms: number },
): void => {
  const own = ownKey(asked)
  const isFirst = !closures.has(own)
  extend(closures, own, { closedUntilMs: nowMs + retry_after_ms, http_status })
  // Who complains again is believed for itself: what else is wrong, others will be told themselves.
  if (!isFirst || asked.limit === "session") return
  const closedUntilMs = nowMs + Math.min(retry_after_ms, endpointClosedMaxMs)
  extend(closures, endpointKey(asked), { closedUntilMs, http_status })
}

/** An answer came: whoever complains next is heard anew. */
export const noteAnswered = (closures: Closures, asked: Asked): void => {
  closures.delete(ownKey(asked))
}

/** What a call still has to wait for, if anything: the longer one of its subject's and its endpoint's. */
export const closureOf = (closures: Closures, asked: Asked, nowMs: number): Closure | undefined => {
  const own = closures.get(ownKey(asked))
  const endpoint = closures.get(endpointKey(asked))
  const longer = (own?.closedUntilMs ?? 0) >= (endpoint?.closedUntilMs ?? 0) ? own : endpoint
  return longer !== undefined && longer.closedUntilMs > nowMs ? longer : undefined
}
