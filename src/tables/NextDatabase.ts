/**
 * The database of the next version. Usually a copy of the published one with the rows of the runs that
 * differ, so that a night costs what it holds: only if it is the file of the manifest, made by this version
 * of the program. Otherwise it is built of all intact files: later runs must be published even if a file of
 * an earlier one is lost, which is restored (`RestoreFiles.ts`) or left out.
 */
import { existsSync, statSync } from "node:fs"
import { join } from "node:path"
import { Effect, Struct } from "effect"
import { recordTables } from "../records/RecordTables.ts"
import { amendDatabase, buildDatabase, databaseVersion, isOutOfMemory } from "./BuildDatabase.ts"
import { memoryLimits, openDatabase, renumberDatabase, type MemoryLimit } from "./BuildDatabase.ts"
import { publishedTables } from "./DataDictionary.ts"
import { madeBy, makeEmptyDatabase } from "./EmptyDatabase.ts"
import { familyTables } from "./FileColumns.ts"
import { isKeptDatabaseDamaged } from "./KeptVersions.ts"
import { fileStep, filesOf, gapsOf, isThatDatabase, markOf, placeIn } from "./Manifest.ts"
import { temporary, withFiles } from "./Manifest.ts"
import type { Gap, Manifest, ManifestFile, Store } from "./Manifest.ts"
import { makeModels } from "./Models.ts"
import { inDatabase, type PublishFailed } from "./Publisher.ts"
import { restoreFiles, type Sought } from "./RestoreFiles.ts"
import type { Instead } from "./SharedFile.ts"
import { runsTable } from "./SystemTables.ts"

/** By run: the tables that cannot be told any more. A record is nothing without its lists, or its run. */
export const lostTables = (
  { runs }: Manifest,
  gaps: ReadonlyArray<Gap>,
  families: Store["families"],
): ReadonlyMap<string, ReadonlySet<string>> => {
  const paths = new Set(gaps.map(({ path }) => path))
  return new Map(
    Object.entries(runs).map(([run_id, { files }]) => {
      const missing = files.filter(({ path }) => paths.has(path))
      const tables = missing.some(({ table }) => table === runsTable.name) ? files : missing
      const related = tables.flatMap(({ table }) => familyTables(families, table))
      return [run_id, new Set([...tables.map(({ table }) => table), ...related])]
    }),
  )
}

/** The manifest of everything that can be built. */
export const withoutTables = (manifest: Manifest, lost: ReturnType<typeof lostTables>): Manifest =>
  withFiles(manifest, (run_id, files) => files.filter(({ table }) => lost.get(run_id)?.has(table) !== true))

/** The runs that lack a file. */
export const runsWithout = (manifest: Manifest, gaps: ReadonlyArray<Gap>): ReadonlyArray<string> => {
  const paths = new Set(gaps.map(({ path }) => path))
  return Object.entries(manifest.runs).flatMap(([run_id, { files }]) =>
    files.some(({ path }) => paths.has(path)) ? [run_id] : [],
  )
}

/** No build may start from what an earlier one left; up to version 0.17, an empty database was kept, too. */
export const clearBuild = ({ layout, files }: Store): void => {
  files.remove(join(layout.root, "published/empty"))
  for (const ending of ["", ".wal", ".tmp", ".rows"]) files.remove(`${layout.build}${ending}`)
}

/**
 * Builds the database from all intact files of a version, and returns what had to be left out: files, and
 * values that do not fit a type that has changed. What is lost is restored first, as far as `restore` can.
 */
export const buildStanding = Effect.fnUntraced(function* <R>(
  store: Store,
  sought: Manifest,
  restore: (lost: Sought) => Effect.Effect<Sought, PublishFailed, R>,
) {
  const buildWithin = Effect.fnUntraced(function* ({ next, gaps }: Sought, memoryLimit: MemoryLimit) {
    yield* fileStep(() => clearBuild(store))
    yield* makeEmptyDatabase(store)
    const lost = lostTables(next, gaps, store.families)
    return yield* buildDatabase(store, withoutTables(next, lost), { lost, memoryLimit })
  })
  const build = (whole: Sought) =>
    memoryLimits
      .slice(1)
      .reduce(
        (building, more) => Effect.catchIf(building, isOutOfMemory, () => buildWithin(whole, more)),
        buildWithin(whole, memoryLimits[0]),
      )
  const restoredIn = Effect.fnUntraced(function* (next: Manifest, thoroughly: boolean) {
    // Without those that have just been written there is nothing to publish.
    const earlier = filesOf(next).filter((file) => placeIn(store)(file) !== temporary(file.path))
    return yield* restore({ next, gaps: yield* gapsOf(store, earlier, thoroughly) })
  })
  const there = yield* restoredIn(sought, false)
  const built = yield* Effect.result(build(there))
  if (built._tag === "Success") return { ...there, unfit: built.success, models: yield* makeModels(store) }
  // An existing file may contain something other than what was published.
  const intact = yield* restoredIn(there.next, true)
  return { ...intact, unfit: yield* build(intact), models: yield* makeModels(store) }
})

/**
 * Rows that are added night by night take more space: a file that has grown so many times is built anew,
 * which costs all nights. Half of a small file is free, as a night writes nearly every block of it.
 */
const growthMax = 4

/** Whether the published database is the one that was put into place with this version. */
export const isUnchanged = ({ layout, ...store }: Store, { database, returned }: Manifest) =>
  fileStep(
    () =>
      returned === undefined &&
      database?.made_by === madeBy(store) &&
      isThatDatabase(layout.database, database),
  )

/** A log that could not be emptied on closing would change the file after it was read. */
const emptyLog = Effect.fnUntraced(function* (path: string) {
  if (!(yield* fileStep(() => existsSync(`${path}.wal`)))) return
  const connection = yield* openDatabase(path, "read-write")
  yield* connection.run("FORCE CHECKPOINT")
}, inDatabase)

/** A manifest that says what the finished database is; none of a database that lacks rows of its files. */
export const withDatabase = Effect.fn("Publishing.withDatabase")(function* (
  store: Store,
  manifest: Manifest,
  built: Pick<Built, "gaps" | "builtBytes">,
) {
  // What the manifest says of a database before this one is not true of it.
  const known: Manifest = Struct.omit(manifest, ["database"])
  if (built.gaps.length > 0) return known
  yield* emptyLog(store.layout.build)
  const file = yield* fileStep(() => markOf(store.layout.build))
  const built_bytes = built.builtBytes ?? file.bytes
  const database = { ...file, built_bytes, made_by: madeBy(store) }
  return { ...known, database } satisfies Manifest as Manifest
})

/** What a database was built with, and what it lacks. */
export type Built = Pick<Effect.Success<ReturnType<typeof buildStanding>>, "gaps" | "unfit" | "models"> & {
  /** The version, if it has other files in place of lost ones. */
  readonly next?: Manifest
  /** Its size when it was last built of all files; absent if it was now. */
  readonly builtBytes?: number
  /** The first run, by its number, whose records are other ones; absent if all may be. */
  readonly since?: number
}

/** The runs that the next version adds or replaces; undefined if it lacks one that the current one has. */
const changedRuns = (current: Manifest, next: Manifest): ReadonlyArray<string> | undefined =>
  Object.keys(current.runs).some((run_id) => next.runs[run_id] === undefined)
    ? undefined
    : Object.entries(next.runs)
        .filter(([run_id, { version }]) => version !== current.runs[run_id]?.version)
        .map(([run_id]) => run_id)

const pathsOf = (run: Manifest["runs"][string] | undefined, table: string): string =>
  (run?.files ?? []).flatMap((file) => (file.table === table ? [file.path] : [])).join()

/** The tables of which these runs have other files; all if one of them decides what is asked for since. */
const changedTables = (
  { families }: Store,
  current: Manifest,
  next: Manifest,
  runs: ReadonlyArray<string>,
) => {
  const tables = publishedTables(families)
  const was = (run_id: string) => current.runs[run_id]
  const isTaken = runs.some(
    (run_id) => was(run_id) === undefined || was(run_id)?.interim !== next.runs[run_id]?.interim,
  )
  if (isTaken) return tables
  return tables.filter(({ name }) =>
    runs.some((run_id) => pathsOf(was(run_id), name) !== pathsOf(next.runs[run_id], name)),
  )
}

/** A file that is missing or of another size has to be reported, and its rows left out. */
const isThere = (store: Store, file: ManifestFile): boolean =>
  statSync(join(store.layout.root, placeIn(store)(file)), { throwIfNoEntry: false })?.size === file.bytes

export interface Making {
  readonly current: Manifest
  readonly next: Manifest
}

/** The published database with the rows of the runs that differ; undefined if it has to be built anew. */
const continueDatabase = Effect.fn("Publishing.continueDatabase")(function* (
  store: Store,
  { current, next }: Making,
) {
  const { layout, files, families } = store
  const { bytes = 0, built_bytes: builtBytes = 0 } = current.database ?? {}
  const changed = changedRuns(current, next)
  if (changed === undefined || bytes > builtBytes * growthMax) return undefined
  const tables = changedTables(store, current, next, changed)
  const hasRecords = tables.some(({ name }) => recordTables(families).some((spec) => spec.name === name))
  // What other files are no longer is told with new records; the outcome of a run, or other files, need none.
  const isComplete = yield* fileStep(() => filesOf(next).every((file) => !hasRecords || isThere(store, file)))
  if (!isComplete || !(yield* isUnchanged(store, current))) return undefined
  yield* fileStep(() => files.copy(layout.database, layout.build))
  if (changed.length === 0) {
    yield* renumberDatabase(layout.build, next.version)
    return { gaps: [], unfit: [], models: [], builtBytes, since: Infinity } satisfies Built as Built
  }
  const amended = yield* amendDatabase(store, next, changed, tables)
  if (amended === undefined) return undefined
  const models = yield* makeModels(store)
  return { gaps: [], models, builtBytes, ...amended } satisfies Built as Built
})

/** The database of a version that a rollback puts back, if it is kept as it was. */
const keptAgain = Effect.fnUntraced(function* (store: Store, next: Manifest) {
  const { layout, files } = store
  if (next.returned === undefined || !(yield* fileStep(() => existsSync(layout.previousDatabase))))
    return undefined
  const isOther = (yield* databaseVersion(layout.previousDatabase)) !== next.returned.to
  if (isOther || (yield* isKeptDatabaseDamaged(store))) return undefined
  yield* fileStep(() => files.copy(layout.previousDatabase, layout.build))
  yield* renumberDatabase(layout.build, next.version)
  return { gaps: [], unfit: [], models: [] } satisfies Built as Built
})

/** The database of the next version, and what it lacks: one that is there is continued if it can be. */
export const nextDatabase = Effect.fnUntraced(function* (
  store: Store,
  making: Making & { readonly isAnew: boolean; readonly restored: Instead | undefined },
) {
  const { current, next, isAnew, restored } = making
  const again = next.returned === undefined ? continueDatabase(store, making) : keptAgain(store, next)
  const continued = isAnew ? undefined : yield* Effect.result(again)
  // Whatever kept it from being continued: if something is wrong, building it anew says what.
  if (continued?._tag === "Success" && continued.success !== undefined) return continued.success
  const restore = (lost: Sought) =>
    restored === undefined ? Effect.succeed(lost) : restoreFiles(store, current, lost, restored)
  return yield* buildStanding(store, next, restore)
})
