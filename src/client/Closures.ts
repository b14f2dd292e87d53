/**
 * Whom a Retry-After keeps away, and until when. It counts in full for what the call was about, its
 * execution, its session or its login, and for the whole endpoint only where a call names none of them: an
 * answer with an absurd wait costs its own task and no other. How fast a host may be asked at all is in
 * `Pacing.ts`.
 */
import { Duration } from "effect"

/** Whom a call asks, and about what; the reference limits flow results per session (section 8). */
export interface Asked {
  readonly host: string
  readonly endpoint: string
  /** The execution, session, login or engine; absent where a call is about none of them. */
  readonly subject?: string
  /** A limit of the session alone says nothing about the pace of its host. */
  readonly limit?: "host" | "session"
}

export interface Closure {
  readonly closedUntilMs: number
  readonly http_status: number
}

/** Bounded by the executions and sessions of a night; what is over is forgotten when it is asked for. */
export type Closures = Map<string, Closure>

const keyOf = ({ host, endpoint, subject }: Asked): string =>
  JSON.stringify([host, endpoint, subject ?? null])

/** The service asked to be left alone, in answer to this call; an earlier and longer wait still counts. */
export const noteRetryAfter = (
  closures: Closures,
  asked: Asked,
  nowMs: number,
  { http_status, retry_after }: { readonly http_status: number; readonly retry_after: Duration.Duration },
): void => {
  const key = keyOf(asked)
  const closedUntilMs = nowMs + Duration.toMillis(retry_after)
  if (closedUntilMs > (closures.get(key)?.closedUntilMs ?? nowMs))
    closures.set(key, { closedUntilMs, http_status })
}

/** What a call still has to wait for, if anything. */
export const closureOf = (closures: Closures, asked: Asked, nowMs: number): Closure | undefined => {
  const closure = closures.get(keyOf(asked))
  if (closure === undefined || closure.closedUntilMs > nowMs) return closure
  closures.delete(keyOf(asked))
  return undefined
}
