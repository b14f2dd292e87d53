/**
 * The external id of an execution: derived from task and attempt, so that a start whose answer was lost finds
 * its own execution again, and keyed by this output folder, so that nobody else's is ever taken for ours.
 */
import { createHmac } from "node:crypto"
import type { TaskId } from "../service/Ids.ts"

export const externalExecutionId = (key: Uint8Array, task_id: TaskId, attempt: number): string =>
  `nj-${createHmac("sha256", key)
    .update(JSON.stringify([task_id, attempt]))
    .digest("hex")
    .slice(0, 40)}`
