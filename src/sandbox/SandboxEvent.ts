/**
 * What happened at the embedded service, event by event: the state is a fold of these, and the journal is
 * their NDJSON. No event holds a login parameter, an application secret or a ticket, only keyed hashes of
 * them.
 */
import { Schema } from "effect"
import { featureStatusReasons } from "../contract/Vocabulary.ts"
import { Timeline } from "./Timeline.ts"

const at = Schema.Finite

const ErrorItem = Schema.Struct({
  loc: Schema.Array(Schema.Union([Schema.String, Schema.Finite])),
  msg: Schema.String,
  type: Schema.String,
})

/** One requested feature and what its source will give. */
export const FeaturePlan = Schema.Struct({
  code: Schema.String,
  records: Schema.Int,
  /** What a run that ends well says of it. */
  outcome: Schema.Literals(featureStatusReasons),
  /** Settings that change its records: transactions and holders, kinds of cards or of registry reports. */
  detailed: Schema.Boolean,
  kinds: Schema.optionalKey(Schema.Array(Schema.String)),
})
export type FeaturePlan = typeof FeaturePlan.Type

/** What the flow session of an execution will show. */
export const ResultsPlan = Schema.Struct({
  features: Schema.Array(FeaturePlan),
  session: Schema.Literals(["answers", "unknown", "unstarted"]),
  neverFinal: Schema.Boolean,
  lateMs: Schema.Finite,
  lockedMs: Schema.Finite,
  documents: Schema.Int,
  odd: Schema.Boolean,
})
export type ResultsPlan = typeof ResultsPlan.Type

export const Started = Schema.TaggedStruct("Started", {
  at,
  application: Schema.String,
  execution_id: Schema.String,
  session_id: Schema.String,
  customer_id: Schema.String,
  engine_reference: Schema.String,
  external_execution_id: Schema.optionalKey(Schema.String),
  /** Somebody else's run, put in the way by a behaviour word. */
  foreign: Schema.Boolean,
  timeline: Timeline,
  results: ResultsPlan,
  /** Keyed hash of the login as it was sent: equal logins are equal here, and nothing else shows. */
  login_key: Schema.String,
  locking_hash: Schema.String,
  ticket_hash: Schema.optionalKey(Schema.String),
  parameters_errors: Schema.Array(ErrorItem),
  configurations_errors: Schema.Array(ErrorItem),
})
export type Started = typeof Started.Type

const startOutcomes = [
  "conflict",
  "intervention_required",
  "t10n_forbidden",
  "unavailable",
  "invalid",
] as const
/** A start that created nothing. */
export const StartRefused = Schema.TaggedStruct("StartRefused", {
  at,
  application: Schema.String,
  customer_id: Schema.String,
  engine_reference: Schema.String,
  external_execution_id: Schema.optionalKey(Schema.String),
  outcome: Schema.Literals(startOutcomes),
  /** Of a conflict: the run in flight. */
  execution_id: Schema.optionalKey(Schema.String),
})
export type StartRefused = typeof StartRefused.Type

const Resumed = Schema.TaggedStruct("Resumed", {
  at,
  execution_id: Schema.String,
  right: Schema.Boolean,
  payload_errors: Schema.Array(ErrorItem),
})
const Aborted = Schema.TaggedStruct("Aborted", { at, execution_id: Schema.String })
/** The engine went away while the run was parked on a challenge. */
const Parted = Schema.TaggedStruct("Parted", { at, execution_id: Schema.String })
const Deleted = Schema.TaggedStruct("Deleted", { at, execution_id: Schema.String })
/** The caller read the final state for the first time. */
const FinalStateRead = Schema.TaggedStruct("FinalStateRead", { at, execution_id: Schema.String })
const ResultsRead = Schema.TaggedStruct("ResultsRead", {
  at,
  execution_id: Schema.String,
  is_closed: Schema.Boolean,
})
/** The caller came back within five seconds (4.10). */
const ResultsRefused = Schema.TaggedStruct("ResultsRefused", { at, execution_id: Schema.String })

export const SandboxEvent = Schema.Union([
  Started,
  StartRefused,
  Resumed,
  Aborted,
  Parted,
  Deleted,
  FinalStateRead,
  ResultsRead,
  ResultsRefused,
])
export type SandboxEvent = typeof SandboxEvent.Type
