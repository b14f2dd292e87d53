/**
 * A customer's tokens and tickets leave the store: no key is needed for that. The file is rewritten, so that
 * none of its pages still holds them.
 */
import { existsSync } from "node:fs"
import type { DatabaseSync } from "node:sqlite"
import { Effect } from "effect"
import type { CustomerId } from "../service/Ids.ts"
import { LedgerFailed } from "../ledger/Ledger.ts"
import { within } from "../ledger/Transaction.ts"
import { openTokenDatabase } from "./TokenTables.ts"

const inStore = <A>(path: string, work: (database: DatabaseSync) => A, without: A) =>
  Effect.try({
    try: () => {
      if (!existsSync(path)) return without
      const database = openTokenDatabase(path)
      try {
        return work(database)
      } finally {
        database.close()
      }
    },
    catch: (cause) => {
      const why = cause instanceof Error ? cause.message : String(cause)
      return new LedgerFailed({ message: `the token store cannot be read or written: ${why}` })
    },
  })

const tables = ["tokens", "tickets"] as const

/** Tokens, dropped ones included, and tickets. `path` is the store's file, which need not exist. */
export const countTokensOf = (path: string, customer_id: CustomerId) =>
  inStore(
    path,
    (database) =>
      tables.reduce((sum, table) => {
        const counted = database.prepare(`SELECT count(*) AS n FROM ${table} WHERE customer_id = ?`)
        return sum + Number(counted.get(customer_id)?.["n"])
      }, 0),
    0,
  )

export const forgetTokensOf = (path: string, customer_id: CustomerId) =>
  inStore(
    path,
    (database) => {
      within(database, () => {
        for (const table of tables)
          database.prepare(`DELETE FROM ${table} WHERE customer_id = ?`).run(customer_id)
      })
      database.exec("VACUUM")
    },
    undefined,
  )
