/**
 * The file of the token store, its tables and what needs no key: each change is one transaction, durable on
 * return, and deleted bytes are overwritten.
 */
import { chmodSync, existsSync } from "node:fs"
import { DatabaseSync } from "node:sqlite"
import { Effect, Option, Schema } from "effect"
import { openDatabase } from "../base/FolderLock.ts"
import { wordsOf } from "../base/Text.ts"
import { LedgerFailed } from "../ledger/Ledger.ts"
import { Damage, isDamage, within } from "../ledger/LedgerKeys.ts"
import { SentKeys } from "../ledger/LoginFacts.ts"
import { CustomerId, EngineReference, ExecutionId } from "../service/Ids.ts"
import { TokenStoreRefused, type PendingTicket, type StoredToken } from "./StoredToken.ts"

const tables = `
  CREATE TABLE IF NOT EXISTS header (
    version INTEGER NOT NULL, salt BLOB NOT NULL, key_check BLOB NOT NULL
  ) STRICT;
  CREATE TABLE IF NOT EXISTS tokens (
    service TEXT NOT NULL, name TEXT NOT NULL,
    token_id TEXT NOT NULL, customer_id TEXT NOT NULL, engine_reference TEXT NOT NULL,
    app_id TEXT, features TEXT NOT NULL, locking_hash TEXT, fingerprint TEXT,
    exchanged_at INTEGER NOT NULL, expires_at INTEGER NOT NULL,
    sealed BLOB, dropped_reason TEXT, dropped_at INTEGER,
    PRIMARY KEY (service, name)
  ) STRICT;
  CREATE INDEX IF NOT EXISTS tokens_by_access ON tokens (service, customer_id, engine_reference);
  CREATE TABLE IF NOT EXISTS tickets (
    service TEXT NOT NULL, execution_id TEXT NOT NULL,
    customer_id TEXT NOT NULL, engine_reference TEXT NOT NULL, fingerprint TEXT, features TEXT NOT NULL,
    issued_at INTEGER NOT NULL, tries INTEGER NOT NULL, sealed BLOB NOT NULL,
    PRIMARY KEY (service, execution_id)
  ) STRICT;
`
/** With a row for each secret of a customer. */
export const customerTables = ["tokens", "tickets"] as const

/** In both tables since accounts are kept with tokens; older stores get it when they are opened. */
const addLogin = (database: DatabaseSync): void => {
  for (const table of customerTables) {
    const columns = database.prepare("SELECT name FROM pragma_table_info(?)").all(table)
    if (!columns.some(({ name }) => name === "login"))
      database.exec(`ALTER TABLE ${table} ADD COLUMN login TEXT`)
  }
}

/** SQLite looks at a page when it needs it: a damaged one would stop each night in its middle. */
const checkPages = (database: DatabaseSync): void => {
  const found = text(database.prepare("PRAGMA integrity_check(1)").get()?.["integrity_check"])
  if (found !== "ok") throw new Damage(found.replace(/^\*{3}.*\n/, ""))
}

/** What is damaged in the store at this path; undefined if nothing is, or if it is not there. Only reads. */
export const damageIn = (path: string): string | undefined => {
  if (!existsSync(path)) return undefined
  try {
    using database = new DatabaseSync(path, { readOnly: true, timeout: 10_000 })
    checkPages(database)
  } catch (cause) {
    // What a crash left half-written is no damage: whoever opens the store to write puts it back.
    return isDamage(cause) ? cause.message : undefined
  }
  return undefined
}

/** Opens the store and creates it if there is none; ":memory:" means what SQLite means by it. */
export const openTokenDatabase = (path: string): DatabaseSync =>
  openDatabase(path, { timeout: 10_000 }, (database) => {
    if (path !== ":memory:") chmodSync(path, 0o600)
    // A rollback journal leaves no second file behind that could contain dropped secrets.
    database.exec("PRAGMA journal_mode = DELETE; PRAGMA synchronous = EXTRA; PRAGMA secure_delete = ON")
    checkPages(database)
    database.exec(tables)
    within(database, () => addLogin(database))
  })

/** A damaged store is refused: neither waiting nor free space helps. */
export const storeFailure = (verb: string, cause: unknown, path: string): TokenStoreRefused | LedgerFailed =>
  isDamage(cause)
    ? new TokenStoreRefused({ message: `${path}: ${cause.message}`, damaged: true })
    : storeFailed(verb, cause)

export const storeFailed = (verb: string, cause: unknown): LedgerFailed => {
  const why = wordsOf(cause)
  if (isDamage(cause)) return new LedgerFailed({ message: why, damaged: true, isTokens: true })
  return new LedgerFailed({ message: `tokens.sqlite cannot be ${verb}: ${why}`, isTokens: true })
}

export type Row = Readonly<Record<string, unknown>>

const text = (value: unknown): string => String(value)
const maybeText = (value: unknown): string | undefined => (value === null ? undefined : String(value))
const listOf = (value: unknown): ReadonlyArray<string> => {
  const parsed: unknown = JSON.parse(String(value))
  return Array.isArray(parsed) ? parsed.map(String) : []
}

const decodeLogin = Schema.decodeUnknownOption(Schema.fromJsonString(SentKeys))

/** What both tables have. A login that is not readable is not known: as in an older store. */
const entryOf = (row: Row) => ({
  service: text(row["service"]),
  customer_id: CustomerId.make(text(row["customer_id"])),
  engine_reference: EngineReference.make(text(row["engine_reference"])),
  features: listOf(row["features"]),
  fingerprint: maybeText(row["fingerprint"]),
  ...Option.match(decodeLogin(row["login"]), { onNone: () => ({}), onSome: (login) => ({ login }) }),
})

export const tokenOf = (row: Row): StoredToken => ({
  ...entryOf(row),
  name: text(row["name"]),
  token_id: text(row["token_id"]),
  app_id: maybeText(row["app_id"]),
  locking_hash: maybeText(row["locking_hash"]),
  exchanged_at: Number(row["exchanged_at"]),
  expires_at: Number(row["expires_at"]),
  dropped:
    row["dropped_reason"] === null
      ? undefined
      : { reason: text(row["dropped_reason"]), at: Number(row["dropped_at"]) },
  hasKey: row["sealed"] !== null,
})

export const ticketOf = (row: Row): PendingTicket => ({
  ...entryOf(row),
  execution_id: ExecutionId.make(text(row["execution_id"])),
  issued_at: Number(row["issued_at"]),
  tries: Number(row["tries"]),
})

/** Every token, without a key: what `nightjar tokens list` shows. */
export const readTokens = (database: DatabaseSync): ReadonlyArray<StoredToken> =>
  database.prepare("SELECT * FROM tokens ORDER BY service, name").all().map(tokenOf)

// A customer leaves the store without its key; the file is rewritten, so that no page still holds anything.

const inStore = <A>(path: string, work: (database: DatabaseSync) => A, without: A) =>
  Effect.try({
    try: () => {
      if (!existsSync(path)) return without
      using database = openTokenDatabase(path)
      return work(database)
    },
    catch: (cause) => storeFailure("read or written", cause, path),
  })

/** Tokens, dropped ones included, and tickets. `path` is the store's file, which need not exist. */
export const countTokensOf = (path: string, customer_id: CustomerId) =>
  inStore(
    path,
    (database) =>
      customerTables.reduce((sum, table) => {
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
        for (const table of customerTables)
          database.prepare(`DELETE FROM ${table} WHERE customer_id = ?`).run(customer_id)
      })
      database.exec("VACUUM")
    },
    undefined,
  )
