/**
 * A version of a run that goes on: the tasks that are over, whole, beside everything published before. It
 * becomes current by the same rename as every version, gives no receipts and is not kept: nothing is deleted
 * or put back on the strength of it, and the run's own publication takes its place. If anything is in its
 * way, what was current stays.
 */
import { statfsSync, statSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import type { RunId } from "../service/Ids.ts"
import { listed } from "../base/Text.ts"
import type { Gates, SqlFile } from "../jobs/Job.ts"
import { failedGates, gatesOfPart } from "./AskGates.ts"
import { clearStrays, commit, discarding, recover } from "./Commit.ts"
import { buildNext, withDatabase } from "./ContinueDatabase.ts"
import { keepSchemas } from "./KeepSchemas.ts"
import { keptVersions } from "./KeptVersions.ts"
import { fileStep, filesBelow, readManifest, withPolicy } from "./Manifest.ts"
import type { Layout } from "./Manifest.ts"
import { keepModels } from "./Models.ts"
import { checkAgreement } from "./PseudonymsOfJob.ts"
import type { Interim } from "./Publisher.ts"
import { stageRun } from "./StageRun.ts"
import { buildStanding } from "./Standing.ts"
import type { Store } from "./Store.ts"
import { takeOut } from "./TakeOut.ts"

/** What the job asks of a version, and adds to it. */
interface Asked {
  readonly gates?: Gates
  readonly models?: ReadonlyArray<SqlFile>
}

const gatesNamed = 3
const refused = (message: string): Interim => ({ _tag: "Refused", message })

/** Only what is settled and `over` is in the version. */
export const publishInterim = Effect.fn("Publisher.publishInterim")(function* (
  store: Store,
  run_id: RunId,
  over: ReadonlySet<string>,
  { gates, models = [] }: Asked,
) {
  const current = yield* recover(store)
  yield* checkAgreement(store, current)
  // A person chose that version: only a whole run takes its place.
  if (current.returned !== undefined) return refused("an earlier version of the tables was put back")
  if (!leavesRoom(yield* fileStep(() => spaceOf(store.layout, run_id))))
    return refused("the disk has too little room for a version beside the run")
  const version = current.version + 1
  const staging = Effect.gen(function* () {
    const schemas = yield* keepSchemas(store, current)
    const { state, entry } = yield* stageRun(store, store.toolVersion, run_id, version, over)
    yield* keepModels(store, state.started.job, models)
    const runs = { ...current.runs, [run_id]: { ...entry, schemas, interim: true as const } }
    const policy = withPolicy(store.pseudonyms?.policy)
    const { next, fresh } = yield* takeOut(
      store,
      { version, amends: false, interim: true, schemas, ...policy, runs },
      new Set(entry.files.map(({ path }) => path)),
    )
    const built = yield* buildNext(store, current, next, fresh)
    const failed = yield* failedGates(store, state, gates && gatesOfPart(gates))
    return { state, failed, next: yield* withDatabase(store, next, built) }
  })
  const { state, failed, next } = yield* discarding(store, current)(staging)
  if (failed.length > 0) {
    yield* clearStrays(store, current)
    const found = failed.map((one) => `${one.gate}: ${one.found}`)
    return refused(`a gate of the job did not pass, ${listed(found, gatesNamed)}`)
  }
  yield* commit(store, next)
  const tasks = [...state.tasks.values()].filter(({ settled }) => settled !== undefined).length
  return { _tag: "Interim", version, tasks, of: state.tasks.size } satisfies Interim as Interim
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

const bytesOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0

const spaceOf = ({ root, database }: Layout, run_id: RunId): Space => {
  const { bavail, bsize } = statfsSync(root)
  const folder = join(root, "landing", run_id)
  return {
    freeBytes: bavail * bsize,
    databaseBytes: bytesOf(database),
    landedBytes: filesBelow(folder).reduce((sum, name) => sum + bytesOf(join(folder, name)), 0),
  }
}

/**
 * Takes out of the tables what was published of a run while it went on: a gate holds the whole run back, or
 * its files are gone. Returns false if nothing was.
 */
export const withdrawInterim = Effect.fn("Publishing.withdrawInterim")(function* (
  store: Store,
  run_id: RunId,
) {
  const current = yield* fileStep(() => readManifest(store.layout.manifest))
  if (current?.runs[run_id]?.interim !== true) return false
  const { [run_id]: _, ...others } = current.runs
  // A run that the service kept from beginning was published before, with no tasks.
  const before = yield* fileStep(() => keptVersions(store).at(-1)?.runs[run_id])
  const runs = before === undefined || before.interim === true ? others : { ...others, [run_id]: before }
  const staging = Effect.gen(function* () {
    const version = current.version + 1
    const { next, fresh } = yield* takeOut(store, { ...current, version, amends: false, runs }, new Set())
    return yield* withDatabase(store, next, yield* buildStanding(store, next, fresh))
  })
  yield* commit(store, yield* discarding(store, current)(staging))
  return true
})
