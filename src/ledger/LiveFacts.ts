/**
 * Facts about a run while it executes that belong to none of its tasks: what the operator asked for. They
 * explain how tasks ended.
 */
import { Schema } from "effect"
import { RunId } from "../contract/Ids.ts"

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
