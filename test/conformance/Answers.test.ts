/**
 * Every answer of the reference's endpoints, whole: status, body and media type of one plain request each,
 * compared with what sections 4 and 7 say, and nothing besides. The suites of the embedded service go into
 * behaviour; this is the table.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { Caller, field, inProcess, morning, textField, toldAt } from "../sandbox/server/Caller.ts"
import type { Answer } from "../sandbox/server/Caller.ts"

type Ask = Effect.Effect<Answer, never, Caller>

const calls = Effect.map(Caller, (caller) => caller)
const person = { base_configurations: { customer_interaction_available: true } }
const wait = (seconds: number) => TestClock.adjust(seconds * 1_000)

const app_id = "65f0c0ffee00000000000001"
const id = expect.stringMatching(/^[0-9a-f-]{36}$/)
const session = expect.stringMatching(/^[0-9a-f]{24}$/)
const bank = {
  app_id,
  auth_origin: "app-secret",
  customer_id: "c-1",
  engine_reference: "sandbox-bank:website",
}
const accepted = {
  ...bank,
  status_code: "ONGOING",
  status_reason: "ACCEPTED",
  execution_id: id,
  session_id: session,
}
const notFound = { detail: "no such execution" }
const noToken = { detail: "no such token" }
const state = (shown: object) => ({
  ...bank,
  execution_id: id,
  session_id: session,
  status_message: expect.any(String),
  end_hook: "skipped",
  warnings_count: 0,
  errors_count: 0,
  date_created: "2026-11-21T09:00:00.000Z",
  features: expect.any(Array),
  ...shown,
})

/** Starts customer c-1 on the bank, lets time pass, and asks something about that execution. */
const after = (
  words: string,
  seconds: number,
  ask: (execution_id: string, session_id: string) => Ask,
  more: object = {},
): Ask =>
  Effect.gen(function* () {
    const caller = yield* Caller
    const started = yield* caller.start(words, { ...more })
    yield* wait(seconds)
    return yield* ask(textField(started, "execution_id"), textField(started, "session_id"))
  })
const of = (ask: (caller: Caller["Service"]) => Effect.Effect<Answer>): Ask => Effect.flatMap(calls, ask)
const read = (execution_id: string) => of((caller) => caller.read(execution_id))
const head = (execution_id: string) => of((caller) => caller.call("HEAD", caller.executionUrl(execution_id)))
const resume = (body: unknown) => (execution_id: string) => of((caller) => caller.resume(execution_id, body))
const abort = (execution_id: string) => of((caller) => caller.abort(execution_id))
const remove = (execution_id: string) => of((caller) => caller.remove(execution_id))
const results = (_: string, session_id: string) => of((caller) => caller.results(session_id))
const twice = (ask: (...ids: [string, string]) => Ask) => (a: string, b: string) =>
  Effect.andThen(ask(a, b), ask(a, b))
const engines = (path: string) =>
  of((caller) => caller.call("GET", `${caller.base_url}/config/engines/${path}`))

/** A token of a login that was accepted; its ticket is spent. */
const token = Effect.gen(function* () {
  const caller = yield* Caller
  const started = yield* caller.startTicketed("queue-0+run-0")
  const execution_id = textField(started, "execution_id")
  const exchanged = yield* caller.exchange(execution_id, textField(started, "ticket"))
  return {
    execution_id,
    ticket: textField(started, "ticket"),
    exchanged,
    id: textField(exchanged, "token", "token_id"),
  }
})

const item = (loc: ReadonlyArray<string | number>, type: string) => ({
  detail: [expect.objectContaining({ loc, type, msg: expect.any(String) })],
})

interface Told {
  readonly row: string
  readonly ask: Ask
  readonly body: unknown
}
const told = (row: string, ask: Ask, body: unknown): Told => ({ row, ask, body })
const nothing = undefined

const executions: ReadonlyArray<Told> = [
  told(
    "startExecution 202",
    of((caller) => caller.start("ok")),
    accepted,
  ),
  told(
    "startExecution 400",
    of((caller) => caller.startTicketed("ok", {}, "sandbox-app-2")),
    {
      ...bank,
      app_id: "65f0c0ffee00000000000002",
      status_code: "CONFIGURATION_ERROR",
      status_reason: "T10N_FORBIDDEN",
    },
  ),
  told(
    "startExecution 409",
    after("queue-60", 1, () => of((caller) => caller.start("ok"))),
    {
      ...accepted,
      status_code: "TEMPORARY_ERROR",
      status_reason: "ALREADY_EXECUTING",
      external_execution_id: null,
    },
  ),
  told(
    "startExecution 422",
    of((caller) => caller.start("ok", { base_configurations: { execution_timeout: 59 } })),
    item(["body", "base_configurations", "execution_timeout"], "value_error"),
  ),
  told(
    "startExecution 503",
    of((caller) => caller.start("ok", { engine_reference: "sandbox-maintenance:website" })),
    { detail: "engine in maintenance" },
  ),
  told(
    "readExecution 200",
    after("queue-0+run-1+records-0", 1, read, { features: ["accounts_read"] }),
    state({
      status_code: "COMPLETED",
      status_reason: "COMPLETED",
      authentication_status: "AUTH_OK",
      is_closed: true,
      products_count: {},
      locking_hash: expect.stringMatching(/^v1\./),
      date_started: "2026-11-21T09:00:00.000Z",
      date_ended: "2026-11-21T09:00:01.000Z",
      execution_time: 1,
      running_time: 1,
      total_elapsed_time: 1,
      features: [{ code: "accounts_read", status_reason: "FEATURE_COMPLETED" }],
      messages: [expect.objectContaining({ id: "login.accepted" })],
    }),
  ),
  told(
    "readExecution 202",
    after("queue-60", 30, read),
    state({
      status_code: "ONGOING",
      status_reason: "ACCEPTED",
      authentication_status: "not-performed",
      is_closed: false,
      products_count: {},
      execution_time: 0,
      running_time: 0,
      total_elapsed_time: 30,
      messages: [],
    }),
  ),
  told("readExecution 423", after("queue-0+run-0+challenge-1+expire-60", 1, read, person), {
    form_schema: expect.objectContaining({ type: "object", format: "cg-params", required: ["code"] }),
    action_required_expires: "2026-11-21T09:01:00.000Z",
    producer: "engine",
  }),
  told("readExecution 404", read("nobody"), notFound),
  told("pollExecution 200", after("queue-0+run-0", 0, head), nothing),
  told("pollExecution 202", after("queue-60", 0, head), nothing),
  told("pollExecution 423", after("queue-0+run-0+challenge-1", 1, head, person), nothing),
  told("pollExecution 404", head("nobody"), nothing),
  told("resumeExecution 202", after("queue-0+run-0+challenge-1", 1, resume({ code: "2" }), person), {
    ...accepted,
    status_message: expect.any(String),
  }),
  told("resumeExecution 400", after("queue-60", 1, resume({ code: "1" })), {
    detail: "not_waiting_for_action",
  }),
  told("resumeExecution 400", after("queue-0+run-0", 0, resume({ code: "1" })), {
    detail: "execution_already_closed",
  }),
  told("resumeExecution 404", resume({ code: "1" })("nobody"), notFound),
  told("resumeExecution 410", after("queue-0+run-0+challenge-1+expire-9", 9, resume({ code: "1" }), person), {
    detail: "ACTION_TIMEOUT",
  }),
  told("resumeExecution 422", after("queue-0+run-0+challenge-1", 1, resume(["1"]), person), {
    detail: [expect.objectContaining({ loc: ["body"], msg: expect.any(String), type: "value_error" })],
  }),
  told("resumeExecution 503", after("queue-0+run-0+challenge-1+parted", 1, resume({ code: "1" }), person), {
    detail: "ENGINE_UNAVAILABLE",
  }),
  told("abortExecution 204", after("queue-60", 1, abort), nothing),
  told("abortExecution 304", after("queue-60", 1, twice(abort)), nothing),
  told("abortExecution 404", abort("nobody"), notFound),
  told("abortExecution 409", after("queue-60+unstoppable-9", 1, abort), {
    detail: "cannot be stopped at the moment",
  }),
  told("deleteExecution 204", after("queue-0+run-0", 0, remove), nothing),
  told("deleteExecution 404", after("queue-0+run-0", 0, twice(remove)), notFound),
  told("deleteExecution 409", after("queue-60", 1, remove), { detail: "still running" }),
]

const tokens: ReadonlyArray<Told> = [
  told(
    "exchangeTicket 200",
    Effect.map(token, ({ exchanged }) => exchanged),
    {
      token: { token_id: expect.any(String), token_key: expect.any(String) },
      context: {
        engine_reference: "sandbox-bank:website",
        app_id,
        customer_id: "c-1",
        features: ["accounts_read", "cards_read", "customer_information_read"],
        locking_hash: expect.stringMatching(/^v1\./),
      },
    },
  ),
  told(
    "exchangeTicket 403",
    Effect.flatMap(token, ({ execution_id, ticket }) =>
      of((caller) => caller.exchange(execution_id, ticket)),
    ),
    { detail: "the ticket cannot be exchanged" },
  ),
  told(
    "exchangeTicket 422",
    of((caller) => caller.call("PUT", `${caller.base_url}/executions/t10n`, { body: { ticket: "t" } })),
    item(["body", "execution_id"], "value_error"),
  ),
  told(
    "revokeToken 204",
    Effect.flatMap(token, (one) => of((caller) => caller.revoke(one.id))),
    nothing,
  ),
  told(
    "revokeToken 304",
    Effect.flatMap(token, (one) =>
      of((caller) => Effect.andThen(caller.revoke(one.id), caller.revoke(one.id))),
    ),
    nothing,
  ),
  told(
    "revokeToken 404",
    Effect.flatMap(token, (one) => of((caller) => caller.revoke(one.id, "sandbox-app-3"))),
    noToken,
  ),
  told(
    "revokeToken 404",
    of((caller) => caller.revoke(`t10n-${"0".repeat(32)}`)),
    noToken,
  ),
  told(
    "revokeToken 422",
    of((caller) => caller.revoke("t")),
    item(["path", "token_id"], "value_error.token_id"),
  ),
]

const readings: ReadonlyArray<Told> = [
  told("listEngines 200", engines("list?markets=FR"), []),
  told(
    "listEngines 422",
    engines("list?main_category=x"),
    item(["query", "main_category", 0], "type_error.enum"),
  ),
  told("showEngine 404", engines("nobody:website"), { detail: "no such engine" }),
  told("showEngine 422", engines("nobody"), item(["path", "engine_reference"], "value_error")),
  told("showEngine 503", engines("sandbox-maintenance:website"), { detail: "engine in maintenance" }),
  told("readFlowResults 200", after("queue-0+run-0+records-0", 0, results, { features: ["accounts_read"] }), {
    session_id: session,
    data: expect.anything(),
    retrieved_features: ["accounts_read"],
    consent: expect.objectContaining({ accepted_features: ["accounts_read"] }),
    is_closed: true,
    session_status: "COMPLETED",
    session_cursor: "es-public-administration:bye:completed",
  }),
  told("readFlowResults 404", results("", "65f0c0ffee65f0c0ffee65f0"), { detail: "session not found" }),
  told("readFlowResults 412", after("queue-60", 0, results), {
    detail: "the customer never started this session",
  }),
  told("readFlowResults 422", results("", "nobody"), item(["path", "session_id"], "value_error")),
  told("readFlowResults 429", after("queue-0+run-0", 0, twice(results)), { detail: expect.any(String) }),
  told("readFlowResults 504", after("queue-0+run-0+locked-9", 0, results), { detail: expect.any(String) }),
]

describe("every answer of the reference, whole", () => {
  it.effect.each([...executions, ...tokens, ...readings])("[$row] is answered as the reference says", (one) =>
    Effect.gen(function* () {
      yield* TestClock.setTime(morning)
      const answer = yield* one.ask
      const media = one.body === nothing ? undefined : "application/json"
      expect([`${answer.status}`, answer.json, answer.text === "" ? undefined : answer.contentType]).toEqual([
        one.row.split(" ")[1],
        one.body,
        media,
      ])
    }).pipe(Effect.provide(inProcess({ seed: 7 }))),
  )

  toldAt(
    0,
    "[field execution.action_required_expires] [field challenge.action_required_expires] " +
      "the deadline of a challenge stands in the state while it is pending, and in no other",
    function* () {
      yield* TestClock.setTime(morning)
      const caller = yield* Caller
      const started = yield* caller.start("queue-5+run-20+challenge-1+expire-60", person)
      const shown = []
      for (const seconds of [0, 7, 20, 40]) {
        yield* wait(seconds)
        const answer = yield* caller.read(textField(started, "execution_id"))
        shown.push([answer.status, field(answer, "action_required_expires")])
      }
      expect(shown).toEqual([
        [202, undefined],
        [423, "2026-11-21T09:01:07.000Z"],
        [423, "2026-11-21T09:01:07.000Z"],
        [200, undefined],
      ])
    },
  )
})
