/**
 * The published tables as an Open Data Contract Standard document (3.0): every table and view with its
 * columns, types and keys, from the same source as the data dictionary. It states what holds every night and
 * nothing of one night, so it changes only when the tables do.
 */
import type { ColumnSpec, TableSpec } from "../records/Columns.ts"
import type { RecordFamily } from "../records/RecordSchema.ts"
import { identifier } from "../base/DuckDbFailed.ts"
import { publishedTables, publishedViews } from "./DataDictionary.ts"
import type { PseudonymPolicy } from "./Treatments.ts"

interface LogicalType {
  /** Left out for JSON, which may be anything. */
  readonly logicalType?: "string" | "date" | "number" | "integer" | "array" | "boolean"
  readonly logicalTypeOptions?: Readonly<Record<string, string>>
  readonly items?: LogicalType & { readonly physicalType: string }
}

export interface ContractProperty extends LogicalType {
  readonly name: string
  readonly physicalType: string
  readonly description: string
  readonly required: boolean
  readonly primaryKey?: true
  /** From 1. */
  readonly primaryKeyPosition?: number
}

type Quality = { readonly description: string; readonly dimension: string } & (
  | { readonly type: "text" }
  | { readonly type: "sql"; readonly query: string; readonly mustBe: number }
)

export interface ContractObject {
  readonly name: string
  readonly physicalType: "table" | "view"
  readonly description: string
  readonly properties: ReadonlyArray<ContractProperty>
  readonly quality?: ReadonlyArray<Quality>
}

const plainTypes: Readonly<Record<string, LogicalType>> = {
  VARCHAR: { logicalType: "string" },
  BOOLEAN: { logicalType: "boolean" },
  INTEGER: { logicalType: "integer", logicalTypeOptions: { format: "i32" } },
  BIGINT: { logicalType: "integer", logicalTypeOptions: { format: "i64" } },
  DOUBLE: { logicalType: "number", logicalTypeOptions: { format: "f64" } },
  DATE: { logicalType: "date", logicalTypeOptions: { format: "yyyy-MM-dd" } },
  TIMESTAMPTZ: { logicalType: "date", logicalTypeOptions: { format: "yyyy-MM-dd HH:mm:ss.SSSSSSX" } },
  "VARCHAR[]": { logicalType: "array", items: { logicalType: "string", physicalType: "VARCHAR" } },
  JSON: {},
}

const propertyOf =
  (key: ReadonlyArray<string>) =>
  ({ name, type, comment, nullable }: ColumnSpec): ContractProperty => ({
    name,
    ...(plainTypes[type] ?? { logicalType: "number" }),
    physicalType: type,
    description: comment,
    required: !nullable,
    ...(key.includes(name) ? { primaryKey: true, primaryKeyPosition: key.indexOf(name) + 1 } : {}),
  })

const uniqueKey = ({ name }: TableSpec, key: ReadonlyArray<string>): Quality => {
  const columns = key.map(identifier).join(", ")
  const repeated = `SELECT ${columns} FROM ${identifier(name)} GROUP BY ALL HAVING count(*) > 1`
  return {
    description: "No two rows have the same key.",
    dimension: "uniqueness",
    type: "sql",
    query: `SELECT count(*) FROM (${repeated})`,
    mustBe: 0,
  }
}

const freshness: Quality = {
  description: "age_days tells how old the data of each customer, engine and feature is.",
  dimension: "timeliness",
  type: "text",
}

/** All tables and views, in the order of the dictionary. */
export const contractObjects = (
  families: ReadonlyArray<RecordFamily>,
  policy?: PseudonymPolicy,
): ReadonlyArray<ContractObject> => [
  ...publishedTables(families, policy).map((spec): ContractObject => ({
    name: spec.name,
    physicalType: "table",
    description: spec.comment,
    properties: spec.columns.map(propertyOf(spec.key)),
    ...(spec.key.length === 0 ? {} : { quality: [uniqueKey(spec, spec.key)] }),
  })),
  ...publishedViews(families, policy).map(({ name, comment, columns }): ContractObject => ({
    name,
    physicalType: "view",
    description: comment,
    properties: columns.map(propertyOf([])),
    ...(columns.some((column) => column.name === "age_days") ? { quality: [freshness] } : {}),
  })),
]

/** The document; `toolVersion` is the version of the program that publishes the tables. */
export const dataContract = (objects: ReadonlyArray<ContractObject>, toolVersion: string) => ({
  apiVersion: "v3.0.1",
  kind: "DataContract",
  id: "urn:nightjar:tables",
  name: "nightjar-tables",
  version: toolVersion,
  status: "active",
  description: {
    purpose: "What the extraction service returned for each customer, night after night.",
    usage: "A table has the rows of every run, <table>_latest the current ones, <table>_history since when.",
    limitations:
      "Paths are relative to the output folder. A value that does not fit its column is in `extra`.",
  },
  servers: [
    { server: "database", type: "duckdb", database: "nightjar.duckdb" },
    { server: "files", type: "local", path: "tables/*/run_date=*/*.parquet", format: "parquet" },
  ],
  schema: objects.map((object) => ({ logicalType: "object", ...object })),
})
