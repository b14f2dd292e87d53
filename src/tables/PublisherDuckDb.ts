/**
 * Publishes a run as Parquet files and as one DuckDB file: derived from ledger and landing, compared with
 * the counts of what was found, put into place as a whole (`Commit.ts`). The publisher holds the output
 * folder's lock; readers need none.
 */
import { Context, Effect, Layer, Semaphore } from "effect"
import type { FileSystem } from "effect"
import type { RunId } from "../service/Ids.ts"
import { DuckDb } from "../base/DuckDb.ts"
import type { Freshness, Job } from "../jobs/Job.ts"
import { Landing } from "../landing/Landing.ts"
import { Ledger } from "../ledger/Ledger.ts"
import type { RunState } from "../ledger/RunState.ts"
import type { StaleData } from "../ledger/RunFacts.ts"
import { listedSchemas } from "../records/SchemasInForce.ts"
import type { RecordSchemaInvalid } from "../records/RecordSchema.ts"
import { failedGates, staleIn } from "./AskGates.ts"
import { amendDatabase } from "./BuildDatabase.ts"
import { commit, discarding, recover } from "./Commit.ts"
import { buildNext, isUnchanged, withDatabase } from "./ContinueDatabase.ts"
import { publishedTables } from "./DataDictionary.ts"
import { deriveRun } from "./DeriveRun.ts"
import type { SessionFindings } from "./DeriveSession.ts"
import { disguisePicture, revealer } from "./Disguise.ts"
import { heldBefore, heldDatabase, keepAside, removeAllAside, removeAside } from "./HeldRuns.ts"
import { keepSchemas } from "./KeepSchemas.ts"
import { newestDerived } from "./KeptVersions.ts"
import { fileStep, withPolicy } from "./Manifest.ts"
import type { Manifest, ManifestFile } from "./Manifest.ts"
import { keepModels, makeModels, refuseOutdated } from "./Models.ts"
import type { SqlOutdated } from "./Models.ts"
import { foldersOf, openStoreOfJob, ownSchemasOf } from "./OpenStore.ts"
import type { PublisherOptions } from "./OpenStore.ts"
import { publishInterim, withdrawInterim } from "./PublishInterim.ts"
import { askedBy, checkAgreement } from "./PseudonymsOfJob.ts"
import type { PseudonymsRefused } from "./PseudonymsOfJob.ts"
import { PublicationHeld, Publisher, PublishFailed } from "./Publisher.ts"
import type { Published } from "./Publisher.ts"
import { loadPicture } from "./RunPicture.ts"
import { fileSink, stageHeld, stageRun } from "./StageRun.ts"
import { buildStanding, runsWithout } from "./Standing.ts"
import { takeOut } from "./TakeOut.ts"
import { temporary } from "./Store.ts"
import type { Store } from "./Store.ts"
import { outcomeTables } from "./SystemTables.ts"

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
          const { receipts, left_out, delivered, engines, misfits, rejected, other } = one
          return { run_id, receipts, left_out, delivered, engines, misfits, rejected, other }
        }),
      }

/** What is published, to which the store's rows may be added. */
const recoverFor = Effect.fnUntraced(function* (store: Store) {
  const current = yield* recover(store)
  yield* checkAgreement(store, current)
  // Whether versions that were held back before the first one name the customers is not known.
  if (current.version === 0 && store.pseudonyms !== undefined) yield* removeAllAside(store)
  return current
})

const staleOf = Effect.fnUntraced(function* (store: Store, run: RunState, limits: Freshness | undefined) {
  const nothing: StaleData = {}
  return limits === undefined ? nothing : yield* staleIn(store, run.started, limits, yield* revealer(store))
})

/** The next version with these runs as they were just derived, and its files with temporary names. */
const withRuns = (
  store: Store,
  { version, schemas, runs }: Pick<Manifest, "version" | "runs"> & Required<Pick<Manifest, "schemas">>,
  staged: ReadonlyArray<
    Pick<Effect.Success<ReturnType<typeof stageRun>>, "entry"> & { readonly run_id: RunId }
  >,
) => {
  const newest = staged.map(({ run_id, entry }) => [run_id, { ...entry, schemas }] as const)
  const policy = withPolicy(store.pseudonyms?.policy)
  const all = { ...runs, ...Object.fromEntries(newest) }
  const fresh = new Set(staged.flatMap(({ entry }) => entry.files.map(({ path }) => path)))
  return takeOut(store, { version, amends: false, schemas, ...policy, runs: all }, fresh)
}

/** Without `gating`, no gate is asked, and runs that are held back stay so. */
const publishGated = Effect.fn("Publisher.publish")(function* (
  store: Store,
  toolVersion: string,
  memory: Memory,
  run_id: RunId,
  gating: Pick<PublisherOptions, "gates" | "freshness" | "models"> | undefined,
) {
  const current = yield* recoverFor(store)
  const { runs } = newestDerived(store, current)
  const version = current.version + 1
  const staging = Effect.gen(function* () {
    const schemas = yield* keepSchemas(store, current)
    const own = yield* stageRun(store, toolVersion, run_id, version)
    const held = gating === undefined ? [] : yield* heldBefore(own.state)
    const also = yield* stageHeld(store, toolVersion, held, version)
    if (gating !== undefined) yield* keepModels(store, own.state.started.job, gating.models ?? [])
    const staged = [...also, own]
    const { next, fresh } = yield* withRuns(store, { version, schemas, runs }, staged)
    const built = yield* buildNext(store, current, next, fresh)
    const failed = yield* failedGates(store, own.state, gating?.gates)
    if (failed.length > 0) {
      yield* keepAside(store, run_id, held)
      return yield* new PublicationHeld({ run_id, database: heldDatabase(run_id), gates: failed })
    }
    const stale = yield* staleOf(store, own.state, gating?.freshness)
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
  yield* commit(store, next)
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
    engines: derived.engines,
    misfits: derived.misfits,
    rejected: derived.rejected,
    other: derived.other,
    ...releasedOf(also),
    unfit,
    models,
    gone: store.schemas.gone,
    ...(Object.keys(stale).length === 0 ? {} : { stale }),
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
  const current = yield* recoverFor(store)
  // The database has the tables of an earlier version, or lacks one that is in force by now.
  const { schemas } = current
  const lacks = (table: string) => schemas !== undefined && !Object.hasOwn(schemas, table)
  if (current.returned !== undefined || [...store.schemas.texts.keys()].some(lacks)) {
    yield* publishRun(store, toolVersion, memory, run_id)
    return
  }
  const known = current.runs[run_id]
  if (known === undefined) return yield* new PublishFailed({ message: `run ${run_id} is not published yet` })
  const { picture, disguise } = yield* disguisePicture(store, yield* loadPicture(run_id))
  const version = current.version + 1
  const { written, sink } = fileSink(store, picture, version, toolVersion)
  const replaced = new Set(outcomeTables.map(({ name }) => name))
  const staging = Effect.gen(function* () {
    yield* deriveRun(picture, {
      families: store.families,
      tables: outcomeTables,
      disguise,
      sink: (flushed) => (replaced.has(flushed.spec.name) ? sink(flushed) : Effect.void),
      findings: memory.run_id === run_id ? memory.findings : new Map(),
    })
    const files = [...known.files.filter(({ table }) => !replaced.has(table)), ...written]
    const { next, fresh } = yield* takeOut(
      store,
      {
        version,
        amends: true,
        ...(current.schemas === undefined ? {} : { schemas: current.schemas }),
        ...withPolicy(current.pseudonyms),
        runs: { ...current.runs, [run_id]: { ...known, version, files } },
      },
      new Set(written.map(({ path }) => path)),
    )
    // A file that is not what was built is continued once more only; the next version is built anew.
    const isKnown = yield* isUnchanged(store, current)
    yield* fileStep(() => store.files.copy(store.layout.database, store.layout.build))
    const { families, layout } = store
    const place = ({ path }: ManifestFile) => (fresh.has(path) ? temporary(path) : path)
    const { build: path, root } = layout
    const build = { path, root, manifest: next, families, standsAt: place }
    const amended = yield* amendDatabase({ ...build, removesModels: false }, [run_id], outcomeTables)
    if (amended === undefined)
      return yield* withDatabase(store, next, yield* buildStanding(store, next, fresh))
    // Those that are tables contain what was amended.
    yield* makeModels(store)
    const { unfit = [], built_bytes } = current.database ?? {}
    return isKnown ? yield* withDatabase(store, next, { gaps: [], unfit, builtBytes: built_bytes }) : next
  })
  yield* commit(store, yield* discarding(store, current)(staging))
})

const asPublishFailed = ({ message }: RecordSchemaInvalid | PseudonymsRefused | PublishFailed) =>
  new PublishFailed({ message })

/** One version at a time in this process, whichever job publishes: each is built on the one before. */
const PublicationTurn = Context.Reference<Semaphore.Semaphore>("nightjar/publishing/PublicationTurn", {
  defaultValue: () => Semaphore.makeUnsafe(1),
})

export const PublisherDuckDb = {
  layer: (
    options: PublisherOptions,
  ): Layer.Layer<
    Publisher,
    RecordSchemaInvalid | PublishFailed | PseudonymsRefused | SqlOutdated,
    Ledger | Landing | DuckDb | FileSystem.FileSystem
  > =>
    Layer.effect(
      Publisher,
      Effect.gen(function* () {
        const opened = openStoreOfJob(options, yield* listedSchemas(foldersOf(options), options.readings))
        // What is wrong with a schema, with pseudonyms or with SQL is found before anything starts.
        yield* refuseOutdated(yield* opened, options.models ?? [], options.gates?.tests ?? [])
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

/** As a job asks; its key is looked up before anything is started. */
export const publisherOfJob = (
  job: Job,
  folders: Pick<PublisherOptions, "root" | "schemasFolder" | "readings" | "toolVersion">,
) => {
  const { share, retain, gates, freshness, models, pseudonyms: chosen } = job
  const options: PublisherOptions = {
    ...folders,
    share,
    versionsKept: retain?.snapshots,
    ...ownSchemasOf(job),
    ...(gates && { gates }),
    ...(freshness && { freshness }),
    ...(models && { models }),
  }
  if (chosen === undefined) return PublisherDuckDb.layer(options)
  const asked = askedBy({ pseudonyms: chosen })
  return Layer.unwrap(
    Effect.map(asked, (pseudonyms) =>
      PublisherDuckDb.layer({ ...options, ...(pseudonyms && { pseudonyms }) }),
    ),
  )
}
