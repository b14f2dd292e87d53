/** An execution's state and acceptance, field by field (2.4, 2.5), and the profile that a run read (4.12). */
import { expect, it } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { TestClock } from "effect/testing"
import fc from "fast-check"
import { engineDefinitions } from "../../../src/sandbox/engines/EngineCatalogue.ts"
import { ExecutionState } from "../../../src/service/Execution.ts"
import { featureStatusReasons, features, statusReasons } from "../../../src/service/Vocabulary.ts"
import { Caller, field, fieldsOf, inProcess, itemsOf, morning, ofTheService } from "../server/Caller.ts"
import { person, pick, shows, textField, usualStart, conflictWith } from "../server/Caller.ts"

const incomplete = "La fuente no ha dado todos los datos."
const lacking = ["features", "customer_information_read"]
const message = (date: string, type: string, id: string, loc: ReadonlyArray<string>, text: string) => ({
  date,
  type,
  id,
  loc,
  message: text,
})

const fields: Readonly<Record<string, unknown>> = {
  execution_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
  session_id: expect.stringMatching(/^[0-9a-f]{24}$/),
  app_id: "65f0c0ffee00000000000001",
  customer_id: "c-1",
  external_execution_id: "x-1",
  engine_reference: "sandbox-bank:website",
  auth_origin: "app-secret",
  status_code: "PARTIAL",
  status_reason: "PARTIAL",
  status_message: "Terminado en parte.",
  authentication_status: "AUTH_OK",
  is_closed: true,
  products_count: { "account:checking@accounts": 1, "financial_card:debit@cards": 1 },
  end_hook: "skipped",
  warnings_count: 1,
  errors_count: 0,
  locking_hash: expect.stringMatching(/^v1\.[0-9a-f]{64}$/),
  date_created: "2026-11-21T09:00:00.000Z",
  date_started: "2026-11-21T09:00:01.000Z",
  date_ended: "2026-11-21T09:00:06.000Z",
  execution_time: 2,
  running_time: 2,
  total_elapsed_time: 6,
  features: [
    { code: "accounts_read", status_reason: "FEATURE_COMPLETED" },
    { code: "cards_read", status_reason: "FEATURE_COMPLETED" },
    { code: "customer_information_read", status_reason: "FEATURE_FAILED", status_message: incomplete },
  ],
  messages: [
    message("2026-11-21T09:00:01.200Z", "info", "login.accepted", [], "Acceso correcto."),
    message("2026-11-21T09:00:06.000Z", "warning", "feature.incomplete", lacking, incomplete),
  ],
}

ofTheService("a closed run", (it) => {
  const others = `[field feature-state.code] [field start.external_execution_id] ${fieldsOf("message", "date type id loc message")}`
  it(`shows these fields and no others ${fieldsOf("execution", Object.keys(fields).join(" "))} ${others}`, function* (caller) {
    const words = "queue-1+run-2+async-3+records-3+partial"
    const id = yield* caller.begin(words, { external_execution_id: "x-1" })
    yield* TestClock.adjust(10_000)
    expect((yield* caller.read(id)).json).toEqual(fields)
  })
  it("has a notice for the end user where the person has to act, and no place where it concerns all of it [field message.type] [field message.loc] [field execution.errors_count]", function* (caller) {
    const state = yield* caller.read(yield* caller.begin("queue-0+run-0+end-BLOCKED_USER"))
    expect(itemsOf(state, "messages").map((one) => pick(one, "type", "id", "loc"))).toEqual([
      ["error", "auth_error.blocked_user", []],
      ["notification", "auth_error.blocked_user.notice", []],
    ])
    shows(state, { errors_count: 1, warnings_count: 0 })
  })
  it(`echoes what was wrong with its parameters [field execution.parameters_errors] ${fieldsOf("validation", "ctx input")}`, function* (caller) {
    const id = yield* caller.begin("", { parameters: { username: "", password: "abc" } })
    const short = (name: string, given: string, least: string) => ({
      loc: [name],
      msg: `"${given}" must NOT have fewer than ${least}`,
      type: "value_error.minLength",
      input: given,
      ctx: { given },
    })
    shows(yield* caller.read(id), {
      status: 200,
      parameters_errors: [short("username", "", "1 characters"), short("password", "abc", "4 characters")],
    })
  })
})

ofTheService("a running execution", (it) => {
  it("shows what it can and no more [readExecution 202]", function* (caller) {
    const id = yield* caller.begin("queue-60")
    yield* TestClock.adjust("30 seconds")
    const same = "execution_id session_id app_id customer_id auth_origin engine_reference end_hook".split(" ")
    const codes = ["accounts_read", "cards_read", "customer_information_read"]
    shows(yield* caller.read(id), {
      status: 202,
      contentType: "application/json",
      json: {
        ...Object.fromEntries(same.map((name) => [name, fields[name]])),
        status_code: "ONGOING",
        status_reason: "ACCEPTED",
        status_message: "En cola.",
        authentication_status: "not-performed",
        is_closed: false,
        products_count: {},
        warnings_count: 0,
        errors_count: 0,
        date_created: "2026-11-21T09:00:00.000Z",
        execution_time: 0,
        running_time: 0,
        total_elapsed_time: 30,
        features: codes.map((code) => ({ code, status_reason: "FEATURE_ACCEPTED" })),
        messages: [],
      },
    })
  })
})

ofTheService("an acceptance", (it) => {
  const shown =
    "app_id customer_id auth_origin engine_reference status_reason status_code execution_id session_id external_execution_id"
  it(`carries these fields [startExecution 202] [move 1] [auth-rule 6] ${fieldsOf("acceptance", shown)} ${fieldsOf("start", "customer_id external_execution_id engine_reference")}`, function* (caller) {
    const asked = { external_execution_id: "x-1", customer_id: "" }
    shows(yield* caller.start("queue-60", asked), {
      status: 202,
      json: {
        ...usualStart,
        ...asked,
        status_reason: "ACCEPTED",
        status_code: "ONGOING",
        execution_id: fields["execution_id"],
        session_id: fields["session_id"],
      },
    })
  })
  it("carries a session_token on request only [field acceptance.session_token]", function* (caller) {
    shows(yield* caller.start("queue-60"), { session_token: undefined })
    const asked = yield* caller.start("queue-60+session-token", { customer_id: "c-2" })
    shows(asked, { session_token: expect.stringMatching(/^[0-9a-f]{64}$/) })
  })
  it("of a run in flight is its own, and nothing is created [startExecution 409] [error 3] [limit 6] [reason ALREADY_EXECUTING] [state TEMPORARY_ERROR]", function* (caller) {
    const first = yield* caller.start("queue-60", { external_execution_id: "x-1" })
    const tax = { engine_reference: "sandbox-tax:website" }
    const same = [{}, { external_execution_id: "x-1" }, { external_execution_id: "x-1", ...tax }]
    for (const more of same)
      shows(yield* caller.start("queue-60", more), { status: 409, json: conflictWith(first, "x-1") })
    const statuses = []
    for (const [more, secret] of [
      [{ external_execution_id: "x-2" }],
      [{ customer_id: "c-2" }],
      [{ customer_id: "c-2", external_execution_id: "x-9" }],
      [tax],
      [{}, "sandbox-app-2"],
    ] as const)
      statuses.push((yield* caller.start("queue-60", more, secret)).status)
    expect(statuses).toEqual([202, 202, 409, 202, 202])
  })
})

ofTheService("the profile of a run", (it) => {
  it("is available as soon as it was read, in this service's own shape [readProfile 200] [readProfile 404]", function* (caller) {
    const profileOf = (id: string) => caller.call("GET", caller.profileUrl(id))
    const started = yield* caller.start("queue-10+run-10+records-3")
    const id = textField(started, "execution_id")
    const early = yield* profileOf(id)
    yield* TestClock.adjust(30_000)
    const without = yield* caller.begin("queue-0+run-0", { features: ["accounts_read"] })
    const none = [early, yield* profileOf(without), yield* profileOf("nobody")]
    expect(none.map(({ status }) => status)).toEqual([404, 404, 404])
    const results = yield* caller.results(textField(started, "session_id"))
    shows(yield* profileOf(id), {
      status: 200,
      json: {
        shape: "nightjar-sandbox",
        execution_id: id,
        session_id: field(started, "session_id"),
        customer_id: "c-1",
        is_closed: true,
        profile: field(results, "data", "customer_information", 0),
      },
    })
  })
})

// Counts of a state are counts of what is there (section 2.4), whatever was asked for and whenever it is looked
// at.

const words = fc
  .record({
    records: fc.option(fc.nat({ max: 40 })),
    end: fc.option(fc.constantFrom(...statusReasons)),
    feature: fc.option(fc.constantFrom(...featureStatusReasons)),
    challenge: fc.option(fc.constantFrom(...features)),
    flags: fc.subarray(["partial", "odd", "attach-3"]),
  })
  .map(({ records, end, feature, challenge, flags }) =>
    [
      "queue-1+run-60",
      ...(records === null ? [] : [`records-${records}`]),
      ...(end === null ? [] : [`end-${end}`]),
      ...(feature === null ? [] : [`feature-${feature}`]),
      ...(challenge === null ? [] : [`challenge-1+by-${challenge}+expire-20`]),
      ...flags,
    ].join("+"),
  )
const runnable = ["sandbox-bank:website", "sandbox-tax:website", "es-bank:api", "es-utility:mobile"]
const asked = fc.constantFrom(...runnable).chain((engine_reference) => {
  const offered = engineDefinitions.find(({ reference }) => reference === engine_reference)?.features ?? []
  return fc.record({ engine_reference: fc.constant(engine_reference), features: fc.subarray([...offered]) })
})

const countedIn = (data: unknown = {}): Readonly<Record<string, number>> => {
  const counts: Record<string, number> = {}
  for (const records of Object.values(Object(data))) {
    for (const record of itemsOf(records)) {
      if (field(record, "sub_family") === undefined) continue
      const key = `${textField(record, "sub_family")}@${textField(record, "product")}`
      counts[key] = (counts[key] ?? 0) + 1
    }
  }
  return counts
}

const decode = Schema.decodeUnknownSync(ExecutionState)

/** Looks at a run and its results after each of these waits. */
const look = Effect.fnUntraced(function* (
  said: string,
  more: Readonly<Record<string, unknown>>,
  waits: ReadonlyArray<number>,
) {
  yield* TestClock.setTime(morning)
  const caller = yield* Caller
  const started = yield* caller.start(said, { ...more, ...person })
  for (const wait of waits) {
    yield* TestClock.adjust(wait)
    const state = yield* caller.read(textField(started, "execution_id"))
    const results = yield* caller.results(textField(started, "session_id"))
    if (state.status === 423) continue
    decode(state.json)
    const messages = itemsOf(state, "messages").map((message) => field(message, "type"))
    shows(state, {
      warnings_count: messages.filter((type) => type === "warning").length,
      errors_count: messages.filter((type) => type === "error").length,
    })
    expect([200, 412]).toContain(results.status)
    shows(state, { products_count: countedIn(field(results, "data")) })
  }
})

it("products_count is the records, and the counts of messages are the messages, at every moment", async () => {
  const waits = fc.array(fc.integer({ min: 5_001, max: 40_000 }), { maxLength: 4 })
  await fc.assert(
    fc.asyncProperty(words, asked, waits, (said, more, times) =>
      Effect.runPromise(
        look(said, more, [...times, 200_000]).pipe(
          Effect.provide(inProcess({ seed: 7 }).pipe(Layer.provideMerge(TestClock.layer()))),
        ),
      ),
    ),
    { numRuns: 20 },
  )
})
