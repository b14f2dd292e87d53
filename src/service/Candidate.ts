/**
 * A task that wants to start an execution, and what no other one may have in flight at the same time
 * (section 4.1).
 */
import { sourceOf } from "./Ids.ts"
import type { Access, TaskId } from "./Ids.ts"

/** A task that wants to start an execution. */
export interface Candidate extends Access {
  readonly task_id: TaskId
  /** One login is never in flight twice, whichever customers use it. */
  readonly fingerprint: string | undefined
  /** Nor is an account, whichever logins open it. */
  readonly account?: string | undefined
}

/**
 * Tasks that share one of these are never in flight together (section 4.1). A customer is on one engine of a
 * source at a time: where a session is open, a second login can be refused (DUPLICATED_SESSION).
 */
export const conflictKeys = ({
  task_id,
  customer_id,
  engine_reference,
  fingerprint,
  account,
}: Candidate): ReadonlyArray<string> => {
  const keys = [`task ${task_id}`, `customer ${JSON.stringify([customer_id, sourceOf(engine_reference)])}`]
  if (fingerprint !== undefined) keys.push(`login ${fingerprint}`)
  if (account !== undefined) keys.push(`account ${account}`)
  return keys
}
