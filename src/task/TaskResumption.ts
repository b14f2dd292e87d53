/**
 * Where a task in the ledger continues: pure. A run resumes what a dead process left, gives unfinished
 * tasks new attempts, and never starts a task that was settled for good.
 */
import { Duration } from "effect"
import type { ExecutionId } from "../service/Ids.ts"
import { isAccepted } from "../service/Ends.ts"
import type { AttemptClosed, AttemptKept } from "../ledger/Fact.ts"
import { remainsOf } from "../ledger/RunState.ts"
import type { AttemptState, TaskState } from "../ledger/RunState.ts"
import { conflictKeys } from "../service/Execution.ts"
import type { Candidate } from "../service/Execution.ts"
import { mayRunUnseen, refusesTokenizedStart, resumeAttempt } from "./Attempt.ts"
import type { Resumption } from "./Attempt.ts"
import type { Rules, TaskWork } from "./Work.ts"

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
  /** Nothing is wrong with it, but it cannot be started in this run. */
  | { readonly _tag: "NotStarted"; readonly reason: "ALREADY_EXECUTING" | "DEADLINE_REACHED" }

/** What keeps tasks of a run from being started, whatever becomes of the others. */
export interface Obstacles {
  /** Milliseconds since the epoch. */
  readonly now: number
  readonly deadlineAt: number | undefined
  /** The conflict keys of executions that may be open and that this run does not follow to their end. */
  readonly taken: ReadonlySet<string>
}

/** `open`: what other runs, and dead processes of this one (`unseenOf`), may still have open. */
export const obstaclesOf = (
  open: ReadonlyArray<Candidate>,
  deadlineAt: number | undefined,
  now: number,
): Obstacles => ({ now, deadlineAt, taken: new Set(open.flatMap(conflictKeys)) })

/**
 * What an earlier process started without knowing the execution may still run, as long as one is waited for:
 * until then its customer and its login are not used for anybody, as in the process that sent it.
 */
export const unseenOf = (
  task: TaskState | undefined,
  max_wait: Rules["max_wait"],
  now: number,
): ReadonlyArray<Candidate> => {
  const last = task?.attempts.at(-1)
  if (task === undefined || last === undefined || !mayRunUnseen(last)) return []
  const { task_id, customer_id, engine_reference } = task.planned
  if (customer_id === undefined || engine_reference === undefined) return []
  if (last.intended_at + Duration.toMillis(max_wait) <= now) return []
  const { fingerprint, account } = last
  return [{ task_id, customer_id, engine_reference, fingerprint, account: account?.account }]
}

/**
 * What a run does with one of its tasks, before anything of the run has moved: `plan` and `rerun --dry-run`
 * show this, and the run does it. What the plan settled, such as a task whose secret is missing, keeps its
 * reason: nothing can start it.
 */
export const resumeWork = (
  work: Pick<
    TaskWork,
    "task_id" | "customer_id" | "engine_reference" | "fingerprint" | "account" | "needs"
  > & {
    /** The plan has the means to start it. */
    readonly isPlanned: boolean
  },
  state: TaskState | undefined,
  mode: Mode,
  { now, deadlineAt = Infinity, taken }: Obstacles,
): TaskResumption => {
  const resumption = resumeTask(state, mode)
  // A probe finds what may be running.
  if (resumption._tag !== "Start" || resumption.probe) return resumption
  if (!work.isPlanned) return state?.settled === undefined ? resumption : { _tag: "Nothing" }
  if (conflictKeys({ ...work, account: work.account?.account }).some((key) => taken.has(key)))
    return { _tag: "NotStarted", reason: "ALREADY_EXECUTING" }
  const overAt = now + Duration.toMillis(work.needs ?? Duration.zero)
  return overAt > deadlineAt ? { _tag: "NotStarted", reason: "DEADLINE_REACHED" } : resumption
}

export const resumeTask = (task: TaskState | undefined, mode: Mode): TaskResumption => {
  if (task === undefined) return mode === "night" ? start(1, false, 0) : { _tag: "Nothing" }
  const { settled } = task
  if (settled !== undefined && settled.fact.outcome !== "unfinished")
    return lookAgain(task, settled.fact.reason)
  const last = task.attempts.at(-1)
  // As in a process: a start that created nothing, such as one with a token that was refused, is no attempt.
  const since = task.attempts.slice(task.attemptsBefore)
  const attemptsMade = since.filter(({ execution_id }) => execution_id !== undefined).length
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
  return task.attempts.flatMap((one) => {
    const { attempt, closed, abort, kept, deletion } = one
    if (remainsOf(one) !== "kept" || deletion !== undefined) return []
    if (closed === undefined || kept === undefined) return []
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
  switch (resumption._tag) {
    case "Start":
      return mode === "night" ? start(last.attempt, false, attemptsMade) : notStarted(task)
    case "Probe":
      // A collected run only follows: another night's login may be sent to the account by now.
      return mode === "night" ? start(last.attempt, true, attemptsMade) : { _tag: "StartUnknown" }
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
        return start(last.attempt + 1, false, attemptsMade)
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
