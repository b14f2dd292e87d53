/**
 * Events as webhooks carry them (section 6), for tests that read what the embedded service sends. Only the
 * payload of `auth_ended` is shown; the others have the same shape, as the service's own choice.
 */
import { Schema } from "effect"
import { nullableOptional, open, openEnum } from "../../src/service/Engine.ts"
import { engineEvents, features, flowEvents } from "../../src/service/Vocabulary.ts"

/** 6.1: `date` is UTC; deliveries can arrive out of order, so callers order by it. */
export const ExecutionEvent = open({
  app_id: Schema.String,
  customer_id: Schema.String,
  execution_id: Schema.String,
  event: openEnum(engineEvents),
  date: Schema.String,
  customer_available: Schema.Boolean,
  status_reason: Schema.String,
  session_id: nullableOptional(Schema.String),
  external_execution_id: nullableOptional(Schema.String),
  locking_hash: nullableOptional(Schema.String),
  status_message: nullableOptional(Schema.String),
  event_class: Schema.optionalKey(openEnum(["ExecutionEvent"])),
  producer: Schema.optionalKey(openEnum(["engine", ...features])),
  data: nullableOptional(Schema.Record(Schema.String, Schema.Unknown)),
})
export type ExecutionEvent = typeof ExecutionEvent.Type

/** 6.2: the payload is not shown; own choice, `results` (2.7) if the event carries data. */
export const FlowEvent = open({
  app_id: Schema.String,
  session_id: Schema.String,
  customer_id: nullableOptional(Schema.String),
  event: openEnum(flowEvents),
  event_class: Schema.optionalKey(openEnum(["FlowEvent"])),
  producer: Schema.optionalKey(openEnum(["es-public-administration"])),
  date: Schema.String,
  session_status: Schema.optionalKey(Schema.String),
  results: Schema.optionalKey(Schema.Unknown),
})
export type FlowEvent = typeof FlowEvent.Type
