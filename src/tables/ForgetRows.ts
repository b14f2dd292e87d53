/**
 * Removes a customer's rows from the current version and every kept one. Files with such rows are written
 * again without them, under new names, where kept versions have their files; then each kept version names the
 * new ones, then the current one, which deletes the old files. Each version is whole at any moment, and a
 * repeated call finishes what is left.
 */
import { dirname, join } from "node:path"
import { existsSync } from "node:fs"
import { Effect } from "effect"
import { RunId } from "../service/Ids.ts"
import type { Connection } from "../base/DuckDb.ts"
import { literal, identifier } from "../base/DuckDbFailed.ts"
import { Ledger } from "../ledger/Ledger.ts"
import type { Forgotten } from "../ledger/ForgetCustomer.ts"
import { parquetBytes } from "../records/Flush.ts"
import { inMemory } from "./BuildDatabase.ts"
import { forgottenInTables } from "./Disguise.ts"
import { fileMetadata, parquetRows } from "./FileColumns.ts"
import { removeAllAside } from "./HeldRuns.ts"
import { keptPath, keptVersions, newestDerived } from "./KeptVersions.ts"
import { fileStep, filesOf, fingerprintAt, gapsOf, makeFoldersOf, placeIn } from "./Manifest.ts"
import { publishedIn, runPath, temporary } from "./Manifest.ts"
import type { Manifest, ManifestFile, Store } from "./Manifest.ts"
import { partsIn, Instead, writeShared, type Places, type RunPart } from "./SharedFile.ts"
import { inDatabase, ledgerFailed, PublishFailed } from "./Publisher.ts"
import { checkAgreement } from "./OpenStore.ts"
import { ledgerRows } from "./RunRows.ts"
import { RunTables } from "./RunTables.ts"
import { runsTable } from "./SystemTables.ts"
import { change, type Standing } from "./Version.ts"

// Which rows of published Parquet files are about a customer. A file of an older version may lack a column,
// so each table is asked by the columns that its files have.

/** A condition over these columns; undefined if none of them names a customer, directly or by an id. */
export const aboutCustomer = (
  columns: ReadonlySet<string>,
  { customer_id, tasks, executions }: Forgotten,
): string | undefined => {
  const within = (column: string, values: Iterable<string>): ReadonlyArray<string> => {
    const list = [...values].map(literal)
    return columns.has(column) && list.length > 0 ? [`${identifier(column)} IN (${list.join(", ")})`] : []
  }
  const direct = [...within("task_id", tasks), ...within("customer_id", [customer_id])]
  // An id of the service may be given again later, to somebody else: it decides only where nothing else does.
  const parts = direct.length > 0 ? direct : within("execution_id", executions)
  return parts.length === 0 ? undefined : `coalesce(${parts.join(" OR ")}, false)`
}

/** By path and run: how many rows of the file are about the customer; files without one are left out. */
export const rowsOfCustomer = Effect.fnUntraced(function* (
  store: Store,
  connection: Connection,
  files: ReadonlyArray<ManifestFile>,
  forgotten: Forgotten,
) {
  const found = new Map<string, Map<string, number>>()
  for (const [, ofTable] of Map.groupBy(files, ({ table }) => table)) {
    const places = new Map(
      ofTable.map((file) => [join(store.layout.root, placeIn(store)(file)), file.path] as const),
    )
    const paths = [...places.keys()].filter((path) => existsSync(path))
    if (paths.length === 0) continue
    const columns = yield* connection.columnTypes(`SELECT * FROM ${parquetRows(paths)}`)
    const condition = aboutCustomer(new Set(columns.map(({ name }) => name)), forgotten)
    if (condition === undefined) continue
    const rows = yield* connection.rows(
      `SELECT place, run_id, count(*)::INTEGER AS n FROM ${parquetRows(paths, ", filename = 'place'")}
        WHERE ${condition} GROUP BY place, run_id`,
    )
    for (const { place, run_id, n } of rows) {
      const path = places.get(String(place)) ?? ""
      found.set(path, (found.get(path) ?? new Map<string, number>()).set(String(run_id), Number(n)))
    }
  }
  return found as ReadonlyMap<string, ReadonlyMap<string, number>>
})

/** Rows of the current tables that are about the customer, of the runs that are meant. */
export const countRowsOfCustomer = Effect.fn("Publishing.countRowsOfCustomer")(function* (
  store: Store,
  forgotten: Forgotten,
  isMeant: (run_id: string) => boolean = () => true,
) {
  const manifest = yield* publishedIn(store)
  const files = filesOf(newestDerived(store, manifest))
  const sought = yield* forgottenInTables(store, forgotten)
  const found = yield* rowsOfCustomer(store, yield* inMemory, files, sought)
  return [...found.values()]
    .flatMap((byRun) => [...byRun])
    .reduce((sum, [run_id, rows]) => sum + (isMeant(run_id) ? rows : 0), 0)
}, inDatabase)

/** Files of the current version that cannot be read, so that nobody knows whose rows they hold. */
export const unreadableFiles = Effect.fnUntraced(function* (store: Store) {
  const current = yield* publishedIn(store)
  const files = [...filesOf(current), ...filesOf(newestDerived(store, current))]
  return (yield* gapsOf(store, files)).map(({ path }) => path)
})

/** The version that is current afterwards. */
export const forgetRows = Effect.fn("Publishing.forgetRows")(function* (store: Store, forgotten: Forgotten) {
  const put = Effect.fnUntraced(function* ({ current, version }: Standing) {
    yield* checkAgreement(store, current)
    // It is a copy of an earlier state; a rollback builds it from files.
    yield* fileStep(() => store.files.remove(store.layout.previousDatabase))
    yield* removeAllAside(store)
    yield* dropIncomplete(store)
    const kept = yield* fileStep(() => keptVersions(store))
    const sought = yield* forgottenInTables(store, forgotten)
    const instead = yield* writeAgain(store, sought, { current, version }, kept)
    const every = (manifest: Manifest) => instead.in(manifest)
    if ([current, ...kept].every((one) => instead.runsIn(one).length === 0))
      return { told: current.version, every }
    // Also if only kept versions had rows: their new files have its number, which no other may have then.
    return { told: version, every, next: every(current), isInstead: true, isAnew: true }
  })
  return (yield* change(store, put)).told
})

/** A kept version with a missing or damaged file cannot be put back, and nobody can say whose rows it has. */
const dropIncomplete = Effect.fnUntraced(function* (store: Store) {
  for (const manifest of yield* fileStep(() => keptVersions(store))) {
    if ((yield* gapsOf(store, filesOf(manifest))).length > 0)
      yield* fileStep(() => store.files.remove(keptPath(store.layout, manifest.version)))
  }
})

const writeAgain = Effect.fnUntraced(function* (
  store: Store,
  forgotten: Forgotten,
  { current, version }: Pick<Standing, "current" | "version">,
  kept: ReadonlyArray<Manifest>,
) {
  const manifests = [current, ...kept]
  const all = partsIn(manifests)
  const instead = new Instead()
  const folder = store.layout.previous
  const to = { version, taken: new Set(all.keys()), folder }
  yield* fileStep(() => {
    for (const one of [dirname(folder), folder, join(folder, "tables")])
      store.files.makeFolder(one, store.modes.folder)
  })
  const runTables = filesOf(newestDerived(store, current)).filter(({ table }) => table === runsTable.name)
  const runPaths = new Set(runTables.map(({ path }) => path))
  const connection = yield* inMemory
  const files = [...all.values()].map(({ file }) => file)
  const theirs = yield* rowsOfCustomer(store, connection, files, forgotten)
  const runs = new Set([...theirs.values()].flatMap((byRun) => [...byRun.keys()]))
  const isRun = (run_id: string, { path }: ManifestFile) => runPaths.has(path) && runs.has(run_id)
  const isTheirs = (run_id: string, { path }: ManifestFile) => theirs.get(path)?.has(run_id) === true
  // All files of a table of a run: they keep one version's number.
  const due = new Set<string>()
  for (const [run_id, { files: own }] of manifests.flatMap((one) => Object.entries(one.runs)))
    for (const ofTable of Map.groupBy(own, ({ table }) => table).values())
      if (ofTable.some((file) => isTheirs(run_id, file) || isRun(run_id, file)))
        for (const { path } of ofTable) due.add(path)
  const without = (columns: ReadonlySet<string>) => aboutCustomer(columns, forgotten)
  for (const [path, one] of all) {
    if (!due.has(path)) continue
    const { file, parts } = one
    const left = parts
      .filter(({ run_id }) => !isRun(run_id, file))
      .map((part) => ({ ...part, rows: part.rows - (theirs.get(path)?.get(part.run_id) ?? 0) }))
    for (const { run_id } of left) instead.set(run_id, path, undefined)
    const staying = { ...one, without, parts: left.filter(({ rows }) => rows > 0) }
    if (staying.parts.length > 0) {
      const written = yield* writeShared(store, connection, staying, to, instead)
      yield* settle(store, join(folder, written.path))
    }
    for (const part of parts.filter(({ run_id }) => isRun(run_id, file)))
      instead.set(part.run_id, path, yield* writeRun(store, part, to))
  }
  return instead
}, inDatabase)

/** A file that was written under a temporary name is in its place. */
const settle = ({ files }: Store, place: string) =>
  fileStep(() => {
    files.rename(temporary(place), place)
    files.syncFolder(dirname(place))
  })

/** The row of the run itself counts its tasks: it is derived again, from the ledger alone. */
const writeRun = Effect.fnUntraced(function* (
  store: Store,
  part: RunPart,
  { version, taken, folder }: Places,
) {
  const run_id = RunId.make(part.run_id)
  const table = runsTable.name
  const path = runPath({ table, ...part }, version, taken)
  const place = join(folder, path)
  const ledger = yield* Ledger
  const state = yield* Effect.mapError(ledger.state(run_id), ledgerFailed)
  if (state === undefined) return yield* new PublishFailed({ message: `the ledger has no run ${run_id}` })
  const tables = new RunTables([], [runsTable], state.started.run_date)
  tables.add(ledgerRows(state))
  yield* fileStep(() => {
    makeFoldersOf(store, place)
    for (const { spec, table: rows } of tables.flush()) {
      const bytes = parquetBytes(spec, rows, fileMetadata(store, { run_id, version }))
      store.files.write(temporary(place), bytes, store.modes.file)
    }
  })
  yield* settle(store, place)
  return { table, path, rows: part.rows, ...(yield* fingerprintAt(place)) }
})
