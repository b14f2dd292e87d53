/**
 * Removes a customer's rows from the tables: from the current version and every kept one. Files with such
 * rows are written again without them, under new names, and stand first where kept versions have their files;
 * then each kept version names the new ones; then the current version is replaced by one that names them
 * too, which deletes the old files. A run that shared a file gets its own again. Each version is whole at
 * any moment, and a repeated call finishes what is left. What a gate holds back is derived again.
 */
import { dirname, join } from "node:path"
import { existsSync } from "node:fs"
import { Effect } from "effect"
import { RunId } from "../service/Ids.ts"
import type { Connection } from "../base/DuckDb.ts"
import { literal, identifier } from "../base/DuckDbFailed.ts"
import { Ledger } from "../ledger/Ledger.ts"
import type { Forgotten } from "../ledger/ForgetCustomer.ts"
import { parquetBytes } from "../records/Parquet.ts"
import { inMemory } from "./BuildDatabase.ts"
import { forgottenInTables } from "./Disguise.ts"
import { fileMetadata, parquetRows, writeParquet } from "./FileColumns.ts"
import { removeAllAside } from "./HeldRuns.ts"
import { keptVersions, newestDerived } from "./KeptVersions.ts"
import {
  fileStep,
  filesOf,
  fingerprintInTurns,
  gapsOf,
  nothingPublished,
  placeIn,
  placesOf,
  readManifest,
  runPath,
  makeFoldersOf,
  temporary,
} from "./Manifest.ts"
import type { Manifest, ManifestFile, Store } from "./Manifest.ts"
import { partsOf, Instead, writeParts } from "./SharedFile.ts"
import { inDatabase, ledgerFailed, PublishFailed } from "./Publisher.ts"
import { checkAgreement } from "./OpenStore.ts"
import { ledgerRows } from "./RunRows.ts"
import { RunTables } from "./RunTables.ts"
import { runsTable } from "./SystemTables.ts"
import { change, type Standing } from "./Version.ts"

// Which rows of published Parquet files are about a customer: those of the customer's tasks, and those that
// name the customer. A file of an older version may lack a column, so each table is asked by the columns that
// its files have.

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
  const manifest = yield* fileStep(() => readManifest(store.layout.manifest) ?? nothingPublished)
  const files = filesOf(newestDerived(store, manifest))
  const sought = yield* forgottenInTables(store, forgotten)
  const found = yield* rowsOfCustomer(store, yield* inMemory, files, sought)
  return [...found.values()]
    .flatMap((byRun) => [...byRun])
    .reduce((sum, [run_id, rows]) => sum + (isMeant(run_id) ? rows : 0), 0)
}, inDatabase)

/** Files of the current version that cannot be read, so that nobody knows whose rows they hold. */
export const unreadableFiles = Effect.fnUntraced(function* (store: Store) {
  const current = yield* fileStep(() => readManifest(store.layout.manifest) ?? nothingPublished)
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
    const instead = yield* writeAgain(store, sought, { current, kept, version })
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
      yield* fileStep(() => store.files.remove(join(store.layout.previous, `${manifest.version}.json`)))
  }
})

interface Versions {
  readonly current: Manifest
  readonly kept: ReadonlyArray<Manifest>
  readonly version: number
}

/** The files of one table of one run in one version; versions that share them share the group. */
interface Group {
  readonly table: string
  readonly run_id: string
  readonly run_date: string
  readonly files: ReadonlyArray<ManifestFile>
}

const groupsOf = (manifests: ReadonlyArray<Manifest>): ReadonlyArray<Group> => {
  const groups = new Map<string, Group>()
  for (const { runs } of manifests)
    for (const [run_id, { run_date, files: all }] of Object.entries(runs))
      for (const [table, files] of Map.groupBy(all, (file) => file.table))
        groups.set([run_id, ...files.map(({ path }) => path)].join(), { table, run_id, run_date, files })
  return [...groups.values()]
}

const writeAgain = Effect.fnUntraced(function* (store: Store, forgotten: Forgotten, versions: Versions) {
  const { current, kept, version } = versions
  const manifests = [current, ...kept]
  const files = [...new Map(manifests.flatMap(filesOf).map((file) => [file.path, file])).values()]
  const instead = new Instead()
  const taken = new Set(files.map(({ path }) => path))
  const groups = groupsOf(manifests)
  const { previous } = store.layout
  yield* fileStep(() => {
    for (const folder of [previous, join(previous, "tables")])
      store.files.makeFolder(folder, store.modes.folder)
  })
  const ownRuns = new Set(
    filesOf(newestDerived(store, current))
      .filter(({ table }) => table === runsTable.name)
      .map(({ path }) => path),
  )
  const connection = yield* inMemory
  const theirs = yield* rowsOfCustomer(store, connection, files, forgotten)
  const isTheirs = ({ run_id, files: own }: Group) =>
    own.some(({ path }) => theirs.get(path)?.has(run_id) === true)
  const runs = new Set(groups.filter(isTheirs).map(({ run_id }) => run_id))
  for (const group of groups) {
    const isRun = group.files.some(({ path }) => ownRuns.has(path)) && runs.has(group.run_id)
    if (!isRun && !isTheirs(group)) continue
    for (const file of group.files) {
      const rows = file.rows - (theirs.get(file.path)?.get(group.run_id) ?? 0)
      if (rows === 0) {
        instead.set(group.run_id, file.path, undefined)
        continue
      }
      const path = runPath(group, version, taken)
      const to = { run_id: RunId.make(group.run_id), version, place: placed(store, path), rows }
      if (isRun) yield* writeRun(store, to)
      else yield* writeFile(store, connection, file, to, forgotten)
      yield* settle(store, to.place)
      const { table } = group
      const entry = { table, path, rows, ...(yield* fingerprintInTurns(to.place)) }
      instead.set(group.run_id, file.path, entry)
    }
  }
  yield* writeOthersAgain(store, connection, manifests, instead, { version, taken })
  return instead
}, inDatabase)

/** What other runs have in a file of which a run's rows were written again. */
const writeOthersAgain = Effect.fnUntraced(function* (
  store: Store,
  connection: Connection,
  manifests: ReadonlyArray<Manifest>,
  instead: Instead,
  to: { readonly version: number; readonly taken: Set<string> },
) {
  const folder = store.layout.previous
  const done = new Set<string>()
  for (const manifest of manifests)
    for (const file of filesOf(manifest)) {
      if (file.file_rows === undefined || done.has(file.path)) continue
      done.add(file.path)
      const all = partsOf(manifest, file.path)
      const parts = all.filter(({ run_id }) => !instead.has(run_id, file.path))
      if (parts.length === all.length || parts.length === 0) continue
      const path = yield* writeParts(store, connection, { file, parts }, { ...to, folder }, instead)
      yield* settle(store, placed(store, path))
    }
})

interface Target {
  readonly run_id: RunId
  readonly version: number
  readonly place: string
  readonly rows: number
}

/** Where new files stand until a version names them; the commit moves those of the current one. */
const placed = ({ layout }: Store, path: string): string => join(layout.previous, path)

/** A file that was written under a temporary name is in its place. */
const settle = ({ files }: Store, place: string) =>
  fileStep(() => {
    files.rename(temporary(place), place)
    files.syncFolder(dirname(place))
  })

const writeFile = Effect.fnUntraced(function* (
  store: Store,
  connection: Connection,
  file: ManifestFile,
  { run_id, version, place, rows }: Target,
  forgotten: Forgotten,
) {
  const source = parquetRows(placesOf(store, [file]))
  const columns = yield* connection.columnTypes(`SELECT * FROM ${source}`)
  const condition = aboutCustomer(new Set(columns.map(({ name }) => name)), forgotten) ?? "false"
  const sql = `SELECT * FROM ${source} WHERE run_id = ${literal(run_id)} AND NOT ${condition}`
  const written = yield* writeParquet(store, connection, temporary(place), { sql, run_id, version })
  if (written !== rows)
    return yield* new PublishFailed({
      message: `${file.path}: ${written} rows would stay where ${rows} are not the customer's`,
    })
})

/** The row of the run itself counts its tasks: it is derived again, from the ledger alone. */
const writeRun = Effect.fnUntraced(function* (store: Store, to: Target) {
  const ledger = yield* Ledger
  const state = yield* Effect.mapError(ledger.state(to.run_id), ledgerFailed)
  if (state === undefined) return yield* new PublishFailed({ message: `the ledger has no run ${to.run_id}` })
  const tables = new RunTables([], [runsTable], state.started.run_date)
  tables.add(ledgerRows(state))
  yield* fileStep(() => {
    makeFoldersOf(store, to.place)
    for (const { spec, table } of tables.flush())
      store.files.write(
        temporary(to.place),
        parquetBytes(spec, table, fileMetadata(store, to)),
        store.modes.file,
      )
  })
})
