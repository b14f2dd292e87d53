/**
 * What a start with a token does (section 4.12, answers as 4.1; sections 2.6, 3.1 and 3.2), told once and run
 * against every way to reach the service.
 */
import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { statusReasonsByCode } from "../../../src/service/Vocabulary.ts"
import { field, textField, shows, usualStart, truth, type Told } from "../server/Caller.ts"
import { midnight, restingToken, tokenFor } from "./TokenSuite.ts"

const named = (external_execution_id: string) => ({ external_execution_id })
const closedWith = (state: unknown) => [
  field(state, "is_closed"),
  field(state, "status_code"),
  field(state, "status_reason"),
  field(state, "authentication_status"),
]

export const tokenStartSuite = (told: Told) => {
  told(
    "a run with a token is like the one with the parameters behind it [startTokenized 202]",
    function* (caller) {
      const words = "records-7+attach-2+partial"
      const { token, token_id, execution_id } = yield* restingToken(words)
      const accepted = yield* caller.startTokenized(token, named("x-1"))
      shows(accepted, {
        status: 202,
        json: {
          ...usualStart,
          execution_id: expect.any(String),
          session_id: expect.any(String),
          external_execution_id: "x-1",
          status_code: "ONGOING",
          status_reason: "ACCEPTED",
        },
      })
      yield* TestClock.adjust(60_000)
      const bare = (state: unknown) =>
        Object.fromEntries(
          ["status_reason", "products_count", "locking_hash", "features", "total_elapsed_time"].map(
            (name) => [name, field(state, name)],
          ),
        )
      const tokenized = yield* caller.read(textField(accepted, "execution_id"))
      expect(bare(tokenized)).toEqual(bare(yield* caller.read(execution_id)))
      expect(field(tokenized, "status_reason")).toBe("PARTIAL")

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
    },
  )

  told(
    "a token runs its own features or fewer, and never more, nor for another engine or customer " +
      "[startTokenized 422] [token-rule 1]",
    function* (caller) {
      const { token } = yield* restingToken("ok", { features: ["cards_read", "accounts_read"] })
      const asked = Effect.fnUntraced(function* (features?: ReadonlyArray<unknown>) {
        const started = yield* caller.startTokenized(token, features === undefined ? {} : { features })
        if (started.status !== 202) return [started.status, field(started, "detail")]
        const state = yield* caller.read(textField(started, "execution_id"))
        yield* TestClock.adjust(60_000)
        const run = (field(state, "features") as ReadonlyArray<unknown>).map((one) => field(one, "code"))
        return [started.status, run]
      })
      const item = (...loc: ReadonlyArray<string | number>) => ({
        loc: ["body", ...loc],
        msg: expect.any(String),
        type: "value_error.token_context",
      })
      expect([
        yield* asked(),
        yield* asked(["accounts_read"]),
        yield* asked([{ code: "cards_read" }, "cloud_resource_read"]),
        yield* asked(["cards_read", { code: "customer_information_read" }]),
      ]).toEqual([
        [202, ["cards_read", "accounts_read"]],
        [202, ["accounts_read"]],
        [202, ["cards_read"]],
        [422, [item("features", 1)]],
      ])
      const elsewhere = yield* caller.startTokenized(token, {
        engine_reference: "sandbox-tax:website",
        customer_id: "c-2",
        features: ["customer_information_read"],
      })
      shows(elsewhere, {
        status: 422,
        detail: [item("engine_reference"), item("customer_id"), item("features", 0)],
      })
      const malformed = yield* caller.startTokenized({ token_id: "abc", token_key: "x" })
      shows(malformed, { status: 422, "detail.0.loc": ["body", "token", "token_id"] })
      const halved = yield* caller.startTokenized({ token_id: field(token, "token_id") })
      shows(halved, { status: 422, "detail.0.loc": ["body", "token", "token_key"] })
      const hasty = yield* caller.startTokenized(token, { base_configurations: { execution_timeout: 59 } })
      expect(hasty.status).toBe(422)
      expect((yield* truth).executions.length).toBe(4)
    },
  )

  told(
    "a token runs once at a time, and conflicts as any start does [startTokenized 409] [limit 6]",
    function* (caller) {
      const { token } = yield* restingToken()
      const other = yield* restingToken("ok", { customer_id: "c-2", engine_reference: "sandbox-tax:website" })
      const first = yield* caller.startTokenized(token, named("x-1"))
      const sameToken = yield* caller.startTokenized(token, named("x-2"))
      const sameAccess = yield* caller.start("queue-1+run-10")
      const elsewhere = yield* caller.startTokenized(other.token, {
        customer_id: "c-2",
        engine_reference: "sandbox-tax:website",
      })
      const byParameters = yield* caller.start("queue-1+run-10", named("x-3"))
      expect([first, sameToken, sameAccess, elsewhere, byParameters].map(({ status }) => status)).toEqual([
        202, 409, 409, 202, 202,
      ])
      shows(sameToken, {
        json: {
          ...usualStart,
          execution_id: field(first, "execution_id"),
          session_id: field(first, "session_id"),
          external_execution_id: "x-1",
          status_code: "TEMPORARY_ERROR",
          status_reason: "ALREADY_EXECUTING",
        },
      })
      yield* caller.abort(textField(first, "execution_id"))
      const sameName = yield* caller.startTokenized(token, named("x-3"))
      const freed = yield* caller.startTokenized(token, named("x-4"))
      shows(sameName, { status: 409, execution_id: field(byParameters, "execution_id") })
      shows(freed, { status: 202 })
      expect((yield* truth).tokens.map(({ conflicts, runs }) => [conflicts, runs.length])).toEqual([
        [2, 2],
        [0, 1],
      ])
    },
  )

  told(
    "a token that is not the application's does not exist; without the capability nothing is asked of it " +
      "[startTokenized 404] [startTokenized 400] [auth-rule 3] [auth-rule 4]",
    function* (caller) {
      const { token } = yield* restingToken()
      const foreign = yield* caller.startTokenized(token, {}, "sandbox-app-3")
      const token_id = `t10n-${"0".repeat(32)}`
      const unknown = yield* caller.startTokenized({ token_id, token_key: field(token, "token_key") })
      expect([foreign.status, foreign.json]).toEqual([404, { detail: "no such token" }])
      expect([unknown.status, unknown.text]).toEqual([404, foreign.text])
      const incapable = yield* caller.startTokenized(token, {}, "sandbox-app-2")
      shows(incapable, {
        status: 400,
        json: {
          app_id: "65f0c0ffee00000000000002",
          auth_origin: "app-secret",
          customer_id: "c-1",
          engine_reference: "sandbox-bank:website",
          status_code: "CONFIGURATION_ERROR",
          status_reason: "T10N_FORBIDDEN",
        },
      })
      expect((yield* truth).starts.map(({ outcome }) => outcome)).toEqual([
        "accepted",
        "unknown_token",
        "unknown_token",
        "t10n_forbidden",
      ])
    },
  )

  told(
    "an engine checks a token's start like any other [startTokenized 400] [startTokenized 503]",
    function* (caller) {
      const always = { customer_id: "c-2", engine_reference: "sandbox-always:website" }
      const attended = { tokenized_access: true, customer_interaction_available: true }
      const person = yield* restingToken("ok", { ...always, base_configurations: attended })
      const alone = yield* caller.startTokenized(person.token, always)
      shows(alone, { status: 400, status_reason: "CUSTOMER_INTERVENTION_REQUIRED", execution_id: undefined })
      const windowed = { customer_id: "c-3", engine_reference: "sandbox-window:website" }
      const { token } = yield* restingToken("ok", windowed)
      yield* TestClock.setTime(midnight + 55 * 60_000)
      expect((yield* caller.startTokenized(token, windowed)).status).toBe(503)
      yield* TestClock.setTime(midnight + 61 * 60_000)
      expect((yield* caller.startTokenized(token, windowed)).status).toBe(202)
    },
  )

  told(
    "a token that opens nothing is accepted and closes at once: wrong key, revoked, stored badly " +
      "[reason T10N_REJECTED] [reason T10N_EXCEPTION]",
    function* (caller) {
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
      const closed = (reason: string) => [true, "CONFIGURATION_ERROR", reason, "not-performed"]
      expect([
        yield* end("c-1", wrongKey),
        yield* end("c-1", { ...wrongKey, token_key: "" }),
        yield* end("c-2", bad.token),
        yield* end("c-3", gone.token),
        (yield* end("c-1", good.token))[0],
      ]).toEqual([
        closed("T10N_REJECTED"),
        closed("T10N_REJECTED"),
        closed("T10N_EXCEPTION"),
        closed("T10N_REJECTED"),
        false,
      ])
    },
  )

  told(
    "an engine without tokenization closes a run that asks for a ticket [reason T10N_NOT_AVAILABLE]",
    function* (caller) {
      const traffic = {
        engine_reference: "es-traffic:website",
        parameters: { nif: "00000000T", support_number: "ABC123456", alias: "queue-1+run-1" },
      }
      const started = yield* caller.startTicketed("", traffic)
      const state = yield* caller.read(textField(started, "execution_id"))
      shows(started, { status: 202, ticket: undefined })
      shows(state, {
        is_closed: true,
        status_code: "CONFIGURATION_ERROR",
        status_reason: "T10N_NOT_AVAILABLE",
        authentication_status: "not-performed",
      })
      shows(state, { "configurations_errors.0.loc": ["base_configurations", "tokenized_access"] })
      const without = yield* caller.start("", traffic)
      expect(field(yield* caller.read(textField(without, "execution_id")), "is_closed")).toBe(false)
    },
  )

  told(
    "a ticket is only asked for by who may, and anybody may decline it [startExecution 400] [error 2] " +
      "[auth-rule 3] [reason T10N_FORBIDDEN] [ticket-rule 2] [field base.tokenized_access]",
    function* (caller) {
      const refused = yield* caller.startTicketed("ok", {}, "sandbox-app-2")
      const third = yield* caller.startTicketed("ok", {}, "sandbox-app-3")
      const unasked = yield* caller.start("ok")
      const declining = { customer_id: "c-2", base_configurations: { tokenized_access: false } }
      const declined = yield* caller.start("ok", declining)
      const incapable = yield* caller.start("ok", declining, "sandbox-app-2")
      expect(
        [refused, third, unasked, declined, incapable].map((answer) => [
          answer.status,
          field(answer, "status_reason"),
          typeof field(answer, "ticket"),
        ]),
      ).toEqual([
        [400, "T10N_FORBIDDEN", "undefined"],
        [202, "ACCEPTED", "string"],
        [202, "ACCEPTED", "undefined"],
        [202, "ACCEPTED", "undefined"],
        [202, "ACCEPTED", "undefined"],
      ])
    },
  )

  const refusals = [...statusReasonsByCode.AUTH_ERROR, ...statusReasonsByCode.UNHANDLED_AUTH_ERROR]
  for (const reason of refusals) {
    told(`a run of a token whose login ends with ${reason} locks the token [move 9]`, function* (caller) {
      const { token, token_id } = yield* restingToken(`turn-1-${reason}`)
      yield* caller.startTokenized(token)
      const status = Effect.map(caller.token(token_id), (answer) => field(answer, "status"))
      yield* TestClock.adjust(10_999)
      const before = yield* status
      const early = yield* caller.startTokenized(token, named("x-2"))
      yield* TestClock.adjust(1)
      const after = yield* caller.token(token_id)
      expect([before, early.status, field(after, "status"), field(after, "date_locked")]).toEqual([
        "active",
        409,
        "locked",
        new Date(midnight + 62_000 + 11_000).toISOString(),
      ])
      const next = yield* caller.startTokenized(token)
      const state = yield* caller.read(textField(next, "execution_id"))
      expect(closedWith(state)).toEqual([true, "CONFIGURATION_ERROR", "T10N_REJECTED", "not-performed"])
      expect((yield* truth).tokens).toMatchObject([{ locks_at: midnight + 73_000, holds_credentials: true }])
      expect((yield* truth).ruleBreaks.map(({ rule }) => rule)).toEqual(["rejected_login_repeated"])
      expect([(yield* caller.revoke(token_id)).status, yield* status]).toEqual([204, "revoked"])
    })
  }

  told(
    "a run that is stopped before its login, or ends because of a missing person, does not lock its token",
    function* (caller) {
      const { token, token_id } = yield* restingToken("turn-1-BLOCKED_USER")
      const stopped = yield* caller.startTokenized(token)
      yield* TestClock.adjust(5_000)
      yield* caller.abort(textField(stopped, "execution_id"))
      yield* TestClock.adjust(60_000)
      const base_configurations = { tokenized_access: true, customer_interaction_available: true }
      const started = yield* caller.startTicketed("queue-0+run-10+challenge-1", {
        base_configurations,
        customer_id: "c-2",
      })
      const execution_id = textField(started, "execution_id")
      yield* TestClock.adjust(5_000)
      yield* caller.resume(execution_id, { code: "1" })
      yield* TestClock.adjust(60_000)
      const exchanged = yield* caller.exchange(execution_id, textField(started, "ticket"))
      const alone = yield* caller.startTokenized(field(exchanged, "token"), { customer_id: "c-2" })
      yield* TestClock.adjust(60_000)
      const state = yield* caller.read(textField(alone, "execution_id"))
      expect(field(state, "status_reason")).toBe("CUSTOMER_INTERVENTION_REQUIRED")
      const statuses = [token_id, textField(exchanged, "token", "token_id")].map((id) => caller.token(id))
      expect((yield* Effect.all(statuses)).map((answer) => field(answer, "status"))).toEqual([
        "active",
        "active",
      ])
    },
  )

  told(
    "a tokenized run gives no ticket, requested or not, and is not affected by another's deletion",
    function* (caller) {
      const { token, execution_id, token_id } = yield* tokenFor("ok")
      yield* TestClock.adjust(60_000)
      yield* caller.remove(execution_id)
      const base_configurations = { tokenized_access: true }
      const started = yield* caller.startTokenized(token, { base_configurations })
      expect([started.status, field(started, "ticket")]).toEqual([202, undefined])
      expect(field(yield* caller.token(token_id), "status")).toBe("active")
    },
  )
}
