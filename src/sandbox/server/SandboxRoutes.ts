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
import { CallingApplication, SandboxGate } from "./SandboxGate.ts"
import { TimeGate } from "./TimeGate.ts"
import { WidgetRoutes } from "./WidgetRoutes.ts"

/** Section 7: everything that is wrong with a body is reported at once. */
const GatedApi = ServiceApi.middleware(SandboxGate).annotate(HttpApi.PayloadParseOptions, { errors: "all" })

const executions = HttpApiBuilder.group(GatedApi, "executions", (handlers) =>
  Effect.map(Sandbox, (sandbox) =>
    handlers.handleAll({
      startExecution: ({ payload }) =>
        Effect.flatMap(CallingApplication, (application) => sandbox.startExecution(application, payload)),
      startTokenized: ({ payload }) =>
        Effect.flatMap(CallingApplication, (application) => sandbox.startTokenized(application, payload)),
      readExecution: ({ params }) =>
        Effect.flatMap(CallingApplication, (application) =>
          sandbox.readExecution(application, params.execution_id),
        ),
      pollExecution: ({ params }) =>
        Effect.flatMap(CallingApplication, (application) =>
          sandbox.pollExecution(application, params.execution_id),
        ),
      resumeExecution: ({ params, payload }) =>
        Effect.flatMap(CallingApplication, (application) =>
          sandbox.resumeExecution(application, params.execution_id, payload),
        ),
      abortExecution: ({ params }) =>
        Effect.flatMap(CallingApplication, (application) =>
          sandbox.abortExecution(application, params.execution_id),
        ),
      deleteExecution: ({ params }) =>
        Effect.flatMap(CallingApplication, (application) =>
          sandbox.deleteExecution(application, params.execution_id),
        ),
      readProfile: ({ params }) =>
        Effect.flatMap(CallingApplication, (application) =>
          sandbox.readProfile(application, params.execution_id),
        ),
    }),
  ),
)

const tokens = HttpApiBuilder.group(GatedApi, "tokens", (handlers) =>
  Effect.map(Sandbox, (sandbox) =>
    handlers.handleAll({
      exchangeTicket: ({ payload }) =>
        Effect.flatMap(CallingApplication, (application) => sandbox.exchangeTicket(application, payload)),
      readToken: ({ params }) =>
        Effect.flatMap(CallingApplication, (application) => sandbox.readToken(application, params.token_id)),
      revokeToken: ({ params }) =>
        Effect.flatMap(CallingApplication, (application) =>
          sandbox.revokeToken(application, params.token_id),
        ),
    }),
  ),
)

const hooks = HttpApiBuilder.group(GatedApi, "hooks", (handlers) =>
  Effect.map(Sandbox, (sandbox) =>
    handlers.handleAll({
      listFlowHooks: () =>
        Effect.flatMap(CallingApplication, (application) => sandbox.listFlowHooks(application)),
      createFlowHooks: ({ payload }) =>
        Effect.flatMap(CallingApplication, (application) => sandbox.createFlowHooks(application, payload)),
      updateFlowHooks: ({ payload }) =>
        Effect.flatMap(CallingApplication, (application) => sandbox.updateFlowHooks(application, payload)),
      deleteFlowHooks: ({ payload }) =>
        Effect.flatMap(CallingApplication, (application) => sandbox.deleteFlowHooks(application, payload)),
    }),
  ),
)

const engines = HttpApiBuilder.group(GatedApi, "engines", (handlers) =>
  Effect.map(Sandbox, (sandbox) =>
    handlers.handleAll({
      listEngines: ({ query }) =>
        Effect.flatMap(CallingApplication, (application) =>
          Effect.andThen(sandbox.noteCatalogueRead(application), listEngines(application, query)),
        ),
      showEngine: ({ params }) =>
        Effect.flatMap(CallingApplication, (application) => showEngine(application, params.engine_reference)),
    }),
  ),
)

const flows = HttpApiBuilder.group(GatedApi, "flows", (handlers) =>
  Effect.map(Sandbox, (sandbox) =>
    handlers.handleAll({
      readFlowResults: ({ params }) =>
        Effect.flatMap(CallingApplication, (application) =>
          sandbox.readFlowResults(application, params.session_id),
        ),
      downloadAttachment: ({ params }) =>
        Effect.flatMap(CallingApplication, (application) =>
          sandbox.downloadAttachment(application, params.session_id, params.attachment_id),
        ).pipe(
          Effect.map(({ bytes, media_type }) =>
            HttpServerResponse.uint8Array(bytes, { contentType: media_type }),
          ),
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
