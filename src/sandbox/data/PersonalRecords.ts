/**
 * Records whose shape the reference shows (section 2.7): customer profiles, higher and secondary education.
 * Sources give more or less detail: every optional field is present in some records and missing from
 * others. The shape of every other family is this service's own and marked as such.
 */
import { addressOf, amountOf, cifOf, dateOf, family, occurrenceDay, occurrencesIn } from "./Person.ts"
import { personOf, recurrenceOf, twoDigits } from "./Person.ts"
import type { Address, Person, RecordBody, RecordContext, RecordFamily } from "./Person.ts"
import { seeded, type Draw } from "../state/Reading.ts"

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

type IdentificationNumber = Readonly<Record<"type" | "value" | "country", string> & { valid_until?: string }>

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

const tellAddress = (shape: Draw, address: Address): RecordBody =>
  told(
    shape,
    { title: 0.9, street: 0.97, municipality: 0.9, city: 0.97, state: 0.9, country: 0.95, zip_code: 0.95 },
    { ...address },
  )

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
  customer_information_read: family(
    "customer_information",
    "customer_information:user_profile",
    [1, 1],
    profile,
  ),
  academic_data: family(
    "academic_data",
    "academic_data:higher_bachelor|secondary_general|higher_master|secondary_vocational|higher_doctorate" +
      "|professional_certification",
    [1, 4],
    (context) => (context.kind.includes(":higher_") ? higher(context) : secondary(context)),
  ),
} satisfies Readonly<Record<string, RecordFamily>>

/** An IBAN with valid check digits (ISO 7064, modulo 97). */
export const ibanOf = (draw: Draw): string => {
  const account = draw.digits(20)
  const check = 98n - (BigInt(`${account}142800`) % 97n)
  return `ES${twoDigits(check)}${account}`
}

const holders = ({ seed, customer_id, company }: RecordContext) => {
  const person = personOf(seed, customer_id, 0, company)
  return [{ name: `${person.name} ${person.surnames}`.trim(), role: "holder" }]
}

/** Newest first. */
const movements = (context: RecordContext) => {
  const { seed, customer_id, engine_reference, kind, nth } = context
  const of = [seed, customer_id, engine_reference, kind, nth]
  const recurrence = recurrenceOf([2, 5], "movement", ...of)
  const { newest, count } = occurrencesIn(recurrence, context)
  return Array.from({ length: count }, (_, position) => {
    const draw = seeded("movement", ...of, newest - position)
    return {
      value_date: occurrenceDay(recurrence, newest - position),
      amount: `${draw.chance(0.7) ? "-" : ""}${amountOf(draw, 1, 900)}`,
      concept: draw.pick(["Recibo luz", "Nómina", "Supermercado", "Transferencia", "Bizum, «gracias»"]),
    }
  })
}

const details = (context: RecordContext) => ({
  ...(context.settings.read_holders === true ? { holders: holders(context) } : {}),
  ...(context.settings.read_transactions === true ? { transactions: movements(context) } : {}),
})

const account = (context: RecordContext): RecordBody => ({
  iban: ibanOf(context.draw),
  alias: context.draw.pick(["Cuenta nómina", "Cuenta común", "Ahorro vacaciones"]),
  currency: "EUR",
  balance: amountOf(context.draw, 0, 42_000),
  opened_on: dateOf(context.draw, 2001, 2024),
  ...details(context),
})

/** Number and expiry are what an engine may protect; which data that is, is not shown; own choice. */
const card = (context: RecordContext): RecordBody => {
  const { draw } = context
  const shown = {
    masked_pan: `•••• •••• •••• ${draw.digits(4)}`,
    brand: draw.pick(["visa", "mastercard"]),
    expires: `${draw.int(2027, 2031)}-${twoDigits(draw.int(1, 12))}`,
  }
  return {
    ...(context.shielded ? { brand: shown.brand } : shown),
    credit_limit: amountOf(draw, 300, 6_000),
    currency: "EUR",
    ...details(context),
  }
}

const contracts = (
  product: string,
  kinds: string,
  usual: RecordFamily["usual"],
  extra: (draw: Draw) => RecordBody,
): RecordFamily =>
  family(product, kinds, usual, (context) => ({
    contract_number: context.draw.digits(16),
    currency: "EUR",
    opened_on: dateOf(context.draw, 2008, 2025),
    ...extra(context.draw),
    ...details(context),
  }))

const borrowed = (draw: Draw): RecordBody => ({
  granted: amountOf(draw, 1_000, 250_000),
  outstanding: amountOf(draw, 0, 1_000),
  interest_rate: `${draw.int(0, 6)}.${draw.digits(3)}`,
})

const positioned = (draw: Draw): RecordBody => ({
  isin: `ES${draw.digits(10)}`,
  units: `${draw.int(1, 900)}.${draw.digits(4)}`,
  value: amountOf(draw, 10, 90_000),
})

export const financialFamilies = {
  accounts_read: family("accounts", "account:checking|savings", [1, 4], account),
  cards_read: family("cards", "financial_card:debit|credit|prepaid|mixed", [0, 3], card),
  deposits_read: contracts("deposits", "deposit:fixed_term", [0, 2], (draw) => ({
    principal: amountOf(draw, 1_000, 60_000),
    matures_on: dateOf(draw, 2027, 2030),
  })),
  loans_read: contracts("loans", "loan:mortgage|personal", [0, 2], borrowed),
  credits_read: contracts("credits", "credit:line", [0, 1], borrowed),
  investment_accounts_read: contracts(
    "investment_accounts",
    "investment_account:securities",
    [0, 1],
    (draw) => ({ market_value: amountOf(draw, 0, 300_000) }),
  ),
  funds_read: contracts("funds", "fund:mixed|equity", [0, 3], positioned),
  stocks_read: contracts("stocks", "stock:listed", [0, 5], positioned),
  pensions_read: contracts("pensions", "pension:individual_plan", [0, 2], positioned),
  accounts_certificates: family(
    "accounts_certificates",
    "account_certificate:ownership",
    [1, 1],
    (context) => ({
      iban: ibanOf(seeded("certificate", context.seed, context.customer_id)),
      issued_on: dateOf(context.draw, 2026, 2026),
      holders: holders(context),
    }),
  ),
  direct_debits_read: family("direct_debits", "direct_debit:recurring", [0, 6], ({ draw }) => ({
    creditor: `Suministros ${draw.pick(["Norte", "Sur", "Levante"])} S.A.`,
    creditor_id: cifOf(draw),
    mandate: draw.digits(20),
    last_amount: amountOf(draw, 5, 300),
  })),
  source_contracts_read: contracts("source_contracts", "source_contract:service", [1, 2], (draw) => ({
    tariff: draw.pick(["2.0TD", "Fibra 600", "Plan básico"]),
  })),
  credit_registry_data: family(
    "credit_registry_data",
    "credit_registry_data:es_cirbe_detailed|es_cirbe_aggregated",
    [1, 2],
    ({ draw }) => ({
      period: `2026-${twoDigits(draw.int(1, 10))}`,
      total_risk: amountOf(draw, 0, 400_000),
      entities: draw.int(1, 5),
    }),
  ),
} satisfies Readonly<Record<string, RecordFamily>>
