/** The catalogue covers the reference, and what it invents is well formed. */
import { describe, expect, it } from "@effect/vitest"
import { Schema } from "effect"
import { Engine, EngineDetails } from "../../../src/service/Engine.ts"
import { features, mainCategories } from "../../../src/service/Vocabulary.ts"
import {
  checkForm,
  engineDetails,
  engineView,
  featureForm,
  isEngineReference,
} from "../../../src/sandbox/engines/AnswerEngines.ts"
import { engineDefinitions, findEngine } from "../../../src/sandbox/engines/EngineCatalogue.ts"
import { ibanOf } from "../../../src/sandbox/data/PersonalRecords.ts"
import {
  cifControl,
  cifOf,
  dniLetter,
  dniOf,
  nieOf,
  personOf,
  socialSecurityOf,
} from "../../../src/sandbox/data/Person.ts"
import { seeded } from "../../../src/sandbox/state/Reading.ts"

describe("the catalogue", () => {
  it("offers every feature and every main category, and decodes by the contract in both views", () => {
    const offered = new Set(engineDefinitions.flatMap((engine) => engine.features))
    expect(features.filter((feature) => !offered.has(feature))).toEqual([])
    expect(new Set(engineDefinitions.map(({ category }) => category))).toEqual(new Set(mainCategories))
    expect(engineDefinitions.length).toBeGreaterThanOrEqual(8)
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
  it("have the right check letters and digits", () => {
    expect([dniLetter(12_345_678), cifControl("5881850")]).toEqual(["Z", 1])
    for (let seed = 0; seed < 200; seed += 1) {
      const draw = seeded("numbers", seed)
      expect(dniOf(draw)).toMatch(/^\d{8}[A-Z]$/)
      const nie = nieOf(draw)
      expect(nie.at(-1)).toBe(dniLetter(Number(`${"XYZ".indexOf(nie.charAt(0))}${nie.slice(1, 8)}`)))
      const cif = cifOf(draw)
      expect(Number(cif.at(-1))).toBe(cifControl(cif.slice(1, 8)))
      const ssn = socialSecurityOf(draw)
      expect(BigInt(ssn.slice(0, 10)) % 97n).toBe(BigInt(ssn.slice(10)))
      const iban = ibanOf(draw)
      expect(BigInt(`${iban.slice(4)}1428${iban.slice(2, 4)}`) % 97n).toBe(1n)
    }
  })

  it("belong to the same person on every engine", () => {
    expect(personOf(7, "c-1")).toEqual(personOf(7, "c-1"))
    expect(personOf(7, "c-1")).not.toEqual(personOf(8, "c-1"))
  })
})
