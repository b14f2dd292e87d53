/**
 * An execution's state and acceptance, field by field (sections 2.4 and 2.5), and the profile that a run read
 * (4.12), over both ways to reach the service.
 */
import { expect, it } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { TestClock } from "effect/testing"
import fc from "fast-check"
import { engineDefinitions } from "../../../src/sandbox/engines/EngineCatalogue.ts"
import { ExecutionState } from "../../../src/service/Execution.ts"
import { featureStatusReasons, features, statusReasons } from "../../../src/service/Vocabulary.ts"
import {
  Caller,
  field,
  inProcess,
  morning,
  ofTheService,
  textField,
  shows,
  usualStart,
  itemsOf,
  person,
} from "../server/Caller.ts"

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
    {
      code: "customer_information_read",
      status_reason: "FEATURE_FAILED",
      status_message: "La fuente no ha dado todos los datos.",
    },
  ],
  messages: [
    {
      date: "2026-11-21T09:00:01.200Z",
      type: "info",
      id: "login.accepted",
      loc: [],
      message: "Acceso correcto.",
    },
    {
      date: "2026-11-21T09:00:06.000Z",
      type: "warning",
      id: "feature.incomplete",
      loc: ["features", "customer_information_read"],
      message: "La fuente no ha dado todos los datos.",
    },
  ],
}
/** Rows that one field of the state shows besides its own. */
const alsoShown: Readonly<Record<string, string>> = {
  features: " [field feature-state.code]",
  external_execution_id: " [field start.external_execution_id]",
}
const messageFields = ["date", "type", "id", "loc", "message"]

const closedRun = Effect.gen(function* () {
  const caller = yield* Caller
  const words = "queue-1+run-2+async-3+records-3+partial"
  const started = yield* caller.start(words, { external_execution_id: "x-1" })
  yield* TestClock.adjust(10_000)
  return yield* caller.read(textField(started, "execution_id"))
})

ofTheService("a closed run", (told) => {
  told("shows these fields and no others", function* () {
    expect((yield* closedRun).json).toEqual(fields)
  })
  for (const [name, value] of Object.entries(fields)) {
    told(`shows its ${name} [field execution.${name}]${alsoShown[name] ?? ""}`, function* () {
      expect(field(yield* closedRun, name)).toEqual(value)
    })
  }
  for (const name of messageFields) {
    told(`has messages with ${name} [field message.${name}]`, function* () {
      const shown = itemsOf(yield* closedRun, "messages").map((message) => field(message, name))
      expect(shown).toEqual(itemsOf(fields["messages"]).map((message) => field(message, name)))
    })
  }
  told(
    "with a notice for the end user where the person has to act, and no place where they concern all of it " +
      "[field message.type] [field message.loc] [field execution.errors_count]",
    function* (caller) {
      const started = yield* caller.start("queue-0+run-0+end-BLOCKED_USER")
      const state = yield* caller.read(textField(started, "execution_id"))
      const shown = itemsOf(state, "messages").map((message) => [
        field(message, "type"),
        field(message, "id"),
        field(message, "loc"),
      ])
      expect([shown, field(state, "errors_count"), field(state, "warnings_count")]).toEqual([
        [
          ["error", "auth_error.blocked_user", []],
          ["notification", "auth_error.blocked_user.notice", []],
        ],
        1,
        0,
      ])
    },
  )
  told(
    "echoes what was wrong with its parameters [field execution.parameters_errors] [field validation.ctx] " +
      "[field validation.input]",
    function* (caller) {
      const started = yield* caller.start("", { parameters: { username: "", password: "abc" } })
      const state = yield* caller.read(textField(started, "execution_id"))
      shows(started, { status: 202 })
      shows(state, {
        status: 200,
        parameters_errors: [
          {
            loc: ["username"],
            msg: '"" must NOT have fewer than 1 characters',
            type: "value_error.minLength",
            input: "",
            ctx: { given: "" },
          },
          {
            loc: ["password"],
            msg: '"abc" must NOT have fewer than 4 characters',
            type: "value_error.minLength",
            input: "abc",
            ctx: { given: "abc" },
          },
        ],
      })
    },
  )
})

ofTheService("a running execution", (told) => {
  told("shows what it can and no more [readExecution 202]", function* (caller) {
    const started = yield* caller.start("queue-60")
    yield* TestClock.adjust("30 seconds")
    const same = "execution_id session_id app_id customer_id auth_origin engine_reference end_hook".split(" ")
    const state = yield* caller.read(textField(started, "execution_id"))
    shows(state, {
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
        features: ["accounts_read", "cards_read", "customer_information_read"].map((code) => ({
          code,
          status_reason: "FEATURE_ACCEPTED",
        })),
        messages: [],
      },
    })
  })
})

ofTheService("an acceptance", (told) => {
  told(
    "carries these fields [startExecution 202] [move 1] [field acceptance.app_id] " +
      "[field acceptance.customer_id] [field acceptance.auth_origin] [field acceptance.engine_reference] " +
      "[field acceptance.status_reason] [field acceptance.status_code] [field acceptance.execution_id] " +
      "[field acceptance.session_id] [field acceptance.external_execution_id] [field start.customer_id] " +
      "[field start.external_execution_id] [field start.engine_reference] [auth-rule 6]",
    function* (caller) {
      const started = yield* caller.start("queue-60", { external_execution_id: "x-1", customer_id: "" })
      shows(started, {
        status: 202,
        json: {
          app_id: "65f0c0ffee00000000000001",
          customer_id: "",
          auth_origin: "app-secret",
          engine_reference: "sandbox-bank:website",
          status_reason: "ACCEPTED",
          status_code: "ONGOING",
          execution_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
          session_id: expect.stringMatching(/^[0-9a-f]{24}$/),
          external_execution_id: "x-1",
        },
      })
    },
  )
  told("carries a session_token on request only [field acceptance.session_token]", function* (caller) {
    const plain = yield* caller.start("queue-60")
    const asked = yield* caller.start("queue-60+session-token", { customer_id: "c-2" })
    shows(plain, { session_token: undefined })
    shows(asked, { session_token: expect.stringMatching(/^[0-9a-f]{64}$/) })
  })
  told(
    "of a run in flight is its own, and nothing is created [startExecution 409] [error 3] [limit 6] " +
      "[reason ALREADY_EXECUTING] [state TEMPORARY_ERROR]",
    function* (caller) {
      const first = yield* caller.start("queue-60", { external_execution_id: "x-1" })
      const statuses = []
      for (const more of [
        {},
        { external_execution_id: "x-1" },
        { external_execution_id: "x-1", engine_reference: "sandbox-tax:website" },
      ]) {
        const refused = yield* caller.start("queue-60", more)
        statuses.push(refused.status)
        shows(refused, {
          json: {
            ...usualStart,
            execution_id: field(first, "execution_id"),
            session_id: field(first, "session_id"),
            external_execution_id: "x-1",
            status_code: "TEMPORARY_ERROR",
            status_reason: "ALREADY_EXECUTING",
          },
        })
      }
      for (const [more, secret] of [
        [{ external_execution_id: "x-2" }, "sandbox-app-1"],
        [{ customer_id: "c-2" }, "sandbox-app-1"],
        [{ customer_id: "c-2", external_execution_id: "x-9" }, "sandbox-app-1"],
        [{ engine_reference: "sandbox-tax:website" }, "sandbox-app-1"],
        [{}, "sandbox-app-2"],
      ] as const) {
        statuses.push((yield* caller.start("queue-60", more, secret)).status)
      }
      expect(statuses).toEqual([409, 409, 409, 202, 202, 409, 202, 202])
    },
  )
})

ofTheService("the profile of a run", (told) => {
  told(
    "is available as soon as it was read, in this service's own shape [readProfile 200] [readProfile 404]",
    function* (caller) {
      const started = yield* caller.start("queue-10+run-10+records-3")
      const id = textField(started, "execution_id")
      const early = yield* caller.call("GET", caller.profileUrl(id))
      yield* TestClock.adjust(30_000)
      const profile = yield* caller.call("GET", caller.profileUrl(id))
      const without = yield* caller.start("queue-0+run-0", { features: ["accounts_read"] })
      const none = yield* caller.call("GET", caller.profileUrl(textField(without, "execution_id")))
      const nobody = yield* caller.call("GET", caller.profileUrl("nobody"))
      expect([early, profile, none, nobody].map(({ status }) => status)).toEqual([404, 200, 404, 404])
      const results = yield* caller.results(textField(started, "session_id"))
      shows(profile, {
        json: {
          shape: "nightjar-sandbox",
          execution_id: id,
          session_id: field(started, "session_id"),
          customer_id: "c-1",
          is_closed: true,
          profile: field(results, "data", "customer_information", 0),
        },
      })
    },
  )
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

const countedIn = (data: unknown): Readonly<Record<string, number>> => {
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
    const counted = results.status === 200 ? countedIn(field(results, "data")) : {}
    expect([results.status === 200 || results.status === 412, field(state, "products_count")]).toEqual([
      true,
      counted,
    ])
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
    { numRuns: 40 },
  )
})
