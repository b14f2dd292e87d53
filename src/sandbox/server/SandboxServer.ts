/**
 * The embedded service as a server on this machine. It binds 127.0.0.1 unless told otherwise, prints
 * nothing, and returns its addresses; port 0 takes any free port.
 */
import { ByteSize, Context, Duration, Effect, Layer } from "effect"
import {
  HttpIncomingMessage,
  HttpMethod,
  HttpRouter,
  HttpServer,
  HttpServerRequest,
  HttpServerResponse,
} from "effect/http"
import type { HttpServerError } from "effect/http"
import { LocalServer } from "../../base/LocalServer.ts"
import { isLoopback } from "../../base/Text.ts"
import type { Sandbox } from "./Sandbox.ts"
import { SandboxRoutes, routerConfig } from "./SandboxRoutes.ts"

// DNS rebinding can point a page's own name to 127.0.0.1, but its browser then sends that name as Host.

/** Far above any start with its certificates, far below what fills a machine's memory. */
const bodyBytesMax = 4_000_000

/** A caller that sends slowly holds a connection at most this long. */
export const serverLimits = {
  headersTimeout: Duration.seconds(20),
  requestTimeout: Duration.seconds(60),
} as const

/** The host of a `Host` header without its port; an HTTP/1.0 caller need not send one. */
const namesThisMachine = (header: string | undefined): boolean =>
  header === undefined || isLoopback(header.toLowerCase().replace(/:\d{1,5}$/, ""))

/** The rest of the body is not awaited. */
const refuse = (status: 413 | 421, detail: string) =>
  HttpServerResponse.jsonUnsafe({ detail }, { status, headers: { connection: "close" } })

const misdirected = refuse(
  421,
  "this server answers to localhost and 127.0.0.1 only, unless --host says more",
)
const tooLarge = refuse(413, `the body is larger than ${bodyBytesMax / 1e6} MB`)

/** Middleware for every route of a server that is bound to `host`. */
export const ServerGuard = {
  layer: (host: string) => {
    const isLocal = isLoopback(host === "::1" ? "[::1]" : host)
    return HttpRouter.middleware(
      (answer) =>
        Effect.gen(function* () {
          const request = yield* HttpServerRequest.HttpServerRequest
          if (isLocal && !namesThisMachine(request.headers["host"])) return misdirected
          if (!HttpMethod.hasBody(request.method)) return yield* answer
          if (Number(request.headers["content-length"] ?? 0) > bodyBytesMax) return tooLarge
          const read = yield* request.arrayBuffer.pipe(
            Effect.provideService(HttpIncomingMessage.MaxBodySize, ByteSize.bytes(bodyBytesMax)),
            Effect.option,
          )
          return read._tag === "None" ? tooLarge : yield* answer
        }),
      { global: true },
    )
  },
}

export interface SandboxAddress {
  readonly base_url: string
  readonly flows_url: string
}

export interface SandboxServerOptions {
  readonly port: number
  readonly host?: string
}

const addressOf = (server: HttpServer.HttpServer["Service"]): SandboxAddress => {
  const origin = HttpServer.formatAddress(server.address)
  return { base_url: `${origin}/api`, flows_url: `${origin}/flows` }
}

/** The bound addresses; having them means that the server answers. */
export class SandboxServer extends Context.Service<SandboxServer, SandboxAddress>()(
  "nightjar/sandbox/SandboxServer",
) {
  static readonly layer = ({
    port,
    host = "127.0.0.1",
  }: SandboxServerOptions): Layer.Layer<SandboxServer, HttpServerError.ServeError, Sandbox> =>
    Layer.effect(SandboxServer, Effect.map(HttpServer.HttpServer, addressOf)).pipe(
      Layer.provideMerge(
        HttpRouter.serve(Layer.merge(SandboxRoutes.layer, ServerGuard.layer(host)), {
          disableLogger: true,
          disableListenLog: true,
          routerConfig,
        }),
      ),
      Layer.provide(LocalServer.layer({ port, host, ...serverLimits })),
    )
}
