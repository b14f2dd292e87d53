/**
 * The pipeline, from top to bottom: which run, what an older run left, the plan, the executions, the
 * tables, the deletions, the end. Every stage reads the ledger and writes to it; a run that was cut off is
 * resumed here.
 */
import { resolve } from "node:path"
import { Clock, Duration, Effect, Fiber, Schema } from "effect"
import { given } from "../base/Schemas.ts"
import { askedWait, retryCall } from "../client/Pacing.ts"
import { Service, type CallFailure } from "../client/Service.ts"
import { serviceNameOf, type Job } from "../jobs/Job.ts"
import { foldRun } from "../ledger/FoldRun.ts"
import { append, Ledger } from "../ledger/Ledger.ts"
import type { RunStarted } from "../ledger/RunFacts.ts"
import { keptOf, type RunState } from "../ledger/RunState.ts"
import { isOfWholeJob, nightAround, nightExitCode, statesOf } from "../ledger/WholeNight.ts"
import { exitCodes } from "../messages/ExitCodes.ts"
import {
  compareRun,
  comparedBefore,
  countChanges,
  doubtfulSubjects,
  hasRecovered,
  newsOf,
  runsBefore,
  standingsAfter,
} from "../report/Changes.ts"
import type { News, Standing } from "../report/Changes.ts"
import { alarmCodeOf, hasLeftovers } from "../report/Finish.ts"
import { chooseNight, collectBefore, type NightChoice } from "./ChooseNight.ts"
import { leftOpenBeside } from "./JobTurns.ts"
import {
  askedBy,
  planJob,
  planningFacts,
  removedFacts,
  rulesOf,
  sessionsToPull,
  sourceFacts,
  worksOf,
} from "./PlanJob.ts"
import type { JobPlan } from "./PlanJob.ts"
import { mayHaveInterims, publishMeanwhile, publishStage, runIn } from "./PublishMeanwhile.ts"
import { RunId } from "../service/Ids.ts"
import { Publisher, PublishFailed } from "../tables/Publisher.ts"
import { findLostBodies } from "../tables/RunPicture.ts"
import { deleteAll, dueDeletions, noteLostDocuments } from "../task/DeleteExecutions.ts"
import { deletingUntil } from "../task/Ending.ts"
import { executeRun } from "../task/ExecuteRun.ts"
import { isCollectedBy, isToCollect, leftByEarlierRuns } from "../task/ChooseRun.ts"
import { runsAhead, waitsUntil, type Request } from "../task/ChooseRun.ts"
import { readLostAgain } from "../task/LostBodies.ts"
import { leftElsewhere } from "../task/MovedService.ts"
import { writtenOutIn } from "../task/Plan.ts"
import { tell } from "../task/Progress.ts"
import type { Mode } from "../task/Next.ts"
import { endingFacts } from "../tokens/TokenLogin.ts"

// The runs that a run is compared with, read from the ledger: how everybody stood before it began. The end of
// a run and its report both need them.

/** Those that it is compared with, oldest first, and the newest one before it. */
export const earlierRuns = Effect.fn("EarlierRuns.load")(function* (run_id: RunId) {
  const ledger = yield* Ledger
  const headers = yield* ledger.runs
  const before = yield* statesOf(ledger, runsBefore(headers, run_id))
  return { before, previous: comparedBefore(headers, run_id).at(-1) }
})

/** The run as it was when its end was last told, which is after it was published. */
const lastEnd = Effect.fnUntraced(function* ({ started, stages, ended }: RunState) {
  if (stages.resumed === undefined && ended === undefined) return undefined
  const ledger = yield* Ledger
  const facts = yield* ledger.facts(started.run_id)
  const at = facts.findLastIndex(({ fact }) => fact._tag === "OutcomePublished")
  return at === -1 ? undefined : foldRun(facts.slice(0, at + 1))
})

/** As many as a night of an outage may have before it. */
const olderRunsMax = 8

/** How these subjects stood when they last came to an end before a run, some runs back. */
const standingsBefore = Effect.fnUntraced(function* (run: RunState, subjects: ReadonlySet<string>) {
  const found = new Map<string, Standing>()
  if (subjects.size === 0) return found
  const ledger = yield* Ledger
  const older = comparedBefore(yield* ledger.runs, run.started.run_id)
  for (const header of older.slice(-olderRunsMax).toReversed()) {
    if (found.size === subjects.size) break
    const standings = standingsAfter(yield* statesOf(ledger, [header]))
    for (const [subject, standing] of standings)
      if (subjects.has(subject) && standing.outcome !== "unfinished" && !found.has(subject))
        found.set(subject, standing)
  }
  return found
})

/**
 * What nobody was told of yet: compared with the runs before it, with its own end before it was resumed, and,
 * for whom an outage kept from an end, with the nights before that.
 */
const newsSince = Effect.fnUntraced(function* (run: RunState, before: ReadonlyArray<RunState>) {
  const told = yield* lastEnd(run)
  const runs = told === undefined ? before : [...before, told]
  const [first] = runs
  const older = first === undefined ? new Map() : yield* standingsBefore(first, doubtfulSubjects(run, runs))
  return { told, news: newsOf(run, { runs, older }) }
})

/** An older run that cannot be read any more is no reason to leave this one without its end. */
export const changesOf = (state: RunState) =>
  Effect.gen(function* () {
    const { before, previous } = yield* earlierRuns(state.started.run_id)
    const { told, news } = yield* newsSince(state, before)
    return {
      changes: countChanges(compareRun(state, before)),
      recovered: hasRecovered(state, told === undefined ? before : [...before, told], told ?? previous),
      news,
    }
  }).pipe(
    Effect.orElseSucceed(() => ({
      changes: undefined,
      recovered: false,
      news: newsOf(state, { runs: [], older: new Map() }),
    })),
  )

// Before anything starts: a refused secret or an unreachable service must not cost an attempt. A night that
// waits for its service is recorded at once, so that none is lost without a trace.

/** Nothing was started: the service refuses the application secret, or cannot be reached. */
export class ServiceRefused extends Schema.TaggedError<ServiceRefused>()("ServiceRefused", {
  message: Schema.String,
}) {}

/** How long a service may fail before the run of a night says that it waits for it. */
const unsaidMax = Duration.minutes(1)

/** `untilAt`: who waits for the service until then gives it up sooner only if it asks for more. */
const givenUp = (failure: CallFailure, untilAt: number | undefined): ServiceRefused => {
  const asked = askedWait(failure)
  if (failure._tag !== "Throttled" || Duration.isZero(asked))
    return new ServiceRefused({ message: failure.message })
  const wait = Duration.format(Duration.seconds(Math.ceil(Duration.toSeconds(asked))))
  const over = untilAt === undefined ? "" : `, and the night ends at ${new Date(untilAt).toISOString()}`
  return new ServiceRefused({ message: `it asks to wait ${wait} (${failure.http_status})${over}` })
}

/** Returns whether `begun`, the beginning of the run, is in the ledger. */
export const reachService = Effect.fn("ReachService.reach")(function* <E, R>({
  untilAt,
  begun,
  giveUp,
}: {
  /** Milliseconds since the epoch; undefined: a few tries are enough. */
  readonly untilAt: number | undefined
  /** The beginning of a run that is recorded even if the service cannot be reached. */
  readonly begun?: typeof RunStarted.Type
  /** Ends such a run. */
  readonly giveUp: Effect.Effect<void, E, R>
}) {
  const { listEngines } = yield* Service
  const unsaidUntil = (yield* Clock.currentTimeMillis) + Duration.toMillis(unsaidMax)
  const soon = untilAt === undefined ? {} : { untilAt: Math.min(untilAt, unsaidUntil) }
  const first = yield* Effect.result(retryCall(listEngines, { triesMax: 4, ...soon }))
  if (first._tag === "Success") return false
  const { failure } = first
  if (begun !== undefined) yield* (yield* Ledger).append([begun])
  const soonest = (yield* Clock.currentTimeMillis) + Duration.toMillis(askedWait(failure))
  const waiting =
    untilAt === undefined || failure._tag === "SecretRefused" || soonest > untilAt
      ? Effect.fail(failure)
      : Effect.andThen(
          tell({ _tag: "ServiceAway", message: failure.message, until: untilAt }),
          retryCall(listEngines, { triesMax: Infinity, untilAt, isAway: true }),
        )
  yield* Effect.mapError(waiting, (last) => givenUp(last, untilAt)).pipe(
    Effect.tapError(() => (begun === undefined ? Effect.void : giveUp)),
  )
  return begun !== undefined
})

export interface NightOptions extends Request {
  readonly toolVersion: string
}

export interface NightResult {
  readonly run_id: RunId
  /** Of the whole night, reruns included; a run that was forced or is a rerun answers for itself. */
  readonly exit_code: number
  /** All runs of the night, oldest first. */
  readonly night: ReadonlyArray<RunState>
  /** The run itself. */
  readonly state: RunState
  /** There was trouble before this run, and now there is none. */
  readonly recovered: boolean
  /** Trouble that nobody was told of before. */
  readonly news: ReadonlyArray<News>
  readonly nothingToDo: boolean
  /** Older runs whose landed bodies are damaged: they are not published, and nothing of them is deleted. */
  readonly unpublished: ReadonlyArray<Unpublished>
  /** Older runs that came to their end on the way: collected, or no longer held back. */
  readonly others: ReadonlyArray<NightResult>
}

export interface Unpublished {
  readonly run_id: RunId
  readonly why: string
}

/** Fails only if nothing could be decided or written; everything else is in the result. */
export const runNight = Effect.fn("Nightly.runNight")(function* (job: Job, options: NightOptions) {
  const ledger = yield* Ledger
  const now = yield* Clock.currentTimeMillis
  const { further } = options
  const choice = yield* chooseNight(job, options)
  const { part, chosen, collect, parent } = choice
  if (chosen._tag === "NothingToDo" && collect.length === 0) return yield* finished(chosen.run_id)
  const ahead = runsAhead(yield* ledger.runs, now).at(-1)?.fact.run_id
  const place = { run_id: chosen.run_id, began_at: Math.trunc(now), ...given({ ahead }) }
  const begun = startedFact(job, place, choice, options.toolVersion)
  // A rerun needs no trace: its night has one, and the next `run` starts what the rerun was to start.
  const leavesTrace = chosen._tag === "New" && job.night !== undefined && isOfWholeJob({ parent, part })
  const isRecorded = yield* reachService({
    // A part holds up no night.
    untilAt: part === undefined ? waitsUntil(now, job) : undefined,
    ...(leavesTrace ? { begun } : {}),
    giveUp: endUnserved(chosen.run_id),
  })
  const { collected, only } = yield* collectBefore(job, choice, collectRuns(job, collect))
  const { ended, unpublished } = collected
  const withOlder = (result: NightResult) =>
    Effect.map(withOthers(result, [...ended, ...result.others]), (whole) => ({
      ...whole,
      unpublished,
      exit_code: unpublished.length === 0 ? whole.exit_code : exitCodes.leftovers,
    }))
  if (chosen._tag === "NothingToDo") return yield* withOlder(yield* finished(chosen.run_id))
  // All that a rerun was asked for was still going on, or not all here: now it is collected.
  if (parent !== undefined && only?.size === 0)
    return newestEnded(yield* withOlder(yield* finished(RunId.make(parent))))
  const plan = chosen._tag === "New" && !isRecorded ? yield* beginRun(job, begun, only) : undefined
  if (chosen._tag === "Resume") yield* ledger.append([{ _tag: "RunResumed", run_id: chosen.run_id }])
  const result = yield* runStages(job, chosen.run_id, "night", plan)
  return yield* withOlder(further ? { ...result, exit_code: ownExitCode(result.state) } : result)
})

/** What older runs left. One with a damaged body waits for a copy of it; the run of this night does not. */
const collectRuns = Effect.fnUntraced(function* (job: Job, collect: ReadonlyArray<RunId>) {
  const ended: Array<NightResult> = []
  const unpublished: Array<Unpublished> = []
  for (const run_id of collect) {
    const collected = yield* Effect.result(runStages(job, run_id, "collect"))
    if (collected._tag === "Success") {
      const { others, nothingToDo } = collected.success
      ended.push(...others, ...(nothingToDo ? [] : [collected.success]))
    } else if (isBodyDamaged(collected.failure)) unpublished.push({ run_id, why: collected.failure.message })
    else return yield* collected.failure
  }
  return { ended, unpublished }
})

/** A full disk or a damaged ledger must not look like it. */
const isBodyDamaged = (failure: { readonly _tag: string }): failure is PublishFailed =>
  failure instanceof PublishFailed && failure.damaged === true && failure.isLedger !== true

const loadRun = (run_id: RunId) => Effect.flatMap(Ledger, (ledger) => runIn(ledger, run_id))

/** Its documents may be lost since they were downloaded. What is published is then published `again`. */
const lookAtRun = Effect.fnUntraced(function* (run_id: RunId, again?: typeof publishStage) {
  const run = yield* loadRun(run_id)
  if (!(yield* noteLostDocuments(run))) return run
  return yield* Effect.andThen(again?.(run_id) ?? Effect.void, loadRun(run_id))
})

const finished = Effect.fnUntraced(function* (run_id: RunId) {
  return yield* resultOf(yield* loadRun(run_id), true)
})

/** The others with their nights as they are now: runs of one night may have ended after each other. */
const withOthers = Effect.fnUntraced(function* (result: NightResult, ended: ReadonlyArray<NightResult>) {
  const others = yield* Effect.forEach(new Map(ended.map((one) => [one.run_id, one])), ([run_id, told]) =>
    Effect.flatMap(loadRun(run_id), (state) => resultOf(state, false, told)),
  )
  return { ...result, others } satisfies NightResult as NightResult
})

/** Of a rerun that only collected: the run of its night that came to its end by that, if one did. */
const newestEnded = (result: NightResult): NightResult => {
  const { exit_code, unpublished, night, others } = result
  const newest = others.findLast((one) => night.some(({ started }) => started.run_id === one.run_id))
  if (newest === undefined) return result
  return { ...newest, exit_code, unpublished, others: others.filter((one) => one !== newest) }
}

const ownExitCode = ({ ended }: RunState): number => ended?.exit_code ?? exitCodes.leftovers

const resultOf = Effect.fnUntraced(function* (
  state: RunState,
  nothingToDo: boolean,
  { recovered, news }: Pick<NightResult, "recovered" | "news"> = { recovered: false, news: [] },
) {
  const ledger = yield* Ledger
  const night = yield* nightAround(ledger, state, ledger.state)
  const exit_code = nightExitCode(night) ?? exitCodes.leftovers
  const { run_id } = state.started
  const about = { run_id, exit_code, night, state, recovered, news, nothingToDo }
  return { ...about, unpublished: [], others: [] } satisfies NightResult as NightResult
})

const startedFact = (
  job: Job,
  place: Pick<typeof RunStarted.Type, "run_id" | "began_at" | "ahead">,
  { run_date, missed, part, parent }: NightChoice,
  tool_version: string,
): typeof RunStarted.Type => ({
  _tag: "RunStarted",
  ...place,
  job: job.name,
  // Absolute, so that `rerun` finds the job from any folder.
  job_path: resolve(job.path),
  run_date,
  tool_version,
  service: serviceNameOf(job.service),
  ...given({ parent, part }),
  ...(job.replaces === undefined || job.replaces.length === 0 ? {} : { replaces: job.replaces }),
  ...(missed.length === 0 ? {} : { missed }),
})

/** A run of a night that the service kept from beginning: it has no tasks, and the next `run` resumes it. */
const endUnserved = Effect.fnUntraced(function* (run_id: RunId) {
  yield* append({ _tag: "RunEnded", run_id, exit_code: exitCodes.refused, leftovers: false })
  yield* publishStage(run_id)
  yield* append({ _tag: "OutcomePublished", run_id })
})

/** The start and the whole plan are one transaction: a run either exists with all its tasks or not at all. */
const beginRun = Effect.fnUntraced(function* (
  job: Job,
  begun: typeof RunStarted.Type,
  only: NightChoice["only"],
) {
  const { run_id } = begun
  const plan = yield* planJob(job, run_id, only)
  yield* append(
    begun,
    ...sourceFacts(job, run_id, undefined),
    ...planningFacts(plan, undefined),
    ...endingFacts(plan, undefined),
  )
  return plan
})

const runStages = Effect.fn("Nightly.runStages")(function* (
  job: Job,
  run_id: RunId,
  mode: Mode,
  plan?: JobPlan,
) {
  const begunAt = yield* Clock.currentTimeMillis
  const before = mode === "collect" ? yield* loadRun(run_id) : undefined
  yield* executeStage(job, { run_id, mode, begunAt }, plan)
  if (before !== undefined && (yield* isAsBefore(job, run_id, before))) return yield* finished(run_id)
  return yield* publishAndFinish(job, run_id, begunAt)
})

/** Lets a run through that a gate holds back: it is published, deleted at the service and ended. */
export const acceptRun = Effect.fn("Nightly.acceptRun")(function* (job: Job, run_id: RunId) {
  yield* append({ _tag: "RunAccepted", run_id })
  return yield* publishAndFinish(job, run_id, yield* Clock.currentTimeMillis)
})

/** Runs that were held back until this version are ended first. Lost bodies are read again, if possible. */
const publishAndFinish = Effect.fnUntraced(function* (job: Job, run_id: RunId, begunAt: number) {
  const publish = Effect.gen(function* () {
    const released = yield* publishStage(run_id)
    const ended = yield* Effect.forEach(released, (earlier) => finishRun(job, earlier, begunAt))
    return yield* withOthers(yield* finishRun(job, run_id, begunAt), ended)
  })
  return yield* Effect.catchIf(publish, isBodyDamaged, (failure) =>
    Effect.gen(function* () {
      const run = yield* loadRun(run_id)
      const lost = yield* findLostBodies(run)
      if (!(yield* readLostAgain(run, serviceNameOf(job.service), lost))) return yield* failure
      // Reads what is closed, and starts nothing.
      yield* executeStage(job, { run_id, mode: "collect", begunAt })
      return yield* publish
    }),
  )
})

const finishRun = Effect.fnUntraced(function* (job: Job, run_id: RunId, begunAt: number) {
  if (job.after_export === "delete") {
    yield* tell({ _tag: "Stage", run_id, stage: "deleting" })
    const run = yield* lookAtRun(run_id, publishStage)
    const { deadlineAt } = rulesOf(job, run.started_at, begunAt)
    const untilAt = deletingUntil(deadlineAt, begunAt, yield* Clock.currentTimeMillis)
    yield* deleteAll({ run, here: serviceNameOf(job.service) }, dueDeletions(run), untilAt)
  }
  return yield* endStage(job, run_id)
})

/** Without news it stays as it is; but one that was let through and cut off gets its new end. */
const isAsBefore = Effect.fnUntraced(function* (job: Job, run_id: RunId, before: RunState) {
  const state = yield* loadRun(run_id)
  const { ended, held } = state
  const isUnchanged = ended !== undefined && state.newest === before.newest
  const isEnded = state.accepted !== true && ended?.leftovers === (held !== undefined)
  return isUnchanged && isEnded && !hasLeftovers(state, job.after_export)
})

const executeStage = Effect.fnUntraced(function* (
  job: Job,
  { run_id, mode, begunAt }: { readonly run_id: RunId; readonly mode: Mode; readonly begunAt: number },
  begun?: JobPlan,
) {
  const plan = begun ?? (yield* planAgain(job, run_id, mode))
  const run = yield* lookAtRun(run_id)
  // Of a run that is only collected, nothing is sent.
  const writtenOut = mode === "night" ? writtenOutIn(plan.plan) : undefined
  yield* tell({ _tag: "Planned", run_id, ...given({ writtenOut }) })
  const executing = executeRun({
    run,
    works: yield* worksOf(plan, run),
    sessions: sessionsToPull(run),
    rules: rulesOf(job, run.started_at, begunAt),
    mode,
    elsewhere: mode === "night" ? yield* leftOpenBeside(run_id) : [],
  })
  const every = mode === "night" && mayHaveInterims(run) ? job.publish?.every : undefined
  if (every === undefined) return yield* executing
  // On its own: whatever becomes of it, the run goes on.
  const meanwhile = yield* Effect.forkChild(publishMeanwhile(run, every))
  yield* Effect.ensuring(executing, Fiber.interrupt(meanwhile))
})

/** Of a run that began earlier: a rerun keeps the tasks that it began with, a collected run its own. */
const planAgain = Effect.fnUntraced(function* (job: Job, run_id: RunId, mode: Mode) {
  const ledger = yield* Ledger
  const run = yield* loadRun(run_id)
  const mayGrow = mode === "night" && run.started.parent === undefined
  const plan = yield* planJob(job, run_id, mayGrow ? undefined : askedBy(run))
  yield* ledger.append(sourceFacts(job, run_id, run))
  if (mode === "night")
    yield* ledger.append([...planningFacts(plan, run), ...removedFacts(job, run), ...endingFacts(plan, run)])
  return plan
})

/** What runs of the job, up to the one that began then, have left at another service than it names now. */
const runsElsewhere = Effect.fnUntraced(function* (job: Job, sequence: number) {
  const ledger = yield* Ledger
  const now = yield* Clock.currentTimeMillis
  const runs = (yield* ledger.runs).filter(
    (run) => isCollectedBy(job, run.fact.job) && run.seq <= sequence && isToCollect(run, now),
  )
  const states = yield* statesOf(ledger, runs)
  return states.flatMap((run) => leftElsewhere(run, serviceNameOf(job.service), job.after_export))
})

/**
 * The end is a fact before it is published, so that the tables contain it. It only counts once it is
 * published: after a kill in between, the next `run` resumes this one.
 */
const endStage = Effect.fnUntraced(function* (job: Job, run_id: RunId) {
  const ledger = yield* Ledger
  const publisher = yield* Publisher
  const state = yield* loadRun(run_id)
  const { changes, ...told } = yield* changesOf(state)
  const exit_code = alarmCodeOf(state, job, changes)
  const isHeld = state.held !== undefined
  // Until it is published after all, later runs of the job look at a run that is held back.
  const leftovers = isHeld || hasLeftovers(state, job.after_export)
  const kept = [...state.tasks.values()].flatMap(keptOf).length
  const before = leftByEarlierRuns(yield* ledger.runs, job, state.started.run_date)
  const { after_export } = job
  const setting = after_export === "keep" ? { after_export } : {}
  const keptInAll = kept + (before.kept_before?.executions ?? 0)
  const unread = job.flow_results.enabled || keptInAll === 0 ? undefined : keptInAll
  const left = yield* runsElsewhere(job, state.sequence)
  const elsewhere = left.length === 0 ? undefined : left
  const end = {
    _tag: "RunEnded",
    run_id,
    kept,
    ...setting,
    ...before,
    ...given({ unread, elsewhere }),
  } as const
  yield* ledger.append([{ ...end, exit_code, leftovers, ...given({ changes }) }])
  if (!isHeld)
    yield* publisher
      .publishOutcome(run_id)
      .pipe(Effect.tapError(() => ledger.append([{ ...end, exit_code: 4, leftovers: true }])))
  yield* ledger.append([{ _tag: "OutcomePublished", run_id }])
  yield* tell({ _tag: "Stage", run_id, stage: "ended" })
  return yield* resultOf(yield* loadRun(run_id), false, told)
})
