/**
 * The database of the next version as a copy of the published one with the rows of the runs that differ, so
 * that a night costs what it holds. Only if it is the file of the manifest, made by this version of the
 * program.
 */
import { existsSync, statSync } from "node:fs"
import { join } from "node:path"
import { Effect, Struct } from "effect"
import { recordTables } from "../records/RecordTables.ts"
import { amendDatabase, databaseVersion, openDatabase, renumberDatabase } from "./BuildDatabase.ts"
import { publishedTables } from "./DataDictionary.ts"
import { madeBy } from "./EmptyDatabase.ts"
import { isKeptDatabaseDamaged } from "./KeptVersions.ts"
import { fileStep, filesOf, isThatDatabase, markOf, placeIn } from "./Manifest.ts"
import type { Manifest, ManifestFile, Store } from "./Manifest.ts"
import { makeModels } from "./Models.ts"
import { inDatabase } from "./Publisher.ts"
import { restoreFiles } from "./RestoreFiles.ts"
import type { Instead } from "./SharedFile.ts"
import { buildStanding, type Sought } from "./Standing.ts"

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
