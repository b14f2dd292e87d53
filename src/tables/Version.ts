/**
 * How one version of the tables becomes the next: the only way that they change. An edit says whose runs it
 * starts from, what takes their place and what becomes of the version before; all else is the same for all
 * edits. Everything new is first synced under temporary names; the one moment that counts is the rename of
 * `manifest.next.json`. A crash before it leaves the old version; after it, the remaining steps are repeated.
 */
import { existsSync, readFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { Effect, Schema, Struct } from "effect"
import { DuckDb } from "../base/DuckDb.ts"
import { literal } from "../base/DuckDbFailed.ts"
import { sha256Hex } from "../base/Hashes.ts"
import { given } from "../base/Schemas.ts"
import type { Ledger } from "../ledger/Ledger.ts"
import type { FailedGate } from "../ledger/RunFacts.ts"
import { happened } from "../messages/Catalogue.ts"
import { RunId } from "../service/Ids.ts"
import { databaseVersion, inMemory } from "./BuildDatabase.ts"
import { continuedFrom } from "./HeldRuns.ts"
import { namingSchemaFiles, withSchemasOf } from "./KeepSchemas.ts"
import { filesNeededBy, keepVersion, keptVersions, newestDerived, newestNamed } from "./KeptVersions.ts"
import { removeIfEmpty, replaceKept, sweepKept, trimVersions } from "./KeptVersions.ts"
import { fileStep, filesBelow, filesOf, isThatDatabase, manifestText, publishedIn } from "./Manifest.ts"
import { nothingPublished, readManifest, readPath, temporary } from "./Manifest.ts"
import type { Manifest, ManifestFile, Store } from "./Manifest.ts"
import { buildStanding, clearBuild, nextDatabase, withDatabase, type Built } from "./NextDatabase.ts"
import { parquetOf, placeParquet, sweepParquet } from "./ParquetViews.ts"
import { PublishFailed, databaseFailed } from "./Publisher.ts"
import { restoreKept } from "./RestoreFiles.ts"
import { Instead, takeOut } from "./SharedFile.ts"
import { PseudonymPolicy, isSamePolicy, policyInFile } from "./Treatments.ts"

export interface Standing {
  readonly current: Manifest
  /** What the next publication continues from: the current version, or the one that a rollback replaced. */
  readonly newest: Manifest
  /** The number of the version that the edit makes. */
  readonly version: number
  /** Files that take the place of lost ones, also in kept versions. */
  readonly restored: Instead
}

/** What takes the place of the current version. */
export interface Edit<Told, Settled> {
  readonly told: Told
  /** The runs of the version and what else its manifest says; absent if there is nothing to publish. */
  readonly next?: Omit<Manifest, "version" | "amends" | "database">
  /** The version before is not kept: this one stands instead of it. */
  readonly isInstead?: boolean
  /** The database is built of files alone, and does not continue the published one. */
  readonly isAnew?: boolean
  /** No file of the published `current/` and `history/` may be in the next ones. */
  readonly isParquetAnew?: boolean
  /**
   * The same edit of each kept version, whose new files are in place. Nothing that is lost is restored then:
   * a database still has the rows that are being removed.
   */
  readonly every?: (kept: Manifest) => Manifest
  /** Asked of the finished database. If one fails, nothing is published. */
  readonly gates?: Effect.Effect<ReadonlyArray<FailedGate>, PublishFailed, Ledger | DuckDb>
  /** What becomes of a database that failed; it is removed otherwise. */
  readonly aside?: Effect.Effect<void, PublishFailed, Ledger | DuckDb>
  /** Done or asked once the version is finished, before it takes its place. */
  readonly settled?: Effect.Effect<Settled, PublishFailed, Ledger | DuckDb>
  /** Files may have been written that the version does not name. */
  readonly leaves?: boolean
}

const nothingBuilt: Built = { gaps: [], unfit: [], models: [] }

/** Finishes what a crash left, and applies the edit; if it fails, what was current still is. */
export const change = Effect.fn("Version.change")(function* <Told, Settled, E, R>(
  store: Store,
  edit: (standing: Standing) => Effect.Effect<Edit<Told, Settled>, E, R>,
) {
  const current = yield* recover(store)
  const newest = yield* continuedFrom(store, current)
  const version = 1 + Math.max(current.version, yield* fileStep(() => newestNamed(store)))
  const restored = new Instead()
  const staging = Effect.gen(function* () {
    const asked = yield* edit({ current, newest, version, restored })
    const { told, next, every, gates, aside } = asked
    if (every !== undefined)
      for (const kept of yield* fileStep(() => keptVersions(store))) yield* replaceKept(store, every(kept))
    const nothing = { next: undefined, settled: undefined, built: nothingBuilt, failed: [] }
    const unchanged = { told, asked, ...nothing }
    if (next === undefined) return unchanged
    const of = { ...next, version, amends: asked.isInstead ?? false }
    const whole = yield* takeOut(store, of)
    const own = yield* withSchemasOf(store, next, current)
    const isAnew = asked.isAnew ?? false
    const restores = every === undefined
    const making = { current, next: whole, isAnew, restored: restores ? restored : undefined }
    const built = yield* nextDatabase(own, making)
    const failed = gates === undefined ? [] : yield* gates
    if (failed.length > 0 && aside !== undefined) yield* aside
    if (failed.length > 0) return { ...unchanged, failed }
    const settled = asked.settled === undefined ? undefined : yield* asked.settled
    const complete = built.next ?? whole
    const mayLink = !isAnew && asked.isParquetAnew !== true
    const parquet = yield* parquetOf(own, { current, next: complete }, built, !mayLink)
    const named = { ...Struct.omit(complete, ["parquet"]), ...(parquet && { parquet }) }
    return { told, asked, built, failed, settled, next: yield* withDatabase(own, named, built) }
  })
  // A failure before the commit leaves nothing behind; what cannot be removed now is removed next time.
  const discarding = Effect.onError(staging, () => Effect.ignore(clearStrays(store, current)))
  const { told, asked, next, built, failed, settled } = yield* discarding
  if (next !== undefined) {
    yield* commit(store, next)
    yield* restoreKept(store, restored)
  }
  if (next === undefined || asked.leaves === true) yield* clearStrays(store, next ?? current)
  if (asked.every !== undefined) {
    yield* sweepKept(store, filesNeededBy(yield* fileStep(() => keptVersions(store))))
    yield* fileStep(() => sweepParquet(store, (one) => one === (next ?? current).parquet?.version))
  }
  const mended = next === undefined ? [] : restored.runsIn(current)
  // No version, if nothing was published.
  return { told, settled, version: next?.version, next, built, failedGates: failed, restored: mended }
})

// How a version comes into place, and what a crash leaves.

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

const moveFiles = (store: Store, current: Manifest, next: Manifest, restorable: ReadonlySet<string>) =>
  fileStep(() => {
    const { layout, files, modes } = store
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
    for (const folder of folders) if (!removeIfEmpty(store, folder)) files.syncFolder(folder)
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

const swapDatabase = Effect.fnUntraced(function* ({ layout, modes }: Store) {
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

// A lost manifest is read off the files.

interface Placed {
  readonly run_id: RunId
  readonly run_date: string
  readonly version: number
  readonly file: ManifestFile
  readonly policy: PseudonymPolicy | undefined
}

/** A manifest of the existing Parquet files, if the one that listed them is lost. */
export const readOffFiles = Effect.fnUntraced(function* ({ layout }: Store) {
  const placed: Array<Placed> = []
  for (const path of filesBelow(layout.tables).map((name) => `tables/${name}`)) {
    const place = readPath(path)
    const found = place && (yield* readOffFile(join(layout.root, path), place))
    if (place === undefined || found === undefined) continue
    const { table, version } = place
    const { runs, policy } = found
    const bytes = yield* fileStep(() => readFileSync(join(layout.root, path)))
    const all = runs.reduce((sum, { rows }) => sum + rows, 0)
    const file = { table, path, bytes: bytes.length, sha256: sha256Hex(bytes) }
    for (const { run_id, run_date, rows } of runs) {
      const common = place.own === undefined ? { file_rows: all } : {}
      const named = { ...file, rows, ...common }
      placed.push({ run_id: RunId.make(run_id), run_date, version, file: named, policy })
    }
  }
  const newest = placed.toSorted((a, b) => a.version - b.version).at(-1)
  // Rows that name the customers never stand beside others: `repair` derives what is left out so.
  const alike = placed.filter(({ policy }) => isSamePolicy(policy, newest?.policy))
  const runs = Map.groupBy(alike, ({ run_id }) => run_id)
  return {
    version: newest?.version ?? 0,
    amends: false,
    ...given({ pseudonyms: newest?.policy }),
    runs: Object.fromEntries([...runs].map(([run_id, own]) => [run_id, newestOf(own)])),
  } satisfies Manifest as Manifest
})

/** Files that a crash left beside the current version are older than it. */
const newestOf = (own: ReadonlyArray<Placed>): Manifest["runs"][string] => {
  const newest = new Map<string, number>()
  for (const { file, version } of own) newest.set(file.table, Math.max(version, newest.get(file.table) ?? 0))
  const files = own.filter(({ file, version }) => newest.get(file.table) === version).map(({ file }) => file)
  return { run_date: own[0]?.run_date ?? "", version: Math.max(...newest.values()), files }
}

const decodePolicy = Schema.decodeUnknownSync(Schema.fromJsonString(PseudonymPolicy))

/** Its rows by run, and what they have in place of the customers; undefined if the file cannot be read. */
const readOffFile = Effect.fnUntraced(
  function* (path: string, { own }: NonNullable<ReturnType<typeof readPath>>) {
    const connection = yield* inMemory
    const [what, end] =
      own === undefined
        ? ["run_id, any_value(run_date)::VARCHAR AS run_date", "GROUP BY run_id ORDER BY run_id"]
        : [`${literal(own.run_id)} AS run_id, ${literal(own.run_date)} AS run_date`, ""]
    const rows = yield* connection.rows(
      `SELECT ${what}, count(*)::INTEGER AS n FROM read_parquet(?, hive_partitioning = false) ${end}`,
      [path],
    )
    const [said] = yield* connection.rows(
      "SELECT decode(value) AS policy FROM parquet_kv_metadata($1) WHERE decode(key) = $2",
      [path, policyInFile],
    )
    const policy = said?.["policy"]
    return {
      policy: typeof policy === "string" ? decodePolicy(policy) : undefined,
      runs: rows.map(({ run_id, run_date, n }) => ({
        run_id: String(run_id),
        run_date: String(run_date),
        rows: Number(n),
      })),
    }
  },
  Effect.scoped,
  Effect.orElseSucceed(() => undefined),
)
