/** What tickets and tokens become, how they are refused, and what a start with one does (2.6, 3.1 to 3.3, 4.6, 4.7, 4.12). */
import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { Sandbox } from "../../../src/sandbox/server/Sandbox.ts"
import { field, fieldsOf, itemsOf, ofTheServiceAt, pick, shows, stateOf } from "../server/Caller.ts"
import { textField, tokenFor, truth, usualStart, conflictWith } from "../server/Caller.ts"

const midnight = Date.UTC(2026, 10, 21)
const atNight = ofTheServiceAt(midnight)
const nobodys = `t10n-${"0".repeat(32)}`
const attended = { tokenized_access: true, customer_interaction_available: true }

/** As `tokenFor`, and waits for the run to close. */
const restingToken = (words = "ok", more: Readonly<Record<string, unknown>> = {}) =>
  Effect.tap(tokenFor(words, more), () => TestClock.adjust(60_000))
const named = (external_execution_id: string) => ({ external_execution_id })
const statusesOf = (answers: ReadonlyArray<{ readonly status: number }>) =>
  answers.map(({ status }) => status)
const rejected = (reason: string) => [true, "CONFIGURATION_ERROR", reason, "not-performed"]
const closedWith = (state: unknown) =>
  pick(state, "is_closed", "status_code", "status_reason", "authentication_status")

const exchangeTags =
  "[exchangeTicket 200] [startExecution 202] [move 1] [token-move 1] [ticket-rule 3] [event-rule 1] " +
  `${fieldsOf("acceptance", "ticket")} ${fieldsOf("base", "tokenized_access")} ` +
  `${fieldsOf("token", "token_id token_key")} ${fieldsOf("exchange", "execution_id ticket")} ` +
  `${fieldsOf("exchanged", "token context")} ` +
  fieldsOf("token-context", "engine_reference app_id customer_id features locking_hash")

atNight("tickets and tokens", (it) => {
  it(`a ticket is exchanged once, from AUTH_OK on ${exchangeTags}`, function* (caller) {
    const features = ["cards_read", "cloud_resource_read", "accounts_read"]
    const started = yield* caller.startTicketed("queue-1+run-10", { features })
    const ids = { execution_id: expect.any(String), session_id: expect.any(String) }
    const state = { status_code: "ONGOING", status_reason: "ACCEPTED" }
    const ticket = expect.stringMatching(/^[0-9a-f]{64}$/)
    shows(started, { json: { ...usualStart, ...ids, ...state, ticket } })
    const execution_id = textField(started, "execution_id")
    const exchange = caller.exchange(execution_id, textField(started, "ticket"))
    yield* TestClock.adjust(1_999)
    const early = yield* exchange
    yield* TestClock.adjust(1)
    const exchanged = yield* exchange
    const again = yield* exchange
    const read = yield* caller.read(execution_id)
    expect(statusesOf([early, exchanged, again])).toEqual([403, 200, 403])
    expect(exchanged.json).toEqual({
      token: {
        token_id: expect.stringMatching(/^t10n-[0-9a-f]{32}$/),
        token_key: expect.stringMatching(/^[A-Za-z0-9_-]{43}$/),
      },
      context: {
        engine_reference: "sandbox-bank:website",
        app_id: "65f0c0ffee00000000000001",
        customer_id: "c-1",
        features: ["cards_read", "accounts_read"],
        locking_hash: field(read, "locking_hash"),
      },
    })
    shows(read, { authentication_status: "AUTH_OK" })
    const token_key = textField(exchanged, "token", "token_key")
    const shown = [again, read, yield* caller.token(textField(exchanged, "token", "token_id"))]
    for (const { text } of shown) expect(text).not.toContain(token_key)
  })

  it("every failed exchange answers the same, byte for byte [exchangeTicket 403] [error 12] [auth-rule 3] [auth-rule 4]", function* (caller) {
    const given = Effect.fnUntraced(function* (words: string, customer_id: string) {
      const started = yield* caller.startTicketed(words, { customer_id })
      return [textField(started, "execution_id"), textField(started, "ticket")] as const
    })
    const plain = yield* caller.begin("queue-1+run-10", { customer_id: "c-plain" })
    const spent = yield* given("queue-1+run-10", "c-spent")
    const late = yield* given("queue-1+run-10", "c-late")
    const early = yield* given("queue-60+run-10000", "c-early")
    const refused = yield* given("queue-1+run-1+end-BLOCKED_USER", "c-refused")
    const removed = yield* given("queue-1+run-10", "c-removed")
    yield* TestClock.adjust(11_000)
    yield* caller.remove(removed[0])
    expect((yield* caller.exchange(...spent)).status).toBe(200)
    const faults = [
      ["unknown", caller.exchange("nobody", spent[1])],
      ["unknown", caller.exchange("", "")],
      ["unknown", caller.exchange(plain, spent[1])],
      ["wrong_ticket", caller.exchange(late[0], spent[1])],
      ["wrong_ticket", caller.exchange(late[0], `${late[1].slice(1)}0`)],
      ["wrong_ticket", caller.exchange(late[0], late[1].toUpperCase())],
      ["spent", caller.exchange(...spent)],
      ["foreign", caller.exchange(...late, "sandbox-app-3")],
      ["not_enabled", caller.exchange(...late, "sandbox-app-2")],
      ["login_not_accepted", caller.exchange(...early)],
      ["login_not_accepted", caller.exchange(...refused)],
      ["deleted", caller.exchange(...removed)],
      ["expired", Effect.andThen(TestClock.adjust("31 minutes"), caller.exchange(...late))],
    ] as const
    const answers = yield* Effect.all(faults.map(([, call]) => call))
    expect(
      new Set(answers.map(({ status, text, contentType }) => `${status} ${contentType} ${text}`)),
    ).toEqual(new Set(['403 application/json {"detail":"the ticket cannot be exchanged"}']))
    const seen = (yield* truth).refusedExchanges.map(({ fault }) => fault)
    expect(seen).toEqual(faults.map(([fault]) => fault))
  })

  it("a ticket lasts half an hour from the accepted login, its token ninety days, however it is used, and nothing is kept of what is over [token-move 4] [ticket-rule 1] [limit 7]", function* (caller) {
    const given = Effect.fnUntraced(function* (customer_id: string, words = "queue-1+run-10") {
      const started = yield* caller.startTicketed(words, { customer_id })
      return [textField(started, "execution_id"), textField(started, "ticket")] as const
    })
    const [good, late] = [yield* given("c-1"), yield* given("c-2")]
    const refused = yield* given("c-3", "queue-1+run-10+end-BLOCKED_USER")
    const { state } = (yield* Sandbox).core
    const kept = () => [good, late, refused].map(([id]) => state.tokens.tickets.get(id))
    yield* TestClock.adjust(2_000 + 30 * 60_000 - 1)
    const exchanged = yield* caller.exchange(...good)
    yield* caller.remove(good[0])
    expect(kept()).toMatchObject([
      { gone: "spent" },
      { verifier: expect.anything() },
      { gone: "login_not_accepted" },
    ])
    yield* TestClock.adjust(1)
    expect(statusesOf([exchanged, yield* caller.exchange(...late)])).toEqual([200, 403])
    const token = field(exchanged, "token")
    const status = Effect.map(caller.token(textField(token, "token_id")), (one) => field(one, "status"))
    yield* TestClock.adjust("45 days")
    expect((yield* caller.startTokenized(token)).status).toBe(202)
    expect(kept()[1]).toEqual({ gone: "expired" })
    yield* TestClock.adjust(45 * 24 * 3_600_000 - 2)
    expect(yield* status).toBe("active")
    yield* TestClock.adjust(1)
    expect(yield* status).toBe("expired")
    const run = textField(yield* caller.startTokenized(token), "execution_id")
    expect(closedWith(yield* caller.read(run))).toEqual(rejected("T10N_REJECTED"))
    expect((yield* truth).tokens).toMatchObject([{ holds_credentials: false }])
  })

  it(`a body that is no exchange spends nothing [exchangeTicket 422] ${fieldsOf("exchange", "execution_id ticket")}`, function* (caller) {
    const started = yield* caller.startTicketed("queue-0+run-0")
    const execution_id = textField(started, "execution_id")
    const bodies = [{ execution_id }, { execution_id, ticket: 7 }, { ticket: started.json }, []]
    const url = `${caller.base_url}/executions/t10n`
    const answers = yield* Effect.forEach(bodies, (body) => caller.call("PUT", url, { body }))
    expect(answers.map((answer) => [answer.status, ...pick(answer, "detail.0.loc")])).toEqual([
      [422, ["body", "ticket"]],
      [422, ["body", "ticket"]],
      [422, ["body", "execution_id"]],
      [422, ["body"]],
    ])
    expect((yield* caller.exchange(execution_id, textField(started, "ticket"))).status).toBe(200)
  })

  it("a token shows its state to its own application only [readToken 200] [readToken 404] [readToken 422]", function* (caller) {
    const { token_id, exchanged } = yield* tokenFor("ok")
    const active = {
      token_id,
      status: "active",
      context: field(exchanged, "context"),
      date_created: "2026-11-21T00:00:02.000Z",
      date_expires: "2027-02-19T00:00:02.000Z",
    }
    shows(yield* caller.token(token_id), { status: 200, json: active })
    const unknown = yield* caller.token(nobodys)
    shows(unknown, { status: 404, json: { detail: "no such token" } })
    shows(yield* caller.token(token_id, "sandbox-app-3"), { status: 404, text: unknown.text })
    const item = { loc: ["path", "token_id"], msg: "not a token id", type: "value_error.token_id" }
    shows(yield* caller.token("t10n-not-one"), { status: 422, json: { detail: [item] } })
    yield* TestClock.adjust(5_000)
    yield* caller.revoke(token_id)
    const revoked = { ...active, status: "revoked", date_revoked: "2026-11-21T00:00:07.000Z" }
    shows(yield* caller.token(token_id), { json: revoked })
  })

  it("a token is revoked once, for good, by its own application, and its runs are untouched [revokeToken 204] [revokeToken 304] [revokeToken 404] [revokeToken 422] [token-move 2] [token-move 3] [auth-rule 4] [error 13] [error 14]", function* (caller) {
    const { token, token_id, execution_id } = yield* restingToken()
    const run = textField(yield* caller.startTokenized(token), "execution_id")
    yield* TestClock.adjust(3_000)
    const foreign = yield* caller.revoke(token_id, "sandbox-app-3")
    const incapable = yield* caller.revoke(token_id, "sandbox-app-2")
    const unknown = yield* caller.revoke(nobodys)
    expect([foreign.status, foreign.text, incapable.text]).toEqual([404, unknown.text, unknown.text])
    expect((yield* caller.revoke("t10n-")).status).toBe(422)
    expect((yield* truth).tokens).toMatchObject([{ holds_credentials: true }])
    shows(yield* caller.revoke(token_id), { status: 204, text: "" })
    shows(yield* caller.revoke(token_id), { status: 304, text: "" })
    const gone = { holds_credentials: false, revoked_at: midnight + 65_000 }
    expect((yield* truth).tokens).toMatchObject([gone])
    yield* TestClock.adjust(60_000)
    for (const id of [execution_id, run]) {
      const state = yield* caller.read(id)
      shows(state, { status_reason: "COMPLETED", authentication_status: "AUTH_OK" })
      expect((yield* caller.results(textField(state, "session_id"))).status).toBe(200)
    }
    yield* TestClock.adjust("1 day")
    expect((yield* caller.revoke(token_id)).status).toBe(304)
    shows((yield* caller.token(token_id)).json, { status: "revoked" })
  })
})

atNight("a start with a token", (it) => {
  it("is like the one with the parameters behind it [startTokenized 202]", function* (caller) {
    const { token, token_id, execution_id } = yield* restingToken("records-7+attach-2+partial")
    const accepted = yield* caller.startTokenized(token, named("x-1"))
    const ids = { execution_id: expect.any(String), session_id: expect.any(String) }
    const state = { ...named("x-1"), status_code: "ONGOING", status_reason: "ACCEPTED" }
    shows(accepted, { status: 202, json: { ...usualStart, ...ids, ...state } })
    yield* TestClock.adjust(60_000)
    const bare = (read: unknown) =>
      pick(read, "status_reason", "products_count", "locking_hash", "features", "total_elapsed_time")
    const tokenized = yield* caller.read(textField(accepted, "execution_id"))
    expect(bare(tokenized)).toEqual(bare(yield* caller.read(execution_id)))
    shows(tokenized, { status_reason: "PARTIAL" })
    const seen = yield* truth
    expect(new Set(seen.executions.map(({ login_key }) => login_key)).size).toBe(1)
    expect(seen.executions.map((execution) => execution.token_id)).toEqual([undefined, token_id])
    expect(seen.starts.map((start) => start.token_id)).toEqual([undefined, token_id])
    expect(seen.tokens).toEqual([
      {
        token_id,
        application: "65f0c0ffee00000000000001",
        customer_id: "c-1",
        engine_reference: "sandbox-bank:website",
        features: ["accounts_read", "cards_read", "customer_information_read"],
        execution_id,
        exchanged_at: midnight + 2_000,
        expires_at: midnight + 2_000 + 90 * 24 * 3_600_000,
        holds_credentials: true,
        runs: [field(accepted, "execution_id")],
        conflicts: 0,
      },
    ])
  })

  it("runs the token's own features or fewer, never more, nor for another engine or customer [startTokenized 422] [token-rule 1]", function* (caller) {
    const { token } = yield* restingToken("ok", { features: ["cards_read", "accounts_read"] })
    const asked = Effect.fnUntraced(function* (features?: ReadonlyArray<unknown>) {
      const started = yield* caller.startTokenized(token, features === undefined ? {} : { features })
      const state = yield* caller.read(textField(started, "execution_id"))
      yield* TestClock.adjust(60_000)
      return [started.status, itemsOf(state, "features").map((one) => field(one, "code"))]
    })
    expect([
      yield* asked(),
      yield* asked(["accounts_read"]),
      yield* asked([{ code: "cards_read" }, "cloud_resource_read"]),
    ]).toEqual([
      [202, ["cards_read", "accounts_read"]],
      [202, ["accounts_read"]],
      [202, ["cards_read"]],
    ])
    const own = "value_error.token_context"
    const elsewhere = { engine_reference: "sandbox-tax:website", customer_id: "c-2" }
    const { token_id } = Object(token)
    for (const [pair, more, ...items] of [
      [token, { features: ["cards_read", { code: "customer_information_read" }] }, ["features.1", own]],
      [
        token,
        { ...elsewhere, features: ["customer_information_read"] },
        ["engine_reference", own],
        ["customer_id", own],
        ["features.0", own],
      ],
      [{ token_id: "abc", token_key: "x" }, {}, ["token.token_id", expect.any(String)]],
      [{ token_id }, {}, ["token.token_key", expect.any(String)]],
      [
        token,
        { base_configurations: { execution_timeout: 59 } },
        ["base_configurations.execution_timeout", expect.any(String)],
      ],
    ] as const) {
      const refused = yield* caller.startTokenized(pair, more)
      const seen = itemsOf(refused, "detail").map((item) => [
        itemsOf(item, "loc").slice(1).join("."),
        field(item, "type"),
      ])
      expect([refused.status, seen]).toEqual([422, items])
    }
    expect((yield* truth).executions.length).toBe(4)
  })

  it("runs once at a time, and conflicts as any start does [startTokenized 409] [limit 6]", function* (caller) {
    const { token } = yield* restingToken()
    const elsewhere = { customer_id: "c-2", engine_reference: "sandbox-tax:website" }
    const other = yield* restingToken("ok", elsewhere)
    const first = yield* caller.startTokenized(token, named("x-1"))
    const sameToken = yield* caller.startTokenized(token, named("x-2"))
    const sameAccess = yield* caller.start("queue-1+run-10")
    const otherToken = yield* caller.startTokenized(other.token, elsewhere)
    const byParameters = yield* caller.start("queue-1+run-10", named("x-3"))
    expect(statusesOf([first, sameToken, sameAccess, otherToken, byParameters])).toEqual([
      202, 409, 409, 202, 202,
    ])
    shows(sameToken, { json: conflictWith(first, "x-1") })
    yield* caller.abort(textField(first, "execution_id"))
    const sameName = yield* caller.startTokenized(token, named("x-3"))
    shows(sameName, { status: 409, execution_id: field(byParameters, "execution_id") })
    shows(yield* caller.startTokenized(token, named("x-4")), { status: 202 })
    const counts = (yield* truth).tokens.map(({ conflicts, runs }) => [conflicts, runs.length])
    expect(counts).toEqual([
      [2, 2],
      [0, 1],
    ])
  })

  it("finds no token of another application; without the capability nothing is asked of it [startTokenized 404] [startTokenized 400] [auth-rule 3] [auth-rule 4]", function* (caller) {
    const { token } = yield* restingToken()
    const foreign = yield* caller.startTokenized(token, {}, "sandbox-app-3")
    shows(foreign, { status: 404, json: { detail: "no such token" } })
    const unknown = yield* caller.startTokenized({ ...Object(token), token_id: nobodys })
    shows(unknown, { status: 404, text: foreign.text })
    const state = { status_code: "CONFIGURATION_ERROR", status_reason: "T10N_FORBIDDEN" }
    shows(yield* caller.startTokenized(token, {}, "sandbox-app-2"), {
      status: 400,
      json: { ...usualStart, ...state, app_id: "65f0c0ffee00000000000002" },
    })
    const outcomes = (yield* truth).starts.map(({ outcome }) => outcome)
    expect(outcomes).toEqual(["accepted", "unknown_token", "unknown_token", "t10n_forbidden"])
  })

  it("is checked by its engine like any other [startTokenized 400] [startTokenized 503]", function* (caller) {
    const always = { customer_id: "c-2", engine_reference: "sandbox-always:website" }
    const { token: alone } = yield* restingToken("ok", { ...always, base_configurations: attended })
    shows(yield* caller.startTokenized(alone, always), {
      status: 400,
      status_reason: "CUSTOMER_INTERVENTION_REQUIRED",
      execution_id: undefined,
    })
    const windowed = { customer_id: "c-3", engine_reference: "sandbox-window:website" }
    const { token } = yield* restingToken("ok", windowed)
    yield* TestClock.setTime(midnight + 55 * 60_000)
    expect((yield* caller.startTokenized(token, windowed)).status).toBe(503)
    yield* TestClock.setTime(midnight + 61 * 60_000)
    expect((yield* caller.startTokenized(token, windowed)).status).toBe(202)
  })

  it("is accepted and closes at once where the token opens nothing: wrong key, revoked, stored badly [reason T10N_REJECTED] [reason T10N_EXCEPTION]", function* (caller) {
    const good = yield* restingToken()
    const bad = yield* restingToken("t10n-exception", { customer_id: "c-2" })
    const gone = yield* restingToken("ok", { customer_id: "c-3" })
    yield* caller.revoke(gone.token_id)
    const end = Effect.fnUntraced(function* (customer_id: string, token: unknown) {
      const started = yield* caller.startTokenized(token, { customer_id })
      expect([started.status, field(started, "status_reason")]).toEqual([202, "ACCEPTED"])
      return closedWith(yield* caller.read(textField(started, "execution_id")))
    })
    const wrongKey = { token_id: good.token_id, token_key: textField(bad.token, "token_key") }
    expect([
      yield* end("c-1", wrongKey),
      yield* end("c-1", { ...wrongKey, token_key: "" }),
      yield* end("c-2", bad.token),
      yield* end("c-3", gone.token),
    ]).toEqual(["REJECTED", "REJECTED", "EXCEPTION", "REJECTED"].map((why) => rejected(`T10N_${why}`)))
    expect((yield* end("c-1", good.token))[0]).toBe(false)
  })

  it("at an engine without tokenization closes if it asks for a ticket [reason T10N_NOT_AVAILABLE]", function* (caller) {
    const parameters = { nif: "00000000T", support_number: "ABC123456", alias: "queue-1+run-1" }
    const traffic = { engine_reference: "es-traffic:website", parameters }
    const started = yield* caller.startTicketed("", traffic)
    const state = yield* caller.read(textField(started, "execution_id"))
    shows(started, { status: 202, ticket: undefined })
    expect(closedWith(state)).toEqual(rejected("T10N_NOT_AVAILABLE"))
    shows(state, { "configurations_errors.0.loc": ["base_configurations", "tokenized_access"] })
    shows(yield* caller.read(yield* caller.begin("", traffic)), { is_closed: false })
  })

  it("a ticket is only asked for by who may, and anybody may decline it [startExecution 400] [error 2] [auth-rule 3] [reason T10N_FORBIDDEN] [ticket-rule 2] [field base.tokenized_access]", function* (caller) {
    const declining = { customer_id: "c-2", base_configurations: { tokenized_access: false } }
    const answers = [
      yield* caller.startTicketed("ok", {}, "sandbox-app-2"),
      yield* caller.startTicketed("ok", {}, "sandbox-app-3"),
      yield* caller.start("ok"),
      yield* caller.start("ok", declining),
      yield* caller.start("ok", declining, "sandbox-app-2"),
    ]
    expect(
      answers.map((one) => [one.status, field(one, "status_reason"), typeof field(one, "ticket")]),
    ).toEqual([
      [400, "T10N_FORBIDDEN", "undefined"],
      [202, "ACCEPTED", "string"],
      [202, "ACCEPTED", "undefined"],
      [202, "ACCEPTED", "undefined"],
      [202, "ACCEPTED", "undefined"],
    ])
  })

  for (const reason of ["BLOCKED_USER", "UNHANDLED_AUTH_ERROR"])
    it(`whose login ends with ${reason} locks the token [move 9]`, function* (caller) {
      const { token, token_id } = yield* restingToken(`turn-1-${reason}`)
      yield* caller.startTokenized(token)
      const status = Effect.map(caller.token(token_id), (one) => pick(one, "status", "date_locked"))
      yield* TestClock.adjust(10_999)
      expect(yield* status).toEqual(["active", undefined])
      yield* TestClock.adjust(1)
      expect(yield* status).toEqual(["locked", "2026-11-21T00:01:13.000Z"])
      const next = textField(yield* caller.startTokenized(token), "execution_id")
      expect(closedWith(yield* caller.read(next))).toEqual(rejected("T10N_REJECTED"))
      const { tokens, ruleBreaks } = yield* truth
      expect(tokens).toMatchObject([{ locks_at: midnight + 73_000, holds_credentials: true }])
      expect(ruleBreaks.map(({ rule }) => rule)).toEqual(["rejected_login_repeated"])
      expect((yield* caller.revoke(token_id)).status).toBe(204)
    })

  it("that ends because of a missing person does not lock its token", function* (caller) {
    const more = { base_configurations: attended, customer_id: "c-2" }
    const started = yield* caller.startTicketed("queue-0+run-10+challenge-1", more)
    const execution_id = textField(started, "execution_id")
    yield* TestClock.adjust(5_000)
    yield* caller.resume(execution_id, { code: "1" })
    yield* TestClock.adjust(60_000)
    const exchanged = yield* caller.exchange(execution_id, textField(started, "ticket"))
    const alone = yield* caller.startTokenized(field(exchanged, "token"), { customer_id: "c-2" })
    yield* TestClock.adjust(60_000)
    const state = yield* caller.read(textField(alone, "execution_id"))
    expect(stateOf(state)).toEqual(["ABORTED", "CUSTOMER_INTERVENTION_REQUIRED"])
    shows((yield* caller.token(textField(exchanged, "token", "token_id"))).json, { status: "active" })
  })

  it("gives no ticket, and is not affected by another's deletion", function* (caller) {
    const { token, execution_id, token_id } = yield* tokenFor("ok")
    yield* TestClock.adjust(60_000)
    yield* caller.remove(execution_id)
    const base_configurations = { tokenized_access: true }
    shows(yield* caller.startTokenized(token, { base_configurations }), { status: 202, ticket: undefined })
    shows((yield* caller.token(token_id)).json, { status: "active" })
  })
})
