/**
 * What happens to a flow session, event by event (sections 2.7, 3.4 and 6.2): it is created, customer and
 * client take steps, somebody reads it. The steps contain plans and keyed hashes, never a login parameter.
 */
import { Schema } from "effect"
import { ErrorItem, ResultsPlan } from "./ResultsPlan.ts"
import { Timeline } from "./Timeline.ts"

const at = Schema.Finite

/** What the words of a session ask for; durations in milliseconds. */
export const FlowPlan = Schema.Struct({
  /** How long the widget waits for an inactive customer. */
  idleMs: Schema.Finite,
  /** After the start: reads find the session locked. */
  lockedMs: Schema.Finite,
  /** After the start: the platform ends the session. */
  systemMs: Schema.optionalKey(Schema.Finite),
  /** Misconfigured: the start already ends it. */
  broken: Schema.Boolean,
  asksConsent: Schema.Boolean,
  company: Schema.Boolean,
})
export type FlowPlan = typeof FlowPlan.Type

export const FlowSessionCreated = Schema.TaggedStruct("FlowSessionCreated", {
  at,
  application: Schema.String,
  session_id: Schema.String,
  customer_id: Schema.optionalKey(Schema.String),
  /** The features that the consent form offers. */
  features: Schema.Array(Schema.String),
  plan: FlowPlan,
})
export type FlowSessionCreated = typeof FlowSessionCreated.Type

const SignedDocument = Schema.Struct({
  document_id: Schema.String,
  version: Schema.String,
  hash: Schema.String,
  signature_provider: Schema.optionalKey(Schema.String),
  signature_metadata: Schema.optionalKey(Schema.Record(Schema.String, Schema.Unknown)),
})

/** One source that the customer connects, and what it will return. */
export const FlowSourcePlan = Schema.Struct({
  source_id: Schema.String,
  engine_reference: Schema.String,
  timeline: Timeline,
  results: ResultsPlan,
})
export type FlowSourcePlan = typeof FlowSourcePlan.Type

export const FlowStep = Schema.Union([
  Schema.TaggedStruct("start", {
    user_ip: Schema.optionalKey(Schema.String),
    user_agent: Schema.optionalKey(Schema.String),
    origin: Schema.optionalKey(Schema.String),
  }),
  Schema.TaggedStruct("consent", {
    features: Schema.Array(Schema.String),
    documents: Schema.Array(SignedDocument),
  }),
  Schema.TaggedStruct("connect", { source: FlowSourcePlan }),
  Schema.TaggedStruct("answer", {
    source_id: Schema.String,
    right: Schema.Boolean,
    payload_errors: Schema.Array(ErrorItem),
  }),
  Schema.TaggedStruct("leave", {}),
  Schema.TaggedStruct("cancel", {}),
  Schema.TaggedStruct("client-cancel", {}),
])
export type FlowStep = typeof FlowStep.Type

/** A step and its time; those of a standing session may be in the future. */
export const TakenStep = Schema.Struct({ at, step: FlowStep })
export type TakenStep = typeof TakenStep.Type

const FlowStepTaken = Schema.TaggedStruct("FlowStepTaken", { at, session_id: Schema.String, step: FlowStep })

/** A standing session was read for the first time: its life counts from here. */
const FlowSessionFound = Schema.TaggedStruct("FlowSessionFound", {
  at,
  created: FlowSessionCreated,
  steps: Schema.Array(TakenStep),
})

const FlowResultsRead = Schema.TaggedStruct("FlowResultsRead", {
  at,
  session_id: Schema.String,
  is_closed: Schema.Boolean,
  /** Until when this read holds the session's exclusive lock. */
  heldUntil: at,
})
/** Answered 504: somebody else held the lock. */
const FlowResultsLocked = Schema.TaggedStruct("FlowResultsLocked", { at, session_id: Schema.String })
/** The caller read it again within five seconds (4.10). */
const FlowResultsRefused = Schema.TaggedStruct("FlowResultsRefused", { at, session_id: Schema.String })

const FlowSessionEvents = Schema.Union([
  FlowSessionCreated,
  FlowSessionFound,
  FlowStepTaken,
  FlowResultsRead,
  FlowResultsLocked,
  FlowResultsRefused,
]).pipe(Schema.toTaggedUnion("_tag"))
export const flowEventSchemas = FlowSessionEvents.members

/** An event of a flow session in the journal; those of section 6.2 are derived from them. */
export type FlowSessionEvent = typeof FlowSessionEvents.Type

export const isFlowSessionEvent = (event: { readonly _tag: string }): event is FlowSessionEvent =>
  Object.hasOwn(FlowSessionEvents.cases, event._tag)
