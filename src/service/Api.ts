/**
 * The remote service as one definition: the direct execution API at `{base_url}` and the flow API at
 * `{flows_url}` (sections 4, 5 and 7). Client, embedded service and OpenAPI document derive from it, so no
 * path is written twice.
 */
import { Schema } from "effect"
import { HttpApi, HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Engine, EngineDetails, FeatureCode, open, openEnum } from "./Engine.ts"
import {
  ExchangeRequest,
  FlowHook,
  StartRequest,
  TokenizedStartRequest,
  ValidationItem,
  acceptanceFields,
  actionRequiredFields,
  exchangedFields,
  executionStateFields,
} from "./Execution.ts"
import { flowResultsFields, flowResultsPath, profilePath } from "./FlowResults.ts"
import { featuresModes, flowEvents, mainCategories } from "./Vocabulary.ts"

/** A body with its own HTTP status; the tag distinguishes answers in code and is never sent. */
const answer = <const Tag extends string, const Fields extends Schema.Struct.Fields>(
  tag: Tag,
  status: number,
  fields: Fields,
) => open({ _tag: Schema.tagDefaultOmit(tag), ...fields }).pipe(HttpApiSchema.status(status))

const emptyAnswer = <const Tag extends string>(tag: Tag, status: number) =>
  Schema.TaggedStruct(tag, {}).pipe(
    HttpApiSchema.asNoContent({ decode: () => ({ _tag: tag }) as never }),
    HttpApiSchema.status(status),
  )

/** Section 7: most errors are `{detail: string}`. */
const detail = <const Tag extends string>(tag: Tag, status: number) =>
  answer(tag, status, { detail: Schema.optionalKey(Schema.Unknown) })

export const Unauthorized = detail("Unauthorized", 401)
export const Forbidden = detail("Forbidden", 403)
export const NotFound = detail("NotFound", 404)
export const Conflict = detail("Conflict", 409)
/** Section 7: 422 carries a list of validation items. */
export const Invalid = answer("Invalid", 422, { detail: Schema.Array(ValidationItem) })
/** The reference shows rate limits only for flow results; any other endpoint may answer 429 too. */
export const TooManyRequests = detail("TooManyRequests", 429)
export const Unavailable = detail("Unavailable", 503)
/** 4.10: the exclusive lock on the session could not be obtained in time. */
export const LockTimeout = detail("LockTimeout", 504)

/** 4.1 */
export const Accepted = answer("Accepted", 202, acceptanceFields)
/** 4.1: nothing was created; `status_reason` is CUSTOMER_INTERVENTION_REQUIRED or T10N_FORBIDDEN. */
export const Refused = answer("Refused", 400, acceptanceFields)
/** 4.1: ids are those of the run already in flight. */
export const AlreadyExecuting = answer("AlreadyExecuting", 409, acceptanceFields)

/** 4.2 */
export const Closed = answer("Closed", 200, executionStateFields)
export const Working = answer("Working", 202, executionStateFields)
export const ActionRequired = answer("ActionRequired", 423, actionRequiredFields)

/** 4.3 to 4.5 */
export const BadRequest = detail("BadRequest", 400)
export const Gone = detail("Gone", 410)
export const NoContent = emptyAnswer("NoContent", 204)
export const NotModified = emptyAnswer("NotModified", 304)

/** 4.6 */
export const Exchanged = answer("Exchanged", 200, exchangedFields)

/** 4.10 */
export const FlowResults = answer("FlowResults", 200, flowResultsFields)
export const NeverStarted = detail("NeverStarted", 412)

const denied = [Unauthorized, Forbidden] as const
const executionPath = { execution_id: Schema.String }

export const Executions = HttpApiGroup.make("executions").add(
  HttpApiEndpoint.post("startExecution", "/executions/init/v1/parametrized", {
    payload: StartRequest,
    success: Accepted,
    error: [Refused, AlreadyExecuting, Invalid, TooManyRequests, Unavailable, ...denied],
  }),
  // 4.12: body and answers are not shown; the embedded service answers as 4.1 does.
  HttpApiEndpoint.post("startTokenized", "/executions/init/v1/tokenized", {
    payload: TokenizedStartRequest,
    success: Accepted,
    error: [Refused, AlreadyExecuting, NotFound, Invalid, TooManyRequests, Unavailable, ...denied],
  }),
  HttpApiEndpoint.get("readExecution", "/executions/handler/v1/:execution_id", {
    params: executionPath,
    success: [Closed, Working],
    error: [ActionRequired, NotFound, TooManyRequests, ...denied],
  }),
  HttpApiEndpoint.head("pollExecution", "/executions/handler/v1/:execution_id", {
    params: executionPath,
    success: [emptyAnswer("Closed", 200), emptyAnswer("Working", 202)],
    error: [
      emptyAnswer("ActionRequired", 423),
      emptyAnswer("NotFound", 404),
      emptyAnswer("TooManyRequests", 429),
      emptyAnswer("Unauthorized", 401),
      emptyAnswer("Forbidden", 403),
    ],
  }),
  HttpApiEndpoint.put("resumeExecution", "/executions/handler/v1/:execution_id", {
    params: executionPath,
    payload: Schema.Union([Schema.Record(Schema.String, Schema.Unknown), Schema.String]),
    success: Accepted,
    error: [BadRequest, NotFound, Gone, Invalid, TooManyRequests, Unavailable, ...denied],
  }),
  HttpApiEndpoint.delete("abortExecution", "/executions/handler/v1/:execution_id/abort", {
    params: executionPath,
    success: [NoContent, NotModified],
    error: [NotFound, Conflict, Invalid, TooManyRequests, ...denied],
  }),
  HttpApiEndpoint.delete("deleteExecution", "/executions/handler/v1/:execution_id/delete", {
    params: executionPath,
    success: NoContent,
    error: [NotFound, Conflict, Invalid, TooManyRequests, ...denied],
  }),
  // 4.12: the answer is not shown; it is landed as it arrives.
  HttpApiEndpoint.get("readProfile", profilePath, {
    params: executionPath,
    success: Schema.Unknown,
    error: [NotFound, TooManyRequests, ...denied],
  }),
)

const tokenPath = { token_id: Schema.String }

export const Tokens = HttpApiGroup.make("tokens").add(
  HttpApiEndpoint.put("exchangeTicket", "/executions/t10n", {
    payload: ExchangeRequest,
    success: Exchanged,
    error: [Invalid, TooManyRequests, ...denied],
  }),
  // 4.12: the answer is not shown.
  HttpApiEndpoint.get("readToken", "/executions/t10n/:token_id", {
    params: tokenPath,
    success: Schema.Unknown,
    error: [NotFound, Invalid, TooManyRequests, ...denied],
  }),
  HttpApiEndpoint.delete("revokeToken", "/executions/t10n/:token_id", {
    params: tokenPath,
    success: [NoContent, NotModified],
    error: [NotFound, Invalid, TooManyRequests, ...denied],
  }),
)

export const Engines = HttpApiGroup.make("engines").add(
  HttpApiEndpoint.get("listEngines", "/config/engines/list", {
    query: {
      markets: Schema.optionalKey(Schema.ArrayEnsure(Schema.String)),
      features: Schema.optionalKey(Schema.ArrayEnsure(FeatureCode)),
      features_mode: Schema.optionalKey(Schema.Union([Schema.Literals(featuresModes), Schema.String])),
      main_category: Schema.optionalKey(Schema.Union([Schema.Literals(mainCategories), Schema.String])),
      is_online: Schema.optionalKey(Schema.String),
    },
    success: Schema.Array(Engine),
    error: [Invalid, TooManyRequests, ...denied],
  }),
  HttpApiEndpoint.get("showEngine", "/config/engines/:engine_reference", {
    params: { engine_reference: Schema.String },
    success: EngineDetails,
    error: [NotFound, Invalid, TooManyRequests, Unavailable, ...denied],
  }),
)

export const Flows = HttpApiGroup.make("flows").add(
  HttpApiEndpoint.get("readFlowResults", flowResultsPath, {
    params: { session_id: Schema.String },
    success: FlowResults,
    error: [NotFound, NeverStarted, Invalid, TooManyRequests, LockTimeout, ...denied],
  }),
  // 4.12: host, headers and answer are not shown.
  HttpApiEndpoint.get("downloadAttachment", "/attachments/:session_id/:attachment_id", {
    params: { session_id: Schema.String, attachment_id: Schema.String },
    success: Schema.Uint8Array.pipe(HttpApiSchema.asUint8Array({ contentType: "application/octet-stream" })),
    error: [NotFound, TooManyRequests, ...denied],
  }),
)

/** 4.11: create, update and delete take a plural `events`; other fields and the answers are not shown. */
const hookChange = open({ events: Schema.Array(openEnum(flowEvents)) })

/** 4.11: only the paths `/hooks/update` and `/hooks/delete` are shown, without their prefix. */
export const Hooks = HttpApiGroup.make("hooks").add(
  HttpApiEndpoint.get("listFlowHooks", "/hooks/list", {
    success: Schema.Array(FlowHook),
    error: [TooManyRequests, ...denied],
  }).annotate(OpenApi.Deprecated, true),
  HttpApiEndpoint.post("createFlowHooks", "/hooks/create", {
    payload: hookChange,
    success: Schema.Array(FlowHook),
    error: [Invalid, TooManyRequests, ...denied],
  }),
  HttpApiEndpoint.patch("updateFlowHooks", "/hooks/update", {
    payload: hookChange,
    success: Schema.Array(FlowHook),
    error: [NotFound, Invalid, TooManyRequests, ...denied],
  }),
  HttpApiEndpoint.delete("deleteFlowHooks", "/hooks/delete", {
    payload: hookChange,
    success: NoContent,
    error: [NotFound, Invalid, TooManyRequests, ...denied],
  }),
)

/** Section 5: every call carries the application secret. */
export const secretHeader = "X-APP-SECRET"

export class ExecutionApi extends HttpApi.make("execution")
  .add(Executions, Tokens, Engines)
  .annotateMerge(OpenApi.annotations({ title: "Direct execution API", version: "v1" })) {}

export class FlowApi extends HttpApi.make("flow")
  .add(Flows, Hooks)
  .annotateMerge(OpenApi.annotations({ title: "Flow API", version: "v1" })) {}

/** Both APIs on one host, as the embedded service and the OpenAPI document show them: `/api` and `/flows`. */
export class ServiceApi extends HttpApi.make("service")
  .add(
    Executions.prefix("/api"),
    Tokens.prefix("/api"),
    Engines.prefix("/api"),
    Flows.prefix("/flows"),
    Hooks.prefix("/flows"),
  )
  .annotateMerge(OpenApi.annotations({ title: "Credential-based data extraction service", version: "v1" })) {}
