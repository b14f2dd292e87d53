/**
 * The connection to a collector: bounded in time, in tries and in what waits, and counted. A collector that
 * is slow or gone loses records, which are told at the end of the run, and costs the run nothing else.
 */
import { Duration, Effect, Result } from "effect"
import { HttpClient, HttpClientError } from "effect/http"
import type { HttpClientRequest, HttpClientResponse } from "effect/http"
import type { Counted, Signal } from "./Outbound.ts"

const answersWithin = Duration.seconds(5)
const triesMax = 3
const pauseBetween = Duration.seconds(1)
/** Of each signal, bodies that are being sent; with a thousand records each, some megabytes. */
const underWayMax = 8

export interface Sent {
  delivered: number
  underWay: number
  /** Whether the newest body arrived: metrics are totals, so the newest says everything. */
  isUpToDate: boolean
  /** Why a body did not arrive, the last time; contains no address. */
  why: string | undefined
}

export type Deliveries = Readonly<Record<Signal, Sent>>

const nothingSent = (): Sent => ({ delivered: 0, underWay: 0, isUpToDate: false, why: undefined })

export const noDeliveries = (): Deliveries => ({
  traces: nothingSent(),
  metrics: nothingSent(),
  logs: nothingSent(),
})

/** What the OTLP specification names as worth another try. */
const isPassing = (status: number): boolean => [429, 502, 503, 504].includes(status)

type Refusal = { readonly why: string; readonly isPassing: boolean }

const reasonOf = (status: number): string =>
  status >= 300 && status < 400 ? `it redirects (${status}), which is not followed` : `it answered ${status}`

/** One try: the whole answer is read, or the time is over. */
const once = (
  client: HttpClient.HttpClient,
  request: HttpClientRequest.HttpClientRequest,
): Effect.Effect<HttpClientResponse.HttpClientResponse, Refusal> =>
  client.execute(request).pipe(
    Effect.tap((response) => Effect.ignore(response.arrayBuffer)),
    Effect.mapError((): Refusal => ({ why: "it cannot be reached", isPassing: true })),
    Effect.filterOrFail(
      ({ status }) => status >= 200 && status < 300,
      ({ status }): Refusal => ({ why: reasonOf(status), isPassing: isPassing(status) }),
    ),
    Effect.timeoutOrElse({
      duration: answersWithin,
      orElse: () =>
        Effect.fail<Refusal>({
          why: `it did not answer within ${Duration.toSeconds(answersWithin)} seconds`,
          isPassing: true,
        }),
    }),
    Effect.provideService(HttpClient.TracerDisabledWhen, () => true),
    Effect.provideService(HttpClient.TracerPropagationEnabled, false),
  )

const tried = Effect.fnUntraced(function* (
  client: HttpClient.HttpClient,
  request: HttpClientRequest.HttpClientRequest,
) {
  for (let tries = 1; ; tries++) {
    const answer = yield* Effect.result(once(client, request))
    if (Result.isSuccess(answer)) return answer.success
    if (!answer.failure.isPassing || tries === triesMax) return yield* Effect.fail(answer.failure)
    yield* Effect.sleep(pauseBetween)
  }
})

/** Not to be tried again by Effect's exporters, which set no bound to what waits. */
const givenUp = (request: HttpClientRequest.HttpClientRequest, why: string) =>
  new HttpClientError.HttpClientError({
    reason: new HttpClientError.EncodeError({ request, description: why }),
  })

export const sendingThrough = (
  client: HttpClient.HttpClient,
  counted: Counted,
  deliveries: Deliveries,
): HttpClient.HttpClient =>
  HttpClient.makeWith(
    (asked: Effect.Effect<HttpClientRequest.HttpClientRequest, HttpClientError.HttpClientError>) =>
      Effect.flatMap(asked, (request) => {
        const body = counted.get(request.body)
        if (body === undefined) return Effect.fail(givenUp(request, "a body that is not ours"))
        const sent = deliveries[body.signal]
        const fail = (why: string) => {
          sent.why = why
          sent.isUpToDate = false
          return Effect.fail(givenUp(request, why))
        }
        if (sent.underWay >= underWayMax) return fail("it takes records more slowly than they come")
        sent.underWay += 1
        sent.isUpToDate = false
        return tried(client, request).pipe(
          Effect.tap(() =>
            Effect.sync(() => {
              sent.delivered += body.records
              sent.isUpToDate = true
            }),
          ),
          Effect.catch(({ why }) => fail(why)),
          Effect.onInterrupt(() => Effect.sync(() => void (sent.why ??= "the run ended before it answered"))),
          Effect.ensuring(Effect.sync(() => void (sent.underWay -= 1))),
        )
      }),
    Effect.succeed,
  )
