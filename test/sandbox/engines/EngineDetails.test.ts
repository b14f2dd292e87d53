/**
 * One engine as the service shows it, and when it cannot be run (sections 2.3, 4.1 and 4.9), over both ways to
 * reach it.
 */
import { expect } from "@effect/vitest"
import { TestClock } from "effect/testing"
import { field, ofTheService, shows, itemsOf } from "../server/Caller.ts"
import { bankForm, cloudDetails } from "./ShownEngines.ts"
import { details, reserved } from "./ReadEngines.ts"

ofTheService("one engine", (told) => {
  told(
    "shows its events, its forms and its features' settings [showEngine 200] [field engine-details.events] " +
      "[field engine-details.parameters] [field engine-details.configurations] " +
      "[field engine-details.features] [field engine-feature.code] [field engine-feature.configurations]",
    function* () {
      const shown = yield* details("sandbox-bank:website")
      shows(shown, {
        status: 200,
        events: ["started", "action_required", "ended", "auth_ended"],
        "parameters.format": "cg-params",
        configurations: { type: "object", format: "cg-configs", properties: {} },
      })
      const [accounts, cards, customer] = itemsOf(shown, "features")
      expect([accounts, cards].map((feature) => field(feature, "code"))).toEqual([
        "accounts_read",
        "cards_read",
      ])
      expect(field(accounts, "configurations", "properties", "from_date", "default")).toBe("30 days ago")
      expect(customer).toEqual({
        code: "customer_information_read",
        configurations: { type: "object", format: "cg-configs", properties: {} },
      })
      const cloud = yield* details("cloud-hosting:api")
      expect(Object.keys(cloudDetails).map((name) => [name, field(cloud, name)])).toEqual(
        Object.entries(cloudDetails),
      )
    },
  )

  told(
    "has a form with everything that a form may have [field form.properties] [field form.type] " +
      "[field form.format] [field form.$defs] [field form.required] [field form.x-meta] " +
      "[field x-meta.instructions_title] [field x-meta.instructions_text] [field x-meta.submit_button_text] " +
      "[field x-meta.locking_fields] [field x-meta.hidden_fields] [field x-meta.lazy_fields]",
    function* () {
      const bank = field(yield* details("es-bank:api"), "parameters")
      expect(bank).toEqual(bankForm)
      expect(field(yield* details("es-traffic:website"), "parameters", "x-meta")).toEqual({
        instructions_title: "Acceso",
        instructions_text: "Sandbox: behaviour words are read from alias.",
        submit_button_text: "Continuar",
        locking_fields: ["nif"],
        hidden_fields: ["alias"],
        lazy_fields: ["contact_date"],
      })
    },
  )

  for (const [reference, detail] of reserved) {
    told(
      `that is there and cannot be run, ${reference}, is unavailable in details and at start, never unknown ` +
        "[showEngine 503] [startExecution 503] [error 4]",
      function* (caller) {
        const shown = yield* details(reference)
        const started = yield* caller.start("ok", { engine_reference: reference })
        shows(shown, { status: 503, json: { detail } })
        shows(started, { status: 503, json: { detail } })
      },
    )
  }

  told("that is enabled for one application is unavailable for another [showEngine 503]", function* () {
    const ours = yield* details("sandbox-private:website")
    const theirs = yield* details("sandbox-private:website", "sandbox-app-2")
    shows(ours, { status: 200 })
    shows(theirs, { status: 503, json: { detail: "engine not enabled for this application" } })
  })

  told(
    "closes for its maintenance window, for starts but not for runs in flight [error 4]",
    function* (caller) {
      const engine = { engine_reference: "sandbox-window:website" }
      expect(field(yield* details("sandbox-window:website"), "engine_issues")).toEqual([
        "En mantenimiento del minuto 50 al 60 de cada hora (UTC).",
      ])
      const before = yield* caller.start("queue-0+run-3300", {
        ...engine,
        base_configurations: { execution_timeout: 1200 },
      })
      yield* TestClock.adjust("50 minutes")
      const shown = yield* details("sandbox-window:website")
      const refused = yield* caller.start("ok", { ...engine, customer_id: "c-2" })
      shows(before, { status: 202 })
      shows(shown, { status: 503 })
      shows(refused, { status: 503, json: { detail: "engine in maintenance" } })
      const state = yield* caller.read(String(field(before, "execution_id")))
      expect([state.status, field(state, "status_reason")]).toEqual([200, "TIMEOUT"])
      yield* TestClock.adjust("10 minutes")
      expect((yield* caller.start("ok", { ...engine, customer_id: "c-2" })).status).toBe(202)
    },
  )

  told(
    "that does not exist, or not on that channel, is unknown; what is no reference is malformed " +
      "[showEngine 404] [showEngine 422] [error 15] [error 16] [error-body 1] [error-body 2]",
    function* () {
      const unknown = yield* details("nobody:website")
      const channel = yield* details("sandbox-bank:mobile")
      shows(unknown, { status: 404, json: { detail: "no such engine" } })
      shows(channel, { status: 404, json: { detail: "no such channel of this engine" } })
      for (const text of ["sandbox-bank", "Sandbox-Bank:website", "a b:website", "x:"]) {
        const malformed = yield* details(text)
        shows(malformed, {
          status: 422,
          json: {
            detail: [
              { loc: ["path", "engine_reference"], msg: "not an engine reference", type: "value_error" },
            ],
          },
        })
      }
    },
  )

  told(
    "that needs a person at every run is not started without one [startExecution 400] [error 1]",
    function* (caller) {
      const refused = yield* caller.start("ok", { engine_reference: "sandbox-always:website" })
      shows(refused, {
        status: 400,
        json: {
          app_id: "65f0c0ffee00000000000001",
          auth_origin: "app-secret",
          customer_id: "c-1",
          engine_reference: "sandbox-always:website",
          status_code: "ABORTED",
          status_reason: "CUSTOMER_INTERVENTION_REQUIRED",
        },
      })
    },
  )

  told(
    "with settings of its own closes a run that lacks them [field start.configurations] " +
      "[reason BAD_CONFIGURATIONS] [field execution.configurations_errors]",
    function* (caller) {
      const engine = { engine_reference: "sandbox-settings:website" }
      const bare = yield* caller.start("queue-0+run-0", engine)
      const state = yield* caller.read(String(field(bare, "execution_id")))
      shows(bare, { status: 202 })
      shows(state, {
        status: 200,
        configurations_errors: [
          { loc: ["branch"], msg: "must have required property 'branch'", type: "missing" },
        ],
      })
      const told = yield* caller.start("queue-0+run-0", { ...engine, configurations: { branch: "0049" } })
      const good = yield* caller.read(String(field(told, "execution_id")))
      expect(field(good, "status_reason")).toBe("COMPLETED")
    },
  )

  told(
    "judges its features by its own forms, after the acceptance [field engine-feature.configurations] " +
      "[readExecution 200] [state CONFIGURATION_ERROR] [field execution.configurations_errors]",
    function* (caller) {
      const shown = yield* details("es-tax-agency:website")
      const form = itemsOf(shown, "features")[1]
      shows(form, {
        code: "yearly_individual_tax",
        "configurations.properties.last_n_years.maximum": 5,
        "configurations.properties.filing.enum": ["individual", "joint", "any"],
      })
      const configurations = { last_n_years: 6, filing: "alone" }
      const started = yield* caller.start("queue-0+run-0", {
        engine_reference: "es-tax-agency:website",
        features: ["properties_data", { code: "yearly_individual_tax", configurations }],
      })
      const state = yield* caller.read(String(field(started, "execution_id")))
      const named = itemsOf(state, "configurations_errors").map((error) => field(error, "loc"))
      expect([started.status, state.status, field(state, "status_reason"), named]).toEqual([
        202,
        200,
        "BAD_CONFIGURATIONS",
        ["last_n_years", "filing"].map((name) => ["features", 1, "configurations", name]),
      ])
    },
  )
})
