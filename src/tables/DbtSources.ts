/**
 * The published tables as sources of a dbt project: `sources.yml` with descriptions, types, tests and
 * freshness, from the same source as the data dictionary. It uses dbt's own four tests only, in the form of
 * dbt 1.10.5 and later, so that a project needs no package for it.
 */
import { identifier } from "../base/DuckDbFailed.ts"
import type { ColumnSpec } from "../records/Columns.ts"
import type { RecordFamily } from "../records/RecordSchema.ts"
import { publishedTables, publishedViews } from "./DataDictionary.ts"
import { relationsOf } from "./Relations.ts"
import type { Relation } from "./Relations.ts"
import { coverageTable, runsTable } from "./SystemTables.ts"
import type { PseudonymPolicy } from "./Treatments.ts"

type DbtTest =
  | "unique"
  | "not_null"
  | { readonly unique: { readonly arguments: { readonly column_name: string } } }
  | { readonly accepted_values: { readonly arguments: { readonly values: ReadonlyArray<string> } } }
  | {
      readonly relationships: {
        readonly arguments: { readonly column_name: string; readonly to: string; readonly field: string }
        readonly config?: { readonly where: string }
      }
    }

interface DbtColumn {
  readonly name: string
  readonly description: string
  readonly data_type: string
  readonly data_tests?: ReadonlyArray<DbtTest>
}

export interface DbtTable {
  readonly name: string
  readonly description: string
  readonly config?: {
    readonly loaded_at_field: string
    readonly freshness: Readonly<Record<"warn_after" | "error_after", DbtAge>>
  }
  readonly data_tests?: ReadonlyArray<DbtTest>
  readonly columns: ReadonlyArray<DbtColumn>
}

interface DbtAge {
  readonly count: number
  readonly period: "hour"
}

/** The source's name in `source('nightjar', 'runs')`. */
const sourceName = "nightjar"

/** Tables and views in which every night leaves a time; a record table may stay empty for good reasons. */
const loadedAt: ReadonlyMap<string, string> = new Map([
  [runsTable.name, "published_at"],
  [coverageTable.name, "as_of"],
  ["coverage_current", "fresh_as_of"],
])
/** One night is late by half a day; two nights are missing. */
const freshness = {
  warn_after: { count: 36, period: "hour" },
  error_after: { count: 60, period: "hour" },
} as const

interface Relational {
  readonly name: string
  readonly comment: string
  readonly columns: ReadonlyArray<ColumnSpec>
  readonly key?: ReadonlyArray<string>
}

/** A key of several columns as one value; dbt's tests take an expression wherever they take a column. */
const together = (columns: ReadonlyArray<string>): string => {
  const [only = ""] = columns
  return columns.length === 1 ? only : `row(${columns.map(identifier).join(", ")})`
}

const columnOf =
  (key: ReadonlyArray<string>, isView: boolean) =>
  ({ name, type, comment, nullable, values }: ColumnSpec): DbtColumn => {
    const isKey = key.length === 1 && key[0] === name
    const data_tests: ReadonlyArray<DbtTest> = [
      ...(isKey ? (["unique"] as const) : []),
      // Views have the columns of their tables.
      ...(isKey || !(isView || nullable) ? (["not_null"] as const) : []),
      ...(values === undefined ? [] : [{ accepted_values: { arguments: { values } } }]),
    ]
    const described = { name, description: comment, data_type: type }
    return data_tests.length === 0 ? described : { ...described, data_tests }
  }

/** Rows with a NULL among these columns refer to nothing. */
const relationshipOf = ({ of, columns }: Relation, specs: ReadonlyArray<ColumnSpec>): DbtTest => {
  const nullable = columns.filter((name) => specs.some((spec) => spec.name === name && spec.nullable))
  const where = nullable.map((name) => `${identifier(name)} is not null`).join(" and ")
  const to = `source('${sourceName}', '${of}')`
  return {
    relationships: {
      arguments: { column_name: together(columns), to, field: together(columns) },
      ...(where === "" ? {} : { config: { where } }),
    },
  }
}

const tableOf = (
  { name, comment, columns, key = [] }: Relational,
  relations: ReadonlyArray<Relation>,
  isView: boolean,
): DbtTable => {
  const data_tests: ReadonlyArray<DbtTest> = [
    ...(key.length > 1 ? [{ unique: { arguments: { column_name: together(key) } } }] : []),
    ...relations.filter(({ table }) => table === name).map((relation) => relationshipOf(relation, columns)),
  ]
  const loaded_at_field = loadedAt.get(name)
  return {
    name,
    description: comment,
    ...(loaded_at_field === undefined ? {} : { config: { loaded_at_field, freshness } }),
    ...(data_tests.length === 0 ? {} : { data_tests }),
    columns: columns.map(columnOf(key, isView)),
  }
}

/** A relation to a table that is not among them would be unknown to dbt. */
const dbtTables = (
  families: ReadonlyArray<RecordFamily>,
  isChosen: (name: string) => boolean,
  policy: PseudonymPolicy | undefined,
): ReadonlyArray<DbtTable> => {
  const relations = relationsOf(families).filter(({ of }) => isChosen(of))
  return [
    ...publishedTables(families, policy).map((table) => tableOf(table, relations, false)),
    ...publishedViews(families, policy).map((view) => tableOf(view, [], true)),
  ].filter(({ name }) => isChosen(name))
}

/** The document; `toolVersion` is the version of the program that publishes the tables. */
export const dbtSources = (
  families: ReadonlyArray<RecordFamily>,
  isChosen: (name: string) => boolean,
  toolVersion: string,
  policy?: PseudonymPolicy,
) => ({
  version: 2,
  sources: [
    {
      name: sourceName,
      description: `Tables that nightjar ${toolVersion} publishes: attach nightjar.duckdb, read-only.`,
      database: "nightjar",
      schema: "main",
      loader: "nightjar",
      tables: dbtTables(families, isChosen, policy),
    },
  ] as const,
})
