/**
 * Records of public administrations, suppliers and cloud providers. Their shapes are this service's own
 * (the reference does not show them) and marked as such in every record. `schemas/readings` has a
 * record schema for each of them.
 */
import { amountOf, cifOf, dateOf, family, newestOccurrence, occurrenceDay, occurrencesIn } from "./Person.ts"
import { personOf, recurrenceOf } from "./Person.ts"
import type { DatesContext, RecordBody, RecordContext, RecordFamily } from "./Person.ts"
import { dayNumber } from "../state/ResultsPlan.ts"
import { seeded } from "../state/Reading.ts"

const taxNumber = ({ seed, customer_id, company }: RecordContext) =>
  personOf(seed, customer_id, 0, company).identification.value

const invoicesOf = (product: string, context: DatesContext) => {
  const { seed, customer_id, engine_reference } = context
  const recurrence = recurrenceOf([6, 14], product, seed, customer_id, engine_reference)
  return { recurrence, ...occurrencesIn(recurrence, context) }
}

/** Newest first; more than the source issued in these days only if a behaviour word asks for more. */
const invoice = (product: string, context: RecordContext): RecordBody => {
  const { seed, customer_id, engine_reference, position } = context
  const { recurrence, count, newest } = invoicesOf(product, context)
  const occurrence = newest - (count === 0 ? 0 : position % count)
  const lap = count === 0 ? position : Math.floor(position / count)
  const draw = seeded("invoice", product, seed, customer_id, engine_reference, occurrence, lap)
  const issued_on = occurrenceDay(recurrence, occurrence)
  const base = draw.int(1_000, 90_000)
  return {
    number: `F-${issued_on.slice(0, 4)}/${draw.digits(5)}`,
    issued_on,
    counterpart: { name: "Comercial Ejemplo S.L.", tax_number: cifOf(draw) },
    lines: Array.from({ length: draw.int(1, 3) }, (_, line) => ({
      line,
      concept: draw.pick(["Consumo", "Cuota fija", "Alquiler de equipos"]),
    })),
    base: (base / 100).toFixed(2),
    vat: ((base * 21) / 10_000).toFixed(2),
    currency: "EUR",
  }
}

const jobsOf = ({ seed, customer_id, engine_reference, today }: DatesContext) => {
  const recurrence = recurrenceOf([200, 900], "job", seed, customer_id, engine_reference)
  return { recurrence, newest: newestOccurrence(recurrence, today) }
}

/** A job that was still held at `from_date` counts too. */
const countJobs = (context: DatesContext): number => {
  const { recurrence, newest } = jobsOf(context)
  return newest - newestOccurrence(recurrence, context.settings.from_date ?? context.today) + 1
}

/** Nobody works longer than this; further records of one person repeat their jobs. */
const jobsMax = 30

const contributionBases = (from: string, to: string, monthly: number) => {
  const months = Math.floor((dayNumber(to) - dayNumber(from)) / 30.44) + 1
  const [year = 0, month = 1] = from.split("-").map(Number)
  return Array.from({ length: months }, (_, index) => ({
    month: new Date(Date.UTC(year, month - 1 + index, 1)).toISOString().slice(0, 7),
    base: (monthly + index).toFixed(2),
  }))
}

const job = (context: RecordContext): RecordBody => {
  const { seed, customer_id, engine_reference, nth, kind, today, settings } = context
  const { recurrence, newest } = jobsOf(context)
  const occurrence = newest - (nth % jobsMax)
  const draw = seeded("job", seed, customer_id, engine_reference, occurrence)
  const began = occurrenceDay(recurrence, occurrence)
  const ended = occurrence === newest ? null : occurrenceDay(recurrence, occurrence + 1)
  const about = {
    company: `Servicios ${draw.pick(["Norte", "Centro", "Sur"])} S.L.`,
    contribution_account: draw.digits(11),
    regime: draw.pick(["general", "self_employed"]),
    from_date: began,
    to_date: ended,
    days: dayNumber(ended ?? today) - dayNumber(began),
  }
  if (kind === "labor_check:work_life") return about
  const since = settings.from_date ?? began
  return {
    ...about,
    bases: contributionBases(since > began ? since : began, ended ?? today, draw.int(1_100, 4_000)),
  }
}

const invoices = (product: string, kind: string, usual: RecordFamily["usual"]): RecordFamily =>
  family(
    product,
    kind,
    usual,
    (context) => invoice(product, context),
    (context) => invoicesOf(product, context).count,
  )

export const civicFamilies = {
  labor_check: family("labor_check", "labor_check:work_life|contribution_bases", [1, 5], job, countJobs),
  public_pensions: family("public_pensions", "public_pension:retirement|widowhood", [0, 1], ({ draw }) => ({
    monthly_amount: amountOf(draw, 400, 3_000),
    payments_per_year: 14,
    currency: "EUR",
    granted_on: dateOf(draw, 2005, 2025),
    managing_body: draw.pick(["INSS", "ISM"]),
  })),
  public_document_verification: family(
    "public_document_verification",
    "public_document:certificate",
    [1, 2],
    ({ draw }) => ({
      secure_code: `CSV-${draw.digits(16)}`,
      valid: draw.chance(0.95),
      issuer: draw.pick(["Ayuntamiento de Ejemplo", "Registro Civil de Ejemplo"]),
      issued_on: dateOf(draw, 2015, 2025),
    }),
  ),
  yearly_individual_tax: family(
    "yearly_individual_tax",
    "yearly_individual_tax:es_irpf",
    [3, 3],
    (context) => ({
      fiscal_year: Number(context.today.slice(0, 4)) - 1 - context.position,
      tax_number: taxNumber(context),
      work_income: amountOf(context.draw, 9_000, 90_000),
      taxable_base: amountOf(context.draw, 8_000, 80_000),
      result: `${context.draw.chance(0.6) ? "-" : ""}${amountOf(context.draw, 0, 3_000)}`,
      filing: context.draw.pick(["individual", "joint"]),
    }),
  ),
  properties_data: family("properties_data", "properties_data:urban|rural", [0, 3], ({ draw }) => ({
    cadastral_reference: `${draw.digits(7)}VK${draw.digits(4)}S${draw.digits(4)}`,
    surface_m2: draw.int(30, 900),
    ownership_percent: draw.pick([100, 50, 33.33]),
    cadastral_value: amountOf(draw, 20_000, 400_000),
  })),
  vehicles_data: family("vehicles_data", "vehicles_data:car|motorcycle", [0, 2], ({ draw, settings }) => ({
    plate: `${draw.digits(4)} ${draw.pick(["BCD", "FGH", "JKL", "MNP"])}`,
    registered_on: dateOf(draw, 2004, 2025),
    ...(settings.simple_vehicle_report === true
      ? { report: "simple" }
      : { report: "full", vin: `VSS${draw.digits(14)}`, inspection_until: dateOf(draw, 2026, 2029) }),
  })),
  driver_data: family("driver_data", "driver_data:licence", [1, 1], ({ draw, settings }) => ({
    points: draw.int(0, 15),
    valid_until: dateOf(draw, 2027, 2034),
    classes: [{ code: "B", since: dateOf(draw, 1990, 2022) }],
    ...(settings.read_point_movements === true
      ? { point_movements: [{ date: dateOf(draw, 2019, 2026), points: -draw.int(2, 4) }] }
      : {}),
  })),
  cloud_resource_read: family(
    "cloud_resources",
    "cloud_resource:virtual_machine|bucket",
    [1, 6],
    ({ draw }) => ({
      resource_id: `r-${draw.digits(12)}`,
      region: draw.pick(["eu-south", "eu-west", "sa-east"]),
      month_to_date_cost: amountOf(draw, 1, 900),
      labels: { team: draw.pick(["datos", "web"]), "cost-center": draw.digits(4) },
    }),
  ),
  supplier_invoices_read: invoices("supplier_invoices", "invoice:supplier", [1, 6]),
  client_invoices_read: invoices("client_invoices", "invoice:client", [0, 6]),
} satisfies Readonly<Record<string, RecordFamily>>
