/**
 * Invented people and companies with valid numbers: DNI, NIE and CIF with their check letters, social
 * security numbers with their check digits. The same customer is the same person on every engine; no real
 * person is meant.
 */
import { given } from "../../base/Schemas.ts"
import { seeded, type Draw, type SeedInput } from "../state/Reading.ts"
import { dayNumber, numberedDay, type ResolvedSettings } from "../state/ResultsPlan.ts"

type AddressPart = "title" | "street" | "municipality" | "city" | "state" | "country" | "zip_code"
export type Address = Readonly<Record<AddressPart, string> & { street_extra?: string }>

export interface Person {
  readonly type: "person" | "company"
  readonly name: string
  readonly surnames: string
  readonly gender: "male" | "female" | "unknown"
  readonly birth_date: string
  readonly identification: {
    readonly type: "es:dni" | "es:nie" | "es:cif" | "co:cc" | "co:ce" | "co:ti" | "co:nit"
    readonly value: string
  }
  /** Where the person was born, or the company founded. */
  readonly origin: "ES" | "CO"
  readonly social_security: string
  readonly address: Address
}

const listed = (text: string) => text.split(", ") as [string, ...ReadonlyArray<string>]

const women = listed("María del Carmen, Lucía, Ana Belén, Núria, Itziar, Paula, Sofía, Begoña")
const men = listed("José Luis, Hugo, Íñigo, Martí, Álvaro, Xoán, Daniel, Andrés")
const surnames = listed(
  "García, Fernández, Muñoz, Peña, de la Fuente, Etxeberria, Puig, Núñez, Ibáñez, López",
)
const trades = listed("Talleres, Panadería, Consultoría, Transportes, Viveros, Imprenta")
const forms = ["S.L.", "S.A."] as const
const places = [
  { city: "Madrid", municipality: "Madrid", state: "Madrid", zip: "28" },
  { city: "Barcelona", municipality: "Sant Andreu", state: "Barcelona", zip: "08" },
  { city: "A Coruña", municipality: "Oleiros", state: "A Coruña", zip: "15" },
  { city: "Donostia", municipality: "Donostia", state: "Gipuzkoa", zip: "20" },
  { city: "Logroño", municipality: "Logroño", state: "La Rioja", zip: "26" },
] as const
const streets = listed("Calle Mayor, Avenida de la Constitución, Plaza Nueva, Carrer d'Aragó, Rúa Nova")

export const twoDigits = (number: number | bigint): string => String(number).padStart(2, "0")

const checkLetters = "TRWAGMYFPDXBNJZSQVHLCKE"
export const dniLetter = (number: number): string => checkLetters.charAt(number % 23)

export const dniOf = (draw: Draw): string => {
  const digits = draw.digits(8)
  return `${digits}${dniLetter(Number(digits))}`
}
export const nieOf = (draw: Draw): string => {
  const prefix = draw.int(0, 2)
  const digits = draw.digits(7)
  return `${"XYZ".charAt(prefix)}${digits}${dniLetter(Number(`${prefix}${digits}`))}`
}

/** Odd positions doubled and their digits summed; companies A and B end with a digit. */
export const cifControl = (digits: string): number => {
  const sum = [...digits].reduce((total, digit, index) => {
    const value = Number(digit)
    const doubled = value * 2
    return total + (index % 2 === 0 ? Math.floor(doubled / 10) + (doubled % 10) : value)
  }, 0)
  return (10 - (sum % 10)) % 10
}
export const cifOf = (draw: Draw): string => {
  const digits = draw.digits(7)
  return `${draw.pick(["A", "B"])}${digits}${cifControl(digits)}`
}

/** Province, number and their remainder modulo 97. */
export const socialSecurityOf = (draw: Draw): string => {
  const province = twoDigits(draw.int(1, 50))
  const number = String(draw.int(10_000_000, 99_999_999))
  return `${province}${number}${twoDigits(BigInt(`${province}${number}`) % 97n)}`
}

export const addressOf = (draw: Draw, title: string): Address => {
  const place = draw.pick(places)
  const extra = draw.chance(0.6) ? `${draw.int(1, 9)}º ${draw.pick(["A", "B", "C"])}` : undefined
  return {
    title,
    street: `${draw.pick(streets)}, ${draw.int(1, 180)}`,
    ...(extra === undefined ? {} : { street_extra: extra }),
    municipality: place.municipality,
    city: place.city,
    state: place.state,
    country: "ES",
    zip_code: `${place.zip}${draw.digits(3)}`,
  }
}

/** A calendar date, `YYYY-MM-DD`. */
export const dateOf = (draw: Draw, fromYear: number, toYear: number): string =>
  [draw.int(fromYear, toYear), twoDigits(draw.int(1, 12)), twoDigits(draw.int(1, 28))].join("-")

const companyOf = (draw: Draw): Person => ({
  type: "company",
  origin: "ES",
  name: `${draw.pick(trades)} ${draw.pick(surnames)} ${draw.pick(forms)}`,
  surnames: "",
  gender: "unknown",
  birth_date: dateOf(draw, 1985, 2020),
  identification: { type: "es:cif", value: cifOf(draw) },
  social_security: socialSecurityOf(draw),
  address: addressOf(draw, "Domicilio social"),
})

/** Modulo 11 over the digits from the right. */
export const nitControl = (digits: string): number => {
  const weights = [3, 7, 13, 17, 19, 23, 29, 37, 41]
  const sum = [...digits]
    .toReversed()
    .reduce((total, digit, at) => total + Number(digit) * (weights[at] ?? 43), 0)
  return sum % 11 > 1 ? 11 - (sum % 11) : sum % 11
}

const colombianPlaces = [
  { city: "Bogotá", municipality: "Chapinero", state: "Cundinamarca", zip: "110" },
  { city: "Medellín", municipality: "Envigado", state: "Antioquia", zip: "055" },
] as const

/** Some customers live in Colombia, with numbers of that country. */
const inColombia = (person: Person, draw: Draw): Person => {
  const place = draw.pick(colombianPlaces)
  const digits = draw.digits(9)
  const minor = draw.chance(0.2)
  const personal = minor ? "co:ti" : draw.pick(["co:cc", "co:cc", "co:ce"])
  return {
    ...person,
    origin: personal === "co:ce" && person.type === "person" ? "ES" : "CO",
    birth_date: minor && person.type === "person" ? dateOf(draw, 2009, 2012) : person.birth_date,
    identification:
      person.type === "company"
        ? { type: "co:nit", value: `${digits}-${nitControl(digits)}` }
        : { type: personal, value: personal === "co:ce" ? digits.slice(0, 6) : `1${digits}` },
    address: {
      title: person.address.title,
      street: `Carrera ${draw.int(1, 90)} # ${draw.int(1, 120)}-${draw.int(1, 99)}`,
      municipality: place.municipality,
      city: place.city,
      state: place.state,
      country: "CO",
      zip_code: `${place.zip}${draw.digits(3)}`,
    },
  }
}

/** `variation` 0 is the customer, others are further people; `company`: whatever the seed. */
export const personOf = (seed: number, customer_id: string, variation = 0, company = false): Person => {
  const person = spaniardOf(seed, customer_id, variation, company)
  const draw = seeded("person-country", seed, customer_id, variation)
  return draw.chance(0.08) ? inColombia(person, draw) : person
}

const spaniardOf = (seed: number, customer_id: string, variation: number, company: boolean): Person => {
  const draw = seeded("person", seed, customer_id, variation)
  if (draw.chance(0.1) || company) return companyOf(draw)
  const woman = draw.chance(0.5)
  const foreign = draw.chance(0.12)
  return {
    type: "person",
    origin: foreign ? "CO" : "ES",
    name: woman ? draw.pick(women) : draw.pick(men),
    surnames: `${draw.pick(surnames)} ${draw.pick(surnames)}`,
    gender: woman ? "female" : "male",
    birth_date: dateOf(draw, 1948, 2004),
    identification: foreign ? { type: "es:nie", value: nieOf(draw) } : { type: "es:dni", value: dniOf(draw) },
    social_security: socialSecurityOf(draw),
    address: addressOf(draw, "Domicilio"),
  }
}

// Kinds depend only on the position, so that products can be counted without making records.

export interface RecordContext {
  readonly seed: number
  readonly customer_id: string
  readonly engine_reference: string
  readonly position: number
  readonly kind: string
  /** Its position among the records of its kind: what makes it the same record under other filters. */
  readonly nth: number
  readonly settings: ResolvedSettings
  /** Its protected fields were not unlocked. */
  readonly shielded: boolean
  /** The day of the start. */
  readonly today: string
  /** The customer is a company, whatever the seed. */
  readonly company: boolean
  readonly draw: Draw
}

/** What the number of records depends on if dates select them. */
export type DatesContext = Pick<
  RecordContext,
  "seed" | "customer_id" | "engine_reference" | "settings" | "today"
>

/** A record without `product`, `sub_family` and `fetch_date`, which every record gets. */
export type RecordBody = Readonly<Record<string, unknown>>

export interface RecordFamily {
  readonly product: string
  readonly kinds: readonly [string, ...ReadonlyArray<string>]
  /** How many records a source has if no word sets it: both limits included. */
  readonly usual: readonly [min: number, max: number]
  /** How many there are if dates select them, per kind; in place of `usual`. */
  readonly countByDates?: (context: DatesContext) => number
  readonly make: (context: RecordContext) => RecordBody
}

/** `kinds`: the prefix and what may follow it, `account:checking|savings`. */
export const family = (
  product: string,
  kinds: string,
  usual: RecordFamily["usual"],
  make: RecordFamily["make"],
  countByDates?: RecordFamily["countByDates"],
): RecordFamily => {
  const [prefix = "", ends = ""] = kinds.split(":")
  const [first = "", ...rest] = ends.split("|").map((end) => `${prefix}:${end}`)
  return { product, kinds: [first, ...rest], usual, make, ...given({ countByDates }) }
}

/** An amount of money as a string with two decimals, as banks print it. */
export const amountOf = (draw: Draw, min: number, max: number): string =>
  (draw.int(min * 100, max * 100) / 100).toFixed(2)

// What recurs at a source depends on customer and source alone: settings (4.1) select from one history.

/** The occurrence `n` is on day `offset + n * everyDays` since 1970-01-01. */
interface Recurrence {
  readonly everyDays: number
  readonly offset: number
}

export const recurrenceOf = (
  [min, max]: readonly [min: number, max: number],
  ...inputs: ReadonlyArray<SeedInput>
): Recurrence => {
  const draw = seeded("recurrence", ...inputs)
  const everyDays = draw.int(min, max)
  return { everyDays, offset: draw.int(0, everyDays - 1) }
}

export const occurrenceDay = ({ everyDays, offset }: Recurrence, occurrence: number): string =>
  numberedDay(offset + occurrence * everyDays)

/** The newest occurrence up to `day`, that day included. */
export const newestOccurrence = ({ everyDays, offset }: Recurrence, day: string): number =>
  Math.floor((dayNumber(day) - offset) / everyDays)

/** Those from `from_date` to `to_date`, both included, never after the day of the start. */
export const occurrencesIn = (
  recurrence: Recurrence,
  { settings: { from_date, to_date }, today }: Pick<RecordContext, "settings" | "today">,
) => {
  const newest = newestOccurrence(recurrence, to_date === undefined || to_date > today ? today : to_date)
  const before = Math.ceil((dayNumber(from_date ?? today) - recurrence.offset) / recurrence.everyDays)
  return { newest, count: Math.max(0, newest - before + 1) }
}
