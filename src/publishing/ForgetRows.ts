/**
 * Removes a customer's rows from the tables: from the current version and every kept one. Files with such
 * rows are written again without them, under new names, and stand first where kept versions have their files;
 * then each kept version names the new ones; then the current version is replaced by one that names them
 * too, which deletes the old files. Each version is whole at any moment, and a repeated call finishes what
 * is left. What it replaces is not kept, nor is a version that a gate holds back: it is derived again.
 */
import { readFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { Effect } from "effect"
import { sha256Hex } from "../foundation/Sha256.ts"
import { RunId } from "../contract/Ids.ts"
import { DuckDb } from "../duckdb/DuckDb.ts"
import type { Connection } from "../duckdb/DuckDb.ts"
import { literal } from "../duckdb/SqlText.ts"
import { Ledger } from "../ledger/Ledger.ts"
import type { Forgotten } from "../ledger/WithoutCustomer.ts"
import { parquetBytes } from "../records/Parquet.ts"
import { memoryLimits } from "./BuildDatabase.ts"
import { commit, discarding, recover } from "./Commit.ts"
import { withDatabase } from "./ContinueDatabase.ts"
import { forgottenInTables } from "./Disguise.ts"
import { removeAllAside } from "./HeldRuns.ts"
import { keptVersions, newestDerived, placeIn, replaceKept, sweepKept } from "./KeptVersions.ts"
import { filesOf, nothingPublished, readManifest } from "./Manifest.ts"
import type { Manifest, ManifestFile } from "./Manifest.ts"
import { fileStep } from "./OutputFiles.ts"
import { databaseFailed, ledgerFailed, PublishFailed } from "./Publisher.ts"
import { checkAgreement } from "./PseudonymsOfJob.ts"
import { aboutCustomer, rowsOfCustomer, sourceOf } from "./RowsOfCustomer.ts"
import { ledgerRows } from "./RunRows.ts"
import { RunTables } from "./RunTables.ts"
import { fileMetadata } from "./StageRun.ts"
import { buildStanding, gapsIn } from "./Standing.ts"
import { temporary } from "./Store.ts"
import type { Store } from "./Store.ts"
import { runsTable } from "./SystemTables.ts"

/** By path of a file: what takes its place; undefined if no row is left in it. */
type Replaced = ReadonlyMap<string, ManifestFile | undefined>

const inMemory = <A, E, R>(work: (connection: Connection) => Effect.Effect<A, E, R>) =>
  Effect.scoped(
    Effect.gen(function* () {
      const duckdb = yield* DuckDb
      const memoryLimit = memoryLimits[1]
      return yield* work(
        yield* duckdb.open({ path: ":memory:", access: "read-write", threads: 1, memoryLimit }),
      )
    }),
  )

/** Rows of the current tables that are about the customer. */
export const countRowsOfCustomer = Effect.fn("Publishing.countRowsOfCustomer")(
  function* (store: Store, forgotten: Forgotten) {
    const manifest = yield* fileStep(() => readManifest(store.layout.manifest) ?? nothingPublished)
    const files = filesOf(newestDerived(store, manifest))
    const sought = yield* forgottenInTables(store, forgotten)
    const found = yield* inMemory((connection) => rowsOfCustomer(store, connection, files, sought))
    return [...found.values()].reduce((sum, rows) => sum + rows, 0)
  },
  Effect.catchTag("DuckDbFailed", (failure) => Effect.fail(databaseFailed(failure))),
)

/** Files of the current version that cannot be read, so that nobody knows whose rows they hold. */
export const unreadableFiles = Effect.fnUntraced(function* (store: Store) {
  const current = yield* fileStep(() => readManifest(store.layout.manifest) ?? nothingPublished)
  const files = [...filesOf(current), ...filesOf(newestDerived(store, current))]
  return yield* fileStep(() => gapsIn(store, files, true, placeIn(store)).map(({ path }) => path))
})

/** The version that is current afterwards. */
export const forgetRows = Effect.fn("Publishing.forgetRows")(function* (
  store: Store,
  toolVersion: string,
  forgotten: Forgotten,
) {
  const current = yield* recover(store)
  yield* checkAgreement(store, current)
  // It is a copy of an earlier state; a rollback builds it from files.
  yield* fileStep(() => store.files.remove(store.layout.previousDatabase))
  yield* removeAllAside(store)
  yield* dropIncomplete(store)
  const kept = yield* fileStep(() => keptVersions(store))
  const version = current.version + 1
  const sought = yield* forgottenInTables(store, forgotten)
  const { replaced, isCurrent } = yield* writeAgain(store, toolVersion, sought, { current, kept, version })
  for (const manifest of kept) yield* replaceKept(store, withReplaced(manifest, replaced))
  if (isCurrent) {
    const next: Manifest = { ...withReplaced(current, replaced), version, amends: true }
    const built = yield* discarding(store, current)(buildStanding(store, next, new Set()))
    yield* commit(store, yield* withDatabase(store, next, built))
  }
  yield* sweepKept(store)
  return isCurrent ? version : current.version
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

interface Group {
  readonly run_id: string
  readonly run_date: string
  readonly files: ReadonlyArray<ManifestFile>
}

/** The files of one table of one run in one version; versions that share them share the group. */
const groupsOf = (manifests: ReadonlyArray<Manifest>): ReadonlyArray<Group> => {
  const groups = new Map<string, Group>()
  for (const { runs } of manifests)
    for (const [run_id, { run_date, files }] of Object.entries(runs))
      for (const [, ofTable] of Map.groupBy(files, ({ table }) => table))
        groups.set(ofTable.map(({ path }) => path).join(), { run_id, run_date, files: ofTable })
  return [...groups.values()]
}

const writeAgain = Effect.fnUntraced(
  function* (store: Store, toolVersion: string, forgotten: Forgotten, versions: Versions) {
    const { current, kept, version } = versions
    const manifests = [current, ...kept]
    const files = [...new Map(manifests.flatMap(filesOf).map((file) => [file.path, file])).values()]
    const replaced = new Map<string, ManifestFile | undefined>()
    const taken = new Set(files.map(({ path }) => path))
    const groups = groupsOf(manifests)
    const ownRuns = new Set(
      filesOf(newestDerived(store, current))
        .filter(({ table }) => table === runsTable.name)
        .map(({ path }) => path),
    )
    yield* inMemory((connection) =>
      Effect.gen(function* () {
        const theirs = yield* rowsOfCustomer(store, connection, files, forgotten)
        const isTheirs = ({ files: own }: Group) => own.some(({ path }) => theirs.has(path))
        const runs = new Set(groups.filter(isTheirs).map(({ run_id }) => run_id))
        for (const group of groups) {
          const isRun = group.files.some(({ path }) => ownRuns.has(path)) && runs.has(group.run_id)
          if (!isRun && !isTheirs(group)) continue
          for (const file of group.files) {
            const rows = file.rows - (theirs.get(file.path) ?? 0)
            if (rows === 0) {
              replaced.set(file.path, undefined)
              continue
            }
            const path = freePath(group, file.table, version, taken)
            const to = { run_id: RunId.make(group.run_id), version, path, rows }
            if (isRun) yield* writeRun(store, to, toolVersion)
            else yield* writeFile(store, connection, file, to, { toolVersion, forgotten })
            replaced.set(file.path, yield* entryOf(store, file.table, to))
          }
        }
      }),
    )
    const isCurrent = filesOf(current).some(({ path }) => replaced.has(path))
    return { replaced: replaced as Replaced, isCurrent }
  },
  Effect.catchTag("DuckDbFailed", (failure) => Effect.fail(databaseFailed(failure))),
)

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
  { toolVersion, forgotten }: { readonly toolVersion: string; readonly forgotten: Forgotten },
) {
  const place = placed(store, to)
  yield* fileStep(() => makeFolders(store, place))
  const source = sourceOf([join(store.layout.root, placeIn(store)(file))])
  const columns = yield* connection.columnTypes(`SELECT * FROM ${source}`)
  const condition = aboutCustomer(new Set(columns.map(({ name }) => name)), forgotten) ?? "false"
  const metadata = fileMetadata(store, { ...to, toolVersion })
  const pairs = Object.entries(metadata).map(([name, value]) => `${name}: ${literal(value)}`)
  const written = yield* connection.run(
    `COPY (SELECT * FROM ${source} WHERE NOT ${condition}) TO ${literal(temporary(place))}
      (FORMAT parquet, COMPRESSION zstd, KV_METADATA {${pairs.join(", ")}})`,
  )
  if (written !== to.rows)
    return yield* new PublishFailed({
      message: `${file.path}: ${written} rows would stay where ${to.rows} are not the customer's`,
    })
  yield* Effect.mapError(
    store.files.settle(temporary(place), store.modes.file),
    ({ message }) => new PublishFailed({ message }),
  )
  yield* fileStep(() => {
    store.files.rename(temporary(place), place)
    store.files.syncFolder(dirname(place))
  })
})

/** The row of the run itself counts its tasks: it is derived again, from the ledger alone. */
const writeRun = Effect.fnUntraced(function* (store: Store, to: Target, toolVersion: string) {
  const ledger = yield* Ledger
  const state = yield* Effect.mapError(ledger.state(to.run_id), ledgerFailed)
  if (state === undefined) return yield* new PublishFailed({ message: `the ledger has no run ${to.run_id}` })
  const tables = new RunTables([], [runsTable], state.started.run_date)
  tables.add(ledgerRows(state))
  const place = placed(store, to)
  const metadata = fileMetadata(store, { ...to, toolVersion })
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

const withReplaced = (manifest: Manifest, replaced: Replaced): Manifest => ({
  ...manifest,
  runs: Object.fromEntries(
    Object.entries(manifest.runs).map(([run_id, run]) => [
      run_id,
      {
        ...run,
        files: run.files.flatMap((file) => {
          const instead = replaced.has(file.path) ? replaced.get(file.path) : file
          return instead === undefined ? [] : [instead]
        }),
      },
    ]),
  ),
})
