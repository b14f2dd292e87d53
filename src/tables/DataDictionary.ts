/**
 * The data dictionary: every table and view that can be read, by schema, every column with its type and
 * comment, as data. The database itself, its comments and `nightjar tables` come from here.
 */
import type { ColumnSpec, TableSpec } from "../records/Columns.ts"
import { recordTables, rejectedRecordsTable } from "../records/RecordTables.ts"
import type { RecordFamily } from "../records/RecordSchema.ts"
import { changeColumns } from "./Changes.ts"
import { dimensions } from "./Dimensions.ts"
import { keptTables, recordRelations, type Relation } from "./RecordStore.ts"
import { systemTables } from "./SystemTables.ts"
import { shownTable, type PseudonymPolicy } from "./Treatments.ts"

/** `type` is DuckDB's name of it. */
type DictionaryColumn = Pick<ColumnSpec, "name" | "comment"> & { readonly type: string }

export interface DictionaryTable {
  readonly schema: "main" | "history" | "nights" | "ops"
  readonly name: string
  readonly kind: "table" | "view" | "macro"
  readonly comment: string
  readonly columns: ReadonlyArray<DictionaryColumn>
}

/** As SQL names it: what is in `main` needs no schema. */
export const nameInSql = ({ schema, name }: Pick<DictionaryTable, "schema" | "name">): string =>
  schema === "main" ? name : `${schema}.${name}`

/**
 * What each run is published as, a Parquet file for each: the tables of the system, then those of records;
 * where they have pseudonyms, as they are then.
 */
export const publishedTables = (
  families: ReadonlyArray<RecordFamily>,
  policy?: PseudonymPolicy,
): ReadonlyArray<TableSpec> =>
  [...systemTables, ...recordTables(families)].map((one) => shownTable(policy, one))

/** The tables of schema `ops`: what happened in each run, and what was refused. */
export const operatorTables = (policy?: PseudonymPolicy): ReadonlyArray<TableSpec> =>
  [...systemTables, rejectedRecordsTable].map((one) => shownTable(policy, one))

/** Where the rows of a table of `publishedTables` are in the database. */
export const placeOf = (name: string): string =>
  operatorTables().some((one) => one.name === name) ? `ops.${name}` : `nights.${name}`

/** All views, in the order of the schemas. */
export const publishedViews = (
  families: ReadonlyArray<RecordFamily>,
  policy?: PseudonymPolicy,
): ReadonlyArray<Relation> => {
  const records = recordRelations(keptTables(families))
  const isMain = ({ schema }: Relation) => schema === "main"
  return [...records.filter(isMain), ...dimensions, ...records.filter((one) => !isMain(one))].map((one) =>
    shownTable(policy, one),
  )
}

export interface Described extends TableSpec {
  readonly schema: DictionaryTable["schema"]
  readonly kind: DictionaryTable["kind"]
}

const changes: Described = {
  schema: "main",
  name: "changes",
  kind: "macro",
  comment:
    "What was added, changed, gone or rejected between two runs or dates: " +
    "SELECT * FROM changes('2026-11-20', '2026-11-21'). A date stands for its last run. " +
    "A record is gone only if the feature that feeds it succeeded later, or nobody asks for it any more.",
  key: [],
  columns: changeColumns,
}

/** All tables and views, in the order of the schemas. */
export const describedTables = (
  families: ReadonlyArray<RecordFamily>,
  policy: PseudonymPolicy | undefined,
): ReadonlyArray<Described> => [
  ...publishedViews(families, policy).map((view) => ({ ...view, kind: "view" as const })),
  ...operatorTables(policy).map((spec) => ({ ...spec, schema: "ops" as const, kind: "table" as const })),
]

const entryOf = ({ schema, name, kind, comment, key, columns }: Described): DictionaryTable => ({
  schema,
  name,
  kind,
  comment: kind === "table" && key.length > 0 ? `${comment} Key: ${key.join(", ")}.` : comment,
  columns: columns.map((each) => ({ name: each.name, type: each.type, comment: each.comment })),
})

export const dataDictionary = (
  families: ReadonlyArray<RecordFamily>,
  policy?: PseudonymPolicy,
): ReadonlyArray<DictionaryTable> => {
  const all = describedTables(families, policy)
  const ofMain = all.filter(({ schema }) => schema === "main").length
  return all.toSpliced(ofMain, 0, shownTable(policy, changes)).map(entryOf)
}

/** Of our own views and macros: what no model of a job may be called. */
export const namesInMain = (families: ReadonlyArray<RecordFamily>): Set<string> =>
  new Set(dataDictionary(families).flatMap(({ schema, name }) => (schema === "main" ? [name] : [])))
