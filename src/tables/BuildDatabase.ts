/**
 * Fills the published database from Parquet files, and compares the rows of every table and run with the
 * manifest: a file that does not match it is never published.
 */
import { Effect } from "effect"
import { sizeAt } from "../base/DurableFile.ts"
import { DuckDb, type Connection } from "../base/DuckDb.ts"
import { identifier, literal } from "../base/DuckDbFailed.ts"
import { dayMs, isoDay } from "../base/Text.ts"
import type { MisfitCount } from "../ledger/RunFacts.ts"
import type { TableSpec } from "../records/Columns.ts"
import { addUpMisfits } from "../records/Misfits.ts"
import type { RecordFamily } from "../records/RecordSchema.ts"
import { otherRecordsTable, tableSpecs } from "../records/RecordTables.ts"
import { tell } from "../task/Progress.ts"
import { namesInMain, operatorTables, placeOf, publishedTables } from "./DataDictionary.ts"
import type { SteppedRun } from "./Answers.ts"
import { gatherOutcomes } from "./Dimensions.ts"
import { castRows, parquetRows } from "./FileColumns.ts"
import { filesOf, fileStep, placeIn, placesOf, temporary } from "./Manifest.ts"
import type { Manifest, ManifestFile } from "./Manifest.ts"
import { familyThen, hadNone, rowsAnew, shapeOf, tableThen, type Made } from "./OtherSchema.ts"
import { inDatabase, PublishFailed } from "./Publisher.ts"
import { keptTables, seenOf, type KeptTable } from "./RecordStore.ts"
import { stepRun, unstepNewest } from "./Step.ts"
import { documentsTable } from "./SystemTables.ts"

/**
 * DuckDB keeps the texts of 2,048 adjacent rows in memory at once. Nearly every run needs a fraction of the
 * first limit; the others are for long texts of several runs that end up in adjacent rows.
 */
export const memoryLimits = ["320MB", "1GB", "4GB"] as const
export type MemoryLimit = (typeof memoryLimits)[number]

/** With fewer bytes of Parquet, taking memory and giving it back costs more than the rows. */
const fewBytes = 4 * 1024 * 1024
/** Up to this many bytes, a database that few rows are added to is no larger for not being compressed. */
const smallBytes = 32 * 1024 * 1024

/**
 * The run's own database work leaves the machine free for others. `bytes` of Parquet are read into it; if not
 * given, the size of the file says how much there is.
 */
export const openDatabase = Effect.fnUntraced(function* (
  path: string,
  access: "read-only" | "read-write",
  memoryLimit: MemoryLimit = memoryLimits[0],
  bytes?: number,
) {
  const duckdb = yield* DuckDb
  const limits = { path, access, threads: 1, memoryLimit }
  const size = yield* fileStep(() => sizeAt(path))
  // What many rows free in groups adds up to 130 MB at a million records, unless each group is given back.
  if ((bytes ?? size) >= fewBytes) return yield* duckdb.open({ ...limits, freedMax: "1MB" })
  return yield* duckdb.open({ ...limits, isUncompressed: bytes !== undefined && size < smallBytes })
})

/** A database for reading and writing files, until the scope ends. */
export const inMemory = Effect.flatMap(DuckDb, ({ open }) =>
  open({ path: ":memory:", access: "read-write", threads: 1, memoryLimit: memoryLimits[1] }),
)

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

/** A commit writes into the file, and not into the log first: nobody opens it yet, and a crash removes it. */
export const withoutLog = "SET checkpoint_threshold = '0B'; SET auto_checkpoint_skip_wal_threshold = 0"

const versionMacro = (version: number) =>
  `CREATE OR REPLACE MACRO published_version() AS ${Math.trunc(version)}`

/** A database that is being filled, and what of its files does not fit a changed type so far. */
interface Filling {
  readonly connection: Connection
  readonly store: Made
  readonly manifest: Manifest
  readonly unfit: Array<MisfitCount>
}

const isNew =
  (store: Made) =>
  (file: ManifestFile): boolean =>
    placeIn(store)(file) === temporary(file.path) && file.file_rows === undefined

/**
 * A query for rows with exactly the columns of a table, of `only` these runs. A file that has just been
 * written has them already.
 */
const rowsFrom = Effect.fnUntraced(function* (
  { connection, store }: Filling,
  spec: TableSpec,
  files: ReadonlyArray<ManifestFile>,
  only?: ReadonlyArray<string>,
) {
  const rows = parquetRows(placesOf(store, files))
  const isKnown = files.every(isNew(store))
  const columns = isKnown ? spec.columns : yield* connection.columnTypes(`SELECT * FROM ${rows}`)
  return castRows(spec, columns, `(SELECT * FROM ${rows}${ofRuns(only)})`)
})

const ofRuns = (only: ReadonlyArray<string> | undefined): string =>
  only === undefined ? "" : ` WHERE run_id IN (${only.map(literal).join(", ")})`

/** The run of each row of a table; records are counted where each run names them. */
const runsSql = (name: string, index: number, kept: ReadonlyArray<KeptTable>): string => {
  const isRecords = kept.some((one) => one.name === name)
  const rows = isRecords ? `${seenOf(name)} JOIN store._readings USING (_reading)` : placeOf(name)
  return `SELECT ${index} AS place, run_id FROM ${rows}`
}

/** One query for all tables: one for each, or a group of its own for each, costs several times as much. */
export const countDifferences = Effect.fnUntraced(function* (
  connection: Connection,
  { manifest, families }: { readonly manifest: Manifest; readonly families: ReadonlyArray<RecordFamily> },
  only?: ReadonlyArray<string>,
) {
  const compared = Object.entries(manifest.runs).filter(([run_id]) => only?.includes(run_id) ?? true)
  const names = publishedTables(families).map(({ name }) => name)
  const kept = keptTables(families)
  const all = names.map((name, index) => runsSql(name, index, kept)).join(" UNION ALL ")
  const rows = yield* connection.rows(
    `SELECT place, run_id, count(*)::INTEGER AS rows FROM (${all})${ofRuns(only)} GROUP BY place, run_id`,
  )
  const counts = new Map(
    rows.map((row) => [`${Number(row["place"])} ${String(row["run_id"])}`, Number(row["rows"])]),
  )
  const unknown = rows.map((row): readonly [string, undefined] => [String(row["run_id"]), undefined])
  const runs = new Map([...unknown, ...compared])
  return names.flatMap((table, place) =>
    [...runs].flatMap(([run_id, run]) => {
      const then = tableThen(families, manifest.schemas, run, table)
      if (then === undefined) return []
      const own = (run?.files ?? []).filter((file) => file.table === then)
      const expected = own.reduce((sum, each) => sum + each.rows, 0)
      const found = counts.get(`${place} ${run_id}`) ?? 0
      return expected === found ? [] : [{ table, run_id, expected, found }]
    }),
  )
})

interface Begun {
  readonly run_id: string
  readonly run_date: string
  readonly at: number
}

/**
 * Dates instead of those of runs whose clock was ahead: the date of the next run whose clock was right,
 * before which they began. Right are the clocks by which most runs began in the order in which they did.
 */
export const datesInstead = (runs: ReadonlyArray<Begun>): ReadonlyMap<string, string> => {
  // Of as many runs in order as its place says, the last one, which is as early as can be.
  const last: Array<number> = []
  const before = runs.map(({ at }, place) => {
    const length = last.findLastIndex((one) => (runs[one]?.at ?? 0) <= at) + 1
    last[length] = place
    return last[length - 1]
  })
  const instead = new Map<string, string>()
  let [right, next] = [last.at(-1), Infinity]
  for (const [place, { run_id, run_date, at }] of [...runs.entries()].toReversed())
    if (place === right) [right, next] = [before[place], at]
    else if (Date.parse(run_date) > next + dayMs) instead.set(run_id, isoDay(next))
  return instead
}

/**
 * The runs of the database in the order in which they began, each with a number of its own, and a date if its
 * own cannot be right.
 */
const runsInOrder = Effect.fnUntraced(function* (connection: Connection) {
  const rows = yield* connection.rows(
    `SELECT run_id, sequence, run_date::VARCHAR AS run_date, epoch_ms(started_at)::DOUBLE AS at FROM ops.runs
      ORDER BY coalesce(sequence, 0), started_at, run_id`,
  )
  const runs = rows.map(({ run_id, run_date, at, sequence }) => ({
    run_id: String(run_id),
    run_date: String(run_date),
    at: Number(at),
    sequence: Number(sequence),
  }))
  const dates = datesInstead(runs)
  let before = 0
  return runs.map(({ run_id, sequence }) => {
    before = Math.max(before + 1, sequence)
    return { run_id, sequence: before, date: dates.get(run_id) }
  })
})

/** Puts the rows of `only` these runs, or of all, into a table of `ops`, instead of those that it has. */
const putRows = Effect.fnUntraced(function* (
  filling: Filling,
  spec: TableSpec,
  only?: ReadonlyArray<string>,
  hasSome = true,
) {
  const { connection, manifest } = filling
  const place = `ops.${identifier(spec.name)}`
  if (only !== undefined && hasSome) yield* connection.run(`DELETE FROM ${place}${ofRuns(only)}`)
  const entries = Object.entries(manifest.runs).filter(([run_id]) => only?.includes(run_id) ?? true)
  const all = entries.flatMap(([, { files }]) => files.filter(({ table }) => table === spec.name))
  const files = [...new Map(all.map((file) => [file.path, file])).values()]
  if (files.length > 0)
    yield* connection.run(`INSERT INTO ${place} ${yield* rowsFrom(filling, spec, files, only)}`)
})

/** By table of records, a query for the rows of a run. */
const sourcesOf = Effect.fnUntraced(function* (filling: Filling, run_id: string) {
  const { connection, store, manifest, unfit } = filling
  const run = manifest.runs[run_id]
  const sources = new Map<string, string>()
  if (run === undefined) return sources
  const read = Effect.fnUntraced(function* (spec: TableSpec) {
    const own = run.files.filter(({ table }) => table === spec.name)
    if (own.length > 0) sources.set(spec.name, yield* rowsFrom(filling, spec, own, [run_id]))
  })
  for (const family of store.families) {
    if (hadNone(run, family)) continue
    const was = familyThen(family, manifest.schemas, run)
    const isAlike = was !== undefined && shapeOf(was) === shapeOf(family)
    if (isAlike || run.files.every(isNew(store))) yield* Effect.forEach(tableSpecs(family), read)
    else {
      const anew = yield* rowsAnew(store, connection, { family, was }, run_id, run.files)
      for (const [table, sql] of anew.sources) sources.set(table, sql)
      unfit.push(...anew.unfit)
    }
  }
  yield* read(otherRecordsTable)
  return sources
})

/** Adds a run to the records; its rows of `ops` are there. */
const step = Effect.fnUntraced(function* (
  filling: Filling,
  run: Pick<SteppedRun, "run_id" | "sequence" | "date">,
  lost: ReadonlySet<string> = new Set(),
) {
  const { connection, store, manifest } = filling
  const { families } = store
  const interim = manifest.runs[run.run_id]?.interim ?? false
  const sources = yield* sourcesOf(filling, run.run_id)
  yield* stepRun(connection, keptTables(families), families, { ...run, interim, sources, lost })
}, Effect.scoped)

/** Numbers the version. Rows of each table by run, or of `only` these runs, must be those of the manifest. */
const finish = Effect.fnUntraced(function* (
  { connection, store: { families }, manifest }: Filling,
  only?: ReadonlyArray<string>,
) {
  yield* connection.run(versionMacro(manifest.version))
  yield* connection.run(`${withoutLog}; COMMIT`)
  const [wrong] = yield* countDifferences(connection, { manifest, families }, only)
  if (wrong === undefined) return
  const { table, run_id, expected, found } = wrong
  return yield* new PublishFailed({
    message: `${table}: ${found} rows of run ${run_id} where ${expected} were written`,
  })
})

/**
 * Bytes of Parquet whose tables share a transaction: every transaction is logged and synced, and what is
 * not committed yet stays in memory.
 */
const sharedBytesMax = 1024 * 1024

/** Begins the next transaction whenever the rows of one have become many. */
const turns = (connection: Connection) => {
  let open = 0
  return Effect.fnUntraced(function* (bytes: number) {
    if (open > 0 && open + bytes > sharedBytesMax) {
      yield* connection.run("COMMIT; BEGIN")
      open = 0
    }
    open += bytes
  })
}

/** Fills the empty database with everything; returns what does not fit a changed type. */
export const buildDatabase = Effect.fn("Publishing.buildDatabase")(function* (
  store: Made,
  manifest: Manifest,
  options: {
    /** By run: tables of which a file is missing or damaged. */
    readonly lost: ReadonlyMap<string, ReadonlySet<string>>
    readonly memoryLimit: MemoryLimit
  },
) {
  const all = filesOf(manifest)
  const bytes = (files: ReadonlyArray<ManifestFile>) => files.reduce((sum, file) => sum + file.bytes, 0)
  const connection = yield* openDatabase(store.layout.build, "read-write", options.memoryLimit, bytes(all))
  const filling: Filling = { connection, store, manifest, unfit: [] }
  const turn = turns(connection)
  yield* connection.run("BEGIN")
  for (const spec of operatorTables()) {
    yield* turn(bytes(all.filter(({ table }) => table === spec.name)))
    yield* putRows(filling, spec)
  }
  const order = yield* runsInOrder(connection)
  for (const [done, run] of order.entries()) {
    yield* tell({ _tag: "Building", done, runs: order.length })
    yield* turn(bytes(manifest.runs[run.run_id]?.files ?? []))
    yield* step(filling, run, options.lost.get(run.run_id))
  }
  yield* finish(filling)
  return addUpMisfits(filling.unfit)
}, inDatabase)

/** What `main` has beside our own views: the models of jobs. */
export const modelsIn = Effect.fnUntraced(function* (
  connection: Connection,
  families: ReadonlyArray<RecordFamily>,
) {
  const own = namesInMain(families)
  const found = yield* connection.rows(`SELECT view_name AS name, 'view' AS kind, comment
    FROM duckdb_views() WHERE NOT internal AND schema_name = 'main'
    UNION ALL SELECT table_name, 'table', comment FROM duckdb_tables() WHERE schema_name = 'main'
    ORDER BY name`)
  return found.flatMap(({ name, kind, comment }) =>
    own.has(String(name))
      ? []
      : [{ name: String(name), kind: kind === "view" ? ("view" as const) : ("table" as const), comment }],
  )
})

/** More runs than this are not taken back and added again: all are, in a database that is built anew. */
const takenBackMax = 20

/** What decides, beside the records themselves, what a run answers and what is asked for. */
const decidingSql = (runs: ReadonlyArray<string>): string =>
  `SELECT run_id, customer_id, engine_reference, session_id, feature, outcome = 'succeeded' AS fine,
      NULL::VARCHAR[] AS features
    FROM ops.coverage${ofRuns(runs)}
  UNION ALL SELECT run_id, customer_id, engine_reference, NULL, NULL, NULL, features
    FROM ops.tasks${ofRuns(runs)}`

/** Whether that differs from what it was, in the table `before`. */
const decideOtherwise = Effect.fnUntraced(function* (connection: Connection, runs: ReadonlyArray<string>) {
  const [row] = yield* connection.rows(`SELECT
    (SELECT count(*) FROM (FROM (${decidingSql(runs)}) EXCEPT ALL FROM before))::INTEGER
    + (SELECT count(*) FROM (FROM before EXCEPT ALL FROM (${decidingSql(runs)})))::INTEGER AS n`)
  return Number(row?.["n"]) > 0
})

/**
 * Replaces the rows of some runs, which may be new, in some tables of a copy of the published database; those
 * that began after the first of them are taken back and added again. Undefined if it has to be built anew.
 */
export const amendDatabase = Effect.fn("Publishing.amendDatabase")(function* (
  store: Made,
  manifest: Manifest,
  runs: ReadonlyArray<string>,
  tables: ReadonlyArray<TableSpec>,
) {
  const { families, layout } = store
  const changed = runs.flatMap((run_id) => manifest.runs[run_id]?.files ?? [])
  const bytes = changed.reduce((sum, file) => sum + file.bytes, 0)
  const connection = yield* openDatabase(layout.build, "read-write", memoryLimits[0], bytes)
  const kept = keptTables(families)
  const names = new Set(tables.map(({ name }) => name))
  const filling: Filling = { connection, store, manifest, unfit: [] }
  let since = Infinity
  yield* connection.run("BEGIN")
  // For those that there are now to be made.
  for (const { name, kind } of yield* modelsIn(connection, families))
    yield* connection.run(`DROP ${kind} ${identifier(name)}`)
  const hasRecords = kept.some(({ name }) => names.has(name))
  if (!hasRecords) yield* connection.run(`CREATE TEMP TABLE before AS ${decidingSql(runs)}`)
  const known = yield* connection.rows(`FROM ops.runs${ofRuns(runs)}`)
  for (const spec of operatorTables())
    if (names.has(spec.name)) yield* putRows(filling, spec, runs, known.length > 0)
  if (hasRecords || (yield* decideOtherwise(connection, runs))) {
    const order = yield* runsInOrder(connection)
    const first = order.findIndex(({ run_id }) => runs.includes(run_id))
    const again = order.slice(first)
    if (again.length > takenBackMax) return undefined
    since = again[0]?.sequence ?? since
    const ids = again.map(({ run_id }) => run_id)
    const standing = yield* connection.rows(
      "SELECT run_id, seq::INTEGER AS seq FROM store._runs ORDER BY seq DESC",
    )
    const takenBack = standing.filter(({ run_id }) => ids.includes(String(run_id)))
    // Another order than the database was built in.
    if (takenBack.some((one, at) => one !== standing[at])) return undefined
    for (const { seq } of takenBack) yield* unstepNewest(connection, kept, Number(seq))
    // The records that documents name are found again.
    yield* putRows(filling, documentsTable, ids)
    for (const run of again) {
      const isOwn = runs.includes(run.run_id)
      yield* step(isOwn ? filling : { ...filling, unfit: [] }, run)
    }
  } else yield* connection.run(gatherOutcomes(runs))
  yield* finish(filling, runs)
  return { unfit: addUpMisfits(filling.unfit), since }
}, inDatabase)

export const renumberDatabase = Effect.fnUntraced(function* (path: string, version: number) {
  const connection = yield* openDatabase(path, "read-write")
  yield* connection.run(versionMacro(version))
}, inDatabase)

/** The version recorded in a database; undefined if it says none. */
export const versionIn = (connection: Connection): Effect.Effect<number | undefined> =>
  connection.rows("SELECT published_version() AS version").pipe(
    Effect.map(([row]) => Number(row?.["version"])),
    Effect.orElseSucceed(() => undefined),
  )

/** Reads every row of every table, which fails where a block is damaged. */
export const readAll = Effect.fnUntraced(function* (connection: Connection) {
  const tables = yield* connection.rows(
    "SELECT schema_name AS folder, table_name AS name FROM duckdb_tables()",
  )
  const reads = tables.map(
    ({ folder, name }) =>
      `SELECT hash(t) AS h FROM ${identifier(String(folder))}.${identifier(String(name))} AS t`,
  )
  if (reads.length > 0) yield* connection.rows(`SELECT bit_xor(h) FROM (${reads.join(" UNION ALL ")})`)
})

/** The same of a file; undefined if there is no readable one, or, `thoroughly`, if a row cannot be read. */
export const databaseVersion = (path: string, thoroughly = false) =>
  openDatabase(path, "read-only").pipe(
    Effect.tap((connection) => (thoroughly ? readAll(connection) : Effect.void)),
    Effect.flatMap(versionIn),
    Effect.scoped,
    Effect.orElseSucceed(() => undefined),
  )
