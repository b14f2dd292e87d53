/**
 * Records whose shape the reference shows (section 2.7): customer profiles, higher and secondary education.
 * Every other family of this service has a shape of its own choice and says so.
 */
import { addressOf, dateOf, personOf } from "./Person.ts"
import type { RecordBody, RecordContext, RecordFamily } from "./RecordFamily.ts"

const identificationNumbers = (person: ReturnType<typeof personOf>, year: number) => [
  {
    type: person.identification.type,
    value: person.identification.value,
    validated: true,
    country: "ES",
    ...(person.type === "person" ? { valid_until: `${year}-06-30` } : {}),
  },
  ...(person.type === "person"
    ? [{ type: "es:ssn", value: person.social_security, validated: true, country: "ES" }]
    : []),
]

const profile = ({ seed, customer_id, position, draw }: RecordContext): RecordBody => {
  const person = personOf(seed, customer_id, position)
  const isPerson = person.type === "person"
  const mailbox = `cliente.${draw.digits(6)}`
  return {
    type: person.type,
    name: person.name,
    ...(isPerson ? { name_extra: person.surnames } : {}),
    alias: person.name.split(" ")[0],
    identification_numbers: identificationNumbers(person, draw.int(2027, 2034)),
    birth_date: person.birth_date,
    birth_country: person.identification.type === "es:nie" ? "CO" : "ES",
    nationality_country: person.identification.type === "es:nie" ? "CO" : "ES",
    residence_country: "ES",
    gender: person.gender,
    civil_status: isPerson ? draw.pick(["single", "married", "divorced", "widowed", "separated"]) : "unknown",
    ...(isPerson ? { number_of_children: draw.int(0, 4) } : {}),
    emails: Array.from({ length: draw.int(0, 2) }, (_, index) => `${mailbox}.${index}@correo.invalid`),
    phones: Array.from({ length: draw.int(1, 2) }, () => `+34 6${draw.digits(8)}`),
    addresses: [person.address, ...(draw.chance(0.3) ? [addressOf(draw, "Correspondencia")] : [])],
    language: draw.pick(["es", "ca", "gl", "eu"]),
    member_since: dateOf(draw, 2005, 2024),
  }
}

const higherDegrees = [
  ["Grado en Ingeniería Informática", "Engineering"],
  ["Máster Universitario en Economía", "Economics"],
  ["Doctorado en Biología Molecular", "Biology"],
] as const
const universities = ["Universidad de Ejemplo", "Universitat de Mostra", "Unibertsitate Eredua"] as const

const higher = ({ kind, draw }: RecordContext): RecordBody => {
  const level = ["bachelor", "master", "doctorate"].findIndex((name) => kind.endsWith(name))
  const [qualification, field] = higherDegrees[level] ?? higherDegrees[0]
  const began = draw.int(1998, 2020)
  const doctorate = kind.endsWith("doctorate")
  return {
    qualification_name: qualification,
    institution_name: draw.pick(universities),
    institution_country: "ES",
    completion_status: draw.pick(["completed", "completed", "in_progress"]),
    total_credits: doctorate ? "0.0" : draw.pick(["240.0", "180.5", "60.0", "120.0"]),
    grade_average: `${draw.int(5, 9)}.${draw.digits(2)}`,
    start_date: `${began}-09-15`,
    end_date: `${began + 4}-06-30`,
    issue_date: `${began + 4}-10-01`,
    official_id: `RNT-${draw.digits(10)}`,
    verification_url: `https://titulos.invalid/v/${draw.digits(12)}`,
    ...(doctorate ? { thesis_title: "Sobre la paciencia de los sistemas distribuidos" } : {}),
    field_of_study: field,
  }
}

const secondary = ({ kind, draw }: RecordContext): RecordBody => {
  const began = draw.int(1990, 2016)
  return {
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
