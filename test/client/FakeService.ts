/**
 * Two places for a `Service` to talk to, both scripted: an HttpClient inside the process and a server on the
 * loopback interface. Each notes the requests that it saw.
 */
import * as Http from "node:http"
import type { AddressInfo } from "node:net"
import { Effect, Layer, Redacted } from "effect"
import { HttpClient, HttpClientResponse } from "effect/http"
import type { Scope } from "effect"
import { NodeClient } from "../../src/client/NodeClient.ts"
import type { ConnectionOptions } from "../../src/client/NodeClient.ts"
import type { Service, ServiceSettings } from "../../src/client/Service.ts"
import { ServiceHttp } from "../../src/client/ServiceHttp.ts"

export interface Behaviour {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array
}

export interface SeenRequest {
  readonly method: string
  readonly url: string
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly body: string
}

/** A service that answers every request the same way. */
export interface Stage {
  readonly layer: Layer.Layer<Service>
  readonly requests: ReadonlyArray<SeenRequest>
}

export type MakeStage = (behaviour: Behaviour) => Effect.Effect<Stage, never, Scope.Scope>

export const secret = "app-secret-canary-1"

export const settingsFor = (origin: string): ServiceSettings => ({
  base_url: `${origin}/api`,
  flows_url: `${origin}/flows/`,
  attachments_url: `${origin}/documents`,
  app_secret: Redacted.make(secret),
})

const hasNoBody = (status: number) => status === 204 || status === 304

export const fakeHttpClient = (behaviour: Behaviour, requests: Array<SeenRequest>) =>
  HttpClient.make((request, url) =>
    Effect.sync(() => {
      const body = request.body._tag === "Uint8Array" ? new TextDecoder().decode(request.body.body) : ""
      requests.push({
        method: request.method,
        url: url.pathname + url.search,
        headers: { ...request.headers },
        body,
      })
      const text = behaviour.body === undefined ? null : Buffer.from(behaviour.body)
      const init = { status: behaviour.status, headers: behaviour.headers ?? {} }
      return HttpClientResponse.fromWeb(
        request,
        new Response(hasNoBody(behaviour.status) ? null : text, init),
      )
    }),
  )

export const stageInProcess: MakeStage = (behaviour) =>
  Effect.sync(() => {
    const requests: Array<SeenRequest> = []
    const client = Layer.succeed(HttpClient.HttpClient, fakeHttpClient(behaviour, requests))
    const layer = ServiceHttp.layer(settingsFor("http://localhost")).pipe(Layer.provide(client), Layer.orDie)
    return { layer, requests }
  })

/** Starts a node:http server on a free port of 127.0.0.1; it ends with the scope, its connections with it. */
export const listen = (handler: Http.RequestListener): Effect.Effect<string, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.callback<Http.Server>((resume) => {
        const server = Http.createServer(handler)
        server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
      }),
      (server) =>
        Effect.callback<void>((resume) => {
          server.closeAllConnections()
          server.close(() => resume(Effect.void))
        }),
    ),
    (server) => `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
  )

export const serviceAt = (origin: string, limits = {}, connections: ConnectionOptions = {}) =>
  ServiceHttp.layer(settingsFor(origin), limits).pipe(
    Layer.provide(NodeClient.layer(connections)),
    Layer.orDie,
  )

export const stageOverHttp: MakeStage = Effect.fnUntraced(function* (behaviour) {
  const requests: Array<SeenRequest> = []
  const origin = yield* listen((request, response) => {
    const chunks: Array<Buffer> = []
    request.on("data", (chunk: Buffer) => chunks.push(chunk))
    request.on("end", () => {
      requests.push({
        method: request.method ?? "",
        url: request.url ?? "",
        headers: Object.fromEntries(
          Object.entries(request.headers).map(([name, value]) => [name, value?.toString()]),
        ),
        body: Buffer.concat(chunks).toString(),
      })
      response.writeHead(behaviour.status, behaviour.headers)
      response.end(hasNoBody(behaviour.status) ? undefined : behaviour.body)
    })
  })
  return { layer: serviceAt(origin), requests }
})
