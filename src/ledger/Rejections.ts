/**
 * The logins that a source has rejected and nobody has released since, over all runs, and the accounts that
 * they hold: a login is never sent again unchanged, and after two different ones in a row that were rejected,
 * no further one is sent to the account, because a third might lock it. Pure.
 */
import type { CredentialRejected, Recorded } from "./Fact.ts"
import type { RecordedAs } from "./FoldLedger.ts"

export type Rejection = RecordedAs<typeof CredentialRejected.Type>
/** By fingerprint, the newest last. One of an account that was logged in to since has no `account`. */
export type Rejections = ReadonlyMap<string, Rejection>

/** Different logins of one account that may be rejected in a row: many sources lock it at the third. */
export const rejectedInARowMax = 2

export const foldRejections = (rows: ReadonlyArray<Recorded>): Rejections => {
  const open = new Map<string, Rejection>()
  for (const { seq, at, fact } of rows) {
    if (fact._tag === "CredentialRejected") {
      open.delete(fact.fingerprint)
      open.set(fact.fingerprint, { seq, at, fact })
    } else if (fact._tag === "CredentialReleased") open.delete(fact.fingerprint)
    else if (fact._tag === "LoginAccepted") forgive(open, fact.account)
  }
  return open
}

/** The account was logged in to: what was rejected before no longer counts for it. */
const forgive = (open: Map<string, Rejection>, accepted: string): void => {
  for (const [fingerprint, rejection] of open) {
    const { account, ...fact } = rejection.fact
    if (account === accepted) open.set(fingerprint, { ...rejection, fact })
  }
}

/** What was rejected of this account since it was last logged in to, the newest last. */
export const rejectedInARow = (rejections: Rejections, account: string): ReadonlyArray<Rejection> =>
  [...rejections.values()].filter(({ fact }) => fact.account === account)
