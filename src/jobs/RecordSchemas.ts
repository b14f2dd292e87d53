/**
 * `schemas` and `record_schemas` in a job file: the folder of its own record schemas, and the tables that
 * it fills by our readings, the record schemas of what the reference does not show (`schemas/readings`).
 * The embedded service's records look like that; those of another service may not, so there a job names them.
 */
import { Schema } from "effect"
import { text } from "./Scalars.ts"
import { optional } from "./ShapeKeys.ts"

/** A file each; a table has the name of its product. */
export const readingTables = [
  "accounts",
  "accounts_certificates",
  "cards",
  "client_invoices",
  "cloud_resources",
  "credit_registry_data",
  "credits",
  "deposits",
  "direct_debits",
  "driver_data",
  "funds",
  "investment_accounts",
  "labor_check",
  "loans",
  "pensions",
  "properties_data",
  "public_document_verification",
  "public_pensions",
  "source_contracts",
  "stocks",
  "supplier_invoices",
  "vehicles_data",
  "yearly_individual_tax",
] as const

export const RecordSchemasShape = Schema.Union([
  Schema.Literal("all"),
  Schema.Array(Schema.Literals(readingTables)),
])

export const schemaKeys = {
  schemas: optional(
    text,
    "A folder beside the job file: records/*.yaml are record schemas, results/*.yaml results sources.",
  ),
  record_schemas: optional(
    RecordSchemasShape,
    "Tables for records that the reference does not show: those named here, or all that the job's features " +
      "feed; [] is none. Without it: all on the embedded service if the job has no pseudonyms, else none.",
  ),
}
