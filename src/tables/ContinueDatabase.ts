/**
 * The database of the next version as a copy of the published one with the rows of new runs, so that a night
 * costs what it holds and not what history holds. Only if the file is byte for byte the one in the manifest,
 * built from the same runs by this version: otherwise it is rebuilt from all Parquet files.
 */
import { existsSync, statSync } from "node:fs"
import { join } from "node:path"
import { Effect, Struct } from "effect"
import { DuckDb } from "../base/DuckDb.ts"
import { addUpMisfits } from "../records/Misfits.ts"
import { amendDatabase } from "./BuildDatabase.ts"
import { publishedTables } from "./DataDictionary.ts"
import { madeBy } from "./EmptyDatabase.ts"
import { fileStep, filesOf, fingerprintInTurns } from "./Manifest.ts"
import type { Manifest, ManifestFile } from "./Manifest.ts"
import { makeModels } from "./Models.ts"
import { databaseFailed } from "./Publisher.ts"
import { buildStanding } from "./Standing.ts"
import type { Gap } from "./Standing.ts"
import { temporary } from "./Store.ts"
import type { Store } from "./Store.ts"

/**
 * Rows that are added night by night take more space than rows that are written at once: a file that has
 * grown to more than this many times its size is built anew.
 */
const growthMax = 2

/** Whether the published database is, to the byte, the one that was put into place with this version. */
export const isUnchanged = Effect.fn("Publishing.isUnchanged")(function* (store: Store, current: Manifest) {
  const { database, returned } = current
  const path = store.layout.database
  if (database === undefined || returned !== undefined || database.made_by !== madeBy(store)) return false
  const isOfSize = yield* fileStep(() => existsSync(path) && statSync(path).size === database.bytes)
  return isOfSize && (yield* fingerprintInTurns(path)).sha256 === database.sha256
})

/** A log that could not be emptied on closing would change the file after it was read. */
const emptyLog = Effect.fnUntraced(
  function* (path: string) {
    if (!(yield* fileStep(() => existsSync(`${path}.wal`)))) return
    const duckdb = yield* DuckDb
    const connection = yield* duckdb.open({ path, access: "read-write", threads: 1 })
    yield* connection.run("FORCE CHECKPOINT")
  },
  Effect.scoped,
  Effect.catchTag("DuckDbFailed", (failure) => Effect.fail(databaseFailed(failure))),
)

/** A manifest that says what the finished database is; none of a database that lacks rows of its files. */
export const withDatabase = Effect.fn("Publishing.withDatabase")(function* (
  store: Store,
  manifest: Manifest,
  built: Pick<Effect.Success<ReturnType<typeof buildStanding>>, "gaps" | "unfit"> & {
    /** Absent if it was built of all files now. */
    readonly builtBytes?: number | undefined
  },
) {
  // What the manifest says of a database before this one is not true of it.
  const known: Manifest = Struct.omit(manifest, ["database"])
  if (built.gaps.length > 0) return known
  yield* emptyLog(store.layout.build)
  const file = yield* fingerprintInTurns(store.layout.build)
  const built_bytes = built.builtBytes ?? file.bytes
  const database = { ...file, built_bytes, made_by: madeBy(store), unfit: built.unfit }
  return { ...known, database } satisfies Manifest as Manifest
})

/** The runs that the next version adds or replaces; undefined if it lacks one that the current one has. */
const changedRuns = (current: Manifest, next: Manifest): ReadonlyArray<string> | undefined =>
  Object.keys(current.runs).some((run_id) => next.runs[run_id] === undefined)
    ? undefined
    : Object.entries(next.runs)
        .filter(([run_id, { version }]) => version !== current.runs[run_id]?.version)
        .map(([run_id]) => run_id)

/** A file that is missing or of another size has to be reported, and its rows left out. */
const isThere = (root: string, path: string, { bytes }: ManifestFile): boolean =>
  statSync(join(root, path), { throwIfNoEntry: false })?.size === bytes

const continueDatabase = Effect.fn("Publishing.continueDatabase")(function* (
  store: Store,
  current: Manifest,
  next: Manifest,
  fresh: ReadonlySet<string>,
) {
  const { layout, files, families } = store
  const changed = changedRuns(current, next)
  const { unfit: known = [], bytes = 0, built_bytes: builtBytes = 0 } = current.database ?? {}
  if (bytes > builtBytes * growthMax) return undefined
  if (changed === undefined) return undefined
  const replaced = changed.filter((run_id) => current.runs[run_id] !== undefined)
  // How many of the values that do not fit are of which run is not known.
  if (known.length > 0 && replaced.length > 0) return undefined
  const standsAt = ({ path }: ManifestFile) => (fresh.has(path) ? temporary(path) : path)
  const isComplete = yield* fileStep(() =>
    filesOf(next).every((file) => isThere(layout.root, standsAt(file), file)),
  )
  if (!isComplete || !(yield* isUnchanged(store, current))) return undefined
  yield* fileStep(() => files.copy(layout.database, layout.build))
  const { build: path, root } = layout
  const options = { path, root, manifest: next, families, standsAt, removesModels: true }
  const unfit = yield* amendDatabase(options, changed, publishedTables(families))
  if (unfit === undefined) return undefined
  const gaps: ReadonlyArray<Gap> = []
  const models = yield* makeModels(store)
  return { gaps, unfit: addUpMisfits([...known, ...unfit]), models, builtBytes }
})

/** The database of the next version, and what it lacks: the published one continued if it can be. */
export const buildNext = Effect.fnUntraced(function* (
  store: Store,
  current: Manifest,
  next: Manifest,
  fresh: ReadonlySet<string>,
) {
  const continued = yield* Effect.result(continueDatabase(store, current, next, fresh))
  // Whatever kept it from being continued: if something is wrong, building it anew says what.
  if (continued._tag === "Success" && continued.success !== undefined) return continued.success
  return yield* buildStanding(store, next, fresh)
})
