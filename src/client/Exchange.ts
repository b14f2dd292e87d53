/**
 * One call as one request and one answer: sends it with the secret, without tracing and without redirects,
 * and hands the answer's parts to the call's own reading, all of it bounded in bytes and time, and cleaned of
 * every secret that this process knows: nothing behind this door can land, log or show one. Errors carry
 * neither request nor body; the connection of an answer that nobody reads is given back or closed.
 */
import { Context, Duration, Effect, Result, Stream } from "effect"
import { FetchHttpClient, Headers, HttpClient } from "effect/http"
import type { HttpClientError, HttpClientResponse } from "effect/http"
import { failedSize, failedStatus, failedTransport } from "./CallFailures.ts"
import { cleanBody } from "../secrets/CleanBody.ts"
import type { Cleaning } from "../secrets/CleanBody.ts"
import type { KnownSecrets } from "../secrets/KnownSecrets.ts"
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
  /** A JSON object, and what it said before it was blanked: for the one secret that the caller keeps. */
  readonly issuing: Effect.Effect<{ readonly body: Body; readonly unblanked: unknown }, CallFailure>
  /** A body that must be JSON, a JSON object or a JSON list; anything else is a lost answer. */
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

const readBytes = (
  call: Call,
  response: HttpClientResponse.HttpClientResponse,
  headers: Headers.Headers,
): Effect.Effect<Uint8Array, CallFailure> => {
  // The usual case is quick: a length that is promised and small enough can be read at once.
  if (Number(headers["content-length"] ?? "Infinity") <= call.bytesMax) {
    return Effect.mapBoth(response.arrayBuffer, {
      onFailure: (error) => failedTransport(call.name, error),
      onSuccess: (buffer) => new Uint8Array(buffer),
    })
  }
  return Effect.map(
    Stream.runCollect(bounded(call, response)),
    (chunks) => new Uint8Array(Buffer.concat(chunks)),
  )
}

const lostBody = (call: Call, http_status: number, wanted: string) =>
  new AnswerLost({
    message: `${call.name}: the answer holds no JSON ${wanted} (${http_status})`,
    http_status,
  })

const answerOf = (
  call: Call,
  response: HttpClientResponse.HttpClientResponse,
  idleTimeout: Duration.Input,
  clean: (raw: Body) => Body,
): Answer => {
  const http_status = response.status
  const headers = response.headers
  const raw = Effect.suspend(() => Effect.map(readBytes(call, response, headers), readBody))
  const body = Effect.map(raw, clean)
  const fitting = (wanted: string, fits: (json: unknown) => boolean) =>
    Effect.flatMap(raw, (read) =>
      fits(read.json) ? Effect.succeed(read) : Effect.fail(lostBody(call, http_status, wanted)),
    )
  const bodyOf = (wanted: string, fits: (json: unknown) => boolean) =>
    Effect.map(fitting(wanted, fits), clean)
  const discard = Effect.suspend(() => Effect.ignore(readBytes(call, response, headers)))
  return {
    call: call.name,
    http_status,
    headers,
    response,
    body,
    issuing: Effect.map(fitting("object", isJsonObject), (read) => ({
      body: clean(read),
      unblanked: read.json,
    })),
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
  known: KnownSecrets,
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
    cleaningOf: (json: unknown) => Cleaning = () => ({}),
  ) => {
    const clean = (raw: Body): Body => {
      const bytes = cleanBody(raw.bytes, known, cleaningOf(raw.json))
      return bytes === raw.bytes ? raw : readBody(bytes)
    }
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
      read(answerOf(call, response, limits.attachmentIdleTimeout, clean))
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
