/**
 * Writes one Parquet file with the rows of several runs, read from files that exist, and compares it with
 * them before anything names it: the same columns, and for each run as many rows and the same ones. The rows
 * are in the order of date and run, and of a run as they were.
 */
import { join } from "node:path"
import { Effect } from "effect"
import { DuckDb } from "../base/DuckDb.ts"
import type { Connection } from "../base/DuckDb.ts"
import { identifier, literal } from "../base/DuckDbFailed.ts"
import { memoryLimits } from "./BuildDatabase.ts"
import { dateIn, parquetRows, writeParquet } from "./FileColumns.ts"
import { placeIn } from "./KeptVersions.ts"
import { fingerprintInTurns } from "./Manifest.ts"
import type { ManifestFile } from "./Manifest.ts"
import type { MonthFile } from "./MonthFiles.ts"
import { databaseFailed, PublishFailed } from "./Publisher.ts"
import type { Store } from "./Store.ts"

/** A database for reading and writing files, until the scope ends. */
export const inMemory = Effect.flatMap(DuckDb, ({ open }) =>
  open({ path: ":memory:", access: "read-write", threads: 1, memoryLimit: memoryLimits[1] }),
)

/** What a file of these runs is to contain, and its columns. */
const rowsOf = Effect.fnUntraced(function* (store: Store, connection: Connection, file: MonthFile) {
  const places = file.sources.map((each) => join(store.layout.root, placeIn(store)(each)))
  const namesIn = Effect.fnUntraced(function* (paths: ReadonlyArray<string>) {
    const columns = yield* connection.columnTypes(`SELECT * FROM ${parquetRows(paths)}`)
    return columns.map(({ name }) => name)
  })
  // In the order of the newest: columns are added with time.
  const found = new Set([...(yield* namesIn(places.slice(-1))), ...(yield* namesIn(places))])
  // Files of an older version lack the run's date, which is in their path.
  const names = found.has("run_date") ? [...found] : ["run_date", ...found]
  const dateInPath = dateIn("filename")
  const date = found.has("run_date") ? `coalesce(run_date, ${dateInPath})` : dateInPath
  const select = names.map((name) => (name === "run_date" ? `${date} AS run_date` : identifier(name)))
  const runs = file.parts.map(({ run_id }) => literal(run_id)).join(", ")
  // Files are read one after the other: rows have to be sorted only if one of them has rows of several runs.
  const isSorted = file.sources.length === 1 || file.sources.every((each) => each.file_rows === undefined)
  const order = isSorted ? "" : " ORDER BY run_date, run_id, filename, file_row_number"
  const sql = `SELECT ${select.join(", ")} FROM ${parquetRows(places)} WHERE run_id IN (${runs})`
  return { sql, order, columns: names.map(identifier) }
})

/** By run: the number of its rows, and the sum of their hashes. */
const digestOf = Effect.fnUntraced(function* (
  connection: Connection,
  sql: string,
  columns: ReadonlyArray<string>,
) {
  const rows = yield* connection.rows(
    `SELECT run_id, count(*)::INTEGER AS n, sum(hash(${columns.join(", ")}))::VARCHAR AS digest
      FROM (${sql}) GROUP BY run_id`,
  )
  return new Map(rows.map(({ run_id, n, digest }) => [String(run_id), { rows: Number(n), digest }]))
})

const refuse = (path: string, what: string) => new PublishFailed({ message: `${path}: ${what}` })

/** Fails if the file that was written is not the expected one; `place` is where it is. */
const checkRows = Effect.fnUntraced(function* (
  connection: Connection,
  { sql, columns }: Effect.Success<ReturnType<typeof rowsOf>>,
  place: string,
  path: string,
  { parts }: MonthFile,
) {
  const written = `SELECT * FROM ${parquetRows([place])}`
  const [expected, found] = [yield* connection.columnTypes(sql), yield* connection.columnTypes(written)]
  if (JSON.stringify(expected) !== JSON.stringify(found))
    return yield* refuse(path, "it was written with other columns than it was read with")
  const before = yield* digestOf(connection, sql, columns)
  const after = yield* digestOf(connection, written, columns)
  for (const { run_id, rows } of parts) {
    const [was, is] = [before.get(run_id), after.get(run_id)]
    if ((was?.rows ?? 0) !== rows)
      return yield* refuse(path, `its sources have ${was?.rows ?? 0} rows of run ${run_id}, not ${rows}`)
    if (was?.rows !== is?.rows || was?.digest !== is?.digest)
      return yield* refuse(path, `the rows of run ${run_id} read back differently`)
  }
  if (after.size > parts.length) return yield* refuse(path, "it has rows of a run that is not its own")
})

interface Target {
  /** Its name in the manifest, relative to the output folder. */
  readonly path: string
  readonly version: number
  /** Where it is written. */
  readonly place: string
}

/** The written and synced file, as each run's entry of a manifest. */
export const writeShared = Effect.fn("Publishing.writeShared")(
  function* (store: Store, connection: Connection, file: MonthFile, { path, version, place }: Target) {
    const source = yield* rowsOf(store, connection, file)
    const sql = `${source.sql}${source.order}`
    yield* writeParquet(store, connection, place, { sql, month: file.month, version })
    yield* checkRows(connection, source, place, path, file)
    const fingerprint = yield* fingerprintInTurns(place)
    const file_rows = file.parts.reduce((sum, { rows }) => sum + rows, 0)
    const { table } = file
    return new Map(
      file.parts.map(({ run_id, rows }): readonly [string, ManifestFile] => [
        run_id,
        { table, path, rows, file_rows, ...fingerprint },
      ]),
    )
  },
  Effect.catchTag("DuckDbFailed", (failure) => Effect.fail(databaseFailed(failure))),
)
