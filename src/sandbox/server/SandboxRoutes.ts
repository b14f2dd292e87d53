/**
 * The embedded service behind its HTTP contract: `/api` and `/flows`, every route with the contract's own
 * codecs and behind the gate.
 */
import { Effect, Layer } from "effect"
import { HttpServerResponse } from "effect/http"
import { HttpApi, HttpApiBuilder } from "effect/http-api"
import { ServiceApi } from "../../contract/Api.ts"
import { AdminRoutes } from "./AdminRoutes.ts"
import { listEngines, showEngine } from "../engines/AnswerEngines.ts"
import { EncryptionRoutes } from "./EncryptionRoutes.ts"
import { HookRoutes } from "./HookRoutes.ts"
import { FaultGate } from "./FaultGate.ts"
import { ReadingGate } from "./ReadingGate.ts"
import { RecordsRoutes } from "./RecordsRoutes.ts"
import { Sandbox } from "./Sandbox.ts"
import { SandboxGate } from "./SandboxGate.ts"
import { TimeGate } from "./TimeGate.ts"
import { WidgetRoutes } from "./WidgetRoutes.ts"

/** Section 7: everything that is wrong with a body is told at once. */
const GatedApi = ServiceApi.middleware(SandboxGate).annotate(HttpApi.PayloadParseOptions, { errors: "all" })

const executions = HttpApiBuilder.group(GatedApi, "executions", (handlers) =>
  Effect.map(Sandbox, (sandbox) =>
    handlers.handleAll({
      startExecution: ({ payload }) => sandbox.startExecution(payload),
      startTokenized: ({ payload }) => sandbox.startTokenized(payload),
      readExecution: ({ params }) => sandbox.readExecution(params.execution_id),
      pollExecution: ({ params }) => sandbox.pollExecution(params.execution_id),
      resumeExecution: ({ params, payload }) => sandbox.resumeExecution(params.execution_id, payload),
      abortExecution: ({ params }) => sandbox.abortExecution(params.execution_id),
      deleteExecution: ({ params }) => sandbox.deleteExecution(params.execution_id),
      readProfile: ({ params }) => sandbox.readProfile(params.execution_id),
    }),
  ),
)

const tokens = HttpApiBuilder.group(GatedApi, "tokens", (handlers) =>
  Effect.map(Sandbox, (sandbox) =>
    handlers.handleAll({
      exchangeTicket: ({ payload }) => sandbox.exchangeTicket(payload),
      readToken: ({ params }) => sandbox.readToken(params.token_id),
      revokeToken: ({ params }) => sandbox.revokeToken(params.token_id),
    }),
  ),
)

const hooks = HttpApiBuilder.group(GatedApi, "hooks", (handlers) =>
  Effect.map(Sandbox, (sandbox) =>
    handlers.handleAll({
      listFlowHooks: () => sandbox.listFlowHooks(),
      createFlowHooks: ({ payload }) => sandbox.createFlowHooks(payload),
      updateFlowHooks: ({ payload }) => sandbox.updateFlowHooks(payload),
      deleteFlowHooks: ({ payload }) => sandbox.deleteFlowHooks(payload),
    }),
  ),
)

const engines = HttpApiBuilder.group(GatedApi, "engines", (handlers) =>
  Effect.map(Sandbox, (sandbox) =>
    handlers.handleAll({
      listEngines: ({ query }) => Effect.andThen(sandbox.noteCatalogueRead, listEngines(query)),
      showEngine: ({ params }) => showEngine(params.engine_reference),
    }),
  ),
)

const flows = HttpApiBuilder.group(GatedApi, "flows", (handlers) =>
  Effect.map(Sandbox, (sandbox) =>
    handlers.handleAll({
      readFlowResults: ({ params }) => sandbox.readFlowResults(params.session_id),
      downloadAttachment: ({ params }) =>
        Effect.map(sandbox.downloadAttachment(params.session_id, params.attachment_id), (document) =>
          HttpServerResponse.uint8Array(document.bytes, { contentType: document.media_type }),
        ),
    }),
  ),
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
    AdminRoutes.layer,
    EncryptionRoutes.layer,
    HookRoutes.layer,
    RecordsRoutes.layer.pipe(Layer.provide(TimeGate.layer)),
    WidgetRoutes.layer.pipe(Layer.provide(ReadingGate.layer)),
  ),
}
