/**
 * Which calls a Retry-After holds back, and until when. It counts in full for the execution, session or
 * login of the call, and for the whole endpoint only if the call names none of them: an answer with an
 * absurd wait affects only its own task. How fast a host may be called at all is in `Pacing.ts`.
 */
import { Duration } from "effect"

/** Which endpoint a call uses, and what it is about; flow results have a limit per session (section 8). */
export interface Asked {
  readonly host: string
  readonly endpoint: string
  /** The execution, session, login or engine; absent if a call is about none of them. */
  readonly subject?: string
  /** A limit on one session says nothing about the pace of its host. */
  readonly limit?: "host" | "session"
}

export interface Closure {
  readonly closedUntilMs: number
  readonly http_status: number
}

/** Bounded by the executions and sessions of a run; an expired entry is removed when it is next read. */
export type Closures = Map<string, Closure>

const keyOf = ({ host, endpoint, subject }: Asked): string =>
  JSON.stringify([host, endpoint, subject ?? null])

/** The service asked us to wait, in answer to this call; an earlier, longer wait still counts. */
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

/** How long a call still has to wait, if at all. */
export const closureOf = (closures: Closures, asked: Asked, nowMs: number): Closure | undefined => {
  const closure = closures.get(keyOf(asked))
  if (closure === undefined || closure.closedUntilMs > nowMs) return closure
  closures.delete(keyOf(asked))
  return undefined
}
