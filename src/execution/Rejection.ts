/**
 * The fact that opens the credential breaker: pure. It is written with the closing of the execution whose
 * login was refused, so that no crash comes between the two.
 */
import { endOfAttempt } from "../ends/Ends.ts"
import type { AttemptClosed, CredentialRejected } from "../ledger/Fact.ts"
import type { AttemptOrder } from "./AttemptOrder.ts"

/** None where nothing was refused, or where no login is known by it. */
export const rejection = (
  { run_id, task_id, fingerprint, customer_id, engine_reference }: AttemptOrder,
  closed: typeof AttemptClosed.Type,
): ReadonlyArray<typeof CredentialRejected.Type> => {
  // Whether it was aborted, and why, is the same to the login.
  const { rejection: reason } = endOfAttempt(closed, undefined)
  if (fingerprint === undefined || reason === undefined) return []
  const login = { fingerprint, customer_id, engine_reference }
  return [{ _tag: "CredentialRejected", run_id, task_id, ...login, reason }]
}
