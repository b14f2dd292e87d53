/**
 * The facts of a run: what was decided and what happened, in the order in which it became known. Facts are
 * appended, never changed; the state of a run is a fold of its facts (`RunState.ts`). A fact never contains
 * a secret.
 */
import { Schema } from "effect"
import { attempt, task } from "./FactKeys.ts"
import { SentKeys, loginFacts, tokenFacts } from "./LoginFacts.ts"
import {
  OutcomePublished,
  RunAccepted,
  RunEnded,
  RunHeld,
  RunPublished,
  RunResumed,
  RunStarted,
} from "./RunFacts.ts"
import { actors, outcomes } from "../service/EndTable.ts"
import { SettledReason, abortCauses, type Reason } from "../service/Ends.ts"
import { ResultsSource } from "../service/FlowResults.ts"
import { CustomerId, EngineReference, ExecutionId, RunId, SessionId } from "../service/Ids.ts"

/** Facts that were compressed together: their bytes in the file, and the first and last of their places. */
const ArchivedFrame = Schema.Struct({
  offset: Schema.Int,
  bytes: Schema.Int,
  /** Of these bytes. */
  sha256: Schema.String,
  facts: Schema.Int,
  from: Schema.Int,
  to: Schema.Int,
})
export type ArchivedFrame = typeof ArchivedFrame.Type

/** Where the archived facts of a run stand (`LedgerArchive.ts`). */
export const FactsArchived = Schema.TaggedStruct("FactsArchived", {
  run_id: RunId,
  /** Below `ledger-archive/`. */
  file: Schema.String,
  frames: Schema.Array(ArchivedFrame),
})
export type FactsArchived = typeof FactsArchived.Type

export type Archive = At<FactsArchived>

/** What the operator asked of the running night: it explains why tasks did not start. */
export const RunSteered = Schema.TaggedStruct("RunSteered", {
  run_id: RunId,
  order: Schema.Literals(["pause", "resume", "drain", "limit"]),
  /** The limits from now on, if they were changed. */
  max_in_flight: Schema.optionalKey(Schema.Int),
  per_engine: Schema.optionalKey(Schema.Int),
  /** Nobody asked: the longest pause was over. */
  because: Schema.optionalKey(Schema.Literal("pause_over")),
})

const trouble = {
  run_id: RunId,
  /** silent: the service does not answer. throttled: it asks for fewer calls. engine: it takes no start. */
  trouble: Schema.Literals(["silent", "throttled", "engine"]),
  engine_reference: Schema.optionalKey(EngineReference),
  /** Of the first call that failed, as in `log.ndjson`. */
  since: Schema.String,
}
const TroubleBegan = Schema.TaggedStruct("TroubleBegan", { ...trouble, message: Schema.String })
const TroubleEnded = Schema.TaggedStruct("TroubleEnded", {
  ...trouble,
  /** Calls that failed meanwhile. */
  failures: Schema.Int,
})
export type Trouble = typeof TroubleBegan.Type | typeof TroubleEnded.Type

/** A task is tried again later, because of this reason. */
const TaskWaits = Schema.TaggedStruct("TaskWaits", {
  ...task,
  reason: Schema.String,
  until: Schema.String,
  /** The service asked for it, in its answer to the start. */
  asked: Schema.optionalKey(Schema.Literal(true)),
})

/** A version with the tasks that were over became current. No receipts: nothing is deleted because of it. */
export const InterimPublished = Schema.TaggedStruct("InterimPublished", {
  run_id: RunId,
  version: Schema.Int,
  /** Tasks that were over, and all tasks. */
  tasks: Schema.Int,
  of: Schema.Int,
})
/** No such version was made, or it did not become current; the run goes on as before. */
const InterimRefused = Schema.TaggedStruct("InterimRefused", {
  run_id: RunId,
  /** For people. */
  message: Schema.String,
})

/** What a display tells at once, while the run goes on. */
export type RunNews =
  | typeof RunSteered.Type
  | Trouble
  | typeof InterimPublished.Type
  | typeof InterimRefused.Type

/** A fact about the customer stood here; only its place, its time and its run are left. */
const FactForgotten = Schema.TaggedStruct("FactForgotten", {
  run_id: Schema.optionalKey(RunId),
  /** The receipt that says why. */
  receipt: Schema.String,
})

/** What was found of the customer. Counts only: nothing in it is derived from an id or a value. */
export const ForgetCounts = Schema.Struct({
  /** Runs that knew the customer. */
  runs: Schema.Int,
  facts: Schema.Int,
  /** Landed bodies. */
  bodies: Schema.Int,
  /** Downloaded for the customer; one that another customer has too stays. */
  documents: Schema.Int,
  /** Rows of the current tables. */
  rows: Schema.Int,
  /** Versions that a gate holds back: copies of all tables, removed whole. */
  held: Schema.Int,
  /** Stored tokens and tickets. */
  tokens: Schema.Int,
  /** Recordings that `acquaint` made. */
  recordings: Schema.Int,
  /** Executions that the service no longer has. */
  deleted: Schema.Int,
  /** Of these: deleted although not everything they counted is proved to have been here. */
  given_up: Schema.Int,
  /** Executions and tokens that were left at the service on purpose. */
  left_at_service: Schema.Int,
  /** Logins that were rejected or are not proved: their keyed hashes stay, so that they still count. */
  logins_kept: Schema.Int,
})
export type ForgetCounts = typeof ForgetCounts.Type

/**
 * The receipt. It is written in one transaction with the facts that it replaces; from `sealed_from` on, every
 * fact's hash was computed again.
 */
export const CustomerForgotten = Schema.TaggedStruct("CustomerForgotten", {
  receipt: Schema.String,
  sealed_from: Schema.Int,
  ...ForgetCounts.fields,
})
export type CustomerForgotten = typeof CustomerForgotten.Type

/** Everything else of the customer is gone from the folder too. */
const ForgetFinished = Schema.TaggedStruct("ForgetFinished", { receipt: Schema.String })

/** The landed bodies of the run are removed; its tables can no longer be derived again. */
const LandingPruned = Schema.TaggedStruct("LandingPruned", { run_id: RunId, bytes: Schema.Int })
/** The documents of the run, if any, are removed, except those that another run has downloaded too. */
const AttachmentsPruned = Schema.TaggedStruct("AttachmentsPruned", {
  run_id: RunId,
  bytes: Schema.Int,
})

/** By run: when its files were pruned, in milliseconds since the epoch; in the order of the facts. */
export interface Pruned {
  readonly landing: ReadonlyMap<string, number>
  readonly attachments: ReadonlyMap<string, number>
}

/** Where a landed body is: enough to find it, and to prove that it is the same. */
export const LandedRef = Schema.Struct({
  segment: Schema.String,
  offset: Schema.Int,
  bytes: Schema.Int,
  sha256: Schema.String,
})
export type LandedRef = typeof LandedRef.Type

/** The endpoints that results of this run are read from, from now on; without it, the built-in ones. */
const ResultsSourcesSet = Schema.TaggedStruct("ResultsSourcesSet", {
  run_id: RunId,
  sources: Schema.Array(ResultsSource),
})
export const TaskPlanned = Schema.TaggedStruct("TaskPlanned", {
  ...task,
  customer_id: Schema.optionalKey(CustomerId),
  /** Absent for a flow session that is only read. */
  engine_reference: Schema.optionalKey(EngineReference),
  features: Schema.Array(Schema.String),
  /** Keyed hash of engine and login parameters; the key of the credential breaker. */
  fingerprint: Schema.optionalKey(Schema.String),
  session_id: Schema.optionalKey(SessionId),
})
/**
 * The request of a start is sent: durable before its first byte, and written once there is nothing left to
 * wait for. Without this fact, nothing was sent; with it, and without an answer, the request may have had
 * an effect.
 */
export const StartIntended = Schema.TaggedStruct("StartIntended", {
  ...attempt,
  external_execution_id: Schema.String,
  /** Both absent in ledgers from before accounts were counted. */
  customer_id: Schema.optionalKey(CustomerId),
  engine_reference: Schema.optionalKey(EngineReference),
  fingerprint: Schema.optionalKey(Schema.String),
  /** The account that it opens: from now on, this login counts as one that may have failed. */
  login: Schema.optionalKey(SentKeys),
  /** The stored token that logs in instead of parameters. */
  token_id: Schema.optionalKey(Schema.String),
  /** Features of the task that are not requested, because the token does not cover them. */
  outside: Schema.optionalKey(Schema.Array(Schema.String)),
  /** True for the single probe after a lost answer. */
  probe: Schema.Boolean,
  /** Milliseconds: how long its run waits for it to close; absent in ledgers from before it was recorded. */
  max_wait: Schema.optionalKey(Schema.Int),
  /** So many logins of the account may have failed that this one holds it, unless its end becomes known. */
  holds_account: Schema.optionalKey(Schema.Literal(true)),
  /** The process that sends it; absent in ledgers from before it was recorded. */
  worker: Schema.optionalKey(Schema.String),
  /** Its job wants no results of it; absent in ledgers from before it was recorded. */
  results_off: Schema.optionalKey(Schema.Literal(true)),
  /** Where it is sent, if that is another service than the one at which its run began. */
  service: Schema.optionalKey(Schema.String),
})
export const StartAnswered = Schema.TaggedStruct("StartAnswered", {
  ...attempt,
  /**
   * accepted: 202. adopted: 409 with our own external id. refused: 400 or 422. not_created: 429,
   * refused connection, 503 of an engine that says that it is away (its login counts: `LoginJudged`).
   * foreign: 409 of somebody else's run. taken: with the id of another attempt's execution. unusable:
   * answered, but the answer cannot be used. lost: not known.
   */
  answer: Schema.Literals([
    "accepted",
    "adopted",
    "refused",
    "not_created",
    "foreign",
    "taken",
    "unusable",
    "lost",
  ]),
  http_status: Schema.optionalKey(Schema.Int),
  status_reason: Schema.optionalKey(Schema.String),
  /** Of a 422, for people: which fields the service refuses, and why. */
  said: Schema.optionalKey(Schema.String),
  execution_id: Schema.optionalKey(ExecutionId),
  session_id: Schema.optionalKey(SessionId),
  /** The account that its execution may keep open; absent in ledgers from before it was recorded. */
  account: Schema.optionalKey(Schema.String),
})
/** A lost start whose probe was accepted: the first one may have run and closed without our knowledge. */
const OrphanSuspected = Schema.TaggedStruct("OrphanSuspected", {
  ...attempt,
  external_execution_id: Schema.String,
})
/** A read of the state that showed something new, or that another run made to see whether it is over. */
export const AttemptObserved = Schema.TaggedStruct("AttemptObserved", {
  ...attempt,
  execution_id: ExecutionId,
  session_id: Schema.optionalKey(SessionId),
  status_code: Schema.String,
  status_reason: Schema.String,
  authentication_status: Schema.optionalKey(Schema.String),
})
export const AbortIntended = Schema.TaggedStruct("AbortIntended", {
  ...attempt,
  execution_id: ExecutionId,
  why: Schema.Literals(abortCauses),
})
/** The execution is over and its last state landed; `landed` is absent if the service no longer knows it. */
export const AttemptClosed = Schema.TaggedStruct("AttemptClosed", {
  ...attempt,
  execution_id: ExecutionId,
  session_id: Schema.optionalKey(SessionId),
  status_code: Schema.String,
  status_reason: Schema.String,
  authentication_status: Schema.optionalKey(Schema.String),
  /** Section 2.4; absent if it cannot be read: then it is not known how much there is. */
  products_count: Schema.optionalKey(Schema.Record(Schema.String, Schema.Int)),
  /** Milliseconds from its acceptance to its end, by the service's own dates; absent if it names none. */
  took: Schema.optionalKey(Schema.Int),
  landed: Schema.optionalKey(LandedRef),
})
/** One family of an execution: its records counted (absent if there is no count), and landed. */
export const ProofLine = Schema.Struct({
  family: Schema.String,
  counted: Schema.optionalKey(Schema.Int),
  landed: Schema.Int,
})
export type ProofLine = typeof ProofLine.Type
/**
 * Everything in this closed execution is landed, or the job does not want it: it may be deleted once that
 * is published. Without this fact, it stays at the service.
 */
export const AttemptDrained = Schema.TaggedStruct("AttemptDrained", {
  ...attempt,
  execution_id: ExecutionId,
  /**
   * counted: every family's count is landed. final: the source's own word, which the job accepts. unwanted:
   * the job wanted no results when it was started. Absent in ledgers from before it was recorded.
   */
  proof: Schema.optionalKey(
    Schema.Struct({
      basis: Schema.Literals(["counted", "final", "unwanted"]),
      families: Schema.Array(ProofLine),
    }),
  ),
})
const keptReasons = [
  "RECORDS_SHORT",
  "RECORDS_UNREACHABLE",
  "DOCUMENTS_SHORT",
  "ANSWER_UNUSABLE",
] as const satisfies ReadonlyArray<Reason>
/** It is not proved that all of this closed execution is here: it stays at the service and is read again. */
export const AttemptKept = Schema.TaggedStruct("AttemptKept", {
  ...attempt,
  execution_id: ExecutionId,
  reason: Schema.Literals(keptReasons),
  families: Schema.Array(ProofLine),
  /** For people: what is missing. Contains nothing of a body. */
  message: Schema.String,
})
/** Its id belongs to somebody else's run: nothing of it is landed, read, aborted or deleted. */
const AttemptDisowned = Schema.TaggedStruct("AttemptDisowned", {
  ...attempt,
  execution_id: ExecutionId,
})
/** It was started at another service than this one, whose answer shows that it is the same one. */
const AttemptFound = Schema.TaggedStruct("AttemptFound", {
  ...attempt,
  execution_id: ExecutionId,
  service: Schema.String,
})
/**
 * Landed bodies of this closed execution are damaged or gone, and the service still has it: its state is
 * landed again, and its results are read as if they never had been. Without an execution: of the session of
 * the task.
 */
export const BodiesLost = Schema.TaggedStruct("BodiesLost", {
  ...task,
  attempt: Schema.optionalKey(Schema.Int),
  execution_id: Schema.optionalKey(ExecutionId),
  bodies: Schema.Array(LandedRef),
  landed: Schema.optionalKey(LandedRef),
})
/** An answer that its task could not use, because it exceeds a limit or because of a defect of ours. */
export const AnswerRefused = Schema.TaggedStruct("AnswerRefused", {
  ...task,
  execution_id: Schema.optionalKey(ExecutionId),
  /** `start`, `state`, or the name of a results endpoint. */
  what: Schema.String,
  /** For people. Contains nothing of a body. */
  why: Schema.String,
  landed: Schema.optionalKey(LandedRef),
})
/** The answer of a results endpoint: a landed body or a status. Older ledgers have no `source`. */
export const ResultsRead = Schema.TaggedStruct("ResultsRead", {
  ...task,
  session_id: SessionId,
  /** The id that was sent, if it was one that the service called the session by before. */
  asked_as: Schema.optionalKey(SessionId),
  execution_id: Schema.optionalKey(ExecutionId),
  http_status: Schema.Int,
  kind: Schema.Literals(["results", "profile"]),
  source: Schema.optionalKey(Schema.String),
  is_closed: Schema.Boolean,
  landed: Schema.optionalKey(LandedRef),
})
export const AttachmentRead = Schema.TaggedStruct("AttachmentRead", {
  ...task,
  session_id: SessionId,
  attachment_id: Schema.String,
  /**
   * downloaded, missing (404), refused (not an identifier that may be requested), not_delivered (the service
   * answers, but not with the document), failed (no answer, or one that says nothing about it).
   */
  status: Schema.Literals(["downloaded", "missing", "refused", "not_delivered", "failed"]),
  media_type: Schema.optionalKey(Schema.String),
  bytes: Schema.optionalKey(Schema.Int),
  sha256: Schema.optionalKey(Schema.String),
  /** Relative to the output folder. */
  path: Schema.optionalKey(Schema.String),
})
export const TaskSettled = Schema.TaggedStruct("TaskSettled", {
  ...task,
  outcome: Schema.Literals(outcomes),
  reason: SettledReason,
  who_acts: Schema.Literals(actors),
  /** For people, if the reason alone does not say enough; contains no value of a parameter. */
  message: Schema.optionalKey(Schema.String),
  /**
   * Milliseconds: until then a login that was sent may be open at the service, and no other one is sent. Or
   * no other one is sent to the account in this night.
   */
  not_before: Schema.optionalKey(Schema.Union([Schema.Int, Schema.Literal("next_date")])),
})
const DeleteIntended = Schema.TaggedStruct("DeleteIntended", {
  ...task,
  execution_id: ExecutionId,
  landed_sha256: Schema.String,
})
const DeleteAnswered = Schema.TaggedStruct("DeleteAnswered", {
  ...task,
  execution_id: ExecutionId,
  http_status: Schema.Int,
  outcome: Schema.Literals(["deleted", "gone", "pending"]),
})

export const Fact = Schema.Union([
  RunStarted,
  ResultsSourcesSet,
  RunResumed,
  RunSteered,
  TroubleBegan,
  TroubleEnded,
  TaskWaits,
  TaskPlanned,
  StartIntended,
  StartAnswered,
  OrphanSuspected,
  AttemptObserved,
  AbortIntended,
  AttemptClosed,
  AttemptDrained,
  AttemptKept,
  AttemptDisowned,
  AttemptFound,
  BodiesLost,
  AnswerRefused,
  ResultsRead,
  AttachmentRead,
  TaskSettled,
  ...loginFacts,
  ...tokenFacts,
  InterimPublished,
  InterimRefused,
  RunPublished,
  RunHeld,
  RunAccepted,
  DeleteIntended,
  DeleteAnswered,
  RunEnded,
  OutcomePublished,
  LandingPruned,
  AttachmentsPruned,
  FactsArchived,
  FactForgotten,
  CustomerForgotten,
  ForgetFinished,
])
export type Fact = typeof Fact.Type
/** A fact with its place in the ledger, which orders facts, and its time, milliseconds since the epoch. */
export type At<F> = { readonly seq: number; readonly at: number; readonly fact: F }
export type Recorded = At<Fact>
