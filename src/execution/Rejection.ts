/**
 * The fact that opens the credential breaker: pure. It is written together with the closing of the
 * execution whose login was refused, so that no crash comes between the two.
 */
import { accessOf } from "../contract/Ids.ts"
import { endOfAttempt } from "../ends/Ends.ts"
import type { AttemptClosed, CredentialRejected } from "../ledger/Fact.ts"
import { taskKeys } from "../ledger/FactKeys.ts"
import type { AttemptOrder } from "./AttemptOrder.ts"

/** None if nothing was refused, or if no login is known for it. */
export const rejection = (
  order: AttemptOrder,
  closed: typeof AttemptClosed.Type,
): ReadonlyArray<typeof CredentialRejected.Type> => {
  const { fingerprint } = order
  // Whether and why it was aborted does not matter for the login.
  const { rejection: reason } = endOfAttempt(closed, undefined)
  if (fingerprint === undefined || reason === undefined) return []
  return [{ _tag: "CredentialRejected", ...taskKeys(order), fingerprint, ...accessOf(order), reason }]
}
