/**
 * The service's own interface to flow sessions, `{flows_url}/es-public-administration/v1/widget`, behind
 * the gate: the reference shows what a session's customer causes, not how a widget is used. Not part of the
 * contract; a test goes through a session with it, step by step.
 */
import { Layer, Schema } from "effect"
import { HttpApi, HttpApiBuilder, HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api"
import { Conflict, Forbidden, Invalid, NotFound, Unauthorized } from "../../service/Api.ts"
import { features as featureCodes } from "../../service/Vocabulary.ts"
import { createSession, takeStep, viewSession } from "../flows/AnswerWidget.ts"
import { SandboxGate } from "./SandboxGate.ts"

const text = Schema.optionalKey(Schema.String)
const codes = Schema.optionalKey(Schema.Array(Schema.Literals(featureCodes)))
const refused = [NotFound, Conflict, Invalid, Unauthorized, Forbidden] as const
const params = { session_id: Schema.String }
const success = Schema.Unknown

const SignedDocument = Schema.Union([
  Schema.String,
  Schema.Struct({
    document_id: Schema.String,
    signature_provider: text,
    signature_metadata: Schema.optionalKey(Schema.Record(Schema.String, Schema.Unknown)),
  }),
])

const Widget = HttpApiGroup.make("widget").add(
  HttpApiEndpoint.post("createSession", "/widget", {
    payload: Schema.Struct({ customer_id: text, features: codes, behaviour: text }),
    success: success.pipe(HttpApiSchema.status(201)),
    error: refused,
  }),
  HttpApiEndpoint.get("viewSession", "/widget/:session_id", { params, success, error: refused }),
  HttpApiEndpoint.post("start", "/widget/:session_id/start", {
    params,
    payload: Schema.Struct({ user_ip: text, user_agent: text, origin: text }),
    success,
    error: refused,
  }),
  HttpApiEndpoint.post("consent", "/widget/:session_id/consent", {
    params,
    payload: Schema.Struct({
      features: codes,
      documents: Schema.optionalKey(Schema.Array(SignedDocument)),
    }),
    success,
    error: refused,
  }),
  HttpApiEndpoint.post("connect", "/widget/:session_id/connect", {
    params,
    payload: Schema.Struct({
      engine_reference: Schema.String,
      parameters: Schema.Record(Schema.String, Schema.Unknown),
      features: codes,
    }),
    success,
    error: refused,
  }),
  HttpApiEndpoint.post("answer", "/widget/:session_id/answer", {
    params,
    payload: Schema.Struct({ code: Schema.String }),
    success,
    error: refused,
  }),
  HttpApiEndpoint.post("leave", "/widget/:session_id/leave", { params, success, error: refused }),
  HttpApiEndpoint.post("cancel", "/widget/:session_id/cancel", { params, success, error: refused }),
  HttpApiEndpoint.post("cancelByClient", "/widget/:session_id/client-cancel", {
    params,
    success,
    error: refused,
  }),
)

class WidgetApi extends HttpApi.make("sandbox-widget")
  .add(Widget.prefix("/flows/es-public-administration/v1"))
  .middleware(SandboxGate) {}

const widget = HttpApiBuilder.group(WidgetApi, "widget", (handlers) =>
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

/** Needs the service, a router and the platform's HTTP services. */
export const WidgetRoutes = {
  layer: HttpApiBuilder.layer(WidgetApi).pipe(Layer.provide(widget), Layer.provide(SandboxGate.layer)),
}
