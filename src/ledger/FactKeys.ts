/**
 * What says which task or attempt of which run a fact is about: shared by the facts of a night and
 * those of tokens.
 */
import { Schema } from "effect"
import { RunId, TaskId } from "../contract/Ids.ts"

export const task = { run_id: RunId, task_id: TaskId }
export const attempt = { ...task, attempt: Schema.Int }
