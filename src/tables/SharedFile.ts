/**
 * Parquet files that several runs share. One is written of files that exist, and compared with them before
 * anything names it: the same columns, and for each run as many rows and the same ones. The rows are in the
 * order of date and run, and of a run as they were. `Instead` says which runs have their rows in it since.
 */
import { join } from "node:path"
import { Effect } from "effect"
import type { Connection } from "../base/DuckDb.ts"
import { identifier, literal } from "../base/DuckDbFailed.ts"
import { inMemory } from "./BuildDatabase.ts"
import { dateIn, parquetRows, writeParquet } from "./FileColumns.ts"
import { placeIn } from "./KeptVersions.ts"
import { fingerprintInTurns, fileStep, filesOf, monthOf, monthPath } from "./Manifest.ts"
import type { ManifestFile, Manifest } from "./Manifest.ts"
import { partsOf } from "./MonthFiles.ts"
import type { MonthFile, RunPart } from "./MonthFiles.ts"
import { inDatabase, PublishFailed, databaseFailed } from "./Publisher.ts"
import { temporary } from "./Store.ts"
import type { Store } from "./Store.ts"
import { gapsIn } from "./Standing.ts"

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
export const writeShared = Effect.fn("Publishing.writeShared")(function* (
  store: Store,
  connection: Connection,
  file: MonthFile,
  { path, version, place }: Target,
) {
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
}, inDatabase)

// Rows of a run stand in one place. If a run whose rows share a file with those of others is published again,
// the file is written again without them, in the same version: whoever reads all files reads no row twice.

/** What takes the place of a run's rows in a file, which may hold rows of several runs. */
export class Instead {
  readonly #files = new Map<string, ManifestFile | undefined>()
  readonly #key = (run_id: string, path: string): string => `${run_id} ${path}`

  /** `undefined` if none of the rows are left. */
  set(run_id: string, path: string, file: ManifestFile | undefined): void {
    this.#files.set(this.#key(run_id, path), file)
  }

  has(run_id: string, path: string): boolean {
    return this.#files.has(this.#key(run_id, path))
  }

  isIn({ runs }: Manifest): boolean {
    return Object.entries(runs).some(([run_id, { files }]) =>
      files.some(({ path }) => this.has(run_id, path)),
    )
  }

  /** A version with it; several files that become one are named once. */
  in(manifest: Manifest): Manifest {
    const filesIn = (run_id: string, files: ReadonlyArray<ManifestFile>) => {
      const left = files.flatMap((file) =>
        this.has(run_id, file.path) ? (this.#files.get(this.#key(run_id, file.path)) ?? []) : file,
      )
      return [...new Map(left.map((file) => [file.path, file])).values()]
    }
    const runs = Object.entries(manifest.runs).map(([run_id, run]) => [
      run_id,
      { ...run, files: filesIn(run_id, run.files) },
    ])
    return { ...manifest, runs: Object.fromEntries(runs) }
  }
}

/**
 * Writes what these runs have in a file as one of its own below `folder`, under a temporary name; returns its
 * path.
 */
export const writeParts = Effect.fnUntraced(function* (
  store: Store,
  connection: Connection,
  { file, parts }: { readonly file: ManifestFile; readonly parts: ReadonlyArray<RunPart> },
  {
    version,
    taken,
    folder,
  }: { readonly version: number; readonly taken: Set<string>; readonly folder: string },
  instead: Instead,
) {
  const { table } = file
  const month = monthOf(parts[0]?.run_date ?? "")
  const path = monthPath({ table, month }, version, taken)
  const place = temporary(join(folder, path))
  const wanted = { table, month, parts, sources: [file] }
  const written = yield* writeShared(store, connection, wanted, { path, version, place })
  for (const [run_id, entry] of written) instead.set(run_id, file.path, entry)
  return path
})

/** Files that hold rows of runs that do not name them, or not any more. */
const tooLarge = (manifest: Manifest): ReadonlyArray<ManifestFile> => {
  const named = new Map<string, number>()
  for (const { files } of Object.values(manifest.runs))
    for (const { path, rows } of files) named.set(path, (named.get(path) ?? 0) + rows)
  return filesOf(manifest).filter(
    ({ path, file_rows }) => file_rows !== undefined && named.get(path) !== file_rows,
  )
}

/**
 * The manifest with files that hold the rows of their runs and no other, and its files with temporary names:
 * `fresh` and the new ones. A file that is missing or damaged stays named: it is reported, and its runs are
 * derived again.
 */
export const takeOut = Effect.fn("Publishing.takeOut")(function* (
  store: Store,
  next: Manifest,
  fresh: ReadonlySet<string>,
) {
  const due = tooLarge(next)
  if (due.length === 0) return { next, fresh }
  const instead = new Instead()
  const taken = new Set(fresh)
  const connection = yield* Effect.mapError(inMemory, databaseFailed)
  for (const file of due) {
    if ((yield* fileStep(() => gapsIn(store, [file], true, placeIn(store)))).length > 0) continue
    const part = { file, parts: partsOf(next, file.path) }
    const to = { version: next.version, taken, folder: store.layout.root }
    yield* writeParts(store, connection, part, to, instead)
  }
  return { next: instead.in(next), fresh: taken as ReadonlySet<string> }
}, Effect.scoped)
