/**
 * The published tables as an Open Data Contract Standard document (3.0). It states what holds every night and
 * nothing of one night, so it changes only when the tables do.
 */
import { identifier } from "../base/DuckDbFailed.ts"
import type { ColumnSpec } from "../records/Columns.ts"
import type { RecordFamily } from "../records/RecordSchema.ts"
import { describedTables, nameInSql, placeOf, type Described } from "./DataDictionary.ts"
import { mainReferences, referencesOf, type Reference } from "./Dimensions.ts"
import { coverageTable, runsTable } from "./SystemTables.ts"
import type { PseudonymPolicy } from "./Treatments.ts"

/** JSON has none: it may be anything. */
const plainTypes: Readonly<Record<string, object>> = {
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
  ({ name, type, comment, nullable }: ColumnSpec) => ({
    name,
    ...(plainTypes[type] ?? { logicalType: "number" }),
    physicalType: type,
    description: comment,
    required: !nullable,
    ...(key.includes(name) ? { primaryKey: true, primaryKeyPosition: key.indexOf(name) + 1 } : {}),
  })

const uniqueKey = (name: string, key: ReadonlyArray<string>) => {
  const columns = key.map(identifier).join(", ")
  const repeated = `SELECT ${columns} FROM ${name} GROUP BY ALL HAVING count(*) > 1`
  return {
    description: "No two rows have the same key.",
    dimension: "uniqueness",
    type: "sql",
    query: `SELECT count(*) FROM (${repeated})`,
    mustBe: 0,
  }
}

const freshness: Partial<ReturnType<typeof uniqueKey>> = {
  description: "age_days tells how old the data of each customer, engine and feature is.",
  dimension: "timeliness",
  type: "text",
}

export const contractObjects = (families: ReadonlyArray<RecordFamily>, policy?: PseudonymPolicy) =>
  describedTables(families, policy).map((one) => {
    const quality: ReadonlyArray<typeof freshness> = [
      ...(one.key.length === 0 ? [] : [uniqueKey(nameInSql(one), one.key)]),
      ...(one.columns.some(({ name }) => name === "age_days") ? [freshness] : []),
    ]
    return {
      name: nameInSql(one),
      physicalType: one.kind,
      description: one.comment,
      properties: one.columns.map(propertyOf(one.key)),
      ...(quality.length === 0 ? {} : { quality }),
    }
  })

export const dataContract = (objects: ReturnType<typeof contractObjects>, toolVersion: string) => ({
  apiVersion: "v3.0.1",
  kind: "DataContract",
  id: "urn:nightjar:tables",
  name: "nightjar-tables",
  version: toolVersion,
  status: "active",
  description: {
    purpose: "What the extraction service returned for each customer, night after night.",
    usage: "main has what is true now, history since when, nights what each run read, ops what happened.",
    limitations:
      "Paths are relative to the output folder. A value that does not fit its column is in `extra`.",
  },
  servers: [
    { server: "database", type: "duckdb", database: "nightjar.duckdb" },
    { server: "files", type: "local", path: "tables/*/run_date=*/*.parquet", format: "parquet" },
  ],
  schema: objects.map((object) => ({ logicalType: "object", ...object })),
})

// The published tables as sources of a dbt project. It uses dbt's own four tests only, in the form of dbt
// 1.10.5 and later, so that a project needs no package for it.

/** The source's name in `source('nightjar', 'customers')`; that of `main` is the shortest. */
const sourceName = (schema: string): string => (schema === "main" ? "nightjar" : `nightjar_${schema}`)

/** Tables and views in which every night leaves a time; a record table may stay empty for good reasons. */
const loadedAt: ReadonlyMap<string, string> = new Map([
  [`ops.${runsTable.name}`, "published_at"],
  [`ops.${coverageTable.name}`, "as_of"],
  ["coverage", "as_of"],
])
/** One night is late by half a day; two nights are missing. */
const dbtFreshness = {
  warn_after: { count: 36, period: "hour" },
  error_after: { count: 60, period: "hour" },
} as const

/** A key of several columns as one value; dbt's tests take an expression wherever they take a column. */
const together = (columns: ReadonlyArray<string>): string => {
  const [only = ""] = columns
  return columns.length === 1 ? only : `row(${columns.map(identifier).join(", ")})`
}

const columnOf =
  (key: ReadonlyArray<string>) =>
  ({ name, type, comment, nullable, values }: ColumnSpec) => {
    const isKey = key.length === 1 && key[0] === name
    const data_tests = [
      ...(isKey ? (["unique"] as const) : []),
      ...(isKey || !nullable ? (["not_null"] as const) : []),
      ...(values === undefined ? [] : [{ accepted_values: { arguments: { values } } }]),
    ]
    const tested = data_tests.length === 0 ? {} : { data_tests }
    return { name, description: comment, data_type: type, ...tested }
  }

/** Rows with a NULL among these columns refer to nothing; `of` is as SQL names it. */
const relationshipOf = ({ of, columns }: Reference, specs: ReadonlyArray<ColumnSpec>) => {
  const nullable = columns.filter((name) => specs.some((spec) => spec.name === name && spec.nullable))
  const where = nullable.map((name) => `${identifier(name)} is not null`).join(" and ")
  const [schema = "main", name = of] = of.includes(".") ? of.split(".") : []
  const to = `source('${sourceName(schema)}', '${name}')`
  return {
    relationships: {
      arguments: { column_name: together(columns), to, field: together(columns) },
      ...(where === "" ? {} : { config: { where } }),
    },
  }
}

const tableOf = (one: Described, references: ReadonlyArray<Reference>) => {
  const { name, comment, columns, key } = one
  const place = nameInSql(one)
  const data_tests = [
    ...(key.length > 1 ? [{ unique: { arguments: { column_name: together(key) } } }] : []),
    ...references.filter(({ table }) => table === place).map((each) => relationshipOf(each, columns)),
  ]
  const loaded_at_field = loadedAt.get(place)
  return {
    name,
    description: comment,
    ...(loaded_at_field === undefined ? {} : { config: { loaded_at_field, freshness: dbtFreshness } }),
    ...(data_tests.length === 0 ? {} : { data_tests }),
    columns: columns.map(columnOf(key)),
  }
}

const referencesInSql = (families: ReadonlyArray<RecordFamily>): ReadonlyArray<Reference> => [
  ...mainReferences(families),
  ...referencesOf(families).map((each) => ({ ...each, table: placeOf(each.table), of: placeOf(each.of) })),
]

export const dbtSources = (
  families: ReadonlyArray<RecordFamily>,
  isChosen: (name: string) => boolean,
  toolVersion: string,
  policy?: PseudonymPolicy,
) => {
  const chosen = describedTables(families, policy).filter((one) => isChosen(nameInSql(one)))
  // A reference to a table that is not among them would be unknown to dbt.
  const references = referencesInSql(families).filter(({ of }) => isChosen(of))
  return {
    version: 2,
    sources: [...Map.groupBy(chosen, ({ schema }) => schema)].map(([schema, tables]) => ({
      name: sourceName(schema),
      description: `Tables that nightjar ${toolVersion} publishes: attach nightjar.duckdb, read-only.`,
      database: "nightjar",
      schema,
      loader: "nightjar",
      tables: tables.map((one) => tableOf(one, references)),
    })),
  }
}
