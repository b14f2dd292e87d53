/** What each key of a reading does to the answers: every value that is not today's once, beside what stays as it was. */
import { describe, expect } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import type { SandboxOptions } from "../../../src/sandbox/server/Sandbox.ts"
import type { Reading } from "../../../src/sandbox/state/Reading.ts"
import { Caller, field, morning, textField, toldAt, shows, truth, itemsOf } from "../server/Caller.ts"
import type { Steps } from "../server/Caller.ts"

const told = (title: string, reading: Reading, steps: Steps, more: Partial<SandboxOptions> = {}) =>
  toldAt(morning, title, steps, { reading, ...more })
const done = "queue-0+run-0"

describe("ids of a reading", () => {
  for (const [conflict_external_id, unnamed, named] of [
    ["running", "theirs", "theirs"],
    ["request", undefined, "theirs"],
    ["absent", undefined, undefined],
    ["null", null, null],
  ] as const)
    told(`a 409 names ${conflict_external_id} as external id`, { conflict_external_id }, function* (caller) {
      const running = yield* caller.begin("run-60", { external_execution_id: "theirs" })
      for (const [more, id] of [
        [{}, unnamed],
        [{ external_execution_id: "theirs" }, named],
      ] as const) {
        const refused = yield* caller.start("ok", more)
        shows(refused, { status: 409, execution_id: running, external_execution_id: id })
      }
    })

  const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/
  const objectId = /^[0-9a-f]{24}$/
  const own = { session_id_form: "execution_id", execution_id_form: "object_id" } as const
  const anyId = { session_id_form: "uuid", flow_session_ids: "any" } as const
  for (const [title, reading, execution, session, status] of [
    ["ids are a UUID and an ObjectId", {}, uuid, objectId, 200],
    ["an execution id is hex", { execution_id_form: "hex" }, /^[0-9a-f]{32}$/, objectId, 200],
    ["an execution id is an ObjectId", { execution_id_form: "object_id" }, objectId, objectId, 200],
    ["a session id that is not an ObjectId answers 422", { session_id_form: "uuid" }, uuid, uuid, 422],
    ["any session id is accepted", anyId, uuid, uuid, 200],
    ["a session id is the execution's", own, objectId, objectId, 200],
  ] as const)
    told(title, reading, function* (caller) {
      const started = yield* caller.start(done)
      const foreign = yield* caller.start("foreign-9", { customer_id: "c-2" })
      for (const answer of [started, foreign]) {
        expect(textField(answer, "execution_id")).toMatch(execution)
        expect(textField(answer, "session_id")).toMatch(session)
      }
      shows(yield* caller.read(textField(started, "execution_id")), { status: 200 })
      shows(yield* caller.results(textField(started, "session_id")), { status })
      const isOwn = field(started, "session_id") === field(started, "execution_id")
      expect(isOwn).toBe(reading === own)
    })
})

describe("states of a reading", () => {
  const state = (words: string, more: Readonly<Record<string, unknown>> = {}) =>
    Effect.gen(function* () {
      const caller = yield* Caller
      return yield* caller.read(yield* caller.begin(words, more))
    })
  const names = (value: unknown) =>
    typeof value === "object" && value !== null ? Object.keys(value).toSorted() : []
  const asking = { base_configurations: { customer_interaction_available: true }, external_execution_id: "x" }

  told(
    "a challenge has the state beside its four fields",
    { challenge_body: "state", dates: "offset", form_optionals: "null" },
    function* () {
      const answer = yield* state(`${done}+challenge-1`, asking)
      shows(answer, {
        status: 423,
        status_code: "ACTION_REQUIRED",
        is_closed: false,
        producer: "engine",
        action_required_expires: "2026-11-21T09:02:00.000+00:00",
        "form_schema.$defs": null,
      })
    },
  )
  const optional = ["external_execution_id", "locking_hash", "status_message"] as const
  const optionals = (expected: unknown) =>
    Effect.gen(function* () {
      const caller = yield* Caller
      const words = `${done}+partial`
      const accepted = yield* caller.start(words, { external_execution_id: "x" })
      const shown = yield* caller.read(textField(accepted, "execution_id"))
      expect(shown.status).toBe(200)
      const there = expected === null ? Object.fromEntries(optional.map((part) => [part, null])) : {}
      const all = Object.entries(Object(shown.json)).filter(([name]) =>
        optional.some((part) => part === name),
      )
      expect(Object.fromEntries(all)).toEqual(there)
      for (const one of itemsOf(shown, "features")) expect(field(one, "status_message")).toBe(expected)
      expect(field(accepted, "external_execution_id")).toBe(expected)
      const asked = yield* caller.start(`${done}+challenge-1`, { ...asking, customer_id: "c-2" })
      const resumed = yield* caller.resume(textField(asked, "execution_id"), { code: "1" })
      expect([resumed.status, field(resumed, "status_message")]).toEqual([202, expected])
    })
  told("optional fields are absent", { optionals: "absent" }, optionals(undefined))
  told("optional fields are null", { optionals: "null" }, optionals(null))

  const errors = ["configurations_errors", "parameters_errors"] as const
  told("lists of errors are empty if there are none", { error_lists: "empty" }, function* () {
    const good = yield* state(done)
    expect(errors.map((part) => field(good, part))).toEqual([[], []])
    const bad = yield* state(done, { customer_id: "c-2", parameters: {} })
    shows(bad, { configurations_errors: [], "parameters_errors.1.loc": ["password"] })
  })
  told("messages are absent if there are none", { messages: "absent_when_empty" }, function* () {
    expect(names((yield* state("queue-9")).json)).not.toContain("messages")
    expect(field(yield* state(done, { customer_id: "c-2" }), "messages", 0, "id")).toBe("login.accepted")
  })

  const counted = (expected: unknown) =>
    Effect.gen(function* () {
      const answer = yield* state(`${done}+records-3`, { features: ["customer_information_read"] })
      expect(field(answer, "products_count")).toEqual(expected)
    })
  const key = "customer_information:user_profile@customer_information"
  for (const [products_count, shown] of [
    ["absent", undefined],
    ["null", null],
    ["text", { [key]: "3" }],
    ["float", { [key]: 3.5 }],
    ["list", [{ key, count: 3 }]],
  ] as const)
    told(`products_count is ${products_count}`, { products_count }, counted(shown))

  const dated = (date: string) =>
    Effect.gen(function* () {
      const answer = yield* state(done)
      const dates = ["date_created", "date_started", "date_ended"].map((part) => field(answer, part))
      expect([...dates, field(answer, "messages", 0, "date")]).toEqual([date, date, date, date])
    })
  told("dates have an offset", { dates: "offset" }, dated("2026-11-21T09:00:00.000+00:00"))
  told("dates have no zone", { dates: "naive" }, dated("2026-11-21T09:00:00.000"))

  told(
    "a rejected run answers 200, is open, and can be deleted",
    { rejected_state: "open" },
    function* (caller) {
      const bad = yield* state(done, { parameters: {} })
      shows(bad, { status: 200, is_closed: false, date_ended: undefined })
      expect((yield* caller.remove(textField(bad, "execution_id"))).status).toBe(204)
      expect(field(yield* state(`${done}+end-BAD_PROXY_CONFIGURATION`), "is_closed")).toBe(true)
    },
  )
  const beyond = { features: [{ code: "accounts_read", configurations: { from_date: "2001-01-01" } }] }
  told("limits_behaviour error ends in ABORTED", { limits_behaviour_error: "aborted" }, function* () {
    const answer = yield* state(done, beyond)
    shows(answer, { status_code: "ABORTED", status_reason: "SYSTEM_CANCELLED", is_closed: true })
    const loc = ["features", 0, "configurations", "from_date"]
    shows(answer, { "configurations_errors.0.loc": loc, "messages.0.id": "aborted.system_cancelled" })
    const wrong = { features: [{ code: "accounts_read", configurations: { from_date: 7 } }] }
    expect((yield* (yield* Caller).start(done, wrong)).status).toBe(422)
  })
  told("an abort shows a second later, another or not", { abort_effect: "late" }, function* (caller) {
    const id = yield* caller.begin("queue-0+run-60")
    const reason = Effect.map(caller.read(id), (answer) => field(answer, "status_reason"))
    yield* TestClock.adjust("10 seconds")
    expect((yield* caller.abort(id)).status).toBe(204)
    yield* TestClock.adjust("900 millis")
    expect((yield* caller.abort(id)).status).toBe(204)
    expect((yield* caller.remove(id)).status).toBe(409)
    expect(yield* reason).toBe("RUNNING")
    yield* TestClock.adjust("100 millis")
    expect(yield* reason).toBe("CLIENT_CANCELLED")
    expect((yield* caller.abort(id)).status).toBe(304)
  })
  told(
    "an unknown engine is unavailable",
    { unknown_engine_start: "unavailable", retry_after: "seconds" },
    function* () {
      const answer = yield* (yield* Caller).start(done, { engine_reference: "nobody:website" })
      expect([answer.status, answer.json]).toEqual([503, { detail: "no such engine" }])
      const { starts } = yield* truth
      expect(starts.map(({ outcome }) => outcome)).toEqual(["unavailable"])
    },
  )
  told("forms show null for what they do not have", { form_optionals: "null" }, function* (caller) {
    const answer = yield* caller.call("GET", `${caller.base_url}/config/engines/sandbox-bank:website`)
    const form = (...path: ReadonlyArray<string | number>) =>
      ["$defs", "required", "x-meta"].map((part) => field(answer, ...path, part) === null)
    expect(answer.status).toBe(200)
    expect(form("parameters")).toEqual([true, false, false])
    expect(form("configurations")).toEqual([true, true, true])
    expect(form("features", 0, "configurations")).toEqual([true, true, true])
  })
})
