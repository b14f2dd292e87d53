/** Which events an execution raises, when, and what they say (section 6.1). */
import { describe, expect, it } from "vitest"
import { engineEvents, statusReasons } from "../../../src/service/Vocabulary.ts"
import { field, fieldsOf, person, pick, textField } from "../server/Caller.ts"
import { pass, run, told, webhookUrl } from "./HookTarget.ts"

const endsOnly = { webhooks: [{ url: webhookUrl, events: ["ended"] }] }
const all = { webhooks: [{ url: webhookUrl, events: engineEvents }] }
const none = { webhooks: [] }

describe("execution events", () => {
  const shape =
    "app_id customer_id execution_id event date customer_available status_reason session_id " +
    "external_execution_id locking_hash status_message event_class producer"
  it(`a run that goes well tells when its engine begins, that the login was accepted, and its end, in one shape [event started] [event auth_ended] [event ended] [event-rule 1] [auth AUTH_OK] ${fieldsOf("event", shape)}`, () =>
    run(function* (caller, target) {
      const started = yield* caller.start("queue-10+run-20", { external_execution_id: "x-1" })
      yield* pass(60)
      const hash = textField(yield* caller.read(textField(started, "execution_id")), "locking_hash")
      expect(hash).toMatch(/^v1\./)
      const common = {
        app_id: "65f0c0ffee00000000000001",
        customer_id: "c-1",
        execution_id: field(started, "execution_id"),
        session_id: field(started, "session_id"),
        external_execution_id: "x-1",
        event_class: "ExecutionEvent",
        customer_available: false,
        producer: "engine",
      }
      const wanted = [
        [10, "started", "WAITING", "Conectando con la fuente.", {}],
        [12, "auth_ended", "AUTH_OK", "La fuente ha aceptado el acceso.", { locking_hash: hash }],
        [30, "ended", "COMPLETED", "Terminado.", { locking_hash: hash }],
      ] as const
      expect(target.news().map(({ at, body }) => [at, body])).toEqual(
        wanted.map(([at, event, status_reason, status_message, more]) => [
          at * 1_000,
          { ...common, ...more, event, status_reason, status_message, date: `1970-01-01T00:00:${at}.000Z` },
        ]),
      )
    }))

  it("[event-rule 3] without a rule for auth_ended the same is in authentication_status and in ended", () =>
    run(function* (caller, target) {
      const id = yield* caller.begin("queue-10+run-20+end-CHANGE_PASSWORD")
      yield* pass(60)
      expect(field(yield* caller.read(id), "authentication_status")).toBe("CHANGE_PASSWORD")
      expect(target.news().map(told)).toEqual([[30, "ended", "CHANGE_PASSWORD"]])
    }, endsOnly))

  it("[event action_required] [field base.customer_interaction_available] is told to nobody where no person was declared", () =>
    run(function* (caller, target) {
      yield* caller.start("queue-10+run-20+challenge-123")
      yield* pass(3600)
      expect(target.news().map(told)).toEqual([
        [10, "started", "WAITING"],
        [12, "ended", "CUSTOMER_INTERVENTION_REQUIRED"],
      ])
    }))

  it("[event action_required] [reason MFA_REQUIRED] each pause on a challenge is told, where a person was declared [field event.data]", () =>
    run(function* (caller, target) {
      const id = yield* caller.begin("queue-10+run-20+challenge-123", person)
      yield* pass(40)
      yield* caller.resume(id, { code: "999" })
      yield* pass(10)
      yield* caller.resume(id, { code: "123" })
      yield* pass(3600)
      const news = target.news()
      expect(news.map(told)).toEqual([
        [10, "started", "WAITING"],
        [12, "action_required", "MFA_REQUIRED"],
        [40.3, "action_required", "MFA_REQUIRED"],
        [50.3, "auth_ended", "AUTH_OK"],
        [68.3, "ended", "COMPLETED"],
      ])
      expect(news.slice(1, 3).map(({ body }) => pick(body, "data", "customer_available"))).toEqual(
        ["12.000", "40.300"].map((at) => [{ action_required_expires: `1970-01-01T00:02:${at}Z` }, true]),
      )
    }))

  it("[field event.producer] [reason INPUT_REQUIRED] a feature that asks is the producer of its own pause, after the login was accepted", () =>
    run(function* (caller, target) {
      yield* caller.start("queue-10+run-20+input-123+by-cards_read", person)
      yield* pass(300)
      expect(target.news().map(({ body }) => pick(body, "event", "status_reason", "producer"))).toEqual([
        ["started", "WAITING", "engine"],
        ["auth_ended", "AUTH_OK", "engine"],
        ["action_required", "INPUT_REQUIRED", "cards_read"],
        ["ended", "ACTION_TIMEOUT", "engine"],
      ])
    }))

  it("an application is told of its own runs by its own rule, and somebody else's of none", () =>
    run(function* (caller, target) {
      yield* caller.call("PUT", caller.hooksUrl, { body: { url: "https://hooks.invalid/one" } })
      yield* caller.start("queue-1+run-1", {}, "sandbox-app-2")
      yield* caller.start("queue-1+run-1")
      yield* pass(60)
      expect(target.news().map(({ body }) => field(body, "app_id"))).toEqual(
        Array.from({ length: 3 }, () => "65f0c0ffee00000000000001"),
      )
    }, none))

  it("an engine raises the events that it declares, and no other [field engine-details.events]", () =>
    run(function* (caller, target) {
      const parameters = { username: "queue-1+run-20", password: "correct" }
      const campus = { campus_user: "queue-1+run-20", campus_password: "correct" }
      for (const [engine_reference, login, ...events] of [
        ["es-notary:other", parameters, "ended"],
        ["es-university:website", campus, "started", "ended"],
        ["es-bank:api", parameters, "started", "auth_ended", "ended"],
      ] as const) {
        yield* caller.start("", { engine_reference, parameters: login })
        yield* pass(60)
        expect(target.news().map(({ body }) => field(body, "event"))).toEqual(events)
      }
    }, all))

  it("[event-rule 2] whatever the end, events and states agree", () =>
    run(function* (caller, target) {
      for (const reason of statusReasons) {
        const more = { ...person, customer_id: `c-${reason}` }
        const id = yield* caller.begin(`queue-1+run-20+end-${reason}`, more)
        yield* pass(3600)
        const state = yield* caller.read(id)
        const news = new Map(target.news().map(({ body }) => [field(body, "event"), body]))
        const [login, end] = pick(state, "authentication_status", "status_reason")
        const reasons = ["ended", "auth_ended"].map((event) => field(news.get(event), "status_reason"))
        expect([reason, ...reasons]).toEqual([
          reason,
          field(state, "is_closed") === true ? end : undefined,
          login === "not-performed" ? undefined : login,
        ])
        expect(field(news.get("ended"), "date")).toBe(field(state, "date_ended"))
        expect(field(news.get("started"), "date")).toBe(field(state, "date_started"))
      }
    }))
})
