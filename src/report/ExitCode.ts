/**
 * The exit code of a finished run: pure. 4 takes precedence over 3, because what a rerun can finish comes
 * first, and what needs a person will still be there afterwards.
 */
import { exitOf } from "../service/EndRow.ts"
import { pendingDeletions } from "../task/DeleteExecutions.ts"
import { isOpenAtService, verdictOfTask } from "../ledger/RunState.ts"
import type { AttemptState, RunState, TaskState } from "../ledger/RunState.ts"
import { isTooOld } from "../ledger/WholeNight.ts"
import type { Job } from "../jobs/Job.ts"
import type { RunChanges } from "./Changes.ts"

/**
 * 0: everything succeeded. 3: some tasks need the customer or an engineer. 4: something is left that a
 * rerun can finish.
 */
export type RunExitCode = ReturnType<typeof exitOf>

export const exitCodeOf = (run: RunState, after_export: "delete" | "keep"): RunExitCode => {
  const codes = [...run.tasks.values()].map((task) => exitOf(verdictOfTask(task).outcome))
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

/** Closed executions that stay at the service because it is not proved that all of them is here. */
export const keptExecutions = (run: RunState): ReadonlyArray<AttemptState> =>
  [...run.tasks.values()]
    .flatMap(({ attempts }) => attempts)
    .filter(({ kept, drained }) => kept !== undefined && !drained)

const isLeftAtService = ({ settled, attempts }: TaskState): boolean =>
  settled === undefined || settled.fact.reason === "RESULTS_PARTIAL" || attempts.some(isOpenAtService)
