/**
 * Two places for a `Service` to talk to, both scripted: an HttpClient inside the process and a server on the
 * loopback interface. Each notes the requests that it saw.
 */
import * as Http from "node:http"
import * as Net from "node:net"
import * as Tls from "node:tls"
import { Effect, Layer, Redacted, type Scope } from "effect"
import { HttpClient, HttpClientResponse } from "effect/http"
import type { ServiceLimits } from "../../src/client/Exchange.ts"
import { NodeClient, type ConnectionOptions } from "../../src/client/NodeClient.ts"
import type { Service, ServiceSettings } from "../../src/client/Service.ts"
import { ServiceHttp } from "../../src/client/ServiceHttp.ts"
import { cert, key } from "./SelfSigned.ts"

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

type MakeStage = (behaviour: Behaviour) => Effect.Effect<Stage, never, Scope.Scope>

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

/** The service over a client that never leaves this process. */
export const serviceOver = (client: HttpClient.HttpClient, limits: Partial<ServiceLimits> = {}) =>
  ServiceHttp.layer(settingsFor("http://localhost"), limits).pipe(
    Layer.provide(Layer.succeed(HttpClient.HttpClient, client)),
    Layer.orDie,
  )

export const stageInProcess: MakeStage = (behaviour) =>
  Effect.sync(() => {
    const requests: Array<SeenRequest> = []
    return { layer: serviceOver(fakeHttpClient(behaviour, requests)), requests }
  })

/** A server on a free port of 127.0.0.1 until the scope ends, its connections with it; returns its host and port. */
const listenWith = (make: () => Net.Server): Effect.Effect<string, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.callback<{ server: Net.Server; sockets: Set<Net.Socket> }>((resume) => {
        const server = make()
        const sockets = new Set<Net.Socket>()
        server.on("connection", (socket: Net.Socket) => sockets.add(socket.on("error", () => undefined)))
        server.listen(0, "127.0.0.1", () => resume(Effect.succeed({ server, sockets })))
      }),
      ({ server, sockets }) =>
        Effect.callback<void>((resume) => {
          for (const socket of sockets) socket.destroy()
          server.close(() => resume(Effect.void))
        }),
    ),
    ({ server }) => `127.0.0.1:${(server.address() as Net.AddressInfo).port}`,
  )

export const listen = (handler: Http.RequestListener) =>
  Effect.map(
    listenWith(() => Http.createServer(handler)),
    (host) => `http://${host}`,
  )

/** A raw server: what it does with each connection is the test's. */
export const listenRaw = (onConnection: (socket: Net.Socket) => void) =>
  Effect.map(
    listenWith(() => Net.createServer(onConnection)),
    (host) => `http://${host}`,
  )

/** The same behind TLS, with a certificate that nobody vouches for; only what is inside TLS is the test's. */
export const listenTls = (onConnection: (socket: Net.Socket) => void) =>
  Effect.map(
    listenWith(() =>
      Tls.createServer({ key, cert }, (socket) => onConnection(socket.on("error", () => undefined))),
    ),
    (host) => `https://${host}`,
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
