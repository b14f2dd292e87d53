/**
 * A Parquet file's rows in the order of the file, through a DuckDB of their own that lives in memory for as
 * long as the reading takes. The named columns arrive as texts, whatever their type; other numbers that
 * JavaScript cannot hold are texts too.
 */
import { Effect } from "effect"
import { DuckDb } from "../duckdb/DuckDb.ts"
import { identifier } from "../duckdb/SqlText.ts"

export const readParquetRows = (path: string, texts: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const database = yield* DuckDb
    const connection = yield* database.open({ path: ":memory:", access: "read-write", threads: 1 })
    const { columns } = yield* connection.query("SELECT * FROM read_parquet(?) LIMIT 0", [path])
    const selected = columns.map(({ name }) =>
      texts.includes(name) ? `CAST(${identifier(name)} AS VARCHAR) AS ${identifier(name)}` : identifier(name),
    )
    return yield* connection.query(`SELECT ${selected.join(", ")} FROM read_parquet(?)`, [path])
  }).pipe(
    Effect.map(({ columns, rows }) => ({ columns: columns.map(({ name }) => name), rows })),
    Effect.scoped,
    Effect.provide(DuckDb.layer),
    Effect.mapError(() => "the file cannot be read as Parquet"),
  )
