/**
 * Webhooks in a simulated night: deliveries that are lost, late and doubled on their way to whichever process of the
 * pipeline listens at the moment, and a forger who sends what nobody raised: ids of ours, ids of nobody, dates of
 * yesterday and of next year, and what is no event at all. None of it may change more than when the state is read.
 */
import { Effect } from "effect"
import { HttpClient, HttpClientError, HttpServerResponse, type HttpClientRequest } from "effect/http"
import { readEvent } from "../../src/client/Views.ts"
import type { HintBoard } from "../../src/client/Hints.ts"
import type { Truth } from "../../src/sandbox/admin/Truth.ts"
import type { World } from "./World.ts"

export const receiverUrl = "http://receiver.invalid/"

/** Where the pipeline listens; nobody does while it is dead. */
export interface Listening {
  board: HintBoard | undefined
}

const encoder = new TextEncoder()
const bytesOf = (request: HttpClientRequest.HttpClientRequest): Uint8Array =>
  request.body._tag === "Uint8Array" ? request.body.body : encoder.encode("")

const hand = (listening: Listening, url: string, body: Uint8Array): number => {
  if (listening.board === undefined) return 502
  const event = readEvent(new URL(url).searchParams, body)
  if (event === undefined) return 400
  listening.board.offer(event)
  return 204
}

/** The way of a delivery; `random` is a number in [0, 1), from the seed. */
export const deliveryNetwork = (listening: Listening, random: () => number, lossRate: number) =>
  HttpClient.make((request, url) =>
    Effect.gen(function* () {
      yield* Effect.sleep(1 + Math.floor(random() ** 6 * 30_000))
      const reset = new HttpClientError.HttpClientError({
        reason: new HttpClientError.TransportError({ request, description: "ECONNRESET" }),
      })
      if (random() < lossRate) return yield* reset
      const status = hand(listening, url.href, bytesOf(request))
      yield* Effect.sleep(1 + Math.floor(random() ** 6 * 1_000))
      // It arrived, and the service does not learn it.
      if (random() < lossRate) return yield* reset
      const answer = HttpServerResponse.empty({ status })
      return HttpServerResponse.toClientResponse(answer, { request })
    }),
  )

const dayMs = 24 * 3_600_000

/** Sends a bounded number of forgeries, some in floods. */
export const forger = (
  world: World,
  listening: Listening,
  truth: () => Truth,
  random: () => number,
  forgeries: number,
): Effect.Effect<void> =>
  Effect.gen(function* () {
    for (let sent = 0; sent < forgeries; sent += 1) {
      if (random() < 0.3) yield* Effect.sleep(Math.floor(random() ** 2 * 300_000))
      const { executions } = truth()
      const aim = executions[Math.floor(random() ** 0.3 * executions.length)]
      const dates = [world.now(), world.now() - dayMs, world.now() + 365 * dayMs, world.now() + 120_000]
      const event = {
        event: random() < 0.7 ? "ended" : "auth_ended",
        execution_id: random() < 0.8 ? aim?.execution_id : "nobody",
        session_id: aim?.session_id,
        status_reason: random() < 0.5 ? "COMPLETED" : "BLOCKED_USER",
        date: new Date(dates[Math.floor(random() * dates.length)] ?? 0).toISOString(),
      }
      const body = random() < 0.1 ? "{ no event" : JSON.stringify(event)
      hand(listening, receiverUrl, encoder.encode(body))
    }
  })
