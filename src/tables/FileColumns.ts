/**
 * Parquet files as DuckDB writes and reads them: what each says of itself, and how its columns become those
 * of a table whose types have changed since. A value that the new type cannot hold exactly is NULL and
 * counted, and never keeps the others from being published. Bodies are landed, so `nightjar repair` derives
 * such rows again.
 */
import { Effect } from "effect"
import type { Column, Connection } from "../base/DuckDb.ts"
import { identifier, literal } from "../base/DuckDbFailed.ts"
import type { ColumnSpec, TableSpec } from "../records/Columns.ts"
import { decimalShape, misfitReason } from "../records/ColumnData.ts"
import { isColumnName, type RecordFamily } from "../records/RecordSchema.ts"
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

/** A value in another type, in SQL; NULL if that cannot hold it exactly: a cast rounds without a word. */
const converted = (value: string, from: string, to: string): string => {
  const cast = `TRY_CAST(${value} AS ${to})`
  if (from === "VARCHAR[]" || to === "VARCHAR[]") return `CAST(NULL AS ${to})`
  if (from === "TIMESTAMPTZ" && to === "VARCHAR") return isoText(value)
  if (to === "VARCHAR" || to === "JSON") return cast
  const decimal = from === "VARCHAR" ? decimalShape(to) : undefined
  if (decimal !== undefined)
    return `CASE WHEN regexp_full_match(${value}, '[+-]?\\d+(\\.\\d{0,${decimal.scale}}0*)?')
      THEN ${cast} END`
  if (from === "VARCHAR" && to === "TIMESTAMPTZ") return cast
  // As the reader of bodies has it: fifteen digits always survive, others if they are written the same again.
  if (from === "VARCHAR" && to === "DOUBLE")
    return `CASE WHEN length(regexp_replace(${value}, '[^0-9]', '', 'g')) <= 15
      OR CAST(${cast} AS VARCHAR) = ${value} THEN ${cast} END`
  return `CASE WHEN TRY_CAST(${cast} AS ${from}) = ${value} THEN ${cast} END`
}

const isNumber = (type: string): boolean => /^(?:INTEGER|BIGINT|DOUBLE|DECIMAL)/.test(type)

/** As a member of `extra` has it; a number as it is written, since JSON of DuckDB rounds it. */
const jsonOf = (value: string, type: string): string =>
  isNumber(type)
    ? `CAST(${value} AS VARCHAR)`
    : `CAST(to_json(${type === "TIMESTAMPTZ" ? isoText(value) : value}) AS VARCHAR)`

/** The kinds of JSON value, as DuckDB names them: one of each. */
const kinds = { BIGINT: 0, UBIGINT: 0, DOUBLE: 0, VARCHAR: "", BOOLEAN: true, ARRAY: [], OBJECT: {} }

const kindsOf = (type: string): ReadonlyArray<string> => {
  const whole = ["BIGINT", "UBIGINT"]
  if (type === "INTEGER" || type === "BIGINT") return whole
  if (type === "DOUBLE") return [...whole, "DOUBLE"]
  if (type.startsWith("DECIMAL")) return [...whole, "DOUBLE", "VARCHAR"]
  if (type === "JSON") return Object.keys(kinds)
  return [type === "BOOLEAN" ? type : type === "VARCHAR[]" ? "ARRAY" : "VARCHAR"]
}

/** In SQL: why a value of this kind, as a query tells it, is not in the column. */
const reasonOf = ({ name, type }: ColumnSpec, kind: string): string => {
  const cases = Object.entries(kinds).map(
    ([one, sample]) => `WHEN '${one}' THEN ${literal(`${name}: ${misfitReason(type, sample)}`)}`,
  )
  return `CASE ${kind} ${cases.join(" ")} END`
}

/** Only what DuckDB would write the same again: it rounds numbers that no DOUBLE can hold. */
const safeExtra = "CASE WHEN CAST(json(extra) AS VARCHAR) = extra THEN extra END"

// Cells that a query makes once a row, so that no expression holds another many times over.
const memberOf = ({ name }: ColumnSpec): string => identifier(`_member_${name}`)
const takenFrom = ({ name }: ColumnSpec): string => identifier(`_taken_${name}`)
const castTo = ({ name }: ColumnSpec): string => identifier(`_cast_${name}`)

/** The member of `extra` with the name of a column, in the column's type; NULL if it does not fit. */
const fromExtra = (each: ColumnSpec): string => {
  const { type } = each
  const json = memberOf(each)
  const isOf = `json_type(${json}) IN (${kindsOf(type).map(literal).join(", ")})`
  const texts = `len(list_filter(CAST(${json} AS JSON[]), lambda x: json_type(x) <> 'VARCHAR')) = 0`
  const isOfTexts = type === "VARCHAR[]" ? `CASE WHEN ${isOf} THEN ${texts} END` : isOf
  const text = `(${json} ->> '$')`
  const value =
    type === "JSON" || type === "VARCHAR[]" ? `CAST(${json} AS ${type})` : converted(text, "VARCHAR", type)
  return `CASE WHEN ${isOfTexts} THEN ${value} END`
}

const staysInExtra = (each: ColumnSpec): string =>
  `json_type(${memberOf(each)}) <> 'NULL' AND ${takenFrom(each)} IS NULL`

/** JSON is text in Parquet. In these columns every text was written as JSON; another may have been plain. */
const alwaysJson: ReadonlyArray<string> = ["extra", "record"]

/** The texts whose conditions hold. */
const present = (parts: ReadonlyArray<readonly [isTrue: string, text: string]>): string =>
  `list_filter([${parts.map(([isTrue, text]) => `CASE WHEN ${isTrue} THEN ${text} END`).join(", ")}],
    lambda x: x IS NOT NULL)`

/** Without the members that have a column by now; with those that have none, or that do not fit theirs. */
const extraWith = (taken: ReadonlyArray<ColumnSpec>, added: Parameters<typeof present>[0]): string => {
  const left = taken.map(
    (each) => `${literal(each.name)}, CASE WHEN ${staysInExtra(each)} THEN ${memberOf(each)} END`,
  )
  const merged = `CASE WHEN _safe IS NULL THEN extra
    ELSE CAST(json_merge_patch(_safe, json_object(${left.join(", ")})) AS VARCHAR) END`
  const some = `nullif(${taken.length === 0 ? "extra" : merged}, '{}')`
  const members = `array_to_string(${present(added)}, ',')`
  return `CASE WHEN ${members} = '' THEN ${some}
    ELSE coalesce(left(${some}, -1) || ',', '{') || ${members} || '}' END`
}

/** The rows with further cells. */
const withCells = (rows: string, cells: ReadonlyArray<string>): string =>
  cells.length === 0 ? rows : `(SELECT *, ${cells.join(", ")} FROM ${rows})`

/**
 * The rows of a table from files that have these columns, which are those of `source`. In a row of a
 * record, what has no column any more, or does not fit that which it has, is in `extra` and `misfits`, as if
 * it had just come; what has got a column that it fits is taken from there. Any other column that no file has
 * is NULL. `unfit` is a query for how many values of each changed column do not fit, `taken` for whether any
 * was in `extra`; undefined where there can be none.
 */
export const castRows = (spec: TableSpec, files: ReadonlyArray<Column>, source: string) => {
  const found = new Map(files.map(({ name, type }) => [name, shortName(type)]))
  const typeOf = (name: string) => found.get(name) ?? ""
  const isOther = ({ name, type }: ColumnSpec) =>
    typeOf(name) !== shortName(type) && !(type === "JSON" && alwaysJson.includes(name))
  const hasRest = ["misfits", "extra"].every((name) => found.has(name) && isIn(spec, name))
  const isField = (name: string) => hasRest && isColumnName(name)
  const taken = spec.columns.filter((each) => isField(each.name) && isOther(each))
  const cast = spec.columns.filter((each) => found.has(each.name) && isOther(each))
  const members = taken.map(
    (each) => `json_extract(_safe, '$.${identifier(each.name)}') AS ${memberOf(each)}`,
  )
  const safe = withCells(source, taken.length === 0 ? [] : [`${safeExtra} AS _safe`])
  const rows = withCells(withCells(safe, members), [
    ...taken.map((each) => `${fromExtra(each)} AS ${takenFrom(each)}`),
    ...cast.map(
      (each) =>
        `${converted(identifier(each.name), typeOf(each.name), shortName(each.type))} AS ${castTo(each)}`,
    ),
  ])
  const isUnfit = (each: ColumnSpec) => `${identifier(each.name)} IS NOT NULL AND ${castTo(each)} IS NULL`
  const gone = [...found.keys()].filter((name) => isField(name) && !isIn(spec, name))
  const added = [
    ...cast.filter(({ name }) => isField(name)).map((each) => [isUnfit(each), each.name] as const),
    ...gone.map((name) => [`${identifier(name)} IS NOT NULL`, name] as const),
  ].map(([is, name]) => [is, `'"${name}":' || ${jsonOf(identifier(name), typeOf(name))}`] as const)
  const reasons = taken.map((each) => {
    const is = cast.includes(each) ? isUnfit(each) : "false"
    const was = literal(kindsOf(typeOf(each.name))[0] ?? "")
    const kind = `CASE WHEN ${is} THEN ${was} ELSE json_type(${memberOf(each)}) END`
    return [`${is} OR ${staysInExtra(each)}`, reasonOf(each, kind)] as const
  })
  const names = [...taken.map(({ name }) => name), ...gone].join("|")
  const others = `list_filter(coalesce(misfits, []),
    lambda m: NOT regexp_matches(m, '^(${names})[^a-z0-9_]'))`
  const valueOf = (each: ColumnSpec): string => {
    if (names !== "" && each.name === "extra") return extraWith(taken, added)
    if (names !== "" && each.name === "misfits")
      return `nullif(list_concat(${others}, ${present(reasons)}), [])`
    const values = [
      ...(cast.includes(each) ? [castTo(each)] : []),
      ...(taken.includes(each) ? [takenFrom(each)] : []),
      ...(found.has(each.name) && !isOther(each) ? [identifier(each.name)] : []),
    ]
    const value = values.length > 1 ? `coalesce(${values.join(", ")})` : (values[0] ?? "NULL")
    return `CAST(${value} AS ${each.type})`
  }
  const cells = spec.columns.map((each) => `${valueOf(each)} AS ${identifier(each.name)}`)
  const counts = cast.map((each) => `count_if(${isUnfit(each)})::INTEGER AS ${identifier(each.name)}`)
  return {
    sql: `SELECT ${cells.join(", ")} FROM ${rows}`,
    unfit: counts.length === 0 ? undefined : `SELECT ${counts.join(", ")} FROM ${rows}`,
    taken:
      taken.length === 0
        ? undefined
        : `SELECT EXISTS (FROM ${rows} WHERE coalesce(${taken
            .map((each) => `${takenFrom(each)} IS NOT NULL`)
            .join(" OR ")}))::INTEGER AS taken`,
  }
}

const isIn = ({ columns }: TableSpec, name: string): boolean => columns.some((each) => each.name === name)
