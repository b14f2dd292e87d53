/**
 * A transaction of SQLite around synchronous work: the only way in which ledger and token store write more
 * than one row.
 */
import type { DatabaseSync } from "node:sqlite"

/** All of it or nothing; durable on return. */
export const within = (database: DatabaseSync, work: () => void) => {
  database.exec("BEGIN IMMEDIATE")
  try {
    work()
    database.exec("COMMIT")
  } catch (cause) {
    if (database.isTransaction) database.exec("ROLLBACK")
    throw cause
  }
}
