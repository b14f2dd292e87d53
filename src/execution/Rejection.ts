/**
 * What the closing of an execution says about its login: pure. The fact that opens the credential breaker, or
 * the one that ends a row of rejections. It is written together with the closing, so that no crash comes
 * between the two.
 */
import { accessOf } from "../contract/Ids.ts"
import { endOfAttempt } from "../ends/Ends.ts"
import type { AttemptClosed, CredentialRejected, LoginAccepted } from "../ledger/Fact.ts"
import { taskKeys } from "../ledger/FactKeys.ts"
import type { AttemptOrder } from "./AttemptOrder.ts"

type JudgedLogin = typeof CredentialRejected.Type | typeof LoginAccepted.Type

/** None if nothing was refused and nothing had been, or if no login is known for it. */
export const judgedLogin = (
  order: AttemptOrder,
  closed: typeof AttemptClosed.Type,
): ReadonlyArray<JudgedLogin> => {
  const { fingerprint, account, isDoubted } = order
  // Whether and why it was aborted does not matter for the login.
  const { rejection: reason } = endOfAttempt(closed, undefined)
  const ofAccount = account === undefined ? {} : { account }
  if (fingerprint !== undefined && reason !== undefined) {
    const of = { ...taskKeys(order), fingerprint, ...ofAccount, ...accessOf(order) }
    return [{ _tag: "CredentialRejected", ...of, reason }]
  }
  const isAccepted = reason === undefined && closed.authentication_status === "AUTH_OK"
  return isAccepted && isDoubted && account !== undefined
    ? [{ _tag: "LoginAccepted", ...taskKeys(order), account }]
    : []
}
