/**
 * What happened at the embedded service, event by event: the state is a fold of these, and the journal is
 * their NDJSON. No event contains a login parameter, an application secret, a ticket or a `token_key`, only
 * keyed hashes of them, and logins encrypted under keys that are not in any event.
 */
import { Schema } from "effect"
import { hookEventSchemas } from "./HookEvent.ts"
import { flowEventSchemas } from "./FlowEvent.ts"
import { ErrorItem, ResultsPlan } from "./ResultsPlan.ts"
import { Timeline } from "./Timeline.ts"
import { tokenEventSchemas } from "./TokenEvent.ts"

const at = Schema.Finite

export const Started = Schema.TaggedStruct("Started", {
  at,
  application: Schema.String,
  execution_id: Schema.String,
  session_id: Schema.String,
  customer_id: Schema.String,
  engine_reference: Schema.String,
  external_execution_id: Schema.optionalKey(Schema.String),
  /** Somebody else's run, created by a behaviour word. */
  foreign: Schema.Boolean,
  timeline: Timeline,
  results: ResultsPlan,
  /** Keyed hash of the login as it was sent: equal logins have equal hashes, and nothing else can be seen. */
  login_key: Schema.String,
  locking_hash: Schema.String,
  /** The token that it was started with (4.12). */
  token_id: Schema.optionalKey(Schema.String),
  parameters_errors: Schema.Array(ErrorItem),
  configurations_errors: Schema.Array(ErrorItem),
  /** 4.1: appended to every webhook about this execution. */
  hooks_extra_data: Schema.optionalKey(Schema.Record(Schema.String, Schema.String)),
})
export type Started = typeof Started.Type

const startOutcomes = [
  "conflict",
  "intervention_required",
  "t10n_forbidden",
  "unknown_token",
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
  /** For a conflict: the run in flight. */
  execution_id: Schema.optionalKey(Schema.String),
  /** For a start with a token that the application has. */
  token_id: Schema.optionalKey(Schema.String),
})
export type StartRefused = typeof StartRefused.Type

const Resumed = Schema.TaggedStruct("Resumed", {
  at,
  execution_id: Schema.String,
  right: Schema.Boolean,
  fault: Schema.optionalKey(Schema.Literals(["form", "encryption"])),
  payload_errors: Schema.Array(ErrorItem),
})
const Aborted = Schema.TaggedStruct("Aborted", {
  at,
  execution_id: Schema.String,
  /** For a reading in which the state shows an abort only later. */
  stops_at: Schema.optionalKey(at),
})
/** The engine became unavailable while the run was waiting for the answer to a challenge. */
const Parted = Schema.TaggedStruct("Parted", { at, execution_id: Schema.String })
const Deleted = Schema.TaggedStruct("Deleted", { at, execution_id: Schema.String })
/** The caller read the final state for the first time. */
const FinalStateRead = Schema.TaggedStruct("FinalStateRead", { at, execution_id: Schema.String })
const ResultsRead = Schema.TaggedStruct("ResultsRead", {
  at,
  execution_id: Schema.String,
  is_closed: Schema.Boolean,
  /** Until when this read holds the session's exclusive lock. */
  heldUntil: Schema.optionalKey(at),
})
/** Answered 504: somebody else held the lock. */
const ResultsLocked = Schema.TaggedStruct("ResultsLocked", { at, execution_id: Schema.String })
/** A final answer of one results source, sent completely: how many records of each sub-family it carried. */
const RecordsDelivered = Schema.TaggedStruct("RecordsDelivered", {
  at,
  execution_id: Schema.String,
  source: Schema.String,
  counts: Schema.Record(Schema.String, Schema.Int),
})
/** The caller read it again within five seconds (4.10). */
const ResultsRefused = Schema.TaggedStruct("ResultsRefused", { at, execution_id: Schema.String })

/** Nothing happened; time must not go back before `at`, whatever happens to the process. */
const TimeKept = Schema.TaggedStruct("TimeKept", { at })

export const SandboxEvent = Schema.Union([
  TimeKept,
  Started,
  StartRefused,
  Resumed,
  Aborted,
  Parted,
  Deleted,
  FinalStateRead,
  ResultsRead,
  ResultsLocked,
  ResultsRefused,
  RecordsDelivered,
  ...tokenEventSchemas,
  ...flowEventSchemas,
  ...hookEventSchemas,
])
export type SandboxEvent = typeof SandboxEvent.Type
