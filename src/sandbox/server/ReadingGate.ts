/**
 * Where a reading meets the wire: around every route of the contract, inside of faults and outside of the
 * contract's codecs, because an answer under a reading need not fit them. The service behind it knows only
 * one form.
 */
import { Clock, Effect, Layer, Predicate, Result } from "effect"
import { HttpClientRequest, HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { secretHeader } from "../../service/Api.ts"
import { endpointOfRoute } from "../faults/Faults.ts"
import { Sandbox } from "./Sandbox.ts"
import { applicationOf } from "./SandboxGate.ts"
import type { FullReading } from "../state/Reading.ts"
import {
  errorBody,
  gatewayAnswer,
  invalidBody,
  nestedToken,
  refusedEndpoint,
  retryAfter,
  shapeBody,
} from "../readings/ShapeAnswer.ts"
import type { EdgeAnswer } from "../readings/ShapeAnswer.ts"

type Response = HttpServerResponse.HttpServerResponse
type Request = HttpServerRequest.HttpServerRequest

const sent = ({ status, body: { text, contentType } }: EdgeAnswer): Response =>
  text === "" ? HttpServerResponse.empty({ status }) : HttpServerResponse.text(text, { status, contentType })

const parsed = (text: string) => Result.getOrUndefined(Result.try((): unknown => JSON.parse(text)))

/** A start with a token in the other form, converted to the form that the routes read. */
const withNestedToken = <E, R>(request: Request, route: Effect.Effect<Response, E, R>) =>
  Effect.gen(function* () {
    const body = parsed(yield* Effect.orDie(request.text))
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

const withBody = (response: Response, text: string, contentType: string): Response =>
  HttpServerResponse.setBody(response, HttpServerResponse.text(text, { contentType }).body)

const shaped = (reading: FullReading, endpoint: string, at: number, response: Response): Response => {
  const { status, body } = response
  const after = retryAfter(reading, endpoint, status, at)
  const timed = after === undefined ? response : HttpServerResponse.setHeader(response, "retry-after", after)
  const error = errorBody(reading, endpoint, status)
  if (error !== undefined) return withBody(timed, error.text, error.contentType)
  const shape = shapeBody(reading, endpoint, status)
  const value = body._tag === "Uint8Array" ? parsed(new TextDecoder().decode(body.body)) : undefined
  if (shape === undefined || !Predicate.isObject(value)) return timed
  return withBody(timed, JSON.stringify(shape({ ...value })), "application/json")
}

/** Middleware for the contract's routes and for the widget's. */
export const ReadingGate = {
  layer: Layer.unwrap(
    Effect.map(
      Sandbox,
      ({ reading }) =>
        HttpRouter.middleware((route) =>
          Effect.gen(function* () {
            const request = yield* HttpServerRequest.HttpServerRequest
            const { route: matched } = yield* HttpRouter.RouteContext
            const gateway = gatewayAnswer(reading, matched.path)
            if (gateway !== undefined) return sent(gateway)
            const endpoint = endpointOfRoute.get(`${matched.method} ${matched.path}`)
            const known = applicationOf(request.headers[secretHeader.toLowerCase()]) !== undefined
            if (endpoint === undefined || !known) return yield* route
            const refused = refusedEndpoint(reading, endpoint)
            if (refused !== undefined) return sent(refused)
            const flat = endpoint === "startTokenized" && reading.tokenized_body === "flat"
            const response = yield* flat ? withNestedToken(request, route) : route
            return shaped(reading, endpoint, yield* Clock.currentTimeMillis, response)
          }),
        ).layer,
    ),
  ),
}
