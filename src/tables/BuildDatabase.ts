/**
 * Fills the published database from Parquet files, in the tables that the empty one has, and compares the
 * counts of every table and run with the manifest. A file that does not match the manifest is never
 * published.
 */
import { join } from "node:path"
import { Effect } from "effect"
import { DuckDb } from "../base/DuckDb.ts"
import type { Connection } from "../base/DuckDb.ts"
import { identifier, literal } from "../base/DuckDbFailed.ts"
import type { MisfitCount } from "../ledger/RunFacts.ts"
import type { TableSpec } from "../records/Columns.ts"
import { addUpMisfits } from "../records/Misfits.ts"
import type { RecordFamily } from "../records/RecordSchema.ts"
import { dataDictionary, publishedTables } from "./DataDictionary.ts"
import { castColumns, filesAlike } from "./FileColumns.ts"
import { filesOf } from "./Manifest.ts"
import type { Manifest, ManifestFile } from "./Manifest.ts"
import { databaseFailed, PublishFailed } from "./Publisher.ts"
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

/** For questions about a whole version, and for SQL that people wrote: it reaches nothing but this file. */
export const openClosedOff = Effect.fnUntraced(function* (path: string, access: "read-only" | "read-write") {
  const duckdb = yield* DuckDb
  return yield* duckdb.open({ path, access, threads: 1, memoryLimit: memoryLimits[1], files: "own" })
})

/**
 * SQL that a person wrote as a subquery. Brackets alone do not keep it one query: a text may close them and
 * begin the next statement.
 */
export const asSubquery = Effect.fnUntraced(function* (connection: Connection, sql: string) {
  const subquery = `(\n${sql.trimEnd().replace(/;+$/, "")}\n)`
  const statements = yield* connection.statements(`SELECT * FROM ${subquery} AS one`)
  if (statements !== 1) return yield* new PublishFailed({ message: "it is not one query" })
  return subquery
})

export const isOutOfMemory = ({ message }: PublishFailed): boolean => message.includes("Out of Memory Error")

/**
 * From here on a commit writes its rows into the file, and not into the log first: nobody opens a database
 * that is being made, and a crash removes it.
 */
export const withoutLog = "SET checkpoint_threshold = '0B'"

const versionMacro = (version: number) =>
  `CREATE OR REPLACE MACRO published_version() AS ${Math.trunc(version)}`

/**
 * A source of rows with exactly the columns of a table, and how many values do not fit a changed type. A file
 * may hold rows of further runs: those of `only` these are taken, if they are given.
 */
const rowsFrom = Effect.fnUntraced(function* (
  connection: Connection,
  spec: TableSpec,
  paths: ReadonlyArray<string>,
  only?: ReadonlyArray<string>,
) {
  const list = paths.map(literal).join(", ")
  const files = `read_parquet([${list}], union_by_name = true, hive_partitioning = false)`
  const columns = castColumns(spec, yield* connection.columnTypes(`SELECT * FROM ${files}`))
  const source = `${files}${ofRuns(only)}`
  const select = columns.map(({ name, value }) => `${value} AS ${identifier(name)}`)
  const unsure = columns.filter(({ mayMisfit }) => mayMisfit)
  const counts = unsure.map(
    ({ name, value }) => `(count(${identifier(name)}) - count(${value}))::INTEGER AS ${identifier(name)}`,
  )
  const [lost] =
    counts.length === 0 ? [] : yield* connection.rows(`SELECT ${counts.join(", ")} FROM ${source}`)
  const unfit = unsure.map(({ name }) => ({
    table: spec.name,
    column: name,
    count: Number(lost?.[name] ?? 0),
  }))
  return {
    sql: `SELECT ${select.join(", ")} FROM ${source}`,
    unfit: unfit.filter(({ count }) => count > 0),
  }
})

const ofRuns = (only: ReadonlyArray<string> | undefined): string =>
  only === undefined ? "" : ` WHERE run_id IN (${only.map(literal).join(", ")})`

/** Rows of each table by run must be equal in the manifest and in the database. */
const checkCounts = Effect.fnUntraced(function* (
  connection: Connection,
  options: BuildOptions,
  only?: ReadonlyArray<string>,
) {
  for (const { table, run_id, expected, found } of yield* countDifferences(connection, options, only)) {
    return yield* new PublishFailed({
      message: `${table}: ${found} rows of run ${run_id} where ${expected} were written`,
    })
  }
})

/**
 * One query for all tables: planning one for each costs several times as much as counting. `only` these runs
 * are compared, if they are given.
 */
export const countDifferences = Effect.fnUntraced(function* (
  connection: Connection,
  { manifest, families }: Pick<BuildOptions, "manifest" | "families">,
  only?: ReadonlyArray<string>,
) {
  const compared = Object.entries(manifest.runs).filter(([run_id]) => only?.includes(run_id) ?? true)
  const names = publishedTables(families).map(({ name }) => name)
  const counts = names.map(
    (name) =>
      `SELECT ${literal(name)} AS name, run_id, count(*)::INTEGER AS rows
        FROM ${identifier(name)}${ofRuns(only)} GROUP BY run_id`,
  )
  const rows = yield* connection.rows(counts.join(" UNION ALL "))
  const byTable = Map.groupBy(rows, (row) => String(row["name"]))
  const differences: Array<{ table: string; run_id: string; expected: number; found: number }> = []
  for (const name of names) {
    const found = new Map(
      (byTable.get(name) ?? []).map((row) => [String(row["run_id"]), Number(row["rows"])]),
    )
    const expected = new Map(
      compared.map(([run_id, { files }]) => [
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

/**
 * Bytes of Parquet whose tables share a transaction: every transaction is logged and synced, and what is
 * not committed yet stays in memory.
 */
const sharedBytesMax = 1024 * 1024

/** Fills the empty database at this path with everything; returns what does not fit a changed type. */
export const buildDatabase = Effect.fn("Publishing.buildDatabase")(
  function* (
    options: BuildOptions & {
      /** By run: its place in the order in which runs began. */
      readonly sequences: ReadonlyMap<string, number>
      readonly memoryLimit: MemoryLimit
    },
  ) {
    const connection = yield* openDatabase(options.path, "read-write", options.memoryLimit)
    const { manifest, families, root, standsAt } = options
    const bytesOf = new Map<string, number>()
    for (const { table, bytes } of filesOf(manifest)) bytesOf.set(table, (bytesOf.get(table) ?? 0) + bytes)
    const unfit: Array<MisfitCount> = []
    let open = 0
    yield* connection.run("BEGIN")
    for (const spec of publishedTables(families)) {
      const bytes = bytesOf.get(spec.name)
      if (bytes === undefined) continue
      if (open > 0 && open + bytes > sharedBytesMax) {
        yield* connection.run("COMMIT; BEGIN")
        open = 0
      }
      open += bytes
      const alike = filesAlike(manifest, families, spec.name)
      const parts = yield* Effect.forEach(alike, (files) =>
        rowsFrom(
          connection,
          spec,
          files.map((file) => join(root, standsAt(file))),
        ),
      )
      unfit.push(...parts.flatMap((part) => part.unfit))
      const rows = parts.map(({ sql }) => sql).join(" UNION ALL ")
      yield* connection.run(`INSERT INTO ${identifier(spec.name)} ${rows}`)
    }
    yield* connection.run(versionMacro(options.manifest.version))
    yield* numberRuns(connection, options.sequences)
    yield* connection.run(`${withoutLog}; COMMIT`)
    yield* checkCounts(connection, options)
    return addUpMisfits(unfit)
  },
  Effect.scoped,
  Effect.catchTag("DuckDbFailed", (failure) => Effect.fail(databaseFailed(failure))),
)

const removeModels = Effect.fnUntraced(function* (
  connection: Connection,
  families: ReadonlyArray<RecordFamily>,
) {
  const own = new Set(dataDictionary(families).map(({ name }) => name))
  const found = yield* connection.rows(`SELECT view_name AS name, 'VIEW' AS kind FROM duckdb_views()
    WHERE NOT internal UNION ALL SELECT table_name, 'TABLE' FROM duckdb_tables()`)
  for (const { name, kind } of found)
    if (!own.has(String(name))) yield* connection.run(`DROP ${String(kind)} ${identifier(String(name))}`)
})

/**
 * Replaces the rows of some runs in some tables of a copy of the published database; a run that it does not
 * have yet is added. Returns what does not fit a changed type.
 */
export const amendDatabase = Effect.fn("Publishing.amendDatabase")(
  function* (
    options: BuildOptions & {
      /** Models are removed, for those that there are now to be made. */
      readonly removesModels: boolean
      /** The runs whose rows are there already. */
      readonly replaced: ReadonlyArray<string>
    },
    runs: ReadonlyArray<string>,
    tables: ReadonlyArray<TableSpec>,
  ) {
    const connection = yield* openDatabase(options.path, "read-write")
    const { root, standsAt, families, replaced } = options
    const amended = Object.entries(options.manifest.runs).filter(([run_id]) => runs.includes(run_id))
    const manifest = { ...options.manifest, runs: Object.fromEntries(amended) }
    const unfit: Array<MisfitCount> = []
    yield* connection.run("BEGIN")
    if (options.removesModels) yield* removeModels(connection, families)
    for (const spec of tables) {
      if (replaced.length > 0)
        yield* connection.run(`DELETE FROM ${identifier(spec.name)}${ofRuns(replaced)}`)
      for (const files of filesAlike(manifest, families, spec.name)) {
        const paths = files.map((file) => join(root, standsAt(file)))
        const rows = yield* rowsFrom(connection, spec, paths, runs)
        unfit.push(...rows.unfit)
        yield* connection.run(`INSERT INTO ${identifier(spec.name)} ${rows.sql}`)
      }
    }
    yield* connection.run(versionMacro(options.manifest.version))
    yield* connection.run(`${withoutLog}; COMMIT`)
    yield* checkCounts(connection, options, runs)
    return addUpMisfits(unfit)
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
