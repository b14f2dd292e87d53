/**
 * What says which task or attempt of which run a fact is about: shared by the facts of a night and
 * those of tokens.
 */
import { Schema } from "effect"

export const task = { run_id: Schema.String, task_id: Schema.String }
export const attempt = { ...task, attempt: Schema.Int }
