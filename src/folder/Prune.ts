/**
 * Removes what is older than a job's `retain` says: landed bodies, documents, logs, run by run. Each
 * removal is a fact before the first file goes, and is finished later if it was cut off. A run that is not
 * over, or of which anything is at the service or not intact in the tables, keeps its files whatever their
 * age. Landed bodies that stay are compressed after a while, and facts of old runs are archived; commands
 * read both as before.
 */
import { existsSync } from "node:fs"
import { join } from "node:path"
import { Duration, Effect } from "effect"
import { sizeAt } from "../base/DurableFile.ts"
import { given } from "../base/Schemas.ts"
import { sumOf } from "../base/Text.ts"
import { removeAll, step } from "./FolderFailed.ts"
import { sweepDocuments } from "./NamedDocuments.ts"
import { compressSegments, type Compressed } from "../landing/SegmentFile.ts"
import type { Pruned } from "../ledger/Fact.ts"
import type { RunHeader } from "../ledger/FoldRun.ts"
import { Ledger, type ArchivedRun } from "../ledger/Ledger.ts"
import { newestAnswer, remainsAny, runsLearntFrom } from "../ledger/RunState.ts"
import type { RunState, TaskState } from "../ledger/RunState.ts"
import { RunId } from "../service/Ids.ts"
import { newestDerived } from "../tables/KeptVersions.ts"
import { filesBelow, gapsOf, readManifest } from "../tables/Manifest.ts"
import type { Manifest, Store } from "../tables/Manifest.ts"
import { isToCollect } from "../task/ChooseRun.ts"

// Whether files of a run may be removed by age: pure. Landing is the only lossless copy, so it stays as long
// as anything of the run is open, at the service, or nowhere but in landing.

/** Why the run's landed bodies and documents stay; undefined if they may be removed. */
export const reasonToKeep = (run: RunState): string | undefined => {
  const tasks = [...run.tasks.values()]
  if (run.ended === undefined) return "it is not finished"
  if (run.held !== undefined) return "a gate holds its tables back"
  // Leftovers are also flow sessions that are read and not executed.
  if (run.ended.leftovers || tasks.some(isAtService)) return "something of it is still at the service"
  const published = run.published
  if (published === undefined || tasks.some((task) => newestAnswer(task) > published.seq))
    return "not all of it is published"
  if ((published.fact.left_out ?? []).length > 0) return "some of its bodies are not in the tables"
  return undefined
}

/** An execution of ours counts as gone only once the service has said so. */
const isAtService = ({ attempts }: TaskState): boolean =>
  attempts.some((one) => !remainsAny(one, "nothing", "foreign", "unseen", "forgotten"))

export interface PruneRules {
  readonly job: string
  /** Landed bodies of a run that ended so long ago are compressed. */
  readonly compress?: Duration.Duration
  readonly landing?: Duration.Duration
  readonly attachments?: Duration.Duration
  readonly logs?: Duration.Duration
  /** The facts of a run that ended so long ago are moved to the archive. */
  readonly ledger?: Duration.Duration
}

export interface PruneOptions {
  /** Milliseconds since the epoch. */
  readonly now: number
  /** Only says what would be removed, compressed and archived. */
  readonly isDry: boolean
  /** The most runs of which something is removed or found not to be there, oldest first. */
  readonly runsMax: number
}

type What = "landing" | "attachments" | "log"

interface OfRun {
  readonly run_id: RunId
}

const noResult = () => ({
  removed: new Array<OfRun & { readonly what: What; readonly bytes: number }>(),
  /** Old enough, but still needed. */
  kept: new Array<OfRun & { readonly what: What; readonly reason: string }>(),
  /** Runs whose landed bodies take less room now. */
  compressed: new Array<OfRun & Compressed>(),
  /** Runs of which the ledger's file says less now. */
  archived: new Array<OfRun & ArchivedRun>(),
})
export type PruneResult = Effect.Success<ReturnType<typeof prune>>

interface Work extends ReturnType<typeof noResult> {
  readonly store: Store
  /** The tables of everything published, also if a rollback took some back. */
  readonly tables: Manifest | undefined
  readonly pruned: Pruned
  readonly isDry: boolean
  /** Runs whose facts are archived already, or stay in the ledger's file. */
  readonly notNow: ReadonlySet<string>
  readonly handled: Set<RunId>
}

const landingOf = ({ layout }: Store, run_id: string) => join(layout.root, "landing", run_id)
const logOf = ({ layout }: Store, run_id: string) => join(layout.root, "runs", run_id, "log.ndjson")

/** The caller holds the folder, so no run works in it. */
export const prune = Effect.fn("Keeping.prune")(function* (
  store: Store,
  rules: ReadonlyArray<PruneRules>,
  { now, isDry, runsMax }: PruneOptions,
) {
  const ledger = yield* Ledger
  const [pruned, runs] = [yield* ledger.pruned, yield* ledger.runs]
  const tables = yield* step(() => tablesOf(store))
  const notNow = new Set([...(yield* ledger.archived).keys(), ...newestRuns(runs)])
  const work: Work = { store, tables, pruned, isDry, notNow, ...noResult(), handled: new Set() }
  if (!isDry) yield* finishInterrupted(store, pruned)
  const byJob = new Map(rules.map((rule) => [rule.job, rule]))
  for (const header of runs) {
    if (work.handled.size >= runsMax) break
    const rule = byJob.get(header.fact.job)
    if (rule !== undefined) yield* pruneRun(work, header, rule, now)
  }
  if (!isDry) yield* sweepDocuments(store)
  const still_large = isDry || rules.every((rule) => rule.ledger === undefined) ? undefined : yield* giveBack
  const { removed, kept, compressed, archived } = work
  /** `still_large`: why the ledger's file is as large as before, although less is in it. */
  return { removed, kept, compressed, archived, ...given({ still_large }) }
})

/** What was archived stays so if the disk has no room for making the file smaller. */
const giveBack = Effect.gen(function* () {
  const ledger = yield* Ledger
  const given = yield* Effect.result(ledger.giveBack)
  if (given._tag === "Success") return undefined
  return given.failure.damaged === true ? yield* given.failure : given.failure.message
})

/** What the next night reads stays in the ledger's file, however old it is. */
const newestRuns = (runs: ReadonlyArray<RunHeader>): ReadonlyArray<string> =>
  [...Map.groupBy(runs, ({ fact }) => fact.job).values()].flatMap((ofJob) =>
    ofJob.slice(-runsLearntFrom).map(({ fact }) => fact.run_id),
  )

const tablesOf = (store: Store): Manifest | undefined => {
  const current = readManifest(store.layout.manifest)
  return current && newestDerived(store, current)
}

const pruneRun = Effect.fnUntraced(function* (work: Work, header: RunHeader, rule: PruneRules, now: number) {
  const { store, pruned } = work
  const { run_id } = header.fact
  const isOld = (age: Duration.Duration | undefined): boolean =>
    age !== undefined && header.ended !== undefined && header.ended.at + Duration.toMillis(age) <= now
  const landing = isOld(rule.landing) && !pruned.landing.has(run_id) && existsSync(landingOf(store, run_id))
  const attachments = isOld(rule.attachments) && !pruned.attachments.has(run_id)
  if (landing || attachments) {
    const ledger = yield* Ledger
    const state = yield* ledger.state(run_id)
    if (state !== undefined && landing) yield* pruneLanding(work, state)
    if (state !== undefined && attachments) yield* pruneAttachments(work, state)
  }
  if (isOld(rule.compress)) yield* step(() => compressRun(work, run_id))
  // Last: a log notes the facts about the others.
  if (isOld(rule.logs)) yield* pruneLog(work, run_id)
  if (isOld(rule.ledger)) yield* archiveFacts(work, header, now)
})

const pruneLanding = Effect.fnUntraced(function* (work: Work, state: RunState) {
  const { store, isDry } = work
  const { run_id } = state.started
  const reason = reasonToKeep(state) ?? (yield* gapOf(work, run_id))
  if (reason !== undefined) {
    work.kept.push({ run_id, what: "landing", reason })
    return
  }
  const folder = landingOf(store, run_id)
  const bytes = yield* step(() => sumOf(filesBelow(folder).map((name) => sizeAt(join(folder, name)))))
  if (!isDry) {
    const ledger = yield* Ledger
    yield* ledger.append([{ _tag: "LandingPruned", run_id, bytes }])
    yield* step(() => removeAll(store.files, [folder]))
  }
  note(work, { run_id, what: "landing", bytes })
})

const compressRun = (work: Work, run_id: RunId): void => {
  const { layout, files } = work.store
  if (work.removed.some((one) => one.run_id === run_id && one.what === "landing")) return
  const compressed = compressSegments(files, join(layout.root, "landing"), run_id, work.isDry)
  if (compressed.before === 0) return
  work.compressed.push({ run_id, ...compressed })
  work.handled.add(run_id)
}

/** A run that anything is still asked of keeps its facts where they are written. */
const archiveFacts = Effect.fnUntraced(function* (work: Work, header: RunHeader, now: number) {
  const { run_id } = header.fact
  if (work.notNow.has(run_id) || isToCollect(header, now)) return
  const ledger = yield* Ledger
  const state = yield* ledger.state(run_id)
  if (state === undefined || state.held !== undefined || state.accepted === true) return
  const archived = yield* ledger.archive(header.fact, work.isDry)
  if (archived === undefined) return
  work.archived.push({ run_id, ...archived })
  work.handled.add(run_id)
})

/** Nobody could derive tables again that are damaged before landing goes. */
const gapOf = Effect.fnUntraced(function* ({ store, tables }: Work, run_id: RunId) {
  const files = tables?.runs[run_id]?.files
  if (files === undefined) return "its tables are not published"
  const [gap] = yield* gapsOf(store, files)
  return gap === undefined ? undefined : `${gap.path} is ${gap.state}`
})

const pruneAttachments = Effect.fnUntraced(function* (work: Work, state: RunState) {
  const { store, pruned, isDry } = work
  const { run_id } = state.started
  const hasSome = downloadsOf(state).size > 0
  const reason = reasonToKeep(state)
  if (reason !== undefined) {
    if (hasSome) work.kept.push({ run_id, what: "attachments", reason })
    return
  }
  const taken = new Set(work.removed.flatMap((one) => (one.what === "attachments" ? [one.run_id] : [])))
  const isDone = (run: string) => run === run_id || pruned.attachments.has(run) || taken.has(run as RunId)
  const paths = yield* unsharedDocuments(store, state, isDone)
  const bytes = yield* step(() => sumOf(paths.map(sizeAt)))
  if (!isDry) {
    const ledger = yield* Ledger
    // Also if there were none: a run is not read again each night to find that out.
    yield* ledger.append([{ _tag: "AttachmentsPruned", run_id, bytes }])
    yield* step(() => removeAll(store.files, paths))
  }
  if (hasSome) note(work, { run_id, what: "attachments", bytes })
  else work.handled.add(run_id)
})

/** The documents of a run that no other run needs. */
const unsharedDocuments = Effect.fnUntraced(function* (
  { layout }: Store,
  state: RunState,
  isDone: (run_id: string) => boolean,
) {
  const ledger = yield* Ledger
  const paths: Array<string> = []
  for (const [sha256, path] of downloadsOf(state))
    if ((yield* ledger.runsWithDocument(sha256)).every(isDone)) paths.push(join(layout.root, path))
  return paths
})

const downloadsOf = ({ tasks }: RunState): ReadonlyMap<string, string> =>
  new Map(
    [...tasks.values()].flatMap(({ attachments }) =>
      attachments.flatMap(({ sha256, path }) =>
        sha256 === undefined || path === undefined ? [] : [[sha256, path] as const],
      ),
    ),
  )

const note = ({ removed, handled }: Work, one: PruneResult["removed"][number]): void => {
  removed.push(one)
  handled.add(one.run_id)
}

const pruneLog = Effect.fnUntraced(function* (work: Work, run_id: RunId) {
  const { store, isDry } = work
  const path = logOf(store, run_id)
  if (!existsSync(path)) return
  const bytes = yield* step(() => sizeAt(path))
  if (!isDry) yield* step(() => removeAll(store.files, [path]))
  note(work, { run_id, what: "log", bytes })
})

/** Folders whose removal was recorded and cut off; of documents, only the last run's may be left. */
const finishInterrupted = Effect.fnUntraced(function* (store: Store, pruned: Pruned) {
  const folders = [...pruned.landing.keys()].map((run_id) => landingOf(store, run_id))
  yield* step(() => removeAll(store.files, folders))
  const last = [...pruned.attachments.keys()].at(-1)
  const state = last === undefined ? undefined : yield* (yield* Ledger).state(RunId.make(last))
  if (state === undefined) return
  const paths = yield* unsharedDocuments(store, state, (run_id) => pruned.attachments.has(run_id))
  yield* step(() => removeAll(store.files, paths))
})
