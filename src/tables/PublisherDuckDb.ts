/**
 * Publishes a run as Parquet files and as one DuckDB file, put into place as a whole (`Version.ts`). The
 * publisher holds the output folder's lock; readers need none.
 */
import { Context, Effect, Layer, Semaphore, Struct, type FileSystem } from "effect"
import { given } from "../base/Schemas.ts"
import type { RunId } from "../service/Ids.ts"
import { DuckDb } from "../base/DuckDb.ts"
import { sizeAt, freeBytesAt } from "../base/DurableFile.ts"
import type { Freshness, Job } from "../jobs/Job.ts"
import { Landing } from "../landing/Landing.ts"
import { Ledger } from "../ledger/Ledger.ts"
import type { RunState } from "../ledger/RunState.ts"
import type { StaleData } from "../ledger/RunFacts.ts"
import { listedSchemas } from "../records/SchemasInForce.ts"
import type { RecordSchemaInvalid } from "../records/RecordSchema.ts"
import { failedGates, gatesOfPart, sharedSessionsIn, staleIn } from "./AskGates.ts"
import { deriveRun, fileSink, stageReadable, stageRun } from "./DeriveRun.ts"
import type { SessionFindings } from "./DeriveSession.ts"
import { disguisePicture, revealer } from "./Disguise.ts"
import { heldBefore, heldDatabase, keepAside, removeAllAside, removeAside } from "./HeldRuns.ts"
import { withoutInterim } from "./HeldRuns.ts"
import { keepSchemas } from "./KeepSchemas.ts"
import { fileStep, filesBelow, type Manifest, type Layout, type Store } from "./Manifest.ts"
import { keepModels } from "./Models.ts"
import { foldersOf, openStoreOfJob, ownSchemasOf, askedBy, checkAgreement } from "./OpenStore.ts"
import type { PublisherOptions, PseudonymsRefused } from "./OpenStore.ts"
import { ledgerFailed, PublicationHeld, Publisher, PublishFailed } from "./Publisher.ts"
import type { Interim, Published } from "./Publisher.ts"
import { listsLost } from "./OtherSchema.ts"
import { loadPicture } from "./RunPicture.ts"
import { runsWithout } from "./NextDatabase.ts"
import { outcomeTables } from "./SystemTables.ts"
import { takenNames } from "./ParquetViews.ts"
import { change, type Standing } from "./Version.ts"
import { join } from "node:path"
import { listed, sumOf } from "../base/Text.ts"

interface Memory {
  /** What the newest publication found in the bodies: publishing the outcome need not read them again. */
  run_id: RunId | undefined
  findings: ReadonlyMap<string, SessionFindings>
}

const nothingKnown = (): Memory => ({ run_id: undefined, findings: new Map() })

/** What is asked of a finished version besides gates. */
const notesOf = Effect.fnUntraced(function* (store: Store, run: RunState, limits: Freshness | undefined) {
  const hasListed = [...run.tasks.values()].some(({ planned }) => planned.session_id !== undefined)
  const shared = hasListed ? yield* sharedSessionsIn(store, run.started.run_id) : 0
  // How old the rest of the job's data is says nothing about a part of it.
  const isAsked = limits !== undefined && run.started.part === undefined
  const stale: StaleData = isAsked ? yield* staleIn(store, run.started, limits, yield* revealer(store)) : {}
  return { stale, shared_sessions: shared === 0 ? undefined : shared }
})

/** Without `gating`, no gate is asked, and runs that are held back stay so. */
const publishGated = Effect.fn("Publisher.publish")(function* (
  store: Store,
  memory: Memory,
  run_id: RunId,
  gating: Pick<PublisherOptions, "job" | "gates" | "freshness" | "models"> | undefined,
) {
  const put = Effect.fnUntraced(function* ({ current, newest, version }: Standing) {
    yield* checkAgreement(store, current)
    // Whether versions that were held back before the first one name the customers is not known.
    if (current.version === 0 && store.pseudonyms !== undefined) yield* removeAllAside(store)
    const schemas = yield* keepSchemas(store, current)
    const own = yield* stageRun(store, run_id, version)
    const held = gating === undefined ? [] : yield* heldBefore(own.state)
    // One that cannot be derived any more stays held back, and the version lacks it.
    const found = yield* Effect.forEach(held, (id) => stageReadable(store, id, version))
    const also = found.flatMap(({ staged }) => staged ?? [])
    if (gating !== undefined) {
      // A run of a job that this one replaces leaves that job's models as they are.
      const { job = own.state.started.job, models = [] } = gating
      yield* keepModels(store, job, models)
    }
    const staged = [...also, own]
    const derived = staged.map((one) => [one.run_id, { ...one.entry, schemas }] as const)
    const runs = { ...newest.runs, ...Object.fromEntries(derived) }
    const before = Object.entries(newest.runs)
      .filter(([id, { interim }]) => id !== run_id && interim !== true)
      .toSorted(([, a], [, b]) => a.version - b.version)
    const lists = listsLost(store.families, schemas, before.at(-1)?.[1])
    const lost = current.version === 0 ? yield* publishedEver : []
    const told = [...held, ...lost].filter((id) => !derived.some(([known]) => known === id))
    return {
      told: { own, also, lists, lost: [...new Set(told)] },
      next: { schemas, ...given({ pseudonyms: store.pseudonyms?.policy }), runs },
      gates: failedGates(store, own.state, gating?.gates),
      aside: keepAside(store, run_id, held),
      settled: notesOf(store, own.state, gating?.freshness),
    }
  })
  const changed = yield* change(store, put)
  const { told, version, next, built, failedGates: gates, settled } = changed
  if (version === undefined || next === undefined) {
    // What was published of the run while it went on is not current any more either.
    yield* withdrawInterim(store, run_id)
    return yield* new PublicationHeld({ run_id, database: heldDatabase(run_id), gates })
  }
  const { own, also, lists, lost } = told
  const { stale = {}, shared_sessions } = settled ?? {}
  const { derived } = own
  const released = also.map((one) => ({ run_id: one.run_id, ...one.derived.brought }))
  yield* removeAside(store, [...also.map((one) => one.run_id), run_id])
  memory.run_id = run_id
  memory.findings = derived.findings
  return {
    version,
    ...derived.brought,
    ...(released.length === 0 ? {} : { released }),
    unfit: built.unfit,
    models: built.models,
    gone: store.schemas.gone,
    lists,
    ...given({ shared_sessions }),
    ...(Object.keys(stale).length === 0 ? {} : { stale }),
    without: [...runsWithout(next, built.gaps), ...lost],
    restored: changed.restored,
    taken: yield* takenNames(store, next),
  } satisfies Published as Published
})

/** Runs that have tables, as far as the ledger knows: where nothing is published any more, these are lost. */
const publishedEver = Effect.gen(function* () {
  const ledger = yield* Ledger
  const states = yield* Effect.forEach(yield* ledger.runs, ({ fact }) => ledger.state(fact.run_id))
  return states.flatMap((one) => (one?.published === undefined ? [] : [one.started.run_id]))
}).pipe(Effect.mapError(ledgerFailed))

/** As `repair` publishes: the run alone, whatever the gates of its job would say. */
export const publishRun = (store: Store, run_id: RunId, memory: Memory = nothingKnown()) =>
  Effect.catchTag(publishGated(store, memory, run_id, undefined), "PublicationHeld", Effect.die)

/** The version has the tables of an earlier one, or lacks one that is in force by now. */
const isOutOfForce = (store: Store, { schemas, returned }: Manifest): boolean =>
  returned !== undefined ||
  [...store.schemas.texts.keys()].some((table) => schemas !== undefined && !Object.hasOwn(schemas, table))

const publishOutcomeOf = Effect.fn("Publisher.publishOutcome")(function* (
  store: Store,
  memory: Memory,
  run_id: RunId,
) {
  const put = Effect.fnUntraced(function* ({ current, version }: Standing) {
    yield* checkAgreement(store, current)
    if (isOutOfForce(store, current)) return { told: "publish" as const }
    const known = current.runs[run_id]
    if (known === undefined)
      return yield* new PublishFailed({ message: `run ${run_id} is not published yet` })
    const { picture, disguise } = yield* disguisePicture(store, yield* loadPicture(run_id))
    const { written, sink } = fileSink(store, picture, version)
    const replaced = new Set(outcomeTables.map(({ name }) => name))
    yield* deriveRun(picture, {
      families: store.families,
      tables: outcomeTables,
      disguise,
      sink: (flushed) => (replaced.has(flushed.spec.name) ? sink(flushed) : Effect.void),
      findings: memory.run_id === run_id ? memory.findings : new Map(),
    })
    const files = [...known.files.filter(({ table }) => !replaced.has(table)), ...written]
    return {
      told: "done" as const,
      next: { ...current, runs: { ...current.runs, [run_id]: { ...known, version, files } } },
      isInstead: true,
    }
  })
  const { told } = yield* change(store, put)
  if (told === "publish") yield* publishRun(store, run_id, memory)
})

// A version of a run that goes on: the tasks that are over, beside everything published before. It gives no
// receipts and is not kept: nothing is deleted or put back on the strength of it. If anything is in its way,
// what was current stays.

const gatesNamed = 3

/** Only what is settled and `over` is in the version. */
export const publishInterim = Effect.fn("Publisher.publishInterim")(function* (
  store: Store,
  run_id: RunId,
  over: ReadonlySet<string>,
  { gates, models = [] }: Pick<PublisherOptions, "gates" | "models">,
) {
  const refused = (message: string): Interim => ({ _tag: "InterimRefused", run_id, message })
  const put = Effect.fnUntraced(function* ({ current, version }: Standing) {
    yield* checkAgreement(store, current)
    // A person chose that version: only a whole run takes its place.
    if (current.returned !== undefined)
      return { told: refused("an earlier version of the tables was put back") }
    if (!leavesRoom(yield* fileStep(() => spaceOf(store.layout, run_id))))
      return { told: refused("the disk has too little room for a version beside the run") }
    const schemas = yield* keepSchemas(store, current)
    const { state, entry } = yield* stageRun(store, run_id, version, over)
    yield* keepModels(store, state.started.job, models)
    const runs = { ...current.runs, [run_id]: { ...entry, schemas, interim: true as const } }
    const tasks = [...state.tasks.values()].filter(({ settled }) => settled !== undefined).length
    const told: Interim = { _tag: "InterimPublished", run_id, version, tasks, of: state.tasks.size }
    return {
      told,
      next: { interim: true as const, schemas, ...given({ pseudonyms: store.pseudonyms?.policy }), runs },
      gates: failedGates(store, state, gates && gatesOfPart(gates)),
    }
  })
  const { told, failedGates: failed } = yield* change(store, put)
  if (failed.length === 0) return told
  const found = failed.map((one) => `${one.gate}: ${one.found}`)
  return refused(`a gate of the job did not pass, ${listed(found, gatesNamed)}`)
})

export interface Space {
  readonly freeBytes: number
  readonly databaseBytes: number
  /** What has landed of the run. */
  readonly landedBytes: number
}

const freeBytesMin = 64 * 1024 * 1024

/**
 * A version takes the size of the database and of the run's Parquet files while it is made. The run itself
 * must never run out of space because of it: twice as much again is left for what it lands and for its end.
 */
export const leavesRoom = ({ freeBytes, databaseBytes, landedBytes }: Space): boolean =>
  freeBytes >= freeBytesMin + 3 * (databaseBytes + landedBytes)

const spaceOf = ({ root, database }: Layout, run_id: RunId): Space => {
  const folder = join(root, "landing", run_id)
  return {
    freeBytes: freeBytesAt(root),
    databaseBytes: sizeAt(database),
    landedBytes: sumOf(filesBelow(folder).map((name) => sizeAt(join(folder, name)))),
  }
}

/**
 * Takes out what was published of a run while it went on: a gate holds the whole run back, or its files are
 * gone. Returns false if nothing was.
 */
export const withdrawInterim = Effect.fn("Publishing.withdrawInterim")(function* (
  store: Store,
  run_id: RunId,
) {
  const put = Effect.fnUntraced(function* ({ current }: Standing) {
    const next = yield* fileStep(() => withoutInterim(store, current, run_id))
    return next === current ? { told: false } : { told: true, next, isAnew: true }
  })
  const { told } = yield* change(store, put)
  return told
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
    RecordSchemaInvalid | PublishFailed | PseudonymsRefused,
    Ledger | Landing | DuckDb | FileSystem.FileSystem
  > =>
    Layer.effect(
      Publisher,
      Effect.gen(function* () {
        const opened = openStoreOfJob(options, yield* listedSchemas(foldersOf(options), options.readings))
        // What is wrong with a schema or with pseudonyms is found before anything starts.
        yield* opened
        const context = yield* Effect.context<Ledger | Landing | DuckDb | FileSystem.FileSystem>()
        const memory = nothingKnown()
        const turn = yield* PublicationTurn
        const inTurn = <A, E>(
          work: (store: Store) => Effect.Effect<A, E, Ledger | Landing | DuckDb | FileSystem.FileSystem>,
        ) =>
          turn.withPermits(1)(
            Effect.mapError(opened, asPublishFailed).pipe(Effect.flatMap(work), Effect.provide(context)),
          )
        return Publisher.of({
          publish: (run_id) => inTurn((store) => publishGated(store, memory, run_id, options)),
          publishInterim: (run_id, over) => inTurn((store) => publishInterim(store, run_id, over, options)),
          publishOutcome: (run_id) => inTurn((store) => publishOutcomeOf(store, memory, run_id)),
        })
      }),
    ),
}

/** As a job asks; its key is looked up before anything is started. */
export const publisherOfJob = (
  job: Job,
  folders: Pick<PublisherOptions, "root" | "schemasFolder" | "readings" | "toolVersion">,
) => {
  const options: PublisherOptions = {
    ...folders,
    job: job.name,
    ...Struct.pick(job, ["share", "parquet", "gates", "freshness", "models"]),
    ...ownSchemasOf(job),
    versionsKept: job.retain?.snapshots,
  }
  return Layer.unwrap(
    Effect.map(askedBy(job), (pseudonyms) =>
      PublisherDuckDb.layer({ ...options, ...(pseudonyms && { pseudonyms }) }),
    ),
  )
}
