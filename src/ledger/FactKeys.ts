/** What says which task or attempt of which run a fact is about. */
import { Schema } from "effect"

export const task = { run_id: Schema.String, task_id: Schema.String }
export const attempt = { ...task, attempt: Schema.Int }
