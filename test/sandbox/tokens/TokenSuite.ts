/**
 * What tickets become and how they are refused (sections 2.6, 3.3, 4.6, 4.7 and 4.12), told once and run
 * against every way to reach the service.
 */
import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { Caller, field, textField, shows, truth, usualStart, type Told } from "../server/Caller.ts"

export const midnight = Date.UTC(2026, 10, 21)
const day = 24 * 3_600_000

/** Starts, waits for the login to be accepted (two seconds) and exchanges the ticket. */
export const tokenFor = Effect.fnUntraced(function* (
  words: string,
  more: Readonly<Record<string, unknown>> = {},
  secret = "sandbox-app-1",
) {
  const caller = yield* Caller
  const started = yield* caller.startTicketed(`queue-1+run-10+${words}`, more, secret)
  yield* TestClock.adjust(2_000)
  const execution_id = textField(started, "execution_id")
  const ticket = textField(started, "ticket")
  const exchanged = yield* caller.exchange(execution_id, ticket, secret)
  expect(exchanged.status).toBe(200)
  const token_id = textField(exchanged, "token", "token_id")
  return { started, exchanged, execution_id, ticket, token: field(exchanged, "token"), token_id }
})

/** As `tokenFor`, and waits for the run to close. */
export const restingToken = (words = "ok", more: Readonly<Record<string, unknown>> = {}) =>
  Effect.tap(tokenFor(words, more), () => TestClock.adjust(60_000))

export const tokenSuite = (told: Told) => {
  told(
    "a ticket is exchanged once for a token and its context, from AUTH_OK on [exchangeTicket 200] " +
      "[startExecution 202] [token-move 1] [event-rule 1] [field acceptance.ticket] [field token.token_id] " +
      "[field token.token_key] [field token-context.engine_reference] [field token-context.app_id] " +
      "[field token-context.customer_id] [field token-context.features] [field token-context.locking_hash] " +
      "[field exchange.execution_id] [field exchange.ticket] [field exchanged.token] " +
      "[field exchanged.context] [field base.tokenized_access] [move 1] [ticket-rule 3]",
    function* (caller) {
      const started = yield* caller.startTicketed("queue-1+run-10", {
        features: ["cards_read", "cloud_resource_read", "accounts_read"],
      })
      shows(started, {
        json: {
          ...usualStart,
          execution_id: expect.any(String),
          session_id: expect.any(String),
          status_code: "ONGOING",
          status_reason: "ACCEPTED",
          ticket: expect.stringMatching(/^[0-9a-f]{64}$/),
        },
      })
      const execution_id = textField(started, "execution_id")
      const exchange = caller.exchange(execution_id, textField(started, "ticket"))
      yield* TestClock.adjust(1_999)
      const early = yield* exchange
      yield* TestClock.adjust(1)
      const exchanged = yield* exchange
      const again = yield* exchange
      const state = yield* caller.read(execution_id)
      shows(early, { status: 403 })
      shows(exchanged, {
        status: 200,
        json: {
          token: {
            token_id: expect.stringMatching(/^t10n-[0-9a-f]{32}$/),
            token_key: expect.stringMatching(/^[A-Za-z0-9_-]{43}$/),
          },
          context: {
            engine_reference: "sandbox-bank:website",
            app_id: "65f0c0ffee00000000000001",
            customer_id: "c-1",
            features: ["cards_read", "accounts_read"],
            locking_hash: field(state, "locking_hash"),
          },
        },
      })
      shows(again, { status: 403 })
      shows(state, { authentication_status: "AUTH_OK" })
      const token_key = textField(exchanged, "token", "token_key")
      expect(token_key).not.toBe(textField(started, "ticket"))
      const shown = [again, state, yield* caller.token(textField(exchanged, "token", "token_id"))]
      for (const { text } of shown) expect(text).not.toContain(token_key)
    },
  )

  told(
    "every failed exchange answers the same, byte for byte [exchangeTicket 403] [error 12] " +
      "[auth-rule 3] [auth-rule 4]",
    function* (caller) {
      const given = Effect.fnUntraced(function* (words: string, customer_id: string) {
        const started = yield* caller.startTicketed(words, { customer_id })
        return [textField(started, "execution_id"), textField(started, "ticket")] as const
      })
      const plain = yield* caller.start("queue-1+run-10", { customer_id: "c-plain" })
      const [spent, late, early, refused, removed] = [
        yield* given("queue-1+run-10", "c-spent"),
        yield* given("queue-1+run-10", "c-late"),
        yield* given("queue-60+run-10000", "c-early"),
        yield* given("queue-1+run-1+end-BLOCKED_USER", "c-refused"),
        yield* given("queue-1+run-10", "c-removed"),
      ]
      yield* TestClock.adjust(11_000)
      yield* caller.remove(removed[0])
      expect((yield* caller.exchange(...spent)).status).toBe(200)
      const answers = [
        yield* caller.exchange("nobody", spent[1]),
        yield* caller.exchange("", ""),
        yield* caller.exchange(textField(plain, "execution_id"), spent[1]),
        yield* caller.exchange(late[0], spent[1]),
        yield* caller.exchange(late[0], `${late[1].slice(1)}0`),
        yield* caller.exchange(late[0], late[1].toUpperCase()),
        yield* caller.exchange(...spent),
        yield* caller.exchange(...late, "sandbox-app-3"),
        yield* caller.exchange(...late, "sandbox-app-2"),
        yield* caller.exchange(...early),
        yield* caller.exchange(...refused),
        yield* caller.exchange(...removed),
      ]
      yield* TestClock.adjust("31 minutes")
      answers.push(yield* caller.exchange(...late))
      expect(
        new Set(answers.map(({ status, text, contentType }) => `${status} ${contentType} ${text}`)),
      ).toEqual(new Set(['403 application/json {"detail":"the ticket cannot be exchanged"}']))
      expect((yield* truth).refusedExchanges.map(({ fault }) => fault)).toEqual([
        "unknown",
        "unknown",
        "unknown",
        "wrong_ticket",
        "wrong_ticket",
        "wrong_ticket",
        "spent",
        "foreign",
        "not_enabled",
        "login_not_accepted",
        "login_not_accepted",
        "deleted",
        "expired",
      ])
    },
  )

  told(
    "a body that is no exchange is malformed, and spends nothing [exchangeTicket 422] " +
      "[field exchange.execution_id] [field exchange.ticket]",
    function* (caller) {
      const started = yield* caller.startTicketed("queue-0+run-0")
      const execution_id = field(started, "execution_id")
      const url = `${caller.base_url}/executions/t10n`
      const bodies = [{ execution_id }, { execution_id, ticket: 7 }, { ticket: started.json }, []]
      const answers = yield* Effect.forEach(bodies, (body) => caller.call("PUT", url, { body }))
      expect(answers.map((answer) => [answer.status, field(answer, "detail", 0, "loc")])).toEqual([
        [422, ["body", "ticket"]],
        [422, ["body", "ticket"]],
        [422, ["body", "execution_id"]],
        [422, ["body"]],
      ])
      const whole = yield* caller.exchange(textField(started, "execution_id"), textField(started, "ticket"))
      expect(whole.status).toBe(200)
    },
  )

  told(
    "a login accepted after a challenge makes its ticket exchangeable, one that waits for it does not",
    function* (caller) {
      const base_configurations = { tokenized_access: true, customer_interaction_available: true }
      const started = yield* caller.startTicketed("queue-0+run-10+challenge-123", { base_configurations })
      const execution_id = textField(started, "execution_id")
      const exchange = caller.exchange(execution_id, textField(started, "ticket"))
      yield* TestClock.adjust(5_000)
      expect([(yield* caller.read(execution_id)).status, (yield* exchange).status]).toEqual([423, 403])
      yield* caller.resume(execution_id, { code: "123" })
      yield* TestClock.adjust(5_000)
      expect((yield* exchange).status).toBe(200)
    },
  )

  told(
    "a token shows its state to its own application only [readToken 200] [readToken 404] [readToken 422]",
    function* (caller) {
      const { token_id, exchanged } = yield* tokenFor("ok")
      const active = yield* caller.token(token_id)
      shows(active, {
        status: 200,
        json: {
          token_id,
          status: "active",
          context: field(exchanged, "context"),
          date_created: "2026-11-21T00:00:02.000Z",
          date_expires: "2027-02-19T00:00:02.000Z",
        },
      })
      const foreign = yield* caller.token(token_id, "sandbox-app-3")
      const unknown = yield* caller.token(`t10n-${"0".repeat(32)}`)
      expect([foreign.status, foreign.text]).toEqual([404, unknown.text])
      expect([unknown.status, unknown.json]).toEqual([404, { detail: "no such token" }])
      const malformed = yield* caller.token("t10n-not-one")
      shows(malformed, {
        status: 422,
        json: {
          detail: [{ loc: ["path", "token_id"], msg: "not a token id", type: "value_error.token_id" }],
        },
      })
      yield* TestClock.adjust(5_000)
      yield* caller.revoke(token_id)
      expect([
        field(yield* caller.token(token_id), "status"),
        field(yield* caller.token(token_id), "date_revoked"),
      ]).toEqual(["revoked", "2026-11-21T00:00:07.000Z"])
    },
  )

  told(
    "a token is revoked once, for good, by its own application, and its runs are untouched [revokeToken 204] " +
      "[revokeToken 304] [revokeToken 404] [revokeToken 422] [token-move 2] [token-move 3] [auth-rule 4] " +
      "[error 13] [error 14]",
    function* (caller) {
      const { token, token_id, execution_id } = yield* restingToken()
      const run = yield* caller.startTokenized(token)
      yield* TestClock.adjust(3_000)
      const foreign = yield* caller.revoke(token_id, "sandbox-app-3")
      const incapable = yield* caller.revoke(token_id, "sandbox-app-2")
      const unknown = yield* caller.revoke(`t10n-${"0".repeat(32)}`)
      expect([foreign.status, foreign.text, incapable.text]).toEqual([404, unknown.text, unknown.text])
      expect((yield* caller.revoke("t10n-")).status).toBe(422)
      expect((yield* truth).tokens.map(({ holds_credentials }) => holds_credentials)).toEqual([true])

      const revoked = yield* caller.revoke(token_id)
      const again = yield* caller.revoke(token_id)
      expect([revoked.status, revoked.text, again.status, again.text]).toEqual([204, "", 304, ""])
      expect((yield* truth).tokens).toMatchObject([
        { holds_credentials: false, revoked_at: midnight + 65_000 },
      ])

      yield* TestClock.adjust(60_000)
      for (const id of [execution_id, textField(run, "execution_id")]) {
        const state = yield* caller.read(id)
        shows(state, { status_reason: "COMPLETED", authentication_status: "AUTH_OK" })
        expect((yield* caller.results(textField(state, "session_id"))).status).toBe(200)
      }
      yield* TestClock.adjust(day)
      expect([
        (yield* caller.revoke(token_id)).status,
        field(yield* caller.token(token_id), "status"),
      ]).toEqual([304, "revoked"])
    },
  )
}
