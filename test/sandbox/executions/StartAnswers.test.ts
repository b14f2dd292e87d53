/**
 * What a start and its state say and do not say: no external id where nothing exists, defaults of every setting
 * in its form, the fields that are at fault, and a fingerprint only beside a verdict.
 */
import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { ofTheService } from "../server/BothWays.ts"
import { Caller, field, textField } from "../server/Caller.ts"

const names = (value: unknown): ReadonlyArray<string> =>
  typeof value === "object" && value !== null ? Object.keys(value).toSorted() : []
const list = (value: unknown): ReadonlyArray<unknown> => (Array.isArray(value) ? value : [])

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
    Effect.gen(function* () {
      const caller = yield* Caller
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
    }),
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
    "shows the default of every setting, at every engine [setting cards_read.filter_by_type]",
    Effect.gen(function* () {
      const caller = yield* Caller
      const engines = yield* caller.call("GET", `${caller.base_url}/config/engines/list`)
      const seen = new Set<string>()
      for (const engine of list(engines.json)) {
        const url = `${caller.base_url}/config/engines/${textField(engine, "reference")}`
        for (const feature of list(field(yield* caller.call("GET", url), "features"))) {
          const code = textField(feature, "code")
          const expected = Object.entries(settings).find(([known]) => known === code)?.[1] ?? {}
          seen.add(code)
          const shown = Object.keys(expected).map((name) => [
            name,
            field(feature, "configurations", "properties", name, "default"),
          ])
          expect([url, code, Object.fromEntries(shown)]).toEqual([url, code, expected])
        }
      }
      expect(Object.keys(settings).filter((code) => !seen.has(code))).toEqual([])
    }),
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
      const located = (kind: string) => list(field(state, kind)).map((item) => field(item, "loc"))
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
    Effect.gen(function* () {
      expect(yield* ended("end-INCORRECT_PARAMETERS_FORMAT", { features })).toEqual({
        working: [],
        state: [200, "INCORRECT_PARAMETERS_FORMAT"],
        parameters: [["username"], ["password"]],
        configurations: [],
      })
    }),
  )
  told(
    "names the settings that its source refused [reason BAD_CONFIGURATIONS] " +
      "[field execution.configurations_errors] [readExecution 200]",
    Effect.gen(function* () {
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
    }),
  )
  told(
    "names nothing if the fault is the platform's [reason BAD_PROXY_CONFIGURATION]",
    Effect.gen(function* () {
      const { parameters, configurations } = yield* ended("end-BAD_PROXY_CONFIGURATION", {})
      expect([parameters, configurations]).toEqual([[], []])
    }),
  )
})

ofTheService("the fingerprint of a login", (told) => {
  told(
    "stands beside a verdict and never beside `not-performed` [field execution.locking_hash] " +
      "[field execution.authentication_status]",
    Effect.gen(function* () {
      const caller = yield* Caller
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
    }),
  )
})
