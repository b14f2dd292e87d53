/**
 * The logins that must not be sent in this night, kept in step with the ledger while it runs: those that the
 * source rejected, and every login to an account of which it rejected too many in a row.
 */
import { rejectedInARowMax } from "../ledger/Rejections.ts"
import type { Rejections } from "../ledger/Rejections.ts"
import type { LoginKeys } from "../secrets/Fingerprint.ts"

export class RejectedLogins {
  /** The reason, by fingerprint. */
  readonly #reasons = new Map<string, string>()
  /** What was rejected since the account was last logged in to, with the reason, the newest last. */
  readonly #inARow = new Map<string, Map<string, string>>()

  constructor(rejections: Rejections) {
    for (const { fact } of rejections.values()) this.reject(fact, fact.reason)
  }

  /** Why this login is not sent; undefined if it may be. */
  reasonAgainst({ fingerprint, account }: LoginKeys): string | undefined {
    const reason = fingerprint === undefined ? undefined : this.#reasons.get(fingerprint)
    const inARow = [...((account === undefined ? undefined : this.#inARow.get(account))?.values() ?? [])]
    return reason ?? (inARow.length < rejectedInARowMax ? undefined : inARow.at(-1))
  }

  /** Repeating it changes nothing. */
  reject({ fingerprint, account }: LoginKeys, reason: string): void {
    if (fingerprint === undefined) return
    this.#reasons.set(fingerprint, reason)
    if (account === undefined) return
    const inARow = this.#inARow.get(account) ?? new Map<string, string>()
    this.#inARow.set(account, inARow)
    inARow.set(fingerprint, reason)
  }

  /** The source accepted a login to this account. */
  accept({ account }: LoginKeys): void {
    if (account !== undefined) this.#inARow.delete(account)
  }

  /** A login to this account was rejected, and none accepted since. */
  isDoubted({ account }: LoginKeys): boolean {
    return account !== undefined && this.#inARow.has(account)
  }
}
