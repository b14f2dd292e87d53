/**
 * How far an execution's results are at one moment: how many of its planned records there are, whether that
 * is all of them, and whether the session calls them final (sections 2.7 and 3.4). Pure.
 */
import type { StatusReason } from "../../service/Vocabulary.ts"
import { recordsBefore, recordsPlanned } from "./PlanResults.ts"
import type { Retrieval } from "../state/ResultsPlan.ts"
import { closesAt, momentAt } from "../state/SandboxState.ts"

const goodEnds: ReadonlySet<StatusReason> = new Set<StatusReason>(["COMPLETED", "PARTIAL", "FAILED"])

/** How many of the planned records there are at `at`: all after a good end, else by the work done. */
export const retrievedAt = (execution: Retrieval, at: number): number => {
  const { phase, closed, workedMs } = momentAt(execution, at)
  if (phase.authentication_status !== "AUTH_OK") return 0
  const { timeline, results } = execution.started
  const planned = recordsPlanned(results)
  const reachable = phase.heldBy === undefined ? planned : recordsBefore(results, phase.heldBy)
  if (closed && goodEnds.has(phase.status_reason)) return planned
  // A run without work has done it when it comes to its own end, but not when it is stopped before.
  const isThrough = closed && phase.status_reason === timeline.end
  const done = timeline.workMs === 0 ? Number(isThrough) : workedMs / timeline.workMs
  // A run that is going to break off never has everything.
  const reach = goodEnds.has(timeline.end) ? 1 : 0.5
  return Math.min(reachable, Math.floor(planned * done * reach))
}

export const resultsAreFinal = (execution: Retrieval, at: number): boolean => {
  const { lateMs, neverFinal } = execution.started.results
  return !neverFinal && momentAt(execution, at).closed && at >= closesAt(execution) + lateMs
}

/** Every planned record is there: documents can be downloaded. */
export const resultsAreWhole = (execution: Retrieval, at: number): boolean => {
  const { closed, phase } = momentAt(execution, at)
  if (!closed || phase.authentication_status !== "AUTH_OK") return false
  return retrievedAt(execution, at) === recordsPlanned(execution.started.results)
}
