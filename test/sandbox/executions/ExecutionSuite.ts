/**
 * What the direct execution API does (sections 4.1 to 4.5), told once and run against every way to reach it.
 */
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { Sandbox } from "../../../src/sandbox/server/Sandbox.ts"
import { Caller, field, textField } from "../server/Caller.ts"
import type { Reach } from "../server/Caller.ts"

const reasonOf = (answer: unknown) => [field(answer, "status_code"), field(answer, "status_reason")]

export const executionSuite = (reach: Reach) => {
  const told = (title: string, body: Effect.Effect<void, never, Caller | Sandbox>) =>
    it.effect(title, () => body.pipe(Effect.provide(reach({ seed: 7 }))))

  told(
    "a run queues, works and ends when its words say so, and reports its times",
    Effect.gen(function* () {
      yield* TestClock.setTime(Date.UTC(2026, 10, 21, 2))
      const caller = yield* Caller
      const started = yield* caller.start("queue-10+run-20+async-5+records-3", {
        external_execution_id: "x-1",
      })
      const execution_id = textField(started, "execution_id")
      const session_id = textField(started, "session_id")
      const ids = {
        app_id: "65f0c0ffee00000000000001",
        auth_origin: "app-secret",
        customer_id: "c-1",
        engine_reference: "sandbox-bank:website",
        execution_id,
        external_execution_id: "x-1",
        session_id,
      }
      expect(started.status).toBe(202)
      expect(started.json).toEqual({ ...ids, status_code: "ONGOING", status_reason: "ACCEPTED" })
      expect(session_id).toMatch(/^[0-9a-f]{24}$/)

      const seen = []
      for (const seconds of [0, 10, 2, 9, 5, 9]) {
        yield* TestClock.adjust(seconds * 1000)
        const state = yield* caller.read(execution_id)
        seen.push([state.status, ...reasonOf(state), field(state, "authentication_status")])
      }
      expect(seen).toEqual([
        [202, "ONGOING", "ACCEPTED", "not-performed"],
        [202, "ONGOING", "WAITING", "not-performed"],
        [202, "ONGOING", "RUNNING", "AUTH_OK"],
        [202, "ONGOING", "ASYNC_WAIT", "AUTH_OK"],
        [202, "ONGOING", "RUNNING", "AUTH_OK"],
        [200, "COMPLETED", "COMPLETED", "AUTH_OK"],
      ])
      yield* TestClock.adjust(100_000)
      const last = yield* caller.read(execution_id)
      expect(last.json).toEqual({
        ...ids,
        status_code: "COMPLETED",
        status_reason: "COMPLETED",
        status_message: "Terminado.",
        authentication_status: "AUTH_OK",
        is_closed: true,
        products_count: {
          "account:checking@accounts": 1,
          "customer_information:user_profile@customer_information": 1,
          "financial_card:debit@cards": 1,
        },
        end_hook: "skipped",
        warnings_count: 0,
        errors_count: 0,
        locking_hash: expect.stringMatching(/^v1\.[0-9a-f]{64}$/),
        date_created: "2026-11-21T02:00:00.000Z",
        date_started: "2026-11-21T02:00:10.000Z",
        date_ended: "2026-11-21T02:00:35.000Z",
        execution_time: 20,
        running_time: 20,
        total_elapsed_time: 35,
        features: ["accounts_read", "cards_read", "customer_information_read"].map((code) => ({
          code,
          status_reason: "FEATURE_COMPLETED",
        })),
        messages: [
          {
            date: "2026-11-21T02:00:12.000Z",
            type: "info",
            id: "login.accepted",
            loc: [],
            message: "Acceso correcto.",
          },
        ],
      })
    }),
  )

  told(
    "a run is in flight once per customer and engine, unless both external ids differ, and per external id",
    Effect.gen(function* () {
      const caller = yield* Caller
      const first = yield* caller.start("queue-60", { external_execution_id: "x-1" })
      const sameId = yield* caller.start("queue-60", {
        external_execution_id: "x-1",
        engine_reference: "sandbox-tax:website",
      })
      const withoutId = yield* caller.start("queue-60")
      const otherId = yield* caller.start("queue-60", { external_execution_id: "x-2" })
      const otherCustomer = yield* caller.start("queue-60", { customer_id: "c-2" })
      const otherEngine = yield* caller.start("queue-60", { engine_reference: "sandbox-tax:website" })
      const otherApplication = yield* caller.start("queue-60", {}, "sandbox-app-2")
      expect(
        [sameId, withoutId, otherId, otherCustomer, otherEngine, otherApplication].map(
          ({ status }) => status,
        ),
      ).toEqual([409, 409, 202, 202, 202, 202])
      expect(withoutId.json).toEqual({
        app_id: "65f0c0ffee00000000000001",
        auth_origin: "app-secret",
        customer_id: "c-1",
        engine_reference: "sandbox-bank:website",
        execution_id: field(first, "execution_id"),
        session_id: field(first, "session_id"),
        external_execution_id: "x-1",
        status_code: "TEMPORARY_ERROR",
        status_reason: "ALREADY_EXECUTING",
      })
      const withoutIdInFlight = yield* caller.start("queue-60", {
        customer_id: "c-2",
        external_execution_id: "x-9",
      })
      expect(withoutIdInFlight.status).toBe(409)
    }),
  )

  told(
    "wrong fields, encrypted values and wrong settings are accepted, and close at once with what was wrong",
    Effect.gen(function* () {
      const caller = yield* Caller
      const readAfter = (more: Readonly<Record<string, unknown>>) =>
        Effect.gen(function* () {
          const started = yield* caller.start("queue-60", more)
          expect(started.status).toBe(202)
          const state = yield* caller.read(textField(started, "execution_id"))
          return [
            state.status,
            ...reasonOf(state),
            field(state, "parameters_errors") ?? field(state, "configurations_errors"),
          ]
        })
      expect(yield* readAfter({ parameters: { username: "u", password: "abc" } })).toEqual([
        200,
        "CONFIGURATION_ERROR",
        "INCORRECT_PARAMETERS_FORMAT",
        [
          {
            loc: ["password"],
            msg: '"abc" must NOT have fewer than 4 characters',
            type: "value_error.minLength",
            input: "abc",
            ctx: { given: "abc" },
          },
        ],
      ])
      expect(yield* readAfter({ parameters: { username: "u" } })).toEqual([
        200,
        "CONFIGURATION_ERROR",
        "INCORRECT_PARAMETERS_FORMAT",
        [{ loc: ["password"], msg: "must have required property 'password'", type: "missing" }],
      ])
      expect(yield* readAfter({ parameters: { username: "u", password: "rsa::c2VjcmV0" } })).toMatchObject([
        200,
        "CONFIGURATION_ERROR",
        "ENCRYPTION_ERROR",
        [{ loc: ["password"] }],
      ])
      expect(yield* readAfter({ parameters: "hybrid::c2VjcmV0" })).toMatchObject([
        200,
        "CONFIGURATION_ERROR",
        "ENCRYPTION_ERROR",
        [{ loc: [] }],
      ])
      const features = [{ code: "yearly_individual_tax", configurations: { last_n_years: 99 } }]
      expect(yield* readAfter({ engine_reference: "sandbox-tax:website", features })).toMatchObject([
        200,
        "CONFIGURATION_ERROR",
        "BAD_CONFIGURATIONS",
        [{ loc: ["features", 0, "configurations", "last_n_years"] }],
      ])
    }),
  )

  told(
    "features that the engine lacks leave no trace",
    Effect.gen(function* () {
      const caller = yield* Caller
      const started = yield* caller.start("queue-0+run-0+records-2", {
        features: ["cloud_resource_read", { code: "accounts_read" }, "accounts_read"],
      })
      const state = yield* caller.read(textField(started, "execution_id"))
      expect(field(state, "features")).toEqual([
        { code: "accounts_read", status_reason: "FEATURE_COMPLETED" },
      ])
      expect(field(state, "products_count")).toEqual({
        "account:checking@accounts": 1,
        "account:savings@accounts": 1,
      })
    }),
  )

  told(
    "a start that is not allowed creates nothing: unknown or closed engine, missing person, missing capability",
    Effect.gen(function* () {
      const caller = yield* Caller
      const start = (more: Readonly<Record<string, unknown>>, secret?: string) =>
        Effect.map(caller.start("ok", more, secret), (answer) => [
          answer.status,
          ...reasonOf(answer),
          field(answer, "execution_id"),
        ])
      const person = { base_configurations: { customer_interaction_available: true } }
      const token = { base_configurations: { tokenized_access: true } }
      const always = { engine_reference: "sandbox-always:website" }
      expect([
        yield* start({ engine_reference: "nobody:website" }),
        yield* start({ engine_reference: "sandbox-maintenance:website" }),
        yield* start(always),
        yield* start(token, "sandbox-app-2"),
      ]).toEqual([
        [422, undefined, undefined, undefined],
        [503, undefined, undefined, undefined],
        [400, "ABORTED", "CUSTOMER_INTERVENTION_REQUIRED", undefined],
        [400, "CONFIGURATION_ERROR", "T10N_FORBIDDEN", undefined],
      ])
      expect((yield* start({ ...always, ...person }))[0]).toBe(202)
      const tokenized = yield* caller.start("ok", token)
      expect(tokenized.status).toBe(202)
      expect(field(tokenized, "ticket")).toMatch(/^[0-9a-f]{64}$/)
      const { truth } = yield* Sandbox
      expect((yield* truth).executions.length).toBe(2)
    }),
  )

  told(
    "malformed starts answer 422 with what was wrong and where",
    Effect.gen(function* () {
      const caller = yield* Caller
      const missing = yield* caller.call("POST", caller.startUrl, {
        body: { engine_reference: "sandbox-bank:website", parameters: {} },
      })
      expect([missing.status, missing.json]).toEqual([
        422,
        { detail: [{ loc: ["body", "customer_id"], msg: "Missing key", type: "value_error" }] },
      ])
      const timeout = yield* caller.start("ok", { base_configurations: { execution_timeout: 59 } })
      expect([timeout.status, field(timeout, "detail", 0, "loc")]).toEqual([
        422,
        ["body", "base_configurations", "execution_timeout"],
      ])
      const list = yield* caller.call("POST", caller.startUrl, { body: [] })
      expect(list.status).toBe(422)
    }),
  )

  told(
    "abort stops an open run once and is harmless on a closed one; delete removes a closed run for good",
    Effect.gen(function* () {
      const caller = yield* Caller
      const started = yield* caller.start("queue-10+run-10")
      const id = textField(started, "execution_id")
      const openDelete = yield* caller.remove(id)
      yield* TestClock.adjust(15_000)
      const aborted = yield* caller.abort(id)
      const again = yield* caller.abort(id)
      const state = yield* caller.read(id)
      const free = yield* caller.start("queue-10")
      const deleted = yield* caller.remove(id)
      const statuses = [openDelete, aborted, again, free, deleted, yield* caller.remove(id)]
      expect(statuses.map(({ status }) => status)).toEqual([409, 204, 304, 202, 204, 404])
      expect([state.status, ...reasonOf(state), field(state, "execution_time")]).toEqual([
        200,
        "ABORTED",
        "CLIENT_CANCELLED",
        5,
      ])
      const gone = [yield* caller.read(id), yield* caller.abort(id), yield* caller.resume(id, { code: "1" })]
      expect(gone.map(({ status }) => status)).toEqual([404, 404, 404])
      expect((yield* caller.results(textField(started, "session_id"))).status).toBe(404)
    }),
  )

  told(
    "active work beyond execution_timeout ends with TIMEOUT; waiting for the source does not count",
    Effect.gen(function* () {
      const caller = yield* Caller
      const base_configurations = { execution_timeout: 60 }
      const long = yield* caller.start("queue-0+run-61", { base_configurations })
      const waiting = yield* caller.start("queue-0+run-60+async-600", {
        base_configurations,
        customer_id: "c-2",
      })
      yield* TestClock.adjust("1 hour")
      expect(reasonOf(yield* caller.read(textField(long, "execution_id")))).toEqual(["ABORTED", "TIMEOUT"])
      expect(reasonOf(yield* caller.read(textField(waiting, "execution_id")))).toEqual([
        "COMPLETED",
        "COMPLETED",
      ])
    }),
  )

  told(
    "healing words fail the first runs and let later ones succeed",
    Effect.gen(function* () {
      const caller = yield* Caller
      const ends = []
      for (let run = 0; run < 3; run += 1) {
        const started = yield* caller.start("queue-0+run-0+heal-2-NETWORK_ERROR")
        ends.push(field(yield* caller.read(textField(started, "execution_id")), "status_reason"))
      }
      expect(ends).toEqual(["NETWORK_ERROR", "NETWORK_ERROR", "COMPLETED"])
    }),
  )

  told(
    "somebody else's run blocks a start, is visible, and ends by itself",
    Effect.gen(function* () {
      const caller = yield* Caller
      const start = caller.start("queue-0+run-0+foreign-30", { external_execution_id: "ours" })
      const refused = yield* start
      const theirs = textField(refused, "execution_id")
      const state = yield* caller.read(theirs)
      yield* TestClock.adjust(30_000)
      expect([refused.status, state.status, (yield* start).status]).toEqual([409, 202, 202])
      expect(field(refused, "external_execution_id")).toMatch(/^somebody-else-/)
      expect(field(state, "external_execution_id")).toBe(field(refused, "external_execution_id"))
    }),
  )

  told(
    "HEAD answers with GET's status, without a body, in every state of an execution",
    Effect.gen(function* () {
      const caller = yield* Caller
      const base_configurations = { customer_interaction_available: true }
      const words = ["queue-60", "queue-0+run-0", "queue-0+run-0+challenge-123"]
      const ids = ["nobody"]
      for (const [index, username] of words.entries()) {
        const started = yield* caller.start(username, { customer_id: `c-${index}`, base_configurations })
        ids.push(textField(started, "execution_id"))
      }
      const both = yield* Effect.forEach(ids, (id) =>
        Effect.all([caller.call("HEAD", caller.executionUrl(id)), caller.read(id)]),
      )
      expect(both.map(([head]) => head.status)).toEqual([404, 202, 200, 423])
      expect(both.map(([, get]) => get.status)).toEqual([404, 202, 200, 423])
    }),
  )
}
