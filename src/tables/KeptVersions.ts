/**
 * Earlier versions that `nightjar rollback` can put back, under `published/previous/`: manifests, and files
 * that the current version no longer has, so that one costs what was replaced since. Only the newest whole
 * one keeps its database.
 */
import { existsSync, readdirSync } from "node:fs"
import { dirname, join } from "node:path"
import { Effect } from "effect"
import { databaseVersion } from "./BuildDatabase.ts"
import { fileStep, filesBelow, filesOf, isOtherDatabase, manifestText, readManifest } from "./Manifest.ts"
import { placeIn, readPath, makeFoldersOf } from "./Manifest.ts"
import type { Layout, Manifest, Store } from "./Manifest.ts"
import { isSamePolicy } from "./Treatments.ts"

export const keptPath = ({ previous }: Layout, version: number): string => join(previous, `${version}.json`)

/** Oldest first. */
export const keptVersions = ({ layout }: Pick<Store, "layout">): ReadonlyArray<Manifest> =>
  (existsSync(layout.previous) ? readdirSync(layout.previous) : [])
    .filter((name) => name.endsWith(".json"))
    .flatMap((name) => readManifest(join(layout.previous, name)) ?? [])
    .toSorted((one, other) => one.version - other.version)

/** Whether the kept database cannot be read, or is not what was current in its version. */
export const isKeptDatabaseDamaged = Effect.fnUntraced(function* (store: Pick<Store, "layout">) {
  const path = store.layout.previousDatabase
  if (!(yield* fileStep(() => existsSync(path)))) return false
  const version = yield* databaseVersion(path, true)
  if (version === undefined) return true
  return yield* fileStep(() =>
    isOtherDatabase(path, keptVersions(store).find((kept) => kept.version === version)?.database),
  )
})

/**
 * What the next publication continues from: the current version, or the one that a rollback replaced. A lost
 * one is derived again by `repair`.
 */
export const newestDerived = (store: Pick<Store, "layout">, current: Manifest): Manifest => {
  const { returned } = current
  if (returned === undefined) return current
  return keptVersions(store).find(({ version }) => version === returned.from) ?? current
}

/**
 * The highest version in the names of files that only kept versions have: a removal that was cut off gave
 * them files of a version that never came.
 */
export const newestNamed = ({ layout }: Pick<Store, "layout">): number =>
  filesBelow(join(layout.previous, "tables"))
    .map((name) => readPath(`tables/${name}`)?.version ?? 0)
    .reduce((newest, one) => Math.max(newest, one), 0)

/** What the next publication needs of a version that a rollback replaced, relative to the output folder. */
export const replacedFiles = (store: Pick<Store, "layout">, current: Manifest): ReadonlyArray<string> => {
  const newest = newestDerived(store, current)
  return newest === current
    ? []
    : [`published/previous/${newest.version}.json`, ...filesOf(newest).map(placeIn(store))]
}

/**
 * Keeps the version that is being replaced. One that a rollback put back is kept already, and one of a run
 * that was not over takes no place from those that `rollback` may put back.
 */
export const keepVersion = (store: Store, current: Manifest) =>
  fileStep(() => {
    const { layout, files, modes } = store
    if (current.version === 0 || current.returned !== undefined || current.interim === true) return
    const path = keptPath(layout, current.version)
    if (readManifest(path) !== undefined) return
    makeFoldersOf(store, path)
    // One that lacks rows of its files is of no use; the one before may have them.
    if (current.database !== undefined) {
      files.remove(layout.previousDatabase)
      if (existsSync(layout.database)) files.link(layout.database, layout.previousDatabase)
    }
    files.replace(path, manifestText(current), modes.file)
  })

/** A kept version with other files, which are there already. */
export const replaceKept = ({ layout, files, modes }: Store, manifest: Manifest) =>
  fileStep(() => files.replace(keptPath(layout, manifest.version), manifestText(manifest), modes.file))

export const filesNeededBy = (kept: ReadonlyArray<Manifest>): ReadonlySet<string> =>
  new Set(kept.flatMap((manifest) => filesOf(manifest).map(({ path }) => path)))

/**
 * Forgets the oldest versions, but for the one that a rollback replaced, and those with other pseudonyms than
 * the next: none can be put back beside it, and its rows may name the customers. Returns those that stay.
 */
export const trimVersions = ({ layout, files, versionsKept }: Store, next: Manifest) =>
  fileStep(() => {
    const kept = keptVersions({ layout })
    const own = kept.filter(({ pseudonyms }) => isSamePolicy(pseudonyms, next.pseudonyms))
    if (own.length < kept.length) files.remove(layout.previousDatabase)
    const excess = own.slice(0, Math.max(0, own.length - versionsKept))
    const staying = own.filter((one) => !excess.includes(one) || one.version === next.returned?.from)
    for (const one of kept) if (!staying.includes(one)) files.remove(keptPath(layout, one.version))
    return staying
  })

/** Removes the files of earlier versions, but for these. */
export const sweepKept = (store: Store, restorable: ReadonlySet<string>) =>
  fileStep(() => {
    const { previous } = store.layout
    for (const path of filesBelow(join(previous, "tables")).map((name) => `tables/${name}`)) {
      if (restorable.has(path)) continue
      store.files.remove(join(previous, path))
      removeIfEmpty(store, dirname(join(previous, path)))
    }
  })

/** Of a date that nothing is in any more: whoever reads a table looks into each folder. */
export const removeIfEmpty = ({ files }: Store, folder: string): boolean => {
  const isEmpty = readdirSync(folder).length === 0
  if (isEmpty) files.remove(folder)
  return isEmpty
}
