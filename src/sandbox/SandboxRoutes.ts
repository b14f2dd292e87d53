/**
 * The embedded service behind its HTTP contract: `/api` and `/flows`, every route with the contract's own
 * codecs and behind the gate.
 */
import { Effect, Layer } from "effect"
import { HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { ServiceApi } from "../contract/Api.ts"
import { listEngines, showEngine } from "./AnswerEngines.ts"
import { createFlowHooks, deleteFlowHooks, listFlowHooks, updateFlowHooks } from "./AnswerHooks.ts"
import { exchangeTicket, readToken, revokeToken, startTokenized } from "./AnswerTokens.ts"
import { Sandbox } from "./Sandbox.ts"
import { CallingApplication, SandboxGate } from "./SandboxGate.ts"

const GatedApi = ServiceApi.middleware(SandboxGate)

const executions = HttpApiBuilder.group(GatedApi, "executions", (handlers) =>
  Effect.map(Sandbox, (sandbox) =>
    handlers.handleAll({
      startExecution: ({ payload }) =>
        Effect.flatMap(CallingApplication, (application) => sandbox.startExecution(application, payload)),
      startTokenized: ({ payload }) =>
        Effect.flatMap(CallingApplication, (application) => startTokenized(sandbox, application, payload)),
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
        Effect.flatMap(CallingApplication, (application) => exchangeTicket(sandbox, application, payload)),
      readToken: ({ params }) =>
        Effect.flatMap(CallingApplication, (application) => readToken(sandbox, application, params.token_id)),
      revokeToken: ({ params }) =>
        Effect.flatMap(CallingApplication, (application) =>
          revokeToken(sandbox, application, params.token_id),
        ),
    }),
  ),
)

const hooks = HttpApiBuilder.group(GatedApi, "hooks", (handlers) =>
  Effect.map(Sandbox, (sandbox) =>
    handlers.handleAll({
      listFlowHooks: () =>
        Effect.flatMap(CallingApplication, (application) => listFlowHooks(sandbox, application)),
      createFlowHooks: ({ payload }) =>
        Effect.flatMap(CallingApplication, (application) => createFlowHooks(sandbox, application, payload)),
      updateFlowHooks: ({ payload }) =>
        Effect.flatMap(CallingApplication, (application) => updateFlowHooks(sandbox, application, payload)),
      deleteFlowHooks: ({ payload }) =>
        Effect.flatMap(CallingApplication, (application) => deleteFlowHooks(sandbox, application, payload)),
    }),
  ),
)

const engines = HttpApiBuilder.group(GatedApi, "engines", (handlers) =>
  handlers.handleAll({
    listEngines: ({ query }) => listEngines(query),
    showEngine: ({ params }) => showEngine(params.engine_reference),
  }),
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

/** Needs the service itself, a router to put the routes into, and the platform's HTTP services. */
export const SandboxRoutes = {
  layer: HttpApiBuilder.layer(GatedApi).pipe(
    Layer.provide([executions, tokens, engines, flows, hooks]),
    Layer.provide(SandboxGate.layer),
  ),
}
