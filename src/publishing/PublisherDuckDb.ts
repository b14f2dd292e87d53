/**
 * Publishes a run as Parquet files and as one DuckDB file: derived from ledger and landing, compared with
 * the counts of what was found, put into place as a whole (`Commit.ts`). The publisher holds the output
 * folder's lock; readers need none.
 */
import { Context, Effect, Layer, Semaphore } from "effect"
import type { FileSystem } from "effect"
import type { RunId } from "../contract/Ids.ts"
import { DuckDb } from "../duckdb/DuckDb.ts"
import { durableFiles } from "../foundation/DurableFile.ts"
import { Landing } from "../landing/Landing.ts"
import type { Freshness, Gates, SqlFile } from "../jobs/Job.ts"
import { Ledger } from "../ledger/Ledger.ts"
import type { StaleData } from "../ledger/StaleData.ts"
import { listedSchemas, schemasOfTables, schemasWithKept } from "../records/SchemasInForce.ts"
import type { SchemaFolders, SchemasInForce } from "../records/SchemasInForce.ts"
import type { RecordSchemaInvalid } from "../records/RecordSchema.ts"
import { staleIn } from "./AskFreshness.ts"
import { failedGates } from "./AskGates.ts"
import { amendDatabase } from "./BuildDatabase.ts"
import { commit, discarding, recover } from "./Commit.ts"
import { buildNext, isUnchanged, withDatabase } from "./ContinueDatabase.ts"
import { publishedTables } from "./DataDictionary.ts"
import { deriveRun } from "./DeriveRun.ts"
import type { SessionFindings } from "./DeriveSession.ts"
import { heldBefore, heldDatabase, keepAside, removeAside } from "./HeldRuns.ts"
import { keepSchemas } from "./KeepSchemas.ts"
import { newestDerived } from "./KeptVersions.ts"
import { layoutOf, modesOf, readManifest } from "./Manifest.ts"
import type { Manifest, ManifestFile } from "./Manifest.ts"
import { fileStep } from "./OutputFiles.ts"
import { keepModels, makeModels } from "./Models.ts"
import { publishInterim, withdrawInterim } from "./PublishInterim.ts"
import { PublicationHeld, Publisher, PublishFailed } from "./Publisher.ts"
import type { Published } from "./Publisher.ts"
import { loadPicture } from "./RunPicture.ts"
import { fileSink, stageHeld, stageRun } from "./StageRun.ts"
import { runsWithout } from "./Standing.ts"
import { temporary } from "./Store.ts"
import type { Store } from "./Store.ts"
import { outcomeTables } from "./SystemTables.ts"

export interface PublisherOptions {
  /** The output folder. */
  readonly root: string
  /** Where the program's own record schemas are. */
  readonly schemasFolder: string
  /** Where the job's are, if it has any. */
  readonly ownSchemas?: string
  /** What a version must pass to become current. */
  readonly gates?: Gates
  /** How old its data may get. */
  readonly freshness?: Freshness
  /** The job's own views and tables. */
  readonly models?: ReadonlyArray<SqlFile>
  readonly share: "none" | "group"
  /** Delta logs are begun or removed; without it, those that are there are continued. */
  readonly delta?: boolean | undefined
  /** Earlier versions that stay restorable after a publication; 3 if it is not given. */
  readonly versionsKept?: number | undefined
  readonly toolVersion: string
}

export interface Memory {
  /** What the newest publication found in the bodies: publishing the outcome need not read them again. */
  run_id: RunId | undefined
  findings: ReadonlyMap<string, SessionFindings>
}

const releasedOf = (also: ReadonlyArray<Effect.Success<ReturnType<typeof stageRun>>>) =>
  also.length === 0
    ? {}
    : {
        released: also.map(({ run_id, derived: one }) => {
          const { receipts, left_out, delivered, misfits, rejected } = one
          return { run_id, receipts, left_out, delivered, misfits, rejected }
        }),
      }

const foundBeside = (stale: StaleData, delta: NonNullable<Published["delta"]>) => ({
  ...(Object.keys(stale).length === 0 ? {} : { stale }),
  ...(delta.length === 0 ? {} : { delta }),
})

/** Without `gating`, no gate is asked, and runs that are held back stay so. */
const publishGated = Effect.fn("Publisher.publish")(function* (
  store: Store,
  toolVersion: string,
  memory: Memory,
  run_id: RunId,
  gating: Pick<PublisherOptions, "gates" | "freshness" | "models"> | undefined,
) {
  const current = yield* recover(store)
  const { runs } = newestDerived(store, current)
  const version = current.version + 1
  const staging = Effect.gen(function* () {
    const schemas = yield* keepSchemas(store)
    const own = yield* stageRun(store, toolVersion, run_id, version)
    const held = gating === undefined ? [] : yield* heldBefore(own.state)
    const also = yield* stageHeld(store, toolVersion, held, version)
    if (gating !== undefined) yield* keepModels(store, own.state.started.job, gating.models ?? [])
    const staged = [...also, own]
    const next: Manifest = {
      version,
      amends: false,
      schemas,
      runs: {
        ...runs,
        ...Object.fromEntries(staged.map(({ run_id: id, entry }) => [id, { ...entry, schemas }])),
      },
    }
    const fresh = new Set(staged.flatMap(({ entry }) => entry.files.map(({ path }) => path)))
    const built = yield* buildNext(store, current, next, fresh)
    const failed = yield* failedGates(store, own.state, gating?.gates)
    if (failed.length > 0) {
      yield* keepAside(store, run_id, held)
      return yield* new PublicationHeld({ run_id, database: heldDatabase(run_id), gates: failed })
    }
    const limits = gating?.freshness
    const stale: StaleData = limits === undefined ? {} : yield* staleIn(store, own.state.started, limits)
    const lost = held.filter((id) => !also.some((one) => one.run_id === id))
    const without = [...runsWithout(next, built.gaps), ...lost]
    const { derived } = own
    return { ...built, derived, also, stale, without, next: yield* withDatabase(store, next, built) }
  })
  const { derived, also, next, unfit, models, stale, without } = yield* discarding(
    store,
    current,
  )(staging).pipe(
    // What was published of the run while it went on is not current any more either.
    Effect.tapErrorTag("PublicationHeld", () => withdrawInterim(store, run_id)),
  )
  const delta = yield* commit(store, next)
  yield* removeAside(store, [...also.map((one) => one.run_id), run_id])
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
    delivered: derived.delivered,
    misfits: derived.misfits,
    rejected: derived.rejected,
    ...releasedOf(also),
    unfit,
    models,
    gone: store.schemas.gone,
    ...foundBeside(stale, delta),
    without,
  } satisfies Published as Published
})

/** As `repair` publishes: the run alone, whatever the gates of its job would say. */
export const publishRun = (store: Store, toolVersion: string, memory: Memory, run_id: RunId) =>
  Effect.catchTag(publishGated(store, toolVersion, memory, run_id, undefined), "PublicationHeld", Effect.die)

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
    // A file that is not what was built is continued once more only; the next version is built anew.
    const isKnown = yield* isUnchanged(store, current)
    yield* fileStep(() => store.files.copy(store.layout.database, store.layout.build))
    const { families, layout } = store
    const fresh = new Set(written.map(({ path }) => path))
    const place = ({ path }: ManifestFile) => (fresh.has(path) ? temporary(path) : path)
    const { build: path, root } = layout
    const build = { path, root, manifest: next, families, standsAt: place, removesModels: false }
    yield* amendDatabase(build, [run_id], outcomeTables)
    // Those that are tables contain what was amended.
    yield* makeModels(store)
    const { unfit = [], built_bytes } = current.database ?? {}
    return isKnown ? yield* withDatabase(store, next, { gaps: [], unfit, builtBytes: built_bytes }) : next
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
    toolVersion: options.toolVersion,
    delta: options.delta,
    versionsKept: options.versionsKept ?? versionsKeptDefault,
  }
  return store
})

/** The store of an output folder as it is published, for verify and repair. */
export const openStore = Effect.fnUntraced(function* (options: PublisherOptions) {
  const manifest = yield* fileStep(() => readManifest(layoutOf(options.root).manifest))
  return yield* storeWith(options, yield* schemasOfTables(foldersOf(options), manifest?.schemas))
})

/**
 * The same for a job: with the schemas that its own folders have when it begins, and those that the output
 * folder has when it publishes. A job beside it may have kept new ones, which must not be lost or written
 * over.
 */
const storeOfJob = Effect.fnUntraced(function* (
  options: PublisherOptions,
  listed: Effect.Success<ReturnType<typeof listedSchemas>>,
) {
  return yield* storeWith(options, yield* schemasWithKept(listed, foldersOf(options).kept))
})

const asPublishFailed = ({ message }: RecordSchemaInvalid) => new PublishFailed({ message })

/** One version at a time in this process, whichever job publishes: each is built on the one before. */
const PublicationTurn = Context.Reference<Semaphore.Semaphore>("nightjar/publishing/PublicationTurn", {
  defaultValue: () => Semaphore.makeUnsafe(1),
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
        const opened = storeOfJob(options, yield* listedSchemas(foldersOf(options)))
        // What is wrong with a schema is found before anything starts.
        yield* opened
        const context = yield* Effect.context<Ledger | Landing | DuckDb | FileSystem.FileSystem>()
        const memory: Memory = { run_id: undefined, findings: new Map() }
        const turn = yield* PublicationTurn
        const { toolVersion } = options
        const inTurn = <A, E>(work: (store: Store) => Effect.Effect<A, E, Ledger | Landing | DuckDb>) =>
          turn.withPermits(1)(
            Effect.mapError(opened, asPublishFailed).pipe(Effect.flatMap(work), Effect.provide(context)),
          )
        return Publisher.of({
          publish: (run_id) => inTurn((store) => publishGated(store, toolVersion, memory, run_id, options)),
          publishInterim: (run_id, over) => inTurn((store) => publishInterim(store, run_id, over, options)),
          publishOutcome: (run_id) => inTurn((store) => publishOutcomeOf(store, toolVersion, memory, run_id)),
        })
      }),
    ),
}
