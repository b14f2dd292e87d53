/**
 * The service's own interface for subscriptions to execution events, `{origin}/sandbox/hooks`, behind the
 * gate: the reference says that subscribers receive them, not how to subscribe. Not part of the contract.
 */
import { Layer, Schema } from "effect"
import { HttpApi, HttpApiBuilder, HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { Forbidden, Invalid, NoContent, NotFound, Unauthorized } from "../../service/Api.ts"
import { deliveryOrders } from "../state/HookEvent.ts"
import { bindHooks, listHooks, unbindHooks } from "../hooks/AnswerHooks.ts"
import { SandboxGate } from "./SandboxGate.ts"

const order = Schema.Literals(deliveryOrders)

/** One execution event of an application and where it goes. */
const ExecutionHook = Schema.Struct({
  event: Schema.String,
  url: Schema.String,
  order,
  duplicates: Schema.Boolean,
})
const denied = [Unauthorized, Forbidden] as const

const Hooks = HttpApiGroup.make("executionHooks").add(
  HttpApiEndpoint.get("listHooks", "/hooks", { success: Schema.Array(ExecutionHook), error: denied }),
  HttpApiEndpoint.put("bindHooks", "/hooks", {
    payload: Schema.Struct({
      url: Schema.String,
      /** All four if absent. */
      events: Schema.optionalKey(Schema.Array(Schema.String)),
      order: Schema.optionalKey(order),
      duplicates: Schema.optionalKey(Schema.Boolean),
    }),
    success: Schema.Array(ExecutionHook),
    error: [Invalid, ...denied],
  }),
  HttpApiEndpoint.delete("unbindHooks", "/hooks", {
    /** All that are bound if absent. */
    query: { events: Schema.optionalKey(Schema.ArrayEnsure(Schema.String)) },
    success: NoContent,
    error: [NotFound, Invalid, ...denied],
  }),
)

class HookApi extends HttpApi.make("sandbox-hooks").add(Hooks.prefix("/sandbox")).middleware(SandboxGate) {}

const hooks = HttpApiBuilder.group(HookApi, "executionHooks", (handlers) =>
  handlers.handleAll({
    listHooks: () => listHooks(),
    bindHooks: ({ payload }) => bindHooks(payload),
    unbindHooks: ({ query }) => unbindHooks(query.events),
  }),
)

/** Needs the service, a router and the platform's HTTP services. */
export const HookRoutes = {
  layer: HttpApiBuilder.layer(HookApi).pipe(Layer.provide(hooks), Layer.provide(SandboxGate.layer)),
}
