/**
 * Parquet files as DuckDB writes and reads them: what each says of itself, and how its columns become those
 * of a table whose types have changed since. A value that the new type cannot hold exactly is NULL and
 * counted, and never keeps the others from being published. Bodies are landed, so `nightjar repair` derives
 * such rows again.
 */
import { dirname } from "node:path"
import { Effect } from "effect"
import type { Connection } from "../base/DuckDb.ts"
import { identifier, literal } from "../base/DuckDbFailed.ts"
import type { ColumnSpec, TableSpec } from "../records/Columns.ts"
import type { RecordFamily } from "../records/RecordSchema.ts"
import { fileStep } from "./Manifest.ts"
import type { Manifest, ManifestFile } from "./Manifest.ts"
import { PublishFailed } from "./Publisher.ts"
import type { Store } from "./Store.ts"
import { policyInFile } from "./Treatments.ts"

/** Whose rows a file has. */
type FileOf = { readonly version: number } & (
  | { readonly run_id: string }
  | { readonly month: string }
  | object
)

/** What every Parquet file says of itself, so that a lost manifest can be read off the files. */
export const fileMetadata = (
  { pseudonyms, toolVersion }: Pick<Store, "pseudonyms" | "toolVersion">,
  of: FileOf,
): Readonly<Record<string, string>> => ({
  ...("run_id" in of ? { run_id: of.run_id } : {}),
  ...("month" in of ? { month: of.month } : {}),
  version: String(of.version),
  tool: toolVersion,
  ...(pseudonyms === undefined ? {} : { [policyInFile]: JSON.stringify(pseudonyms.policy) }),
})

/** Columns as files have them: JSON, of which Parquet has none of its own, as text. */
export const parquetCells = (columns: ReadonlyArray<ColumnSpec>): string =>
  columns
    .map(({ name, type }) =>
      type === "JSON" ? `CAST(${identifier(name)} AS VARCHAR) AS ${identifier(name)}` : identifier(name),
    )
    .join(", ")

/** Writes the rows of a query as a file that is safe on the disk; returns how many they are. */
export const writeParquet = Effect.fnUntraced(function* (
  store: Store,
  connection: Connection,
  place: string,
  { sql, ...of }: { readonly sql: string } & FileOf,
) {
  const { files, modes } = store
  yield* fileStep(() => {
    files.makeFolder(dirname(dirname(place)), modes.folder)
    files.makeFolder(dirname(place), modes.folder)
  })
  const pairs = Object.entries(fileMetadata(store, of)).map(([name, value]) => `${name}: ${literal(value)}`)
  const rows = yield* connection.run(`COPY (${sql}) TO ${literal(place)}
    (FORMAT parquet, COMPRESSION zstd, KV_METADATA {${pairs.join(", ")}})`)
  yield* Effect.mapError(files.settle(place, modes.file), ({ message }) => new PublishFailed({ message }))
  return rows
})

/**
 * The files of a table, those together whose columns have the same types because one text of a schema made
 * them. Read together, others would be brought to a type between the two, or not be read at all.
 */
export const filesAlike = (
  { runs }: Manifest,
  families: ReadonlyArray<RecordFamily>,
  table: string,
): ReadonlyArray<ReadonlyArray<ManifestFile>> => {
  const groups = new Map<number | undefined, Map<string, ManifestFile>>()
  for (const run of Object.values(runs)) {
    const own = run.files.filter((file) => file.table === table)
    if (own.length === 0) continue
    const version = schemaVersionOf(run, families, table)
    const group = groups.get(version) ?? new Map<string, ManifestFile>()
    for (const file of own) group.set(file.path, file)
    groups.set(version, group)
  }
  return [...groups.values()].map((group) => [...group.values()])
}

/** The version of the schema that a run's rows of a table were derived with; undefined if it has none. */
export const schemaVersionOf = (
  { schemas }: Manifest["runs"][string],
  families: ReadonlyArray<RecordFamily>,
  table: string,
): number | undefined => {
  const family = families.find((one) => [one, ...one.children].some((each) => each.table === table))
  return schemas?.[family?.table ?? ""]
}

export interface FileColumn {
  readonly name: string
  readonly type: string
}

const wholeTypes: ReadonlyArray<string> = ["INTEGER", "BIGINT"]
const isNumeric = (type: string): boolean =>
  wholeTypes.includes(type) || type === "DOUBLE" || type.startsWith("DECIMAL")

/** DuckDB's long names in the words of a specification. */
const shortName = (type: string): string =>
  type === "TIMESTAMP WITH TIME ZONE" ? "TIMESTAMPTZ" : type.replaceAll(" ", "")

/** Files of an older version lack the run's date; their path has it, in every version. */
export const dateInPath = "TRY_CAST(regexp_extract(filename, '.*/run_date=([0-9-]+)/', 1) AS DATE)"

/** A cast that rounds would change a value without a word: what does not come back the same does not fit. */
const changed = (column: string, from: string, to: string): string => {
  const cast = `TRY_CAST(${column} AS ${to})`
  const mustComeBack = isNumeric(to) && (isNumeric(from) || wholeTypes.includes(to))
  return mustComeBack ? `CASE WHEN TRY_CAST(${cast} AS ${from}) = ${column} THEN ${cast} END` : cast
}

/** One column of a table, from files that have these columns. */
export interface CastColumn {
  readonly name: string
  /** Its value in SQL, of the table's type. */
  readonly value: string
  /** The type has changed: some values may not fit. */
  readonly mayMisfit: boolean
}

/** JSON is text in Parquet. In these columns every text was written as JSON; another may have been plain. */
const alwaysJson: ReadonlyArray<string> = ["extra", "record"]

/** A column that no file has is NULL. */
export const castColumns = (spec: TableSpec, files: ReadonlyArray<FileColumn>): ReadonlyArray<CastColumn> => {
  const found = new Map(files.map(({ name, type }) => [name, shortName(type)]))
  return spec.columns.map(({ name, type }) => {
    const column = identifier(name)
    const from = found.get(name)
    const to = shortName(type)
    const mayMisfit = from !== undefined && from !== to && !(to === "JSON" && alwaysJson.includes(name))
    const value =
      from === undefined
        ? `CAST(NULL AS ${to})`
        : mayMisfit
          ? changed(column, from, to)
          : `CAST(${column} AS ${to})`
    return { name, value: name === "run_date" ? `coalesce(${value}, ${dateInPath})` : value, mayMisfit }
  })
}
