/**
 * What an output folder publishes, as an analyst reads it: the tables of the DuckDB file, the Parquet files beside
 * them, and whether what stands there is whole. Reads only, and never while a pipeline is being timed.
 */
import { existsSync, globSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { DuckDb, type Column, type Connection, type Json } from "../../src/base/DuckDb.ts"
import { identifier, literal } from "../../src/base/DuckDbFailed.ts"
import { filesBelow, filesOf, layoutOf, readManifest, type Manifest } from "../../src/tables/Manifest.ts"

export interface TableRows {
  readonly columns: ReadonlyArray<Column>
  readonly rows: ReadonlyArray<Readonly<Record<string, Json>>>
}
export type Tables = ReadonlyMap<string, TableRows>

const withDatabase = <A, E>(
  output: string,
  use: (connection: Connection) => Effect.Effect<A, E>,
): Promise<A> =>
  Effect.gen(function* () {
    const duckdb = yield* DuckDb
    const path = layoutOf(output).database
    return yield* use(yield* duckdb.open({ path, access: "read-only", threads: 1 }))
  }).pipe(Effect.scoped, Effect.provide(DuckDb.layer), Effect.runPromise)

/** Tables and views to read, as SQL names them. */
const allTables = (connection: Connection) =>
  Effect.map(
    connection.rows(`SELECT schema_name AS schema, view_name AS name FROM duckdb_views() WHERE NOT internal
      UNION ALL SELECT schema_name, table_name FROM duckdb_tables() WHERE schema_name <> 'store' ORDER BY ALL`),
    (rows) => rows.map(({ schema, name }) => ({ schema: String(schema), table: String(name) })),
  )
/** Of those, what runs fill: what each of them read, and what is known of it. Each has its Parquet files. */
const filledTables = (connection: Connection) =>
  Effect.map(allTables(connection), (tables) =>
    tables.filter(({ schema }) => schema === "nights" || schema === "ops"),
  )

const rowsIn = (output: string, tablesOf: typeof allTables): Promise<Tables> =>
  withDatabase(
    output,
    Effect.fnUntraced(function* (connection: Connection) {
      const tables = new Map<string, TableRows>()
      for (const { schema, table } of yield* tablesOf(connection)) {
        const name = `${schema}.${table}`
        const { columns, rows } = yield* connection.query(`SELECT * FROM ${schema}.${identifier(table)}`)
        tables.set(name, {
          columns,
          rows: rows.map((row) =>
            Object.fromEntries(columns.map((column, index) => [column.name, row[index] ?? null])),
          ),
        })
      }
      return tables
    }),
  )

export const readTables = (output: string): Promise<Tables> => rowsIn(output, filledTables)

/** With what is true now, and the history. */
export const readAllTables = (output: string): Promise<Tables> => rowsIn(output, allTables)

/** Table by table, the rows that only one of database and Parquet files has. */
export const parquetDifferences = (output: string): Promise<ReadonlyArray<string>> =>
  withDatabase(
    output,
    Effect.fnUntraced(function* (connection: Connection) {
      const complaints: Array<string> = []
      for (const { schema, table } of yield* filledTables(connection)) {
        const place = `${schema}.${identifier(table)}`
        const glob = join(output, "tables", table, "*", "*.parquet")
        const columns = yield* connection.columnTypes(`SELECT * FROM ${place}`)
        const cast = columns.map((each) => `CAST(${identifier(each.name)} AS ${each.type})`).join(", ")
        const database = `SELECT ${cast} FROM ${place}`
        const files = `SELECT ${cast} FROM read_parquet(${literal(glob)}, hive_partitioning = false)`
        const parquet = globSync(glob).length === 0 ? `${database} LIMIT 0` : files
        for (const [only, one, other] of [
          ["the database", database, parquet],
          ["the Parquet files", parquet, database],
        ] as const) {
          const sql = `SELECT count(*)::INTEGER AS n FROM ((${one}) EXCEPT ALL (${other}))`
          const [row] = yield* connection.rows(sql)
          if (row?.["n"] !== 0)
            complaints.push(`${schema}.${table}: ${String(row?.["n"])} rows are only in ${only}`)
        }
      }
      return complaints
    }),
  )

const manifests = (output: string): ReadonlyArray<Manifest> => {
  const { manifest, next } = layoutOf(output)
  return [manifest, next].flatMap((path) => readManifest(path) ?? [])
}

/**
 * What is wrong with the published database at this very moment: it must be the version of a manifest that stands,
 * with every row that this manifest counts, and every page of it readable.
 */
export const brokenDatabase = async (output: string): Promise<ReadonlyArray<string>> => {
  if (!existsSync(layoutOf(output).database)) return ["there is no published database any more"]
  try {
    return await withDatabase(
      output,
      Effect.fnUntraced(function* (connection: Connection) {
        const [row] = yield* connection.rows("SELECT published_version() AS version")
        const version = Number(row?.["version"])
        const manifest = manifests(output).find((each) => each.version === version)
        if (manifest === undefined) return [`the database is version ${version}, which no manifest knows`]
        const complaints: Array<string> = []
        for (const { schema, table } of yield* filledTables(connection)) {
          const expected = filesOf(manifest)
            .filter((file) => file.table === table)
            .reduce((sum, { rows }) => sum + rows, 0)
          const [found] = yield* connection.rows(
            `SELECT count(*)::INTEGER AS n, bit_xor(hash(t)) AS every_page FROM ${schema}.${identifier(table)} AS t`,
          )
          if (found?.["n"] !== expected)
            complaints.push(
              `${schema}.${table} holds ${String(found?.["n"])} rows, version ${version} has ${expected}`,
            )
        }
        return complaints
      }),
    )
  } catch (error) {
    return [`the published database cannot be read: ${error instanceof Error ? error.message : "?"}`]
  }
}

/** The executions that the database holds now; none where there is no database. */
export const publishedExecutions = async (output: string): Promise<ReadonlySet<string>> => {
  if (!existsSync(layoutOf(output).database)) return new Set()
  const rows = await withDatabase(output, (connection) =>
    connection.rows("SELECT execution_id FROM ops.executions WHERE execution_id IS NOT NULL"),
  )
  return new Set(rows.map((row) => String(row["execution_id"])))
}

const litter = /\.tmp(?:$|-)|(?:\.build|\.wal|manifest\.next\.json)$/

/** Files that a finished night has no use for. The lock's own journal is SQLite's, which the next holder clears. */
export const leftovers = (output: string): ReadonlyArray<string> =>
  filesBelow(output).filter((path) => litter.test(path))
