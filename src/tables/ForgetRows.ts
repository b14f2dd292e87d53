/**
 * Removes a customer's rows from the tables: from the current version and every kept one. Files with such
 * rows are written again without them, under new names, and stand first where kept versions have their files;
 * then each kept version names the new ones; then the current version is replaced by one that names them
 * too, which deletes the old files. A run that shared a file gets its own again. Each version is whole at
 * any moment, and a repeated call finishes what is left. What a gate holds back is derived again.
 */
import { readFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { Effect } from "effect"
import { sha256Hex } from "../base/Hashes.ts"
import { RunId } from "../service/Ids.ts"
import type { Connection } from "../base/DuckDb.ts"
import { literal } from "../base/DuckDbFailed.ts"
import { Ledger } from "../ledger/Ledger.ts"
import type { Forgotten } from "../ledger/ForgetCustomer.ts"
import { parquetBytes } from "../records/Parquet.ts"
import { forgottenInTables } from "./Disguise.ts"
import { fileMetadata, parquetRows, writeParquet } from "./FileColumns.ts"
import { removeAllAside } from "./HeldRuns.ts"
import { keptVersions, newestDerived, placeIn } from "./KeptVersions.ts"
import { fileStep, filesOf, nothingPublished, readManifest } from "./Manifest.ts"
import type { Manifest, ManifestFile } from "./Manifest.ts"
import { monthOf, monthPath } from "./MonthFiles.ts"
import { databaseFailed, ledgerFailed, PublishFailed } from "./Publisher.ts"
import { checkAgreement } from "./PseudonymsOfJob.ts"
import { aboutCustomer, rowsOfCustomer } from "./RowsOfCustomer.ts"
import { ledgerRows } from "./RunRows.ts"
import { RunTables } from "./RunTables.ts"
import { inMemory, writeShared } from "./SharedFile.ts"
import { groupsOf, Replaced, withReplaced } from "./ReplacedRows.ts"
import type { Group } from "./ReplacedRows.ts"
import { gapsIn } from "./Standing.ts"
import { temporary } from "./Store.ts"
import type { Store } from "./Store.ts"
import { partsOf } from "./TakeOut.ts"
import { runsTable } from "./SystemTables.ts"
import { change } from "./Version.ts"
import type { Standing } from "./Version.ts"

/** Rows of the current tables that are about the customer. */
export const countRowsOfCustomer = Effect.fn("Publishing.countRowsOfCustomer")(
  function* (store: Store, forgotten: Forgotten) {
    const manifest = yield* fileStep(() => readManifest(store.layout.manifest) ?? nothingPublished)
    const files = filesOf(newestDerived(store, manifest))
    const sought = yield* forgottenInTables(store, forgotten)
    const found = yield* rowsOfCustomer(store, yield* inMemory, files, sought)
    return [...found.values()].flatMap((byRun) => [...byRun.values()]).reduce((sum, rows) => sum + rows, 0)
  },
  Effect.scoped,
  Effect.catchTag("DuckDbFailed", (failure) => Effect.fail(databaseFailed(failure))),
)

/** Files of the current version that cannot be read, so that nobody knows whose rows they hold. */
export const unreadableFiles = Effect.fnUntraced(function* (store: Store) {
  const current = yield* fileStep(() => readManifest(store.layout.manifest) ?? nothingPublished)
  const files = [...filesOf(current), ...filesOf(newestDerived(store, current))]
  return yield* fileStep(() => gapsIn(store, files, true, placeIn(store)).map(({ path }) => path))
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
    const replaced = yield* writeAgain(store, sought, { current, kept, version })
    const every = (manifest: Manifest) => withReplaced(manifest, replaced)
    return replaced.hasAnyOf(current)
      ? { told: version, every, next: every(current), isInstead: true, isAnew: true }
      : { told: current.version, every }
  })
  return (yield* change(store, put)).told
})

/** A kept version with a missing or damaged file cannot be put back, and nobody can say whose rows it has. */
const dropIncomplete = Effect.fnUntraced(function* (store: Store) {
  for (const manifest of yield* fileStep(() => keptVersions(store))) {
    const gaps = yield* fileStep(() => gapsIn(store, filesOf(manifest), true, placeIn(store)))
    if (gaps.length > 0)
      yield* fileStep(() => store.files.remove(join(store.layout.previous, `${manifest.version}.json`)))
  }
})

interface Versions {
  readonly current: Manifest
  readonly kept: ReadonlyArray<Manifest>
  readonly version: number
}

const writeAgain = Effect.fnUntraced(
  function* (store: Store, forgotten: Forgotten, versions: Versions) {
    const { current, kept, version } = versions
    const manifests = [current, ...kept]
    const files = [...new Map(manifests.flatMap(filesOf).map((file) => [file.path, file])).values()]
    const replaced = new Replaced()
    const taken = new Set(files.map(({ path }) => path))
    const groups = groupsOf(manifests)
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
          replaced.set(group.run_id, file.path, undefined)
          continue
        }
        const path = freePath(group, file.table, version, taken)
        const to = { run_id: RunId.make(group.run_id), version, path, rows }
        if (isRun) yield* writeRun(store, to)
        else yield* writeFile(store, connection, file, to, forgotten)
        replaced.set(group.run_id, file.path, yield* entryOf(store, file.table, to))
      }
    }
    yield* writeOthersAgain(store, connection, manifests, replaced, { version, taken })
    return replaced
  },
  Effect.scoped,
  Effect.catchTag("DuckDbFailed", (failure) => Effect.fail(databaseFailed(failure))),
)

/** What other runs have in a file of which a run's rows were written again. */
const writeOthersAgain = Effect.fnUntraced(function* (
  store: Store,
  connection: Connection,
  manifests: ReadonlyArray<Manifest>,
  replaced: Replaced,
  { version, taken }: { readonly version: number; readonly taken: Set<string> },
) {
  const done = new Set<string>()
  for (const manifest of manifests)
    for (const file of filesOf(manifest)) {
      if (file.file_rows === undefined || done.has(file.path)) continue
      done.add(file.path)
      const all = partsOf(manifest, file.path)
      const parts = all.filter(({ run_id }) => !replaced.has(run_id, file))
      if (parts.length === all.length || parts[0] === undefined) continue
      const { table } = file
      const month = monthOf(parts[0].run_date)
      const path = monthPath({ table, month }, version, taken)
      const place = placed(store, { path })
      const building = { path, version, place: temporary(place) }
      yield* fileStep(() => makeFolders(store, place))
      const written = yield* writeShared(
        store,
        connection,
        { table, month, parts, sources: [file] },
        building,
      )
      yield* fileStep(() => {
        store.files.rename(temporary(place), place)
        store.files.syncFolder(dirname(place))
      })
      for (const [run_id, entry] of written) replaced.set(run_id, file.path, entry)
    }
})

/** All files of a table of a run have one version's number: a lost manifest can be read off them. */
const freePath = (
  { run_id, run_date }: Group,
  table: string,
  version: number,
  taken: Set<string>,
): string => {
  for (let part = 1; ; part += 1) {
    const ending = part === 1 ? "" : `-${part}`
    const path = `tables/${table}/run_date=${run_date}/${run_id}-v${version}${ending}.parquet`
    if (taken.has(path)) continue
    taken.add(path)
    return path
  }
}

interface Target {
  readonly run_id: RunId
  readonly version: number
  readonly path: string
  readonly rows: number
}

/** Where new files stand until a version names them; the commit moves those of the current one. */
const placed = ({ layout }: Store, { path }: Pick<Target, "path">): string => join(layout.previous, path)

const makeFolders = ({ files, layout, modes }: Store, place: string): void => {
  for (const folder of [layout.previous, join(layout.previous, "tables"), dirname(dirname(place))])
    files.makeFolder(folder, modes.folder)
  files.makeFolder(dirname(place), modes.folder)
}

const writeFile = Effect.fnUntraced(function* (
  store: Store,
  connection: Connection,
  file: ManifestFile,
  to: Target,
  forgotten: Forgotten,
) {
  const place = placed(store, to)
  yield* fileStep(() => makeFolders(store, place))
  const source = parquetRows([join(store.layout.root, placeIn(store)(file))])
  const columns = yield* connection.columnTypes(`SELECT * FROM ${source}`)
  const condition = aboutCustomer(new Set(columns.map(({ name }) => name)), forgotten) ?? "false"
  const sql = `SELECT * FROM ${source} WHERE run_id = ${literal(to.run_id)} AND NOT ${condition}`
  const { run_id, version } = to
  const written = yield* writeParquet(store, connection, temporary(place), { sql, run_id, version })
  if (written !== to.rows)
    return yield* new PublishFailed({
      message: `${file.path}: ${written} rows would stay where ${to.rows} are not the customer's`,
    })
  yield* fileStep(() => {
    store.files.rename(temporary(place), place)
    store.files.syncFolder(dirname(place))
  })
})

/** The row of the run itself counts its tasks: it is derived again, from the ledger alone. */
const writeRun = Effect.fnUntraced(function* (store: Store, to: Target) {
  const ledger = yield* Ledger
  const state = yield* Effect.mapError(ledger.state(to.run_id), ledgerFailed)
  if (state === undefined) return yield* new PublishFailed({ message: `the ledger has no run ${to.run_id}` })
  const tables = new RunTables([], [runsTable], state.started.run_date)
  tables.add(ledgerRows(state))
  const place = placed(store, to)
  const metadata = fileMetadata(store, to)
  yield* fileStep(() => {
    makeFolders(store, place)
    for (const { spec, table } of tables.flush())
      store.files.replace(place, parquetBytes(spec, table, metadata), store.modes.file, temporary(place))
  })
})

const entryOf = (store: Store, table: string, to: Target) =>
  fileStep((): ManifestFile => {
    const bytes = readFileSync(placed(store, to))
    return { table, path: to.path, rows: to.rows, bytes: bytes.length, sha256: sha256Hex(bytes) }
  })
