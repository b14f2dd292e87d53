/**
 * The address that webhooks are delivered to (section 6): a small HTTP server that turns deliveries into
 * hints. What a delivery looks like is not shown, so any path and any content type will do; bodies are read
 * within bounds, searched for ids and forgotten. Nobody is authenticated, and nobody needs to be: a hint
 * changes nothing but when the state is read. It lives as long as its scope.
 */
import { createServer } from "node:http"
import type { IncomingMessage, Server, ServerResponse } from "node:http"
import { Effect, Schema } from "effect"
import type { Scope } from "effect"
import { eventBytesMax, readEvent, skimEvent } from "./EventView.ts"
import type { EventView } from "./EventView.ts"

/** Webhooks cannot be received there; nothing was started. */
export class ReceiverRefused extends Schema.TaggedError<ReceiverRefused>()("ReceiverRefused", {
  message: Schema.String,
}) {}

export interface ListenAt {
  readonly host: string
  /** 0 takes any free one. */
  readonly port: number
}

export const receiverHost = "127.0.0.1"

const place = /^(?:(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.-]+):)?(\d{1,5})$/

/** `[HOST:]PORT`; undefined where it is none. An IPv6 address stands in brackets. */
export const parseListenAt = (text: string): ListenAt | undefined => {
  const parts = place.exec(text)
  const port = Number(parts?.[2])
  if (parts === null || port > 65_535) return undefined
  return { host: (parts[1] ?? receiverHost).replace(/^\[|\]$/g, ""), port }
}

/** Connections at once; more wait for the kernel. A slow one is closed after these times. */
const connectionsMax = 256
const headersTimeoutMs = 5_000
const requestTimeoutMs = 10_000
const sweepMs = 2_000
const methods: ReadonlySet<string> = new Set(["POST", "PUT", "GET"])

const end = (response: ServerResponse, status: number, close: boolean): void => {
  response.writeHead(status, close ? { connection: "close" } : {})
  response.end()
}

/** A flow event carries all data of its session: it is taken, so that nobody sends it again and again. */
const drainedBytesMax = 64 * eventBytesMax

const viewOf = (url: URL, kept: Uint8Array, bytes: number): EventView | undefined =>
  bytes > eventBytesMax ? skimEvent(url.searchParams, kept) : readEvent(url.searchParams, kept)

const receive = (
  request: IncomingMessage,
  response: ServerResponse,
  offer: (event: EventView) => void,
): void => {
  if (!methods.has(request.method ?? "")) return end(response, 405, true)
  const url = URL.parse(request.url ?? "", "http://receiver.invalid")
  if (url === null) return end(response, 400, true)
  if (Number(request.headers["content-length"] ?? 0) > drainedBytesMax) return end(response, 413, true)
  const chunks: Array<Buffer> = []
  let bytes = 0
  request.on("data", (chunk: Buffer) => {
    const room = Math.max(0, eventBytesMax - bytes)
    if (room > 0) chunks.push(chunk.subarray(0, room))
    bytes += chunk.byteLength
    if (bytes > drainedBytesMax && !response.headersSent) end(response, 413, true)
  })
  // A delivery that breaks off is none.
  request.on("error", () => undefined)
  request.on("end", () => {
    if (response.headersSent) return
    const event = viewOf(url, Buffer.concat(chunks), bytes)
    if (event === undefined) return end(response, 400, false)
    offer(event)
    end(response, 204, false)
  })
}

const reasons: Readonly<Record<string, string>> = {
  EADDRINUSE: "another program already listens there",
  EACCES: "this user may not listen there",
  EADDRNOTAVAIL: "this machine does not have that address",
  ENOTFOUND: "that host is unknown",
}

const refusal = ({ host, port }: ListenAt, code: string): ReceiverRefused => {
  const why = reasons[code] ?? `the server cannot listen there (${code})`
  return new ReceiverRefused({ message: `--webhooks ${bracketed(host)}:${port}: ${why}` })
}

const bracketed = (host: string): string => (host.includes(":") ? `[${host}]` : host)

const listen = (at: ListenAt, offer: (event: EventView) => void) =>
  Effect.callback<Server, ReceiverRefused>((resume) => {
    const server = createServer(
      {
        headersTimeout: headersTimeoutMs,
        requestTimeout: requestTimeoutMs,
        connectionsCheckingInterval: sweepMs,
      },
      (request, response) => receive(request, response, offer),
    )
    server.maxConnections = connectionsMax
    // After it listens, an error concerns one connection, and that one is closed.
    server.on("error", (error) =>
      resume(Effect.fail(refusal(at, "code" in error ? String(error.code) : error.name))),
    )
    server.listen(at.port, at.host, () => resume(Effect.succeed(server)))
  })

const close = (server: Server) =>
  Effect.callback<void>((resume) => {
    server.close(() => resume(Effect.void))
    server.closeAllConnections()
  })

/** Any address of the machine is reached from this machine at its own. */
const reachable = (host: string): string => (host === "0.0.0.0" ? receiverHost : host === "::" ? "::1" : host)

/** Listens until the scope closes; answers the address that deliveries from this machine go to. */
export const openReceiver = (
  at: ListenAt,
  offer: (event: EventView) => void,
): Effect.Effect<string, ReceiverRefused, Scope.Scope> =>
  Effect.map(Effect.acquireRelease(listen(at, offer), close), (server) => {
    const bound = server.address()
    const port = typeof bound === "object" && bound !== null ? bound.port : at.port
    return `http://${bracketed(reachable(at.host))}:${port}/`
  })
