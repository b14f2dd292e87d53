/**
 * The objects of the contract by the names under which the inventory lists their fields and the OpenAPI
 * document their schemas: one list, so that reference, contract and document cannot drift apart.
 */
import { Schema } from "effect"
import { Engine, EngineDetails, EngineFeature, FeatureCode, FormSchema } from "../../src/service/Engine.ts"
import { Acceptance, BaseConfigurations, ExecutionMessage } from "../../src/service/Execution.ts"
import { ExecutionState, FeatureState, FlowHook, StartRequest } from "../../src/service/Execution.ts"
import { StatusCodeSchema, StatusReasonSchema, ValidationItem } from "../../src/service/Execution.ts"
import { actionRequiredFields, exchangedFields, ExchangeRequest } from "../../src/service/Execution.ts"
import { TokenContext, TokenizedStartRequest, TokenPair } from "../../src/service/Execution.ts"
import { AcceptedDocument, Consent, flowResultsFields } from "../../src/service/FlowResults.ts"
import { nullableOptional, open, openEnum } from "../../src/service/Engine.ts"
import { engineEvents, features, flowEvents } from "../../src/service/Vocabulary.ts"

// Events as webhooks carry them (section 6). Only the payload of `auth_ended` is shown; the others have the same shape,
// as the service's own choice.

/** 6.1: `date` is UTC; deliveries can arrive out of order, so callers order by it. */
const ExecutionEvent = open({
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

/** 6.2: the payload is not shown; own choice, `results` (2.7) if the event carries data. */
const FlowEvent = open({
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

export interface ContractObject {
  /** As in the inventory's `field <object>.<name>`; absent where the reference shows no fields. */
  readonly object?: string
  /** Its place among the document's schemas. */
  readonly component: string
  readonly schema: Schema.Top
}

/** An object before what it is made of: the document names the larger one first. */
export const contractObjects: ReadonlyArray<ContractObject> = [
  { object: "start", component: "StartRequest", schema: StartRequest },
  { component: "TokenizedStartRequest", schema: TokenizedStartRequest },
  { object: "base", component: "BaseConfigurations", schema: BaseConfigurations },
  { object: "acceptance", component: "Acceptance", schema: Acceptance },
  { object: "execution", component: "ExecutionState", schema: ExecutionState },
  { object: "feature-state", component: "FeatureState", schema: FeatureState },
  { object: "message", component: "ExecutionMessage", schema: ExecutionMessage },
  { object: "validation", component: "ValidationItem", schema: ValidationItem },
  { object: "challenge", component: "ActionRequired", schema: open(actionRequiredFields) },
  { object: "engine-details", component: "EngineDetails", schema: EngineDetails },
  { object: "engine", component: "Engine", schema: Engine },
  { object: "engine-feature", component: "EngineFeature", schema: EngineFeature },
  { object: "form", component: "FormSchema", schema: FormSchema },
  { object: "exchange", component: "ExchangeRequest", schema: ExchangeRequest },
  { object: "exchanged", component: "Exchanged", schema: open(exchangedFields) },
  { object: "token", component: "TokenPair", schema: TokenPair },
  { object: "token-context", component: "TokenContext", schema: TokenContext },
  { object: "results", component: "FlowResults", schema: open(flowResultsFields) },
  { object: "consent", component: "Consent", schema: Consent },
  { object: "document", component: "AcceptedDocument", schema: AcceptedDocument },
  { object: "subscription", component: "FlowHook", schema: FlowHook },
  { object: "event", component: "ExecutionEvent", schema: ExecutionEvent },
  { component: "FlowEvent", schema: FlowEvent },
  { component: "FeatureCode", schema: FeatureCode },
  { component: "StatusCode", schema: StatusCodeSchema },
  { component: "StatusReason", schema: StatusReasonSchema },
]
