/**
 * Copies a SQLite file while another process writes to it: one read transaction, so the copy is what the file
 * contained at one moment, without the pages of deleted rows and without a log beside it.
 */
import { closeSync, openSync } from "node:fs"
import { DatabaseSync } from "node:sqlite"

/** How long a writer without a log, as the token store is, may hold the file. */
const waitMs = 10_000

/** Throws what SQLite refuses; `to` must not exist yet. Nothing is synced. */
export const copyDatabase = (from: string, to: string, mode: number): void => {
  // SQLite accepts an empty file, and would give a new one a mode of its own.
  closeSync(openSync(to, "wx", mode))
  const database = new DatabaseSync(from, { readOnly: true, timeout: waitMs })
  try {
    database.prepare("VACUUM INTO ?").run(to)
  } finally {
    database.close()
  }
}
