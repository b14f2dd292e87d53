/**
 * The list of engines as the service shows it (sections 2.2 and 4.8), over both ways to reach it, and what
 * the catalogue behind it has.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { TestClock } from "effect/testing"
import { personOf } from "../../../src/sandbox/data/Person.ts"
import { ibanOf } from "../../../src/sandbox/data/PersonalRecords.ts"
import {
  checkForm,
  engineDetails,
  engineView,
  featureForm,
  isEngineReference,
} from "../../../src/sandbox/engines/AnswerEngines.ts"
import { engineDefinitions, findEngine } from "../../../src/sandbox/engines/EngineCatalogue.ts"
import { isInMaintenance } from "../../../src/sandbox/engines/EngineDefinition.ts"
import { seeded } from "../../../src/sandbox/state/Reading.ts"
import { Engine, EngineDetails } from "../../../src/service/Engine.ts"
import {
  actionRequiredFrequencies,
  engineAlternatives,
  engineEvents,
  engineStatuses,
  features,
  mainCategories,
} from "../../../src/service/Vocabulary.ts"
import { isAmong, isText, isTexts, list, references, reserved } from "./ReadEngines.ts"
import { shownEngines } from "./ShownEngines.ts"
import { field, ofTheService, shows, itemsOf } from "../server/Caller.ts"

const engineFields: Readonly<Record<string, (value: unknown) => boolean>> = {
  reference: (value) => /^[a-z0-9-]+:[a-z]+$/.test(String(value)),
  engine_code: isText,
  engine_alternative: isAmong(engineAlternatives),
  engine_version: isText,
  environment: isAmong(["sandbox"]),
  status: isAmong(["published"]),
  priority: Number.isInteger,
  keywords: isTexts,
  color_primary: (value) => typeof value === "object",
  main_category: isAmong(mainCategories),
  sub_categories: (value) =>
    Array.isArray(value) &&
    value.every((name) => mainCategories.some((category) => String(name).startsWith(`${category}:`))),
  name: isText,
  description: isText,
  markets: (value) => Array.isArray(value) && value.every((market) => /^[A-Z]{2}$/.test(String(market))),
  languages: isTexts,
  engine_restrictions: (value) => isTexts(value) && Array.isArray(value) && value.length > 0,
  engine_issues: isTexts,
  action_required_frequency: isAmong(actionRequiredFrequencies),
  features: (value) => Array.isArray(value) && value.every(isAmong(features)),
  live: (value) => isText(field(value, "last_ping_date")),
  is_online: (value) => value === true,
  website: isText,
}
/** Where the list has an engine: by the order of the catalogue, so that no field is needed to find it. */
const placeOf = (reference: string): number =>
  engineDefinitions
    .filter((engine) => !reserved.some(([hidden]) => hidden === engine.reference))
    .findIndex((engine) => engine.reference === reference)

const colors = ["lighter", "light", "main", "dark", "darker", "contrast_text", "contrastText"]

ofTheService("the engines", (told) => {
  told("are listed if the application can run them now, and only then [listEngines 200]", function* () {
    const first = yield* list()
    const second = yield* list("", "sandbox-app-2")
    const hidden: ReadonlyArray<unknown> = reserved.map(([reference]) => reference)
    expect(references(first)).toEqual(
      engineDefinitions.map(({ reference }) => reference).filter((reference) => !hidden.includes(reference)),
    )
    expect(references(first).filter((reference) => !references(second).includes(reference))).toEqual([
      "sandbox-private:website",
    ])
    yield* TestClock.adjust("50 minutes")
    const inWindow = yield* list()
    expect(references(first).filter((reference) => !references(inWindow).includes(reference))).toEqual([
      "sandbox-window:website",
    ])
    yield* TestClock.adjust("10 minutes")
    expect(references(yield* list())).toEqual(references(first))
  })

  for (const [name, check] of Object.entries(engineFields)) {
    told(`all carry ${name} as the reference has it [field engine.${name}]`, function* () {
      const listed = itemsOf(yield* list())
      expect(listed.filter((engine) => !check(field(engine, name)))).toEqual([])
      expect(listed.length).toBeGreaterThan(8)
      const places = Object.entries(shownEngines).map(([reference, engine]) => ({
        shown: field(listed[placeOf(reference)], name),
        wanted: engine[name],
      }))
      expect(places.map(({ shown }) => shown)).toEqual(places.map(({ wanted }) => wanted))
    })
  }

  for (const color of colors) {
    told(`carry the colour ${color} [field color.${color}]`, function* () {
      const listed = itemsOf(yield* list())
      expect(listed.map((engine) => field(engine, "color_primary", color)).filter(isText)).toHaveLength(
        listed.length,
      )
      const shown = field(listed[placeOf("es-bank:api")], "color_primary", color)
      expect(shown).toBe(field(shownEngines["es-bank:api"], "color_primary", color))
    })
  }

  told("say when the platform last checked their source [field live.last_ping_date]", function* () {
    const [engine] = itemsOf(yield* list())
    expect(field(engine, "live", "last_ping_date")).toBe("2026-11-21T09:00:00.000Z")
    yield* TestClock.adjust("9 minutes")
    expect(field(itemsOf(yield* list())[0], "live", "last_ping_date")).toBe("2026-11-21T09:05:00.000Z")
  })

  for (const code of features) {
    told(`offer ${code} somewhere, and the filter finds it [code ${code}] [filter features]`, function* () {
      const all = itemsOf(yield* list())
      const found = itemsOf(yield* list(`?features=${code}`))
      expect(found.length).toBeGreaterThan(0)
      for (const engine of found) expect(field(engine, "features")).toContain(code)
      const others = all.filter((engine) => !references({ json: found }).includes(field(engine, "reference")))
      for (const engine of others) expect(field(engine, "features")).not.toContain(code)
    })
  }

  for (const category of mainCategories) {
    told(`are found by their main category ${category} [filter main_category]`, function* () {
      const all = itemsOf(yield* list())
      const found = itemsOf(yield* list(`?main_category=${category}`))
      expect(found).toEqual(all.filter((engine) => field(engine, "main_category") === category))
      expect(found.length).toBeGreaterThan(0)
    })
  }

  told(
    "are found by market, by any of several, and by all or any of several features " +
      "[filter markets] [filter features] [filter features_mode]",
    function* () {
      expect(references(yield* list("?markets=PT"))).toEqual(["cloud-hosting:api"])
      expect(references(yield* list("?markets=PT&markets=CO"))).toEqual([
        "sandbox-bank:website",
        "cloud-hosting:api",
      ])
      expect(references(yield* list("?markets=FR"))).toEqual([])
      const two = "features=loans_read&features=cloud_resource_read"
      expect(references(yield* list(`?${two}`))).toEqual([])
      expect(references(yield* list(`?${two}&features_mode=and`))).toEqual([])
      expect(references(yield* list(`?${two}&features_mode=or`))).toEqual([
        "es-bank:api",
        "cloud-hosting:api",
      ])
      expect(references(yield* list("?features_mode=or"))).toEqual(references(yield* list()))
    },
  )

  told("are all online if they are listed, in every spelling of a boolean [filter is_online]", function* () {
    const all = references(yield* list())
    for (const yes of ["true", "True", "1"]) {
      expect(references(yield* list(`?is_online=${yes}`))).toEqual(all)
    }
    for (const no of ["false", "FALSE", "0"]) {
      const none = yield* list(`?is_online=${no}`)
      expect([none.status, none.json]).toEqual([200, []])
    }
  })

  told(
    "refuse filter values outside their vocabulary, each by name [listEngines 422] [error 17]",
    function* () {
      const refused = yield* list(
        "?markets=ES&markets=es&features=loans_read&features=loans&features=x&features_mode=xor" +
          "&main_category=banks&is_online=perhaps",
      )
      const item = (loc: ReadonlyArray<string | number>, input: string) => ({
        loc: ["query", ...loc],
        msg: `${input} is not a permitted value`,
        type: "type_error.enum",
        input,
      })
      shows(refused, {
        status: 422,
        json: {
          detail: [
            item(["markets", 1], "es"),
            item(["features", 1], "loans"),
            item(["features", 2], "x"),
            item(["features_mode", 0], "xor"),
            item(["main_category", 0], "banks"),
            item(["is_online", 0], "perhaps"),
          ],
        },
      })
    },
  )
})

ofTheService("the catalogue", (told) => {
  told(
    "has engines of every status, alternative, main category, frequency and event",
    Effect.sync(() => {
      const has = (values: ReadonlyArray<string>) => new Set(values)
      expect(has(engineDefinitions.map(({ status }) => status))).toEqual(has(engineStatuses))
      expect(has(engineDefinitions.map(({ reference }) => reference.split(":")[1] ?? ""))).toEqual(
        has(engineAlternatives),
      )
      expect(has(engineDefinitions.map(({ frequency }) => frequency))).toEqual(has(actionRequiredFrequencies))
      expect(has(engineDefinitions.map(({ environment }) => environment))).toEqual(
        has(["sandbox", "production"]),
      )
      expect(has(engineDefinitions.flatMap(({ events }) => [...events]))).toEqual(has(engineEvents))
      expect(has(engineDefinitions.map(({ events }) => events.join())).size).toBeGreaterThan(3)
      for (const { reference, events } of engineDefinitions.slice(0, 4)) {
        expect([reference, events]).toEqual([reference, engineEvents])
      }
    }),
  )

  told(
    "depends only on the time for a maintenance window, before 1970 too",
    Effect.sync(() => {
      const at = (minutes: number) => isInMaintenance(minutes * 60_000)
      expect([49.99, 50, 59.99, 60, -10, -10.01, -0.01].map(at)).toEqual([
        false,
        true,
        true,
        false,
        true,
        false,
        true,
      ])
    }),
  )
})

// The catalogue covers the reference, and what it invents is well formed.

describe("the catalogue", () => {
  it("decodes by the contract in both views", () => {
    for (const engine of engineDefinitions) {
      expect(isEngineReference(engine.reference)).toBe(true)
      expect(Object.keys(engine.parameters.properties)).toContain(engine.wordsField)
      expect(engine.features).toEqual(expect.arrayContaining([...engine.defaults]))
      for (const code of engine.features) expect(checkForm(featureForm(engine, code), {})).toEqual([])
      const wanted = checkForm(engine.configurations, {}).map(({ error }) => error.loc)
      expect(wanted).toEqual(engine.reference === "sandbox-settings:website" ? [["branch"]] : [])
      const view = engineView(engine, 1_000_000)
      expect(Schema.decodeUnknownSync(Engine)(JSON.parse(JSON.stringify(view)))).toEqual(view)
      const details = engineDetails(engine, 1_000_000)
      expect(Schema.decodeUnknownSync(EngineDetails)(JSON.parse(JSON.stringify(details)))).toEqual(details)
    }
  })

  it("has what the product's contract says about its engines", () => {
    const bank = findEngine("sandbox-bank:website")
    expect([bank?.category, bank?.features, bank?.defaults, bank?.parameters.required]).toEqual([
      "financial",
      ["accounts_read", "cards_read", "customer_information_read"],
      ["accounts_read", "cards_read", "customer_information_read"],
      ["username", "password"],
    ])
    expect(findEngine("sandbox-tax:website")?.category).toBe("public")
  })

  it("has forms with patterns, enumerations, definitions and settings that refuse what does not fit", () => {
    const complaints = (reference: string, values: unknown) => {
      const form = findEngine(reference)?.parameters
      return form === undefined ? undefined : checkForm(form, values).map(({ error }) => error.loc.join("."))
    }
    expect(complaints("es-social-security:website", { nif: "12345678Z", pin: "1234" })).toEqual([])
    expect(complaints("es-social-security:website", { nif: "12345678", pin: "1" })).toEqual(["nif", "pin"])
    expect(complaints("es-bank:api", { username: "u", password: "abcd", signature: null })).toEqual([])
    expect(complaints("es-bank:api", { username: "u", password: "abc", document_type: "x" })).toEqual([
      "document_type",
      "password",
    ])
    expect(complaints("cloud-hosting:api", { tenant: "t", api_key: "12345678", region: "moon" })).toEqual([
      "region",
    ])
  })
})

describe("invented numbers", () => {
  it("have the right check digits", () => {
    for (let seed = 0; seed < 200; seed += 1) {
      const iban = ibanOf(seeded("numbers", seed))
      expect(BigInt(`${iban.slice(4)}1428${iban.slice(2, 4)}`) % 97n).toBe(1n)
    }
  })

  it("belong to the same person on every engine", () => {
    expect(personOf(7, "c-1")).toEqual(personOf(7, "c-1"))
    expect(personOf(7, "c-1")).not.toEqual(personOf(8, "c-1"))
  })
})
