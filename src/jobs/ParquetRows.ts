/**
 * A Parquet file's rows in the order of the file, through a DuckDB in memory. The named columns arrive as
 * strings, whatever their type; other numbers that JavaScript cannot hold are strings too. A few kilobytes
 * may hold billions of values, so their number is checked before any are read.
 */
import { Effect } from "effect"
import { DuckDb, type Connection } from "../base/DuckDb.ts"
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

export const readParquetRows = (path: string, texts: ReadonlyArray<string>, bounds: Bounds) =>
  Effect.gen(function* () {
    const database = yield* DuckDb
    const connection = yield* database.open({
      path: ":memory:",
      access: "read-write",
      threads: 1,
      memoryLimit: "512MB",
    })
    const columns = yield* measure(connection, path, bounds)
    const selected = columns.map(({ name }) =>
      texts.includes(name) ? `CAST(${identifier(name)} AS VARCHAR) AS ${identifier(name)}` : identifier(name),
    )
    return yield* connection.query(`SELECT ${selected.join(", ")} FROM read_parquet(?)`, [path])
  }).pipe(
    Effect.map(({ columns, rows }) => ({ columns: columns.map(({ name }) => name), rows })),
    Effect.scoped,
    Effect.provide(DuckDb.layer),
    Effect.mapError((error) => (typeof error === "string" ? error : "the file cannot be read as Parquet")),
  )
