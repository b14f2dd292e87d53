/**
 * The last thing that happens to what is sent: every text passes the registry of secrets, whatever wrote
 * it, and what Effect adds on its own (stack traces, units as attributes, fibers) is taken out.
 */
import { Duration, Effect, Layer, Schedule } from "effect"
import { HttpClient, HttpClientError } from "effect/http"
import type { HttpClientRequest, HttpClientResponse } from "effect/http"
import { OtlpSerialization } from "effect/observability"
import { KnownSecrets } from "../privacy/KnownSecrets.ts"

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
export const outbound = (version: string) =>
  Layer.effect(
    OtlpSerialization.OtlpSerialization,
    Effect.gen(function* () {
      const json = yield* OtlpSerialization.OtlpSerialization
      const known = yield* KnownSecrets
      return OtlpSerialization.OtlpSerialization.of({
        traces: (data) => json.traces(makeCleaning(version, known)(data)),
        logs: (data) => json.logs(makeCleaning(version, known)(data)),
        metrics: (data) => json.metrics(makeCleaning(version, known)(data)),
      })
    }),
  ).pipe(Layer.provide(OtlpSerialization.layerJson))

// The connection to a collector: bounded in time, in tries and in what waits. A collector that is slow or
// gone loses records, which is told at the end of the run, and costs the run nothing else.

export const answersWithin = Duration.seconds(5)
export const tooSlow = `it did not answer within ${Duration.toSeconds(answersWithin)} seconds`
const triesMax = 3
export const pauseBetween = Duration.seconds(1)
/** Bodies that are being sent; with a thousand records each, some megabytes. */
const underWayMax = 8

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

/** For one exporter. `whyLost`: why something did not arrive, the last time; contains no address. */
export const sendingThrough = (client: HttpClient.HttpClient) => {
  let underWay = 0
  let why: string | undefined
  const bounded = HttpClient.transform(client, (asked, request) => {
    const fail = (refusal: string) => {
      why = refusal
      return Effect.fail(givenUp(request, refusal))
    }
    if (underWay >= underWayMax) return fail("it accepts records more slowly than they arrive")
    underWay += 1
    return tried(asked).pipe(
      Effect.catch((refusal) => fail(refusal.why)),
      Effect.onInterrupt(() => Effect.sync(() => void (why ??= "the run ended before it answered"))),
      Effect.ensuring(Effect.sync(() => void (underWay -= 1))),
    )
  })
  return { client: bounded, whyLost: () => why }
}
