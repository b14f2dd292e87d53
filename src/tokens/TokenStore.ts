/**
 * The token store of an output folder: the customers' stored tokens and the tickets that are not exchanged
 * yet (section 2.6), each secret encrypted. SQLite like the ledger, so that each change is atomic, durable
 * and as cheap with fifty thousand tokens as with one, but in its own file: a copied ledger opens no account.
 * Only the holder of the folder's lock writes; without a key the store can only be listed.
 */
import { Clock, Context, Effect, Layer, type Redacted } from "effect"
import type { DatabaseSync } from "node:sqlite"
import type { Access, ExecutionId } from "../service/Ids.ts"
import { KnownSecrets } from "../privacy/KnownSecrets.ts"
import { TokenStoreRefused } from "./StoredToken.ts"
import type { NewTicket, NewToken, StoredToken, TokenStoreOptions } from "./StoredToken.ts"
import { accessStore, openTokenDatabase, readTokens, storeFailed, storeFailure } from "./TokenTables.ts"
import type { StoreAccess } from "./TokenTables.ts"

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

const openStore = Effect.fnUntraced(function* (database: DatabaseSync, options: TokenStoreOptions) {
  const opened = yield* attempt(() => accessStore(database, options))
  if (opened._tag === "Refused") return yield* new TokenStoreRefused({ message: opened.message })
  const { access } = opened
  const now = yield* Clock.currentTimeMillis
  yield* attempt(() => access.forgetTickets(Math.trunc(now - ticketKeptMs)))
  const known = yield* KnownSecrets
  known.hold(options.key, "process")
  // They were issued in an earlier run, and a body of this one may repeat them.
  for (const secret of yield* attempt(() => [...access.tokenKeys(), ...access.ticketValues()]))
    known.hold(secret, "process")
  return storeOver(access, options.service)
})

const storeOver = (access: StoreAccess, service: string) => ({
  _tag: "Open" as const,
  service,
  /** Those of every service, including dropped ones. */
  tokens: attempt(access.tokens),
  /** Those of one customer on one engine at this service. */
  tokensOf: (of: Access) => attempt(() => access.tokensOf(of)),
  /** Undefined if it is gone, or this key does not open it. */
  tokenKey: ({ name, token_id }: Named) => attempt(() => access.tokenKey(name, token_id)),
  /** Keeps a token instead of an older one of that name, and drops the ticket that it came from. */
  keepToken: (token: NewToken, token_key: Secret, from: string | undefined) =>
    attempt(() => access.keepToken({ ...token, service }, token_key, from)),
  /** False if there was nothing to drop. `keepKey`: the service may have meant something else. */
  dropToken: ({ name, token_id }: Named, reason: string, keepKey = false) =>
    Effect.flatMap(Clock.currentTimeMillis, (now) =>
      attempt(() => access.dropToken(name, token_id, { reason, at: Math.trunc(now) }, keepKey)),
    ),
  keepTicket: (ticket: NewTicket, value: Secret) =>
    attempt(() => access.keepTicket({ ...ticket, service, tries: 0 }, value)),
  pendingTicket: (execution_id: ExecutionId) => attempt(() => access.pendingTicket(execution_id)),
  ticketValue: (execution_id: ExecutionId) => attempt(() => access.ticketValue(execution_id)),
  noteTries: (execution_id: ExecutionId, tries: number) =>
    attempt(() => access.noteTries(execution_id, tries)),
  dropTicket: (execution_id: ExecutionId) => attempt(() => access.dropTicket(execution_id)),
})
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
