/**
 * The accounts of a ledger as a plan asks for them: once for each task, without a further read. Pure; the
 * names by which an account is found are those of the ledger's own rows.
 */
import { sourceOf } from "../service/Ids.ts"
import { formerNames, isOf } from "./Accounts.ts"
import type { Account, Beside } from "./Accounts.ts"

/** The accounts of a ledger, as a plan asks for them. */
export class AccountBook {
  readonly #named = new Map<string, Array<Account>>()
  readonly #engines = new Map<string, Set<string>>()

  constructor(accounts: ReadonlyArray<Account>) {
    for (const account of accounts) {
      const { identity, row, sent, rejected } = account
      for (const name of [...identity, ...formerNames(account), ...(row === undefined ? [] : [row])]) {
        const known = this.#named.get(name) ?? []
        this.#named.set(name, known)
        known.push(account)
      }
      if (identity.length > 0) continue
      for (const { engine_reference } of [...sent, ...rejected]) {
        const source = sourceOf(engine_reference)
        this.#engines.set(source, (this.#engines.get(source) ?? new Set()).add(engine_reference))
      }
    }
  }

  /** Those that a login opens, and those that share its row. */
  of(login: Beside): ReadonlyArray<Account> {
    const { identity, former, row } = login
    const names = [...identity, ...former, ...(row === undefined ? [] : [row])]
    const found = new Set(names.flatMap((name) => this.#named.get(name) ?? []))
    return [...found].filter((account) => isOf(account, login) || (row !== undefined && account.row === row))
  }

  /** Engines of its source on which an earlier version knew rejected or lost logins. */
  formerEngines(engine_reference: string): ReadonlyArray<string> {
    return [...(this.#engines.get(sourceOf(engine_reference)) ?? [])]
  }
}
