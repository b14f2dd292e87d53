/**
 * The network between pipeline and service in a simulated night: every request may be refused, throttled, answered
 * with an error before or after it took effect, lost on either way, or cut in half. Faults come from the seed alone,
 * and the real codecs run on both sides.
 */
import { Effect, Stream } from "effect"
import { HttpClient, HttpClientError, HttpServerResponse } from "effect/http"
import type { HttpClientRequest, HttpClientResponse } from "effect/http"
import { NeverBegun } from "../../src/client/CallFailures.ts"
import type { World } from "./World.ts"

/** Chances, each per request. */
export interface FaultRates {
  /** The connection is refused: nothing was sent. */
  readonly refused: number
  readonly lostBefore: number
  readonly lostAfter: number
  readonly throttled: number
  /** The same with a Retry-After that nobody can wait for, or that cannot be read. */
  readonly absurd: number
  readonly unavailable: number
  readonly errorBefore: number
  readonly errorAfter: number
  readonly cutBody: number
  /** The body comes byte by byte and never ends. */
  readonly dripping: number
}

export const calm: FaultRates = {
  refused: 0,
  lostBefore: 0,
  lostAfter: 0,
  throttled: 0,
  absurd: 0,
  unavailable: 0,
  errorBefore: 0,
  errorAfter: 0,
  cutBody: 0,
  dripping: 0,
}

export type Perform = <A, E>(effect: Effect.Effect<A, E>) => Effect.Effect<A, E>

export const transportError = (
  request: HttpClientRequest.HttpClientRequest,
  code: string,
  syscall: "connect" | "read",
) => {
  const broken = Object.assign(new Error(code), { code, syscall })
  const cause = syscall === "connect" ? new NeverBegun(broken) : broken
  return new HttpClientError.HttpClientError({
    reason: new HttpClientError.TransportError({ request, description: code, cause }),
  })
}

const answerOf = (
  request: HttpClientRequest.HttpClientRequest,
  status: number,
  headers: Record<string, string> = {},
) =>
  HttpServerResponse.toClientResponse(
    HttpServerResponse.jsonUnsafe({ detail: "a fault" }, { status, headers }),
    {
      request,
    },
  )

export interface Network {
  readonly world: World
  /** The service's own client, run on the service's process. */
  readonly service: HttpClient.HttpClient
  readonly perform: Perform
  /** A number in [0, 1), from the seed. */
  readonly random: () => number
  readonly rates: () => FaultRates
  /** Which process of the pipeline asks: what one was told, the next one does not know. */
  readonly process: () => number
  /** Every request that came before the time to which an answer to the same one had put it off. */
  readonly tooSoon: Array<string>
}

const absurdWaits = ["99999999", "-5", "soon", "1e9", "Thu, 01 Jan 2099 00:00:00 GMT", "7200"]

/** What a wait is asked for: this call about this execution, session, login or ticket. */
const subjectOf = (request: HttpClientRequest.HttpClientRequest): string => {
  const text = request.body._tag === "Uint8Array" ? new TextDecoder().decode(request.body.body) : "{}"
  const { customer_id, engine_reference, ticket } = JSON.parse(text) as Readonly<Record<string, unknown>>
  return JSON.stringify([request.method, request.url, customer_id, engine_reference, ticket])
}

/** Notes who comes before the end of a Retry-After in seconds: promise 10. */
const watchWaits = ({ world, process, tooSoon }: Network) => {
  const closedUntil = new Map<string, number>()
  const keyOf = (request: HttpClientRequest.HttpClientRequest) => `${process()} ${subjectOf(request)}`
  return {
    asked: (request: HttpClientRequest.HttpClientRequest) => {
      if (world.now() < (closedUntil.get(keyOf(request)) ?? 0))
        tooSoon.push(`${request.method} ${request.url}`)
    },
    told: (request: HttpClientRequest.HttpClientRequest, { status, headers }: Answered) => {
      const seconds = headers["retry-after"] ?? ""
      if ((status !== 429 && status !== 503) || !/^\d+$/.test(seconds)) return
      closedUntil.set(keyOf(request), world.now() + Number(seconds) * 1_000)
    },
  }
}
type Answered = Pick<HttpClientResponse.HttpClientResponse, "status" | "headers">

/** A client whose requests travel over the faulty network. */
export const faultyClient = (network: Network): HttpClient.HttpClient => {
  const { world, random } = network
  const travel = () => Effect.sleep(1 + Math.floor(random() ** 4 * 400))
  const waits = watchWaits(network)
  const ask = (request: HttpClientRequest.HttpClientRequest) =>
    Effect.gen(function* () {
      const rates = network.rates()
      const fault = pickFault(rates, random())
      waits.asked(request)
      world.note(`${request.method} ${request.url} ${fault ?? ""}`)
      yield* travel()
      if (fault === "refused") return yield* transportError(request, "ECONNREFUSED", "connect")
      if (fault === "throttled")
        return answerOf(
          request,
          429,
          random() < 0.5 ? { "retry-after": String(1 + Math.floor(random() * 30)) } : {},
        )
      if (fault === "absurd")
        return answerOf(request, 429, {
          "retry-after": absurdWaits[Math.floor(random() * absurdWaits.length)] ?? "",
        })
      if (fault === "unavailable") return answerOf(request, 503)
      if (fault === "errorBefore") return answerOf(request, random() < 0.5 ? 502 : 500)
      if (fault === "lostBefore") return yield* brokenAnswer(request, random())
      const response = yield* network.perform(network.service.execute(request))
      yield* travel()
      if (fault === "lostAfter") return yield* brokenAnswer(request, random())
      if (fault === "errorAfter") return answerOf(request, random() < 0.5 ? 504 : 500)
      if (fault === "cutBody") return yield* cutInHalf(request, response)
      if (fault === "dripping") return dripped(request, response)
      return response
    })
  return HttpClient.make((request) =>
    Effect.tap(ask(request), (response) => Effect.sync(() => waits.told(request, response))),
  )
}

const dripped = (
  request: HttpClientRequest.HttpClientRequest,
  { status }: HttpClientResponse.HttpClientResponse,
) => {
  const bytes = Stream.fromEffectRepeat(Effect.as(Effect.sleep("1 second"), new TextEncoder().encode(" ")))
  const body = HttpServerResponse.stream(bytes, { status, contentType: "application/json" })
  return HttpServerResponse.toClientResponse(body, { request })
}

/** A reset at once, or silence until the client gives up. */
export const brokenAnswer = (request: HttpClientRequest.HttpClientRequest, random: number) =>
  random < 0.8 ? Effect.fail(transportError(request, "ECONNRESET", "read")) : Effect.never

const pickFault = (rates: FaultRates, random: number): keyof FaultRates | undefined => {
  let rest = random
  for (const [fault, rate] of Object.entries(rates) as ReadonlyArray<[keyof FaultRates, number]>) {
    if (rest < rate) return fault
    rest -= rate
  }
  return undefined
}

const cutInHalf = Effect.fnUntraced(function* (
  request: HttpClientRequest.HttpClientRequest,
  response: HttpClientResponse.HttpClientResponse,
) {
  const bytes = new Uint8Array(yield* response.arrayBuffer)
  const half = bytes.slice(0, Math.floor(bytes.length / 2))
  return HttpServerResponse.toClientResponse(
    HttpServerResponse.uint8Array(half, { status: response.status, contentType: "application/json" }),
    { request },
  )
})
