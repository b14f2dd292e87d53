/**
 * The embedded service as a server on this machine. It binds 127.0.0.1 unless told otherwise, prints
 * nothing, and tells its addresses; port 0 takes any free one.
 */
import { createServer } from "node:http"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Context, Duration, Effect, Layer } from "effect"
import { HttpRouter, HttpServer } from "effect/http"
import type { HttpServerError } from "effect/http"
import type { Sandbox } from "./Sandbox.ts"
import { routerConfig, SandboxRoutes } from "./SandboxRoutes.ts"
import { ServerGuard, serverLimits } from "./ServerGuard.ts"

export interface SandboxAddress {
  readonly base_url: string
  readonly flows_url: string
}

export interface SandboxServerOptions {
  readonly port: number
  readonly host?: string
}

/** Every call is answered at once, but those that a fault delays or leaves hanging. */
const gracefulShutdownTimeout = Duration.seconds(1)

const addressOf = (server: HttpServer.HttpServer["Service"]): SandboxAddress => {
  const origin = HttpServer.formatAddress(server.address)
  return { base_url: `${origin}/api`, flows_url: `${origin}/flows` }
}

/** The bound addresses; whoever has it knows that the server answers. */
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
      Layer.provide(
        NodeHttpServer.layer(() => createServer(serverLimits), { port, host, gracefulShutdownTimeout }),
      ),
    )
}
