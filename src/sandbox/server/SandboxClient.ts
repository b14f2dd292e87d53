/**
 * The embedded service without a network: an HttpClient whose requests run through the very routes that the
 * server serves, codecs and gate included, in the caller's fiber and without a Promise in between.
 * Deterministic simulation and fast tests depend on it.
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
import type { HttpClientRequest } from "effect/http"
import { ConnectionLost } from "./FaultGate.ts"
import type { Sandbox } from "./Sandbox.ts"
import { routerConfig, SandboxRoutes } from "./SandboxRoutes.ts"

const origin = "https://sandbox.invalid"

/** As an HTTP client reports it: a fault broke the connection after the request was sent. */
const brokenBy = (request: HttpClientRequest.HttpClientRequest, { message }: ConnectionLost) =>
  new HttpClientError.HttpClientError({
    reason: new HttpClientError.TransportError({
      request,
      description: message,
      cause: Object.assign(new Error(message), { code: "ECONNRESET", syscall: "read" }),
    }),
  })

const make: Effect.Effect<HttpClient.HttpClient, never, Sandbox | Scope.Scope> = Effect.gen(function* () {
  const handler = yield* HttpRouter.toHttpEffect(
    SandboxRoutes.layer.pipe(Layer.provide(HttpServer.layerServices)),
  ).pipe(Effect.provideService(HttpRouter.RouterConfig, routerConfig))
  return HttpClient.make((request, url) => {
    if (url.origin !== origin) {
      return Effect.fail(
        new HttpClientError.HttpClientError({
          reason: new HttpClientError.TransportError({ request, description: "nobody listens there" }),
        }),
      )
    }
    return handler.pipe(
      Effect.catch(() => Effect.succeed(HttpServerResponse.empty({ status: 404 }))),
      Effect.map((response) => HttpServerResponse.toClientResponse(response, { request })),
      Effect.provideService(
        HttpServerRequest.HttpServerRequest,
        HttpServerRequest.fromClientRequest(request),
      ),
      Effect.scoped,
      Effect.catchDefect((defect) =>
        defect instanceof ConnectionLost ? Effect.fail(brokenBy(request, defect)) : Effect.die(defect),
      ),
    )
  })
})

export const SandboxClient = {
  base_url: `${origin}/api`,
  flows_url: `${origin}/flows`,
  /** Any other origin is refused like a connection. */
  layer: Layer.effect(HttpClient.HttpClient, make),
}
