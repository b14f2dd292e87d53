/**
 * The one command that finishes what a run left, as a person copies it from the terminal, from summary.json
 * or from the report, and why: pure. Where people have to act first, it says so, and which command is due
 * then.
 */
import { counted, shellWord } from "../base/Text.ts"
import type { Job } from "../jobs/Job.ts"
import {
  awaitsDocuments,
  isOpenAtService,
  pendingDeletions,
  subjectOf,
  verdictOfTask,
} from "../ledger/RunState.ts"
import type { RunBrief, RunState, TaskBrief, TaskState } from "../ledger/RunState.ts"
import { exitOfTask, isTooOld, newestTasks, nightExitCode } from "../ledger/WholeNight.ts"
import { exitCodes } from "../messages/ExitCodes.ts"
import type { RunChanges } from "./Changes.ts"
import type { exitOf, Outcome } from "../service/EndTable.ts"
import { rowOf, rowOfEnd } from "../service/Ends.ts"

// The exit code of a finished run: pure. 4 takes precedence over 3, because what a rerun can finish comes
// first, and what needs a person will still be there afterwards.

/**
 * 0: everything succeeded. 3: some tasks need the customer or an engineer. 4: something is left that a
 * rerun can finish.
 */
type RunExitCode = ReturnType<typeof exitOf>

export const exitCodeOf = (run: RunState, after_export: "delete" | "keep"): RunExitCode => {
  const codes = [...run.tasks.values()].map(exitOfTask)
  if (codes.includes(4)) return 4
  if (after_export === "delete" && pendingDeletions(run) > 0) return 4
  return isPublishedWhole(run) && codes.every((code) => code === 0) ? 0 : 3
}

/** Nothing of it was held back by a gate or left out. */
const isPublishedWhole = ({ held, published }: RunState): boolean =>
  held === undefined && (published?.fact.left_out ?? []).length === 0

/**
 * The same for a job that decides which trouble is an alarm. With `exit_on: new`, trouble that the run before
 * had too, for the same reason, ends with 0; something left, a version that is held back, a body that is not
 * in the tables, and a run that cannot be compared do not. Nor does data that is older than `error_after` of
 * `freshness`.
 */
export const alarmCodeOf = (
  run: RunState,
  { after_export, exit_on }: Pick<Job, "after_export" | "exit_on">,
  changes: RunChanges | undefined,
): RunExitCode => {
  const code = exitCodeOf(run, after_export)
  if (isTooOld(run)) return code === 0 ? 3 : code
  return exit_on === "new" && code === 3 && isPublishedWhole(run) && changes?.new === 0 ? 0 : code
}

/** Whether the service still has something of this run that a later run has to collect or delete. */
export const hasLeftovers = (run: RunState, after_export: "delete" | "keep"): boolean =>
  [...run.tasks.values()].some(isLeftAtService) || (after_export === "delete" && pendingDeletions(run) > 0)

const isLeftAtService = ({ settled, attempts }: TaskState): boolean =>
  settled === undefined || settled.fact.reason === "RESULTS_PARTIAL" || attempts.some(isOpenAtService)

export interface Finish {
  readonly command: string | undefined
  /** A sentence; with a command, it ends with a colon. */
  readonly why: string
}

export const nothingLeft = "Nothing is left to do."

/**
 * Of the run; once it left nothing to finish, of its whole night. `output` is the folder that a command has
 * to name, if there is one.
 */
export const finishOf = (run: RunBrief, night: ReadonlyArray<RunBrief>, output?: string): Finish => {
  const there = output === undefined ? "" : ` --output ${shellWord(output)}`
  const again = `nightjar run ${shellWord(run.started.job_path)}${there}`
  const own = run.ended?.exit_code
  // No command collects what a part left, but the one that begins or resumes the night.
  const isPart = run.started.part !== undefined
  if (own === undefined) {
    const open = "The run has not ended. If no process is working on it,"
    return isPart
      ? { command: undefined, why: `${open} ${partLeft}` }
      : { command: again, why: `${open} this command resumes it:` }
  }
  if (own === exitCodes.refused && night.at(-1)?.started.run_id === run.started.run_id)
    return { command: again, why: "The service could not be used. This command begins the run again:" }
  const code = nightExitCode(night)
  if (code !== undefined && code !== exitCodes.leftovers)
    return { command: undefined, why: byHand(night, code, there) }
  // A run that left nothing itself has not all the tasks that others of its night left; the first one has.
  const [first = run] = night
  const of = own === exitCodes.leftovers ? run : first
  const left = tasksLeft(of, night)
  const rerun = (tasks: ReadonlyArray<{ readonly reason: string }>): string => {
    const reasons = [...new Set(tasks.map(({ reason }) => reason))].toSorted()
    const only = reasons.map((reason) => ` --only ${shellWord(reason)}`)
    return `nightjar rerun ${of.started.run_id}${only.join("")}${there}`
  }
  const endedAt = run.ended?.at ?? 0
  const later = left.flatMap(({ reason, not_before }) =>
    typeof not_before === "number" && not_before > endedAt ? [{ reason, not_before }] : [],
  )
  const ready = left.filter(({ not_before = 0 }) => typeof not_before === "number" && not_before <= endedAt)
  if (ready.length > 0)
    return {
      command: rerun(ready),
      why: "This command collects what is still at the service and runs again what did not finish:",
    }
  if (left.length > 0) {
    const until = new Date(Math.max(0, ...later.map(({ not_before }) => not_before))).toISOString()
    const isTimed = later.length === left.length
    const wait = isTimed
      ? `Until ${until} logins may be open at the service, and no others are sent. ` +
        `After that, \`${rerun(later)}\` runs again what did not finish.`
      : waitsText
    const isRest = [...newestTasks(night).values()].every(
      (task) => !needsPeople.has(verdictOfTask(task).outcome),
    )
    return {
      command: undefined,
      why: isRest ? wait : `${wait} ${byHand(night, exitCodes.peopleMustAct, there)}`,
    }
  }
  if (isPart) return { command: undefined, why: `What is left stays in place: ${partLeft}` }
  return { command: again, why: `This command ${workLeft(night)}:` }
}

/** What `run` does with what a night left: a task of which nothing is open at the service is started. */
const workLeft = (night: ReadonlyArray<RunBrief>): string => {
  const tasks = [...newestTasks(night).values()]
  const isThere = ({ settled, attempts }: TaskBrief) =>
    settled?.fact.reason === "RESULTS_PARTIAL" || attempts.some(isOpenAtService)
  const isCollected = tasks.some((task) => isThere(task) || awaitsDocuments(task))
  const isDue = night.some((run) => run.ended?.after_export !== "keep" && pendingDeletions(run) > 0)
  const starts = tasks.filter((task) => verdictOfTask(task).outcome === "unfinished" && !isThere(task)).length
  const there = isCollected ? "collects, publishes and deletes" : isDue ? "deletes" : undefined
  const parts = [
    ...(there === undefined ? [] : [`${there} what is still at the service`]),
    ...(starts === 0 ? [] : [`starts ${counted(starts, "task")} that did not finish`]),
  ]
  return parts.length === 0 ? "publishes how the run ended" : parts.join(", and ")
}

const partLeft = "the job's next run collects, publishes and deletes what is still at the service."

const needsPeople: ReadonlySet<Outcome> = new Set(["failed", "partial", "skipped"])
const waitsText =
  "What did not finish waits for the next nightly run: it is not known how the last logins to these " +
  "accounts ended, so no more are sent tonight."

/** Tasks of the run that did not finish, and that no later run of the night finished. */
const tasksLeft = ({ tasks }: RunBrief, night: ReadonlyArray<RunBrief>) => {
  const newest = newestTasks(night)
  return [...tasks.values()].flatMap((task) => {
    const last = newest.get(subjectOf(task)) ?? task
    const isLeft = verdictOfTask(last).outcome === "unfinished"
    const reason = task.settled?.fact.reason
    if (!isLeft || reason === undefined || rowOf(reason).isCollected) return []
    return [{ reason, not_before: last.settled?.fact.not_before }]
  })
}

const byHand = (night: ReadonlyArray<RunBrief>, code: number, there: string): string => {
  const held = night.findLast((run) => run.held !== undefined)
  if (held !== undefined)
    return (
      "A gate holds the tables back. If the version that was set aside is right, " +
      `\`nightjar accept ${held.started.run_id}${there}\` publishes it.`
    )
  const left = [...newestTasks(night).values()]
    .map(verdictOfTask)
    .filter(({ outcome }) => outcome !== "succeeded")
  if (left.length === 0)
    return code === exitCodes.ok
      ? nothingLeft
      : "No command can finish the rest: the warnings say what has to be done."
  return (
    "People have to act before a command can finish the rest. After that, " +
    `\`nightjar rerun ${night[0]?.started.run_id ?? ""}${there}\` runs again what did not succeed.` +
    (left.some((one) => rowOfEnd(one).opensBreaker)
      ? " If a rejected login is correct after all, release it first: " +
        `\`nightjar credentials list${there}\` shows it.`
      : "")
  )
}
