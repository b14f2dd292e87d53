/**
 * Which versions of the program can read a ledger. The file has the number of its format, and a fact of a
 * kind that this version does not know comes from a newer one: both are reported with the version that
 * wrote the newest run, because only that version, or a newer one, can say what the ledger means.
 */
import type { DatabaseSync } from "node:sqlite"

/**
 * Raised when an older program can no longer read what a newer one writes; 0 is a ledger from before. 2:
 * facts may be archived. 3: accounts are kept beside the facts.
 */
const ledgerFormat = 3

/** A newer version of the program wrote this ledger. */
export class NewerLedger extends Error {
  readonly written_by: string
  constructor(what: string, written_by: string) {
    super(`${what}; the newest run in it was written by version ${written_by}`)
    this.written_by = written_by
  }
}

const hasFacts = (database: DatabaseSync): boolean =>
  database.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'facts'").get() !== undefined

/** The version that began the newest run, as the run says. */
const newestWriter = (database: DatabaseSync): string => {
  const newest = hasFacts(database)
    ? database.prepare("SELECT body FROM facts WHERE tag = 'RunStarted' ORDER BY seq DESC LIMIT 1").get()
    : undefined
  const found = /"tool_version":"([0-9A-Za-z.+-]{1,40})"/.exec(String(newest?.["body"] ?? ""))
  return found?.[1] ?? "unknown"
}

const formatOf = (database: DatabaseSync): number =>
  Number(database.prepare("PRAGMA user_version").get()?.["user_version"] ?? 0)

/** The format of a ledger that this version writes in another one; undefined if it has no facts either. */
export const olderFormat = (database: DatabaseSync): number | undefined => {
  const format = formatOf(database)
  const hasSome = hasFacts(database) && database.prepare("SELECT 1 FROM facts LIMIT 1").get() !== undefined
  return format < ledgerFormat && hasSome ? format : undefined
}

/** Before anything of the file is read or changed. */
export const refuseNewer = (database: DatabaseSync): void => {
  const format = formatOf(database)
  if (format > ledgerFormat) throw new NewerLedger(`the ledger has format ${format}`, newestWriter(database))
}

/** In the transaction that brings the tables there. */
export const markFormat = (database: DatabaseSync): void =>
  database.exec(`PRAGMA user_version = ${ledgerFormat}`)

/** A fact, whole as it was written, of which this version knows no such kind or no such content. */
export const unknownFact = (database: DatabaseSync, seq: number): NewerLedger =>
  new NewerLedger(`this version cannot read fact ${seq}`, newestWriter(database))
