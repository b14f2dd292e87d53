/**
 * Parquet files as DuckDB writes and reads them: what each says of itself, and how its columns become those
 * of a table whose types have changed since. That is decided where records are read, so that earlier rows are
 * what their bodies would give now. A value that does not fit is NULL and counted, and never keeps the others
 * from being published.
 */
import { Effect } from "effect"
import type { Column, Connection } from "../base/DuckDb.ts"
import { identifier, literal } from "../base/DuckDbFailed.ts"
import type { ColumnSpec, TableSpec } from "../records/Columns.ts"
import { refitted, type HeldColumn, type Refit } from "../records/CompileFamily.ts"
import { isColumnName, type RecordColumn, type RecordFamily } from "../records/RecordSchema.ts"
import { fileStep, makeFoldersOf, type Manifest, type ManifestFile, type Store } from "./Manifest.ts"
import { PublishFailed } from "./Publisher.ts"
import { policyInFile } from "./Treatments.ts"

/** Whose rows a file has. */
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

/** The rows of these files, as a source of a query. */
export const parquetRows = (paths: ReadonlyArray<string>, more = ""): string =>
  `read_parquet([${paths.map(literal).join(", ")}], union_by_name = true, hive_partitioning = false${more})`

const cellsWith =
  (typeOfJson: string) =>
  (columns: ReadonlyArray<Column>): string =>
    columns
      .map(({ name, type }) =>
        type === "JSON"
          ? `CAST(${identifier(name)} AS ${typeOfJson}) AS ${identifier(name)}`
          : identifier(name),
      )
      .join(", ")

/** Columns as files have them: JSON, of which Parquet has none of its own, as text. */
export const parquetCells = cellsWith("VARCHAR")
/** The other way round. */
export const tableCells = cellsWith("JSON")

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
 * The files of a table, those together whose columns have the same types because one text of a schema made
 * them. Read together, others would be brought to a type between the two, or not be read at all.
 */
export const filesAlike = (
  { runs }: Manifest,
  families: ReadonlyArray<RecordFamily>,
  table: string,
): ReadonlyArray<ReadonlyArray<ManifestFile>> => {
  const all = Object.values(runs).flatMap((run) => {
    const version = schemaVersionOf(run, families, table)
    return run.files.flatMap((file) => (file.table === table ? [{ file, version }] : []))
  })
  return [...Map.groupBy(all, ({ version }) => version).values()].map((group) => [
    ...new Map(group.map(({ file }) => [file.path, file])).values(),
  ])
}

/** A table of records with those of its lists, its own first; none if it is no such table. */
export const familyTables = (families: ReadonlyArray<RecordFamily>, table: string): ReadonlyArray<string> =>
  families
    .map((family) => [family, ...family.children].map((each) => each.table))
    .find((all) => all.includes(table)) ?? []

/** The version of the schema that a run's rows of a table were derived with; undefined if it has none. */
export const schemaVersionOf = (
  { schemas }: Pick<Manifest, "schemas">,
  families: ReadonlyArray<RecordFamily>,
  table: string,
): number | undefined => schemas?.[familyTables(families, table)[0] ?? ""]

/** DuckDB's long names in the words of a specification. */
const shortName = (type: string): string =>
  type === "TIMESTAMP WITH TIME ZONE" ? "TIMESTAMPTZ" : type.replaceAll(" ", "")

const isoText = (value: string): string =>
  `replace(strftime(timezone('UTC', ${value}), '%Y-%m-%dT%H:%M:%S.%fZ'), '.000000Z', 'Z')`

/** A cell as `refitted` takes it. */
const textOf = (value: string, type: string): string => {
  if (type === "TIMESTAMPTZ") return isoText(value)
  return `CAST(${type === "VARCHAR[]" ? `to_json(${value})` : value} AS VARCHAR)`
}

/** A cell of what `refitted` returns. */
const cellOf = (text: string, type: string): string => {
  if (type === "TIMESTAMPTZ") return `make_timestamptz(CAST(${text} AS BIGINT))`
  if (type === "DATE") return `DATE '1970-01-01' + CAST(${text} AS INTEGER)`
  return type === "VARCHAR[]" ? `CAST(CAST(${text} AS JSON) AS VARCHAR[])` : `CAST(${text} AS ${type})`
}

/** The family of a table of records, and as it was when a file was made; undefined if nobody knows. */
export interface FileSchema {
  readonly family: RecordFamily
  readonly was: RecordFamily | undefined
}

const columnsIn = (family: RecordFamily | undefined, table: string): ReadonlyArray<RecordColumn> =>
  (family?.table === table ? family : family?.children.find((each) => each.table === table))?.columns ?? []

/** Which columns of a table have to be made anew from those of a file, and of which. */
const refitOf = (spec: TableSpec, files: ReadonlyArray<Column>, schema: FileSchema | undefined) => {
  const { family, was } = schema ?? {}
  const declared = new Map(columnsIn(was, spec.name).map(({ name, type }) => [name, type]))
  const own = new Map(spec.columns.map(({ name, type }) => [name, type]))
  const columns = columnsIn(family, spec.name)
  const columnOf = (name: string) => columns.find((each) => each.name === name)
  // JSON is text in Parquet.
  const held = files.map(({ name, type }): HeldColumn => {
    const isJson = type === "VARCHAR" && (declared.get(name) ?? own.get(name)) === "JSON"
    return { name, type: isJson ? "JSON" : shortName(type) }
  })
  const found = new Map(held.map((each) => [each.name, each.type]))
  const hasRest = ["misfits", "extra"].every((name) => found.has(name) && own.has(name))
  const isField = (name: string) => hasRest && isColumnName(name)
  // Of a file whose schema nobody knows, a text under JSON may have been plain.
  const mayBePlain = (type: string) => type === "JSON" && family !== undefined && was === undefined
  const isOther = ({ name, type }: ColumnSpec) => {
    if (!found.has(name)) return isField(name)
    const takesNumbers = columnOf(name)?.takesNumbers === true
    return found.get(name) !== shortName(type) || takesNumbers || (isField(name) && mayBePlain(type))
  }
  const changed = spec.columns
    .filter(isOther)
    .map((each): RecordColumn => columnOf(each.name) ?? { ...each, required: false, identifies: false })
  const names = new Set(changed.map(({ name }) => name))
  const lists = family?.table === spec.name ? family.children : []
  const refit: Refit = {
    mode: family?.mode ?? "evolve",
    columns: changed,
    held: held.filter(({ name }) => names.has(name) || (isField(name) && !own.has(name))),
    known: [...columns.map(({ name }) => name), ...lists.map(({ field }) => field)],
  }
  return { refit, hasRest, found }
}

/**
 * The rows of a table from files that have these columns, which are those of `source`. In a row of a record,
 * a column whose type has changed, or that no file has, is what its schema makes of the same record now; what
 * has no column, or does not fit it, is in `extra` and `misfits`. Any other column that no file has is NULL.
 * `define` has to be known to the database; `tally` is a query for how many values of each changed column do
 * not fit, and for whether any was `_taken` out of `extra`; undefined where there can be none.
 */
export const castRows = (
  spec: TableSpec,
  files: ReadonlyArray<Column>,
  source: string,
  schema?: FileSchema,
) => {
  const { refit, hasRest, found } = refitOf(spec, files, schema)
  const { columns, held } = refit
  if (columns.length + held.length === 0) {
    const cells = spec.columns.map((each) => oldCell(each, found))
    return { sql: `SELECT ${cells.join(", ")} FROM ${source}` }
  }
  const name = `refitted_${spec.name}`
  const texts = [
    ...(hasRest ? ["CAST(extra AS VARCHAR)", "CAST(to_json(misfits) AS VARCHAR)"] : ["NULL", "NULL"]),
    ...held.map((each) => textOf(identifier(each.name), each.type)),
  ]
  // Once a row, so that no expression holds the call another time.
  const rows = `(SELECT *, ${name}([${texts.join(", ")}]) AS _new FROM ${source})`
  const newText = (column: string) =>
    `_new[${columns.findIndex((each) => each.name === column) + restCells + 1}]`
  const cells = spec.columns.map((each) => {
    const isNew = columns.some((one) => one.name === each.name)
    const rest = hasRest ? ["extra", "misfits"].indexOf(each.name) : -1
    if (!isNew && rest < 0) return oldCell(each, found)
    const text = isNew ? newText(each.name) : `_new[${rest + 1}]`
    return `${cellOf(text, each.type)} AS ${identifier(each.name)}`
  })
  const cast = columns.filter((each) => found.has(each.name))
  const counts = cast.map((each) => {
    const column = identifier(each.name)
    return `count_if(${column} IS NOT NULL AND ${newText(each.name)} IS NULL)::INTEGER AS ${column}`
  })
  const taken = columns.map((each) => {
    const was = found.has(each.name) ? `${identifier(each.name)} IS NULL AND ` : ""
    return `(${was}${newText(each.name)} IS NOT NULL)`
  })
  const isTaken = `count_if(${["false", ...taken].join(" OR ")})::INTEGER AS _taken`
  return {
    sql: `SELECT ${cells.join(", ")} FROM ${rows}`,
    define: { name, on: refitted(refit) },
    tally: `SELECT ${[...counts, isTaken].join(", ")} FROM ${rows}`,
  }
}

/** `extra` and `misfits` come before the cells. */
const restCells = 2

const oldCell = ({ name, type }: ColumnSpec, found: ReadonlyMap<string, string>): string => {
  const value = found.has(name) ? identifier(name) : "NULL"
  return `CAST(${value} AS ${type}) AS ${identifier(name)}`
}
