/**
 * Whether files of a run may be removed by age: pure. Landing is the only lossless copy, so it stays as long
 * as anything of the run is open, at the service, or nowhere but in landing.
 */
import { newestAnswer } from "../ledger/RunState.ts"
import type { RunState, TaskState } from "../ledger/RunState.ts"

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

/** An execution counts as gone only once the service has said so. */
const isAtService = ({ attempts }: TaskState): boolean =>
  attempts.some(
    ({ execution_id, disowned, deletion }) =>
      execution_id !== undefined && disowned !== true && deletion?.deleted_at === undefined,
  )
