/**
 * The address that webhooks are delivered to (section 6): a small HTTP server that turns deliveries into
 * hints. The reference does not show what a delivery looks like, so any path and any content type are
 * accepted; bodies are read within limits, searched for ids and discarded. Senders are not authenticated,
 * and need not be: a hint only changes when the state is read. It lives as long as its scope.
 */
import { Context, Duration, Effect, Layer, Schema, Stream } from "effect"
import { HttpServer, HttpServerRequest, HttpServerResponse, type HttpServerError } from "effect/http"
import { LocalServer } from "../base/LocalServer.ts"
import { eventBytesMax, readEvent, type EventView } from "./Views.ts"

/** Webhooks cannot be received at this address; nothing was started. */
export class ReceiverRefused extends Schema.TaggedError<ReceiverRefused>()("ReceiverRefused", {
  message: Schema.String,
}) {}

export interface ListenAt {
  readonly host: string
  /** 0 takes any free port. */
  readonly port: number
}

export const receiverHost = "127.0.0.1"

const place = /^(?:(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.-]+):)?(\d{1,5})$/

/** `[HOST:]PORT`; undefined if it is not valid. An IPv6 address is in brackets. */
export const parseListenAt = (text: string): ListenAt | undefined => {
  const parts = place.exec(text)
  const port = Number(parts?.[2])
  if (parts === null || port > 65_535) return undefined
  return { host: (parts[1] ?? receiverHost).replace(/^\[|\]$/g, ""), port }
}

/** Connections at once. A slow one is closed after these times. */
const connectionsMax = 256
const headersTimeout = Duration.seconds(5)
const requestTimeout = Duration.seconds(10)
const methods: ReadonlySet<string> = new Set(["POST", "PUT", "GET"])

/** A flow event carries all data of its session: it is accepted, so that it is not sent again and again. */
const drainedBytesMax = 64 * eventBytesMax

const answer = (status: number) => HttpServerResponse.empty({ status })
/** The rest of the body is not awaited. */
const cutOff = (status: number) => HttpServerResponse.empty({ status, headers: { connection: "close" } })

/** The part of a body that is kept, and its length; no more is read than a delivery can have. */
const keepBody = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest) {
  const chunks: Array<Uint8Array> = []
  let bytes = 0
  yield* Stream.runForEachWhile(request.stream, (chunk) =>
    Effect.sync(() => {
      const room = Math.max(0, eventBytesMax - bytes)
      if (room > 0) chunks.push(chunk.subarray(0, room))
      bytes += chunk.byteLength
      return bytes <= drainedBytesMax
    }),
  )
  return { kept: Buffer.concat(chunks), bytes }
})

const receive = (offer: (event: EventView) => void) =>
  Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    if (!methods.has(request.method)) return cutOff(405)
    const url = URL.parse(request.url, "http://receiver.invalid")
    if (url === null) return cutOff(400)
    if (Number(request.headers["content-length"] ?? 0) > drainedBytesMax) return cutOff(413)
    const { kept, bytes } = yield* keepBody(request)
    if (bytes > drainedBytesMax) return cutOff(413)
    const event = readEvent(url.searchParams, kept, bytes <= eventBytesMax)
    if (event === undefined) return answer(400)
    offer(event)
    return answer(204)
    // A delivery that breaks off does not count.
  }).pipe(Effect.catchTag("HttpServerError", () => Effect.succeed(cutOff(400))))

const reasons: Readonly<Record<string, string>> = {
  EADDRINUSE: "another program already listens there",
  EACCES: "this user is not allowed to listen there",
  EADDRNOTAVAIL: "this machine does not have that address",
  ENOTFOUND: "that host is unknown",
}

const codeOf = (cause: unknown): string =>
  cause instanceof Error ? ("code" in cause ? String(cause.code) : cause.name) : "no reason given"

const refusal = ({ host, port }: ListenAt, { cause }: HttpServerError.ServeError): ReceiverRefused => {
  const code = codeOf(cause)
  const why = reasons[code] ?? `the server cannot listen there (${code})`
  return new ReceiverRefused({ message: `--webhooks ${bracketed(host)}:${port}: ${why}` })
}

const bracketed = (host: string): string => (host.includes(":") ? `[${host}]` : host)

/** A receiver on any address of the machine can be reached locally at its loopback address. */
const reachable = (host: string): string => (host === "0.0.0.0" ? receiverHost : host === "::" ? "::1" : host)

/** Listens until the scope closes; returns the address for deliveries from this machine. */
export const openReceiver = Effect.fnUntraced(function* (at: ListenAt, offer: (event: EventView) => void) {
  const context = yield* Layer.build(
    LocalServer.layer({ ...at, connectionsMax, headersTimeout, requestTimeout }),
  ).pipe(Effect.mapError((error) => refusal(at, error)))
  const server = Context.get(context, HttpServer.HttpServer)
  yield* Effect.provide(HttpServer.serveEffect(receive(offer)), context)
  const port = server.address._tag === "UnixPathAddress" ? at.port : server.address.port
  return `http://${bracketed(reachable(at.host))}:${port}/`
})
