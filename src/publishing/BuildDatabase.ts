/**
 * Builds the published database from Parquet files: real tables with the declared types, comments on every
 * table, view and column, and the `_latest` views; then compares the counts of every table and run with the
 * manifest. A file that does not match the manifest is never published.
 */
import { join } from "node:path"
import { Effect } from "effect"
import type { RunId } from "../contract/Ids.ts"
import { DuckDb } from "../duckdb/DuckDb.ts"
import type { Connection } from "../duckdb/DuckDb.ts"
import { identifier, literal } from "../duckdb/SqlText.ts"
import type { TableSpec } from "../records/Columns.ts"
import type { RecordFamily } from "../records/RecordSchema.ts"
import { latestViews, publishedTables } from "./DataDictionary.ts"
import type { LatestView } from "./DataDictionary.ts"
import { filesOf } from "./Manifest.ts"
import type { Manifest, ManifestFile } from "./Manifest.ts"
import { PublishFailed } from "./Publisher.ts"
import { runsTable } from "./SystemTables.ts"

export interface BuildOptions {
  readonly path: string
  readonly root: string
  readonly manifest: Manifest
  readonly families: ReadonlyArray<RecordFamily>
  /** Where a file of the manifest is now, below the output folder: a new one still has a temporary name. */
  readonly standsAt: (file: ManifestFile) => string
}

/**
 * DuckDB keeps the texts of 2,048 adjacent rows in memory at once. Nearly every run needs a fraction of the
 * first limit; the others are for long texts of several runs that end up in adjacent rows.
 */
export const memoryLimits = ["384MB", "1GB", "4GB"] as const
export type MemoryLimit = (typeof memoryLimits)[number]

/** The run's own database work leaves the machine free for others. */
export const openDatabase = Effect.fnUntraced(function* (
  path: string,
  access: "read-only" | "read-write",
  memoryLimit: MemoryLimit = memoryLimits[0],
) {
  const duckdb = yield* DuckDb
  return yield* duckdb.open({ path, access, threads: 1, memoryLimit })
})

export const databaseFailed = (failure: { readonly message: string }) =>
  new PublishFailed({ message: `the database: ${failure.message}` })

export const isOutOfMemory = ({ message }: PublishFailed): boolean => message.includes("Out of Memory Error")

const versionMacro = (version: number) =>
  `CREATE OR REPLACE MACRO published_version() AS ${Math.trunc(version)}`

/** A source of one table's rows with exactly its columns; a column that no file has yet is NULL. */
const rowsFrom = Effect.fnUntraced(function* (
  connection: Connection,
  spec: TableSpec,
  paths: ReadonlyArray<string>,
) {
  const list = paths.map(literal).join(", ")
  const source = `read_parquet([${list}], union_by_name = true, hive_partitioning = false)`
  const present = new Set((yield* connection.columnTypes(`SELECT * FROM ${source}`)).map(({ name }) => name))
  const columns = spec.columns.map(({ name, type }) => {
    const value = present.has(name) ? identifier(name) : "NULL"
    return `CAST(${value} AS ${type}) AS ${identifier(name)}`
  })
  return `SELECT ${columns.join(", ")} FROM ${source}`
})

const emptyTable = ({ name, columns }: TableSpec) => {
  const declared = columns.map((each) => `${identifier(each.name)} ${each.type}`)
  return `CREATE TABLE ${identifier(name)} (${declared.join(", ")})`
}

const comments = (
  kind: "TABLE" | "VIEW",
  name: string,
  comment: string,
  { columns }: TableSpec,
): ReadonlyArray<string> => [
  `COMMENT ON ${kind} ${identifier(name)} IS ${literal(comment)}`,
  ...columns.map(
    (each) => `COMMENT ON COLUMN ${identifier(name)}.${identifier(each.name)} IS ${literal(each.comment)}`,
  ),
]

/** Sessions that were only read have no engine: each of them is its own newest. */
const latestView = ({ name, table, features }: LatestView): string => {
  const fed = features === undefined ? "" : `AND feature IN (${features.map(literal).join(", ")})`
  return `CREATE VIEW ${identifier(name)} AS
    SELECT r.* FROM ${identifier(table.name)} AS r JOIN (
      SELECT c.customer_id, c.engine_reference,
        CASE WHEN c.engine_reference IS NULL THEN c.session_id END AS session_id,
        arg_max(c.run_id, (coalesce(runs.sequence, 0), runs.started_at, c.run_id)) AS run_id
      FROM coverage AS c JOIN runs USING (run_id)
      WHERE c.outcome = 'succeeded' ${fed}
      GROUP BY ALL
    ) AS newest ON r.run_id = newest.run_id
      AND r.customer_id IS NOT DISTINCT FROM newest.customer_id
      AND r.engine_reference IS NOT DISTINCT FROM newest.engine_reference
      AND (r.engine_reference IS NOT NULL OR r.session_id = newest.session_id)`
}

/** Rows of each table by run must be equal in the manifest and in the database. */
const checkCounts = Effect.fnUntraced(function* (
  connection: Connection,
  options: BuildOptions,
  only?: string,
) {
  for (const { table, run_id, expected, found } of yield* countDifferences(connection, options)) {
    if (only !== undefined && run_id !== only) continue
    return yield* new PublishFailed({
      message: `${table}: ${found} rows of run ${run_id} where ${expected} were written`,
    })
  }
})

/** One query for all tables: planning one for each costs several times as much as counting. */
export const countDifferences = Effect.fnUntraced(function* (
  connection: Connection,
  { manifest, families }: Pick<BuildOptions, "manifest" | "families">,
) {
  const names = publishedTables(families).map(({ name }) => name)
  const counts = names.map(
    (name) =>
      `SELECT ${literal(name)} AS name, run_id, count(*)::INTEGER AS rows
        FROM ${identifier(name)} GROUP BY run_id`,
  )
  const rows = yield* connection.rows(counts.join(" UNION ALL "))
  const byTable = Map.groupBy(rows, (row) => String(row["name"]))
  const differences: Array<{ table: string; run_id: string; expected: number; found: number }> = []
  for (const name of names) {
    const found = new Map(
      (byTable.get(name) ?? []).map((row) => [String(row["run_id"]), Number(row["rows"])]),
    )
    const expected = new Map(
      Object.entries(manifest.runs).map(([run_id, { files }]) => [
        run_id,
        files.filter(({ table }) => table === name).reduce((sum, each) => sum + each.rows, 0),
      ]),
    )
    for (const run_id of new Set([...found.keys(), ...expected.keys()])) {
      const difference = { expected: expected.get(run_id) ?? 0, found: found.get(run_id) ?? 0 }
      if (difference.expected !== difference.found) differences.push({ table: name, run_id, ...difference })
    }
  }
  return differences
})

/** Runs that were published before they were numbered. */
const numberRuns = (connection: Connection, sequences: ReadonlyMap<string, number>) =>
  Effect.forEach(
    sequences,
    ([run_id, sequence]) =>
      connection.run(
        `UPDATE ${identifier(runsTable.name)} SET sequence = ${sequence}
          WHERE run_id = ? AND sequence IS NULL`,
        [run_id],
      ),
    { discard: true },
  )

/** Everything without rows, in one transaction: otherwise each of five hundred statements is synced. */
const dictionaryOf = (
  { families, manifest }: BuildOptions,
  tables: ReadonlyArray<TableSpec>,
  filled: ReadonlySet<string>,
) => [
  "BEGIN",
  ...tables.filter(({ name }) => !filled.has(name)).map(emptyTable),
  ...tables.flatMap((spec) => comments("TABLE", spec.name, spec.comment, spec)),
  ...latestViews(families).flatMap((view) => [
    latestView(view),
    ...comments("VIEW", view.name, view.comment, view.table),
  ]),
  versionMacro(manifest.version),
  "COMMIT",
]

/** Builds everything anew at a path that does not exist yet. */
export const buildDatabase = Effect.fn("Publishing.buildDatabase")(
  function* (
    options: BuildOptions & {
      /** By run: its place in the order in which runs began. */
      readonly sequences: ReadonlyMap<string, number>
      readonly memoryLimit: MemoryLimit
    },
  ) {
    const connection = yield* openDatabase(options.path, "read-write", options.memoryLimit)
    const byTable = Map.groupBy(filesOf(options.manifest), ({ table }) => table)
    const tables = publishedTables(options.families)
    const filled = new Set(byTable.keys())
    for (const spec of tables.filter(({ name }) => filled.has(name))) {
      const paths = (byTable.get(spec.name) ?? []).map((file) => join(options.root, options.standsAt(file)))
      const rows = yield* rowsFrom(connection, spec, paths)
      yield* connection.run(`CREATE TABLE ${identifier(spec.name)} AS ${rows}`)
    }
    yield* connection.run(dictionaryOf(options, tables, filled).join(";"))
    yield* numberRuns(connection, options.sequences)
    yield* checkCounts(connection, options)
  },
  Effect.scoped,
  Effect.catchTag("DuckDbFailed", (failure) => Effect.fail(databaseFailed(failure))),
)

/** Replaces one run's rows of some tables in a copy of the published database. */
export const amendDatabase = Effect.fn("Publishing.amendDatabase")(
  function* (options: BuildOptions, run_id: RunId, tables: ReadonlyArray<TableSpec>) {
    const connection = yield* openDatabase(options.path, "read-write")
    const files = options.manifest.runs[run_id]?.files ?? []
    yield* connection.run("BEGIN")
    for (const spec of tables) {
      yield* connection.run(`DELETE FROM ${identifier(spec.name)} WHERE run_id = ?`, [run_id])
      const own = files.filter(({ table }) => table === spec.name)
      if (own.length === 0) continue
      const paths = own.map((file) => join(options.root, options.standsAt(file)))
      yield* connection.run(
        `INSERT INTO ${identifier(spec.name)} ${yield* rowsFrom(connection, spec, paths)}`,
      )
    }
    yield* connection.run(versionMacro(options.manifest.version))
    yield* connection.run("COMMIT")
    yield* checkCounts(connection, options, run_id)
  },
  Effect.scoped,
  Effect.catchTag("DuckDbFailed", (failure) => Effect.fail(databaseFailed(failure))),
)

/** Gives a copy of an earlier version its new number. */
export const renumberDatabase = Effect.fnUntraced(
  function* (path: string, version: number) {
    const connection = yield* openDatabase(path, "read-write")
    yield* connection.run(versionMacro(version))
  },
  Effect.scoped,
  Effect.catchTag("DuckDbFailed", (failure) => Effect.fail(databaseFailed(failure))),
)

/** The version recorded in a database file; undefined if there is no readable one. */
export const databaseVersion = Effect.fnUntraced(
  function* (path: string) {
    const connection = yield* openDatabase(path, "read-only")
    const [row] = yield* connection.rows("SELECT published_version() AS version")
    return Number(row?.["version"])
  },
  Effect.scoped,
  Effect.orElseSucceed(() => undefined),
)
