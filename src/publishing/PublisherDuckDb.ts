/**
 * Publishes a run as Parquet files and as one DuckDB file: derived from ledger and landing, compared with
 * the counts of what was found, put into place as a whole (`Commit.ts`). The publisher holds the output
 * folder's lock; readers need none.
 */
import { dirname, join } from "node:path"
import { Effect, Layer, Semaphore } from "effect"
import type { FileSystem } from "effect"
import { sha256Hex } from "../foundation/Sha256.ts"
import { collectGarbage } from "../foundation/CollectGarbage.ts"
import type { RunId } from "../contract/Ids.ts"
import { DuckDb } from "../duckdb/DuckDb.ts"
import { durableFiles } from "../foundation/DurableFile.ts"
import { Landing } from "../landing/Landing.ts"
import { Ledger } from "../ledger/Ledger.ts"
import { isRunId } from "../ledger/RunId.ts"
import { schemasForJob, schemasOfTables } from "../records/SchemasInForce.ts"
import type { SchemaFolders, SchemasInForce } from "../records/SchemasInForce.ts"
import type { Flushed } from "../records/Normalise.ts"
import { parquetBytes } from "../records/Parquet.ts"
import type { RecordSchemaInvalid } from "../records/RecordSchema.ts"
import { amendDatabase } from "./BuildDatabase.ts"
import { clearStrays, commit, recover } from "./Commit.ts"
import { publishedTables } from "./DataDictionary.ts"
import { deriveRun } from "./DeriveRun.ts"
import type { Derived } from "./DeriveRun.ts"
import type { SessionFindings } from "./DeriveSession.ts"
import { keepSchemas } from "./KeepSchemas.ts"
import { newestDerived } from "./KeptVersions.ts"
import { layoutOf, modesOf, readManifest } from "./Manifest.ts"
import type { Manifest, ManifestFile } from "./Manifest.ts"
import { fileStep } from "./OutputFiles.ts"
import { Publisher, PublishFailed } from "./Publisher.ts"
import type { Published } from "./Publisher.ts"
import { loadPicture } from "./RunPicture.ts"
import type { RunPicture } from "./RunPicture.ts"
import { buildStanding, runsWithout } from "./Standing.ts"
import { temporary } from "./Store.ts"
import type { Store } from "./Store.ts"
import { outcomeTables, systemTables } from "./SystemTables.ts"

export interface PublisherOptions {
  /** The output folder. */
  readonly root: string
  /** Where the program's own record schemas are. */
  readonly schemasFolder: string
  /** Where the job's are, if it has any. */
  readonly ownSchemas?: string
  readonly share: "none" | "group"
  /** Earlier versions that stay restorable after a publication; 3 if it is not given. */
  readonly versionsKept?: number | undefined
  readonly toolVersion: string
}

const datePattern = /^\d{4}-\d{2}-\d{2}$/

/** Run id and date become paths; nothing else of a run ever does. */
const checkNames = (run_id: RunId, run_date: string) =>
  isRunId(run_id) && datePattern.test(run_date)
    ? Effect.void
    : Effect.fail(new PublishFailed({ message: "a run's id holds a-z, 0-9, dot and hyphen only" }))

/** Writes full builders as Parquet files under temporary names, and remembers them for the manifest. */
const fileSink = (store: Store, picture: RunPicture, version: number, toolVersion: string) => {
  const { run_id, run_date } = picture.state.started
  const written: Array<ManifestFile> = []
  const sink = ({ spec, rows, table }: Flushed) =>
    fileStep(() => {
      const earlier = written.filter((file) => file.table === spec.name).length
      const part = earlier === 0 ? "" : `-${earlier + 1}`
      const path = `tables/${spec.name}/run_date=${run_date}/${run_id}-v${version}${part}.parquet`
      const bytes = parquetBytes(spec, table, { run_id, version: String(version), tool: toolVersion })
      const place = join(store.layout.root, path)
      store.files.makeFolder(dirname(dirname(place)), store.modes.folder)
      store.files.makeFolder(dirname(place), store.modes.folder)
      store.files.write(temporary(place), bytes, store.modes.file)
      written.push({ table: spec.name, path, rows, bytes: bytes.length, sha256: sha256Hex(bytes) })
    })
  return { written, sink }
}

/** The records found in the bodies must equal the rows that were written, table by table. */
const checkPlaces = (store: Store, { rows, findings }: Derived) => {
  const all = [...findings.values()].map(({ counts }) => counts)
  const sum = (of: (counts: SessionFindings["counts"]) => number) => all.reduce((n, each) => n + of(each), 0)
  const expected: ReadonlyArray<readonly [string, number]> = [
    ...store.families.map(({ table }) => [table, sum(({ byTable }) => byTable[table] ?? 0)] as const),
    ["other_records", sum(({ other }) => other)],
    ["rejected_records", sum(({ rejected, strays }) => rejected + strays)],
  ]
  const wrong = expected.find(([table, count]) => (rows[table] ?? 0) !== count)
  return wrong === undefined
    ? Effect.void
    : Effect.fail(new PublishFailed({ message: `${wrong[0]}: records were found that have no row` }))
}

export interface Memory {
  /** What the newest publication found in the bodies: publishing the outcome need not read them again. */
  run_id: RunId | undefined
  findings: ReadonlyMap<string, SessionFindings>
}

/** A failure before the commit leaves nothing behind; what cannot be removed now is removed next time. */
export const discarding =
  (store: Store, manifest: Manifest) =>
  <A, R>(staging: Effect.Effect<A, PublishFailed, R>) =>
    Effect.onError(staging, () => Effect.ignore(clearStrays(store, manifest)))

/** Derives the tables of one run again and writes them under temporary names, for a manifest to list. */
export const stageRun = Effect.fn("Publisher.stageRun")(function* (
  store: Store,
  toolVersion: string,
  run_id: RunId,
  version: number,
) {
  const picture = yield* loadPicture(run_id)
  const { run_date } = picture.state.started
  yield* checkNames(run_id, run_date)
  const { written, sink } = fileSink(store, picture, version, toolVersion)
  const derived = yield* deriveRun(picture, { families: store.families, tables: systemTables, sink })
  yield* checkPlaces(store, derived)
  // The last bodies would stay in memory beside the database that is built next.
  yield* Effect.sync(collectGarbage)
  return { derived, entry: { run_date, version, files: written } }
})

export const publishRun = Effect.fn("Publisher.publish")(function* (
  store: Store,
  toolVersion: string,
  memory: Memory,
  run_id: RunId,
) {
  const current = yield* recover(store)
  const { runs } = newestDerived(store, current)
  const version = current.version + 1
  const staging = Effect.gen(function* () {
    const schemas = yield* keepSchemas(store)
    const { derived, entry } = yield* stageRun(store, toolVersion, run_id, version)
    const next: Manifest = {
      version,
      amends: false,
      schemas,
      runs: { ...runs, [run_id]: { ...entry, schemas } },
    }
    const fresh = new Set(entry.files.map(({ path }) => path))
    const { gaps, unfit } = yield* buildStanding(store, next, fresh)
    return { derived, next, unfit, without: runsWithout(next, gaps) }
  })
  const { derived, next, unfit, without } = yield* discarding(store, current)(staging)
  yield* commit(store, next)
  memory.run_id = run_id
  memory.findings = derived.findings
  const rows = Object.fromEntries(
    publishedTables(store.families).map(({ name }) => [name, derived.rows[name] ?? 0]),
  )
  return {
    version,
    rows,
    receipts: derived.receipts,
    left_out: derived.left_out,
    misfits: derived.misfits,
    rejected: derived.rejected,
    unfit,
    gone: store.schemas.gone,
    without,
  } satisfies Published as Published
})

const publishOutcomeOf = Effect.fn("Publisher.publishOutcome")(function* (
  store: Store,
  toolVersion: string,
  memory: Memory,
  run_id: RunId,
) {
  const current = yield* recover(store)
  // The database has the tables of an earlier version.
  if (current.returned !== undefined) {
    yield* publishRun(store, toolVersion, memory, run_id)
    return
  }
  const known = current.runs[run_id]
  if (known === undefined) return yield* new PublishFailed({ message: `run ${run_id} is not published yet` })
  const picture = yield* loadPicture(run_id)
  const version = current.version + 1
  const { written, sink } = fileSink(store, picture, version, toolVersion)
  const replaced = new Set(outcomeTables.map(({ name }) => name))
  const staging = Effect.gen(function* () {
    yield* deriveRun(picture, {
      families: store.families,
      tables: outcomeTables,
      sink: (flushed) => (replaced.has(flushed.spec.name) ? sink(flushed) : Effect.void),
      findings: memory.run_id === run_id ? memory.findings : new Map(),
    })
    const files = [...known.files.filter(({ table }) => !replaced.has(table)), ...written]
    const next: Manifest = {
      version,
      amends: true,
      ...(current.schemas === undefined ? {} : { schemas: current.schemas }),
      runs: { ...current.runs, [run_id]: { ...known, version, files } },
    }
    yield* fileStep(() => store.files.copy(store.layout.database, store.layout.build))
    const { families, layout } = store
    const fresh = new Set(written.map(({ path }) => path))
    const place = ({ path }: ManifestFile) => (fresh.has(path) ? temporary(path) : path)
    const build = { path: layout.build, root: layout.root, manifest: next, families, standsAt: place }
    yield* amendDatabase(build, run_id, outcomeTables)
    return next
  })
  yield* commit(store, yield* discarding(store, current)(staging))
})

/** A version costs the Parquet files that were replaced since: nothing, unless a run is published again. */
const versionsKeptDefault = 3

const foldersOf = ({ root, schemasFolder, ownSchemas }: PublisherOptions): SchemaFolders => ({
  package: schemasFolder,
  own: ownSchemas,
  kept: layoutOf(root).schemas,
})

const storeWith = Effect.fnUntraced(function* (options: PublisherOptions, schemas: SchemasInForce) {
  const files = yield* durableFiles
  const { families } = schemas
  const store: Store = {
    layout: layoutOf(options.root),
    modes: modesOf(options.share),
    files,
    families,
    schemas,
    versionsKept: options.versionsKept ?? versionsKeptDefault,
  }
  return store
})

/** The store of an output folder as it is published, for verify and repair. */
export const openStore = Effect.fnUntraced(function* (options: PublisherOptions) {
  const manifest = yield* fileStep(() => readManifest(layoutOf(options.root).manifest))
  return yield* storeWith(options, yield* schemasOfTables(foldersOf(options), manifest?.schemas))
})

/** The same for a job that is about to run: with the schemas that its folders have now. */
const openStoreOfJob = Effect.fnUntraced(function* (options: PublisherOptions) {
  return yield* storeWith(options, yield* schemasForJob(foldersOf(options)))
})

export const PublisherDuckDb = {
  layer: (
    options: PublisherOptions,
  ): Layer.Layer<
    Publisher,
    RecordSchemaInvalid | PublishFailed,
    Ledger | Landing | DuckDb | FileSystem.FileSystem
  > =>
    Layer.effect(
      Publisher,
      Effect.gen(function* () {
        const store = yield* openStoreOfJob(options)
        const context = yield* Effect.context<Ledger | Landing | DuckDb>()
        const memory: Memory = { run_id: undefined, findings: new Map() }
        // One version at a time: each is built on the one before.
        const turn = yield* Semaphore.make(1)
        const inTurn = <A>(work: Effect.Effect<A, PublishFailed, Ledger | Landing | DuckDb>) =>
          turn.withPermits(1)(Effect.provide(work, context))
        return Publisher.of({
          publish: (run_id) => inTurn(publishRun(store, options.toolVersion, memory, run_id)),
          publishOutcome: (run_id) => inTurn(publishOutcomeOf(store, options.toolVersion, memory, run_id)),
        })
      }),
    ),
}
