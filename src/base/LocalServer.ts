/**
 * An HTTP server on this machine. No caller can block it: one that sends slowly is cut off, the end of the
 * scope closes every connection, and an error on one affects no other.
 */
import { createServer } from "node:http"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Duration, Effect, Layer } from "effect"
import { HttpServer } from "effect/http"

export interface LocalServerOptions {
  readonly host: string
  /** 0 takes any free port. */
  readonly port: number
  /** How long a caller may take for its headers, and for the whole of its request. */
  readonly headersTimeout: Duration.Duration
  readonly requestTimeout: Duration.Duration
  /** At once; further ones wait in the kernel. */
  readonly connectionsMax?: number
}

/** How often a server checks for callers that are too slow: a fraction of their time limit. */
const sweepsPerTimeout = 4

const open = Effect.fnUntraced(function* (options: LocalServerOptions) {
  const { host, port, connectionsMax } = options
  const headersTimeout = Duration.toMillis(options.headersTimeout)
  const node = createServer({
    headersTimeout,
    requestTimeout: Duration.toMillis(options.requestTimeout),
    connectionsCheckingInterval: headersTimeout / sweepsPerTimeout,
  })
  if (connectionsMax !== undefined) node.maxConnections = connectionsMax
  node.on("error", () => undefined)
  // The platform's own shutdown waits for the slowest caller, whatever its time limit, and cannot be
  // interrupted.
  const server = yield* NodeHttpServer.make(() => node, { host, port, disablePreemptiveShutdown: true })
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      node.close()
      node.closeAllConnections()
    }),
  )
  return server
})

export const LocalServer = {
  layer: (options: LocalServerOptions) =>
    Layer.merge(Layer.effect(HttpServer.HttpServer, open(options)), NodeHttpServer.layerHttpServices),
}
