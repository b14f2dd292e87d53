/**
 * Describes the failure of a call as one of the port's failures: this is the only place that decides
 * whether the request can have had an effect. In doubt, the answer is lost. Messages name the call and a
 * code, never a body or a header.
 */
import { Cause, Clock, Context, Duration, Effect, Result } from "effect"
import { HttpBody, HttpClientRequest } from "effect/http"
import type { Headers, HttpClientError, HttpClientResponse, HttpMethod } from "effect/http"
import { AnswerLost, NotSent, SecretRefused, Throttled, UnexpectedAnswer } from "./Service.ts"
import type { CallFailure } from "./Service.ts"
import { encodeSegment } from "../service/Ids.ts"
import { isAddressable, type ResultsSource, type SourceIds } from "../service/FlowResults.ts"

/** Longer than any run: a wait this long is left to a later run, so a larger number adds nothing. */
const retryAfterMaxMs = 30 * 24 * 3_600_000

const httpDate = /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/

/**
 * Retry-After as milliseconds from now: whole seconds or an HTTP date; anything else counts as absent. A date
 * is one of the service's clock, which its answer tells (`Date`).
 */
export const parseRetryAfter = (
  header: string | undefined,
  nowMs: number,
  answered = "",
): number | undefined => {
  const text = header?.trim() ?? ""
  const dateOf = (value: string): number => (httpDate.test(value) ? Date.parse(value) : Number.NaN)
  const itsNow = dateOf(answered)
  const waitMs = /^\d{1,15}$/.test(text)
    ? Number(text) * 1000
    : dateOf(text) - (Number.isNaN(itsNow) ? nowMs : itsNow)
  return Number.isNaN(waitMs) ? undefined : Math.min(Math.max(waitMs, 0), retryAfterMaxMs)
}

/** The Retry-After of an answer, as the field in which answers and failures carry it. */
export const retryAfter = (response: HttpClientResponse.HttpClientResponse) =>
  Effect.map(Clock.currentTimeMillis, (nowMs): { readonly retry_after?: Duration.Duration } => {
    const { "retry-after": header, date } = response.headers
    const waitMs = parseRetryAfter(header, nowMs, date)
    return waitMs === undefined ? {} : { retry_after: Duration.millis(Math.ceil(waitMs)) }
  })

/** The cause of a failure before the first byte of its request was written, whatever went wrong. */
export class NeverBegun extends Error {
  constructor(cause: unknown) {
    super("the request was not begun", { cause })
  }
}

const textField = (value: unknown, name: "code" | "syscall" | keyof CallIds): string | undefined => {
  if (typeof value !== "object" || value === null || !(name in value)) return undefined
  const field: unknown = Reflect.get(value, name)
  return typeof field === "string" ? field : undefined
}

const codeOf = (cause: unknown): string => {
  const code = textField(cause, "code")
  if (code !== undefined && /^[A-Z0-9_]{2,60}$/.test(code)) return code
  return cause instanceof Error && cause.cause !== undefined ? codeOf(cause.cause) : "no further code"
}

export const failedTransport = (call: string, error: HttpClientError.HttpClientError): CallFailure => {
  const reason = error.reason
  const cause = "cause" in reason ? reason.cause : undefined
  const code = codeOf(cause)
  switch (reason._tag) {
    case "InvalidUrlError":
    case "EncodeError":
      return new NotSent({ message: `${call}: the request could not be written` })
    case "TransportError":
      return cause instanceof NeverBegun
        ? new NotSent({ message: `${call}: no connection to the service (${code})` })
        : new AnswerLost({ message: `${call}: the connection broke before the answer (${code})` })
    default:
      return new AnswerLost({
        message: `${call}: the answer was cut off (${code})`,
        http_status: reason.response.status,
      })
  }
}

/** A gateway answers instead of the service: that says nothing of what was asked. */
export const inItsPlace = (call: string, http_status: number) => ({
  http_status,
  message: `${call}: something else answers in the service's place (${http_status})`,
})

interface CallOfStatus {
  readonly name: string
  readonly hasEffect: boolean
  /** Of documents and results, which are elsewhere, with errors that the reference does not show. */
  readonly large: unknown
}

/** The service answers JSON. */
export const isPage = (
  { large }: Pick<CallOfStatus, "large">,
  { headers }: HttpClientResponse.HttpClientResponse,
): boolean => large === undefined && /^text\/html\b/i.test(headers["content-type"] ?? "")

/**
 * A status that is not a documented answer of this call. 401 and 403 refuse the secret, unless they are a
 * page; 429 and 503 mean "try later"; 408 and every other 5xx leave open what happened; so does a 2xx that
 * the reference does not list, if the call may have had an effect.
 */
export const failedStatus = (
  of: CallOfStatus,
  response: HttpClientResponse.HttpClientResponse,
): Effect.Effect<CallFailure> => {
  const { name: call, hasEffect } = of
  const http_status = response.status
  if (http_status === 401 || http_status === 403) {
    if (isPage(of, response)) return Effect.succeed(new AnswerLost(inItsPlace(call, http_status)))
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

/** Too large a body: a read would give the same again; a call with an effect may have had it. */
export const failedSize = (
  call: string,
  hasEffect: boolean,
  http_status: number,
  bytesMax: number,
): CallFailure => {
  const message = `${call}: the answer is larger than ${bytesMax} bytes`
  return hasEffect ? new AnswerLost({ message, http_status }) : new UnexpectedAnswer({ message, http_status })
}

// Requests from the contract: method and path template are an endpoint's own. Ids are opaque and may be
// hostile: each fills exactly one path segment, or no request is made.

/** The parts of an endpoint of `ExecutionApi` or `FlowApi` that a request needs. */
export interface Endpoint {
  readonly identifier: string
  readonly method: HttpMethod.HttpMethod
  readonly path: string
  readonly "~Params": { readonly Type: unknown }
  readonly "~Payload": { readonly Type: unknown }
}

type Part<Key extends string, S, Value> = [S] extends [never] ? unknown : { readonly [K in Key]: Value }

/** `params` and `payload`, exactly if the endpoint declares them; no call has a query. */
export type CallParts<E extends Endpoint> = Part<"params", E["~Params"], E["~Params"]["Type"]> &
  Part<"payload", E["~Payload"], E["~Payload"]["Type"]>

export interface AnyParts {
  readonly params?: Readonly<Record<string, string>>
  readonly payload?: unknown
}

/** Whether a results source and these ids make a valid URL. */
export const isSendable = (source: ResultsSource, ids: SourceIds): boolean =>
  isAddressable(source, ids) &&
  [ids.execution_id, ids.session_id].every((id) => id === undefined || encodeSegment(id) !== undefined)

const noUrlParams = HttpClientRequest.get("").urlParams
const noHash = HttpClientRequest.get("").hash

const unsendable = (endpoint: Endpoint, why: string) =>
  Result.fail(new NotSent({ message: `${endpoint.identifier}: ${why}; nothing was sent` }))

const writeBody = (endpoint: Endpoint, payload: unknown) =>
  Result.try({
    try: () => HttpBody.text(JSON.stringify(payload), "application/json"),
    // The cause could contain a value, and the payload holds login parameters, so the cause is dropped.
    catch: () =>
      new NotSent({ message: `${endpoint.identifier}: the request is not JSON; nothing was sent` }),
  })

/** Compiles an endpoint for one root and one set of headers; the result builds a request per call. */
export const compileEndpoint = (endpoint: Endpoint, root: string, headers: Headers.Headers) => {
  const segments = endpoint.path.split("/").slice(1)
  return ({ params, payload }: AnyParts): Result.Result<HttpClientRequest.HttpClientRequest, NotSent> => {
    let url = root
    for (const segment of segments) {
      if (!segment.startsWith(":")) {
        url += `/${segment}`
        continue
      }
      const name = segment.slice(1)
      const encoded = encodeSegment(params?.[name] ?? "")
      if (encoded === undefined) return unsendable(endpoint, `this ${name} cannot be a part of an address`)
      url += `/${encoded}`
    }
    const { method } = endpoint
    const request = HttpClientRequest.makeWith(method, url, noUrlParams, noHash, headers, HttpBody.empty)
    if (payload === undefined) return Result.succeed(request)
    return Result.map(writeBody(endpoint, payload), (body) => HttpClientRequest.setBody(request, body))
  }
}

// Who looks on at every request to the service: told its method, its path as a template and its own ids,
// never an address, a header or a body. Without an observer a call costs what it did.

/** What is called: known before the first request, so it is described once. */
export interface CallTarget {
  readonly name: string
  readonly method: string
  /** `/executions/handler/v1/{execution_id}`, with the root's own path. */
  readonly template: string
  readonly host: string
  readonly port: number
}

/** Whose call it is, as far as the request says. */
export interface CallIds {
  readonly execution_id: string | undefined
  readonly session_id: string | undefined
  readonly external_execution_id: string | undefined
}

/** Times are nanoseconds since the epoch, on the clock of the run. */
interface SeenCall {
  readonly answered: (http_status: number) => void
  /** With the failure's tag; undefined for an answer that the reference lists. */
  readonly ended: (failure: string | undefined, at: bigint) => void
}

export type ObserveCalls = (target: CallTarget, ids: CallIds, at: bigint) => SeenCall

export const CallObserver = Context.Reference<ObserveCalls | undefined>("nightjar/client/CallObserver", {
  defaultValue: () => undefined,
})

const targetOf = (endpoint: Endpoint, root: string): CallTarget => {
  const url = new URL(root)
  const path = endpoint.path.replaceAll(/:([a-z_]+)/g, "{$1}")
  return {
    name: endpoint.identifier,
    method: endpoint.method,
    template: `${url.pathname === "/" ? "" : url.pathname}${path}`,
    host: url.hostname,
    port: url.port === "" ? (url.protocol === "https:" ? 443 : 80) : Number(url.port),
  }
}

/** Only these three of a request's parts: a payload holds a login. */
const callIds = ({ params, payload }: AnyParts): CallIds => ({
  execution_id: textField(params, "execution_id") ?? textField(payload, "execution_id"),
  session_id: textField(params, "session_id"),
  external_execution_id: textField(payload, "external_execution_id"),
})

type Call<A> = (answered: SeenCall["answered"]) => Effect.Effect<A, CallFailure>

/** The calls of one endpoint, each looked on at from its request to the last byte read of its answer. */
export const observing = (observe: ObserveCalls | undefined, endpoint: Endpoint, root: string) => {
  if (observe === undefined) return <A>(_: AnyParts, call: Call<A>) => call(() => undefined)
  const target = targetOf(endpoint, root)
  return <A>(parts: AnyParts, call: Call<A>) =>
    Effect.clockWith((clock) => {
      const seen = observe(target, callIds(parts), clock.currentTimeNanosUnsafe())
      return Effect.onExit(call(seen.answered), (exit) =>
        Effect.sync(() => {
          const failure = exit._tag === "Success" ? undefined : exit.cause.reasons.find(Cause.isFailReason)
          const tag = exit._tag === "Success" ? undefined : (failure?.error._tag ?? "Interrupted")
          seen.ended(tag, clock.currentTimeNanosUnsafe())
        }),
      )
    })
}
