/**
 * One call as one request and one answer: sends it with the secret, without tracing and without redirects,
 * and passes the parts of the answer to the call's own reader, all limited in bytes and time and cleaned of
 * every secret that this process knows, so that no code after this can land, log or show one. Errors carry
 * neither request nor body; if nobody reads an answer, its connection is released or closed.
 */
import { Context, Duration, Effect, Predicate, Result, type Redacted, type Stream } from "effect"
import { FetchHttpClient, Headers, HttpClient } from "effect/http"
import type { HttpClientError, HttpClientResponse } from "effect/http"
import { limited } from "../base/Time.ts"
import { secretHeader } from "../service/Api.ts"
import { measureLargeBody } from "../service/BodyBounds.ts"
import { cleanBody, type Cleaning } from "../privacy/CleanBody.ts"
import { KnownSecrets } from "../privacy/KnownSecrets.ts"
import {
  CurrentHold,
  bounded,
  cleanedBytes,
  isHarmless,
  keptBytes,
  readBytes,
  readSmall,
  told,
  whileHeld,
} from "./AnswerBytes.ts"
import type { AnswerLimits, Call, Hold } from "./AnswerBytes.ts"
import {
  CallObserver,
  compileEndpoint,
  failedStatus,
  failedTransport,
  isPage,
  observing,
} from "./CallFailures.ts"
import type { AnyParts, CallParts, Endpoint } from "./CallFailures.ts"
import { AnswerLost, checkSecret, type Body, type CallFailure } from "./Service.ts"
import { readBody, readTextBody, type TextBody } from "./Views.ts"

const mega = 1024 * 1024
// A kilobyte per second: a slower connection would hold its task until the total time limit.
const flow = { window: "60 seconds", windowBytesMin: 64 * 1024 } as const

/** By what an answer may be. */
export const defaultLimits = {
  // A state, an acceptance or a list is a few kilobytes: if it takes a minute, it will not arrive.
  small: { bytesMax: 8 * mega, timeout: "60 seconds", large: undefined },
  // Flow results and profiles. The largest need a megabyte per second, the largest document half of one.
  results: { bytesMax: 64 * mega, timeout: "5 minutes", large: { total: "5 minutes", ...flow } },
  attachment: { bytesMax: 1024 * mega, timeout: "60 seconds", large: { total: "30 minutes", ...flow } },
} satisfies Record<string, AnswerLimits>
type AnswerSize = keyof typeof defaultLimits
export type ServiceLimits = Readonly<Record<AnswerSize, AnswerLimits>>

/** Reads a body and parses it, once there is room for the parsed value. */
const readCounted = Effect.fnUntraced(function* (
  call: Call,
  response: HttpClientResponse.HttpClientResponse,
  grow: Hold["grow"],
): Effect.fn.Return<TextBody, CallFailure> {
  const { bytes, isCut } = yield* readBytes(call, response, grow)
  if (isCut) return { ...readBody(bytes, `it is larger than ${call.bytesMax} bytes`), text: undefined }
  const { valueBytes, broken } = measureLargeBody(bytes)
  // Its text, at two bytes per character, is in memory beside its bytes while it is parsed.
  if (broken === undefined && valueBytes > 0) yield* grow(2 * bytes.byteLength + valueBytes)
  return readTextBody(bytes, broken)
})

/** A body that is read, and its content before blanking. */
interface Issued {
  readonly body: Body
  readonly unblanked: unknown
}

const shapes = {
  value: (json: unknown) => json !== undefined,
  object: Predicate.isObject,
  list: (json: unknown) => Array.isArray(json),
}

/** The parts of an answer; each body part may be read once, and exactly one of them should be. */
export class Answer {
  readonly #call: Call
  readonly #clean: (raw: TextBody) => Body
  readonly response: HttpClientResponse.HttpClientResponse
  readonly http_status: number

  constructor(call: Call, response: HttpClientResponse.HttpClientResponse, clean: (raw: TextBody) => Body) {
    this.#call = call
    this.#clean = clean
    this.response = response
    this.http_status = response.status
  }

  get call(): string {
    return this.#call.name
  }

  get #read(): Effect.Effect<Issued, CallFailure> {
    const { http_status, response } = this
    const cleaned = (raw: TextBody, hold: Pick<Hold, "newest"> | undefined) => {
      const body = this.#clean(raw)
      if (hold !== undefined) hold.newest = { http_status, bytes: body.bytes }
      return { body, unblanked: raw.json }
    }
    // Most bodies are too small for anything to wait for their memory.
    return isHarmless(this.#call, response)
      ? Effect.flatMap(CurrentHold, (hold) =>
          Effect.map(readSmall(this.#call, response), (bytes) =>
            cleaned(readTextBody(bytes, measureLargeBody(bytes).broken), hold),
          ),
        )
      : whileHeld((hold) =>
          Effect.map(readCounted(this.#call, response, hold.grow), (raw) => cleaned(raw, hold)),
        )
  }

  /** The body as it came, JSON or not. */
  get body(): Effect.Effect<Body, CallFailure> {
    return Effect.map(this.#read, bodyOf)
  }
  /**
   * A body that must be JSON of this shape, and its content before blanking; anything else is a lost answer.
   * A body that exceeds a limit is returned as it is and says so itself.
   */
  issued(shape: keyof typeof shapes): Effect.Effect<Issued, CallFailure> {
    const { http_status, call, response } = this
    return Effect.flatMap(this.#read, (issued) => {
      if (shapes[shape](issued.unblanked) || issued.body.unusable !== undefined) return Effect.succeed(issued)
      const { "content-encoding": encoding = "identity" } = response.headers
      const compressed = encoding === "identity" ? "" : ", but is compressed, which was not asked for"
      const message = `${call}: the answer contains no JSON ${shape}${compressed} (${http_status})`
      return Effect.fail(new AnswerLost({ message, http_status }))
    })
  }
  json(shape: keyof typeof shapes): Effect.Effect<Body, CallFailure> {
    return Effect.map(this.issued(shape), bodyOf)
  }
  get stream(): Stream.Stream<Uint8Array, CallFailure> {
    return bounded(this.#call, this.response)
  }

  /** Frees the connection if the status alone is the answer; a body that breaks off does not matter. */
  get discard(): Effect.Effect<void> {
    const call = discarded(this.#call)
    return Effect.ignore(whileHeld(({ grow }) => readBytes(call, this.response, grow)))
  }
  get isPage(): boolean {
    return isPage(this.#call, this.response)
  }
  /** After freeing the connection. */
  get undocumented(): Effect.Effect<never, CallFailure> {
    return Effect.andThen(this.discard, this.failed)
  }
  /** The failure for this status; its body was read or discarded. */
  get failed(): Effect.Effect<never, CallFailure> {
    // Suspended: most answers are documented, so the error and its stack trace are not built for them.
    return Effect.suspend(() => Effect.flatMap(failedStatus(this.#call, this.response), Effect.fail))
  }
}

const bodyOf = ({ body }: Issued): Body => body

/** How much of an unneeded body is read to free its connection; beyond that it is closed. */
const discarded = (call: Call): Call => ({ ...call, bytesMax: Math.min(call.bytesMax, keptBytes) })

/**
 * A span per request would cost a quarter of a request and could record its headers, so tracing is off; a
 * client that follows redirects by itself (fetch) is told not to.
 */
const callContext = Context.make(HttpClient.TracerDisabledWhen, () => true).pipe(
  Context.add(HttpClient.TracerPropagationEnabled, false),
  Context.add(Headers.CurrentRedactedNames, [
    "authorization",
    "cookie",
    "set-cookie",
    secretHeader.toLowerCase(),
  ]),
  Context.add(FetchHttpClient.RequestInit, { redirect: "manual" as const }),
)

const requestHeaders = (secret: string) =>
  Headers.fromInput({
    [secretHeader]: secret,
    accept: "application/json, */*;q=0.1",
    // Bodies are landed as they arrive and undici decompresses nothing, so they must not arrive compressed.
    "accept-encoding": "identity",
  })

const cleaner =
  (known: KnownSecrets, cleaningOf: (json: unknown) => Cleaning) =>
  ({ text, ...raw }: TextBody): Body => {
    const { json, unusable } = raw
    if (unusable !== undefined) {
      // Nobody reads more of it, and searching all of it would take seconds.
      const beginning = cleanBody(raw.bytes.slice(0, cleanedBytes), known)
      return readBody(beginning.slice(0, keptBytes), unusable)
    }
    const bytes = cleanBody(raw.bytes, known, { ...cleaningOf(json), text })
    return bytes === raw.bytes ? raw : readBody(bytes)
  }

/** Prepares the calls with this secret; fails before any request if the secret cannot be used safely. */
export const openExchange = Effect.fnUntraced(function* (
  app_secret: Redacted.Redacted<string>,
  overrides: Partial<ServiceLimits> = {},
) {
  const secret = yield* Effect.fromResult(checkSecret(app_secret))
  const known = yield* KnownSecrets
  known.hold(secret, "process")
  const client = yield* HttpClient.HttpClient
  const observe = yield* CallObserver
  const headers = requestHeaders(secret)
  const limits: ServiceLimits = { ...defaultLimits, ...overrides }
  return <E extends Endpoint, A>(
    endpoint: E,
    root: string,
    size: AnswerSize,
    read: (answer: Answer) => Effect.Effect<A, CallFailure>,
    cleaningOf: (json: unknown) => Cleaning = () => ({}),
  ) => {
    const clean = cleaner(known, cleaningOf)
    const call: Call = {
      name: endpoint.identifier,
      hasEffect: endpoint.method !== "GET" && endpoint.method !== "HEAD",
      ...limits[size],
    }
    const buildRequest = compileEndpoint(endpoint, root, headers)
    const duration = Duration.fromInputUnsafe(call.timeout)
    const lost = () =>
      // In doubt, it was sent: a failed connection would have been reported long before this.
      Effect.fail(new AnswerLost({ message: `${call.name}: no answer within ${told(duration)}` }))
    const inTime = limited({ duration, orElse: lost })
    const onFailure = (error: HttpClientError.HttpClientError) =>
      Effect.fail(failedTransport(call.name, error))
    const watched = observing(observe, endpoint, root)
    return (parts: CallParts<E> & AnyParts): Effect.Effect<A, CallFailure> => {
      const request = buildRequest(parts)
      if (Result.isFailure(request)) return Effect.fail(request.failure)
      return watched(parts, (answered) => {
        const onSuccess = (response: HttpClientResponse.HttpClientResponse) => {
          answered(response.status)
          return read(new Answer(call, response, clean))
        }
        return client
          .execute(request.success)
          .pipe(Effect.provideContext(callContext), Effect.matchEffect({ onSuccess, onFailure }), inTime)
      })
    }
  }
})
