/**
 * The last thing that happens to what is sent: every text passes the registry of secrets, whatever wrote
 * it, and what Effect adds on its own (stack traces, units as attributes, fibers) is taken out. Tells how
 * many records a body has, so that lost ones can be counted.
 */
import { Duration, Effect, Layer, Schedule } from "effect"
import { HttpClient, HttpClientError } from "effect/http"
import type { HttpBody, HttpClientRequest, HttpClientResponse } from "effect/http"
import { OtlpSerialization } from "effect/observability"
import { sumOf } from "../base/Text.ts"
import { KnownSecrets } from "../privacy/KnownSecrets.ts"

export type Signal = "traces" | "metrics" | "logs"

/** What a body carries, by the body itself. */
export type Counted = WeakMap<object, { readonly signal: Signal; readonly records: number }>

interface KeyValue {
  readonly key: string
}

/** Effect says these of its own, and they say nothing about a run. */
const isOurs = ({ key }: KeyValue): boolean => key !== "unit" && !key.startsWith("effect.")

/** Ids of the service, which may be anything. */
const isForeign = (key: string): boolean => key === "nightjar.execution.id" || key === "nightjar.session.id"

/** The texts of one body repeat each other: each is looked at once, by the registry as it is now. */
const makeOnce = (clean: (text: string) => string) => {
  const seen = new Map<string, string>()
  return (text: string): string => {
    const known = seen.get(text)
    if (known !== undefined) return known
    const cleaned = clean(text)
    seen.set(text, cleaned)
    return cleaned
  }
}

/** Effect's own events of a failure have a stack trace, which has paths of this machine. */
const isKept = (list: string, one: unknown): boolean =>
  list === "attributes"
    ? isOurs(one as KeyValue)
    : list !== "events" || (one as { readonly name: string }).name !== "exception"

/** The same body of any signal, with our scope and every text of an attribute, a log or a status cleaned. */
const makeCleaning = (version: string, known: KnownSecrets) => {
  const clean = makeOnce((text) => known.clean(text, "own"))
  const cleaned = (value: unknown, name: string, attribute: string): unknown => {
    if (typeof value === "string") {
      if (name !== "stringValue" && name !== "message") return value
      return isForeign(attribute) ? known.clean(value, "free") : clean(value)
    }
    if (Array.isArray(value))
      return value.filter((one) => isKept(name, one)).map((one) => cleaned(one, "", attribute))
    if (typeof value !== "object" || value === null) return value
    if (name === "scope") return { name: "nightjar", version }
    const key = "key" in value && typeof value.key === "string" ? value.key : attribute
    return Object.fromEntries(Object.entries(value).map(([part, one]) => [part, cleaned(one, part, key)]))
  }
  return <Body>(body: Body): Body => cleaned(body, "", "") as Body
}

/** JSON, so that whoever wants to know what leaves can read it on the way. */
export const outbound = (counted: Counted, version: string) =>
  Layer.effect(
    OtlpSerialization.OtlpSerialization,
    Effect.gen(function* () {
      const json = yield* OtlpSerialization.OtlpSerialization
      const known = yield* KnownSecrets
      const count = (signal: Signal, records: number, body: HttpBody.HttpBody) => {
        counted.set(body, { signal, records })
        return body
      }
      return OtlpSerialization.OtlpSerialization.of({
        traces: (data) => {
          const records = sumOf(
            data.resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.map(({ spans }) => spans.length)),
          )
          return count("traces", records, json.traces(makeCleaning(version, known)(data)))
        },
        logs: (data) => {
          const records = sumOf(
            data.resourceLogs.flatMap(({ scopeLogs }) =>
              scopeLogs.map(({ logRecords = [] }) => logRecords.length),
            ),
          )
          return count("logs", records, json.logs(makeCleaning(version, known)(data)))
        },
        metrics: (data) => count("metrics", 1, json.metrics(makeCleaning(version, known)(data))),
      })
    }),
  ).pipe(Layer.provide(OtlpSerialization.layerJson))

// The connection to a collector: bounded in time, in tries and in what waits, and counted. A collector that
// is slow or gone loses records, which are told at the end of the run, and costs the run nothing else.

export const answersWithin = Duration.seconds(5)
export const tooSlow = `it did not answer within ${Duration.toSeconds(answersWithin)} seconds`
const triesMax = 3
export const pauseBetween = Duration.seconds(1)
/** Of each signal, bodies that are being sent; with a thousand records each, some megabytes. */
const underWayMax = 8

const nothingSent = () => ({
  delivered: 0,
  underWay: 0,
  /** Whether the newest body arrived: metrics are totals, so the newest says everything. */
  isUpToDate: false,
  /** Why a body did not arrive, the last time; contains no address. */
  why: undefined as string | undefined,
})

export const noDeliveries = () =>
  ({ traces: nothingSent(), metrics: nothingSent(), logs: nothingSent() }) satisfies Record<Signal, unknown>
export type Deliveries = ReturnType<typeof noDeliveries>

/** What the OTLP specification names as worth another try. */
const isPassing = (status: number): boolean => [429, 502, 503, 504].includes(status)

type Refusal = { readonly why: string; readonly isPassing: boolean }

const reasonOf = (status: number): string =>
  status >= 300 && status < 400 ? `it redirects (${status}), which is not followed` : `it answered ${status}`

/** An answer that accepts what was sent, for a receiver of notices too; it is followed nowhere. */
export const answerOf = <E>(asked: Effect.Effect<HttpClientResponse.HttpClientResponse, E>) =>
  asked.pipe(
    Effect.mapError((): Refusal => ({ why: "it cannot be reached", isPassing: true })),
    Effect.filterOrFail(
      ({ status }) => status >= 200 && status < 300,
      ({ status }): Refusal => ({ why: reasonOf(status), isPassing: isPassing(status) }),
    ),
    Effect.provideService(HttpClient.TracerDisabledWhen, () => true),
    Effect.provideService(HttpClient.TracerPropagationEnabled, false),
  )

type Asked = Effect.Effect<HttpClientResponse.HttpClientResponse, HttpClientError.HttpClientError>

/** One try: the whole answer is read, or the time is over. */
const once = (asked: Asked) =>
  answerOf(Effect.tap(asked, ({ arrayBuffer }) => Effect.ignore(arrayBuffer))).pipe(
    Effect.timeoutOrElse({
      duration: answersWithin,
      orElse: () => Effect.fail<Refusal>({ why: tooSlow, isPassing: true }),
    }),
  )

const tried = (asked: Asked) =>
  Effect.retry(once(asked), {
    while: (refusal) => refusal.isPassing,
    times: triesMax - 1,
    schedule: Schedule.spaced(pauseBetween),
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
  HttpClient.transform(client, (asked, request) => {
    const body = counted.get(request.body)
    if (body === undefined) return Effect.fail(givenUp(request, "a body that is not ours"))
    const sent = deliveries[body.signal]
    const fail = (why: string) => {
      sent.why = why
      sent.isUpToDate = false
      return Effect.fail(givenUp(request, why))
    }
    if (sent.underWay >= underWayMax) return fail("it accepts records more slowly than they arrive")
    sent.underWay += 1
    sent.isUpToDate = false
    return tried(asked).pipe(
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
  })
