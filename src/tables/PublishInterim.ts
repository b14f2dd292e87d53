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
import { failedGates, gatesOfPart } from "./AskGates.ts"
import { withoutInterim } from "./HeldRuns.ts"
import { keepSchemas } from "./KeepSchemas.ts"
import { fileStep, filesBelow, withPolicy } from "./Manifest.ts"
import type { Layout } from "./Manifest.ts"
import { keepModels } from "./Models.ts"
import type { PublisherOptions } from "./OpenStore.ts"
import { checkAgreement } from "./PseudonymsOfJob.ts"
import type { Interim } from "./Publisher.ts"
import { stageRun } from "./StageRun.ts"
import type { Store } from "./Store.ts"
import { change } from "./Version.ts"
import type { Standing } from "./Version.ts"

const gatesNamed = 3
const refused = (message: string): Interim => ({ _tag: "Refused", message })

/** Only what is settled and `over` is in the version. */
export const publishInterim = Effect.fn("Publisher.publishInterim")(function* (
  store: Store,
  run_id: RunId,
  over: ReadonlySet<string>,
  { gates, models = [] }: Pick<PublisherOptions, "gates" | "models">,
) {
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
    return {
      told: { _tag: "Interim", version, tasks, of: state.tasks.size } satisfies Interim as Interim,
      next: { interim: true as const, schemas, ...withPolicy(store.pseudonyms?.policy), runs },
      fresh: new Set(entry.files.map(({ path }) => path)),
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
  const put = Effect.fnUntraced(function* ({ current }: Standing) {
    const next = yield* fileStep(() => withoutInterim(store, current, run_id))
    return next === current ? { told: false } : { told: true, next, isAnew: true }
  })
  const { told } = yield* change(store, put)
  return told
})
