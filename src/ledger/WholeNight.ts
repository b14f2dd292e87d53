/**
 * All runs of one night as one: the first run, its reruns and forced further runs. The newest run that had a
 * task decides about it; what the earlier ones did stays part of the night. A run of a part of the job is of
 * no night: with its own reruns, it stands alone.
 */
import { Effect } from "effect"
import { exitOf } from "../service/EndTable.ts"
import type { RunId } from "../service/Ids.ts"
import { exitCodes } from "../messages/ExitCodes.ts"
import type { RunHeader } from "./FoldRun.ts"
import type { Ledger, LedgerFailed } from "./Ledger.ts"
import { awaitsDocuments, subjectOf, verdictOfTask } from "./RunState.ts"
import type { RunBrief, RunState, TaskBrief } from "./RunState.ts"

/** It asks for everything that its job names: neither a rerun nor a part. */
export const isOfWholeJob = ({
  parent,
  part,
}: Partial<Record<"parent" | "part", string | undefined>>): boolean =>
  parent === undefined && part === undefined

/** The headers of the runs that belong to the same night, or the same part, as this run, oldest first. */
export const runsOfNight = (
  runs: ReadonlyArray<RunHeader>,
  { job, run_date, part }: Pick<RunHeader["fact"], "job" | "run_date" | "part">,
): ReadonlyArray<RunHeader> =>
  runs.filter(({ fact }) => fact.job === job && fact.run_date === run_date && fact.part === part)

/** In their order. */
export const statesOf = Effect.fnUntraced(function* (
  ledger: Ledger["Service"],
  headers: ReadonlyArray<RunHeader>,
) {
  const states = yield* Effect.forEach(headers, ({ fact }) => ledger.state(fact.run_id))
  return states.filter((state) => state !== undefined)
})

/** All runs of the night that a run belongs to, oldest first; `read` reads the others. */
export const nightAround = Effect.fnUntraced(function* <Run extends Pick<RunState, "started">>(
  ledger: Ledger["Service"],
  run: Run,
  read: (run_id: RunId) => Effect.Effect<Run | undefined, LedgerFailed>,
) {
  const headers = runsOfNight(yield* ledger.runs, run.started)
  const night = yield* Effect.forEach(headers, ({ fact: { run_id } }) =>
    run_id === run.started.run_id ? Effect.succeed(run) : read(run_id),
  )
  return night.filter((one) => one !== undefined)
})

/** Each task of the night as the newest run that had it left it, by subject. */
export const newestTasks = <T extends TaskBrief>(
  runs: ReadonlyArray<{ readonly tasks: ReadonlyMap<string, T> }>,
): ReadonlyMap<string, T> =>
  new Map(runs.flatMap(({ tasks }) => [...tasks.values()].map((task) => [subjectOf(task), task] as const)))

/**
 * The features of each task that are in the tables after these runs, although the task did not succeed, by
 * subject. What a later run asked for again counts as that run left it; what only a version that is held back
 * contains is not in the tables.
 */
export const deliveredInNight = (runs: ReadonlyArray<RunState>): ReadonlyMap<string, ReadonlySet<string>> => {
  const found = new Map<string, Set<string>>()
  for (const { tasks, published, held } of runs) {
    const told = held === undefined ? (published?.fact.delivered ?? []) : []
    const byTask = new Map(told.map(({ task_id, features }) => [task_id, features]))
    for (const task of tasks.values()) {
      const { task_id, features } = task.planned
      const delivered = found.get(subjectOf(task)) ?? new Set()
      for (const code of features) delivered.delete(code)
      for (const code of byTask.get(task_id) ?? []) delivered.add(code)
      found.set(subjectOf(task), delivered)
    }
  }
  return found
}

/** Bodies that are missing from the tables, of tasks that no later run ran again. */
const isWhole = (runs: ReadonlyArray<RunBrief>): boolean => {
  const newest = new Set([...newestTasks(runs).values()].map(({ planned }) => planned.task_id))
  return runs.every(
    ({ held, published }) =>
      held === undefined && (published?.fact.left_out ?? []).every(({ task_id }) => !newest.has(task_id)),
  )
}

/** What a task adds to the exit code of its run: also of one that succeeded, a document may be left. */
export const exitOfTask = (task: TaskBrief): ReturnType<typeof exitOf> =>
  awaitsDocuments(task) ? exitCodes.leftovers : exitOf(verdictOfTask(task).outcome)

/** A publication found data that is older than `error_after` of its job. */
export const isTooOld = ({ published }: Pick<RunState, "published">): boolean =>
  published?.fact.stale?.failed !== undefined

/** The exit code of a night; undefined while one of its runs has not ended. */
export const nightExitCode = (runs: ReadonlyArray<RunBrief>): number | undefined => {
  const ends = runs.flatMap(({ ended }) => ended ?? [])
  if (ends.length < runs.length) return undefined
  if (ends.length === 1) return ends[0]?.exit_code
  const codes = [...newestTasks(runs).values()].map(exitOfTask)
  // What is held back waits for a person: no rerun finishes it.
  const isLeft = ({ ended, held }: RunBrief) =>
    ended?.leftovers === true && (held === undefined || ended.exit_code === exitCodes.leftovers)
  if (codes.includes(exitCodes.leftovers) || runs.some(isLeft)) return exitCodes.leftovers
  if (codes.length === 0) return ends.at(-1)?.exit_code
  const newest = runs.findLast(({ published }) => published !== undefined)
  if (newest !== undefined && isTooOld(newest)) return exitCodes.peopleMustAct
  // With `exit_on: new` a run ends with 0 in spite of trouble that is not new.
  if (ends.every(({ exit_code }) => exit_code === exitCodes.ok)) return exitCodes.ok
  return isWhole(runs) && codes.every((code) => code === exitCodes.ok)
    ? exitCodes.ok
    : exitCodes.peopleMustAct
}
