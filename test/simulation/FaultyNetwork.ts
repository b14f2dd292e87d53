/**
 * The network between pipeline and service in a simulated night: every request may be refused, throttled, answered
 * with an error before or after it took effect, lost on either way, or cut in half. Faults come from the seed alone,
 * and the real codecs run on both sides.
 */
import { Effect } from "effect"
import { HttpClient, HttpClientError, HttpServerResponse } from "effect/http"
import type { HttpClientRequest, HttpClientResponse } from "effect/http"
import type { World } from "./World.ts"

/** Chances, each per request. */
export interface FaultRates {
  /** The connection is refused: nothing was sent. */
  readonly refused: number
  readonly lostBefore: number
  readonly lostAfter: number
  readonly throttled: number
  readonly unavailable: number
  readonly errorBefore: number
  readonly errorAfter: number
  readonly cutBody: number
}

export const calm: FaultRates = {
  refused: 0,
  lostBefore: 0,
  lostAfter: 0,
  throttled: 0,
  unavailable: 0,
  errorBefore: 0,
  errorAfter: 0,
  cutBody: 0,
}

export type Perform = <A, E>(effect: Effect.Effect<A, E>) => Effect.Effect<A, E>

const transportError = (request: HttpClientRequest.HttpClientRequest, code: string, syscall: string) =>
  new HttpClientError.HttpClientError({
    reason: new HttpClientError.TransportError({
      request,
      description: code,
      cause: Object.assign(new Error(code), { code, syscall }),
    }),
  })

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
}

/** A client whose requests travel over the faulty network. */
export const faultyClient = (network: Network): HttpClient.HttpClient => {
  const { world, random } = network
  const travel = () => Effect.sleep(1 + Math.floor(random() ** 4 * 400))
  return HttpClient.make((request) =>
    Effect.gen(function* () {
      const rates = network.rates()
      const fault = pickFault(rates, random())
      world.note(`${request.method} ${request.url} ${fault ?? ""}`)
      yield* travel()
      if (fault === "refused") return yield* transportError(request, "ECONNREFUSED", "connect")
      if (fault === "throttled")
        return answerOf(
          request,
          429,
          random() < 0.5 ? { "retry-after": String(1 + Math.floor(random() * 30)) } : {},
        )
      if (fault === "unavailable") return answerOf(request, 503)
      if (fault === "errorBefore") return answerOf(request, random() < 0.5 ? 502 : 500)
      if (fault === "lostBefore") return yield* broken(request, random())
      const response = yield* network.perform(network.service.execute(request))
      yield* travel()
      if (fault === "lostAfter") return yield* broken(request, random())
      if (fault === "errorAfter") return answerOf(request, random() < 0.5 ? 504 : 500)
      if (fault === "cutBody") return yield* cutInHalf(request, response)
      return response
    }),
  )
}

/** A reset at once, or silence until the client gives up. */
const broken = (request: HttpClientRequest.HttpClientRequest, random: number) =>
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
