/**
 * One call as one request and one answer: sends it with the secret, without tracing and without redirects,
 * and hands the answer's parts to the call's own reading, all of it bounded in bytes and time. Errors carry
 * neither request nor body; the connection of an answer that nobody reads is given back or closed.
 */
import { Context, Duration, Effect, Result, Stream } from "effect"
import { FetchHttpClient, Headers, HttpClient } from "effect/http"
import type { HttpClientError, HttpClientResponse } from "effect/http"
import { measureLargeBody } from "../contract/BodyBounds.ts"
import { uncountedBytes, whileHeld } from "./BodiesInFlight.ts"
import type { Hold } from "./BodiesInFlight.ts"
import { failedSize, failedStatus, failedTransport } from "./CallFailures.ts"
import { compileEndpoint } from "./EndpointRequest.ts"
import type { AnyParts, CallParts, Endpoint } from "./EndpointRequest.ts"
import type { Body, CallFailure } from "./Service.ts"
import { AnswerLost } from "./Service.ts"
import { isJsonObject, readBody } from "./Views.ts"

/** Bounds of one request; the bounded thing comes first, its unit last. */
export interface ServiceLimits {
  /** Every answer but results, profiles and attachments. */
  readonly answerBytesMax: number
  /** Flow results and profiles. */
  readonly resultsBytesMax: number
  readonly attachmentBytesMax: number
  /** From sending to the last byte of an answer; for attachments to the first. */
  readonly requestTimeout: Duration.Input
  /** The same for flow results and profiles, which can be large. */
  readonly resultsTimeout: Duration.Input
  /** The longest silence inside an attachment. */
  readonly attachmentIdleTimeout: Duration.Input
}

export const defaultLimits: ServiceLimits = {
  answerBytesMax: 8 * 1024 * 1024,
  resultsBytesMax: 256 * 1024 * 1024,
  attachmentBytesMax: 1024 * 1024 * 1024,
  requestTimeout: "60 seconds",
  resultsTimeout: "5 minutes",
  attachmentIdleTimeout: "60 seconds",
}

export type AnswerSize = "small" | "results" | "attachment"

/** The parts of an answer; each body part may be taken once, and exactly one of them should be. */
export interface Answer {
  readonly call: string
  readonly http_status: number
  readonly headers: Headers.Headers
  readonly response: HttpClientResponse.HttpClientResponse
  /** Whatever came, JSON or not. */
  readonly body: Effect.Effect<Body, CallFailure>
  /**
   * A body that must be JSON, a JSON object or a JSON list; anything else is a lost answer. One that breaks a
   * bound comes as it is: it says so itself.
   */
  readonly json: Effect.Effect<Body, CallFailure>
  readonly object: Effect.Effect<Body, CallFailure>
  readonly list: Effect.Effect<Body, CallFailure>
  readonly stream: Stream.Stream<Uint8Array, CallFailure>
  /** Frees the connection where the status alone is the answer; a body that breaks off changes nothing. */
  readonly discard: Effect.Effect<void>
  /** The failure that this status is, after freeing the connection. */
  readonly undocumented: Effect.Effect<never, CallFailure>
}

type Call = { readonly name: string; readonly hasEffect: boolean; readonly bytesMax: number }

const bounded = (call: Call, response: HttpClientResponse.HttpClientResponse) => {
  let bytes = 0
  return Stream.mapError(response.stream, (error) => failedTransport(call.name, error)).pipe(
    Stream.mapEffect((chunk) => {
      bytes += chunk.byteLength
      return bytes > call.bytesMax
        ? Effect.fail(failedSize(call.name, call.hasEffect, response.status, call.bytesMax))
        : Effect.succeed(chunk)
    }),
  )
}

/** Of an answer that is too large, so much is kept to be looked at. */
const keptBytes = 1024 * 1024

/** The bytes of an answer, or the beginning of one that is larger than the call's bound. */
interface ReadBytes {
  readonly bytes: Uint8Array
  readonly isCut: boolean
}

const readBytes = (
  call: Call,
  response: HttpClientResponse.HttpClientResponse,
  headers: Headers.Headers,
  grow: Hold["grow"],
): Effect.Effect<ReadBytes, CallFailure> => {
  const promised = Number(headers["content-length"] ?? "Infinity")
  // The usual case is quick: a length that is promised and small can be read at once.
  if (promised <= Math.min(call.bytesMax, uncountedBytes)) {
    return Effect.mapBoth(response.arrayBuffer, {
      onFailure: (error) => failedTransport(call.name, error),
      onSuccess: (buffer) => ({ bytes: new Uint8Array(buffer), isCut: false }),
    })
  }
  const chunks = Stream.mapError(response.stream, (error) => failedTransport(call.name, error))
  const isPromised = promised <= call.bytesMax
  return Effect.suspend(() => {
    const filling = new Filling(call.bytesMax, isPromised ? promised : undefined)
    const reading = Stream.runForEachWhile(chunks, (chunk) =>
      // A body of no promised length is in memory twice while it is put together.
      Effect.map(grow((isPromised ? 1 : 2) * chunk.byteLength), () => filling.take(chunk)),
    )
    return Effect.map(reading, () => filling.result())
  })
}

/** Collects chunks up to a bound; whatever comes beyond it ends the reading. */
class Filling {
  readonly #bytesMax: number
  readonly #whole: Uint8Array | undefined
  #chunks: Array<Uint8Array> = []
  #filled = 0
  #isCut = false

  constructor(bytesMax: number, expected: number | undefined) {
    this.#bytesMax = expected ?? bytesMax
    this.#whole = expected === undefined ? undefined : new Uint8Array(expected)
  }

  /** False once no more is wanted. */
  take(chunk: Uint8Array): boolean {
    const fitting = chunk.subarray(0, this.#bytesMax - this.#filled)
    if (this.#whole === undefined) this.#chunks.push(fitting)
    else this.#whole.set(fitting, this.#filled)
    this.#filled += fitting.byteLength
    this.#isCut = fitting.byteLength < chunk.byteLength
    return !this.#isCut
  }

  result(): ReadBytes {
    const whole = this.#whole?.subarray(0, this.#filled) ?? Buffer.concat(this.#chunks)
    this.#chunks = []
    const bytes = this.#isCut ? whole.slice(0, keptBytes) : whole
    return { bytes: new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength), isCut: this.#isCut }
  }
}

/** Reads a body and parses it, where there is room for what parsing makes of it. */
const readCounted = Effect.fnUntraced(function* (
  call: Call,
  response: HttpClientResponse.HttpClientResponse,
  headers: Headers.Headers,
  hold: Hold,
): Effect.fn.Return<Body, CallFailure> {
  const { bytes, isCut } = yield* readBytes(call, response, headers, hold.grow)
  hold.bytes = bytes
  if (isCut) return readBody(bytes, `it is larger than ${call.bytesMax} bytes`)
  const { valueBytes, broken } = measureLargeBody(bytes)
  // Its text stands beside its bytes, in two bytes a character, while its value is made.
  if (broken === undefined && valueBytes > 0) yield* hold.grow(2 * bytes.byteLength + valueBytes)
  return readBody(bytes, broken)
})

const lostBody = (call: Call, http_status: number, wanted: string) =>
  new AnswerLost({
    message: `${call.name}: the answer holds no JSON ${wanted} (${http_status})`,
    http_status,
  })

const answerOf = (
  call: Call,
  response: HttpClientResponse.HttpClientResponse,
  idleTimeout: Duration.Input,
): Answer => {
  const http_status = response.status
  const headers = response.headers
  const body = whileHeld((hold) => readCounted(call, response, headers, hold))
  const bodyOf = (wanted: string, fits: (json: unknown) => boolean) =>
    Effect.flatMap(body, (read) =>
      fits(read.json) || read.unusable !== undefined
        ? Effect.succeed(read)
        : Effect.fail(lostBody(call, http_status, wanted)),
    )
  const discard = Effect.ignore(whileHeld(({ grow }) => readBytes(discarded(call), response, headers, grow)))
  return {
    call: call.name,
    http_status,
    headers,
    response,
    body,
    json: bodyOf("value", (json) => json !== undefined),
    object: bodyOf("object", isJsonObject),
    list: bodyOf("list", Array.isArray),
    stream: bounded(call, response).pipe(
      Stream.timeoutOrElse({
        duration: idleTimeout,
        orElse: () =>
          Stream.fail(new AnswerLost({ message: `${call.name}: the answer stopped coming`, http_status })),
      }),
    ),
    discard,
    undocumented: Effect.andThen(
      discard,
      // Suspended: the usual answer is a documented one, and an error with its stack is not made for it.
      Effect.suspend(() => Effect.flatMap(failedStatus(call.name, call.hasEffect, response), Effect.fail)),
    ),
  }
}

/** Of a body that nobody looks at so much is read, to free the connection; beyond that it is closed. */
const discarded = (call: Call): Call => ({ ...call, bytesMax: Math.min(call.bytesMax, keptBytes) })

/** What every request carries beside its own method, path and body. */
export interface RequestIdentity {
  readonly headers: Headers.Headers
  readonly secretHeader: string
}

/**
 * Prepares calls over one client. A span per request would cost a quarter of a request and could record its
 * headers, so tracing is off; a client that follows redirects by itself (fetch) is told not to.
 */
const requestContext = (secretHeader: string) =>
  Context.make(HttpClient.TracerDisabledWhen, () => true).pipe(
    Context.add(HttpClient.TracerPropagationEnabled, false),
    Context.add(Headers.CurrentRedactedNames, [
      "authorization",
      "cookie",
      "set-cookie",
      secretHeader.toLowerCase(),
    ]),
    Context.add(FetchHttpClient.RequestInit, { redirect: "manual" as const }),
  )

export const makeExchange = (
  client: HttpClient.HttpClient,
  overrides: Partial<ServiceLimits>,
  identity: RequestIdentity,
) => {
  const limits = { ...defaultLimits, ...overrides }
  const context = requestContext(identity.secretHeader)
  const bytesMax = {
    small: limits.answerBytesMax,
    results: limits.resultsBytesMax,
    attachment: limits.attachmentBytesMax,
  }
  return <E extends Endpoint, A>(
    endpoint: E,
    root: string,
    size: AnswerSize,
    read: (answer: Answer) => Effect.Effect<A, CallFailure>,
  ) => {
    const call: Call = {
      name: endpoint.identifier,
      hasEffect: endpoint.method !== "GET" && endpoint.method !== "HEAD",
      bytesMax: bytesMax[size],
    }
    const buildRequest = compileEndpoint(endpoint, root, identity.headers)
    const duration = size === "results" ? limits.resultsTimeout : limits.requestTimeout
    const lost = () =>
      // In doubt it was sent: a connection that could not be made has failed long before this.
      Effect.fail(
        new AnswerLost({
          message: `${call.name}: no answer within ${Duration.format(Duration.fromInputUnsafe(duration))}`,
        }),
      )
    const onSuccess = (response: HttpClientResponse.HttpClientResponse) =>
      read(answerOf(call, response, limits.attachmentIdleTimeout))
    const onFailure = (error: HttpClientError.HttpClientError) =>
      Effect.fail(failedTransport(call.name, error))
    return (parts: CallParts<E> & AnyParts): Effect.Effect<A, CallFailure> => {
      const request = buildRequest(parts)
      if (Result.isFailure(request)) return Effect.fail(request.failure)
      return client
        .execute(request.success)
        .pipe(
          Effect.provideContext(context),
          Effect.matchEffect({ onSuccess, onFailure }),
          Effect.timeoutOrElse({ duration, orElse: lost }),
        )
    }
  }
}
