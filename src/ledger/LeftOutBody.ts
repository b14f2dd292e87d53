/**
 * A landed body that is not in the tables: which one, where it is and why. It is part of the fact of a
 * publication, so that the summary reports it and its execution is kept.
 */
import { Schema } from "effect"
import { ExecutionId, TaskId } from "../service/Ids.ts"

/** A landed body that publishing could not use. */
export const LeftOutBody = Schema.Struct({
  task_id: TaskId,
  attempt: Schema.optionalKey(Schema.Int),
  execution_id: Schema.optionalKey(ExecutionId),
  /** Segment and offset, below the run's folder of landing. */
  where: Schema.String,
  reason: Schema.String,
})
export type LeftOutBody = typeof LeftOutBody.Type
