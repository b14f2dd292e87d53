/**
 * The token store: what it keeps, what opens it and what does not, and what a damaged file
 * comes to.
 */
import { existsSync, readdirSync, readFileSync, readlinkSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { TestClock } from "effect/testing"
import { LedgerFailed } from "../../src/ledger/Ledger.ts"
import { isDamage } from "../../src/ledger/LedgerKeys.ts"
import { endingOf } from "../../src/cli/Failures.ts"
import { afterwards } from "../../src/messages/Catalogue.ts"
import { KnownSecrets, makeKnownSecrets } from "../../src/privacy/KnownSecrets.ts"
import { countTokensOf, damageIn, forgetTokensOf, openTokenDatabase } from "../../src/tokens/TokenTables.ts"
import { TokenStoreRefused, deriveKey, malformedKey, tokenLifetimeMs } from "../../src/tokens/StoredToken.ts"
import type { NewToken, TokenStoreOptions } from "../../src/tokens/StoredToken.ts"
import { listTokens, TokenStore, type OpenTokenStore } from "../../src/tokens/TokenStore.ts"
import { changeFile } from "../ledger/CountedReads.ts"
import { anId } from "../harness/Id.ts"
import { effect } from "../harness/Steps.ts"
import { sharedFolder } from "../harness/Folder.ts"
import { plainToken, withStore } from "./OpenStore.ts"

const folder = sharedFolder()
let files = 0
const newFile = () => join(folder, `${(files += 1)}.sqlite`)

const keyOne = Redacted.make("1f".repeat(32))
const keyTwo = Redacted.make(Buffer.alloc(32, 9).toString("base64"))
const service = "https://service.example"
const token_key = "token-key-canary-8a1b"
const ticketValue = "ticket-canary-77cd"

const token = (changes: Partial<NewToken> = {}): NewToken =>
  plainToken({
    app_id: "app",
    features: ["accounts_read"],
    locking_hash: "v1.x",
    fingerprint: "f1",
    exchanged_at: 1_000,
    expires_at: 1_000 + tokenLifetimeMs,
    ...changes,
  })
const ticket = {
  execution_id: anId("e-1"),
  customer_id: anId("c-1"),
  engine_reference: anId("bank"),
  fingerprint: "f1",
  features: ["accounts_read"],
  issued_at: 5,
}

const within = <A>(
  path: string,
  work: (store: OpenTokenStore) => Effect.Effect<A, LedgerFailed>,
  options: Partial<TokenStoreOptions> = {},
) => Effect.provide(withStore(work), TokenStore.layer(path, { key: keyOne, service, ...options }))

const keepToken = (store: OpenTokenStore, changes: Partial<NewToken> = {}, value = token_key) =>
  store.keepToken(token(changes), Redacted.make(value), undefined)
const keepTicket = (store: OpenTokenStore) => store.keepTicket(ticket, Redacted.make(ticketValue))
/** A store with one token. */
const kept = Effect.suspend(() => {
  const path = newFile()
  return Effect.as(within(path, keepToken), path)
})
const open = { ...token(), service, dropped: undefined, hasKey: true }

const keyOf = (store: OpenTokenStore) =>
  Effect.map(store.tokenKey({ name: "c-1/bank", token_id: "t-1" }), (key) => key && Redacted.value(key))

const refusal = <A>(work: Effect.Effect<A, TokenStoreRefused | LedgerFailed>) =>
  Effect.map(Effect.flip(work), ({ _tag, message }) => [_tag, message])

describe("the token store", () => {
  effect("keeps a token across processes, its key only for holders of the store's key", function* () {
    const path = yield* kept
    expect(yield* within(path, (store) => store.tokens)).toEqual([open])
    expect(yield* listTokens(path)).toEqual([open])
    expect(yield* within(path, keyOf)).toBe(token_key)
    expect(statSync(path).mode & 0o777).toBe(0o600)
    expect([existsSync(`${path}-journal`), existsSync(`${path}-wal`)]).toEqual([false, false])
  })

  effect("reports a wrong key at once, and refuses what is not a key", function* () {
    const path = newFile()
    yield* within(path, (store) => store.tokens)
    const wrong = within(path, (store) => store.tokens, { key: keyTwo })
    expect(yield* refusal(wrong)).toEqual(["TokenStoreRefused", "the key does not open this token store"])
    const [tag, message] = yield* refusal(
      within(newFile(), (store) => store.tokens, { key: Redacted.make("g".repeat(64)) }),
    )
    expect([tag, message]).toEqual(["TokenStoreRefused", malformedKey])
  })

  effect("[auth-rule 5] spells neither key nor ticket in clear, and dropped bytes are gone", function* () {
    const path = newFile()
    const sealedAt = (): string => readFileSync(path).toString("latin1")
    const sealedOf = (table: "tokens" | "tickets") => {
      const database = new DatabaseSync(path, { readOnly: true })
      const { sealed } = database.prepare(`SELECT sealed FROM ${table}`).get() ?? {}
      database.close()
      return Buffer.from(sealed instanceof Uint8Array ? sealed : []).toString("latin1")
    }
    yield* within(path, (store) => Effect.andThen(keepToken(store), keepTicket(store)))
    for (const secret of [token_key, ticketValue]) {
      const bytes = Buffer.from(secret)
      const forms = [secret, bytes.toString("base64").slice(0, 20), bytes.toString("hex")]
      expect(forms.filter((form) => sealedAt().includes(form))).toEqual([])
    }
    // The beginning of a freed cell is overwritten in any case.
    const tails = [sealedOf("tokens"), sealedOf("tickets")].map((bytes) => bytes.slice(-20))
    expect(tails.map((tail) => [tail.length, sealedAt().includes(tail)])).toEqual([
      [20, true],
      [20, true],
    ])
    yield* within(path, (store) =>
      Effect.andThen(store.dropToken(token(), "LOCKED"), store.dropTicket(anId("e-1"))),
    )
    expect(tails.filter((tail) => sealedAt().includes(tail))).toEqual([])
  })

  effect("opens no value that was moved to another entry, and none with a changed byte", function* () {
    const path = yield* kept
    yield* within(path, (store) => keepToken(store, { name: "other", token_id: "t-2" }, "another"))
    const mine = "WHERE name = 'c-1/bank'"
    const moves = [
      "sealed = (SELECT sealed FROM tokens WHERE name = 'other')",
      "customer_id = 'c-2'",
      "engine_reference = 'tax'",
      "sealed = zeroblob(40)",
      "sealed = x'00'",
    ]
    changeFile(path, `CREATE TABLE before AS SELECT * FROM tokens ${mine}`)
    for (const move of moves) {
      changeFile(path, `UPDATE tokens SET ${move} ${mine}`)
      expect([move, yield* within(path, keyOf)]).toEqual([move, undefined])
      changeFile(path, `DELETE FROM tokens ${mine}; INSERT INTO tokens SELECT * FROM before`)
      expect(yield* within(path, keyOf)).toBe(token_key)
    }
    const elsewhere = { service: "https://elsewhere.example" }
    changeFile(path, `UPDATE tokens SET service = '${elsewhere.service}' ${mine}`)
    expect(yield* within(path, keyOf, elsewhere)).toBeUndefined()
  })

  effect("is refused when it is damaged, and not changed", function* () {
    const path = newFile()
    writeFileSync(path, "no database at all, but long enough to be taken for one".repeat(100))
    const before = readFileSync(path)
    expect(yield* refusal(within(path, (store) => store.tokens))).toEqual([
      "TokenStoreRefused",
      `${path}: file is not a database`,
    ])
    expect(readFileSync(path)).toEqual(before)
    const torn = newFile()
    yield* within(torn, (store) => store.tokens)
    // The header of the file is whole, and the first page behind it is not.
    const bytes = readFileSync(torn)
    writeFileSync(torn, bytes.fill(0xff, 100, 200))
    expect(yield* refusal(within(torn, (store) => store.tokens))).toEqual([
      "TokenStoreRefused",
      `${torn}: database disk image is malformed`,
    ])
  })

  effect("is refused by all whichever of its pages is damaged [exit 2 token store]", function* () {
    const whole = yield* kept
    const bytes = readFileSync(whole)
    const pages = Array.from({ length: bytes.length / 4_096 - 1 }, (_, index) => index + 1)
    expect([pages.length, damageIn(whole), damageIn(newFile())]).toEqual([6, undefined, undefined])
    const refusals = yield* Effect.forEach(pages, (page) => {
      const path = newFile()
      const xored = bytes.map((byte, at) => (Math.floor(at / 4_096) === page ? byte ^ 0x55 : byte))
      writeFileSync(path, xored)
      const customer_id = anId("c-1")
      const opened: ReadonlyArray<Effect.Effect<unknown, TokenStoreRefused | LedgerFailed>> = [
        within(path, (store) => store.tokens),
        listTokens(path),
        countTokensOf(path, customer_id),
        forgetTokensOf(path, customer_id),
      ]
      return Effect.map(
        Effect.forEach(opened, (one) => Effect.flip(Effect.asVoid(one))),
        (failures) => ({
          failures: failures.map((failure) => [failure._tag, failure.damaged]),
          isNamed: damageIn(path) !== undefined,
          isAsItWas: readFileSync(path).equals(xored),
        }),
      )
    })
    expect(refusals).toEqual(
      pages.map(() => ({
        failures: Array.from({ length: 4 }, () => ["TokenStoreRefused", true]),
        isNamed: true,
        isAsItWas: true,
      })),
    )
  })

  effect("that shows damage only in use says so [exit 2 token store later]", function* () {
    const path = yield* kept
    const database = openTokenDatabase(path)
    const used = Effect.gen(function* () {
      const store = yield* TokenStore
      // Also a later change counter: SQLite then reads the pages again.
      const damaged = readFileSync(path).map((byte, at) => (at >= 4_096 || at === 27 ? byte ^ 0x55 : byte))
      writeFileSync(path, damaged)
      return store._tag === "Open" ? yield* store.tokens : []
    })
    const layer = TokenStore.layerOver(database, { key: keyOne, service })
    const failure = yield* Effect.flip(Effect.provide(used, layer))
    database.close()
    expect(endingOf(failure)).toEqual({
      exit_code: 2,
      lines: [
        "nightjar: the token store is damaged: database disk image is malformed [token-store-damaged]",
        afterwards("token-store-damaged"),
      ],
    })
    const said = (errcode: number) => isDamage(Object.assign(new Error("x"), { errcode }))
    // SQLITE_CORRUPT_INDEX and SQLITE_NOTADB; SQLITE_IOERR_READ, SQLITE_FULL.
    expect([779, 26, 266, 13].map(said)).toEqual([true, true, false, false])
  })

  effect("that cannot be written says so of itself, and keeps what it had [token store full]", function* () {
    const path = yield* kept
    const database = openTokenDatabase(path)
    const used = Effect.gen(function* () {
      const store = yield* TokenStore
      const pages = Number(database.prepare("PRAGMA page_count").get()?.["page_count"])
      database.exec(`PRAGMA max_page_count = ${pages}`)
      if (store._tag === "Open") yield* keepToken(store, { token_id: "x".repeat(9_999), name: "another" })
    })
    const failure = yield* Effect.flip(
      Effect.provide(used, TokenStore.layerOver(database, { key: keyOne, service })),
    )
    database.close()
    expect(endingOf(failure)).toEqual({
      exit_code: 4,
      lines: [
        "nightjar: the token store cannot be used: tokens.sqlite cannot be read or written: " +
          "database or disk is full [token-store-unusable]",
        afterwards("token-store-unusable"),
      ],
    })
    expect(yield* within(path, (store) => store.tokens)).toEqual([open])
  })

  effect("is refused when another version wrote it, and when its header is not one", function* () {
    const after = Effect.fnUntraced(function* (sql: string) {
      const path = newFile()
      yield* within(path, (store) => store.tokens)
      changeFile(path, sql)
      return yield* refusal(within(path, (store) => store.tokens))
    })
    expect(yield* after("UPDATE header SET version = 2")).toEqual([
      "TokenStoreRefused",
      "the token store was written by another version of this program",
    ])
    for (const column of ["salt", "key_check"]) {
      // SQLite itself lets no such value in; a damaged file may hold one.
      const loose = `CREATE TABLE loose AS SELECT * FROM header; DROP TABLE header;
          ALTER TABLE loose RENAME TO header; UPDATE header SET ${column} = 'text'`
      expect(yield* after(loose)).toEqual(["TokenStoreRefused", "the header of the token store is damaged"])
    }
  })

  it("acknowledges nothing that a power cut could take back, and leaves no deleted bytes behind", () => {
    const database = openTokenDatabase(newFile())
    const pragma = (name: string) => Object.values(database.prepare(`PRAGMA ${name}`).get() ?? {})[0]
    // 3 is EXTRA: the folder of the rollback journal is synced too.
    expect([pragma("journal_mode"), pragma("synchronous"), pragma("secure_delete")]).toEqual(["delete", 3, 1])
    database.close()
  })

  effect("that cannot be opened, read or written for another reason is not called damaged", function* () {
    const nowhere = join(folder, "no such folder", "tokens.sqlite")
    const unopened = yield* refusal(within(nowhere, (store) => store.tokens))
    expect(unopened).toEqual(["LedgerFailed", "tokens.sqlite cannot be opened: unable to open database file"])
    const database = openTokenDatabase(":memory:")
    const layer = TokenStore.layerOver(database, { key: keyOne, service })
    const tokens = Effect.gen(function* () {
      const store = yield* TokenStore
      database.close()
      return store._tag === "Open" ? yield* store.tokens : []
    })
    expect(yield* refusal(Effect.provide(tokens, layer))).toEqual([
      "LedgerFailed",
      "tokens.sqlite cannot be read or written: database is not open",
    ])
  })

  effect("is closed once nobody needs it", function* () {
    const path = newFile()
    const isOpen = () =>
      readdirSync("/proc/self/fd").some((number) => {
        const link = join("/proc/self/fd", number)
        return existsSync(link) && readlinkSync(link) === path
      })
    expect(yield* within(path, () => Effect.sync(isOpen))).toBe(true)
    expect(isOpen()).toBe(false)
  })
})

describe("the entries", () => {
  effect("of another service are listed, but never used", function* () {
    const path = yield* kept
    const access = { customer_id: anId("c-1"), engine_reference: anId("bank") }
    const seen = yield* within(
      path,
      (store) => Effect.all([store.tokens, store.tokensOf(access), keyOf(store)]),
      { service: "https://elsewhere.example" },
    )
    expect([seen[0].length, seen[1], seen[2]]).toEqual([1, [], undefined])
  })

  effect("keep the account of their login, which those of an older store do not have", function* () {
    const path = yield* kept
    for (const table of ["tokens", "tickets"]) changeFile(path, `ALTER TABLE ${table} DROP COLUMN login`)
    const login = { account: "a", identity: ["ana"], password: "p", row: "r", written: "w" }
    const newer = { name: "newer", token_id: "t-2", login }
    const found = yield* within(path, (store) =>
      Effect.all([
        store.tokens,
        keepToken(store, newer),
        store.keepTicket({ ...ticket, login }, Redacted.make(ticketValue)),
        store.tokens,
        store.pendingTicket(anId("e-1")),
      ]),
    )
    expect([found[0], found[3], found[4]]).toEqual([
      [open],
      [open, { ...open, ...newer }],
      { ...ticket, login, service, tries: 0 },
    ])
    changeFile(path, "UPDATE tokens SET login = '{}', features = '{}'")
    expect((yield* listTokens(path)).map(({ login: of, features }) => [of, features])).toEqual([
      [undefined, []],
      [undefined, []],
    ])
  })

  effect("have no app, login or version of it where there is none", function* () {
    const path = newFile()
    const none = { app_id: undefined, locking_hash: undefined, fingerprint: undefined }
    yield* within(path, (store) =>
      Effect.andThen(
        keepToken(store, none),
        store.keepTicket({ ...ticket, fingerprint: undefined }, Redacted.make(ticketValue)),
      ),
    )
    const found = yield* within(path, (store) =>
      Effect.all([store.tokens, store.pendingTicket(anId("e-1")), store.ticketValue(anId("e-1"))]),
    )
    expect([found[0], found[1], found[2] && Redacted.value(found[2])]).toEqual([
      [{ ...open, ...none }],
      { ...ticket, fingerprint: undefined, service, tries: 0 },
      ticketValue,
    ])
  })

  effect("of a customer leave the file with their tickets, without a key and to the last byte", function* () {
    const path = newFile()
    const other = { customer_id: anId("c-2"), token_id: "t-2", name: "c-2/bank" }
    expect(yield* countTokensOf(path, anId("c-1"))).toBe(0)
    yield* forgetTokensOf(path, anId("c-1"))
    // Whoever asks about a store that is not there does not make one.
    expect(existsSync(path)).toBe(false)
    yield* within(path, (store) =>
      Effect.all([
        keepToken(store, { token_id: "of-the-removed" }),
        store.dropToken({ name: "c-1/bank", token_id: "of-the-removed" }, "LOCKED"),
        keepToken(store, other, "another"),
        keepTicket(store),
      ]),
    )
    const counted = Effect.forEach(["c-1", "c-2"], (customer) => countTokensOf(path, anId(customer)))
    expect(yield* counted).toEqual([2, 1])
    yield* forgetTokensOf(path, anId("c-1"))
    expect(yield* counted).toEqual([0, 1])
    expect((yield* listTokens(path)).map(({ name }) => name)).toEqual(["c-2/bank"])
    expect(["of-the-removed", "c-1"].filter((text) => readFileSync(path).includes(text))).toEqual([])
    writeFileSync(path, "no database")
    expect(yield* refusal(countTokensOf(path, anId("c-1")))).toEqual([
      "TokenStoreRefused",
      `${path}: file is not a database`,
    ])
  })

  effect("of tickets count their exchanges, and are removed when their token is stored", function* () {
    const path = newFile()
    yield* within(path, keepTicket)
    yield* within(path, (store) => store.noteTries(anId("e-1"), 1))
    const [pending, value] = yield* within(path, (store) =>
      Effect.all([store.pendingTicket(anId("e-1")), store.ticketValue(anId("e-1"))]),
    )
    expect(pending).toEqual({ ...ticket, service, tries: 1 })
    expect(value && Redacted.value(value)).toBe(ticketValue)
    yield* within(path, (store) => store.keepToken(token(), Redacted.make(token_key), "e-1"))
    expect(yield* within(path, (store) => store.pendingTicket(anId("e-1")))).toBeUndefined()
  })

  effect("of unused tickets are deleted after a week", function* () {
    const path = newFile()
    yield* within(path, keepTicket)
    yield* TestClock.adjust("7 days")
    yield* TestClock.adjust(ticket.issued_at)
    expect(yield* within(path, (store) => store.pendingTicket(anId("e-1")))).toEqual({
      ...ticket,
      service,
      tries: 0,
    })
    yield* TestClock.adjust("1 millis")
    expect(yield* within(path, (store) => store.pendingTicket(anId("e-1")))).toBeUndefined()
  })

  effect("that are dropped keep their reason and lose their key, unless in doubt", function* () {
    const path = yield* kept
    const dropped = (reason: string, keepKey: boolean) =>
      within(path, (store) =>
        Effect.all([
          store.dropToken(token(), reason, keepKey),
          Effect.map(store.tokens, ([one]) => [one?.dropped?.reason, one?.hasKey]),
          keyOf(store),
        ]),
      )
    expect(yield* dropped("TOKEN_UNKNOWN", true)).toEqual([true, ["TOKEN_UNKNOWN", true], token_key])
    expect(yield* dropped("TOKEN_UNKNOWN", true)).toEqual([false, ["TOKEN_UNKNOWN", true], token_key])
    expect(yield* dropped("LOCKED", false)).toEqual([true, ["LOCKED", false], undefined])
    expect(yield* dropped("TOKEN_UNKNOWN", true)).toEqual([false, ["LOCKED", false], undefined])
    expect(yield* dropped("REVOKED", false)).toEqual([true, ["REVOKED", false], undefined])
    const other = within(path, (store) => store.dropToken({ name: "c-1/bank", token_id: "t-0" }, "X"))
    expect(yield* other).toBe(false)
  })

  effect("[promise 15 replaced token] that a newer one replaces can still be revoked", function* () {
    const path = yield* kept
    const { exchanged_at, expires_at } = token()
    const shown = within(path, (store) =>
      Effect.map(store.tokens, (all) => all.map((one) => [one.name, one.token_id, one.dropped, one.hasKey])),
    )
    yield* within(path, (store) => keepToken(store, { token_id: "t-2", exchanged_at: exchanged_at + 1 }))
    const first = ["c-1/bank#t-1", "t-1", { reason: "REPLACED", at: exchanged_at + 1 }, false]
    expect(yield* shown).toEqual([["c-1/bank", "t-2", undefined, true], first])
    // What is revoked or expired left no credentials, and what arrives again replaces nothing.
    yield* within(path, (store) => store.dropToken({ name: "c-1/bank", token_id: "t-2" }, "REVOKED"))
    yield* within(path, (store) => keepToken(store, { token_id: "t-3" }))
    yield* within(path, (store) => keepToken(store, { token_id: "t-3" }))
    yield* within(path, (store) => keepToken(store, { token_id: "t-4", exchanged_at: expires_at }))
    expect(yield* shown).toEqual([["c-1/bank", "t-4", undefined, true], first])
  })

  it("are encrypted under a different salt in every store, so that one key opens no other store's file [promise 12 salt]", () => {
    const salts = [newFile(), newFile(), newFile()].map((path) => {
      Effect.runSync(Effect.scoped(within(path, () => Effect.void)))
      const database = new DatabaseSync(path, { readOnly: true })
      const { salt } = database.prepare("SELECT salt FROM header").get() ?? {}
      database.close()
      return Buffer.from(salt instanceof Uint8Array ? salt : []).toString("hex")
    })
    expect(salts.map((salt) => /^[0-9a-f]{64}$/.test(salt) && !/^0+$/.test(salt))).toEqual([true, true, true])
    expect(new Set(salts).size).toBe(3)
    const [one, other] = salts.map((salt) => deriveKey(Buffer.alloc(32, 1), Buffer.from(salt, "hex")))
    const sealed = one?.seal(Redacted.make(token_key), "place") ?? new Uint8Array()
    expect([one?.open(sealed, "place") !== undefined, other?.open(sealed, "place")]).toEqual([
      true,
      undefined,
    ])
  })

  effect("are secrets once the store is open, and as soon as they arrive [promise 12 tickets]", function* () {
    const letters = Redacted.make(Buffer.alloc(32, 9).toString("base64url"))
    // Whatever they look like: what is letters alone may be somebody's password, but these are nobody's.
    for (const [ofToken, ofTicket, key] of [
      [token_key, ticketValue, keyOne],
      ["wholly-letters", "letters-alone", letters],
    ] as const) {
      const path = newFile()
      const keep = (store: OpenTokenStore) =>
        Effect.andThen(
          store.keepToken(token(), Redacted.make(ofToken), undefined),
          store.keepTicket(ticket, Redacted.make(ofTicket)),
        )
      yield* within(path, keep, { key })
      const known = makeKnownSecrets()
      yield* within(path, () => Effect.void, { key }).pipe(Effect.provideService(KnownSecrets, known))
      const text = [ofToken, ofTicket, Redacted.value(key)].join(" ")
      expect(known.clean(text, "own")).toBe("[blanked] [blanked] [blanked]")
    }
  })
})
