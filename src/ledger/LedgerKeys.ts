/**
 * The key for logins and external ids, in the ledger's file beside its hash: a flipped bit in it must not
 * decide whether a login is sent again.
 */
import { randomBytes } from "node:crypto"
import type { DatabaseSync } from "node:sqlite"
import { Effect, Schema } from "effect"
import { wordsOf } from "../base/Text.ts"
import { sha256 } from "../base/Hashes.ts"

// A transaction of SQLite: the only way in which ledger and token store write more than one row.

/** All of it or nothing; durable on return. */
export const within = <A>(database: DatabaseSync, work: () => A): A => {
  database.exec("BEGIN IMMEDIATE")
  try {
    const done = work()
    database.exec("COMMIT")
    return done
  } catch (cause) {
    if (database.isTransaction) database.exec("ROLLBACK")
    throw cause
  }
}

/** The content of the ledger has changed since it was written. */
export class Damage extends Error {}

/** SQLITE_CORRUPT and SQLITE_NOTADB, the lowest byte of each code of their kind: the file is damaged. */
const damagedCodes: ReadonlySet<number> = new Set([11, 26])
export const isDamage = (cause: unknown): cause is Error =>
  cause instanceof Damage ||
  (cause instanceof Error && "errcode" in cause && damagedCodes.has(Number(cause.errcode) & 0xff))

/** What the file, or its disk, is to blame for, and not a defect of ours. */
export const isOfFile = (cause: unknown): boolean =>
  cause instanceof Damage || (cause instanceof Error && "errcode" in cause)

export const keyIn = (database: DatabaseSync, name: string): Uint8Array | undefined => {
  const value = database.prepare("SELECT value FROM keys WHERE name = ?").get(name)?.["value"]
  return value instanceof Uint8Array ? value : undefined
}

/** Keeps existing entries. */
export const writeKey = (database: DatabaseSync, name: string, value: Uint8Array) =>
  database.prepare("INSERT OR IGNORE INTO keys (name, value) VALUES (?, ?)").run(name, value)

export const keyDamage = "the key for logins and external ids has changed since it was written"

export const fingerprintKeyIn = (database: DatabaseSync): Uint8Array => {
  if (keyIn(database, "fingerprint") === undefined)
    within(database, () => {
      const made = randomBytes(32)
      if (writeKey(database, "fingerprint", made).changes > 0)
        writeKey(database, "fingerprint.sha256", sha256(made))
    })
  const key = keyIn(database, "fingerprint")
  if (key === undefined || keyDiffers(database, key)) throw new Damage(keyDamage)
  return key
}

/** A ledger of an older version, read before it was ever opened for writing, has no hash of its key. */
export const keyDiffers = (database: DatabaseSync, key: Uint8Array): boolean => {
  const hash = keyIn(database, "fingerprint.sha256")
  return hash !== undefined && !sha256(key).equals(hash)
}

// Each fact of the ledger carries a hash of itself and the hash of the fact before: a flipped bit, or a fact
// removed between two others, is noticed. Facts cut off at the end are not: no later fact refers to them.

export interface ChainedRow {
  readonly seq: number
  readonly at: number
  readonly tag: string
  readonly run_id: string | null
  readonly task_id: string | null
  readonly body: string
}

/** A row whose place is not known yet. */
export type NewFact = Omit<ChainedRow, "seq">

/** What of a fact is in the archive, too. */
export type StoredFact = Pick<ChainedRow, "seq" | "at" | "body">

/** The hash before the first fact. */
export const beginning = ""

/** `before` is the hash of the fact whose `seq` is one less. */
export const linkOf = (before: string, { seq, at, tag, run_id, task_id, body }: ChainedRow): string =>
  sha256(JSON.stringify([before, seq, at, tag, run_id, task_id, body])).toString("base64url")

export type Row = Readonly<Record<string, unknown>>
export const columns = "seq, at, tag, run_id, task_id, body"

const maybeText = (value: unknown): string | null => (value === null ? null : String(value))
export const factOf = (row: Row): ChainedRow => ({
  seq: Number(row["seq"]),
  at: Number(row["at"]),
  tag: String(row["tag"]),
  run_id: maybeText(row["run_id"]),
  task_id: maybeText(row["task_id"]),
  body: String(row["body"]),
})

/** Rows that are held in memory at once. */
const rowsAtOnce = 10_000

/** Chains every fact from this place on, or chains it again. In a transaction. */
export const chainFrom = (database: DatabaseSync, first: number): void => {
  // The hash of an archived fact stays as it was: nothing else refers to it.
  const chainOf = database.prepare(
    "SELECT chain FROM facts WHERE seq = ?1 UNION ALL SELECT chain FROM archived_links WHERE seq = ?1",
  )
  const some = database.prepare(
    `SELECT ${columns} FROM facts WHERE seq >= ? ORDER BY seq LIMIT ${rowsAtOnce}`,
  )
  const set = database.prepare("UPDATE facts SET chain = ? WHERE seq = ?")
  let next = first
  for (let rows = some.all(next); rows.length > 0; rows = some.all(next))
    for (const row of rows.map(factOf)) {
      const before = chainOf.get(row.seq - 1)
      set.run(linkOf(String(before?.["chain"] ?? beginning), row), row.seq)
      next = row.seq + 1
    }
}

// Which versions can read a ledger: a higher format, or a fact of an unknown kind, comes from a newer one,
// and is reported with the version that wrote the newest run.

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

export const hasTable = (database: DatabaseSync, name: string): boolean =>
  database.prepare("SELECT 1 FROM sqlite_schema WHERE name = ?").get(name) !== undefined

/** The version that began the newest run, as the run says. */
const newestWriter = (database: DatabaseSync): string => {
  const newest = hasTable(database, "facts")
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
  const hasSome =
    hasTable(database, "facts") && database.prepare("SELECT 1 FROM facts LIMIT 1").get() !== undefined
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

// A defect of the disk and one of the content ask for different things of whoever reads the message.

/** The ledger could not be read or written; nothing may be started or deleted without it. */
export class LedgerFailed extends Schema.TaggedError<LedgerFailed>()("LedgerFailed", {
  message: Schema.String,
  /** The content of the file has changed since it was written: neither waiting nor free space helps. */
  damaged: Schema.optionalKey(Schema.Boolean),
  /** The token store is meant: without it, too, nothing may be started. */
  isTokens: Schema.optionalKey(Schema.Boolean),
  /** A newer version of the program wrote it: this one, or `unknown`. */
  written_by: Schema.optionalKey(Schema.String),
}) {}

export const ledgerFailed = (cause: unknown): LedgerFailed => {
  const message = wordsOf(cause)
  if (cause instanceof NewerLedger) return new LedgerFailed({ message, written_by: cause.written_by })
  return new LedgerFailed(isDamage(cause) ? { message, damaged: true } : { message })
}

export const attempt = <A>(read: () => A) => Effect.try({ try: read, catch: ledgerFailed })
