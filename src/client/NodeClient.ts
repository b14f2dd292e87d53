/**
 * The connections of a run: undici with kept-alive sockets, one request at a time on each, and as many as
 * calls may run at once. A request never waits inside the pool, so a time-out cannot hit one that was not
 * sent yet. HEAD has its own connections: a server that sends a body with it disturbs no other call.
 */
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import { Effect, Layer } from "effect"
import type { Scope } from "effect"
import { HttpClient } from "effect/http"
import type { HttpClientError, HttpClientRequest } from "effect/http"

export interface ConnectionOptions {
  /** Per origin; more than the calls that run at once, because open attachments hold one each. */
  readonly connectionsMax?: number
  /** How long an unused connection is kept; shorter than the 5 seconds of many servers. */
  readonly keepAliveMs?: number
  readonly connectTimeoutMs?: number
  /** Whether any certificate is accepted; if not, they are checked, whatever the environment says. */
  readonly acceptAnyCertificate?: boolean
}

const makePool = (options: ConnectionOptions): Effect.Effect<HttpClient.HttpClient, never, Scope.Scope> =>
  Effect.flatMap(
    NodeHttpClient.makeDispatcherOptions({
      connections: options.connectionsMax ?? 96,
      pipelining: 1,
      keepAliveTimeout: options.keepAliveMs ?? 4_000,
      connect: {
        timeout: options.connectTimeoutMs ?? 10_000,
        // Set in both cases: if it were left out, NODE_TLS_REJECT_UNAUTHORIZED=0 would apply.
        rejectUnauthorized: options.acceptAnyCertificate !== true,
      },
      // HTTP/2 shares one connection among all calls, and a reset of it would lose them all at once.
      allowH2: false,
    }),
    (dispatcher) => Effect.provideService(NodeHttpClient.makeUndici, NodeHttpClient.Dispatcher, dispatcher),
  )

/** undici closes a connection after a HEAD unless it is told not to; a handshake costs more than a body. */
const keepOpen = { reset: false }

const make = Effect.fnUntraced(function* (options: ConnectionOptions) {
  const calls = yield* makePool(options)
  const heads = yield* makePool(options)
  return HttpClient.makeWith(
    (asked: Effect.Effect<HttpClientRequest.HttpClientRequest, HttpClientError.HttpClientError>) =>
      Effect.flatMap(asked, (request) =>
        request.method === "HEAD"
          ? Effect.provideService(heads.execute(request), NodeHttpClient.UndiciOptions, keepOpen)
          : calls.execute(request),
      ),
    Effect.succeed,
  )
})

export const NodeClient = {
  layer: (options: ConnectionOptions = {}): Layer.Layer<HttpClient.HttpClient> =>
    Layer.effect(HttpClient.HttpClient, make(options)),
}
