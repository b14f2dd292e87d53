/**
 * A copy of an output folder while a run works in it. The ledger is copied first and what it refers to
 * afterwards: bodies only grow, so whatever the copied ledger calls landed, published or deleted is in the
 * copy. Tables, bodies and ledger must belong together, so a round during which a version was published, or
 * a run began that the copied ledger may not know, is repeated.
 */
import { existsSync, statSync } from "node:fs"
import { dirname, join } from "node:path"
import { Duration, Effect } from "effect"
import { copyDatabase } from "../base/FolderLock.ts"
import { codeOf, durableFiles, ownModes, quietly, type DurableFiles } from "../base/DurableFile.ts"
import { FolderFailed, folderFailed, step } from "./FolderFailed.ts"
import { archiveName } from "../ledger/LedgerArchive.ts"
import { replacedFiles } from "../tables/KeptVersions.ts"
import {
  filesBelow,
  filesOf,
  layoutOf,
  nothingPublished,
  readManifest,
  runsHere,
} from "../tables/Manifest.ts"
import type { Manifest } from "../tables/Manifest.ts"
import { placeParquet, sweepParquet } from "../tables/ParquetViews.ts"

const roundsMax = 20
const betweenRounds = Duration.millis(500)

interface Place {
  readonly files: DurableFiles
  readonly from: string
  readonly to: string
}

/**
 * Copies `from` into the empty folder `to`. Until the last step the copy has no ledger under its own name,
 * so that no command accepts a copy that was cut off. Of one that fails, nothing remains.
 */
export const backup = Effect.fn("Keeping.backup")(function* (from: string, to: string) {
  const place: Place = { files: yield* durableFiles, from, to }
  return yield* copyAll(place).pipe(Effect.onError(() => Effect.sync(() => quietly(() => removeCopy(place)))))
})

const copyAll = Effect.fnUntraced(function* (place: Place) {
  const { files, from, to } = place
  yield* step(() => files.makeFolder(to, ownModes.folder))
  const manifest = yield* settledCopy(place)
  yield* copyFiles(place, otherFiles(from))
  yield* step(() => {
    for (const name of databases) {
      if (!existsSync(join(to, partial(name)))) continue
      files.rename(join(to, partial(name)), join(to, name))
    }
    files.syncFolder(to)
  })
  // The marker comes last.
  yield* copyFiles(place, [".nightjar"])
  return holdsOf(to, manifest.version)
})

/** Copies ledger, bodies and tables until no version was published, and no run landed its first body. */
const settledCopy = Effect.fnUntraced(function* (place: Place) {
  for (let round = 1; round <= roundsMax; round += 1) {
    const before = yield* step(() => versionStanding(place.from))
    const landed = new Set(yield* step(() => runsHere({ root: place.from }, undefined)))
    yield* copyDatabases(place)
    yield* copyFiles(place, below(place.from, "landing"))
    yield* copyFiles(place, below(place.from, archiveName))
    yield* copyFiles(place, below(place.from, "attachments").filter(isFinished))
    const isBegun = (yield* step(() => runsHere({ root: place.from }, undefined))).some(
      (run_id) => !landed.has(run_id),
    )
    const after = before === undefined || isBegun ? undefined : yield* copyTables(place, before)
    if (after !== undefined) return after
    yield* Effect.sleep(betweenRounds)
  }
  return yield* new FolderFailed({ message: "the tables changed during the copy", because: "unsettled" })
})

/** Undefined while a version is being put into place. */
const versionStanding = (root: string): Manifest | undefined => {
  const layout = layoutOf(root)
  return existsSync(layout.next) ? undefined : (readManifest(layout.manifest) ?? nothingPublished)
}

/** The tables of this version; undefined if another one was published meanwhile. */
const copyTables = Effect.fnUntraced(function* (place: Place, manifest: Manifest) {
  const { files, from, to } = place
  yield* copyFiles(
    place,
    filesOf(manifest).map(({ path }) => path),
  )
  yield* step(() => {
    files.remove(layoutOf(to).database)
    files.remove(layoutOf(to).previous)
  })
  yield* copyFiles(place, yield* step(() => replacedFiles({ layout: layoutOf(from) }, manifest)))
  // The record schemas of the tables: each file is written once and never changed.
  yield* copyFiles(place, below(from, "schemas").filter(isFinished))
  yield* copyFiles(place, below(from, "published/models").filter(isFinished))
  const { parquet } = manifest
  if (parquet !== undefined)
    yield* copyFiles(place, below(from, `published/parquet-v${parquet.version}`).filter(isFinished))
  yield* copyFiles(place, ["nightjar.duckdb", "tables/manifest.json"])
  return yield* step(() => {
    if (versionStanding(from)?.version !== manifest.version) return undefined
    const listed = new Set(["tables/manifest.json", ...filesOf(manifest).map(({ path }) => path)])
    // Of a round before.
    for (const path of below(to, "tables")) if (!listed.has(path)) files.remove(join(to, path))
    sweepParquet({ layout: layoutOf(to), files }, (version) => version === parquet?.version)
    placeParquet({ layout: layoutOf(to), files }, manifest)
    return manifest
  })
})

/** The ledger before the token store: an exchange that the ledger knows is in the store. */
const databases = ["ledger.sqlite", "tokens.sqlite"]
const partial = (name: string): string => `${name}.partial`

const copyDatabases = Effect.fnUntraced(function* ({ files, from, to }: Place) {
  for (const name of databases) {
    if (!existsSync(join(from, name))) continue
    const copy = join(to, partial(name))
    yield* step(() => {
      files.remove(copy)
      copyDatabase(join(from, name), copy, ownModes.file)
    })
    yield* Effect.mapError(files.settle(copy, ownModes.file), folderFailed)
  }
})

/**
 * Beside what the ledger refers to: logs, summaries, recordings, versions that a gate holds back, and the
 * state of the embedded service.
 */
const otherFiles = (from: string): ReadonlyArray<string> => [
  ...below(from, "runs").filter(isFinished),
  ...below(from, "acquaint").filter(isFinished),
  ...below(from, "published/held").filter(isFinished),
  "sandbox.ndjson",
  "pseudonyms.json",
]

const below = (root: string, folder: string): ReadonlyArray<string> =>
  filesBelow(join(root, folder)).map((path) => `${folder}/${path}`)

const isFinished = (path: string): boolean => !path.includes("/.tmp-") && !path.endsWith(".tmp")

/**
 * Copies what is not in the copy with the same size: such files only grow or never change, except the
 * manifest and models. A file that is gone was removed meanwhile, or is
 * missing: the check of the copy finds it.
 */
const copyFiles = Effect.fnUntraced(function* ({ files, from, to }: Place, paths: ReadonlyArray<string>) {
  const folders = new Set<string>()
  for (const path of paths) {
    const [source, copy] = [join(from, path), join(to, path)]
    if (!(yield* step(() => isDue(source, copy)))) continue
    yield* step(() => {
      files.makeFolder(dirname(copy), ownModes.folder)
      copyIfThere(files, source, copy)
    })
    if (!existsSync(copy)) continue
    yield* Effect.mapError(files.settle(copy, ownModes.file), folderFailed)
    folders.add(dirname(copy))
  }
  yield* step(() => folders.forEach((folder) => files.syncFolder(folder)))
})

const isDue = (source: string, copy: string): boolean => {
  if (!existsSync(source)) return false
  const isReplaced = /\/((?:manifest|pseudonyms)\.json|published\/models\/[^/]*)$/.test(source)
  return isReplaced || !existsSync(copy) || statSync(copy).size !== statSync(source).size
}

const copyIfThere = (files: DurableFiles, source: string, copy: string): void => {
  try {
    files.copy(source, copy)
  } catch (cause) {
    if (codeOf(cause) !== "ENOENT") throw cause
  }
}

const copied = [archiveName, "landing", "attachments", "tables", "published", "schemas", "runs", "acquaint"]

/** The folder was empty before, so all of this is the copy's. */
const removeCopy = ({ files, to }: Place): void => {
  const single = [...databases, ...databases.map(partial), "nightjar.duckdb"]
  const others = ["sandbox.ndjson", "pseudonyms.json", ".nightjar", "current", "history"]
  for (const name of [...copied, ...single, ...others]) files.remove(join(to, name))
}

/** What the copy holds; `version` is that of its tables, 0 without any. */
const holdsOf = (to: string, version: number) => {
  const part = (paths: ReadonlyArray<string>) => {
    const there = paths.map((path) => join(to, path)).filter((path) => existsSync(path))
    return { files: there.length, bytes: there.reduce((sum, path) => sum + statSync(path).size, 0) }
  }
  // The link leads to files that are there already.
  const published = below(to, "published").filter((path) => !path.startsWith("published/parquet/"))
  const tables = [...below(to, "tables"), ...published]
  return {
    version,
    ledger: part(["ledger.sqlite", ...below(to, archiveName)]),
    landing: part(below(to, "landing")),
    attachments: part(below(to, "attachments")),
    tables: part([...tables.filter((path) => path.endsWith(".parquet")), "nightjar.duckdb"]),
    other: part([
      ...["schemas", "runs", "acquaint"].flatMap((folder) => below(to, folder)),
      ...published.filter((path) => !path.endsWith(".parquet")),
      "tokens.sqlite",
      "sandbox.ndjson",
      "pseudonyms.json",
    ]),
  }
}
