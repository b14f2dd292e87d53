/**
 * The fact that opens the credential breaker: pure. It is written with the closing of the execution whose
 * login was refused, so that no crash comes between the two.
 */
import type { CredentialRejected } from "../ledger/Fact.ts"
import { accessOf } from "../contract/Ids.ts"
import { taskKeys } from "../ledger/FactKeys.ts"
import type { AttemptOrder } from "./AttemptOrder.ts"
import { endOf, refusalOf } from "../ends/Ends.ts"

/** None where nothing was refused, or where no login is known by it. */
export const rejection = (
  order: AttemptOrder,
  status_code: string,
  status_reason: string,
  authentication_status: string | undefined,
): ReadonlyArray<typeof CredentialRejected.Type> => {
  const { fingerprint } = order
  const reason = refusalOf(authentication_status) ?? status_reason
  const gone = status_reason === "EXECUTION_GONE"
  if (fingerprint === undefined || gone) return []
  if (!endOf({ status_code, status_reason, authentication_status }).opensBreaker) return []
  return [{ _tag: "CredentialRejected", ...taskKeys(order), fingerprint, ...accessOf(order), reason }]
}
