/** The records in flow results: every documented field as section 2.7 has it, and a family for every feature. */
import { describe, expect, it } from "@effect/vitest"
import { features } from "../../../src/service/Vocabulary.ts"
import { civilStatuses, customerTypes, genders } from "../../conformance/RecordWords.ts"
import { higherEducationSubFamilies, identificationNumberTypes } from "../../conformance/RecordWords.ts"
import { secondaryEducationSubFamilies } from "../../conformance/RecordWords.ts"
import { engineDefinitions } from "../../../src/sandbox/engines/EngineCatalogue.ts"
import { flowSessionBody, sessionDocuments } from "../../../src/sandbox/flows/FlowSessions.ts"
import type { FlowSessionCreated } from "../../../src/sandbox/state/FlowMoves.ts"
import { newFlowSession } from "../../../src/sandbox/state/FlowTimeline.ts"
import { planSource, readFlowPlan } from "../../../src/sandbox/flows/StandingSessions.ts"
import { cifControl, dniLetter, nitControl } from "../../../src/sandbox/data/Person.ts"
import { countProducts, familyOf } from "../../../src/sandbox/executions/PlanResults.ts"
import { fieldsOf } from "../server/Caller.ts"
import { nightStart, recordsIn } from "./FlowWalk.ts"

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

const address = {
  title: "Domicilio",
  street: "Rúa Nova, 26",
  street_extra: "8º A",
  municipality: "Sant Andreu",
  city: "Barcelona",
  state: "Barcelona",
  country: "ES",
  zip_code: "08966",
}

/** The fullest record of each kind as the service makes it under seed 7: a value of another field is noticed. */
const shownRecords: Readonly<Record<string, Fields>> = {
  profile: {
    product: "customer_information",
    sub_family: "customer_information:user_profile",
    fetch_date: "2026-11-21T01:00:00.059Z",
    type: "person",
    name: "Íñigo",
    name_extra: "García Peña",
    alias: "Íñigo",
    identification_numbers: [
      { type: "es:dni", value: "08916229A", validated: true, valid_until: "2030-06-30" },
      { type: "es:ssn", value: "084799876429", validated: true, country: "ES" },
    ],
    birth_date: "1985-12-01",
    birth_country: "ES",
    nationality_country: "ES",
    residence_country: "ES",
    gender: "male",
    civil_status: "separated",
    number_of_children: 1,
    emails: ["cliente.371276.0@correo.invalid"],
    phones: ["+34 698305906"],
    addresses: [address],
    language: "ca",
    member_since: "2012-11-26",
  },
  "id-number": {
    type: "es:dni",
    value: "70056068",
    validated: false,
    country: "ES",
    valid_until: "2034-06-30",
  },
  address,
  higher: {
    product: "academic_data",
    sub_family: "academic_data:higher_doctorate",
    fetch_date: "2026-11-21T01:00:00.046Z",
    qualification_name: "Doctorado en Biología Molecular",
    institution_name: "Universitat de Mostra",
    institution_country: "ES",
    completion_status: "completed",
    total_credits: "0.0",
    grade_average: "6.85",
    start_date: "2000-09-15",
    end_date: "2004-06-30",
    issue_date: "2004-10-01",
    official_id: "RNT-5994426779",
    verification_url: "https://titulos.invalid/v/578205990504",
    thesis_title: "Sobre la paciencia de los sistemas distribuidos",
    field_of_study: "Biology",
  },
  secondary: {
    product: "academic_data",
    sub_family: "academic_data:secondary_general",
    fetch_date: "2026-11-21T01:00:00.055Z",
    qualification_name: "Bachillerato de Ciencias",
    institution_name: "IES Cervantes",
    institution_country: "ES",
    institution_code: "57550468",
    region: "Catalunya",
    completion_status: "completed",
    start_date: "1992-09-10",
    end_date: "1994-06-20",
    issue_date: "1994-07-15",
    official_id: "183690349052",
    verification_url: "https://titulos.invalid/s/908738878708",
    study_framework: "LOGSE",
    national_registry_id: "38321191560860",
  },
}

interface Documented {
  readonly object: string
  readonly records: ReadonlyArray<Fields>
  /** In every record. */
  readonly required: string
  /** In some, and missing in some. */
  readonly optional: string
}

const common = "product sub_family fetch_date"
const study = `${common} qualification_name institution_name institution_country completion_status`
const studied = "issue_date start_date end_date official_id verification_url"
const documented: ReadonlyArray<Documented> = [
  {
    object: "profile",
    records: profiles,
    required: `${common} type identification_numbers gender civil_status emails phones addresses`,
    optional:
      "name name_extra alias birth_date birth_country nationality_country residence_country number_of_children " +
      "language member_since",
  },
  {
    object: "id-number",
    records: numbers,
    required: "type value validated",
    optional: "country valid_until",
  },
  {
    object: "address",
    records: childrenOf(profiles, "addresses"),
    required: "",
    optional: "title street street_extra municipality city state country zip_code",
  },
  {
    object: "higher",
    records: sample.filter(among(higherEducationSubFamilies)),
    required: `${study} total_credits grade_average`,
    optional: `${studied} thesis_title field_of_study`,
  },
  {
    object: "secondary",
    records: sample.filter(among(secondaryEducationSubFamilies)),
    required: study,
    optional: `${studied} institution_code region study_framework national_registry_id`,
  },
]
const namesIn = (names: string) => names.split(" ").filter(Boolean)

/** What kind of value it is, as far as fields of one name must agree. */
const kindOf = (value: unknown): string => {
  if (Array.isArray(value)) return `list of ${[...new Set(value.map((one) => typeof one))].join()}`
  if (typeof value !== "string") return typeof value
  if (/^[A-Z]{2}$/.test(value)) return "country"
  return /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d:\d\d\.\d{3}Z)?$/.test(value) ? `date of ${value.length}` : "text"
}

/** The record with the most fields, the last of them: it shows every field's value, not only its type. */
const fullest = (records: ReadonlyArray<Fields>): Fields =>
  records.reduce(
    (most, record) => (Object.keys(record).length >= Object.keys(most).length ? record : most),
    {},
  )

describe("records whose shape section 2.7 shows", () => {
  for (const { object, records, required, optional } of documented) {
    const shown = shownRecords[object]
    const isTold = (name: string, there: ReadonlyArray<Fields>) => {
      expect([name, fullest(records)[name]]).toEqual([name, shown?.[name]])
      const kinds = new Set(there.map((record) => kindOf(record[name])))
      // A list may be empty.
      expect([...kinds].filter((kind) => kind !== "list of ")).toEqual([kindOf(shown?.[name])])
    }
    it(`of ${object} have its fields, some in every record and others in some ${fieldsOf(object, `${required} ${optional}`.trim())}`, () => {
      expect(records.length).toBeGreaterThan(100)
      for (const name of namesIn(required)) isTold(name, records)
      for (const name of namesIn(optional)) {
        const there = records.filter((record) => name in record)
        expect([name, there.length > 0, there.length < records.length]).toEqual([name, true, true])
        isTold(name, there)
      }
      const known = namesIn(`${required} ${optional}`)
      expect(records.flatMap(Object.keys).filter((name) => !known.includes(name))).toEqual([])
    })
  }

  it(`take every value of their words ${fieldsOf("profile", "type gender civil_status")} [field id-number.type] [field higher.sub_family] [field secondary.sub_family]`, () => {
    const [higher, secondary] = [higherEducationSubFamilies, secondaryEducationSubFamilies]
    for (const [records, name, values] of [
      [profiles, "type", customerTypes],
      [profiles, "gender", genders],
      [profiles, "civil_status", civilStatuses],
      [numbers, "type", identificationNumberTypes],
      [sample.filter(among(higher)), "sub_family", higher],
      [sample.filter(among(secondary)), "sub_family", secondary],
    ] as const)
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

it("the documents of a session [downloadAttachment 404] cannot be downloaded before the records of their source are whole", () => {
  const { session } = sessionOf("c-1", ["properties_data"], "queue-0+run-100+records-4+attach-2")
  const count = (seconds: number) => sessionDocuments(session, nightStart + seconds * 1_000).length
  expect([0, 50, 99, 100, 10_000].map(count)).toEqual([0, 0, 0, 2, 2])
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
