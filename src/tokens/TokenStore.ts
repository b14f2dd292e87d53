/**
 * The token store of an output folder: the customers' stored tokens and the tickets that are not exchanged
 * yet (section 2.6), each secret encrypted. SQLite like the ledger, so that each change is atomic, durable
 * and as cheap with fifty thousand tokens as with one, but in its own file: a copied ledger opens no account.
 * Only the holder of the folder's lock writes; without a key the store can only be listed.
 */
import type { DatabaseSync, SQLInputValue } from "node:sqlite"
import { Clock, Context, Effect, Layer, Redacted } from "effect"
import { within } from "../ledger/LedgerKeys.ts"
import type { Access, ExecutionId } from "../service/Ids.ts"
import { KnownSecrets } from "../privacy/KnownSecrets.ts"
import { TokenStoreRefused, deriveKey, makeSalt, malformedKey, readKey } from "./StoredToken.ts"
import type { NewTicket, NewToken, SealingKey, StoredToken, TokenStoreOptions } from "./StoredToken.ts"
import { customerTables, openTokenDatabase, readTokens, storeFailed } from "./TokenTables.ts"
import { storeFailure, ticketOf, tokenOf, type Row } from "./TokenTables.ts"

/** A ticket is short-lived: an older one was never exchanged and never will be. */
const ticketKeptMs = 7 * 24 * 60 * 60_000

type Secret = Redacted.Redacted<string>
type Named = Pick<StoredToken, "name" | "token_id">

/** `Closed`: this process has no key, and neither stores nor returns tokens. */
export type TokenStoreState = OpenTokenStore | { readonly _tag: "Closed" }

const attempt = <A>(work: () => A) =>
  Effect.try({ try: work, catch: (cause) => storeFailed("read or written", cause) })

const openFile = (path: string) =>
  Effect.try({
    try: () => openTokenDatabase(path),
    catch: (cause) => storeFailure("opened", cause, path),
  })

const checkText = Redacted.make("nightjar token store")
const checkPlace = "key check"
const version = 1

/** The first key that opens a store is its key from then on. */
const openHeader = (database: DatabaseSync, given: Secret): SealingKey | TokenStoreRefused => {
  const refused = (message: string) => new TokenStoreRefused({ message })
  const master = readKey(given)
  if (master === undefined) return refused(malformedKey)
  const header = database.prepare("SELECT version, salt, key_check FROM header").get()
  if (header === undefined) {
    const salt = makeSalt()
    const key = deriveKey(master, salt)
    database
      .prepare("INSERT INTO header (version, salt, key_check) VALUES (?, ?, ?)")
      .run(version, salt, key.seal(checkText, checkPlace))
    return key
  }
  if (Number(header["version"]) !== version)
    return refused("the token store was written by another version of this program")
  const { salt, key_check } = header
  if (!(salt instanceof Uint8Array) || !(key_check instanceof Uint8Array))
    return refused("the header of the token store is damaged")
  const key = deriveKey(master, salt)
  const opens = key.open(key_check, checkPlace) !== undefined
  return opens ? key : refused("the key does not open this token store")
}

const openStore = Effect.fnUntraced(function* (database: DatabaseSync, options: TokenStoreOptions) {
  const { service } = options
  const key = yield* attempt(() => openHeader(database, options.key))
  if (key instanceof TokenStoreRefused) return yield* key
  const entries = yield* attempt(() => sealedEntries(database, key))
  const now = yield* Clock.currentTimeMillis
  yield* attempt(() =>
    database.prepare("DELETE FROM tickets WHERE issued_at < ?").run(Math.trunc(now - ticketKeptMs)),
  )
  const known = yield* KnownSecrets
  known.hold(options.key, "process")
  // They were issued in an earlier run, and a body of this one may repeat them.
  for (const secret of yield* attempt(() => customerTables.flatMap((table) => entries.all(table, service))))
    known.hold(secret, "process")
  return yield* attempt(() => storeOver(database, entries, service))
})

type Table = (typeof customerTables)[number]

/** What an encrypted value is bound to: in any other entry it does not open. */
const places = {
  tokens: ["token", "service", "name", "token_id", "customer_id", "engine_reference"],
  tickets: ["ticket", "service", "execution_id", "customer_id", "engine_reference"],
} as const

const accessColumns = [
  "service",
  "customer_id",
  "engine_reference",
  "fingerprint",
  "login",
  "features",
  "sealed",
]
const columns = {
  tokens: [...accessColumns, "name", "token_id", "app_id", "locking_hash", "exchanged_at", "expires_at"],
  tickets: [...accessColumns, "execution_id", "issued_at", "tries"],
}

const cellOf = (value: unknown) =>
  typeof value === "object" && value !== null && !(value instanceof Uint8Array)
    ? JSON.stringify(value)
    : ((value ?? null) as SQLInputValue)

/** Secrets are encrypted before they come near a table. */
const sealedEntries = (database: DatabaseSync, key: SealingKey) => {
  const placeOf = (table: Table, entry: Row): string => {
    const [kind, ...names] = places[table]
    return JSON.stringify([kind, ...names.map((name) => entry[name])])
  }
  /** Undefined if it is gone, or this key does not open it. */
  const open = (table: Table, row: Row | undefined): Secret | undefined =>
    row?.["sealed"] instanceof Uint8Array ? key.open(row["sealed"], placeOf(table, row)) : undefined
  return {
    open,
    /** Fast even for many thousands of entries. */
    all: (table: Table, service: string): ReadonlyArray<Secret> =>
      database
        .prepare(`SELECT * FROM ${table} WHERE service = ? AND sealed IS NOT NULL`)
        .all(service)
        .flatMap((row) => open(table, row) ?? []),
    /** In place of one with the same key; a column that it has not is NULL. */
    put: (table: Table, entry: Row, secret: Secret): void => {
      const row: Row = { ...entry, sealed: key.seal(secret, placeOf(table, entry)) }
      const names = columns[table]
      const marks = names.map(() => "?").join()
      database
        .prepare(`INSERT OR REPLACE INTO ${table} (${names.join()}) VALUES (${marks})`)
        .run(...names.map((name) => cellOf(row[name])))
    },
  }
}

/** A doubt changes nothing of a token that is dropped; what is certain does. */
const dropStatement = `
  UPDATE tokens SET dropped_reason = ?, dropped_at = ?, sealed = iif(?, sealed, NULL)
    WHERE service = ? AND name = ? AND token_id = ? AND (dropped_reason IS NULL OR NOT ?)`

/** Of a token that gives its name to a new one: the service has its credentials until it expires. */
const replaceStatement = `
  UPDATE tokens SET name = name || '#' || token_id, dropped_reason = 'REPLACED', dropped_at = ?, sealed = NULL
    WHERE service = ? AND name = ? AND token_id <> ? AND expires_at > ? AND dropped_reason IS NOT 'REVOKED'`

/** Reads of another service's entries find nothing. */
const storeOver = (
  database: DatabaseSync,
  { open, put }: ReturnType<typeof sealedEntries>,
  service: string,
) => {
  const token = database.prepare("SELECT * FROM tokens WHERE service = ? AND name = ? AND token_id = ?")
  const ofAccess = database.prepare(
    "SELECT * FROM tokens WHERE service = ? AND customer_id = ? AND engine_reference = ? ORDER BY name",
  )
  const ticket = database.prepare("SELECT * FROM tickets WHERE service = ? AND execution_id = ?")
  const count = database.prepare("UPDATE tickets SET tries = ? WHERE service = ? AND execution_id = ?")
  const noTicket = database.prepare("DELETE FROM tickets WHERE service = ? AND execution_id = ?")
  const dropping = database.prepare(dropStatement)
  const replacing = database.prepare(replaceStatement)
  return {
    _tag: "Open" as const,
    service,
    /** Those of every service, including dropped ones. */
    tokens: attempt(() => readTokens(database)),
    /** Those of one customer on one engine at this service. */
    tokensOf: ({ customer_id, engine_reference }: Access) =>
      attempt(() => ofAccess.all(service, customer_id, engine_reference).map(tokenOf)),
    tokenKey: ({ name, token_id }: Named) =>
      attempt(() => open("tokens", token.get(service, name, token_id))),
    /** Keeps a token instead of an older one of that name, and drops the ticket that it came from. */
    keepToken: (kept: NewToken, token_key: Secret, from: string | undefined) =>
      attempt(() =>
        within(database, () => {
          const { name, token_id, exchanged_at } = kept
          replacing.run(exchanged_at, service, name, token_id, exchanged_at)
          put("tokens", { ...kept, service }, token_key)
          if (from !== undefined) noTicket.run(service, from)
        }),
      ),
    /** False if there was nothing to drop. `keepKey`: the service may have meant something else. */
    dropToken: ({ name, token_id }: Named, reason: string, keepKey = false) =>
      Effect.flatMap(Clock.currentTimeMillis, (now) => {
        const [at, keep] = [Math.trunc(now), keepKey ? 1 : 0]
        return attempt(() => dropping.run(reason, at, keep, service, name, token_id, keep).changes > 0)
      }),
    keepTicket: (kept: NewTicket, value: Secret) =>
      attempt(() => put("tickets", { ...kept, service, tries: 0 }, value)),
    pendingTicket: (execution_id: ExecutionId) =>
      attempt(() => {
        const row = ticket.get(service, execution_id)
        return row === undefined ? undefined : ticketOf(row)
      }),
    ticketValue: (execution_id: ExecutionId) =>
      attempt(() => open("tickets", ticket.get(service, execution_id))),
    noteTries: (execution_id: ExecutionId, tries: number) =>
      attempt(() => count.run(tries, service, execution_id)),
    dropTicket: (execution_id: ExecutionId) => attempt(() => noTicket.run(service, execution_id)),
  }
}
export type OpenTokenStore = ReturnType<typeof storeOver>

/** Every token of a store, without a key. */
export const listTokens = (path: string) =>
  Effect.scoped(Effect.flatMap(openScoped(path), (database) => attempt(() => readTokens(database))))

const openScoped = (path: string) =>
  Effect.acquireRelease(openFile(path), (opened) => Effect.sync(() => opened.close()))

const closed: TokenStoreState = { _tag: "Closed" }
const provide = (state: TokenStoreState) => Layer.succeedContext(Context.make(reference, state))
const reference = Context.Reference<TokenStoreState>("nightjar/tokens/TokenStore", {
  defaultValue: () => closed,
})

/** A job without `tokens` runs without a store; commands that need one say so. */
export const TokenStore = Object.assign(reference, {
  /** `path` may be ":memory:". Fails if the key is missing, or not this store's. */
  layer: (path: string, options: TokenStoreOptions) =>
    Layer.unwrap(
      Effect.gen(function* () {
        return provide(yield* openStore(yield* openScoped(path), options))
      }),
    ),
  /** A store over a database that outlives the layer, for simulated crashes. */
  layerOver: (database: DatabaseSync, options: TokenStoreOptions) =>
    Layer.unwrap(Effect.map(openStore(database, options), provide)),
})
