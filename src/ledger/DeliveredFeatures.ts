/**
 * The features of a task that did not succeed whose data is in the tables all the same: a rerun does not ask
 * for them again. It is part of the fact of a publication; a ledger from before it was recorded has none, and
 * such a task is asked for as a whole.
 */
import { Schema } from "effect"
import { TaskId } from "../service/Ids.ts"

export const DeliveredFeatures = Schema.Struct({ task_id: TaskId, features: Schema.Array(Schema.String) })
export type DeliveredFeatures = typeof DeliveredFeatures.Type
