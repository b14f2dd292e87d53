/**
 * Which run a command works on: pure. A run that was cut off is resumed, a finished one is not repeated,
 * and what older runs left at the service is collected first.
 */
import { RunId } from "../service/Ids.ts"
import type { Job } from "../jobs/Job.ts"
import type { RunHeader } from "../ledger/FoldRun.ts"
import { exitCodes } from "../messages/ExitCodes.ts"
import { runsOfNight } from "../ledger/WholeNight.ts"
import { deadlineOf, runDateAt } from "./NightOf.ts"
import type { JobTimes } from "./NightOf.ts"

/** For how long after their own run executions that are kept at the service are read again by later runs. */
export const keptReadMaxMs = 30 * 24 * 60 * 60_000

/** An unfinished run younger than this is resumed, whatever its date. */
export const resumeAgeMaxMs = 20 * 60 * 60_000

export type ChosenRun =
  | { readonly _tag: "New"; readonly run_id: RunId }
  | { readonly _tag: "Resume"; readonly run_id: RunId }
  /** The run of this date is finished, or its deadline has passed. */
  | { readonly _tag: "NothingToDo"; readonly run_id: RunId }

export interface RunChoice {
  /** The date of the run that is chosen if it is new. */
  readonly run_date: string
  readonly chosen: ChosenRun
  /** Runs of the job that start nothing more but have something still at the service, oldest first. */
  readonly collect: ReadonlyArray<RunId>
}

/** Cut off, ended with tasks or deletions that another try can finish, or never begun at the service. */
const isUnfinished = ({ ended }: RunHeader): boolean =>
  ended === undefined || ended.exit_code === exitCodes.leftovers || ended.exit_code === exitCodes.refused

/**
 * Whether `run` may start tasks of an older run again. A job with `night` resumes the run of this night only.
 * Otherwise a run is resumed for some hours, but not after its deadline: nothing more of it would start. A
 * rerun is as old as the first run of its date, so that it never takes the place of the next night's run.
 */
export const isResumable = (
  job: JobTimes,
  { at, fact }: RunHeader,
  first: RunHeader | undefined,
  { run_date, now }: { readonly run_date: string; readonly now: number },
): boolean => {
  if (job.night !== undefined) return fact.run_date === run_date
  const begunAt = fact.parent === undefined ? at : (first?.at ?? at)
  return Math.abs(now - begunAt) < resumeAgeMaxMs && !isPastDeadline(job, at, now)
}

const isPastDeadline = (job: JobTimes, started_at: number, now: number): boolean => {
  const deadlineAt = deadlineOf(job, { started_at, now })
  return deadlineAt !== undefined && deadlineAt <= now
}

export const chooseRun = (input: {
  readonly runs: ReadonlyArray<RunHeader>
  readonly job: JobTimes & Pick<Job, "name">
  readonly now: number
  /** For how long the command waited for the folder: it means the night in which it was given. */
  readonly waitedMs?: number | undefined
  /** `--new` and `rerun`: another run in any case. */
  readonly further: boolean
  /** The run that is rerun: the further run belongs to the same night, whenever it begins. */
  readonly parent?: string | undefined
}): RunChoice => {
  const { job, now, waitedMs = 0 } = input
  const ofJob = input.runs.filter((run) => run.fact.job === job.name)
  const run_date =
    ofJob.find(({ fact }) => fact.run_id === input.parent)?.fact.run_date ?? runDateAt(now - waitedMs, job)
  const parents = new Set(ofJob.flatMap((run) => run.fact.parent ?? []))
  const open = ofJob.findLast((run) => isUnfinished(run) && !parents.has(run.fact.run_id))
  const ofDate = ofJob.filter((run) => run.fact.run_date === run_date)
  const newest = ofDate.at(-1)
  const chosen: ChosenRun = input.further
    ? { _tag: "New", run_id: nextRunId(job.name, run_date, ofDate) }
    : open !== undefined && isResumable(job, open, runsOfNight(ofJob, open.fact)[0], { run_date, now })
      ? { _tag: "Resume", run_id: open.fact.run_id }
      : newest !== undefined && isOver(job, newest, now)
        ? { _tag: "NothingToDo", run_id: newest.fact.run_id }
        : { _tag: "New", run_id: nextRunId(job.name, run_date, ofDate) }
  const startsNothing = (run: RunHeader) =>
    run.fact.run_id !== chosen.run_id || (chosen._tag === "NothingToDo" && isUnfinished(run))
  const collect = ofJob
    .filter((run) => startsNothing(run) && isToCollect(run, now))
    .map((run) => run.fact.run_id)
  return { run_date, chosen, collect }
}

/** Finished, or nothing more of it can start. */
const isOver = (job: JobTimes, run: RunHeader, now: number): boolean =>
  !isUnfinished(run) || isPastDeadline(job, run.at, now)

/** Whether later runs still ask for what a run left at the service. */
export const isToCollect = ({ at, ended }: RunHeader, now: number): boolean =>
  ended === undefined || ended.leftovers || (ended.kept > 0 && now - at < keptReadMaxMs)

/** `<job>.<date>`, then `.2`, `.3` … */
export const nextRunId = (job: string, run_date: string, ofDate: ReadonlyArray<RunHeader>): RunId => {
  const taken = new Set(ofDate.map((run) => run.fact.run_id))
  const first = RunId.make(`${job}.${run_date}`)
  if (!taken.has(first)) return first
  for (let number = 2; ; number++) {
    const next = RunId.make(`${first}.${number}`)
    if (!taken.has(next)) return next
  }
}
