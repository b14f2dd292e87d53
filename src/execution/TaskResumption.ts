/**
 * Where a task in the ledger continues: pure. A run resumes what a dead process left, gives unfinished
 * tasks new attempts, and never starts a task that was settled for good.
 */
import type { ExecutionId } from "../contract/Ids.ts"
import { isAccepted } from "../ends/Ends.ts"
import type { AttemptClosed, AttemptKept } from "../ledger/Fact.ts"
import type { AttemptState, TaskState } from "../ledger/RunState.ts"
import { refusesTokenizedStart, resumeAttempt } from "./Attempt.ts"
import type { Resumption } from "./Attempt.ts"

/** `night` may start executions; `collect` only follows what an older run left in flight. */
export type Mode = "night" | "collect"

export type TaskResumption =
  /** Settled for good, or nothing that this mode may do. */
  | { readonly _tag: "Nothing" }
  | {
      readonly _tag: "Start"
      readonly attempt: number
      readonly probe: boolean
      readonly attemptsMade: number
    }
  | {
      readonly _tag: "Follow"
      readonly attempt: AttemptState
      readonly execution_id: ExecutionId
      readonly attemptsMade: number
    }
  | {
      readonly _tag: "Finish"
      readonly attempt: AttemptState
      readonly closed: typeof AttemptClosed.Type
      readonly attemptsMade: number
    }
  | { readonly _tag: "Refused"; readonly status_reason: string }
  | { readonly _tag: "StartUnknown" }
  | { readonly _tag: "NotOurs" }
  /** The start was answered, and the process died before it could record that the answer cannot be used. */
  | { readonly _tag: "Unusable"; readonly attempt: AttemptState }
  /** Collected, but there is nothing to collect: the run was over before this task began. */
  | { readonly _tag: "NightOver" }

export const resumeTask = (task: TaskState | undefined, mode: Mode): TaskResumption => {
  if (task === undefined) return mode === "night" ? start(1, false, 0) : { _tag: "Nothing" }
  const { settled } = task
  if (settled !== undefined && settled.fact.outcome !== "unfinished")
    return lookAgain(task, settled.fact.reason)
  const last = task.attempts.at(-1)
  const attemptsMade = task.attempts.length - task.attemptsBefore
  if (last === undefined) return mode === "night" ? start(1, false, 0) : notStarted(task)
  const resumption = resumeAttempt(last)
  if (resumption._tag === "Closed") return resumeClosed(task, last, attemptsMade, mode)
  // A start and its probe were both sent and neither was answered: this run can do nothing more.
  if (settled !== undefined && resumption._tag === "GiveUpStart") return { _tag: "Nothing" }
  return resumeOpen(task, last, resumption, attemptsMade, mode)
}

/** An execution whose state could not be used may answer differently by now. */
const lookAgain = ({ attempts }: TaskState, reason: string): TaskResumption => {
  const attempt = attempts.at(-1)
  const isOpen = attempt?.execution_id !== undefined && attempt.closed === undefined
  return reason === "ANSWER_UNUSABLE" && isOpen
    ? { _tag: "Follow", attempt, execution_id: attempt.execution_id, attemptsMade: attempts.length }
    : { _tag: "Nothing" }
}

/** A closed execution that is kept at the service, and why. */
export interface KeptAttempt {
  readonly closed: typeof AttemptClosed.Type
  readonly abort: AttemptState["abort"]
  readonly kept: typeof AttemptKept.Type
  /** It is what its task ended with: what becomes of it becomes of the task. */
  readonly isEnd: boolean
}

/**
 * Closed executions of a task that are kept at the service because not all of their records are here: they
 * are read again whenever the run is resumed. Those that `resumeTask` finishes anyway are not included.
 */
export const attemptsToReadAgain = (task: TaskState | undefined): ReadonlyArray<KeptAttempt> => {
  const reason = task?.settled?.fact.reason
  if (task === undefined || reason === undefined) return []
  return task.attempts.flatMap(({ attempt, closed, abort, drained, kept, deletion }) => {
    if (closed === undefined || drained || kept === undefined || deletion !== undefined) return []
    const isEnd = reason === kept.reason && attempt === task.attempts.at(-1)?.attempt
    return [{ closed: closed.fact, abort, kept, isEnd }]
  })
}

const start = (attempt: number, probe: boolean, attemptsMade: number): TaskResumption => ({
  _tag: "Start",
  attempt,
  probe,
  attemptsMade,
})

const notStarted = (task: TaskState): TaskResumption =>
  task.settled === undefined ? { _tag: "NightOver" } : { _tag: "Nothing" }

const resumeOpen = (
  task: TaskState,
  last: AttemptState,
  resumption: Exclude<Resumption, { _tag: "Closed" }>,
  attemptsMade: number,
  mode: Mode,
): TaskResumption => {
  // The attempt that continues is counted when it starts again.
  const before = Math.max(0, attemptsMade - 1)
  switch (resumption._tag) {
    case "Start":
      return mode === "night" ? start(last.attempt, false, before) : notStarted(task)
    case "Probe":
      // A collected run only follows: another night's login may be sent to the account by now.
      return mode === "night" ? start(last.attempt, true, before) : { _tag: "StartUnknown" }
    case "GiveUpStart":
      return { _tag: "StartUnknown" }
    case "NotOurs":
      return { _tag: "NotOurs" }
    case "Unusable":
      return { _tag: "Unusable", attempt: last }
    case "Follow":
      return {
        _tag: "Follow",
        attempt: last,
        execution_id: resumption.execution_id,
        attemptsMade: Math.max(1, attemptsMade),
      }
    case "NeverStarted":
      if (task.settled === undefined && mode === "night" && isTokenRefused(last))
        return start(last.attempt + 1, false, before)
      if (task.settled === undefined) return { _tag: "Refused", status_reason: resumption.status_reason }
      // An unfinished refusal was the service's own fault: an answered start is not repeated, but a new one
      // may be sent.
      return mode === "night" ? start(last.attempt + 1, false, 0) : { _tag: "Nothing" }
  }
}

/** The service refused the start with a token; the parameters that would have followed were never sent. */
const isTokenRefused = ({ token_id, answer, probed }: AttemptState): boolean =>
  !probed &&
  token_id !== undefined &&
  answer?.http_status !== undefined &&
  refusesTokenizedStart(answer.http_status)

const resumeClosed = (
  task: TaskState,
  last: AttemptState,
  attemptsMade: number,
  mode: Mode,
): TaskResumption => {
  const closed = last.closed?.fact
  if (closed === undefined) return { _tag: "Nothing" }
  // Unsettled: the process died between the closing and the verdict. Partial results: they are read again.
  if (task.settled === undefined || task.settled.fact.reason === "RESULTS_PARTIAL")
    return { _tag: "Finish", attempt: last, closed, attemptsMade: Math.max(1, attemptsMade) }
  // The service forgot it, and may have had its login refused: only a person sends that twice in one run.
  const isLoginUnknown = task.settled.fact.reason === "EXECUTION_GONE" && !isAccepted(closed)
  return mode === "night" && !isLoginUnknown ? start(last.attempt + 1, false, 0) : { _tag: "Nothing" }
}
