/**
 * Which task or attempt of which run a fact is about, and whose access: shared by the facts of a run and
 * those of tokens. Code that works on an attempt carries these as one value.
 */
import { Schema } from "effect"
import { CustomerId, EngineReference, RunId, TaskId } from "../service/Ids.ts"

export const task = { run_id: RunId, task_id: TaskId }
export const attempt = { ...task, attempt: Schema.Int }
export const access = { customer_id: CustomerId, engine_reference: EngineReference }

export interface TaskKeys {
  readonly run_id: RunId
  readonly task_id: TaskId
}
export interface AttemptKeys extends TaskKeys {
  readonly attempt: number
}
/** Only the keys, as a fact takes them. */
export const taskKeys = ({ run_id, task_id }: TaskKeys): TaskKeys => ({ run_id, task_id })
export const attemptKeys = ({ attempt, ...of }: AttemptKeys): AttemptKeys => ({ ...taskKeys(of), attempt })
