/** What is kept of tickets and tokens: enough for a restarted service to honour them, and nothing that opens them (2.6). */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { isVerified, openSealed, sealText, verifierOf } from "../../../src/sandbox/state/TokenState.ts"
import type { Seal } from "../../../src/sandbox/state/TokenState.ts"
import { Caller, field, inProcess, sealed, shows, textField, tokenFor, toldAt } from "../server/Caller.ts"
import { truth } from "../server/Caller.ts"
import { folder } from "../../harness/Folder.ts"
import { effect } from "../../harness/Steps.ts"

/** A text as it may stand in a file: raw, escaped, in hex, and in base64 from each of the three places. */
const formsOf = (secret: string): ReadonlyArray<string> => {
  const bytes = Buffer.from(secret)
  const base64 = [0, 1, 2].flatMap((shift) => {
    const shifted = Buffer.concat([Buffer.alloc(shift), bytes]).toString("base64")
    // The first and last groups of four also hold bits of the neighbours.
    const inner = shifted.replaceAll("=", "").slice(shift === 0 ? 0 : 4, -3)
    return [inner, inner.replaceAll("+", "-").replaceAll("/", "_")]
  })
  const hex = bytes.toString("hex")
  const escaped = [JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret)]
  return [secret, ...escaped, hex, hex.toUpperCase(), ...base64]
}
const found = (text: string, secrets: ReadonlyArray<string>): ReadonlyArray<string> =>
  secrets.filter((secret) => formsOf(secret).some((form) => text.includes(form)))

const words = "queue-1+run-10+canary-user-7f3a"
const login = { username: words, password: "canary-pass-92c1" }

describe("the journal", () => {
  it("search finds a secret in each of its forms", () => {
    const secret = "canary-pass-92c1"
    const bytes = Buffer.from(`x${secret}y`)
    const places = [secret, bytes.toString("hex"), bytes.toString("base64"), bytes.toString("base64url")]
    for (const place of places) expect(found(`{"a":"${place}"}`, [secret])).toEqual([secret])
    expect(found('{"a":"canary-pass"}', [secret])).toEqual([])
  })

  effect("contains no ticket, token_key or login, in any form [auth-rule 5] [token-rule 2]", function* () {
    const journal = join(yield* folder, "journal.ndjson")
    yield* Effect.gen(function* () {
      const caller = yield* Caller
      const { ticket, token, token_id } = yield* tokenFor("", { parameters: login })
      const token_key = textField(token, "token_key")
      yield* TestClock.adjust("1 minute")
      yield* caller.startTokenized(token)
      yield* caller.startTokenized({ token_id, token_key: "canary-wrong-key" })
      yield* caller.exchange(token_key, ticket)
      yield* caller.exchange("canary-id", "canary-ticket")
      yield* caller.revoke(token_id)
      const text = readFileSync(journal, "utf8")
      const secrets = [ticket, token_key, login.username, login.password, "canary"]
      expect(found(text, secrets)).toEqual([])
      const tags = text.match(/(?<="_tag":")(Started|StartRefused|(Ticket|Token|Exchange)[A-Za-z]+)/g)
      expect(tags?.join(" ")).toBe(
        "Started TicketIssued TicketExchanged Started StartRefused ExchangeRefused ExchangeRefused TokenRevoked",
      )
      expect(found(text, [token_id])).toEqual([token_id])
      expect(found(JSON.stringify(yield* truth), secrets)).toEqual([])
    }).pipe(Effect.provide(inProcess({ seed: 7, journal })))
  })

  effect("lets a restarted service honour tickets and tokens, whatever its seed", function* () {
    const journal = join(yield* folder, "journal.ndjson")
    const life = <A>(seed: number, body: Effect.Effect<A, never, Caller>) =>
      body.pipe(Effect.provide(inProcess({ seed, journal })))
    const start = Effect.flatMap(Caller, (caller) =>
      caller.startTicketed("", { parameters: login, features: ["cards_read"] }),
    )
    const started = yield* life(7, start)
    const execution_id = textField(started, "execution_id")
    const exchange = Effect.flatMap(Caller, (caller) =>
      caller.exchange(execution_id, textField(started, "ticket")),
    )
    expect((yield* life(7, exchange)).status).toBe(403)
    yield* TestClock.adjust("1 minute")
    const exchanged = yield* life(8, exchange)
    expect([exchanged.status, (yield* life(7, exchange)).status]).toEqual([200, 403])

    const again = Effect.gen(function* () {
      const caller = yield* Caller
      const accepted = yield* caller.startTokenized(field(exchanged, "token"))
      const running = yield* caller.startTokenized(field(exchanged, "token"))
      const status = field(yield* caller.token(textField(exchanged, "token", "token_id")), "status")
      const state = yield* caller.read(textField(accepted, "execution_id"))
      return [accepted.status, running.status, status, field(state, "features", 0, "code")]
    })
    expect(yield* life(9, again)).toEqual([202, 409, "active", "cards_read"])
    const revoke = Effect.flatMap(Caller, (caller) =>
      caller.revoke(textField(exchanged, "token", "token_id")),
    )
    expect([(yield* life(7, revoke)).status, (yield* life(7, revoke)).status]).toEqual([204, 304])
    yield* TestClock.adjust("1 minute")
    expect(yield* life(7, again)).toEqual([202, 202, "revoked", "cards_read"])
  })
})

describe("an encrypted login", () => {
  toldAt(0, "is stored as it came, and decrypted for each run of its token", function* () {
    const forms = [
      { username: sealed(words), password: "correct" },
      sealed(JSON.stringify({ username: words, password: "correct" })),
    ]
    const caller = yield* Caller
    for (const [number, parameters] of forms.entries()) {
      const customer_id = `c-${number}`
      const { execution_id, token } = yield* tokenFor("", { parameters, customer_id })
      yield* TestClock.adjust("1 minute")
      const id = textField(yield* caller.startTokenized(token, { customer_id }), "execution_id")
      yield* TestClock.adjust(11_000)
      const { json } = yield* caller.read(execution_id)
      shows(yield* caller.read(id), { status_reason: "COMPLETED", locking_hash: field(json, "locking_hash") })
    }
    expect(new Set((yield* truth).executions.map(({ login_key }) => login_key)).size).toBe(1)
  })
})

describe("a seal", () => {
  const seal: Seal = { secret: "half.half", purpose: "token", context: "bound to this" }
  const text = JSON.stringify(login)

  it("[token-rule 2] opens for its secret, purpose and context only, and not once it is damaged", () => {
    const box = sealText(seal, text)
    const opened = [
      openSealed(seal, box),
      openSealed({ ...seal, secret: "half.other" }, box),
      openSealed({ ...seal, purpose: "ticket" }, box),
      openSealed({ ...seal, context: "bound to that" }, box),
      openSealed(seal, `${box.slice(0, -3)}${box.at(-3) === "A" ? "B" : "A"}${box.slice(-2)}`),
      openSealed(seal, box.slice(0, 12)),
      openSealed(seal, box.slice(1)),
    ]
    expect(opened).toEqual([text, ...Array.from({ length: 6 }, () => undefined)])
    expect(found(box, Object.values(login))).toEqual([])
  })

  it("holds an empty login and one of any length and alphabet", () => {
    for (const login_ of ["", "{}", "ñ𝒳\u0000".repeat(20_000)]) {
      const long: Seal = { ...seal, context: login_ }
      expect(openSealed(long, sealText(long, login_))).toBe(login_)
    }
  })

  it("[token-rule 2] verifies a key without holding it, apart for each token", () => {
    const verifier = verifierOf("token_key", "key", "t10n-1")
    expect([
      isVerified(verifier, verifierOf("token_key", "key", "t10n-1")),
      isVerified(verifier, verifierOf("token_key", "kez", "t10n-1")),
      isVerified(verifier, verifierOf("token_key", "key", "t10n-2")),
      isVerified(verifier, verifierOf("ticket", "key", "t10n-1")),
      isVerified(verifier, ""),
    ]).toEqual([true, false, false, false, false])
  })
})
