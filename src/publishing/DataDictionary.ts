/**
 * The data dictionary: every published table and view, every column with its type and comment, as data. The
 * database's comments and `nightjar tables` both come from here.
 */
import type { ColumnSpec, TableSpec } from "../records/Columns.ts"
import { recordTables } from "../records/RecordTables.ts"
import type { RecordFamily } from "../records/RecordSchema.ts"
import { systemTables } from "./SystemTables.ts"

/** `type` is DuckDB's name of it. */
type DictionaryColumn = Pick<ColumnSpec, "name" | "type" | "comment">

export interface DictionaryTable {
  readonly name: string
  readonly kind: "table" | "view"
  readonly comment: string
  readonly columns: ReadonlyArray<DictionaryColumn>
}

/** A view of record rows that are current for each customer and engine. */
export interface LatestView {
  readonly name: string
  readonly table: TableSpec
  /** Undefined: every feature feeds the table. */
  readonly features: ReadonlyArray<string> | undefined
  readonly comment: string
}

/** All tables: those of the system, then those of records. */
export const publishedTables = (families: ReadonlyArray<RecordFamily>): ReadonlyArray<TableSpec> => [
  ...systemTables,
  ...recordTables(families).map(({ spec }) => spec),
]

export const latestViews = (families: ReadonlyArray<RecordFamily>): ReadonlyArray<LatestView> =>
  recordTables(families).map(({ spec, features }) => ({
    name: `${spec.name}_latest`,
    table: spec,
    features,
    comment:
      `Rows of ${spec.name} of the newest run in which a feature feeding it succeeded, ` +
      "for each customer and engine.",
  }))

const columnsOf = (columns: ReadonlyArray<ColumnSpec>): ReadonlyArray<DictionaryColumn> =>
  columns.map(({ name, type, comment }) => ({ name, type, comment }))

export const dataDictionary = (families: ReadonlyArray<RecordFamily>): ReadonlyArray<DictionaryTable> => [
  ...publishedTables(families).map(({ name, comment, columns }): DictionaryTable => ({
    name,
    kind: "table",
    comment,
    columns: columnsOf(columns),
  })),
  ...latestViews(families).map(({ name, comment, table }): DictionaryTable => ({
    name,
    kind: "view",
    comment,
    columns: columnsOf(table.columns),
  })),
]
