/**
 * Describes the failure of a call as one of the port's failures: this is the only place that decides
 * whether the request can have had an effect. In doubt, the answer is lost. Messages name the call and a
 * code, never a body or a header.
 */
import { Clock, Duration, Effect } from "effect"
import type { HttpClientError, HttpClientResponse } from "effect/http"
import type { CallFailure } from "./Service.ts"
import { AnswerLost, NotSent, SecretRefused, Throttled, UnexpectedAnswer } from "./Service.ts"

/** Longer than any run: a wait this long is left to a later run, so a larger number adds nothing. */
export const retryAfterMaxMs = 30 * 24 * 3_600_000

const httpDate = /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/

/** Retry-After as milliseconds from now: whole seconds or an HTTP date; anything else counts as absent. */
export const parseRetryAfter = (header: string | undefined, nowMs: number): number | undefined => {
  const text = header?.trim() ?? ""
  const waitMs = /^\d{1,15}$/.test(text)
    ? Number(text) * 1000
    : httpDate.test(text)
      ? Date.parse(text) - nowMs
      : Number.NaN
  return Number.isNaN(waitMs) ? undefined : Math.min(Math.max(waitMs, 0), retryAfterMaxMs)
}

/** The Retry-After of an answer, as the field in which answers and failures carry it. */
export const retryAfter = (response: HttpClientResponse.HttpClientResponse) =>
  Effect.map(Clock.currentTimeMillis, (nowMs): { readonly retry_after?: Duration.Duration } => {
    const waitMs = parseRetryAfter(response.headers["retry-after"], nowMs)
    return waitMs === undefined ? {} : { retry_after: Duration.millis(Math.ceil(waitMs)) }
  })

/** System calls that fail before a connection exists: nothing can have been sent. */
const beforeConnection = new Set(["connect", "getaddrinfo", "queryA", "queryAaaa"])

/** The other side did not prove its identity, so TLS ended before the request was written. */
const certificateRefused = new Set([
  "ERR_TLS_CERT_ALTNAME_INVALID",
  "CERT_HAS_EXPIRED",
  "CERT_NOT_YET_VALID",
  "CERT_REVOKED",
  "CERT_UNTRUSTED",
  "CERT_REJECTED",
  "CERT_CHAIN_TOO_LONG",
  "CERT_SIGNATURE_FAILURE",
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_GET_ISSUER_CERT",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
  "INVALID_CA",
  "INVALID_PURPOSE",
  "HOSTNAME_MISMATCH",
])

const textField = (value: unknown, name: "code" | "syscall"): string | undefined => {
  if (typeof value !== "object" || value === null || !(name in value)) return undefined
  const field: unknown = Reflect.get(value, name)
  return typeof field === "string" ? field : undefined
}

/** Whether a connection error proves that no byte of the request was sent: it failed while connecting. */
const isBeforeConnection = (cause: unknown): boolean => {
  // If several addresses of a host were tried, each of them must have failed that early.
  if (cause instanceof AggregateError && cause.errors.length > 0)
    return cause.errors.every(isBeforeConnection)
  const code = textField(cause, "code") ?? ""
  const syscall = textField(cause, "syscall") ?? ""
  // fetch wraps the error once more.
  if (code === "" && cause instanceof Error && cause.cause !== undefined)
    return isBeforeConnection(cause.cause)
  return (
    code === "UND_ERR_CONNECT_TIMEOUT" ||
    code === "UND_ERR_INVALID_ARG" ||
    certificateRefused.has(code) ||
    beforeConnection.has(syscall)
  )
}

const codeOf = (cause: unknown): string => {
  const code = textField(cause, "code")
  if (code !== undefined && /^[A-Z0-9_]{2,60}$/.test(code)) return code
  return cause instanceof Error && cause.cause !== undefined ? codeOf(cause.cause) : "no further code"
}

/** A call that got no answer, or only part of it. */
export const failedTransport = (call: string, error: HttpClientError.HttpClientError): CallFailure => {
  const reason = error.reason
  const cause = "cause" in reason ? reason.cause : undefined
  const code = codeOf(cause)
  switch (reason._tag) {
    case "InvalidUrlError":
    case "EncodeError":
      return new NotSent({ message: `${call}: the request could not be written` })
    case "TransportError":
      return isBeforeConnection(cause)
        ? new NotSent({ message: `${call}: no connection to the service (${code})` })
        : new AnswerLost({ message: `${call}: the connection broke before the answer (${code})` })
    default:
      return new AnswerLost({
        message: `${call}: the answer was cut off (${code})`,
        http_status: reason.response.status,
      })
  }
}

/**
 * A status that is not a documented answer of this call. 401 and 403 refuse the secret; 429 and 503 mean
 * "try later"; 408 and every other 5xx leave open what happened; so does a 2xx that the reference does not
 * list, if the call may have had an effect.
 */
export const failedStatus = (
  call: string,
  hasEffect: boolean,
  response: HttpClientResponse.HttpClientResponse,
): Effect.Effect<CallFailure> => {
  const http_status = response.status
  if (http_status === 401 || http_status === 403) {
    const message = `${call}: the service refuses the application secret (${http_status})`
    return Effect.succeed(new SecretRefused({ http_status, message }))
  }
  if (http_status === 429 || http_status === 503) {
    return Effect.map(retryAfter(response), (wait) => {
      const isUnreadable = wait.retry_after === undefined && response.headers["retry-after"] !== undefined
      const said = isUnreadable ? `${http_status}; its Retry-After cannot be read` : http_status
      const message = `${call}: the service asks to retry later (${said})`
      return new Throttled({ http_status, ...wait, message })
    })
  }
  const isSuccess = http_status >= 200 && http_status < 300
  if (http_status >= 500 || http_status === 408 || (hasEffect && isSuccess)) {
    const message = `${call}: it is not known what happened (${http_status})`
    return Effect.succeed(new AnswerLost({ message, http_status }))
  }
  const isRedirect = http_status >= 300 && http_status < 400 && http_status !== 304
  const message = isRedirect
    ? `${call}: the service answered with a redirect (${http_status}), which is never followed`
    : `${call}: the reference does not list this answer (${http_status})`
  return Effect.succeed(new UnexpectedAnswer({ http_status, message }))
}

/**
 * A body that exceeds a limit: reading again gives the same; for a call with an effect, it is not known
 * what happened.
 */
export const failedSize = (
  call: string,
  hasEffect: boolean,
  http_status: number,
  bytesMax: number,
): CallFailure => {
  const message = `${call}: the answer is larger than ${bytesMax} bytes`
  return hasEffect ? new AnswerLost({ message, http_status }) : new UnexpectedAnswer({ message, http_status })
}
