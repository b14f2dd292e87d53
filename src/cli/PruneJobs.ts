/**
 * Applies `retain` of jobs to the output folder, for `prune` and at the end of each night. At night it waits
 * for nobody, and a failure costs a warning.
 */
import { Clock, Duration, Effect } from "effect"
import { given } from "../base/Schemas.ts"
import { bytesText, counted, sumOf } from "../base/Text.ts"
import { openedStore, openedStoreWithKey } from "./OutputFolder.ts"
import { note, warn } from "./Output.ts"
import { withPublished } from "./PublishedDatabase.ts"
import { orWarnWithin } from "./RunReport.ts"
import { Wiring } from "./Wiring.ts"
import type { PruneOptions, PruneResult, PruneRules } from "../folder/Prune.ts"
import type { Job } from "../jobs/Job.ts"
import { Ledger } from "../ledger/Ledger.ts"
import type { Compacted } from "../tables/Compact.ts"

/** After a year without `retain`, the first night must not spend its morning on it. */
const monthsAtNightMax = 3
const runsAtNightMax = 100

/** By month; the folder is already held. Undefined if the job does not ask for it. */
export const compactJob = Effect.fnUntraced(function* (
  output: string,
  { name, retain, share }: Job,
  { isDry, monthsMax }: { readonly isDry: boolean; readonly monthsMax: number },
) {
  if (retain?.compact === undefined) return undefined
  const { compact } = yield* Effect.promise(() => import("../tables/Compact.ts"))
  const ledger = yield* Ledger
  const own = (yield* ledger.runs).filter(({ fact }) => fact.job === name)
  const runs = new Set<string>(own.map(({ fact }) => fact.run_id))
  const overBy = (yield* Clock.currentTimeMillis) - Duration.toMillis(retain.compact)
  return yield* compact(yield* openedStore(output, share), { overBy, runs, isDry, monthsMax })
})

const bytesOf = (all: ReadonlyArray<{ readonly bytes: number }>): string =>
  bytesText(sumOf(all.map(({ bytes }) => bytes)))

const months = ({ tables }: Pick<Compacted, "tables">): string => {
  const all = [...new Set(tables.map(({ month }) => month))].toSorted()
  return all.length < 2 ? (all[0] ?? "") : `${all[0]} to ${all.at(-1)}`
}

export const compactedText = (done: Pick<Compacted, "tables" | "version">): string => {
  const before = done.tables.map((one) => one.before)
  const after = done.tables.flatMap((one) => one.after ?? [])
  const told = (sizes: typeof before) =>
    `${counted(sumOf(sizes.map(({ files }) => files)), "file")} (${bytesOf(sizes)})`
  return after.length === 0
    ? `${months(done)}: ${told(before)} would become ${counted(before.length, "file")}.`
    : `Compacted ${months(done)}: from ${told(before)} to ${told(after)}.`
}

/** Never fails. */
const compactAfterNight = (output: string, job: Job) =>
  compactJob(output, job, { isDry: false, monthsMax: monthsAtNightMax }).pipe(
    Effect.flatMap((done) => {
      const [left] = done?.left ?? []
      if (left !== undefined) return warn("compact-failed", { why: left.reason })
      return done === undefined || done.tables.length === 0 ? Effect.void : note(compactedText(done))
    }),
    Effect.catch(({ message }) => warn("compact-failed", { why: message })),
  )

/** Until the scope ends, nothing is pruned: whoever copies the folder or removes from it holds this lock. */
export const keepUnpruned = Effect.fnUntraced(function* (output: string) {
  const { lockFolder } = yield* Effect.promise(() => import("../base/FolderLock.ts"))
  return yield* lockFolder(`${output}/prune.lock`)
})

const rulesOf = Effect.fnUntraced(function* (job: Job) {
  const { withoutRetain } = yield* Effect.promise(() => import("../jobs/Settings.ts"))
  const { landing, attachments, logs, ledger, compress } = job.retain ?? withoutRetain
  return given({ job: job.name, compress, landing, attachments, logs, ledger }) satisfies PruneRules
})

export const sizeOf = ({ removed }: PruneResult): string => bytesOf(removed)

type Smaller = ReadonlyArray<{ readonly before: number; readonly after: number }>

const smallerText = (verb: string, done: string, what: string, all: Smaller, isDry: boolean): string => {
  const [before, after] = (["before", "after"] as const).map((size) =>
    bytesText(sumOf(all.map((one) => one[size]))),
  )
  const of = `${what} of ${counted(all.length, "run")}`
  return isDry
    ? `Would ${verb} ${of}: ${before} would become ${after}.`
    : `${done} ${of}: ${before} to ${after}.`
}

export const archivedText = ({ archived }: PruneResult, isDry = false): string =>
  smallerText("archive", "Archived", "what the ledger knows", archived, isDry)

export const compressedText = ({ compressed }: PruneResult, isDry: boolean): string =>
  smallerText("compress", "Compressed", "the landed bodies", compressed, isDry)

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
  const rules = yield* Effect.forEach(jobs, rulesOf)
  return yield* prune(store, rules, { ...options, now: yield* Clock.currentTimeMillis })
}, Effect.scoped)

/** Whether a run of the job is old enough for anything at all. */
const isDue = Effect.fnUntraced(function* ({ job, ...ages }: PruneRules) {
  const ledger = yield* Ledger
  const least = Math.min(...Object.values(ages).map((age) => Duration.toMillis(age)))
  const until = (yield* Clock.currentTimeMillis) - least
  return (yield* ledger.runs).some(({ fact, ended }) => fact.job === job && ended && ended.at <= until)
})

/** Never fails. */
export const applyRetain = (output: string, job: Job) =>
  Effect.andThen(pruneAfterNight(output, job), compactAfterNight(output, job))

const pruneAfterNight = Effect.fnUntraced(function* (output: string, job: Job) {
  if (!(yield* Effect.orElseSucceed(Effect.flatMap(rulesOf(job), isDue), () => true))) return
  const pruned = yield* pruneJobs(output, [job], { isDry: false, runsMax: runsAtNightMax }).pipe(
    Effect.catch(({ message }) => warn("prune-failed", { why: message })),
  )
  if (pruned === undefined) return
  const runs = new Set(pruned.removed.map(({ run_id }) => run_id))
  if (runs.size > 0)
    yield* note(`Removed by age (\`retain\`): ${sizeOf(pruned)} of ${counted(runs.size, "run")}.`)
  if (pruned.archived.length > 0) yield* note(archivedText(pruned))
  yield* warnOfSize(pruned)
})

/** Names new documents in `documents/<customer>/`. The folder is held; undefined if nothing is published. */
export const nameDocumentsIn = Effect.fn("NameDocuments.name")(function* (output: string) {
  const { nameDocuments } = yield* Effect.promise(() => import("../folder/NamedDocuments.ts"))
  const wiring = yield* Wiring
  const { revealer } = yield* Effect.promise(() => import("../tables/Disguise.ts"))
  const store = yield* openedStoreWithKey(output, "none")
  const reveal = yield* Effect.provide(revealer(store), wiring.ledger(output, "read-only"))
  return yield* withPublished(output, (connection) => nameDocuments(store, connection, reveal))
})

/** A night brings far fewer documents than this takes; the next one continues. */
const namedWithin = Duration.minutes(10)

/** Never fails. */
export const nameDocumentsAfterNight = Effect.fnUntraced(function* (output: string, job: Job) {
  if (job.documents !== "by_name") return
  const failed = (why: string) => warn("documents-unnamed", { why })
  yield* nameDocumentsIn(output).pipe(
    // What the machine or the folder refused is told in its own words.
    Effect.catchTag("FolderFailed", (cause) => {
      const why = cause.because === undefined ? cause.message : `documents/ holds ${cause.message}`
      return Effect.andThen(failed(why), Effect.logDebug(cause))
    }),
    orWarnWithin(namedWithin, "they were", failed),
  )
})
