/**
 * The tables of the token store, and each read and write of them: one statement or one transaction, durable
 * on return. Secrets are encrypted before they come near a table, bound to their entry; deleted bytes are
 * overwritten.
 */
import { chmodSync, existsSync } from "node:fs"
import { DatabaseSync, type SQLInputValue } from "node:sqlite"
import { Effect, Option, Redacted, Schema } from "effect"
import { LedgerFailed } from "../ledger/Ledger.ts"
import { Damage, isDamage, within } from "../ledger/LedgerKeys.ts"
import { SentKeys } from "../ledger/LoginFacts.ts"
import type { KeptKeys } from "../privacy/Fingerprint.ts"
import { CustomerId, EngineReference, ExecutionId, type Access } from "../service/Ids.ts"
import { TokenStoreRefused, deriveKey, makeSalt, malformedKey, readKey } from "./StoredToken.ts"
import type { PendingTicket, SealingKey, StoredToken, TokenStoreOptions } from "./StoredToken.ts"

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
const version = 1

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
    const database = new DatabaseSync(path, { readOnly: true, timeout: 10_000 })
    try {
      checkPages(database)
    } finally {
      database.close()
    }
  } catch (cause) {
    // What a crash left half-written is no damage: whoever opens the store to write puts it back.
    return isDamage(cause) ? cause.message : undefined
  }
  return undefined
}

/** Opens the store and creates it if there is none; ":memory:" means what SQLite means by it. */
export const openTokenDatabase = (path: string): DatabaseSync => {
  const database = new DatabaseSync(path, { timeout: 10_000 })
  try {
    if (path !== ":memory:") chmodSync(path, 0o600)
    // A rollback journal leaves no second file behind that could contain dropped secrets.
    database.exec("PRAGMA journal_mode = DELETE; PRAGMA synchronous = EXTRA; PRAGMA secure_delete = ON")
    checkPages(database)
    database.exec(tables)
    within(database, () => addLogin(database))
    return database
  } catch (cause) {
    database.close()
    throw cause
  }
}

/** A damaged store is refused: neither waiting nor free space helps. */
export const storeFailure = (verb: string, cause: unknown, path: string): TokenStoreRefused | LedgerFailed =>
  isDamage(cause)
    ? new TokenStoreRefused({ message: `${path}: ${cause.message}`, damaged: true })
    : storeFailed(verb, cause)

export const storeFailed = (verb: string, cause: unknown): LedgerFailed => {
  const why = cause instanceof Error ? cause.message : String(cause)
  if (isDamage(cause)) return new LedgerFailed({ message: why, damaged: true, isTokens: true })
  return new LedgerFailed({ message: `the token store cannot be ${verb}: ${why}` })
}

type Row = Readonly<Record<string, unknown>>

const text = (value: unknown): string => String(value)
const maybeText = (value: unknown): string | undefined => (value === null ? undefined : String(value))
const listOf = (value: unknown): ReadonlyArray<string> => {
  const parsed: unknown = JSON.parse(String(value))
  return Array.isArray(parsed) ? parsed.map(String) : []
}

const decodeLogin = Schema.decodeUnknownOption(Schema.fromJsonString(SentKeys))
/** What is not readable is not known: as with a token of an older store. */
const maybeLogin = (value: unknown) =>
  Option.match(decodeLogin(value), { onNone: () => ({}), onSome: (login) => ({ login }) })

const tokenOf = (row: Row): StoredToken => ({
  name: text(row["name"]),
  service: text(row["service"]),
  token_id: text(row["token_id"]),
  customer_id: CustomerId.make(text(row["customer_id"])),
  engine_reference: EngineReference.make(text(row["engine_reference"])),
  app_id: maybeText(row["app_id"]),
  features: listOf(row["features"]),
  locking_hash: maybeText(row["locking_hash"]),
  fingerprint: maybeText(row["fingerprint"]),
  ...maybeLogin(row["login"]),
  exchanged_at: Number(row["exchanged_at"]),
  expires_at: Number(row["expires_at"]),
  dropped:
    row["dropped_reason"] === null
      ? undefined
      : { reason: text(row["dropped_reason"]), at: Number(row["dropped_at"]) },
  hasKey: row["sealed"] !== null,
})

const ticketOf = (row: Row): PendingTicket => ({
  execution_id: ExecutionId.make(text(row["execution_id"])),
  service: text(row["service"]),
  customer_id: CustomerId.make(text(row["customer_id"])),
  engine_reference: EngineReference.make(text(row["engine_reference"])),
  fingerprint: maybeText(row["fingerprint"]),
  ...maybeLogin(row["login"]),
  features: listOf(row["features"]),
  issued_at: Number(row["issued_at"]),
  tries: Number(row["tries"]),
})

/** A token that is stored: not dropped, and with its key. */
type KeptToken = Omit<StoredToken, "dropped" | "hasKey">

/** The entry that an encrypted key belongs to: in any other entry it does not open. */
const tokenPlace = ({ service, name, token_id, customer_id, engine_reference }: KeptToken): string =>
  JSON.stringify(["token", service, name, token_id, customer_id, engine_reference])
const ticketPlace = ({ service, execution_id, customer_id, engine_reference }: PendingTicket): string =>
  JSON.stringify(["ticket", service, execution_id, customer_id, engine_reference])

/** Every token, without a key: what `nightjar tokens list` shows. */
export const readTokens = (database: DatabaseSync): ReadonlyArray<StoredToken> =>
  database.prepare("SELECT * FROM tokens ORDER BY service, name").all().map(tokenOf)

const checkText = Redacted.make("nightjar token store")
const checkPlace = "key check"

type Opened = { readonly _tag: "Opened"; readonly key: SealingKey } | Refused
interface Refused {
  readonly _tag: "Refused"
  readonly message: string
}
const refused = (message: string): Refused => ({ _tag: "Refused", message })

/** The first key that opens a store is its key from then on. */
const openHeader = (database: DatabaseSync, given: Redacted.Redacted<string>): Opened => {
  const master = readKey(given)
  if (master === undefined) return refused(malformedKey)
  const header = database.prepare("SELECT version, salt, key_check FROM header").get()
  if (header === undefined) {
    const salt = makeSalt()
    const key = deriveKey(master, salt)
    database
      .prepare("INSERT INTO header (version, salt, key_check) VALUES (?, ?, ?)")
      .run(version, salt, key.seal(checkText, checkPlace))
    return { _tag: "Opened", key }
  }
  if (Number(header["version"]) !== version)
    return refused("the token store was written by another version of this program")
  const { salt, key_check } = header
  if (!(salt instanceof Uint8Array) || !(key_check instanceof Uint8Array))
    return refused("the header of the token store is damaged")
  const key = deriveKey(master, salt)
  const opens = key.open(key_check, checkPlace) !== undefined
  return opens ? { _tag: "Opened", key } : refused("the key does not open this token store")
}

/** The tables under one key and for one service; reads of another service's entries find nothing. */
export type StoreAccess = ReturnType<typeof makeAccess>

export const accessStore = (
  database: DatabaseSync,
  { key, service }: TokenStoreOptions,
): Refused | { readonly _tag: "Access"; readonly access: StoreAccess } => {
  const opened = openHeader(database, key)
  return opened._tag === "Refused"
    ? opened
    : { _tag: "Access", access: makeAccess(database, opened.key, service) }
}

const makeAccess = (database: DatabaseSync, key: SealingKey, service: string) => ({
  ...accessTokens(database, key, service),
  ...accessTickets(database, key, service),
})

/** What opens of these entries. */
const openedIn = (key: SealingKey, rows: ReadonlyArray<Row>, placeOf: (row: Row) => string) =>
  rows.flatMap((row) => {
    const { sealed } = row
    return (sealed instanceof Uint8Array ? key.open(sealed, placeOf(row)) : undefined) ?? []
  })
const placeOfToken = (row: Row) => tokenPlace(tokenOf(row))
const placeOfTicket = (row: Row) => ticketPlace(ticketOf(row))

/** Puts an entry into a table, in place of one with the same key; a column that it has not is NULL. */
const putInto = (database: DatabaseSync, table: string, columns: ReadonlyArray<string>) => {
  const marks = columns.map(() => "?").join()
  const put = database.prepare(`INSERT OR REPLACE INTO ${table} (${columns.join()}) VALUES (${marks})`)
  return (entry: Readonly<Record<string, SQLInputValue | ReadonlyArray<string> | KeptKeys | undefined>>) =>
    put.run(
      ...columns.map((name) => {
        const value = entry[name] ?? null
        const isText = Array.isArray(value) || (name === "login" && value !== null)
        return isText ? JSON.stringify(value) : (value as SQLInputValue)
      }),
    )
}
const accessColumns = [
  "service",
  "customer_id",
  "engine_reference",
  "fingerprint",
  "login",
  "features",
  "sealed",
]
const tokenColumns = ["name", "token_id", "app_id", "locking_hash", "exchanged_at", "expires_at"]

const deleteTicket = "DELETE FROM tickets WHERE service = ? AND execution_id = ?"

const accessTokens = (database: DatabaseSync, key: SealingKey, service: string) => {
  const one = database.prepare("SELECT * FROM tokens WHERE service = ? AND name = ? AND token_id = ?")
  const ofAccess = database.prepare(
    "SELECT * FROM tokens WHERE service = ? AND customer_id = ? AND engine_reference = ? ORDER BY name",
  )
  const sealed = database.prepare("SELECT * FROM tokens WHERE service = ? AND sealed IS NOT NULL")
  const drop = database.prepare(dropStatement)
  const put = putInto(database, "tokens", [...accessColumns, ...tokenColumns])
  const noTicket = database.prepare(deleteTicket)
  return {
    tokens: () => readTokens(database),
    /** The keys that open; fast even for many thousands of tokens. */
    tokenKeys: () => openedIn(key, sealed.all(service), placeOfToken),
    tokensOf: ({ customer_id, engine_reference }: Access): ReadonlyArray<StoredToken> =>
      ofAccess.all(service, customer_id, engine_reference).map(tokenOf),
    tokenKey: (name: string, token_id: string) =>
      openedIn(key, one.all(service, name, token_id), placeOfToken).at(0),
    keepToken: (token: KeptToken, token_key: Redacted.Redacted<string>, from: string | undefined) =>
      within(database, () => {
        put({ ...token, sealed: key.seal(token_key, tokenPlace(token)) })
        if (from !== undefined) noTicket.run(service, from)
      }),
    dropToken: (name: string, token_id: string, { reason, at }: Dropped, keepKey: boolean): boolean => {
      const keep = keepKey ? 1 : 0
      return drop.run(reason, at, keep, service, name, token_id, keep).changes > 0
    },
  }
}

const accessTickets = (database: DatabaseSync, key: SealingKey, service: string) => {
  const one = database.prepare("SELECT * FROM tickets WHERE service = ? AND execution_id = ?")
  const all = database.prepare("SELECT * FROM tickets WHERE service = ?")
  const put = putInto(database, "tickets", [...accessColumns, "execution_id", "issued_at", "tries"])
  const count = database.prepare("UPDATE tickets SET tries = ? WHERE service = ? AND execution_id = ?")
  const noTicket = database.prepare(deleteTicket)
  return {
    keepTicket: (ticket: PendingTicket, value: Redacted.Redacted<string>) => {
      put({ ...ticket, sealed: key.seal(value, ticketPlace(ticket)) })
    },
    pendingTicket: (execution_id: ExecutionId): PendingTicket | undefined => {
      const row = one.get(service, execution_id)
      return row === undefined ? undefined : ticketOf(row)
    },
    ticketValue: (execution_id: ExecutionId) =>
      openedIn(key, one.all(service, execution_id), placeOfTicket).at(0),
    ticketValues: () => openedIn(key, all.all(service), placeOfTicket),
    noteTries: (execution_id: ExecutionId, tries: number) => {
      count.run(tries, service, execution_id)
    },
    dropTicket: (execution_id: ExecutionId) => {
      noTicket.run(service, execution_id)
    },
    forgetTickets: (issuedBefore: number) => {
      database.prepare("DELETE FROM tickets WHERE issued_at < ?").run(issuedBefore)
    },
  }
}

type Dropped = NonNullable<StoredToken["dropped"]>

/** A dropped token stays dropped, but a key that was kept in doubt may still be deleted. */
const dropStatement = `
  UPDATE tokens SET dropped_reason = ?, dropped_at = ?, sealed = iif(?, sealed, NULL)
    WHERE service = ? AND name = ? AND token_id = ?
      AND (dropped_reason IS NULL OR (sealed IS NOT NULL AND NOT ?))`

// A customer leaves the store without its key; the file is rewritten, so that no page still holds anything.

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
    catch: (cause) => storeFailure("read or written", cause, path),
  })

const customerTables = ["tokens", "tickets"] as const

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
