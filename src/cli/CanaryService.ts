/**
 * The service of `doctor --canary`: the embedded one behind a server on this machine that repeats every
 * secret in every answer, takes the place of a telemetry collector and of a receiver of notices, and keeps
 * what those were sent. Lives as long as its scope.
 */
import { Context, Duration, Effect, Layer, Predicate } from "effect"
import {
  HttpClient,
  HttpClientRequest,
  HttpMethod,
  HttpServer,
  HttpServerRequest,
  HttpServerResponse,
} from "effect/http"
import { secretHeader } from "../service/Api.ts"
import { LocalServer } from "../base/LocalServer.ts"
import { SandboxServer } from "../sandbox/server/SandboxServer.ts"
import { issuedCanary, spelled } from "./Canaries.ts"
import type { Canaries, Canary, Written } from "./Canaries.ts"
import { Wiring } from "./Wiring.ts"

/** The embedded service's own application that may tokenize. */
const sandboxSecret = "sandbox-app-1"
/** Its executions take no time. */
const speed = 300
const limits = { headersTimeout: Duration.seconds(5), requestTimeout: Duration.seconds(10) }

/** Forms are schemas, counts are numbers: another key would make another answer of them. */
const closedFields: ReadonlySet<string> = new Set(["parameters", "configurations", "products_count"])
/** Where the reference has free text. */
const textFields: ReadonlySet<string> = new Set(["status_message", "message", "msg", "detail"])
const issuedFields: Readonly<Record<string, string>> = {
  ticket: "a ticket",
  session_token: "a session's token",
  token_key: "the key of a token",
}

/** The answer with the echo in every object and in every free text, but not in records, which are kept. */
const withEcho = (value: unknown, echo: string): unknown => {
  if (Array.isArray(value)) return value.map((item) => withEcho(item, echo))
  if (!Predicate.isObject(value)) return value
  const fields = Object.entries(value).map(([key, inner]) => {
    if (key === "data" || closedFields.has(key)) return [key, inner]
    if (typeof inner === "string" && textFields.has(key)) return [key, `${inner} ${echo}`]
    return [key, withEcho(inner, echo)]
  })
  return { ...Object.fromEntries(fields), said: echo }
}

/** The records with the control in each. */
const withControl = (value: unknown, control: string): unknown => {
  if (Array.isArray(value)) return value.map((item) => withControl(item, control))
  if (!Predicate.isObject(value)) return value
  const inner = Object.entries(value).map(([key, one]) => [key, withControl(one, control)] as const)
  const isRecord = "product" in value && "sub_family" in value
  return { ...Object.fromEntries(inner), ...(isRecord ? { said: control } : {}) }
}

const issuedIn = (value: unknown): ReadonlyArray<Canary> => {
  if (Array.isArray(value)) return value.flatMap(issuedIn)
  if (!Predicate.isObject(value)) return []
  return Object.entries(value).flatMap(([key, inner]) => {
    const is = issuedFields[key]
    return typeof inner === "string" && is !== undefined ? [issuedCanary(is, inner)] : issuedIn(inner)
  })
}

const parse = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

export interface CanaryService {
  /** Of the server: the service is below /api and /flows, everything else is kept. */
  readonly origin: string
  /** What the service issued so far. */
  readonly issued: ReadonlyMap<string, Canary>
  /** Bodies that were sent to the collector and to the receiver of notices. */
  readonly sent: ReadonlyArray<Written>
  /** How many answers repeated the secrets. */
  readonly echoes: () => number
}

/** Turns an answer of the embedded service into that of a service that cannot keep a secret. */
const makeHostile = (canaries: Canaries) => {
  const { control, ...planted } = canaries
  const issued = new Map<string, Canary>()
  let echoes = 0
  const hostile = (path: string, text: string): string => {
    const answer = parse(text)
    if (answer === undefined) return text
    for (const canary of issuedIn(answer)) issued.set(canary.value, canary)
    if (path.endsWith("/profile")) return text
    echoes += 1
    const echo = [...Object.values(planted), ...issued.values()].map(spelled).join(" ")
    const repeated = withEcho(answer, echo)
    if (!Predicate.isObject(repeated) || !path.endsWith("/results")) return JSON.stringify(repeated)
    return JSON.stringify({ ...repeated, data: withControl(repeated["data"], control.value) })
  }
  return { issued, echoes: () => echoes, hostile }
}

export const openCanaryService = Effect.fnUntraced(function* (canaries: Canaries) {
  const wiring = yield* Wiring
  const built = yield* Layer.build(wiring.sandboxServer({ port: 0, host: "127.0.0.1", seed: 1, speed }))
  const sandbox = new URL(Context.get(built, SandboxServer).base_url).origin
  const client = Context.get(yield* Layer.build(wiring.receivers), HttpClient.HttpClient)
  const { issued, echoes, hostile } = makeHostile(canaries)
  const sent: Array<Written> = []

  const answer = Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    const { method } = request
    const { pathname } = new URL(request.url, sandbox)
    const body = new Uint8Array(yield* request.arrayBuffer)
    if (!HttpMethod.isHttpMethod(method) || !/^\/(?:api|flows)\//.test(pathname)) {
      sent.push({ where: `what was sent to ${pathname}`, text: Buffer.from(body).toString("latin1") })
      return HttpServerResponse.jsonUnsafe({})
    }
    const { host: _, connection: __, "content-length": ___, ...headers } = request.headers
    const known = headers[secretHeader.toLowerCase()] === canaries.application.value
    const asked = HttpClientRequest.make(method)(`${sandbox}${request.url}`, {
      headers: { ...headers, ...(known ? { [secretHeader]: sandboxSecret } : {}) },
    })
    const type = headers["content-type"] ?? "application/json"
    const response = yield* client.execute(
      body.length === 0 ? asked : HttpClientRequest.bodyUint8Array(asked, body, type),
    )
    const { "content-length": ____, "transfer-encoding": _____, ...answered } = response.headers
    const text = yield* response.text
    return HttpServerResponse.text(text === "" ? "" : hostile(pathname, text), {
      status: response.status,
      headers: answered,
    })
  }).pipe(Effect.catch(() => Effect.succeed(HttpServerResponse.empty({ status: 502 }))))

  const server = yield* Layer.build(LocalServer.layer({ host: "127.0.0.1", port: 0, ...limits }))
  yield* Effect.provide(HttpServer.serveEffect(answer), server)
  const origin = HttpServer.formatAddress(Context.get(server, HttpServer.HttpServer).address)
  return { origin, issued, sent, echoes } satisfies CanaryService as CanaryService
})
