/**
 * Puts a finished version into place. Everything new is first synced under temporary names; the one moment
 * that counts is the rename of `manifest.next.json`. A crash before it leaves the old version; after it, the
 * remaining steps are repeated.
 */
import { existsSync } from "node:fs"
import { dirname, join } from "node:path"
import { Effect } from "effect"
import { DuckDb } from "../base/DuckDb.ts"
import { happened } from "../messages/Catalogue.ts"
import { databaseVersion } from "./BuildDatabase.ts"
import { withDatabase } from "./ContinueDatabase.ts"
import { namingSchemaFiles, withSchemasOf } from "./KeepSchemas.ts"
import { filesNeededBy, keepVersion, keptVersions, newestDerived } from "./KeptVersions.ts"
import { sweepKept, trimVersions } from "./KeptVersions.ts"
import { fileStep, filesBelow, filesOf, isThatDatabase, manifestText, publishedIn } from "./Manifest.ts"
import { nothingPublished, readManifest, temporary } from "./Manifest.ts"
import type { Manifest, ManifestFile, Store } from "./Manifest.ts"
import { placeParquet, sweepParquet } from "./ParquetViews.ts"
import { buildStanding, clearBuild, readOffFiles } from "./Standing.ts"
import { PublishFailed, databaseFailed } from "./Publisher.ts"

const replace = ({ files, modes }: Store, path: string, text: string) =>
  fileStep(() => {
    files.replace(path, text, modes.file)
  })

/** Commits a version whose files all have temporary names, and puts it into place. */
export const commit = Effect.fn("Publishing.commit")(function* (store: Store, next: Manifest) {
  const named = yield* namingSchemaFiles(store, next)
  yield* replace(store, store.layout.next, manifestText(named))
  yield* rollForward(store, named)
}, Effect.uninterruptible)

/** Nothing takes it back any more: whoever starts next repeats what failed. */
const rollForward = (store: Store, next: Manifest) =>
  Effect.mapError(putIntoPlace(store, next), ({ message }) => {
    const ready = "the new version is complete, and the next run puts it into place"
    return new PublishFailed({ message: `${message}; ${ready}` })
  })

const putIntoPlace = Effect.fnUntraced(function* (store: Store, next: Manifest) {
  const { layout, files } = store
  const current = yield* publishedIn(store)
  if (current.version !== next.version) {
    if (!next.amends) yield* keepVersion(store, current)
    const restorable = filesNeededBy(yield* trimVersions(store, next))
    yield* moveFiles(store, current, next, restorable)
    yield* sweepKept(store, restorable)
    if (yield* fileStep(() => existsSync(layout.build))) yield* swapDatabase(store)
    yield* fileStep(() => {
      placeParquet(store, next)
      const [was, is] = [current.parquet?.version, next.parquet?.version]
      // A reader of the folder before may go on, unless a customer has been removed from it.
      if (was !== is) sweepParquet(store, (version) => version === is || (version === was && !next.amends))
    })
    yield* replace(store, layout.manifest, manifestText(next))
  }
  yield* fileStep(() => {
    files.remove(layout.next)
    files.syncFolder(layout.tables)
  })
})

const moveFiles = (
  { layout, files, modes }: Store,
  current: Manifest,
  next: Manifest,
  restorable: ReadonlySet<string>,
) =>
  fileStep(() => {
    const staying = new Set(filesOf(next).map(({ path }) => path))
    const folders = new Set<string>([layout.tables])
    for (const path of new Set([...filesOf(current).map((file) => file.path), ...staying])) {
      const [finished, kept] = [join(layout.root, path), join(layout.previous, path)]
      const [goes, places] = staying.has(path)
        ? [finished, [temporary(finished), finished, kept]]
        : [kept, [finished]]
      const stands = places.find((place) => existsSync(place))
      if (stands === undefined || stands === goes) continue
      folders.add(dirname(stands))
      if (goes === kept && !restorable.has(path)) files.remove(stands)
      else {
        files.makeFolder(dirname(goes), modes.folder)
        files.rename(stands, goes)
        folders.add(dirname(goes))
      }
    }
    for (const folder of folders) files.syncFolder(folder)
  })

/**
 * Finishes or removes what a crash left: a committed version is completed, a lost manifest read off the
 * files, strays are removed, a missing or other database is built again. Returns the current manifest.
 */
export const recover = Effect.fn("Publishing.recover")(function* (store: Store) {
  const { layout, files, modes } = store
  yield* fileStep(() => {
    files.makeFolder(layout.root, modes.folder)
    files.makeFolder(layout.tables, modes.folder)
  })
  const next = yield* fileStep(() => readManifest(layout.next))
  if (next !== undefined) yield* Effect.uninterruptible(rollForward(store, next))
  const manifest = yield* standingManifest(store)
  yield* clearStrays(store, manifest)
  return manifest.version === 0 || (yield* hasDatabase(store, manifest))
    ? manifest
    : yield* buildInPlace(store, manifest)
})

/** What `recover` would leave in place, and what a crash left for it to do; nothing is changed. */
export const inForce = ({ layout }: Pick<Store, "layout">) =>
  fileStep(() => {
    const next = readManifest(layout.next)
    const published = readManifest(layout.manifest)
    const manifest = next ?? published
    const isMoving = next !== undefined && next.version !== published?.version
    const paths = filesBelow(layout.tables).map((path) => `tables/${path}`)
    const isTemporary = (path: string) => path.endsWith(temporary(""))
    const moved = isMoving && published !== undefined ? filesOf(published).map(({ path }) => path) : []
    const replaced = isMoving && next.returned?.from === published?.version ? published : undefined
    return {
      manifest: manifest ?? nothingPublished,
      /** What the next publication continues from: a version that is being replaced is not kept yet. */
      newest: replaced ?? newestDerived({ layout }, manifest ?? nothingPublished),
      /** There are tables, and nobody knows which of them are published. */
      isLost: manifest === undefined && !paths.every(isTemporary),
      isCommitted: existsSync(layout.next),
      isInterrupted: existsSync(layout.next) || paths.some(isTemporary),
      /** The files of the version may have temporary names, and not all names lead to it yet. */
      isMoving,
      database: isMoving && existsSync(layout.build) ? layout.build : layout.database,
      /** Files that it does not list, but that are moved or removed with it. */
      passing: new Set([...paths.filter(isTemporary), ...moved, "tables/manifest.next.json"]),
    }
  })
export type InForce = Effect.Success<ReturnType<typeof inForce>>

/** Opening it takes longer than the rest of a small step; the one that was put there need not be opened. */
const hasDatabase = Effect.fnUntraced(function* ({ layout }: Store, { database, version }: Manifest) {
  const isKnown = yield* fileStep(() => isThatDatabase(layout.database, database))
  return isKnown || (yield* databaseVersion(layout.database)) === version
})

/** Why a preview cannot be made: `recover` would publish something first. */
export const unfinished = Effect.fnUntraced(function* (store: Store) {
  const { manifest, isLost, isCommitted } = yield* inForce(store)
  if (isCommitted) return "a publication was interrupted and has to be finished first"
  if (isLost) return happened("manifest-lost")
  const isWhole = manifest.version === 0 || (yield* hasDatabase(store, manifest))
  return isWhole ? undefined : happened("database-changed")
})

/** Builds the database of the manifest anew from its files; the manifest that it returns says what it is. */
export const buildInPlace = Effect.fnUntraced(function* (store: Store, before: Manifest) {
  const own = yield* withSchemasOf(store, before, before)
  // The next edit restores what is lost.
  const built = yield* buildStanding(own, before, Effect.succeed)
  const manifest = yield* withDatabase(own, before, built)
  yield* swapDatabase(store)
  yield* replace(store, store.layout.manifest, manifestText(manifest))
  return manifest
})

const standingManifest = Effect.fnUntraced(function* (store: Store) {
  const { layout } = store
  const manifest = yield* fileStep(() => readManifest(layout.manifest))
  if (manifest !== undefined) return manifest
  const newest = keptVersions(store).at(-1)?.version ?? 0
  const read = yield* readOffFiles(store)
  // Numbers of versions only grow, also after a rollback whose manifest was lost.
  const found = { ...read, version: read.version === 0 ? 0 : Math.max(read.version, newest + 1) }
  if (found.version > 0) yield* replace(store, layout.manifest, manifestText(found))
  return found
})

export const swapDatabase = Effect.fnUntraced(function* ({ layout, modes }: Store) {
  const duckdb = yield* DuckDb
  yield* duckdb.atomicSwap(layout.build, layout.database, modes.file).pipe(Effect.mapError(databaseFailed))
})

/** Files below `tables/` that the manifest does not list. */
export const strayFiles = ({ layout }: Store, manifest: Manifest): ReadonlyArray<string> => {
  const listed = new Set(["tables/manifest.json", ...filesOf(manifest).map(({ path }: ManifestFile) => path)])
  return filesBelow(layout.tables)
    .map((path) => `tables/${path}`)
    .filter((path) => !listed.has(path))
}

export const clearStrays = (store: Store, manifest: Manifest) =>
  fileStep(() => {
    const { layout, files } = store
    for (const path of strayFiles(store, manifest)) files.remove(join(layout.root, path))
    // One of a version that was not finished is newer than what the version names.
    const newest = manifest.parquet?.version ?? manifest.version
    sweepParquet(store, (version) => version <= newest)
    clearBuild(store)
  })
