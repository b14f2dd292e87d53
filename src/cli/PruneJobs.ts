/**
 * Applies `retain` of jobs to the output folder, for `prune` and at the end of each night. At night it is the
 * least important step: it waits for nobody, and a failure costs a warning.
 */
import { Clock, Duration, Effect } from "effect"
import { bytesText } from "../base/BytesText.ts"
import { counted } from "../base/Counted.ts"
import type { Job } from "../jobs/Job.ts"
import { compressAfter } from "../jobs/Retain.ts"
import type { PruneOptions, PruneResult, PruneRules } from "../folder/Prune.ts"
import { Ledger } from "../ledger/Ledger.ts"
import { compactAfterNight } from "./CompactTables.ts"
import { openedStore } from "./LookAtFolder.ts"
import { note, warn } from "./Output.ts"
import { keepUnpruned } from "./PruneLock.ts"

/** After a year without `retain`, the first night must not spend its morning on it. */
const runsAtNightMax = 100

export const rulesOf = (job: Job): PruneRules => {
  const { landing, attachments, logs, ledger, compress = compressAfter } = job.retain ?? {}
  return {
    job: job.name,
    compress,
    ...(landing === undefined ? {} : { landing }),
    ...(attachments === undefined ? {} : { attachments }),
    ...(logs === undefined ? {} : { logs }),
    ...(ledger === undefined ? {} : { ledger }),
  }
}

export const sizeOf = ({ removed }: PruneResult): string =>
  bytesText(removed.reduce((sum, { bytes }) => sum + bytes, 0))

export const archivedText = ({ archived }: PruneResult, isDry = false): string => {
  const [before, after] = (["before", "after"] as const).map((size) =>
    bytesText(archived.reduce((sum, one) => sum + one[size], 0)),
  )
  const what = `what the ledger knows of ${counted(archived.length, "run")}`
  return isDry
    ? `Would archive ${what}: ${before} would become ${after}.`
    : `Archived ${what}: ${before} to ${after}.`
}

/** What was archived takes its place on the disk twice until the ledger's file is smaller. */
export const warnOfSize = ({ still_large }: PruneResult) =>
  still_large === undefined ? Effect.void : warn("ledger-still-large", { why: still_large })

/** The folder is already held. */
export const pruneJobs = Effect.fnUntraced(function* (
  output: string,
  jobs: ReadonlyArray<Job>,
  options: Pick<PruneOptions, "isDry" | "runsMax">,
) {
  const { prune } = yield* Effect.promise(() => import("../folder/Prune.ts"))
  yield* keepUnpruned(output)
  const store = yield* openedStore(output)
  return yield* prune(store, jobs.map(rulesOf), { ...options, now: yield* Clock.currentTimeMillis })
}, Effect.scoped)

/** Whether a run of the job is old enough for anything at all. */
const isDue = Effect.fnUntraced(function* ({ job, ...ages }: PruneRules) {
  const ledger = yield* Ledger
  const least = Math.min(...Object.values(ages).map((age) => Duration.toMillis(age)))
  const until = (yield* Clock.currentTimeMillis) - least
  return (yield* ledger.runs).some(({ fact, ended }) => fact.job === job && ended && ended.at <= until)
})

/** Never fails. */
export const applyRetain = Effect.fnUntraced(function* (output: string, job: Job) {
  yield* pruneAfterNight(output, job)
  yield* compactAfterNight(output, job)
})

const pruneAfterNight = Effect.fnUntraced(function* (output: string, job: Job) {
  if (!(yield* Effect.orElseSucceed(isDue(rulesOf(job)), () => true))) return
  yield* pruneJobs(output, [job], { isDry: false, runsMax: runsAtNightMax }).pipe(
    Effect.matchEffect({
      onSuccess: Effect.fnUntraced(function* (result) {
        if (result.removed.length > 0)
          yield* note(`Removed by age (\`retain\`): ${sizeOf(result)} of ${counted(runsIn(result), "run")}.`)
        if (result.archived.length > 0) yield* note(archivedText(result))
        yield* warnOfSize(result)
      }),
      onFailure: ({ message }) => warn("prune-failed", { why: message }),
    }),
  )
})

const runsIn = ({ removed }: PruneResult): number => new Set(removed.map(({ run_id }) => run_id)).size
