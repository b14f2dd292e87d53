/**
 * Records whose shape the reference shows (section 2.7): customer profiles, higher and secondary education.
 * Sources give more or less detail: every optional field is present in some records and missing from
 * others. The shape of every other family is this service's own and marked as such.
 */
import { addressOf, dateOf, personOf } from "./Person.ts"
import type { Address, Person } from "./Person.ts"
import type { RecordBody, RecordContext, RecordFamily } from "./RecordFamily.ts"
import { seeded } from "../state/Seeded.ts"
import type { Draw } from "../state/Seeded.ts"

/** How much a source says is drawn separately from what it says: a missing field changes no other. */
const shapeOf = ({ seed, customer_id, engine_reference, kind, position }: RecordContext): Draw =>
  seeded("record-shape", seed, customer_id, engine_reference, kind, position)

/** Leaves out each optional field that the source does not give. */
const told = (shape: Draw, chances: Readonly<Record<string, number>>, fields: RecordBody): RecordBody =>
  Object.fromEntries(
    Object.entries(fields).filter(([name]) => {
      const chance = chances[name]
      return chance === undefined || shape.chance(chance)
    }),
  )

interface IdentificationNumber {
  readonly type: string
  readonly value: string
  readonly country: string
  readonly valid_until?: string
}

/** A malformed number has lost its last character on the way. */
const identified = (shape: Draw, { valid_until, ...number }: IdentificationNumber): RecordBody => {
  const validated = number.type !== "unknown" && !shape.chance(0.06)
  return told(
    shape,
    { country: 0.85, valid_until: 0.75 },
    {
      type: number.type,
      value: validated || number.type === "unknown" ? number.value : number.value.slice(0, -1),
      validated,
      country: number.country,
      ...(valid_until === undefined ? {} : { valid_until }),
    },
  )
}

const identificationNumbers = (person: Person, shape: Draw, year: number): ReadonlyArray<RecordBody> => {
  const isPerson = person.type === "person"
  const colombian = person.identification.type.startsWith("co:")
  const country = colombian ? "CO" : "ES"
  const main = { ...person.identification, country }
  const passport = { type: "unknown", value: `PA${shape.digits(7)}`, country: person.origin }
  return [
    identified(shape, isPerson ? { ...main, valid_until: `${year}-06-30` } : main),
    ...(isPerson && !colombian
      ? [identified(shape, { type: "es:ssn", value: person.social_security, country })]
      : []),
    ...(isPerson && shape.chance(0.15) ? [identified(shape, passport)] : []),
  ]
}

const addressChances = {
  title: 0.9,
  street: 0.97,
  municipality: 0.9,
  city: 0.97,
  state: 0.9,
  country: 0.95,
  zip_code: 0.95,
} as const
const tellAddress = (shape: Draw, address: Address): RecordBody => told(shape, addressChances, { ...address })

/** What a source says if it does not know whom it is about. */
const unknownProfile = (person: Person, shape: Draw): RecordBody => ({
  type: "unknown",
  ...(shape.chance(0.5) ? { name: person.name } : {}),
  identification_numbers: [
    identified(shape, { type: "unknown", value: person.identification.value, country: "ES" }),
  ],
  gender: "unknown",
  civil_status: "unknown",
  emails: [],
  phones: [],
  addresses: [],
})

const profileChances = {
  alias: 0.7,
  birth_date: 0.93,
  birth_country: 0.85,
  nationality_country: 0.9,
  residence_country: 0.95,
  number_of_children: 0.7,
  language: 0.85,
  member_since: 0.85,
} as const

const profile = (context: RecordContext): RecordBody => {
  const { seed, customer_id, position, draw, company } = context
  const shape = shapeOf(context)
  const person = personOf(seed, customer_id, position, company)
  if (!company && shape.chance(0.04)) return unknownProfile(person, shape)
  const isPerson = person.type === "person"
  const mailbox = `cliente.${draw.digits(6)}`
  const country = person.identification.type.startsWith("co:") ? "CO" : "ES"
  const year = draw.int(2027, 2034)
  const civil = isPerson ? draw.pick(["single", "married", "divorced", "widowed", "separated"]) : "unknown"
  const fields = {
    type: person.type,
    name: person.name,
    // Empty for companies: absent from some sources, an empty string from others.
    ...(isPerson || shape.chance(0.5) ? { name_extra: person.surnames } : {}),
    alias: person.name.split(" ")[0],
    identification_numbers: identificationNumbers(person, shape, year),
    birth_date: person.birth_date,
    birth_country: person.origin,
    nationality_country: person.origin,
    residence_country: country,
    gender: isPerson && shape.chance(0.08) ? shape.pick(["rather_not_say", "unknown"]) : person.gender,
    civil_status: isPerson && shape.chance(0.08) ? "unknown" : civil,
    ...(isPerson ? { number_of_children: draw.int(0, 4) } : {}),
    emails: Array.from({ length: draw.int(0, 2) }, (_, index) => `${mailbox}.${index}@correo.invalid`),
    phones: Array.from({ length: draw.int(1, 2) }, () => `+34 6${draw.digits(8)}`),
    addresses: [person.address, ...(draw.chance(0.3) ? [addressOf(draw, "Correspondencia")] : [])].map(
      (address) => tellAddress(shape, address),
    ),
    language: draw.pick(["es", "ca", "gl", "eu"]),
    member_since: dateOf(draw, 2005, 2024),
  }
  return told(shape, profileChances, fields)
}

const higherDegrees = [
  ["Grado en Ingeniería Informática", "Engineering"],
  ["Máster Universitario en Economía", "Economics"],
  ["Doctorado en Biología Molecular", "Biology"],
] as const
const universities = ["Universidad de Ejemplo", "Universitat de Mostra", "Unibertsitate Eredua"] as const

const studyChances = {
  institution_code: 0.85,
  region: 0.9,
  issue_date: 0.85,
  start_date: 0.9,
  end_date: 0.9,
  official_id: 0.85,
  verification_url: 0.7,
  thesis_title: 0.9,
  field_of_study: 0.85,
  study_framework: 0.85,
  national_registry_id: 0.8,
} as const

const higher = (context: RecordContext): RecordBody => {
  const { kind, draw } = context
  const level = ["bachelor", "master", "doctorate"].findIndex((name) => kind.endsWith(name))
  const [qualification, field] = higherDegrees[level] ?? higherDegrees[0]
  const began = draw.int(1998, 2020)
  const doctorate = kind.endsWith("doctorate")
  const institution_name = draw.pick(universities)
  const completion_status = draw.pick(["completed", "completed", "in_progress"])
  const isOver = completion_status === "completed"
  const fields = {
    qualification_name: qualification,
    institution_name,
    institution_country: "ES",
    completion_status,
    total_credits: doctorate ? "0.0" : draw.pick(["240.0", "180.5", "60.0", "120.0"]),
    grade_average: `${draw.int(5, 9)}.${draw.digits(2)}`,
    start_date: `${began}-09-15`,
    ...(isOver ? { end_date: `${began + 4}-06-30`, issue_date: `${began + 4}-10-01` } : {}),
    official_id: `RNT-${draw.digits(10)}`,
    verification_url: `https://titulos.invalid/v/${draw.digits(12)}`,
    ...(doctorate ? { thesis_title: "Sobre la paciencia de los sistemas distribuidos" } : {}),
    field_of_study: field,
  }
  return told(shapeOf(context), studyChances, fields)
}

const secondary = (context: RecordContext): RecordBody => {
  const { kind, draw } = context
  const began = draw.int(1990, 2016)
  const fields = {
    qualification_name: kind.endsWith("general")
      ? "Bachillerato de Ciencias"
      : kind.endsWith("vocational")
        ? "Técnico Superior en Desarrollo de Aplicaciones"
        : "Certificado de Profesionalidad",
    institution_name: `IES ${draw.pick(["Cervantes", "Rosalía de Castro", "Ausiàs March"])}`,
    institution_country: "ES",
    institution_code: draw.digits(8),
    region: draw.pick(["Comunidad de Madrid", "Catalunya", "Galicia", "Euskadi"]),
    completion_status: "completed",
    start_date: `${began}-09-10`,
    end_date: `${began + 2}-06-20`,
    issue_date: `${began + 2}-07-15`,
    official_id: draw.digits(12),
    verification_url: `https://titulos.invalid/s/${draw.digits(12)}`,
    study_framework: draw.pick(["LOGSE", "LOE", "LOMCE"]),
    national_registry_id: draw.digits(14),
  }
  return told(shapeOf(context), studyChances, fields)
}

export const personalFamilies = {
  customer_information_read: {
    product: "customer_information",
    kinds: ["customer_information:user_profile"],
    usual: [1, 1],
    make: profile,
  },
  academic_data: {
    product: "academic_data",
    kinds: [
      "academic_data:higher_bachelor",
      "academic_data:secondary_general",
      "academic_data:higher_master",
      "academic_data:secondary_vocational",
      "academic_data:higher_doctorate",
      "academic_data:professional_certification",
    ],
    usual: [1, 4],
    make: (context) => (context.kind.includes(":higher_") ? higher(context) : secondary(context)),
  },
} satisfies Readonly<Record<string, RecordFamily>>
