/**
 * Parquet files as DuckDB writes and reads them: what each says of itself, and which were made with which
 * record schema. `OtherSchema.ts` reads those of another one than that in force.
 */
import { Effect } from "effect"
import type { Column, Connection } from "../base/DuckDb.ts"
import { identifier, literal } from "../base/DuckDbFailed.ts"
import type { TableSpec } from "../records/Columns.ts"
import { tablesOf, type RecordFamily } from "../records/RecordSchema.ts"
import { fileStep, makeFoldersOf, type Manifest, type Store } from "./Manifest.ts"
import { PublishFailed } from "./Publisher.ts"
import { policyInFile } from "./Treatments.ts"

interface FileOf {
  readonly version: number
  readonly run_id?: string
  readonly month?: string
}

/** What every Parquet file says of itself, so that a lost manifest can be read off the files. */
export const fileMetadata = (
  { pseudonyms, toolVersion }: Pick<Store, "pseudonyms" | "toolVersion">,
  { run_id, month, version }: FileOf,
): Readonly<Record<string, string>> => ({
  ...(run_id !== undefined && { run_id }),
  ...(month !== undefined && { month }),
  version: String(version),
  tool: toolVersion,
  ...(pseudonyms === undefined ? {} : { [policyInFile]: JSON.stringify(pseudonyms.policy) }),
})

export const parquetRows = (paths: ReadonlyArray<string>, more = ""): string =>
  `read_parquet([${paths.map(literal).join(", ")}], union_by_name = true, hive_partitioning = false${more})`

/** Columns as files have them: JSON, of which Parquet has none of its own, as text. */
export const parquetCells = (columns: ReadonlyArray<Column>): string =>
  columns
    .map(({ name, type }) => [identifier(name), type] as const)
    .map(([cell, type]) => (type === "JSON" ? `CAST(${cell} AS VARCHAR) AS ${cell}` : cell))
    .join(", ")

/** Writes the rows of a query as a file that is safe on the disk; returns how many they are. */
export const writeParquet = Effect.fnUntraced(function* (
  store: Store,
  connection: Connection,
  place: string,
  { sql, ...of }: { readonly sql: string } & FileOf,
) {
  const { files, modes } = store
  yield* fileStep(() => makeFoldersOf(store, place))
  const pairs = Object.entries(fileMetadata(store, of)).map(([name, value]) => `${name}: ${literal(value)}`)
  const rows = yield* connection.run(`COPY (${sql}) TO ${literal(place)}
    (FORMAT parquet, COMPRESSION zstd, KV_METADATA {${pairs.join(", ")}})`)
  yield* Effect.mapError(files.settle(place, modes.file), ({ message }) => new PublishFailed({ message }))
  return rows
})

/**
 * A table of records with those of its lists, its own first; none if it is no such table. One of a list that
 * its schema no longer has belongs to it still, unless another family has got it.
 */
export const familyTables = (families: ReadonlyArray<RecordFamily>, table: string): ReadonlyArray<string> => {
  const known = families.map(tablesOf).find((all) => all.includes(table))
  const earlier = (family: RecordFamily) => [family, ...Object.values(family.kept ?? {})].flatMap(tablesOf)
  return known ?? families.map(earlier).find((all) => all.includes(table)) ?? []
}

/** The version of the schema that a run's rows of a table were derived with; undefined if it has none. */
export const schemaVersionOf = (
  { schemas }: Pick<Manifest, "schemas">,
  families: ReadonlyArray<RecordFamily>,
  table: string,
): number | undefined => schemas?.[familyTables(families, table)[0] ?? ""]

/** The rows of a table from files that have these columns, those of `source`; the others are NULL. */
export const castRows = (
  spec: TableSpec,
  columns: ReadonlyArray<Pick<Column, "name">>,
  source: string,
): string => {
  const found = new Set(columns.map(({ name }) => name))
  const cells = spec.columns.map(({ name, type }) => {
    const value = found.has(name) ? identifier(name) : "NULL"
    return `CAST(${value} AS ${type}) AS ${identifier(name)}`
  })
  return `SELECT ${cells.join(", ")} FROM ${source}`
}
