/**
 * The embedded service's truth for people who test against it: `GET /admin` as a page, `GET /admin/truth`
 * as JSON. No secret is required (the server binds this machine only, unless told otherwise) and none is
 * shown; neither the reference nor the contract has such routes.
 */
import { Clock, Effect, Layer, Result, Schema } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApi, HttpApiBuilder, HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api"
import { given } from "../../base/Schemas.ts"
import { adminPage, type AdminFilter, type AdminView } from "../admin/AdminPage.ts"
import { readRecords } from "../executions/Executions.ts"
import { encryptionKey } from "../executions/JudgeRequest.ts"
import { endpointsOf } from "../faults/Faults.ts"
import { createSession, takeStep, viewSession, widgetBodies } from "../flows/FlowSessions.ts"
import { bindHooks, listHooks, unbindHooks } from "../hooks/Hooks.ts"
import { gatewayAnswer } from "../readings/ShapeAnswer.ts"
import { Sandbox } from "./Sandbox.ts"
import { SandboxGate, refuse, sent } from "./Gates.ts"
import { Webhook, deliveryOrders } from "../state/HookState.ts"
import { Conflict, Forbidden, Invalid, NoContent, NotFound, ServiceApi } from "../../service/Api.ts"
import { Unauthorized } from "../../service/Api.ts"

const limitMax = 1_000
const limitDefault = 100

const Asked = Schema.Struct({
  limit: Schema.optionalKey(
    Schema.NumberFromString.check(
      Schema.makeFilter((limit: number) => Number.isInteger(limit) && limit >= 1 && limit <= limitMax, {
        expected: `a whole number from 1 to ${limitMax}`,
      }),
    ),
  ),
  customer: Schema.optionalKey(Schema.String),
  application: Schema.optionalKey(Schema.String),
})
const decodeAsked = Schema.decodeUnknownResult(Asked)

const filterOf = ({ limit = limitDefault, customer, application }: typeof Asked.Type): AdminFilter => ({
  limit,
  ...given({ customer: customer || undefined, application: application || undefined }),
})

const refused = refuse(
  422,
  `limit: a whole number from 1 to ${limitMax}; customer, application: one text each`,
)

/** A page shows what callers sent: it may load nothing and run nothing. */
const headers = {
  "content-security-policy":
    "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cache-control": "no-store",
}

const answering = (show: (view: AdminView) => HttpServerResponse.HttpServerResponse) =>
  Effect.fnUntraced(function* (sandbox: Sandbox["Service"]) {
    const asked = decodeAsked(yield* HttpServerRequest.ParsedSearchParams)
    if (Result.isFailure(asked)) return refused
    const now = yield* Clock.currentTimeMillis
    return show(sandbox.admin(now, filterOf(asked.success)))
  })

const truth = answering((view) => HttpServerResponse.jsonUnsafe(view, { headers }))
const page = answering((view) =>
  HttpServerResponse.text(adminPage(view), { headers, contentType: "text/html; charset=utf-8" }),
)

const encryptionKeyPath = "/api/sandbox/encryption-key"

/** Without a secret: the truth, its page, and the public half of the service's key (5). */
export const OpenRoutes = {
  layer: Layer.unwrap(
    Effect.map(Sandbox, (sandbox) =>
      Layer.mergeAll(
        HttpRouter.add("GET", "/admin/truth", truth(sandbox)),
        HttpRouter.add("GET", "/admin", page(sandbox)),
        HttpRouter.add("GET", encryptionKeyPath, HttpServerResponse.jsonUnsafe(encryptionKey)),
      ),
    ),
  ),
}

const denied = [Unauthorized, Forbidden] as const

// 4.12, path and answer own choice: with it a service without the flow API can still be read completely.

const Records = HttpApiGroup.make("records").add(
  HttpApiEndpoint.get("readRecords", "/:execution_id/:family/v1/records", {
    params: { execution_id: Schema.String, family: Schema.String },
    success: Schema.Unknown,
    error: [NotFound, ...denied],
  }),
)

class RecordsApi extends HttpApi.make("sandbox-records")
  .add(Records.prefix("/api/executions/results"))
  .middleware(SandboxGate) {}

const records = HttpApiBuilder.group(RecordsApi, "records", (handlers) =>
  handlers.handleAll({ readRecords: ({ params }) => readRecords(params.execution_id, params.family) }),
)

/** Needs the service and a router. */
export const RecordsRoutes = {
  layer: Layer.unwrap(
    Effect.map(Sandbox, ({ core: { reading } }) =>
      reading.result_kinds === "absent"
        ? Layer.empty
        : HttpApiBuilder.layer(RecordsApi).pipe(Layer.provide(records), Layer.provide(SandboxGate.layer)),
    ),
  ),
}

// `{origin}/sandbox/hooks`: the reference does not say how to subscribe to execution events.

/** One execution event of an application and where it goes. */
const ExecutionHook = Schema.Struct({
  event: Schema.String,
  url: Schema.String,
  order: Schema.Literals(deliveryOrders),
  duplicates: Schema.Boolean,
})
const Hooks = HttpApiGroup.make("executionHooks").add(
  HttpApiEndpoint.get("listHooks", "/hooks", { success: Schema.Array(ExecutionHook), error: denied }),
  HttpApiEndpoint.put("bindHooks", "/hooks", {
    payload: Webhook,
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

// `{flows_url}/es-public-administration/v1/widget`: the reference does not show how a widget is used.

const widgetErrors = [NotFound, Conflict, Invalid, Unauthorized, Forbidden] as const
const success = Schema.Unknown
const ofSession = { params: { session_id: Schema.String }, success, error: widgetErrors }

const step = <Name extends string, Payload extends Schema.Struct<Schema.Struct.Fields>>(
  name: Name,
  payload: Payload,
) => HttpApiEndpoint.post(name, `/widget/:session_id/${name}`, { ...ofSession, payload })

const Widget = HttpApiGroup.make("widget").add(
  HttpApiEndpoint.post("createSession", "/widget", {
    payload: widgetBodies.create,
    success: success.pipe(HttpApiSchema.status(201)),
    error: widgetErrors,
  }),
  HttpApiEndpoint.get("viewSession", "/widget/:session_id", ofSession),
  step("start", widgetBodies.start),
  step("consent", widgetBodies.consent),
  step("connect", widgetBodies.connect),
  step("answer", widgetBodies.answer),
  HttpApiEndpoint.post("leave", "/widget/:session_id/leave", ofSession),
  HttpApiEndpoint.post("cancel", "/widget/:session_id/cancel", ofSession),
  HttpApiEndpoint.post("cancelByClient", "/widget/:session_id/client-cancel", ofSession),
)

class OwnApi extends HttpApi.make("sandbox-own")
  .add(Hooks.prefix("/sandbox"), Widget.prefix("/flows/es-public-administration/v1"))
  .middleware(SandboxGate) {}

const hooks = HttpApiBuilder.group(OwnApi, "executionHooks", (handlers) =>
  handlers.handleAll({
    listHooks: () => listHooks(),
    bindHooks: ({ payload }) => bindHooks(payload),
    unbindHooks: ({ query }) => unbindHooks(query.events),
  }),
)

const widget = HttpApiBuilder.group(OwnApi, "widget", (handlers) =>
  handlers.handleAll({
    createSession: ({ payload }) => createSession(payload),
    viewSession: ({ params: { session_id } }) => viewSession(session_id),
    start: ({ params: { session_id }, payload }) => takeStep(session_id, { ...payload, _tag: "start" }),
    consent: ({ params: { session_id }, payload }) => takeStep(session_id, { ...payload, _tag: "consent" }),
    connect: ({ params: { session_id }, payload }) => takeStep(session_id, { ...payload, _tag: "connect" }),
    answer: ({ params: { session_id }, payload }) => takeStep(session_id, { ...payload, _tag: "answer" }),
    leave: ({ params: { session_id } }) => takeStep(session_id, { _tag: "leave" }),
    cancel: ({ params: { session_id } }) => takeStep(session_id, { _tag: "cancel" }),
    cancelByClient: ({ params: { session_id } }) => takeStep(session_id, { _tag: "client-cancel" }),
  }),
)

// Whatever no route takes: a path that the service does not have, or a method that the path does not have.

const openRoutes = ["GET /admin", "GET /admin/truth", `GET ${encryptionKeyPath}`]
const namedRoutes = [...endpointsOf(ServiceApi).keys(), ...endpointsOf(OwnApi).keys(), ...openRoutes]

/** The methods of a path, which is read as the router reads it. */
const methodsOf = (path: string): ReadonlyArray<string> => {
  const found = namedRoutes.flatMap((route) => {
    const [method = "", pattern = ""] = route.split(" ")
    return new RegExp(`^${pattern.replaceAll(/:\w+/g, "[^/]+")}/?$`).test(path) ? [method] : []
  })
  return [...new Set(found.flatMap((method) => (method === "GET" ? ["GET", "HEAD"] : [method])))]
}

const unmatched = ({ core: { reading } }: Sandbox["Service"]) =>
  Effect.map(HttpServerRequest.HttpServerRequest, ({ method, url }) => {
    const path = url.replace(/[?#;].*$/s, "")
    const gateway = gatewayAnswer(reading, path)
    if (gateway !== undefined) return sent(gateway)
    const allowed = methodsOf(path)
    if (allowed.length === 0 || allowed.includes(method)) return refuse(404, "Not Found")
    return HttpServerResponse.setHeader(refuse(405, "Method Not Allowed"), "allow", allowed.join(", "))
  })

/** A HEAD takes the way of a GET. */
const methods = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] as const
export const UnmatchedRoutes = {
  layer: HttpRouter.addAll(
    Effect.map(Sandbox, (sandbox) =>
      methods.map((method) => HttpRouter.route(method, "*", unmatched(sandbox))),
    ),
  ),
}

/** Needs the service, a router and the platform's HTTP services. */
export const OwnRoutes = {
  layer: HttpApiBuilder.layer(OwnApi).pipe(Layer.provide([hooks, widget]), Layer.provide(SandboxGate.layer)),
}
