/** What a start may not carry (4.1), and what it and its state say and do not say. */
import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { engineOf, readFeature, windows } from "../engines/ReadFeature.ts"
import { Caller, field, fieldsOf, itemsOf, ofTheService, pick } from "../server/Caller.ts"
import { shows, textField } from "../server/Caller.ts"

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

ofTheService("the form of a feature", (it) => {
  it("shows the default of every setting, and nothing where there is none, at every engine [setting cards_read.filter_by_type] [settings none]", function* (caller) {
    const engines = yield* caller.call("GET", `${caller.base_url}/config/engines/list`)
    const seen = new Set<string>()
    const empty = { type: "object", format: "cg-configs", properties: {} }
    for (const engine of itemsOf(engines.json)) {
      const url = `${caller.base_url}/config/engines/${textField(engine, "reference")}`
      for (const feature of itemsOf(yield* caller.call("GET", url), "features")) {
        const code = textField(feature, "code")
        seen.add(code)
        const expected: object | undefined = Object.entries(settings).find(([known]) => known === code)?.[1]
        const form = field(feature, "configurations")
        const shown = Object.keys(expected ?? {}).map((name) => [
          name,
          field(form, "properties", name, "default"),
        ])
        if (expected === undefined) expect([url, code, form]).toEqual([url, code, empty])
        else expect([url, code, Object.fromEntries(shown)]).toEqual([url, code, expected])
      }
    }
    expect(Object.keys(settings).filter((code) => !seen.has(code))).toEqual([])
  })
})

ofTheService("the state of a run whose request is at fault", (it) => {
  const ended = (words: string, more: Readonly<Record<string, unknown>>) =>
    Effect.gen(function* () {
      const caller = yield* Caller
      const id = yield* caller.begin(`queue-1+run-1+end-${words}`, more)
      expect((yield* caller.read(id)).text).not.toContain("_errors")
      yield* TestClock.adjust("2 seconds")
      const state = yield* caller.read(id)
      shows(state, { status: 200, status_reason: words })
      return ["parameters_errors", "configurations_errors"].map((kind) =>
        itemsOf(state, kind).map((item) => field(item, "loc")),
      )
    })
  const features = ["customer_information_read", { code: "accounts_read", configurations: {} }]
  const settingsOf = (...of: ReadonlyArray<string | number>) =>
    of.map((feature) => ["features", feature, "configurations"])

  for (const [reason, tag, more, expected] of [
    [
      "INCORRECT_PARAMETERS_FORMAT",
      "[field execution.parameters_errors]",
      { features },
      [[["username"], ["password"]], []],
    ],
    ["BAD_CONFIGURATIONS", "[field execution.configurations_errors]", { features }, [[], settingsOf(0, 1)]],
    [
      "BAD_CONFIGURATIONS",
      "where it names no features",
      {},
      [[], settingsOf("accounts_read", "cards_read", "customer_information_read")],
    ],
    ["BAD_PROXY_CONFIGURATION", "which is the platform's fault", {}, [[], []]],
  ] as const)
    it(`names what its source refused once it ends with ${reason} ${tag} [reason ${reason}] [readExecution 200]`, function* () {
      expect(yield* ended(reason, more)).toEqual(expected)
    })
})

// Everything that breaks the reference's own types, enumerations or limits is named with its place.

const flags = Object.entries(settings).flatMap(([code, names_]) =>
  Object.entries(names_).flatMap(([name, value]) =>
    typeof value === "boolean" ? [[code, name] as const] : [],
  ),
)

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

ofTheService("a start", (it) => {
  for (const [code, name, value, type] of malformed) {
    it(`whose ${code}.${name} is ${JSON.stringify(value)} is malformed [startExecution 422] [setting ${code}.${name}]${name === "filter_by_type" ? " [limit 8]" : ""}`, function* (caller) {
      const features = ["loans_read", { code, configurations: { [name]: value } }]
      const refused = yield* caller.start("ok", { engine_reference: engineOf(code), features })
      const loc = ["body", "features", 1, "configurations", name]
      shows(refused, { status: 422, detail: [{ loc, msg: expect.any(String), type, input: value }] })
    })
  }

  it(`names every wrong feature: codes outside of the enumeration, items of a list [startExecution 422] [error 17] [error-body 2] ${fieldsOf("validation", "loc msg type input")} [field start.features]`, function* (caller) {
    const card = { filter_by_type: ["financial_card:debit", "gold"] }
    const wrong = (loc: ReadonlyArray<string | number>, msg: string, input: string) => ({
      loc: ["body", "features", ...loc],
      msg,
      type: "type_error.enum",
      input,
    })
    const features = [
      "accounts",
      { code: "cards", configurations: {} },
      { code: "cards_read", configurations: card },
    ]
    expect((yield* caller.start("ok", { features })).json).toEqual({
      detail: [
        wrong([0], "accounts is not a feature code", "accounts"),
        wrong([1, "code"], "cards is not a feature code", "cards"),
        wrong([2, "configurations", "filter_by_type", 1], `not one of ${cards.join(", ")}`, "gold"),
      ],
    })
  })

  const wrong = [
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
  ] as const
  const places = [...new Set(wrong.map(([place]) => place))].join(" ")
  it(`is malformed where a field is missing or of another kind [startExecution 422] ${fieldsOf("start", places)}`, function* (caller) {
    for (const [place, body] of wrong) {
      const refused = yield* caller.start("ok", body)
      const [first] = itemsOf(refused, "detail")
      const seen = [body, refused.status, ...itemsOf(first, "loc").slice(0, 2)]
      expect(seen).toEqual([body, 422, "body", place])
      expect(pick(first, "msg", "type").map((one) => typeof one)).toEqual(["string", "string"])
    }
  })

  it("may set what has no settings: no object, an empty one, or names that nobody knows [settings empty] [settings unlisted]", function* () {
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
  })

  it("without features runs the engine's defaults, and shows no trace of what the engine lacks [field start.features]", function* (caller) {
    for (const [more, codes] of [
      [{}, ["customer_information_read", "yearly_individual_tax"]],
      [{ features: ["cloud_resource_read", "driver_data"] }, ["driver_data"]],
      [{ features: ["driver_data", { code: "driver_data" }] }, ["driver_data"]],
      [{ features: [] }, []],
    ] as const) {
      const tax = { engine_reference: "sandbox-tax:website", ...more }
      const state = yield* caller.read(yield* caller.begin("queue-0+run-0", tax))
      expect(itemsOf(state, "features").map((one) => field(one, "code"))).toEqual(codes)
      expect(state.text).not.toContain("cloud_resource_read")
    }
  })
})
