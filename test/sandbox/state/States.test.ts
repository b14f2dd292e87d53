/** Every state, reason, login verdict and feature outcome of the reference, each by its word (2.4, 3.1, 3.2). */
import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { featureStatusReasons, statusReasonsByCode } from "../../../src/service/Vocabulary.ts"
import { Caller, field, fieldsOf, itemsOf, ofTheService, person, pick, shows } from "../server/Caller.ts"
const open = new Set(["ONGOING", "ACTION_REQUIRED"])
const families = Object.entries(statusReasonsByCode)
const isLogin = (family: string) => family === "AUTH_ERROR" || family === "UNHANDLED_AUTH_ERROR"

const startAndWait = Effect.fnUntraced(function* (
  words: string,
  seconds: number,
  more: Readonly<Record<string, unknown>> = {},
) {
  const caller = yield* Caller
  const id = yield* caller.begin(words, more)
  yield* TestClock.adjust(seconds * 1000)
  return yield* caller.read(id)
})

ofTheService("a run", (it) => {
  for (const [family, reasons] of families.filter(([name]) => !open.has(name))) {
    for (const reason of reasons) {
      const auth = isLogin(family) ? ` [auth ${reason}] [move 9]` : ""
      it(`ends with ${family} / ${reason} on request [state ${family}] [reason ${reason}] [field execution.locking_hash]${auth}`, function* () {
        const state = yield* startAndWait(`queue-1+run-2+end-${reason}`, 3)
        const login = field(state, "authentication_status")
        const types = itemsOf(state, "messages").map((message) => field(message, "type"))
        const counted = (type: string) => types.filter((one) => one === type).length
        shows(state, {
          status: 200,
          status_code: family,
          status_reason: reason,
          is_closed: true,
          date_ended: "2026-11-21T09:00:03.000Z",
          execution_time: 2,
          running_time: 2,
          total_elapsed_time: 3,
          warnings_count: counted("warning"),
          errors_count: family === "COMPLETED" || family === "PARTIAL" ? 0 : 1,
        })
        expect(counted("error")).toBe(field(state, "errors_count"))
        expect(field(state, "locking_hash") === undefined).toBe(login === "not-performed")
        expect(isLogin(family) ? [reason] : ["AUTH_OK", "not-performed"]).toContain(login)
      })
    }
  }

  for (const [reason, words, seconds, auth] of [
    ["ACCEPTED", "queue-60", 30, "not-performed"],
    ["WAITING", "queue-0+run-600", 1, "not-performed"],
    ["RUNNING", "queue-0+run-600", 60, "AUTH_OK"],
    ["ASYNC_WAIT", "queue-0+run-0+async-600", 60, "AUTH_OK"],
  ] as const) {
    it(`is ${reason} while it is running [state ONGOING] [reason ${reason}] [auth ${auth}] [readExecution 202] [field execution.next_kick_date]`, function* () {
      const state = yield* startAndWait(words, seconds)
      shows(state, {
        status: 202,
        status_code: "ONGOING",
        status_reason: reason,
        authentication_status: auth,
        is_closed: false,
        date_ended: undefined,
        next_kick_date: reason === "ASYNC_WAIT" ? "2026-11-21T09:10:00.000Z" : undefined,
      })
    })
    it(`stays ${reason}if that is its end, and never closes by itself [reason ${reason}]`, function* () {
      const state = yield* startAndWait(`queue-0+run-10+end-${reason}`, 1_000)
      expect([state.status, field(state, "status_reason")]).toEqual([202, reason])
    })
  }

  for (const [reason, words] of [
    ["MFA_REQUIRED", "challenge-4711"],
    ["INPUT_REQUIRED", "input-4711"],
  ] as const) {
    it(`waits for a person with ${reason}, and HEAD says so too [state ACTION_REQUIRED] [reason ${reason}] [readExecution 423] [pollExecution 423]`, function* (caller) {
      for (const said of [`queue-0+run-10+${words}`, `queue-0+run-10+end-${reason}`]) {
        const id = yield* caller.begin(said, { ...person, customer_id: said })
        yield* TestClock.adjust(10_000)
        const state = yield* caller.read(id)
        const asked = Object.keys(Object(field(state, "form_schema", "properties")))
        expect(asked).toEqual(reason === "MFA_REQUIRED" ? ["code"] : ["delivery", "code"])
        shows(yield* caller.call("HEAD", caller.executionUrl(id)), { status: 423, text: "" })
      }
    })
  }

  const times = "date_created date_started date_ended execution_time running_time total_elapsed_time"
  it(`is accepted, takes its time, and tells each of its times [move 1] ${fieldsOf("execution", times)}`, function* (caller) {
    const id = yield* caller.begin("queue-10+run-20+challenge-1", person)
    expect(field(yield* caller.read(id), "date_started")).toBeUndefined()
    yield* TestClock.adjust(42_000)
    yield* caller.resume(id, { code: "1" })
    yield* TestClock.adjust(60_000)
    expect(pick(yield* caller.read(id), ...times.split(" "))).toEqual([
      ...["00:00.000", "00:10.000", "01:00.300"].map((at) => `2026-11-21T09:${at}Z`),
      20,
      50,
      60.3,
    ])
  })

  it("continues once its login was accepted, and only then begins to extract [move 8] [auth AUTH_OK] [auth not-performed]", function* (caller) {
    const id = yield* caller.begin("queue-0+run-20+records-9")
    const seen = []
    for (const ms of [1_999, 1, 18_000]) {
      yield* TestClock.adjust(ms)
      const state = yield* caller.read(id)
      const counts = Object.values(Object(field(state, "products_count"))).map(Number)
      const sum = counts.reduce((total, count) => total + count, 0)
      seen.push([...pick(state, "status_reason", "authentication_status"), sum])
    }
    expect(seen).toEqual([
      ["WAITING", "not-performed", 0],
      ["RUNNING", "AUTH_OK", 0],
      ["COMPLETED", "AUTH_OK", 9],
    ])
  })

  it("is open while it waits for a person: nobody else starts, and nothing is deleted [state ACTION_REQUIRED]", function* (caller) {
    const id = yield* caller.begin("queue-0+run-20+challenge-1+expire-60", person)
    yield* TestClock.adjust(50_000)
    shows(yield* caller.read(id), { status: 423 })
    shows(yield* caller.start("ok", person), { status: 409, execution_id: id })
    shows(yield* caller.remove(id), { status: 409 })
    yield* TestClock.adjust(12_000)
    shows(yield* caller.read(id), { status: 200 })
    shows(yield* caller.start("ok", person), { status: 202 })
  })

  it("that works longer than execution_timeout is aborted, at 1200 seconds where none is given [move 10] [reason TIMEOUT] [limit 3] [field base.execution_timeout]", function* (caller) {
    const ends = []
    for (const [words, base_configurations] of [
      ["queue-0+run-1200", {}],
      ["queue-0+run-1201", {}],
      ["queue-0+run-60", { execution_timeout: 60 }],
      ["queue-0+run-61", { execution_timeout: 60 }],
      ["queue-0+run-60+async-600", { execution_timeout: 60 }],
    ] as const) {
      ends.push(field(yield* startAndWait(words, 1_201, { base_configurations }), "status_reason"))
    }
    expect(ends).toEqual(["COMPLETED", "TIMEOUT", "COMPLETED", "TIMEOUT", "COMPLETED"])
    for (const execution_timeout of [59, 1_201, 90.5, "60"]) {
      expect((yield* caller.start("ok", { base_configurations: { execution_timeout } })).status).toBe(422)
    }
  })
})

const outcomesWhileOpen = new Set(["ACCEPTED", "WAITING", "RUNNING", "ASYNC_WAIT", "ACTION_REQUIRED"])

ofTheService("a feature", (it) => {
  for (const outcome of featureStatusReasons) {
    const word = outcome.replace("FEATURE_", "")
    it(`has the outcome ${outcome} on request [feature ${outcome}] [field feature-state.status_reason]`, function* () {
      const words = `queue-0+run-100+records-6+feature-${word}`
      const whileOpen = outcomesWhileOpen.has(word)
      const state = yield* startAndWait(words, whileOpen ? 50 : 100)
      const shown = itemsOf(state, "features").map((feature) => field(feature, "status_reason"))
      expect([shown.length, shown.at(-1)]).toEqual([3, outcome])
      if (whileOpen) return
      const records = { FEATURE_COMPLETED: 2, FEATURE_PARTIAL: 1 }[String(outcome)]
      shows(state, {
        status_reason: outcome === "FEATURE_COMPLETED" ? "COMPLETED" : "PARTIAL",
        "products_count.customer_information:user_profile@customer_information": records,
        warnings_count: records === 2 ? 0 : 1,
      })
      expect(shown.slice(0, 2)).toEqual(["FEATURE_COMPLETED", "FEATURE_COMPLETED"])
    })
  }

  it("that failed alone leaves a run with nothing retrieved [reason FAILED] [feature FEATURE_DISABLED] [field feature-state.code] [field feature-state.status_message]", function* () {
    const more = { features: ["accounts_read"] }
    const state = yield* startAndWait("queue-0+run-0+feature-DISABLED", 0, more)
    shows(state, {
      status_reason: "FAILED",
      products_count: {},
      features: [
        {
          code: "accounts_read",
          status_reason: "FEATURE_DISABLED",
          status_message: "La fuente no ha dado todos los datos.",
        },
      ],
    })
  })

  for (const [outcome, words, seconds] of [
    ["FEATURE_ACCEPTED", "queue-60", 1],
    ["FEATURE_WAITING", "queue-0+run-100", 1],
    ["FEATURE_RUNNING", "queue-0+run-100", 20],
    ["FEATURE_ASYNC_WAIT", "queue-0+run-0+async-60", 1],
    ["FEATURE_COMPLETED", "queue-0+run-10", 10],
    ["FEATURE_TIMEOUT", "queue-0+run-10+end-TIMEOUT+records-0", 10],
    ["FEATURE_ABORTED", "queue-0+run-10+end-SYSTEM_CANCELLED+records-0", 10],
    ["FEATURE_TEMPORARY_ERROR", "queue-0+run-10+end-NETWORK_ERROR", 10],
    ["FEATURE_INTERNAL_ERROR", "queue-0+run-10+end-INTERNAL_ERROR+records-0", 10],
    ["FEATURE_CONFIGURATION_ERROR", "queue-0+run-10+end-BAD_PROXY_CONFIGURATION", 10],
    ["FEATURE_ACTION_REJECTED", "queue-0+run-10+end-INCORRECT_MFA", 10],
    ["FEATURE_CUSTOMER_INTERVENTION_REQUIRED", "queue-0+run-10+challenge-1", 10],
    ["FEATURE_INCORRECT_PARAMETERS_FORMAT", "queue-0+run-10+end-INCORRECT_PARAMETERS_FORMAT", 10],
  ] as const) {
    it(`shows ${outcome} when that is what happens to its run [feature ${outcome}] [field execution.features]`, function* () {
      const state = yield* startAndWait(words, seconds)
      expect(itemsOf(state, "features").map((feature) => field(feature, "status_reason"))).toEqual(
        Array.from({ length: 3 }, () => outcome),
      )
    })
  }
})
