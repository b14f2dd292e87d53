/**
 * A Parquet file's rows in the order of the file, through a DuckDB in memory. Numbers that JavaScript cannot
 * hold are strings, and so is what a file has as bytes; bytes that are no UTF-8 arrive in a list. A few
 * kilobytes may hold billions of values, so their number is checked before any are read.
 */
import { Effect } from "effect"
import { DuckDb, type Connection, type Json } from "../base/DuckDb.ts"
import { identifier } from "../base/DuckDbFailed.ts"

/** `bytesMax`: of all values, as text. */
type Bounds = Readonly<Record<"rowsMax" | "columnsMax" | "bytesMax", number>>

/** Fails with why a readable file is not accepted. */
const measure = Effect.fnUntraced(function* (
  connection: Connection,
  path: string,
  { rowsMax, columnsMax, bytesMax }: Bounds,
) {
  const { columns } = yield* connection.query("SELECT * FROM read_parquet(?) LIMIT 0", [path])
  if (columns.length > columnsMax) return yield* Effect.fail(`the file has more than ${columnsMax} columns`)
  const sizes = columns.map(({ name }) => `coalesce(sum(strlen(CAST(${identifier(name)} AS VARCHAR))), 0)`)
  const { rows } = yield* connection.query(
    `SELECT count(*), CAST(${sizes.join(" + ")} AS DOUBLE) FROM (FROM read_parquet(?) LIMIT ${rowsMax + 1})`,
    [path],
  )
  const [count, bytes] = rows[0] ?? []
  if (Number(count) > rowsMax) return yield* Effect.fail(`the file has more than ${rowsMax} rows`)
  if (Number(bytes) > bytesMax)
    return yield* Effect.fail(`the file contains more than ${bytesMax / 1e6} MB of values`)
  return columns
})

/** A FLOAT as the number that it shows, and not the double beside it. In data frames, NaN is no value. */
const selected = ({ name, type }: { readonly name: string; readonly type: string }): string => {
  const cell = identifier(name)
  if (type === "BLOB") return `CASE WHEN ${cell} IS NOT NULL THEN [try(decode(${cell}))] END AS ${cell}`
  if (type !== "FLOAT" && type !== "DOUBLE") return cell
  return `CASE WHEN isfinite(${cell}) THEN CAST(CAST(${cell} AS VARCHAR) AS DOUBLE) END AS ${cell}`
}

export const readParquetRows = (path: string, bounds: Bounds) =>
  Effect.gen(function* () {
    const database = yield* DuckDb
    const connection = yield* database.open({
      path: ":memory:",
      access: "read-write",
      threads: 1,
      memoryLimit: "512MB",
    })
    const columns = yield* measure(connection, path, bounds)
    const cells = columns.map(selected).join(", ")
    const { rows } = yield* connection.query(`SELECT ${cells} FROM read_parquet(?)`, [path])
    const textOf = (cell: Json, column: number): Json =>
      columns[column]?.type === "BLOB" && Array.isArray(cell) ? (cell[0] ?? cell) : cell
    return { columns: columns.map(({ name }) => name), rows: rows.map((row) => row.map(textOf)) }
  }).pipe(
    Effect.scoped,
    Effect.provide(DuckDb.layer),
    Effect.mapError((error) => (typeof error === "string" ? error : "the file cannot be read as Parquet")),
  )
