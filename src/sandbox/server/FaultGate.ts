/**
 * Where faults happen: around every route of the contract, before its gate and after its codecs, so that a
 * fault looks like one of the network or of a server. Over HTTP the socket itself breaks; in process the
 * request fails as a client's would.
 */
import { IncomingMessage, ServerResponse } from "node:http"
import * as NodeHttpServerRequest from "@effect/platform-node/NodeHttpServerRequest"
import { Clock, Duration, Effect, Layer, Option, Result, Schema, Stream } from "effect"
import { HttpMethod, HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { secretHeader } from "../../service/Api.ts"
import { AnswerLost } from "../executions/NoteDelivery.ts"
import { readDuration } from "../../base/Text.ts"
import { noteFault } from "../core/CallWatch.ts"
import { judgeCall } from "../faults/FaultPlan.ts"
import type { Call } from "../faults/FaultPlan.ts"
import { endpointOfRoute } from "../faults/Faults.ts"
import type { Fault } from "../faults/Faults.ts"
import { Sandbox } from "./Sandbox.ts"
import { applicationOf } from "./SandboxGate.ts"

type Response = HttpServerResponse.HttpServerResponse
type Request = HttpServerRequest.HttpServerRequest

/** The connection broke: in process there is no socket to show it. */
export class ConnectionLost extends Schema.TaggedError<ConnectionLost>()("ConnectionLost", {
  message: Schema.String,
}) {}
const lost = () => new ConnectionLost({ message: "ECONNRESET: a fault broke the connection" })

const StartBody = Schema.fromJsonString(
  Schema.Struct({
    customer_id: Schema.optionalKey(Schema.Unknown),
    engine_reference: Schema.optionalKey(Schema.Unknown),
    execution_id: Schema.optionalKey(Schema.Unknown),
  }),
)
const decodeStart = Schema.decodeUnknownResult(StartBody)
const textOf = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined)

/** What a request shows about itself: its body may name customer and engine, its path what they belong to. */
const callOf = Effect.fnUntraced(function* (endpoint: string, request: Request) {
  const { owner } = yield* Sandbox
  const { params } = yield* HttpRouter.RouteContext
  const text = HttpMethod.hasBody(request.method) ? yield* Effect.orDie(request.text) : ""
  const body = Result.getOrElse(decodeStart(text), (): typeof StartBody.Type => ({}))
  const execution_id = params["execution_id"] ?? textOf(body.execution_id)
  const owned = owner({ execution_id, session_id: params["session_id"], token_id: params["token_id"] })
  const call: Call = {
    endpoint,
    customer: textOf(body.customer_id) ?? owned.customer_id,
    engine: textOf(body.engine_reference) ?? params["engine_reference"] ?? owned.engine_reference,
    application: applicationOf(request.headers[secretHeader.toLowerCase()])?.app_id,
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

const replaceBody = (response: Response, body: string): Response =>
  HttpServerResponse.setBody(response, HttpServerResponse.text(body, { contentType: typeOf(response) }).body)

const typeOf = (response: Response): string => response.headers["content-type"] ?? "application/json"

const isJson = (text: string): boolean => Result.isSuccess(Result.try(() => JSON.parse(text) as unknown))

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
    contentType: isJson(text) ? "application/json" : "text/plain",
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
  return Effect.succeed(
    HttpServerResponse.stream(stream, {
      status,
      headers,
      contentType: typeOf(response),
      contentLength: whole,
    }),
  )
}

/** With any kind of fault except a delay, the service's answer reaches nobody. */
const inject = <E>(
  fault: Fault,
  request: Request,
  answered: Effect.Effect<Response, E>,
): Effect.Effect<Response, E> => {
  const route = Effect.provideService(answered, AnswerLost, true)
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
  return Effect.map(route, (response) => replaceBody(response, body ?? notJson))
}

/** Middleware for the contract's routes; absent if the service has no faults. */
export const FaultGate = {
  layer: Layer.unwrap(
    Effect.map(Sandbox, (sandbox) => {
      const { faults } = sandbox.watch
      if (faults === undefined) return Layer.empty
      return HttpRouter.middleware((route) =>
        Effect.gen(function* () {
          const request = yield* HttpServerRequest.HttpServerRequest
          const { route: matched } = yield* HttpRouter.RouteContext
          const endpoint = endpointOfRoute.get(`${matched.method} ${matched.path}`)
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
