/**
 * The gate before every endpoint of the embedded service: it requires the application secret (section 5)
 * and answers a request that does not decode with 422 and a list of validation items (section 7).
 */
import { isUtf8 } from "node:buffer"
import { IncomingMessage, ServerResponse } from "node:http"
import * as NodeHttpServerRequest from "@effect/platform-node/NodeHttpServerRequest"
import { Clock, Duration, Effect, Layer, Option, Predicate, Result, Schema, SchemaIssue } from "effect"
import { Stream } from "effect"
import { HttpClientRequest, HttpMethod, HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiError, HttpApiMiddleware } from "effect/http-api"
import { readDuration } from "../../base/Text.ts"
import { WhenSent, noteFault } from "../core/SandboxCore.ts"
import { endpointOfRoute, judgeCall, type Fault, type JudgedCall } from "../faults/Faults.ts"
import { errorBody, gatewayAnswer, invalidBody, nestedToken } from "../readings/ShapeAnswer.ts"
import { refusedEndpoint, retryAfter, shapeBody } from "../readings/ShapeAnswer.ts"
import type { EdgeAnswer } from "../readings/ShapeAnswer.ts"
import { Sandbox } from "./Sandbox.ts"
import type { FullReading } from "../state/Reading.ts"
import { CallingApplication, firstApplication, type Application } from "../state/SandboxState.ts"
import { secretHeader } from "../../service/Api.ts"
import { measureBody } from "../../service/BodyBounds.ts"

/** The applications by their secrets: all but the second may tokenize; none can see another's executions. */
const applications: ReadonlyMap<string | undefined, Application> = new Map([
  ["sandbox-app-1", firstApplication],
  ["sandbox-app-2", { app_id: "65f0c0ffee00000000000002", mayTokenize: false }],
  ["sandbox-app-3", { app_id: "65f0c0ffee00000000000003", mayTokenize: true }],
])
const applicationOf = ({ headers }: Request) => applications.get(headers[secretHeader.toLowerCase()])

export class SandboxGate extends HttpApiMiddleware.Service<SandboxGate, { provides: CallingApplication }>()(
  "nightjar/sandbox/SandboxGate",
) {
  static readonly layer = Layer.succeed(SandboxGate, (endpoint) =>
    Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) => {
      const secret = request.headers[secretHeader.toLowerCase()]
      if (secret === undefined) return Effect.succeed(refuse(401, `${secretHeader} is missing`))
      const application = applications.get(secret)
      if (application === undefined) return Effect.succeed(refuse(403, "unknown application secret"))
      const answered = endpoint.pipe(
        Effect.provideService(CallingApplication, application),
        Effect.map(asInvalid),
        Effect.catch((error) =>
          isRequestError(error)
            ? Effect.map(HttpServerRequest.ParsedSearchParams, (query) => invalid(error, query))
            : Effect.fail(error),
        ),
      )
      if (!HttpMethod.hasBody(request.method)) return answered
      // A body that breaks off while it is read is left to the endpoint to answer.
      return Effect.orElseSucceed(request.arrayBuffer, () => new ArrayBuffer(0)).pipe(
        Effect.flatMap((body) => {
          const bytes = Buffer.from(body)
          if (!isUtf8(bytes)) return Effect.succeed(notUtf8)
          return measureBody(bytes).depth > depthMax ? Effect.succeed(tooDeep) : answered
        }),
      )
    }),
  )
}

/** Real parameters are never nested this deep; every fold over a body recurses once for each level. */
const depthMax = 64

/** Section 7: `{detail}`, a text or a list of validation items. */
export const refuse = (status: number, detail: unknown) =>
  HttpServerResponse.jsonUnsafe({ detail }, { status })
const invalidItem = (loc: ReadonlyArray<string>, msg: string) =>
  refuse(422, [{ loc, msg, type: "value_error" }])
/** Read leniently, two names would become one. */
const notUtf8 = invalidItem(["body"], "not UTF-8")
const tooDeep = invalidItem(["body"], `nested more than ${depthMax} deep`)

const isRequestError = (error: unknown): error is HttpApiError.HttpApiSchemaError =>
  HttpApiError.HttpApiSchemaError.is(error) && error.kind !== "Body" && error.kind !== "ResponseHeaders"

const issuesOf = SchemaIssue.makeFormatterStandardSchemaV1()
const slots: Readonly<Record<HttpApiError.HttpApiSchemaError["kind"], string>> = {
  Params: "path",
  Query: "query",
  Headers: "header",
  Payload: "body",
  Body: "response",
  ResponseHeaders: "response",
}

const locationPart = (part: PropertyKey | { readonly key: PropertyKey }): string | number => {
  const key = typeof part === "object" ? part.key : part
  return typeof key === "number" ? key : String(key)
}

/** One item per error; of the values, only those of a query are repeated (4.8). */
const invalid = (error: HttpApiError.HttpApiSchemaError, query: Readonly<Record<string, unknown>>) =>
  refuse(
    422,
    issuesOf(error.cause.issue).issues.map(({ path = [], message }) => ({
      loc: [slots[error.kind], ...path.map(locationPart)],
      msg: message,
      type: "value_error",
      ...(error.kind === "Query" ? { input: query[String(path[0])] } : {}),
    })),
  )

/** A body of another type than JSON is malformed input like any other. */
const asInvalid = (response: HttpServerResponse.HttpServerResponse) =>
  response.status === 415 ? invalidItem(["header", "content-type"], "application/json expected") : response

// Around every route, before its gate and after its codecs: a fault looks like one of network or server.

type Response = HttpServerResponse.HttpServerResponse
type Request = HttpServerRequest.HttpServerRequest

/** The path of the route that takes the request, and its endpoint if the contract has it. */
const matchedRoute = Effect.map(HttpRouter.RouteContext, ({ route: { method, path } }) => ({
  path,
  endpoint: endpointOfRoute.get(`${method} ${path}`),
}))

/** The connection broke: in process there is no socket to show it. */
export class ConnectionLost extends Schema.TaggedError<ConnectionLost>()("ConnectionLost", {
  message: Schema.String,
}) {}
const lost = () => new ConnectionLost({ message: "ECONNRESET: a fault broke the connection" })

/** What a request shows about itself: its body may name customer and engine, its path what they belong to. */
const callOf = Effect.fnUntraced(function* (endpoint: string, request: Request) {
  const { owner } = yield* Sandbox
  const { params } = yield* HttpRouter.RouteContext
  const text = HttpMethod.hasBody(request.method) ? yield* Effect.orDie(request.text) : ""
  const body = Result.getOrUndefined(parse(text))
  const named = (name: string) => {
    const value: unknown = Predicate.hasProperty(body, name) ? body[name] : undefined
    return Predicate.isString(value) ? value : undefined
  }
  const execution_id = params["execution_id"] ?? named("execution_id")
  const owned = owner({ execution_id, session_id: params["session_id"], token_id: params["token_id"] })
  const call: JudgedCall = {
    endpoint,
    customer: named("customer_id") ?? owned.customer_id,
    engine: named("engine_reference") ?? params["engine_reference"] ?? owned.engine_reference,
    application: applicationOf(request)?.app_id,
  }
  return call
})

/** Ends when the server has seen the connection close and interrupts the request. */
const breakConnection = (request: Request): Effect.Effect<never> =>
  Effect.suspend(() => {
    if (!(request.source instanceof IncomingMessage)) return Effect.die(lost())
    request.source.socket.resetAndDestroy()
    return Effect.never
  })

const notJson = '{"detail": "the rest of this body was'

const typeOf = (response: Response): string => response.headers["content-type"] ?? "application/json"

const withBody = (response: Response, text: string, contentType: string): Response =>
  HttpServerResponse.setBody(response, HttpServerResponse.text(text, { contentType }).body)

const parse = (text: string) => Result.try((): unknown => JSON.parse(text))

/** Its text was checked when the file was read. */
const durationOf = (text: string): Duration.Duration =>
  Option.getOrElse(readDuration(text), () => Duration.zero)

const answerOf = (status: number, { body, retry_after }: Fault): Response => {
  const text = body ?? JSON.stringify({ detail: "an injected fault" })
  const after = retry_after === undefined ? undefined : Math.ceil(Duration.toSeconds(durationOf(retry_after)))
  const headers = after === undefined ? {} : { "retry-after": String(after) }
  if (status === 204 || status === 304) return HttpServerResponse.empty({ status, headers })
  return HttpServerResponse.text(text, {
    status,
    headers,
    contentType: Result.isSuccess(parse(text)) ? "application/json" : "text/plain",
  })
}

/** Sends the headers for the whole body, a part of it, and closes the connection once that part is sent. */
const cutOverHttp = (request: Request, response: Response, part: Uint8Array, whole: number) =>
  Effect.callback<never>(() => {
    const message = NodeHttpServerRequest.toServerResponse(request)
    if (!(message instanceof ServerResponse)) return
    message.writeHead(response.status, { ...response.headers, "content-length": String(whole) })
    message.write(part, () => message.destroy())
  })

const cutBody = (request: Request, response: Response, share: number): Effect.Effect<Response> => {
  const { body } = response
  if (body._tag !== "Uint8Array" || body.body.length === 0 || request.method === "HEAD")
    return breakConnection(request)
  const whole = body.body.length
  const part = body.body.slice(0, Math.max(1, Math.floor(whole * share)))
  if (request.source instanceof IncomingMessage) return cutOverHttp(request, response, part, whole)
  const stream = Stream.concat(Stream.make(part), Stream.fail(lost()))
  const { status, headers } = response
  const options = { status, headers, contentType: typeOf(response), contentLength: whole }
  return Effect.succeed(HttpServerResponse.stream(stream, options))
}

/** What an answer delivers counts once all of it was written to the caller's socket; a HEAD has no body. */
const whenSent = (request: Request): typeof WhenSent.Service => {
  if (request.method === "HEAD") return () => {}
  if (!(request.source instanceof IncomingMessage)) return (record) => record()
  const response = NodeHttpServerRequest.toServerResponse(request)
  // A journal that cannot be written fails this fiber, not the process.
  return (record) => void response.once("finish", () => void Effect.runFork(Effect.sync(record)))
}

/** Middleware for every route. */
export const SentGate = {
  layer: HttpRouter.middleware(
    (route) =>
      Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) =>
        Effect.provideService(route, WhenSent, whenSent(request)),
      ),
    { global: true },
  ),
}

/** With any kind of fault except a delay, the service's answer reaches nobody. */
const inject = <E>(
  fault: Fault,
  request: Request,
  answered: Effect.Effect<Response, E>,
): Effect.Effect<Response, E> => {
  const route = Effect.provideService(answered, WhenSent, () => {})
  const { status, applied, reset, cut, malformed, body } = fault
  if (fault.hang === true) return Effect.never
  if (status !== undefined) {
    const answer = Effect.sync(() => answerOf(status, fault))
    return applied === true ? Effect.andThen(route, answer) : answer
  }
  if (reset === "before") return breakConnection(request)
  if (reset === "after") return Effect.andThen(route, breakConnection(request))
  if (cut !== undefined) return Effect.flatMap(route, (response) => cutBody(request, response, cut))
  if (malformed === undefined && body === undefined) return answered
  return Effect.map(route, (response) => withBody(response, body ?? notJson, typeOf(response)))
}

/** Middleware for the contract's routes; absent if the service has no faults. */
export const FaultGate = {
  layer: Layer.unwrap(
    Effect.map(Sandbox, (sandbox) => {
      const { faults } = sandbox.core.watch
      if (faults === undefined) return Layer.empty
      return HttpRouter.middleware((route) =>
        Effect.gen(function* () {
          const request = yield* HttpServerRequest.HttpServerRequest
          const { endpoint } = yield* matchedRoute
          if (endpoint === undefined) return yield* route
          const call = yield* Effect.provideService(callOf(endpoint, request), Sandbox, sandbox)
          const fault = judgeCall(faults.file, faults.tally, call)
          if (fault === undefined) return yield* route
          noteFault(faults, yield* Clock.currentTimeMillis, call, fault)
          if (fault.delay !== undefined) yield* Effect.sleep(durationOf(fault.delay))
          return yield* inject(fault, request, route)
        }),
      ).layer
    }),
  ),
}

// Inside of faults, outside of the contract's codecs, because an answer under a reading need not fit them.

export const sent = ({ status, body: { text, contentType } }: EdgeAnswer): Response =>
  text === "" ? HttpServerResponse.empty({ status }) : HttpServerResponse.text(text, { status, contentType })

/** What a route's path takes besides: empty, as a 405 may say it, if that is nothing. */
const otherMethods = (refused: string, path: string): string =>
  [...endpointOfRoute.keys()]
    .map((route) => route.split(" "))
    .flatMap(([method = "", own]) => (own === path && method !== refused ? [method] : []))
    .join(", ")

/** A start with a token in the other form, converted to the form that the routes read. */
const withNestedToken = <E, R>(request: Request, route: Effect.Effect<Response, E, R>) =>
  Effect.gen(function* () {
    const body = Result.getOrUndefined(parse(yield* Effect.orDie(request.text)))
    const nested = Predicate.isObject(body) ? nestedToken({ ...body }) : undefined
    if (nested === undefined) return sent(invalidBody("token_id", "token_key"))
    const made = HttpClientRequest.post(request.url, { headers: request.headers }).pipe(
      HttpClientRequest.bodyJsonUnsafe(nested),
    )
    return yield* Effect.provideService(
      route,
      HttpServerRequest.HttpServerRequest,
      HttpServerRequest.fromClientRequest(made),
    )
  })

const shaped = (reading: FullReading, endpoint: string, at: number, response: Response): Response => {
  const { status, body } = response
  const after = retryAfter(reading, endpoint, status, at)
  // A date is one of the clock here, which need not be the machine's.
  const told = { "retry-after": after, date: new Date(at).toUTCString() }
  const timed = after === undefined ? response : HttpServerResponse.setHeaders(response, told)
  const error = errorBody(reading, endpoint, status)
  if (error !== undefined) return withBody(timed, error.text, error.contentType)
  const shape = shapeBody(reading, endpoint, status)
  if (shape === undefined || body._tag !== "Uint8Array") return timed
  const value = Result.getOrUndefined(parse(new TextDecoder().decode(body.body)))
  if (!Predicate.isObject(value)) return timed
  return withBody(timed, JSON.stringify(shape({ ...value })), "application/json")
}

/** Middleware for the contract's routes and for this service's own. */
export const ReadingGate = {
  layer: Layer.unwrap(
    Effect.map(
      Sandbox,
      ({ core: { reading } }) =>
        HttpRouter.middleware((route) =>
          Effect.gen(function* () {
            const request = yield* HttpServerRequest.HttpServerRequest
            const { endpoint, path } = yield* matchedRoute
            const gateway = gatewayAnswer(reading, path)
            if (gateway !== undefined) return sent(gateway)
            const known = applicationOf(request) !== undefined
            if (endpoint === undefined || !known) return yield* route
            const refused = refusedEndpoint(reading, endpoint)
            if (refused?.status === 405)
              return HttpServerResponse.setHeader(sent(refused), "allow", otherMethods(request.method, path))
            if (refused !== undefined) return sent(refused)
            const flat = endpoint === "startTokenized" && reading.tokenized_body === "flat"
            const response = yield* flat ? withNestedToken(request, route) : route
            return shaped(reading, endpoint, yield* Clock.currentTimeMillis, response)
          }),
        ).layer,
    ),
  ),
}

/** Middleware for the contract's routes; absent if nothing outlives the process. */
export const TimeGate = {
  layer: Layer.unwrap(
    Effect.map(Sandbox, ({ keepTime }) =>
      keepTime === undefined
        ? Layer.empty
        : HttpRouter.middleware((route) => Effect.andThen(keepTime, route)).layer,
    ),
  ),
}
