/**
 * The embedded service as a server on this machine. It binds 127.0.0.1 unless told otherwise, prints
 * nothing, and returns its addresses; port 0 takes any free port.
 */
import { Context, Effect, Layer } from "effect"
import { HttpRouter, HttpServer } from "effect/http"
import type { HttpServerError } from "effect/http"
import { LocalServer } from "../../base/LocalServer.ts"
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
