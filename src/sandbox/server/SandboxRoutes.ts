/**
 * The embedded service behind its HTTP contract: `/api` and `/flows`, every route with the contract's own
 * codecs and behind the gate.
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
import { HttpApi, HttpApiBuilder } from "effect/http-api"
import { beginCall, noteCatalogueRead } from "../core/SandboxCore.ts"
import { listEngines, showEngine } from "../engines/AnswerEngines.ts"
import * as Executions from "../executions/AnswerExecutions.ts"
import { startExecution } from "../executions/DecideStart.ts"
import { downloadAttachment, readFlowResults } from "../flows/AnswerFlows.ts"
import * as Hooks from "../hooks/Hooks.ts"
import { HookRoutes, OpenRoutes, RecordsRoutes, WidgetRoutes } from "./OwnRoutes.ts"
import { ConnectionLost, FaultGate, ReadingGate, SandboxGate, TimeGate } from "./Gates.ts"
import { coreOfSandbox } from "./Sandbox.ts"
import type { Sandbox } from "./Sandbox.ts"
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

/** Ids are opaque: one that is longer than a router expects is an unknown id, behind the gate. */
export const routerConfig = { maxParamLength: 10_000 }

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
    HookRoutes.layer,
    RecordsRoutes.layer.pipe(Layer.provide(TimeGate.layer)),
    WidgetRoutes.layer.pipe(Layer.provide(ReadingGate.layer)),
  ).pipe(HttpRouter.provideRequest(coreOfSandbox)),
}

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
