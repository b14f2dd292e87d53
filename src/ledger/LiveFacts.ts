/**
 * Facts about a run while it executes: what the operator asked for, when the service or an engine was away,
 * what its tasks wait for, and what was published meanwhile. They decide nothing, and explain why something
 * started late or not at all.
 */
import { Schema } from "effect"
import { EngineReference, RunId } from "../service/Ids.ts"
import { task } from "./FactKeys.ts"

const steeringOrders = ["pause", "resume", "drain", "limit"] as const
/** What the operator asked of the running night: it explains why tasks did not start. */
export const RunSteered = Schema.TaggedStruct("RunSteered", {
  run_id: RunId,
  order: Schema.Literals(steeringOrders),
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
export const TroubleBegan = Schema.TaggedStruct("TroubleBegan", { ...trouble, message: Schema.String })
export const TroubleEnded = Schema.TaggedStruct("TroubleEnded", {
  ...trouble,
  /** Calls that failed meanwhile. */
  failures: Schema.Int,
})
export type Trouble = typeof TroubleBegan.Type | typeof TroubleEnded.Type

/** A task is tried again later, because of this reason. */
export const TaskWaits = Schema.TaggedStruct("TaskWaits", {
  ...task,
  reason: Schema.String,
  until: Schema.String,
})

/**
 * While the run went on, a version with the tasks that were over became current. It gives no receipts:
 * nothing is deleted at the service because of it.
 */
export const InterimPublished = Schema.TaggedStruct("InterimPublished", {
  run_id: RunId,
  version: Schema.Int,
  /** Tasks that were over, and all tasks. */
  tasks: Schema.Int,
  of: Schema.Int,
})
/** No such version was made, or it did not become current; the run goes on as before. */
export const InterimRefused = Schema.TaggedStruct("InterimRefused", {
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
