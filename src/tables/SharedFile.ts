/**
 * Parquet files that several runs share. One is written of files that exist, and compared with them before
 * anything names it: the same columns, and for each run the same rows. `Instead` says which runs have theirs
 * in it.
 */
import { join } from "node:path"
import { Effect } from "effect"
import { sumOf } from "../base/Text.ts"
import type { Connection } from "../base/DuckDb.ts"
import { identifier, literal } from "../base/DuckDbFailed.ts"
import { inMemory } from "./BuildDatabase.ts"
import { parquetRows, writeParquet, schemaVersionOf } from "./FileColumns.ts"
import { fingerprintAt, gapsOf, monthOf, monthPath, endOf, placesOf, temporary } from "./Manifest.ts"
import { runPath, withFiles } from "./Manifest.ts"
import type { ManifestFile, Manifest, Store } from "./Manifest.ts"
import { inDatabase, PublishFailed, databaseFailed } from "./Publisher.ts"
import type { RecordFamily } from "../records/RecordSchema.ts"

// Which files of a month become one: pure. A month is taken as a whole once it is old enough, so that its
// files are written again once. Runs of different schemas stay apart, and so does what is large already.

/** The rows that a run has in a file. */
export interface RunPart {
  readonly run_id: string
  readonly run_date: string
  readonly rows: number
}

/** One file to be written: of these runs, in this order, read from these files. */
export interface MonthFile {
  readonly table: string
  /** YYYY-MM, of `run_date`. */
  readonly month: string
  readonly parts: ReadonlyArray<RunPart>
  readonly sources: ReadonlyArray<ManifestFile>
  /** Which rows of these columns stay out of it; undefined if none do. */
  readonly without?: (columns: ReadonlySet<string>) => string | undefined
}

/** A file that has reached this size is not written again. */
const sourceBytesMax = 32 * 1024 * 1024
/** The size that the files of a month are filled up to: each is read whole to be checked. */
const fileBytesMax = 64 * 1024 * 1024

export interface Choice {
  /** Milliseconds since the epoch: months that were over by then, in UTC. */
  readonly overBy: number
  /** Only files of these runs; of all runs if it is not given. */
  readonly runs?: ReadonlySet<string>
}

/** The files that are taken together or not at all: those of one run, or one that several runs share. */
interface Unit extends MonthFile {
  readonly schema: number | undefined
}

/** The runs of a version in the order of date and run. */
const inOrder = ({ runs }: Manifest) =>
  Object.entries(runs).toSorted(([id, { run_date }], [otherId, other]) =>
    `${run_date} ${id}` < `${other.run_date} ${otherId}` ? -1 : 1,
  )

/** By path: each file of these versions, with what the runs of the first one that names it have in it. */
export const partsIn = (manifests: ReadonlyArray<Manifest>) => {
  const all = new Map<string, MonthFile & { readonly parts: Array<RunPart>; readonly file: ManifestFile }>()
  for (const manifest of manifests) {
    const known = new Set(all.keys())
    for (const [run_id, { run_date, files }] of inOrder(manifest))
      for (const file of files) {
        const { table, path, rows } = file
        if (known.has(path)) continue
        const one = all.get(path) ?? { table, month: monthOf(run_date), parts: [], sources: [file], file }
        one.parts.push({ run_id, run_date, rows })
        all.set(path, one)
      }
  }
  return all
}

/** In the order of date and run. */
const unitsOf = (
  manifest: Manifest,
  families: ReadonlyArray<RecordFamily>,
  isChosen: (run_id: string) => boolean,
): ReadonlyArray<Unit> => {
  const all = inOrder(manifest).flatMap(([run_id, run]) =>
    [...Map.groupBy(run.files, (file) => file.table)].map(([table, files]) => {
      const common = files.find(({ file_rows }) => file_rows !== undefined)
      const schema = schemaVersionOf(run, families, table)
      const part = { run_id, run_date: run.run_date, rows: sumOf(files.map(({ rows }) => rows)) }
      return { table, month: monthOf(run.run_date), schema, part, files, run, common }
    }),
  )
  const groups = Map.groupBy(all, ({ part, table, common }) => common?.path ?? `${part.run_id} ${table}`)
  return [...groups.values()].flatMap((group): ReadonlyArray<Unit> => {
    const [first] = group
    const fits = group.every(
      ({ month, schema, part, run }) =>
        month === first?.month && schema === first.schema && isChosen(part.run_id) && run.interim !== true,
    )
    if (first === undefined || !fits) return []
    const { table, month, schema, files: sources } = first
    return [{ table, month, schema, parts: group.map(({ part }) => part), sources }]
  })
}

/** Bytes of its files, each once. */
const bytesOf = ({ sources }: Unit): number => sumOf(sources.map(({ bytes }) => bytes))

export const monthFiles = (
  manifest: Manifest,
  families: ReadonlyArray<RecordFamily>,
  { overBy, runs }: Choice,
): ReadonlyArray<MonthFile> => {
  const small = unitsOf(manifest, families, (run_id) => runs?.has(run_id) ?? true).filter(
    (unit) => endOf(unit.month).getTime() <= overBy && bytesOf(unit) < sourceBytesMax,
  )
  const groups = Map.groupBy(small, ({ table, month, schema }) => `${month} ${table} ${schema ?? ""}`)
  return [...groups.values()].flatMap((group) =>
    filled(group).flatMap((units): ReadonlyArray<MonthFile> => {
      const [first] = units
      const sources = units.flatMap((unit) => unit.sources)
      if (first === undefined || sources.length < 2) return []
      return [{ table: first.table, month: first.month, parts: units.flatMap(({ parts }) => parts), sources }]
    }),
  )
}

/** As many at a time as one file may hold. */
const filled = (units: ReadonlyArray<Unit>): ReadonlyArray<ReadonlyArray<Unit>> => {
  const files: Array<Array<Unit>> = []
  let room = 0
  for (const unit of units) {
    const bytes = bytesOf(unit)
    if (bytes > room) {
      files.push([])
      room = fileBytesMax
    }
    files.at(-1)?.push(unit)
    room -= bytes
  }
  return files
}

/** What a file of these runs is to contain, and its columns. */
const rowsOf = Effect.fnUntraced(function* (store: Store, connection: Connection, file: MonthFile) {
  const places = placesOf(store, file.sources)
  const namesIn = Effect.fnUntraced(function* (paths: ReadonlyArray<string>) {
    const columns = yield* connection.columnTypes(`SELECT * FROM ${parquetRows(paths)}`)
    return columns.map(({ name }) => name)
  })
  // In the order of the newest: columns are added with time.
  const newest = places.length > 1 ? yield* namesIn(places.slice(-1)) : []
  const found = new Set([...newest, ...(yield* namesIn(places))])
  const columns = [...found].map(identifier)
  const runs = file.parts.map(({ run_id }) => literal(run_id)).join(", ")
  const without = file.without?.(found)
  const where = `run_id IN (${runs})${without === undefined ? "" : ` AND NOT ${without}`}`
  // Files are read one after the other: rows have to be sorted only if one of them has rows of several runs.
  const isSorted = file.sources.length === 1 || file.sources.every((each) => each.file_rows === undefined)
  const order = isSorted ? "" : " ORDER BY run_date, run_id, filename, file_row_number"
  const sql = `SELECT ${columns.join(", ")} FROM ${parquetRows(places)} WHERE ${where}`
  return { sql, order, columns }
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

  get isEmpty(): boolean {
    return this.#files.size === 0
  }

  has(run_id: string, path: string): boolean {
    return this.#files.has(this.#key(run_id, path))
  }

  /** The runs of a version that have other files with it. */
  runsIn({ runs }: Manifest): ReadonlyArray<string> {
    return Object.entries(runs).flatMap(([run_id, { files }]) =>
      files.some(({ path }) => this.has(run_id, path)) ? [run_id] : [],
    )
  }

  /** A version with it; several files that become one are named once. */
  in(manifest: Manifest): Manifest {
    return withFiles(manifest, (run_id, files) => {
      const left = files.flatMap((file) =>
        this.has(run_id, file.path) ? (this.#files.get(this.#key(run_id, file.path)) ?? []) : file,
      )
      return [...new Map(left.map((file) => [file.path, file])).values()]
    })
  }
}

/** Where new files are to be, below `folder`, under temporary names that are not taken. */
export interface Places {
  readonly version: number
  readonly taken: Set<string>
  readonly folder: string
}

/** Writes a file, synced, that its runs have `instead` of its sources; what was a run's own stays so. */
export const writeShared = Effect.fn("Publishing.writeShared")(function* (
  store: Store,
  connection: Connection,
  file: MonthFile,
  { version, taken, folder }: Places,
  instead: Instead,
) {
  const { table, month, parts, sources } = file
  const [first] = parts
  const own = sources.length === 1 && sources[0]?.file_rows === undefined ? first : undefined
  const path =
    own === undefined ? monthPath(file, version, taken) : runPath({ table, ...own }, version, taken)
  const place = temporary(join(folder, path))
  const source = yield* rowsOf(store, connection, file)
  const whose = own === undefined ? { month } : { run_id: own.run_id }
  yield* writeParquet(store, connection, place, { sql: `${source.sql}${source.order}`, version, ...whose })
  yield* checkRows(connection, source, place, path, file)
  const all = own === undefined ? { file_rows: sumOf(parts.map(({ rows }) => rows)) } : {}
  const fingerprint = yield* fingerprintAt(place)
  for (const { run_id, rows } of parts)
    for (const each of sources) instead.set(run_id, each.path, { table, path, rows, ...all, ...fingerprint })
  return { path, bytes: fingerprint.bytes }
}, inDatabase)

/**
 * The manifest with files that hold the rows of their runs and no other. A file that is missing or damaged
 * stays named: it is reported, and its runs are derived again.
 */
export const takeOut = Effect.fn("Publishing.takeOut")(function* (store: Store, next: Manifest) {
  const all = partsIn([next])
  const due = [...all.values()].filter(
    ({ file: { file_rows }, parts }) =>
      file_rows !== undefined && sumOf(parts.map(({ rows }) => rows)) !== file_rows,
  )
  if (due.length === 0) return next
  const instead = new Instead()
  const to = { version: next.version, taken: new Set(all.keys()), folder: store.layout.root }
  const connection = yield* Effect.mapError(inMemory, databaseFailed)
  for (const part of due)
    if ((yield* gapsOf(store, [part.file])).length === 0)
      yield* writeShared(store, connection, part, to, instead)
  return instead.in(next)
}, Effect.scoped)
