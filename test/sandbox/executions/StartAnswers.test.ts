/**
 * What a start and its state say and do not say: no external id where nothing exists, defaults of every setting
 * in its form, the fields that are at fault, and a fingerprint only beside a verdict.
 */
import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { engineOf, readFeature, rowsOf, windows } from "../engines/ReadFeature.ts"
import { Caller, field, ofTheService, textField, shows, truth, itemsOf } from "../server/Caller.ts"

const names = (value: unknown): ReadonlyArray<string> =>
  typeof value === "object" && value !== null ? Object.keys(value).toSorted() : []
/** 2.5 */
const requiredNames = [
  "app_id",
  "auth_origin",
  "customer_id",
  "engine_reference",
  "status_code",
  "status_reason",
]

ofTheService("a start that is refused", (told) => {
  told(
    "has no field that is there only when an execution exists [startExecution 400] [startTokenized 400] " +
      "[field acceptance.external_execution_id]",
    function* (caller) {
      const external_execution_id = "x-1"
      const always = { engine_reference: "sandbox-always:website", external_execution_id }
      const ticket = { base_configurations: { tokenized_access: true }, external_execution_id }
      const token = { token_id: `t10n-${"0".repeat(32)}`, token_key: "k" }
      const answers = [
        yield* caller.start("ok", always),
        yield* caller.start("ok", ticket, "sandbox-app-2"),
        yield* caller.startTokenized(token, { external_execution_id }, "sandbox-app-2"),
      ]
      expect(answers.map(({ status, json }) => [status, names(json)])).toEqual(
        answers.map(() => [400, requiredNames]),
      )
      expect((yield* truth).executions).toEqual([])
    },
  )
})

/** 4.1, in the order of its table; what has no default has none in its form. */
const window = { from_date: "30 days ago", to_date: "today", limits_behaviour: "error" }
const cards = ["debit", "credit", "prepaid", "mixed"].map((type) => `financial_card:${type}`)
const settings = {
  accounts_read: { ...window, read_transactions: false, read_holders: false },
  credits_read: { ...window, read_transactions: false, read_holders: false },
  cards_read: { ...window, read_transactions: false, filter_by_type: cards },
  client_invoices_read: window,
  supplier_invoices_read: window,
  credit_registry_data: { preferred_type: undefined },
  driver_data: { read_point_movements: false },
  labor_check: { from_date: "12 months ago", work_life_report: true, contribution_base_report: false },
  vehicles_data: { simple_vehicle_report: false },
  yearly_individual_tax: { last_n_years: 3 },
}

ofTheService("the form of a feature", (told) => {
  told(
    "shows the default of every setting, and nothing where there is none, at every engine " +
      "[setting cards_read.filter_by_type] [settings none]",
    function* (caller) {
      const engines = yield* caller.call("GET", `${caller.base_url}/config/engines/list`)
      const seen = new Set<string>()
      for (const engine of itemsOf(engines.json)) {
        const url = `${caller.base_url}/config/engines/${textField(engine, "reference")}`
        for (const feature of itemsOf(yield* caller.call("GET", url), "features")) {
          const code = textField(feature, "code")
          seen.add(code)
          const expected = Object.entries(settings).find(([known]) => known === code)?.[1]
          if (expected === undefined) {
            const empty = { type: "object", format: "cg-configs", properties: {} }
            expect([url, code, field(feature, "configurations")]).toEqual([url, code, empty])
            continue
          }
          const shown = Object.keys(expected).map((name) => [
            name,
            field(feature, "configurations", "properties", name, "default"),
          ])
          expect([url, code, Object.fromEntries(shown)]).toEqual([url, code, expected])
        }
      }
      expect(Object.keys(settings).filter((code) => !seen.has(code))).toEqual([])
    },
  )
})

ofTheService("the state of a run whose request is at fault", (told) => {
  const ended = (words: string, more: Readonly<Record<string, unknown>>) =>
    Effect.gen(function* () {
      const caller = yield* Caller
      const id = textField(yield* caller.start(`queue-1+run-1+${words}`, more), "execution_id")
      const working = yield* caller.read(id)
      yield* TestClock.adjust("2 seconds")
      const state = yield* caller.read(id)
      const located = (kind: string) => itemsOf(state, kind).map((item) => field(item, "loc"))
      return {
        working: names(working.json).filter((name) => name.endsWith("_errors")),
        state: [state.status, field(state, "status_reason")],
        parameters: located("parameters_errors"),
        configurations: located("configurations_errors"),
      }
    })
  const features = ["customer_information_read", { code: "accounts_read", configurations: {} }]

  told(
    "names every field of the login once its source refused their format " +
      "[reason INCORRECT_PARAMETERS_FORMAT] [field execution.parameters_errors] [readExecution 200]",
    function* () {
      expect(yield* ended("end-INCORRECT_PARAMETERS_FORMAT", { features })).toEqual({
        working: [],
        state: [200, "INCORRECT_PARAMETERS_FORMAT"],
        parameters: [["username"], ["password"]],
        configurations: [],
      })
    },
  )
  told(
    "names the settings that its source refused [reason BAD_CONFIGURATIONS] " +
      "[field execution.configurations_errors] [readExecution 200]",
    function* () {
      expect(yield* ended("end-BAD_CONFIGURATIONS", { features })).toEqual({
        working: [],
        state: [200, "BAD_CONFIGURATIONS"],
        parameters: [],
        configurations: [
          ["features", 0, "configurations"],
          ["features", 1, "configurations"],
        ],
      })
      expect((yield* ended("end-BAD_CONFIGURATIONS", { customer_id: "c-2" })).configurations).toEqual([
        ["features", "accounts_read", "configurations"],
        ["features", "cards_read", "configurations"],
        ["features", "customer_information_read", "configurations"],
      ])
    },
  )
  told("names nothing if the fault is the platform's [reason BAD_PROXY_CONFIGURATION]", function* () {
    const { parameters, configurations } = yield* ended("end-BAD_PROXY_CONFIGURATION", {})
    expect([parameters, configurations]).toEqual([[], []])
  })
})

ofTheService("the fingerprint of a login", (told) => {
  told(
    "stands beside a verdict and never beside `not-performed` [field execution.locking_hash] " +
      "[field execution.authentication_status]",
    function* (caller) {
      const look = (words: string, interaction: boolean, seconds: number) =>
        Effect.gen(function* () {
          const started = yield* caller.start(`queue-1+run-2+${words}`, {
            customer_id: `${words}-${interaction}`,
            base_configurations: { customer_interaction_available: interaction },
          })
          const id = textField(started, "execution_id")
          yield* TestClock.adjust(`${seconds} seconds`)
          if (seconds === 4) yield* caller.abort(id)
          const state = yield* caller.read(id)
          return [
            field(state, "status_reason"),
            field(state, "authentication_status"),
            field(state, "locking_hash") === undefined ? "none" : "there",
          ]
        })
      expect([
        yield* look("challenge-1", false, 10),
        yield* look("challenge-1+by-accounts_read", false, 10),
        yield* look("challenge-1+expire-5", true, 20),
        yield* look("challenge-1", true, 4),
        yield* look("end-BLOCKED_USER", false, 10),
        yield* look("ok", false, 10),
      ]).toEqual([
        ["CUSTOMER_INTERVENTION_REQUIRED", "not-performed", "none"],
        ["CUSTOMER_INTERVENTION_REQUIRED", "AUTH_OK", "there"],
        ["ACTION_TIMEOUT", "not-performed", "none"],
        ["CLIENT_CANCELLED", "not-performed", "none"],
        ["BLOCKED_USER", "BLOCKED_USER", "there"],
        ["COMPLETED", "AUTH_OK", "there"],
      ])
    },
  )
})

// What a start may not carry (section 4.1): everything that breaks the reference's own types, enumerations or
// limits is named with its place, and creates nothing.

const flags = [
  ["accounts_read", "read_transactions"],
  ["accounts_read", "read_holders"],
  ["credits_read", "read_transactions"],
  ["credits_read", "read_holders"],
  ["cards_read", "read_transactions"],
  ["driver_data", "read_point_movements"],
  ["labor_check", "work_life_report"],
  ["labor_check", "contribution_base_report"],
  ["vehicles_data", "simple_vehicle_report"],
] as const

const malformed: ReadonlyArray<readonly [string, string, unknown, string]> = [
  ...windows.flatMap(
    (code) =>
      [
        [code, "from_date", "soon", "value_error.date"],
        [code, "from_date", "2026-02-30", "value_error.date"],
        [code, "to_date", 20_261_121, "value_error.date"],
        [code, "limits_behaviour", "ignore", "type_error.enum"],
      ] as const,
  ),
  ...flags.map(([code, name]) => [code, name, "true", "type_error.bool"] as const),
  ["labor_check", "from_date", "", "value_error.date"],
  ["cards_read", "filter_by_type", [], "value_error.list.min_items"],
  ["cards_read", "filter_by_type", "financial_card:debit", "type_error.list"],
  ["credit_registry_data", "preferred_type", "es_cirbe_detailed", "type_error.enum"],
  ["yearly_individual_tax", "last_n_years", 2.5, "type_error.integer"],
  ["yearly_individual_tax", "last_n_years", "3", "type_error.integer"],
]

ofTheService("a start", (told) => {
  for (const [code, name, value, type] of malformed) {
    told(
      `whose ${code}.${name} is ${JSON.stringify(value)} is malformed [startExecution 422] ` +
        `[setting ${code}.${name}]${name === "filter_by_type" ? " [limit 8]" : ""}`,
      function* (caller) {
        const features = ["loans_read", { code, configurations: { [name]: value } }]
        const refused = yield* caller.start("ok", { engine_reference: engineOf(code), features })
        shows(refused, {
          status: 422,
          detail: [
            {
              loc: ["body", "features", 1, "configurations", name],
              msg: expect.any(String),
              type,
              input: value,
            },
          ],
        })
      },
    )
  }

  told(
    "names every wrong feature: codes outside of the enumeration, items of a list [startExecution 422] " +
      "[error 17] [error-body 2] " +
      "[field validation.loc] [field validation.msg] [field validation.type] [field validation.input] " +
      "[field start.features]",
    function* (caller) {
      const refused = yield* caller.start("ok", {
        features: [
          "accounts",
          { code: "cards", configurations: {} },
          { code: "cards_read", configurations: { filter_by_type: ["financial_card:debit", "gold"] } },
        ],
      })
      shows(refused, {
        status: 422,
        json: {
          detail: [
            {
              loc: ["body", "features", 0],
              msg: "accounts is not a feature code",
              type: "type_error.enum",
              input: "accounts",
            },
            {
              loc: ["body", "features", 1, "code"],
              msg: "cards is not a feature code",
              type: "type_error.enum",
              input: "cards",
            },
            {
              loc: ["body", "features", 2, "configurations", "filter_by_type", 1],
              msg:
                "not one of financial_card:debit, financial_card:credit, financial_card:prepaid, " +
                "financial_card:mixed",
              type: "type_error.enum",
              input: "gold",
            },
          ],
        },
      })
    },
  )

  for (const [field_, body] of [
    ["engine_reference", { engine_reference: 7 }],
    ["customer_id", { customer_id: undefined }],
    ["engine_reference", { engine_reference: "nobody:website" }],
    ["customer_id", { customer_id: null }],
    ["parameters", { parameters: "in the clear" }],
    ["parameters", { parameters: ["u"] }],
    ["external_execution_id", { external_execution_id: 1 }],
    ["base_configurations", { base_configurations: { customer_interaction_available: "yes" } }],
    ["base_configurations", { base_configurations: { execution_timeout: 1_201 } }],
    ["features", { features: "accounts_read" }],
    ["features", { features: [{ configurations: {} }] }],
    ["hooks_extra_data", { hooks_extra_data: { a: 1 } }],
    ["configurations", { configurations: [] }],
  ] as const) {
    told(
      `is malformed where ${JSON.stringify(body)} [startExecution 422] [field start.${field_}]`,
      function* (caller) {
        const refused = yield* caller.start("ok", body)
        const [first] = rowsOf(field(refused, "detail"))
        const loc = first?.["loc"]
        expect([refused.status, Array.isArray(loc) ? loc.slice(0, 2) : loc]).toEqual([422, ["body", field_]])
        expect([typeof first?.["msg"], typeof first?.["type"]]).toEqual(["string", "string"])
      },
    )
  }

  told(
    "may set what has no settings: no object, an empty one, or names that nobody knows " +
      "[settings empty] [settings unlisted]",
    function* () {
      for (const [code, engine_reference] of [
        ["customer_information_read", "sandbox-tax:website"],
        ["academic_data", "sandbox-tax:website"],
        ["properties_data", "sandbox-tax:website"],
        ["accounts_certificates", "es-bank:api"],
      ] as const) {
        const plain = yield* readFeature(code, {}, { engine_reference })
        const set = yield* readFeature(code, { from_date: "whenever" }, { engine_reference })
        expect(field(set.state, "status_reason")).toBe("COMPLETED")
        expect(set.records).toEqual(plain.records)
      }
    },
  )

  told(
    "without features runs the engine's defaults, and lacks no trace of what the engine lacks " +
      "[field start.features]",
    function* (caller) {
      const codesOf = Effect.fnUntraced(function* (more: Readonly<Record<string, unknown>>) {
        const started = yield* caller.start("queue-0+run-0", {
          engine_reference: "sandbox-tax:website",
          ...more,
        })
        const state = yield* caller.read(textField(started, "execution_id"))
        const text = JSON.stringify(state.json)
        expect(text).not.toContain("cloud_resource_read")
        return rowsOf(field(state, "features")).map(({ code }) => code)
      })
      expect(yield* codesOf({})).toEqual(["customer_information_read", "yearly_individual_tax"])
      expect(yield* codesOf({ features: ["cloud_resource_read", "driver_data"] })).toEqual(["driver_data"])
      const twice = ["driver_data", { code: "driver_data" }]
      expect(yield* codesOf({ features: twice })).toEqual(["driver_data"])
      expect(yield* codesOf({ features: [] })).toEqual([])
    },
  )
})
