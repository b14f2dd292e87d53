/**
 * Opens the file of the ledger, for reading or for writing. Who writes makes the tables that are missing,
 * and brings those of an older format to this one.
 */
import { chmodSync } from "node:fs"
import { DatabaseSync } from "node:sqlite"
import { makeTables } from "./LedgerSchema.ts"
import { refuseNewer } from "./LedgerVersion.ts"

/** `path` may be ":memory:"; a read-only ledger must already exist. */
export const openLedger = (options: { readonly path: string; readonly readOnly?: boolean }): DatabaseSync => {
  const database = new DatabaseSync(options.path, { readOnly: options.readOnly ?? false, timeout: 10_000 })
  try {
    refuseNewer(database)
    if (options.readOnly === true) return database
    if (options.path !== ":memory:") chmodSync(options.path, 0o600)
    // Before the first page is written; an older file is left as it is.
    database.exec("PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;")
    makeTables(database)
    return database
  } catch (cause) {
    database.close()
    throw cause
  }
}
