/**
 * The connections of a night: undici with kept-alive sockets, one request at a time on each, and as many as
 * calls may run at once. A request never waits inside the pool, so that a time-out cannot hit one that was
 * not sent yet.
 */
import { NodeHttpClient } from "@effect/platform-node"
import { Layer } from "effect"
import type { HttpClient } from "effect/http"

export interface ConnectionOptions {
  /**
   * Per origin; more than the calls that `ServicePaced` lets run at once, as open attachments hold one each.
   */
  readonly connectionsMax?: number
  /**
   * How long an unused connection is kept; shorter than the 5 seconds after which many servers close theirs.
   */
  readonly keepAliveMs?: number
  readonly connectTimeoutMs?: number
}

export const NodeClient = {
  layer: (options: ConnectionOptions = {}): Layer.Layer<HttpClient.HttpClient> =>
    NodeHttpClient.layerUndiciNoDispatcher.pipe(
      Layer.provide(
        NodeHttpClient.layerDispatcherOptions({
          connections: options.connectionsMax ?? 96,
          pipelining: 1,
          keepAliveTimeout: options.keepAliveMs ?? 4_000,
          connect: { timeout: options.connectTimeoutMs ?? 10_000 },
          // HTTP/2 shares one connection among all calls, and a reset of it would lose them all at once.
          allowH2: false,
        }),
      ),
    ),
}
