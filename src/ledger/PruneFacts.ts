/**
 * The facts about what was removed here because the job's `retain` says so. Each is written before the first
 * file is removed: from then on, what is missing was pruned, not lost.
 */
import { Schema } from "effect"
import { RunId } from "../service/Ids.ts"

/** The landed bodies of the run are removed; its tables can no longer be derived again. */
export const LandingPruned = Schema.TaggedStruct("LandingPruned", { run_id: RunId, bytes: Schema.Int })
/**
 * The documents of the run are removed, except those that another run has downloaded too. It may have had
 * none.
 */
export const AttachmentsPruned = Schema.TaggedStruct("AttachmentsPruned", {
  run_id: RunId,
  bytes: Schema.Int,
})

/** By run: when its files were pruned, in milliseconds since the epoch; in the order of the facts. */
export interface Pruned {
  readonly landing: ReadonlyMap<string, number>
  readonly attachments: ReadonlyMap<string, number>
}
