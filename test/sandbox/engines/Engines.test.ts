/** The engines as the service lists and shows them, and when one cannot be run (2.2, 2.3, 4.1, 4.8, 4.9); their catalogue. */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { personOf } from "../../../src/sandbox/data/Person.ts"
import { ibanOf } from "../../../src/sandbox/data/PersonalRecords.ts"
import { engineDefinitions } from "../../../src/sandbox/engines/EngineCatalogue.ts"
import { isInMaintenance } from "../../../src/sandbox/engines/EngineDefinition.ts"
import { seeded } from "../../../src/sandbox/state/Reading.ts"
import { features, mainCategories } from "../../../src/service/Vocabulary.ts"
import { Caller, field, fieldsOf, itemsOf, ofTheService, pick, shows, stateOf } from "../server/Caller.ts"

const get = (path: string, secret = "sandbox-app-1") =>
  Effect.flatMap(Caller, ({ base_url, call }) =>
    call("GET", `${base_url}/config/engines/${path}`, { secret }),
  )
const list = (query = "", secret?: string) => get(`list${query}`, secret)
const details = (reference: string, secret?: string) => get(encodeURIComponent(reference), secret)
const references = (answer: unknown) => itemsOf(answer).map((engine) => field(engine, "reference"))
const listed = (query = "", secret?: string) => Effect.map(list(query, secret), references)

/** Engines that are there and cannot be run by anybody, with what the service says of each. */
const reserved = [
  ["sandbox-draft:website", "engine not published (draft)"],
  ["sandbox-implementing:api", "engine not published (implementing)"],
  ["sandbox-partial:mobile", "engine not published (partial)"],
  ["sandbox-maintenance:website", "engine in maintenance"],
  ["sandbox-production:website", "engine of the production environment"],
  ["sandbox-offline:other", "the source is not answering"],
] as const
const runnable = engineDefinitions
  .map(({ reference }) => reference)
  .filter((reference) => !reserved.some(([hidden]) => hidden === reference))

// Three engines that differ in every field of the list view, in full: a wrong value of the right type is noticed.

const colours = {
  lighter: "#f4f7f9",
  light: "#c7d8e0",
  main: "#1f6f8b",
  dark: "#143c4c",
  darker: "#0a1e26",
  contrast_text: "#ffffff",
  contrastText: "#ffffff",
}

const invented = "Datos inventados: ninguna persona real."

const engine = (reference: string, name: string, more: Readonly<Record<string, unknown>>) => {
  const [engine_code = "", engine_alternative] = reference.split(":")
  return {
    reference,
    engine_code,
    engine_alternative,
    engine_version: "2026.11.0",
    environment: "sandbox",
    status: "published",
    keywords: [engine_code, ...name.toLowerCase().split(" ")],
    color_primary: colours,
    name,
    description: `${name}, simulada por el servicio embebido.`,
    markets: ["ES"],
    languages: ["es"],
    engine_restrictions: [invented, "La fuente guarda 120 meses."],
    engine_issues: [],
    live: { last_ping_date: "2026-11-21T09:00:00.000Z" },
    is_online: true,
    website: `https://${engine_code}.invalid`,
    ...more,
  }
}

/** At nine in the morning of 21 November 2026. */
const shownEngines: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  "es-bank:api": engine("es-bank:api", "Banco Ejemplo", {
    priority: 92,
    main_category: "financial",
    sub_categories: ["financial:bank", "financial:investment"],
    engine_restrictions: [
      invented,
      "La fuente guarda 24 meses.",
      "Con datos protegidos: accounts_read, cards_read.",
    ],
    action_required_frequency: "on_first_use",
    features: [
      "accounts_read cards_read customer_information_read deposits_read loans_read credits_read",
      "investment_accounts_read funds_read stocks_read pensions_read accounts_certificates",
      "direct_debits_read source_contracts_read credit_registry_data",
    ].flatMap((codes) => codes.split(" ")),
  }),
  "es-university:website": engine("es-university:website", "Universidad de Ejemplo", {
    priority: 94,
    main_category: "public",
    sub_categories: ["public:education"],
    languages: ["es", "ca"],
    action_required_frequency: "never",
    features: ["academic_data", "customer_information_read"],
  }),
  "sandbox-window:website": engine("sandbox-window:website", "Banco con Horario", {
    priority: 82,
    main_category: "financial",
    sub_categories: ["financial:bank"],
    engine_issues: ["En mantenimiento del minuto 50 al 60 de cada hora (UTC)."],
    action_required_frequency: "rarely",
    features: ["accounts_read", "cards_read", "customer_information_read"],
  }),
}

/** The login form of `es-bank:api`, which has everything that a form may have but hidden fields. */
const bankForm = {
  type: "object",
  format: "cg-params",
  properties: {
    document_type: { $ref: "#/$defs/document_type" },
    username: { type: "string", title: "Usuario o documento", minLength: 1, maxLength: 256 },
    password: { $ref: "#/$defs/secret" },
    signature: {
      type: "string",
      title: "Firma",
      format: "password",
      minLength: 4,
      maxLength: 128,
      nullable: true,
    },
  },
  required: ["username", "password"],
  $defs: {
    document_type: { type: "string", enum: ["dni", "nie", "passport", "cif"], default: "dni" },
    secret: { type: "string", format: "password", minLength: 4, maxLength: 64 },
  },
  "x-meta": {
    instructions_title: "Acceso",
    instructions_text: "Introduzca sus datos de acceso.",
    submit_button_text: "Continuar",
    locking_fields: ["username", "document_type"],
    lazy_fields: ["signature"],
  },
}

ofTheService("the engines", (it) => {
  it("are listed if the application can run them now, and only then [listEngines 200]", function* () {
    expect(yield* listed()).toEqual(runnable)
    const without = (hidden: string) => runnable.filter((reference) => reference !== hidden)
    expect(yield* listed("", "sandbox-app-2")).toEqual(without("sandbox-private:website"))
    yield* TestClock.adjust("50 minutes")
    expect(yield* listed()).toEqual(without("sandbox-window:website"))
    yield* TestClock.adjust("10 minutes")
    expect(yield* listed()).toEqual(runnable)
  })

  // By their places in the list, so that no field is needed to find an engine.
  const shown = Effect.map(list(), (answer) =>
    Object.keys(shownEngines).map((reference) => itemsOf(answer)[runnable.indexOf(reference)]),
  )
  const names = Object.keys(shownEngines["es-bank:api"] ?? {}).join(" ")
  it(`are shown as the reference has them ${fieldsOf("engine", names)} ${fieldsOf("color", Object.keys(colours).join(" "))}`, function* () {
    expect(yield* shown).toEqual(Object.values(shownEngines))
  })

  it("say when the platform last checked their source [field live.last_ping_date]", function* () {
    const pinged = Effect.map(list(), (answer) => field(itemsOf(answer)[0], "live", "last_ping_date"))
    expect(yield* pinged).toBe("2026-11-21T09:00:00.000Z")
    yield* TestClock.adjust("9 minutes")
    expect(yield* pinged).toBe("2026-11-21T09:05:00.000Z")
  })

  for (const code of features)
    it(`offer ${code} somewhere, and the filter finds it [code ${code}] [filter features]`, function* () {
      const found = itemsOf(yield* list(`?features=${code}`))
      const offering = itemsOf(yield* list()).filter((one) => itemsOf(one, "features").includes(code))
      expect(found).toEqual(offering)
      expect(found.length).toBeGreaterThan(0)
    })

  it("are found by their main category [filter main_category]", function* () {
    const all = itemsOf(yield* list())
    for (const category of mainCategories) {
      const found = itemsOf(yield* list(`?main_category=${category}`))
      expect(found).toEqual(all.filter((engine) => field(engine, "main_category") === category))
      expect(found.length).toBeGreaterThan(0)
    }
  })

  const two = "features=loans_read&features=cloud_resource_read"
  it("are found by market, mode and presence [filter markets] [filter features_mode] [filter is_online]", function* () {
    for (const [query, found] of [
      ["markets=PT", ["cloud-hosting:api"]],
      ["markets=PT&markets=CO", ["sandbox-bank:website", "cloud-hosting:api"]],
      ["markets=FR", []],
      [two, []],
      [`${two}&features_mode=and`, []],
      [`${two}&features_mode=or`, ["es-bank:api", "cloud-hosting:api"]],
      ["features_mode=or", runnable],
      ...["true", "True", "1"].map((yes) => [`is_online=${yes}`, runnable] as const),
      ...["false", "FALSE", "0"].map((no) => [`is_online=${no}`, []] as const),
    ] as const) {
      const answer = yield* list(`?${query}`)
      expect([query, answer.status, references(answer)]).toEqual([query, 200, found])
    }
  })

  it("refuse values outside their vocabulary, each by name [listEngines 422] [error 17]", function* () {
    const wrong = {
      "markets.1": "es",
      "features.1": "loans",
      "features.2": "x",
      "features_mode.0": "xor",
      "main_category.0": "banks",
      "is_online.0": "perhaps",
    }
    const detail = Object.entries(wrong).map(([place, input]) => ({
      loc: ["query", place.slice(0, -2), Number(place.slice(-1))],
      msg: `${input} is not a permitted value`,
      type: "type_error.enum",
      input,
    }))
    const query =
      "?markets=ES&markets=es&features=loans_read&features=loans&features=x&features_mode=xor" +
      "&main_category=banks&is_online=perhaps"
    shows(yield* list(query), { status: 422, json: { detail } })
    expect(field(yield* list("?main_category=public&main_category=cloud"), "detail", 0)).toMatchObject({
      loc: ["query", "main_category"],
      input: ["public", "cloud"],
    })
  })
})

const xMeta =
  "instructions_title instructions_text submit_button_text locking_fields hidden_fields lazy_fields"

ofTheService("one engine", (it) => {
  it(`shows its events, its forms and its features' settings [showEngine 200] ${fieldsOf("engine-details", "events parameters configurations features")} ${fieldsOf("engine-feature", "code configurations")}`, function* () {
    const none = { type: "object", format: "cg-configs", properties: {} }
    const bank = yield* details("sandbox-bank:website")
    shows(bank, {
      status: 200,
      events: ["started", "action_required", "ended", "auth_ended"],
      "parameters.format": "cg-params",
      configurations: none,
      "features.0.code": "accounts_read",
      "features.0.configurations.properties.from_date.default": "30 days ago",
      "features.1.code": "cards_read",
      "features.2": { code: "customer_information_read", configurations: none },
    })
    shows(yield* details("cloud-hosting:api"), {
      events: ["started", "ended", "auth_ended"],
      "parameters.x-meta.instructions_text": "Sandbox: behaviour words are read from tenant.",
      configurations: {
        ...none,
        properties: { project: { type: "string", title: "Proyecto", pattern: "^[a-z0-9-]{1,40}$" } },
      },
      "features.0": { code: "cloud_resource_read", configurations: none },
      "features.1.configurations.properties": {
        from_date: { type: "string", title: "Desde", default: "30 days ago" },
        to_date: { type: "string", title: "Hasta", default: "today" },
        limits_behaviour: {
          type: "string",
          title: "Fuera de límites",
          enum: ["error", "adapt"],
          default: "error",
        },
      },
    })
  })

  it(`has a form with everything that a form may have ${fieldsOf("x-meta", xMeta)} ${fieldsOf("form", "properties type format $defs required x-meta")}`, function* () {
    shows(yield* details("es-bank:api"), { parameters: bankForm })
    shows(yield* details("es-traffic:website"), {
      "parameters.x-meta": {
        instructions_title: "Acceso",
        instructions_text: "Sandbox: behaviour words are read from alias.",
        submit_button_text: "Continuar",
        locking_fields: ["nif"],
        hidden_fields: ["alias"],
        lazy_fields: ["contact_date"],
      },
    })
  })

  for (const [reference, detail] of reserved)
    it(`that cannot be run, ${reference}, is unavailable in details and at start, never unknown [showEngine 503] [startExecution 503] [error 4]`, function* (caller) {
      shows(yield* details(reference), { status: 503, json: { detail } })
      const started = yield* caller.start("ok", { engine_reference: reference })
      shows(started, { status: 503, json: { detail } })
    })

  it("that is enabled for one application is unavailable for another [showEngine 503]", function* () {
    shows(yield* details("sandbox-private:website"), { status: 200 })
    const theirs = yield* details("sandbox-private:website", "sandbox-app-2")
    shows(theirs, { status: 503, json: { detail: "engine not enabled for this application" } })
  })

  it("closes for its maintenance window, for starts but not for runs in flight [error 4]", function* (caller) {
    const engine = { engine_reference: "sandbox-window:website" }
    shows(yield* details("sandbox-window:website"), {
      engine_issues: ["En mantenimiento del minuto 50 al 60 de cada hora (UTC)."],
    })
    const base_configurations = { execution_timeout: 1200 }
    const id = yield* caller.begin("queue-0+run-3300", { ...engine, base_configurations })
    const start = caller.start("ok", { ...engine, customer_id: "c-2" })
    yield* TestClock.adjust("50 minutes")
    shows(yield* details("sandbox-window:website"), { status: 503 })
    shows(yield* start, { status: 503, json: { detail: "engine in maintenance" } })
    shows(yield* caller.read(id), { status: 200, status_reason: "TIMEOUT" })
    yield* TestClock.adjust("10 minutes")
    shows(yield* start, { status: 202 })
  })

  it("that does not exist, or not on that channel, is unknown; what is no reference is malformed [showEngine 404] [showEngine 422] [error 15] [error 16] [error-body 1] [error-body 2]", function* () {
    shows(yield* details("nobody:website"), { status: 404, json: { detail: "no such engine" } })
    const detail = "no such channel of this engine"
    shows(yield* details("sandbox-bank:mobile"), { status: 404, json: { detail } })
    const loc = ["path", "engine_reference"]
    const items = [{ loc, msg: "not an engine reference", type: "value_error" }]
    for (const text of ["sandbox-bank", "Sandbox-Bank:website", "a b:website", "x:"])
      shows(yield* details(text), { status: 422, json: { detail: items } })
  })

  it("that needs a person at every run is not started without one [startExecution 400] [error 1]", function* (caller) {
    const engine_reference = "sandbox-always:website"
    shows(yield* caller.start("ok", { engine_reference, external_execution_id: "x-1" }), {
      status: 400,
      json: {
        app_id: "65f0c0ffee00000000000001",
        auth_origin: "app-secret",
        customer_id: "c-1",
        engine_reference,
        status_code: "ABORTED",
        status_reason: "CUSTOMER_INTERVENTION_REQUIRED",
      },
    })
  })

  it("with settings of its own closes a run that lacks them [field start.configurations] [reason BAD_CONFIGURATIONS] [field execution.configurations_errors]", function* (caller) {
    const engine = { engine_reference: "sandbox-settings:website" }
    const lacking = { loc: ["branch"], msg: "must have required property 'branch'", type: "missing" }
    const bare = yield* caller.read(yield* caller.begin("queue-0+run-0", engine))
    shows(bare, { status: 200, configurations_errors: [lacking] })
    const good = yield* caller.begin("queue-0+run-0", { ...engine, configurations: { branch: "0049" } })
    expect(stateOf(yield* caller.read(good))).toEqual(["COMPLETED", "COMPLETED"])
  })

  it("judges its features by its own forms, after the acceptance [field engine-feature.configurations] [readExecution 200] [state CONFIGURATION_ERROR] [field execution.configurations_errors]", function* (caller) {
    shows(yield* details("es-tax-agency:website"), {
      "features.1.code": "yearly_individual_tax",
      "features.1.configurations.properties.last_n_years.maximum": 5,
      "features.1.configurations.properties.filing.enum": ["individual", "joint", "any"],
    })
    const tax = { code: "yearly_individual_tax", configurations: { last_n_years: 6, filing: "alone" } }
    const asked = { engine_reference: "es-tax-agency:website", features: ["properties_data", tax] }
    const state = yield* caller.read(yield* caller.begin("queue-0+run-0", asked))
    expect(stateOf(state)).toEqual(["CONFIGURATION_ERROR", "BAD_CONFIGURATIONS"])
    expect(pick(state, "configurations_errors.0.loc", "configurations_errors.1.loc")).toEqual(
      ["last_n_years", "filing"].map((name) => ["features", 1, "configurations", name]),
    )
  })
})

describe("the catalogue", () => {
  it("depends only on the time for a maintenance window, before 1970 too", () => {
    const minutes = [49.99, 50, 59.99, 60, -10, -10.01, -0.01]
    expect(minutes.filter((minute) => isInMaintenance(minute * 60_000))).toEqual([50, 59.99, -10, -0.01])
  })

  it("invents IBANs with the right check digits, and the same person on every engine", () => {
    for (let seed = 0; seed < 200; seed += 1) {
      const iban = ibanOf(seeded("numbers", seed))
      expect(BigInt(`${iban.slice(4)}1428${iban.slice(2, 4)}`) % 97n).toBe(1n)
    }
    expect(personOf(7, "c-1")).toEqual(personOf(7, "c-1"))
    expect(personOf(7, "c-1")).not.toEqual(personOf(8, "c-1"))
  })
})
