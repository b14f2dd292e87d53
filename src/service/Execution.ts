/**
 * Executions: what a start sends, what acceptance and state reads carry (sections 2.4 to 2.6, 4.1, 4.2, 4.6).
 * Fields that the reference does not name are kept, values that it does not list are accepted.
 */
import { Schema } from "effect"
import { FeatureCode, FormSchema, nullableOptional, open, openEnum } from "./Engine.ts"
import { customerKey, type Access, type TaskId } from "./Ids.ts"
import {
  authOrigins,
  authenticationStatuses,
  endHooks,
  featureStatusReasons,
  flowEvents,
  messageTypes,
  statusCodes,
  statusReasons,
} from "./Vocabulary.ts"

export const StatusCodeSchema = openEnum(statusCodes)
export const StatusReasonSchema = openEnum(statusReasons)

/** 2.4 and 7: one item of a validation error. */
export const ValidationItem = open({
  loc: Schema.Array(Schema.Union([Schema.String, Schema.Finite])),
  msg: Schema.String,
  type: Schema.String,
  input: Schema.optionalKey(Schema.Unknown),
  ctx: Schema.optionalKey(Schema.Unknown),
})
export type ValidationItem = typeof ValidationItem.Type

/** 2.4: the outcome of one requested feature. */
export const FeatureState = open({
  code: FeatureCode,
  status_reason: openEnum(featureStatusReasons),
  status_message: nullableOptional(Schema.String),
})

/** 2.4: one message; automate on `id`, never on `message`. */
export const ExecutionMessage = open({
  date: Schema.String,
  type: openEnum(messageTypes),
  id: Schema.String,
  loc: Schema.Array(Schema.Union([Schema.String, Schema.Finite])),
  message: Schema.String,
})

export const executionStateFields = {
  execution_id: Schema.String,
  session_id: Schema.String,
  app_id: Schema.String,
  customer_id: Schema.String,
  external_execution_id: nullableOptional(Schema.String),
  engine_reference: Schema.String,
  auth_origin: openEnum(authOrigins),
  status_code: StatusCodeSchema,
  status_reason: StatusReasonSchema,
  status_message: nullableOptional(Schema.String),
  authentication_status: openEnum(authenticationStatuses),
  is_closed: Schema.Boolean,
  products_count: Schema.Record(Schema.String, Schema.Int),
  end_hook: openEnum(endHooks),
  warnings_count: Schema.Int,
  errors_count: Schema.Int,
  locking_hash: nullableOptional(Schema.String),
  date_created: Schema.String,
  date_started: Schema.optionalKey(Schema.String),
  date_ended: Schema.optionalKey(Schema.String),
  execution_time: Schema.Finite,
  running_time: Schema.Finite,
  total_elapsed_time: Schema.Finite,
  action_required_expires: Schema.optionalKey(Schema.String),
  next_kick_date: Schema.optionalKey(Schema.String),
  features: Schema.Array(FeatureState),
  configurations_errors: Schema.optionalKey(Schema.Array(ValidationItem)),
  parameters_errors: Schema.optionalKey(Schema.Array(ValidationItem)),
  messages: Schema.optionalKey(Schema.Array(ExecutionMessage)),
}

/** 2.4 */
export const ExecutionState = open(executionStateFields)
export type ExecutionState = typeof ExecutionState.Type

export const acceptanceFields = {
  app_id: Schema.String,
  customer_id: Schema.String,
  auth_origin: openEnum(authOrigins),
  engine_reference: Schema.String,
  status_reason: StatusReasonSchema,
  status_code: StatusCodeSchema,
  execution_id: Schema.optionalKey(Schema.String),
  session_id: Schema.optionalKey(Schema.String),
  external_execution_id: nullableOptional(Schema.String),
  status_message: nullableOptional(Schema.String),
  ticket: Schema.optionalKey(Schema.String),
  session_token: Schema.optionalKey(Schema.String),
}

/** 2.5 */
export const Acceptance = open(acceptanceFields)
export type Acceptance = typeof Acceptance.Type

/** 2.4: the 423 body. Its other fields are not shown. */
export const actionRequiredFields = {
  form_schema: FormSchema,
  action_required_expires: Schema.String,
  producer: Schema.String,
  payload_errors: Schema.optionalKey(Schema.Array(ValidationItem)),
}

/** Section 8: how long an execution lasts that nobody aborts: its queue, then its timeout (milliseconds). */
export const openLongestMs = (3 * 60 + 20) * 60_000

/** 4.1: a value that only the service can read. Encrypting the same value again gives another text. */
export const isEncrypted = (value: unknown): boolean =>
  typeof value === "string" && /^(?:rsa|hybrid)::/.test(value)

/** 4.1: a map of form fields, or the whole object as one encrypted string. */
export const LoginParameters = Schema.Union([Schema.Record(Schema.String, Schema.Unknown), Schema.String])

export const RequestedFeature = Schema.Union([
  FeatureCode,
  Schema.Struct({
    code: FeatureCode,
    configurations: Schema.optionalKey(Schema.Record(Schema.String, Schema.Unknown)),
  }),
])

/** 4.1: `execution_timeout` is 60 to 1200 seconds, 1200 when absent; every flag is false when absent. */
export const BaseConfigurations = Schema.Struct({
  customer_interaction_available: Schema.optionalKey(Schema.Boolean),
  execution_timeout: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 60, maximum: 1200 }))),
  unlock_protected_data: Schema.optionalKey(Schema.Boolean),
  tokenized_access: Schema.optionalKey(Schema.Boolean),
})

const accessFields = { engine_reference: Schema.String, customer_id: Schema.String }
const askedFields = {
  external_execution_id: Schema.optionalKey(Schema.String),
  base_configurations: Schema.optionalKey(BaseConfigurations),
  features: Schema.optionalKey(Schema.Array(RequestedFeature)),
  hooks_extra_data: Schema.optionalKey(Schema.Record(Schema.String, Schema.String)),
  configurations: Schema.optionalKey(Schema.Record(Schema.String, Schema.Unknown)),
}

/** 4.1: the body of a start. */
export const StartRequest = Schema.Struct({ ...accessFields, parameters: LoginParameters, ...askedFields })
export type StartRequest = typeof StartRequest.Type

/**
 * 4.12: the body is not shown. Assumed here, in this one place: the body of 4.1 with the exchanged pair as
 * `token` instead of `parameters`. A service that wants another shape answers 422, and nothing ran.
 */
export const TokenizedStartRequest = Schema.Struct({
  ...accessFields,
  token: Schema.Struct({ token_id: Schema.String, token_key: Schema.String }),
  ...askedFields,
})
export type TokenizedStartRequest = typeof TokenizedStartRequest.Type

// Tickets and tokens (2.6, 4.6, 4.7). A ticket is shown once and used up by its exchange; `token_key` is the
// only copy of the caller's half of the key, so both are secrets everywhere.

/** 4.6 */
export const ExchangeRequest = Schema.Struct({ execution_id: Schema.String, ticket: Schema.String })

/** 2.6 */
export const TokenPair = open({ token_id: Schema.String, token_key: Schema.String })

/** 2.6: `features` is the fixed list; a run with the token may request fewer, never more. */
export const TokenContext = open({
  engine_reference: Schema.String,
  app_id: Schema.String,
  customer_id: Schema.String,
  features: Schema.Array(FeatureCode),
  locking_hash: nullableOptional(Schema.String),
})

/** 4.6, 200 */
export const exchangedFields = { token: TokenPair, context: TokenContext }

/** 2.8: one item of the deprecated listing. */
export const FlowHook = open({
  app_id: Schema.String,
  producer: openEnum(["es-public-administration"]),
  event: openEnum(flowEvents),
  enabled: Schema.Boolean,
  base_url: Schema.String,
})
export type FlowHook = typeof FlowHook.Type

/** A task that wants to start an execution. */
export interface Candidate extends Access {
  readonly task_id: TaskId
  /** One login is never in flight twice, whichever customers use it. */
  readonly fingerprint: string | undefined
  /** Nor is an account, whichever logins open it. */
  readonly account?: string | undefined
  /** How long it takes, as far as is known, and how long it does with those that must follow it. */
  readonly takesMs?: number | undefined
  readonly tailMs?: number | undefined
}

/**
 * Tasks that share one of these are never in flight together (section 4.1). A customer is on one engine of a
 * source at a time: where a session is open, a second login can be refused (DUPLICATED_SESSION).
 */
export const conflictKeys = ({
  task_id,
  customer_id,
  engine_reference,
  fingerprint,
  account,
}: Candidate): ReadonlyArray<string> => {
  const keys = [`task ${task_id}`, `customer ${customerKey({ customer_id, engine_reference })}`]
  if (fingerprint !== undefined) keys.push(`login ${fingerprint}`)
  if (account !== undefined) keys.push(`account ${account}`)
  return keys
}
