/**
 * The connections of a run: undici with kept-alive sockets, one request at a time on each, and as many as
 * calls may run at once. A request never waits inside the pool, so a time-out cannot hit one that was not
 * sent yet. HEAD has its own connections: a server that sends a body with it disturbs no other call. Answers
 * are read off the dispatcher's events, without spans or Node's streams; an interrupted call, or an answer
 * that nobody reads to its end, ends its request.
 */
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import type Undici from "@effect/platform-node/Undici"
import { Array as Arr, Cause, Effect, Inspectable, Layer, Option, Pipeable, Result, Stream } from "effect"
import type { Scope } from "effect"
import {
  Headers,
  HttpClient,
  HttpClientError,
  HttpClientResponse,
  HttpIncomingMessage,
  Url,
} from "effect/http"
import type { HttpBody, HttpClientRequest } from "effect/http"
import { NeverBegun } from "./CallFailures.ts"

export interface ConnectionOptions {
  /** Per origin; more than the calls that run at once, because open attachments hold one each. */
  readonly connectionsMax?: number
  /** Whether any certificate is accepted; if not, they are checked, whatever the environment says. */
  readonly acceptAnyCertificate?: boolean
}

const makePool = (options: ConnectionOptions): Effect.Effect<Undici.Dispatcher, never, Scope.Scope> =>
  NodeHttpClient.makeDispatcherOptions({
    connections: options.connectionsMax ?? 96,
    pipelining: 1,
    // Shorter than the 5 seconds of many servers.
    keepAliveTimeout: 4_000,
    connect: {
      timeout: 10_000,
      // Set in both cases: if it were left out, NODE_TLS_REJECT_UNAUTHORIZED=0 would apply.
      rejectUnauthorized: options.acceptAnyCertificate !== true,
    },
    // HTTP/2 shares one connection among all calls, and a reset of it would lose them all at once.
    allowH2: false,
  })

type Controller = Undici.Dispatcher.DispatchController
type AnswerHeaders = Undici.Dispatcher.ResponseData["headers"]

/** More than this of a body that nobody has read yet makes its connection wait. */
const unreadBytesMax = 64 * 1024

const readInPart = (): Error => new Error("a part of the body was read already")
const interrupted = () => new Error("the call was interrupted, or nobody reads its answer")

/** One answer while it arrives: the dispatcher fills it, a fiber empties it. */
class Arriving implements Undici.Dispatcher.DispatchHandler {
  readonly #answered: (status: number, headers: AnswerHeaders) => void
  readonly #failed: (cause: Error) => void
  #controller: Controller | undefined
  #chunks: Array<Uint8Array> = []
  #unread = 0
  #isAnswered = false
  #isAborted = false
  /** Whether its last byte is here, or what came instead. */
  #end: { readonly cause?: Error } | undefined
  /** Nothing waits for a reader that takes everything at the end. */
  #unreadMax = unreadBytesMax
  #wake: (() => void) | undefined
  /** All of it, once it was read: who records calls reads what the call itself reads. */
  #all: Uint8Array<ArrayBuffer> | undefined
  #isInPieces = false

  constructor(answered: (status: number, headers: AnswerHeaders) => void, failed: (cause: Error) => void) {
    this.#answered = answered
    this.#failed = failed
  }

  onRequestStart(controller: Controller): void {
    this.#controller = controller
    if (this.#isAborted) controller.abort(interrupted())
  }

  onResponseStart(_: Controller, status: number, headers: AnswerHeaders): void {
    if (status < 200) return
    this.#isAnswered = true
    // Later in this turn: by then all of a small answer is here, and its connection is free again.
    process.nextTick(() => this.#answered(status, headers))
  }

  onResponseData(controller: Controller, chunk: Uint8Array): void {
    this.#chunks.push(chunk)
    this.#unread += chunk.byteLength
    if (this.#unread > this.#unreadMax) controller.pause()
    if (this.#unreadMax !== Infinity) this.#wakeReader()
  }

  onResponseEnd(): void {
    this.#end = {}
    this.#wakeReader()
  }

  /** Without a controller, a request still waited for its connection, TLS included: nothing was written. */
  onResponseError(_: unknown, error: Error): void {
    const cause = this.#controller === undefined ? new NeverBegun(error) : error
    this.#end = { cause }
    if (this.#isAnswered) this.#wakeReader()
    else process.nextTick(() => this.#failed(cause))
  }

  readonly abort = (): void => {
    if (this.#end !== undefined || this.#isAborted) return
    this.#isAborted = true
    this.#controller?.abort(interrupted())
  }

  get isEnded(): boolean {
    return this.#end !== undefined
  }

  /** All of it, in memory of its own. */
  get bytes(): Effect.Effect<Uint8Array<ArrayBuffer>, Error> {
    return Effect.suspend(() => {
      if (this.#all !== undefined) return Effect.succeed(this.#all)
      // What is left of it must not pass for the whole.
      if (this.#isInPieces) return Effect.fail(readInPart())
      this.#unreadMax = Infinity
      return this.#end === undefined ? Effect.flatMap(this.#more, () => this.#whole()) : this.#whole()
    })
  }

  /** In pieces; the connection waits for whoever reads them. */
  get pieces(): Stream.Stream<Uint8Array, Error> {
    const pull: Effect.Effect<Arr.NonEmptyReadonlyArray<Uint8Array>, Error | Cause.Done> = Effect.suspend(
      () => {
        this.#isInPieces = true
        const chunks = this.#take()
        if (Arr.isArrayNonEmpty(chunks)) return Effect.succeed(chunks)
        if (this.#end === undefined) return Effect.flatMap(this.#more, () => pull)
        return this.#end.cause === undefined ? Cause.done() : Effect.fail(this.#end.cause)
      },
    )
    const rest = Stream.ensuring(Stream.fromPull(Effect.succeed(pull)), Effect.sync(this.abort))
    return Stream.suspend(() => (this.#all === undefined ? rest : Stream.make(this.#all)))
  }

  get #more(): Effect.Effect<void> {
    return Effect.callback((resume) => {
      this.#wake = () => resume(Effect.void)
      this.#controller?.resume()
      return Effect.sync(this.abort)
    })
  }

  #take(): Array<Uint8Array> {
    const chunks = this.#chunks
    this.#chunks = []
    this.#unread = 0
    return chunks
  }

  #whole(): Effect.Effect<Uint8Array<ArrayBuffer>, Error> {
    if (this.#end?.cause !== undefined) return Effect.fail(this.#end.cause)
    const whole = new Uint8Array(this.#unread)
    let at = 0
    for (const chunk of this.#take()) {
      whole.set(chunk, at)
      at += chunk.byteLength
    }
    this.#all = whole
    return Effect.succeed(whole)
  }

  /** Not inside of the dispatcher's event: what follows may send the next request. */
  #wakeReader(): void {
    const wake = this.#wake
    this.#wake = undefined
    if (wake !== undefined) process.nextTick(wake)
  }
}

/** Ends the request of an answer that everybody forgot. */
const forgotten = new FinalizationRegistry<Arriving>((arriving) => arriving.abort())

/** Its fields are no private ones: who records calls looks at an answer through an object of its own. */
class Answer extends Inspectable.Class implements HttpClientResponse.HttpClientResponse {
  readonly [HttpIncomingMessage.TypeId]: typeof HttpIncomingMessage.TypeId = HttpIncomingMessage.TypeId
  readonly [HttpClientResponse.TypeId]: typeof HttpClientResponse.TypeId = HttpClientResponse.TypeId
  readonly request: HttpClientRequest.HttpClientRequest
  readonly status: number
  readonly headers: Headers.Headers
  readonly remoteAddress = Option.none<string>()
  readonly asked: URL
  readonly arriving: Arriving

  constructor(
    request: HttpClientRequest.HttpClientRequest,
    url: URL,
    status: number,
    headers: AnswerHeaders,
    arriving: Arriving,
  ) {
    super()
    this.request = request
    this.asked = url
    this.status = status
    this.headers = Headers.fromInput(headers)
    this.arriving = arriving
    if (!arriving.isEnded) forgotten.register(this, arriving)
  }

  get url(): string {
    return this.asked.origin + this.asked.pathname + this.asked.search
  }

  readonly cutOff = (cause: Error): HttpClientError.HttpClientError =>
    new HttpClientError.HttpClientError({
      reason: new HttpClientError.DecodeError({ request: this.request, response: this, cause }),
    })

  get arrayBuffer(): Effect.Effect<ArrayBuffer, HttpClientError.HttpClientError> {
    return Effect.mapBoth(this.arriving.bytes, {
      onSuccess: ({ buffer }) => buffer,
      onFailure: this.cutOff,
    })
  }
  get stream(): Stream.Stream<Uint8Array, HttpClientError.HttpClientError> {
    return Stream.mapError(this.arriving.pieces, this.cutOff)
  }

  /** The same answer for readers of its text or its fields. */
  get read(): HttpClientResponse.HttpClientResponse {
    const { "content-type": type = "" } = this.headers
    const body = Stream.toReadableStream(this.stream)
    return HttpClientResponse.fromWeb(this.request, new Response(body, { headers: { "content-type": type } }))
  }
  get text() {
    return this.read.text
  }
  get json() {
    return this.read.json
  }
  get urlParamsBody() {
    return this.read.urlParamsBody
  }
  get formData() {
    return this.read.formData
  }
  get cookies() {
    return HttpClientResponse.fromWeb(this.request, new Response(null)).cookies
  }
  get upgrade() {
    return this.read.upgrade
  }

  /** Neither request nor headers: they hold secrets. */
  override toJSON() {
    return { _id: "Answer", status: this.status }
  }
  pipe() {
    return Pipeable.pipeArguments(this, arguments)
  }
}

/** Times are the callers' own: here they are as good as none. */
const noTimes = { headersTimeout: 60 * 60 * 1000, bodyTimeout: 0 }
/** undici closes a connection after a HEAD unless it is told not to; a handshake costs more than a body. */
const keepOpen = { ...noTimes, reset: false }

const bytesOf = (body: HttpBody.HttpBody): Undici.Dispatcher.DispatchOptions["body"] | undefined => {
  if (body._tag === "Empty") return null
  return body._tag === "Uint8Array" ? body.body : undefined
}

const failed = (reason: HttpClientError.HttpClientErrorReason) =>
  Effect.fail(new HttpClientError.HttpClientError({ reason }))

const send = (
  pool: Undici.Dispatcher,
  request: HttpClientRequest.HttpClientRequest,
): Effect.Effect<HttpClientResponse.HttpClientResponse, HttpClientError.HttpClientError> => {
  const { method, headers, urlParams, hash } = request
  const made = Url.make(request.url, urlParams, Option.getOrUndefined(hash))
  if (Result.isFailure(made))
    return failed(new HttpClientError.InvalidUrlError({ request, cause: made.failure }))
  const url = made.success
  const body = bytesOf(request.body)
  if (body === undefined)
    return failed(new HttpClientError.EncodeError({ request, description: "only bytes are sent" }))
  return Effect.callback((resume) => {
    const arriving = new Arriving(
      (status, answered) => resume(Effect.succeed(new Answer(request, url, status, answered, arriving))),
      (cause) => resume(failed(new HttpClientError.TransportError({ request, cause }))),
    )
    const path = url.pathname + url.search
    const times = method === "HEAD" ? keepOpen : noTimes
    pool.dispatch({ ...times, origin: url.origin, path, method, headers, body }, arriving)
    return Effect.sync(arriving.abort)
  })
}

const make = Effect.fnUntraced(function* (options: ConnectionOptions) {
  const calls = yield* makePool(options)
  const heads = yield* makePool(options)
  return HttpClient.makeWith(
    (asked: Effect.Effect<HttpClientRequest.HttpClientRequest, HttpClientError.HttpClientError>) =>
      Effect.flatMap(asked, (request) => send(request.method === "HEAD" ? heads : calls, request)),
    Effect.succeed,
  )
})

export const NodeClient = {
  layer: (options: ConnectionOptions = {}): Layer.Layer<HttpClient.HttpClient> =>
    Layer.effect(HttpClient.HttpClient, make(options)),
}
