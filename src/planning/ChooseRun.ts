/**
 * Which run a command works on: pure. A run that was cut off is resumed, a finished one is not repeated,
 * and what older runs left at the service is collected first.
 */
import { RunId } from "../contract/Ids.ts"
import type { RunHeader } from "../ledger/Ledger.ts"

/** For how long after their own run executions that are kept at the service are read again by later runs. */
export const keptReadMaxMs = 30 * 24 * 60 * 60_000

/** An unfinished run younger than this is resumed, whatever its date. */
export const resumeAgeMaxMs = 20 * 60 * 60_000

export type ChosenRun =
  | { readonly _tag: "New"; readonly run_id: RunId }
  | { readonly _tag: "Resume"; readonly run_id: RunId }
  /** The run of this date is finished; the command answers with its exit code. */
  | { readonly _tag: "NothingToDo"; readonly run_id: RunId; readonly exit_code: number }

export interface RunChoice {
  readonly chosen: ChosenRun
  /** Other runs of the job with something still at the service, oldest first. */
  readonly collect: ReadonlyArray<RunId>
}

/** Unfinished: cut off, or ended with tasks or deletions that another try can finish. */
const isUnfinished = ({ ended }: RunHeader): boolean => ended === undefined || ended.exit_code === 4

export const chooseRun = (input: {
  readonly runs: ReadonlyArray<RunHeader>
  readonly job: string
  readonly run_date: string
  readonly now: number
  /** `--new` and `rerun`: another run in any case. */
  readonly further: boolean
}): RunChoice => {
  const { job, run_date, now } = input
  const ofJob = input.runs.filter((run) => run.fact.job === job)
  const parents = new Set(ofJob.flatMap((run) => run.fact.parent ?? []))
  const open = ofJob.findLast((run) => isUnfinished(run) && !parents.has(run.fact.run_id))
  const young = open !== undefined && Math.abs(now - open.at) < resumeAgeMaxMs
  const ofDate = ofJob.filter((run) => run.fact.run_date === run_date)
  const newest = ofDate.at(-1)
  const chosen: ChosenRun = input.further
    ? { _tag: "New", run_id: nextRunId(job, run_date, ofDate) }
    : young
      ? { _tag: "Resume", run_id: open.fact.run_id }
      : newest?.ended !== undefined && newest.ended.exit_code !== 4
        ? { _tag: "NothingToDo", run_id: newest.fact.run_id, exit_code: newest.ended.exit_code }
        : { _tag: "New", run_id: nextRunId(job, run_date, ofDate) }
  const collect = ofJob
    .filter((run) => run.fact.run_id !== chosen.run_id && isToCollect(run, now))
    .map((run) => run.fact.run_id)
  return { chosen, collect }
}

const isToCollect = ({ at, ended }: RunHeader, now: number): boolean =>
  ended === undefined || ended.leftovers || (ended.kept > 0 && now - at < keptReadMaxMs)

/** `<job>.<date>`, then `.2`, `.3` … */
const nextRunId = (job: string, run_date: string, ofDate: ReadonlyArray<RunHeader>): RunId => {
  const taken = new Set(ofDate.map((run) => run.fact.run_id))
  const first = RunId.make(`${job}.${run_date}`)
  if (!taken.has(first)) return first
  for (let number = 2; ; number++) {
    const next = RunId.make(`${first}.${number}`)
    if (!taken.has(next)) return next
  }
}
