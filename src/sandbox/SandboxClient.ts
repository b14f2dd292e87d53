/**
 * The embedded service without a network: an HttpClient whose requests run through the very routes that the
 * server serves, codecs and gate included, in the caller's fiber and without a Promise in between.
 * Deterministic simulation and fast tests stand on it.
 */
import { Effect, Layer } from "effect"
import type { Scope } from "effect"
import {
  HttpClient,
  HttpClientError,
  HttpRouter,
  HttpServer,
  HttpServerRequest,
  HttpServerResponse,
} from "effect/http"
import type { Sandbox } from "./Sandbox.ts"
import { SandboxRoutes } from "./SandboxRoutes.ts"

const origin = "https://sandbox.invalid"

const make: Effect.Effect<HttpClient.HttpClient, never, Sandbox | Scope.Scope> = Effect.gen(function* () {
  const handler = yield* HttpRouter.toHttpEffect(
    SandboxRoutes.layer.pipe(Layer.provide(HttpServer.layerServices)),
  )
  return HttpClient.make((request, url) => {
    if (url.origin !== origin) {
      return Effect.fail(
        new HttpClientError.HttpClientError({
          reason: new HttpClientError.TransportError({ request, description: "nobody listens there" }),
        }),
      )
    }
    return handler.pipe(
      Effect.map((response) => HttpServerResponse.toClientResponse(response, { request })),
      Effect.provideService(
        HttpServerRequest.HttpServerRequest,
        HttpServerRequest.fromClientRequest(request),
      ),
      Effect.scoped,
      Effect.orDie,
    )
  })
})

export const SandboxClient = {
  base_url: `${origin}/api`,
  flows_url: `${origin}/flows`,
  /** Any other origin is refused like a connection. */
  layer: Layer.effect(HttpClient.HttpClient, make),
}
