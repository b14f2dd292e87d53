/**
 * The facts of a run as a whole: its beginning, its publications and its end. What happens to its tasks is in
 * `Fact.ts`.
 */
import { Schema } from "effect"
import { EngineReference, ExecutionId, RunId } from "../service/Ids.ts"
import { ChangeCounts } from "./ChangeCounts.ts"
import { DeliveredFeatures } from "./DeliveredFeatures.ts"
import { LeftOutBody } from "./LeftOutBody.ts"
import { StaleData } from "./StaleData.ts"
import { tableNotes } from "./TableNotes.ts"

/** A run began; `job_path` is where `rerun` finds the job again. */
export const RunStarted = Schema.TaggedStruct("RunStarted", {
  run_id: RunId,
  job: Schema.String,
  job_path: Schema.String,
  run_date: Schema.String,
  parent: Schema.optionalKey(Schema.String),
  tool_version: Schema.String,
  /** Dates of nights since the run before that had no run; the newest ones, if there were many. */
  missed: Schema.optionalKey(Schema.Array(Schema.String)),
})
/** The process resumed the run; its unfinished tasks get new attempts. */
export const RunResumed = Schema.TaggedStruct("RunResumed", { run_id: RunId })
/** `body`: of the detail view, as JSON text, what has a column. */
const EngineSaid = Schema.Struct({
  engine_reference: EngineReference,
  fetched_at: Schema.Int,
  body: Schema.String,
})
export type EngineSaid = typeof EngineSaid.Type
/** Everything landed so far is in the published tables of this version, except what is left out. */
export const RunPublished = Schema.TaggedStruct("RunPublished", {
  run_id: RunId,
  version: Schema.Int,
  /** Earlier runs with rows missing from this version, because files of theirs are missing or changed. */
  without: Schema.optionalKey(Schema.Array(Schema.String)),
  /**
   * One receipt per execution whose bodies were read back, hashed and published; `whole` if those bodies
   * alone prove that everything counted is here.
   */
  receipts: Schema.Array(
    Schema.Struct({
      execution_id: ExecutionId,
      landed_sha256: Schema.String,
      whole: Schema.optionalKey(Schema.Boolean),
    }),
  ),
  left_out: Schema.optionalKey(Schema.Array(LeftOutBody)),
  delivered: Schema.optionalKey(Schema.Array(DeliveredFeatures)),
  /** What the catalogue had last said about the run's engines: it says something else tomorrow. */
  engines: Schema.optionalKey(Schema.Array(EngineSaid)),
  ...tableNotes,
  stale: Schema.optionalKey(StaleData),
})
/** A gate of the job and what it found: words and numbers, never a value of a record. */
export const FailedGate = Schema.Struct({
  gate: Schema.String,
  expected: Schema.String,
  found: Schema.String,
})
export type FailedGate = typeof FailedGate.Type
/**
 * A version with this run was built and did not pass the gates of its job: it is not current. It gives no
 * receipts, so nothing of the run is deleted at the service until the run is published after all.
 */
export const RunHeld = Schema.TaggedStruct("RunHeld", {
  run_id: RunId,
  /** The database with the version, relative to the output folder. */
  database: Schema.String,
  gates: Schema.Array(FailedGate),
})
/** A person let the run through: its gates are not asked again. */
export const RunAccepted = Schema.TaggedStruct("RunAccepted", { run_id: RunId })
export const RunEnded = Schema.TaggedStruct("RunEnded", {
  run_id: RunId,
  exit_code: Schema.Int,
  /** Something of this run is still at the service: in flight, partial, to be deleted, or held back. */
  leftovers: Schema.Boolean,
  /** Executions that are kept at the service because it is not proved that all of them is here. */
  kept: Schema.optionalKey(Schema.Int),
  /** Absent for the first run of a job, and in ledgers from before it was recorded. */
  changes: Schema.optionalKey(ChangeCounts),
})
/**
 * The tables contain how the run ended, or its version is held back: without this fact the run is not
 * finished and is resumed.
 */
export const OutcomePublished = Schema.TaggedStruct("OutcomePublished", { run_id: RunId })
