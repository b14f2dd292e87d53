/**
 * Records of public administrations, suppliers and cloud providers. Their shapes are this service's own
 * (the reference does not show them) and marked as such in every record.
 */
import { cifOf, dateOf, personOf } from "./Person.ts"
import { amountOf } from "./RecordFamily.ts"
import type { RecordContext, RecordFamily } from "./RecordFamily.ts"

const taxNumber = ({ seed, customer_id }: RecordContext) => personOf(seed, customer_id).identification.value

const invoice = (context: RecordContext) => {
  const { draw, position } = context
  const base = draw.int(1_000, 90_000)
  return {
    number: `F-${2026 - (position % 3)}/${draw.digits(5)}`,
    issued_on: dateOf(draw, 2024, 2026),
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

const publicFamilies = {
  labor_check: {
    product: "labor_check",
    kinds: ["labor_check:work_life"],
    usual: [1, 5],
    make: ({ draw }) => ({
      company: `Servicios ${draw.pick(["Norte", "Centro", "Sur"])} S.L.`,
      contribution_account: draw.digits(11),
      regime: draw.pick(["general", "self_employed"]),
      from_date: dateOf(draw, 2008, 2022),
      to_date: draw.chance(0.5) ? dateOf(draw, 2023, 2026) : null,
      days: draw.int(12, 4_000),
    }),
  },
  public_pensions: {
    product: "public_pensions",
    kinds: ["public_pension:retirement", "public_pension:widowhood"],
    usual: [0, 1],
    make: ({ draw }) => ({ monthly_amount: amountOf(draw, 400, 3_000), payments_per_year: 14 }),
  },
  public_document_verification: {
    product: "public_document_verification",
    kinds: ["public_document:certificate"],
    usual: [1, 2],
    make: ({ draw }) => ({ secure_code: `CSV-${draw.digits(16)}`, valid: draw.chance(0.95) }),
  },
  yearly_individual_tax: {
    product: "yearly_individual_tax",
    kinds: ["yearly_individual_tax:es_irpf"],
    usual: [3, 3],
    make: (context) => ({
      fiscal_year: 2025 - context.position,
      tax_number: taxNumber(context),
      work_income: amountOf(context.draw, 9_000, 90_000),
      taxable_base: amountOf(context.draw, 8_000, 80_000),
      result: `${context.draw.chance(0.6) ? "-" : ""}${amountOf(context.draw, 0, 3_000)}`,
      filing: context.draw.pick(["individual", "joint"]),
    }),
  },
  properties_data: {
    product: "properties_data",
    kinds: ["properties_data:urban", "properties_data:rural"],
    usual: [0, 3],
    make: ({ draw }) => ({
      cadastral_reference: `${draw.digits(7)}VK${draw.digits(4)}S${draw.digits(4)}`,
      surface_m2: draw.int(30, 900),
      ownership_percent: draw.pick([100, 50, 33.33]),
      cadastral_value: amountOf(draw, 20_000, 400_000),
    }),
  },
} satisfies Readonly<Record<string, RecordFamily>>

const trafficFamilies = {
  vehicles_data: {
    product: "vehicles_data",
    kinds: ["vehicles_data:car", "vehicles_data:motorcycle"],
    usual: [0, 2],
    make: ({ draw, detailed }) => ({
      plate: `${draw.digits(4)} ${draw.pick(["BCD", "FGH", "JKL", "MNP"])}`,
      vin: `VSS${draw.digits(14)}`,
      registered_on: dateOf(draw, 2004, 2025),
      inspection_until: dateOf(draw, 2026, 2029),
      ...(detailed ? { report: "simple" } : {}),
    }),
  },
  driver_data: {
    product: "driver_data",
    kinds: ["driver_data:licence"],
    usual: [1, 1],
    make: ({ draw, detailed }) => ({
      points: draw.int(0, 15),
      classes: [{ code: "B", since: dateOf(draw, 1990, 2022) }],
      ...(detailed ? { point_movements: [{ date: dateOf(draw, 2019, 2026), points: -draw.int(2, 4) }] } : {}),
    }),
  },
} satisfies Readonly<Record<string, RecordFamily>>

const commercialFamilies = {
  cloud_resource_read: {
    product: "cloud_resources",
    kinds: ["cloud_resource:virtual_machine", "cloud_resource:bucket"],
    usual: [1, 6],
    make: ({ draw }) => ({
      resource_id: `r-${draw.digits(12)}`,
      region: draw.pick(["eu-south", "eu-west", "sa-east"]),
      month_to_date_cost: amountOf(draw, 1, 900),
      labels: { team: draw.pick(["datos", "web"]), "cost-center": draw.digits(4) },
    }),
  },
  supplier_invoices_read: {
    product: "supplier_invoices",
    kinds: ["invoice:supplier"],
    usual: [1, 6],
    make: invoice,
  },
  client_invoices_read: {
    product: "client_invoices",
    kinds: ["invoice:client"],
    usual: [0, 6],
    make: invoice,
  },
} satisfies Readonly<Record<string, RecordFamily>>

export const civicFamilies = { ...publicFamilies, ...trafficFamilies, ...commercialFamilies }
