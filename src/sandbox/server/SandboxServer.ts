/**
 * The embedded service behind its HTTP contract: `/api` and `/flows`, every route with the contract's own
 * codecs and behind the gate; as a client in this process, and as a server on this machine. The server binds
 * 127.0.0.1 unless told otherwise, prints nothing, and returns its addresses; port 0 takes any free port.
 */
import { ByteSize, Context, Duration, Effect, Layer, type Scope } from "effect"
import { HttpClient, HttpClientError, HttpIncomingMessage, HttpMethod, HttpRouter } from "effect/http"
import { HttpServer, HttpServerRequest, HttpServerResponse } from "effect/http"
import type { HttpClientRequest, HttpServerError } from "effect/http"
import { HttpApi, HttpApiBuilder } from "effect/http-api"
import { LocalServer } from "../../base/LocalServer.ts"
import { given } from "../../base/Schemas.ts"
import { isLoopback } from "../../base/Text.ts"
import { beginCall, noteCatalogueRead } from "../core/SandboxCore.ts"
import { listEngines, showEngine } from "../engines/AnswerEngines.ts"
import * as Executions from "../executions/Executions.ts"
import { startExecution } from "../executions/Executions.ts"
import { downloadAttachment, readFlowResults } from "../flows/FlowSessions.ts"
import * as Hooks from "../hooks/Hooks.ts"
import { ConnectionLost, FaultGate, ReadingGate, SandboxGate, SentGate, TimeGate } from "./Gates.ts"
import { OpenRoutes, OwnRoutes, RecordsRoutes, UnmatchedRoutes } from "./OwnRoutes.ts"
import { coreOfSandbox, type Sandbox } from "./Sandbox.ts"
import * as Tokens from "../tokens/Tokens.ts"
import { ServiceApi } from "../../service/Api.ts"

/** Section 7: everything that is wrong with a body is reported at once. */
const GatedApi = ServiceApi.middleware(SandboxGate).annotate(HttpApi.PayloadParseOptions, { errors: "all" })

const executions = HttpApiBuilder.group(GatedApi, "executions", (handlers) =>
  handlers.handleAll({
    startExecution: ({ payload }) => startExecution(payload),
    startTokenized: ({ payload }) => Tokens.startTokenized(payload),
    readExecution: ({ params }) => Executions.readExecution(params.execution_id),
    pollExecution: ({ params }) => Executions.pollExecution(params.execution_id),
    resumeExecution: ({ params, payload }) => Executions.resumeExecution(params.execution_id, payload),
    abortExecution: ({ params }) => Executions.abortExecution(params.execution_id),
    deleteExecution: ({ params }) => Executions.deleteExecution(params.execution_id),
    readProfile: ({ params }) => Executions.readProfile(params.execution_id),
  }),
)

const tokens = HttpApiBuilder.group(GatedApi, "tokens", (handlers) =>
  handlers.handleAll({
    exchangeTicket: ({ payload }) => Tokens.exchangeTicket(payload),
    readToken: ({ params }) => Tokens.readToken(params.token_id),
    revokeToken: ({ params }) => Tokens.revokeToken(params.token_id),
  }),
)

const hooks = HttpApiBuilder.group(GatedApi, "hooks", (handlers) =>
  handlers.handleAll({
    listFlowHooks: () => Hooks.listFlowHooks(),
    createFlowHooks: ({ payload }) => Hooks.createFlowHooks(payload),
    updateFlowHooks: ({ payload }) => Hooks.updateFlowHooks(payload),
    deleteFlowHooks: ({ payload }) => Hooks.deleteFlowHooks(payload),
  }),
)

const noteList = Effect.map(beginCall, ({ watch, at, application }) =>
  noteCatalogueRead(watch, application.app_id, at),
)

const engines = HttpApiBuilder.group(GatedApi, "engines", (handlers) =>
  handlers.handleAll({
    listEngines: ({ query }) => Effect.andThen(noteList, listEngines(query)),
    showEngine: ({ params }) => showEngine(params.engine_reference),
  }),
)

const flows = HttpApiBuilder.group(GatedApi, "flows", (handlers) =>
  handlers.handleAll({
    readFlowResults: ({ params }) => readFlowResults(params.session_id),
    downloadAttachment: ({ params }) =>
      Effect.map(downloadAttachment(params.session_id, params.attachment_id), (document) =>
        HttpServerResponse.uint8Array(document.bytes, { contentType: document.media_type }),
      ),
  }),
)

/**
 * Ids are opaque: one that is longer than a router expects is an unknown id, behind the gate. A path with
 * other letters or a slash more is another one, as behind any gateway.
 */
export const routerConfig = { maxParamLength: 10_000, caseSensitive: true, ignoreDuplicateSlashes: false }

/** Needs the service itself, a router to put the routes into, and the platform's HTTP services. */
export const SandboxRoutes = {
  layer: Layer.mergeAll(
    HttpApiBuilder.layer(GatedApi).pipe(
      Layer.provide([executions, tokens, engines, flows, hooks]),
      Layer.provide(SandboxGate.layer),
      Layer.provide(ReadingGate.layer),
      Layer.provide([FaultGate.layer, TimeGate.layer]),
    ),
    OpenRoutes.layer,
    RecordsRoutes.layer.pipe(Layer.provide(TimeGate.layer)),
    OwnRoutes.layer.pipe(Layer.provide(ReadingGate.layer)),
    SentGate.layer,
    UnmatchedRoutes.layer,
  ).pipe(HttpRouter.provideRequest(coreOfSandbox)),
}

const origin = "https://sandbox.invalid"

/** As an HTTP client reports a connection that cannot be made, or that a fault broke after the request. */
const lost = (request: HttpClientRequest.HttpClientRequest, description: string, code?: string) =>
  new HttpClientError.HttpClientError({
    reason: new HttpClientError.TransportError({
      request,
      description,
      ...given({ cause: code && Object.assign(new Error(description), { code, syscall: "read" }) }),
    }),
  })

const make: Effect.Effect<HttpClient.HttpClient, never, Sandbox | Scope.Scope> = Effect.gen(function* () {
  const handler = yield* HttpRouter.toHttpEffect(
    SandboxRoutes.layer.pipe(Layer.provide(HttpServer.layerServices)),
  ).pipe(Effect.provideService(HttpRouter.RouterConfig, routerConfig))
  return HttpClient.make((request, url) => {
    if (url.origin !== origin) return Effect.fail(lost(request, "nobody listens there"))
    return handler.pipe(
      Effect.catch(() => Effect.succeed(HttpServerResponse.empty({ status: 404 }))),
      Effect.map((response) => HttpServerResponse.toClientResponse(response, { request })),
      Effect.provideService(
        HttpServerRequest.HttpServerRequest,
        HttpServerRequest.fromClientRequest(request),
      ),
      Effect.scoped,
      Effect.catchDefect((defect) =>
        defect instanceof ConnectionLost
          ? Effect.fail(lost(request, defect.message, "ECONNRESET"))
          : Effect.die(defect),
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
    const isLocal = isLoopback(host)
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
  }: {
    readonly port: number
    readonly host?: string
  }): Layer.Layer<SandboxServer, HttpServerError.ServeError, Sandbox> =>
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
