/** The records in flow results: every documented field as section 2.7 has it, and a family for every feature. */
import { describe, expect, it } from "@effect/vitest"
import {
  civilStatuses,
  customerTypes,
  features,
  genders,
  higherEducationSubFamilies,
  identificationNumberTypes,
  secondaryEducationSubFamilies,
} from "../../../src/service/Vocabulary.ts"
import { engineDefinitions } from "../../../src/sandbox/engines/EngineCatalogue.ts"
import { flowSessionBody, sessionDocuments } from "../../../src/sandbox/flows/FlowSessions.ts"
import type { FlowSessionCreated } from "../../../src/sandbox/state/FlowMoves.ts"
import { newFlowSession } from "../../../src/sandbox/state/FlowTimeline.ts"
import { planSource, readFlowPlan } from "../../../src/sandbox/flows/StandingSessions.ts"
import { cifControl, dniLetter, nitControl } from "../../../src/sandbox/data/Person.ts"
import { countProducts, familyOf } from "../../../src/sandbox/executions/PlanResults.ts"
import { nightStart, recordsIn } from "./FlowWalk.ts"
import { shownRecords } from "../readings/ShownRecords.ts"

type Fields = Readonly<Record<string, unknown>>

/** A session that has read these features of the first engine that offers them. */
const sessionOf = (customer_id: string, codes: ReadonlyArray<string>, words: string, sessionWords = "") => {
  const engine = engineDefinitions.find((candidate) =>
    codes.every((code) => candidate.features.some((offered) => offered === code)),
  )
  if (engine === undefined) throw new Error(`nobody offers ${codes.join()}`)
  const created: FlowSessionCreated = {
    _tag: "FlowSessionCreated",
    at: nightStart,
    application: "65f0c0ffee00000000000001",
    session_id: "65f0c0ffee65f0c0ffee65f0",
    customer_id,
    features: codes,
    plan: readFlowPlan(`noconsent+${sessionWords}`),
  }
  const source = planSource({ seed: 7, at: nightStart, created, engine, features: codes, words, ordinal: 0 })
  const session = newFlowSession(created, [
    { at: nightStart, step: { _tag: "start" } },
    { at: nightStart, step: { _tag: "connect", source } },
    { at: nightStart, step: { _tag: "leave" } },
  ])
  const body = flowSessionBody(7, session, nightStart + 3_600_000)
  return { session, source, body, records: recordsIn(JSON.parse(JSON.stringify(body.data))) }
}

const sample: ReadonlyArray<Fields> = Array.from({ length: 40 }, (_, index) =>
  sessionOf(`c-${index}`, ["customer_information_read", "academic_data"], "queue-0+run-0+records-120"),
).flatMap(({ records }) => records)

const isFields = (value: unknown): value is Fields => typeof value === "object" && value !== null
const childrenOf = (records: ReadonlyArray<Fields>, name: string): ReadonlyArray<Fields> =>
  records.flatMap((record) => (Array.isArray(record[name]) ? record[name].filter(isFields) : []))

const subFamily = (record: Fields) => String(record["sub_family"])
const among = (values: ReadonlyArray<string>) => (record: Fields) => values.includes(subFamily(record))
const profiles = sample.filter(among(["customer_information:user_profile"]))
const numbers = childrenOf(profiles, "identification_numbers")

type Rule = (value: unknown) => boolean
const text: Rule = (value) => typeof value === "string" && value !== ""
const anyText: Rule = (value) => typeof value === "string"
const oneOf =
  (...values: ReadonlyArray<string>): Rule =>
  (value) =>
    values.some((one) => one === value)
const matching =
  (pattern: RegExp): Rule =>
  (value) =>
    typeof value === "string" && pattern.test(value)
const date = matching(/^\d{4}-\d\d-\d\d$/)
const datetime = matching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
const country = matching(/^[A-Z]{2}$/)
const figure = matching(/^\d+(\.\d+)?$/)
const texts: Rule = (value) => Array.isArray(value) && value.every(text)
const objects: Rule = (value) => Array.isArray(value) && value.every(isFields)

interface Documented {
  readonly object: string
  readonly records: ReadonlyArray<Fields>
  readonly required: Readonly<Record<string, Rule>>
  readonly optional: Readonly<Record<string, Rule>>
}

const study = { qualification_name: text, institution_name: text, institution_country: country }
const studied = {
  issue_date: date,
  start_date: date,
  end_date: date,
  official_id: text,
  verification_url: matching(/^https:\/\//),
}

const documented: ReadonlyArray<Documented> = [
  {
    object: "profile",
    records: profiles,
    required: {
      product: oneOf("customer_information"),
      sub_family: oneOf("customer_information:user_profile"),
      fetch_date: datetime,
      type: oneOf(...customerTypes),
      identification_numbers: objects,
      gender: oneOf(...genders),
      civil_status: oneOf(...civilStatuses),
      emails: texts,
      phones: texts,
      addresses: objects,
    },
    optional: {
      name: text,
      name_extra: anyText,
      alias: text,
      birth_date: date,
      birth_country: country,
      nationality_country: country,
      residence_country: country,
      number_of_children: (value) => Number.isInteger(value),
      language: matching(/^[a-z]{2}$/),
      member_since: date,
    },
  },
  {
    object: "id-number",
    records: numbers,
    required: {
      type: oneOf(...identificationNumberTypes),
      value: text,
      validated: (value) => typeof value === "boolean",
    },
    optional: { country, valid_until: date },
  },
  {
    object: "address",
    records: childrenOf(profiles, "addresses"),
    required: {},
    optional: {
      title: text,
      street: text,
      street_extra: text,
      municipality: text,
      city: text,
      state: text,
      country,
      zip_code: text,
    },
  },
  {
    object: "higher",
    records: sample.filter(among(higherEducationSubFamilies)),
    required: {
      product: oneOf("academic_data"),
      sub_family: oneOf(...higherEducationSubFamilies),
      fetch_date: datetime,
      ...study,
      completion_status: text,
      total_credits: figure,
      grade_average: figure,
    },
    optional: { ...studied, thesis_title: text, field_of_study: text },
  },
  {
    object: "secondary",
    records: sample.filter(among(secondaryEducationSubFamilies)),
    required: {
      product: oneOf("academic_data"),
      sub_family: oneOf(...secondaryEducationSubFamilies),
      fetch_date: datetime,
      ...study,
      completion_status: text,
    },
    optional: {
      ...studied,
      institution_code: text,
      region: text,
      study_framework: text,
      national_registry_id: text,
    },
  },
]

/** The record with the most fields, the last of them: it shows every field's value, not only its type. */
const fullest = (records: ReadonlyArray<Fields>): Fields =>
  records.reduce(
    (most, record) => (Object.keys(record).length >= Object.keys(most).length ? record : most),
    {},
  )

describe("records whose shape section 2.7 shows", () => {
  for (const { object, records, required, optional } of documented) {
    const ofFullest = (name: string) => fullest(records)[name]
    it.each(Object.entries(required))(`[field ${object}.%s] is in every record, as told`, (name, rule) => {
      expect(records.length).toBeGreaterThan(100)
      expect(records.filter((record) => !rule(record[name]))).toEqual([])
      expect(ofFullest(name)).toEqual(shownRecords[object]?.[name])
    })

    it.each(Object.entries(optional))(`[field ${object}.%s] is in some and missing in some`, (name, rule) => {
      const there = records.filter((record) => name in record)
      expect([there.length > 0, there.length < records.length]).toEqual([true, true])
      expect(there.filter((record) => !rule(record[name]))).toEqual([])
      expect(ofFullest(name)).toEqual(shownRecords[object]?.[name])
    })

    it(`hold no other field in a record of kind ${object}`, () => {
      const known = Object.keys({ ...required, ...optional })
      expect(records.flatMap(Object.keys).filter((name) => !known.includes(name))).toEqual([])
    })
  }

  it.each([
    ["profile.type", profiles, "type", customerTypes],
    ["profile.gender", profiles, "gender", genders],
    ["profile.civil_status", profiles, "civil_status", civilStatuses],
    ["id-number.type", numbers, "type", identificationNumberTypes],
    [
      "higher.sub_family",
      sample.filter(among(higherEducationSubFamilies)),
      "sub_family",
      higherEducationSubFamilies,
    ],
    [
      "secondary.sub_family",
      sample.filter(among(secondaryEducationSubFamilies)),
      "sub_family",
      secondaryEducationSubFamilies,
    ],
  ] as const)("[field %s] takes every value", (_, records, name, values) => {
    expect(new Set(records.map((record) => record[name]))).toEqual(new Set(values))
  })

  it("[field profile.name_extra] [field profile.number_of_children] are empty for companies", () => {
    const companies = profiles.filter(({ type }) => type === "company")
    expect(companies.length).toBeGreaterThan(50)
    const empty = { gender: "unknown", civil_status: "unknown" }
    for (const { name_extra = "", number_of_children, gender, civil_status } of companies)
      expect([name_extra, number_of_children, { gender, civil_status }]).toEqual(["", undefined, empty])
  })

  it("[field id-number.validated] says whether the number is well formed", () => {
    const wellFormed: Readonly<Record<string, (value: string) => boolean>> = {
      "es:dni": (value) =>
        /^\d{8}[A-Z]$/.test(value) && value.at(-1) === dniLetter(Number(value.slice(0, 8))),
      "es:nie": (value) =>
        /^[XYZ]\d{7}[A-Z]$/.test(value) &&
        value.at(-1) === dniLetter(Number(`${"XYZ".indexOf(value.charAt(0))}${value.slice(1, 8)}`)),
      "es:cif": (value) =>
        /^[AB]\d{8}$/.test(value) && Number(value.at(-1)) === cifControl(value.slice(1, 8)),
      "es:ssn": (value) =>
        /^\d{12}$/.test(value) && BigInt(value.slice(0, 10)) % 97n === BigInt(value.slice(10)),
      "co:nit": (value) => /^\d{9}-\d$/.test(value) && Number(value.at(-1)) === nitControl(value.slice(0, 9)),
      "co:cc": (value) => /^\d{10}$/.test(value),
      "co:ti": (value) => /^\d{10}$/.test(value),
      "co:ce": (value) => /^\d{6}$/.test(value),
      unknown: () => false,
    }
    // The checks themselves, on numbers that are published as examples.
    expect([nitControl("800197268"), cifControl("5881850"), dniLetter(12_345_678)]).toEqual([4, 1, "Z"])
    for (const { type, value, validated } of numbers)
      expect([type, value, wellFormed[String(type)]?.(String(value))]).toEqual([type, value, validated])
    expect(new Set(numbers.map(({ validated }) => validated)).size).toBe(2)
  })

  it("are a company's if the session says so, whoever the customer is", () => {
    for (let index = 0; index < 30; index += 1) {
      const { records } = sessionOf(`p-${index}`, ["customer_information_read"], "run-0+queue-0", "company")
      expect(records).toMatchObject([{ type: "company" }])
    }
  })
})

describe("the documents of a session", () => {
  it("[downloadAttachment 404] cannot be downloaded before the records of their source are whole", () => {
    const { session } = sessionOf("c-1", ["properties_data"], "queue-0+run-100+records-4+attach-2")
    const count = (seconds: number) => sessionDocuments(session, nightStart + seconds * 1_000).length
    expect([0, 50, 99, 100, 10_000].map(count)).toEqual([0, 0, 0, 2, 2])
  })
})

describe("records of every family", () => {
  it.each(features)("%s: counted as they are, their kinds in turn, own shapes marked as such", (code) => {
    const { source, body, records } = sessionOf("c-1", [code], "queue-0+run-0+records-24")
    const family = familyOf(code)
    const counts = Object.groupBy(
      records,
      ({ sub_family, product }) => `${String(sub_family)}@${String(product)}`,
    )
    const counted = Object.entries(counts).map(([key, of]) => [key, of?.length])
    expect(Object.fromEntries(counted)).toEqual(countProducts(source.results, 24))
    expect(Object.keys(counts).filter((key) => !/^[a-z_]+:[a-z_]+@[a-z_]+$/.test(key))).toEqual([])
    expect([records.length, body.retrieved_features]).toEqual([24, [code]])
    expect(records.filter((record) => !among([...(family?.kinds ?? [])])(record))).toEqual([])
    const shown = ["customer_information", "academic_data"].includes(family?.product ?? "")
    const shape = shown ? undefined : "nightjar-sandbox"
    expect(records.filter((record) => record["shape"] !== shape)).toEqual([])
    // Beyond what every record carries, an own shape says at least three things.
    for (const record of records) expect(Object.keys(record).length).toBeGreaterThanOrEqual(7)
  })
})
