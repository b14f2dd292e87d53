/**
 * The facts of a run as a whole: its beginning, its publications and its end. What happens to its tasks is in
 * `Fact.ts`.
 */
import { Schema } from "effect"
import { EngineReference, ExecutionId, RunId, TaskId } from "../service/Ids.ts"

/** Trouble since the run before: with `exit_on: new` it decides the exit code. */
export const ChangeCounts = Schema.Struct({
  since: Schema.String,
  new: Schema.Int,
  still: Schema.Int,
  mended: Schema.Int,
})

/** Features in the tables of a task that did not succeed: a rerun does not ask for them again. */
export const DeliveredFeatures = Schema.Struct({ task_id: TaskId, features: Schema.Array(Schema.String) })
export type DeliveredFeatures = typeof DeliveredFeatures.Type

/** A landed body that publishing could not use: its execution is kept. */
export const LeftOutBody = Schema.Struct({
  task_id: TaskId,
  attempt: Schema.optionalKey(Schema.Int),
  execution_id: Schema.optionalKey(ExecutionId),
  /** Segment and offset, below the run's folder of landing. */
  where: Schema.String,
  reason: Schema.String,
})
export type LeftOutBody = typeof LeftOutBody.Type

/** Customers, engines and features beyond their limits. */
const BeyondLimit = Schema.Struct({
  /** The limit; the shortest of those that are exceeded, if engines have limits of their own. */
  days: Schema.Int,
  count: Schema.Int,
  /** The oldest first: `<customer_id> <engine_reference> <feature>`. */
  examples: Schema.Array(Schema.String),
})

/** Data older than the `freshness` of its job. */
export const StaleData = Schema.Struct({
  /** Beyond `warn_after` and not beyond `error_after`. */
  warned: Schema.optionalKey(BeyondLimit),
  /** Beyond `error_after`: the run does not end with 0. */
  failed: Schema.optionalKey(BeyondLimit),
  /** Why the tables could not be asked. */
  unknown: Schema.optionalKey(Schema.String),
})
export type StaleData = typeof StaleData.Type

/** How many values did not fit a column; `column` is `extra` for fields that a schema does not have. */
export const MisfitCount = Schema.Struct({
  table: Schema.String,
  column: Schema.String,
  count: Schema.Int,
})
export type MisfitCount = typeof MisfitCount.Type

/** By the table they would have gone to; null for what is no record, and for unreadable bodies. */
const RejectedCount = Schema.Struct({ table: Schema.NullOr(Schema.String), count: Schema.Int })
export type RejectedCount = typeof RejectedCount.Type

/** Records of one family, which is a product with its `sub_family`. */
const FamilyCount = Schema.Struct({ product: Schema.String, sub_family: Schema.String, records: Schema.Int })
export type FamilyCount = typeof FamilyCount.Type

/** Records of families without a schema: how many, of how many families, and of which the most. */
const OtherRecords = Schema.Struct({
  records: Schema.Int,
  families: Schema.Int,
  most: Schema.Array(FamilyCount),
})
export type OtherRecords = typeof OtherRecords.Type

/** A feature that ended with this reason, though its task succeeded. */
const FeatureLeft = Schema.Struct({ feature: Schema.String, reason: Schema.String, count: Schema.Int })
export type FeatureLeft = typeof FeatureLeft.Type

/** In how many tasks that succeeded a feature did not; and which features did so most often. */
const FeaturesLeft = Schema.Struct({ count: Schema.Int, most: Schema.Array(FeatureLeft) })
export type FeaturesLeft = typeof FeaturesLeft.Type

/** A model of a job that could not be made. */
const FailedModel = Schema.Struct({ name: Schema.String, why: Schema.String })
export type FailedModel = typeof FailedModel.Type

/** What a publication says about the tables besides their rows. */
const tableNotes = {
  misfits: Schema.optionalKey(Schema.Array(MisfitCount)),
  rejected: Schema.optionalKey(Schema.Array(RejectedCount)),
  /** Absent in ledgers from before it was recorded. */
  other: Schema.optionalKey(OtherRecords),
  features_left: Schema.optionalKey(FeaturesLeft),
  /** Values of earlier runs that do not fit a type that has changed since. */
  unfit: Schema.optionalKey(Schema.Array(MisfitCount)),
  /** Models that this version lacks. */
  models: Schema.optionalKey(Schema.Array(FailedModel)),
  /** Tables whose record schema is in no folder any more; the kept one was used. */
  gone: Schema.optionalKey(Schema.Array(Schema.String)),
  /** Tables of lists that their record schema no longer has. */
  lists: Schema.optionalKey(Schema.Array(Schema.String)),
  /** `current` and `history`, where something else stands at the name. */
  taken: Schema.optionalKey(Schema.Array(Schema.String)),
  /** How many listed sessions of the run the tables have for another customer, too; absent if none. */
  shared_sessions: Schema.optionalKey(Schema.Int),
  /** How many bodies of results have bytes that are no UTF-8; absent if none. */
  garbled: Schema.optionalKey(Schema.Int),
}

/** What earlier nights of a job keep at the service when a run ends. */
export const KeptBefore = Schema.Struct({
  executions: Schema.Int,
  /** The oldest of their runs. */
  oldest: Schema.String,
})

/** Executions of a run that were started at another service, and that the present one did not show. */
const LeftElsewhere = Schema.Struct({ run_id: RunId, service: Schema.String, executions: Schema.Int })
export type LeftElsewhere = typeof LeftElsewhere.Type

/** A run began; `job_path` is where `rerun` finds the job again. */
export const RunStarted = Schema.TaggedStruct("RunStarted", {
  run_id: RunId,
  /** Milliseconds: before its plan was made, which waits for forms; absent in ledgers from before that. */
  began_at: Schema.optionalKey(Schema.Int),
  job: Schema.String,
  job_path: Schema.String,
  run_date: Schema.String,
  parent: Schema.optionalKey(Schema.String),
  /** The run that this part of the job, which is not the night, began with: itself, or what it reruns. */
  part: Schema.optionalKey(Schema.String),
  /** The address of its service, or `sandbox`; absent in ledgers from before it was recorded. */
  service: Schema.optionalKey(Schema.String),
  /** Jobs that its job takes the place of. */
  replaces: Schema.optionalKey(Schema.Array(Schema.String)),
  tool_version: Schema.String,
  /** Dates of nights since the run before that had no run; the newest ones, if there were many. */
  missed: Schema.optionalKey(Schema.Array(Schema.String)),
  /** An earlier run that began later, as the clock was wrong then or is now. */
  ahead: Schema.optionalKey(Schema.String),
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
  /** Earlier runs whose missing or changed files were written again, with all of their rows. */
  restored: Schema.optionalKey(Schema.Array(Schema.String)),
  /** Per execution whose bodies were read back and published; `whole`: they alone prove every count. */
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
  /** The job says so: what is wholly here stays at the service, too. Absent if it says `delete`. */
  after_export: Schema.optionalKey(Schema.Literal("keep")),
  /** What earlier nights of its job keep without that proof, as of this end; absent if there are none. */
  kept_before: Schema.optionalKey(KeptBefore),
  /** So many of both were not read, as its job has its results switched off; absent if there are none. */
  unread: Schema.optionalKey(Schema.Int),
  /** Of this run and of those that it collected; absent if there are none. */
  elsewhere: Schema.optionalKey(Schema.Array(LeftElsewhere)),
  /** Earlier runs that later ones could not finish for days; absent if there are none. */
  stuck_before: Schema.optionalKey(Schema.Struct({ runs: Schema.Int, oldest: Schema.String })),
  /** Absent for the first run of a job, and in ledgers from before it was recorded. */
  changes: Schema.optionalKey(ChangeCounts),
})
/** The tables contain how the run ended, or its version is held back; without it, the run is resumed. */
export const OutcomePublished = Schema.TaggedStruct("OutcomePublished", { run_id: RunId })
