/**
 * The objects of the contract by the names under which the inventory lists their fields and the OpenAPI
 * document their schemas: one list, so that reference, contract and document cannot drift apart.
 */
import { Schema } from "effect"
import { Engine, EngineDetails, EngineFeature, FeatureCode, FormSchema } from "../../src/service/Engine.ts"
import { ExecutionEvent, FlowEvent } from "./EventPayloads.ts"
import { Acceptance, BaseConfigurations, ExecutionMessage } from "../../src/service/Execution.ts"
import { ExecutionState, FeatureState, FlowHook, StartRequest } from "../../src/service/Execution.ts"
import { StatusCodeSchema, StatusReasonSchema, ValidationItem } from "../../src/service/Execution.ts"
import { actionRequiredFields, exchangedFields, ExchangeRequest } from "../../src/service/Execution.ts"
import { TokenContext, TokenizedStartRequest, TokenPair } from "../../src/service/Execution.ts"
import { AcceptedDocument, Consent, flowResultsFields } from "../../src/service/FlowResults.ts"
import { open } from "../../src/service/Engine.ts"

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
