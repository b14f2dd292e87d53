/**
 * What a start may not carry (section 4.1): everything that breaks the reference's own types, enumerations or
 * limits is named with its place, and creates nothing.
 */
import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { ofTheService } from "../server/BothWays.ts"
import { Caller, field, textField } from "../server/Caller.ts"
import { engineOf, readFeature, rowsOf, windows } from "../engines/ReadFeature.ts"

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
      Effect.gen(function* () {
        const caller = yield* Caller
        const features = ["loans_read", { code, configurations: { [name]: value } }]
        const refused = yield* caller.start("ok", { engine_reference: engineOf(code), features })
        expect([refused.status, field(refused, "detail")]).toEqual([
          422,
          [
            {
              loc: ["body", "features", 1, "configurations", name],
              msg: expect.any(String),
              type,
              input: value,
            },
          ],
        ])
      }),
    )
  }

  told(
    "names every wrong feature: codes outside of the enumeration, items of a list [startExecution 422] " +
      "[error 17] [error-body 2] " +
      "[field validation.loc] [field validation.msg] [field validation.type] [field validation.input] " +
      "[field start.features]",
    Effect.gen(function* () {
      const caller = yield* Caller
      const refused = yield* caller.start("ok", {
        features: [
          "accounts",
          { code: "cards", configurations: {} },
          { code: "cards_read", configurations: { filter_by_type: ["financial_card:debit", "gold"] } },
        ],
      })
      expect([refused.status, refused.json]).toEqual([
        422,
        {
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
      ])
    }),
  )

  for (const [field_, body] of [
    ["engine_reference", { engine_reference: 7 }],
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
      Effect.gen(function* () {
        const caller = yield* Caller
        const refused = yield* caller.start("ok", body)
        const [first] = rowsOf(field(refused, "detail"))
        const loc = first?.["loc"]
        expect([refused.status, Array.isArray(loc) ? loc.slice(0, 2) : loc]).toEqual([422, ["body", field_]])
        expect([typeof first?.["msg"], typeof first?.["type"]]).toEqual(["string", "string"])
      }),
    )
  }

  told(
    "may set what has no settings: no object, an empty one, or names that nobody knows " +
      "[settings empty] [settings unlisted]",
    Effect.gen(function* () {
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
    }),
  )

  told(
    "without features runs the engine's defaults, and lacks no trace of what the engine lacks " +
      "[field start.features]",
    Effect.gen(function* () {
      const caller = yield* Caller
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
      expect(yield* codesOf({ features: [] })).toEqual([])
    }),
  )
})
