/**
 * What comes next for a task, from what its facts say of it: the one place that decides it, for the process
 * that works on it, for one that resumes it, and for whoever only looks, such as `plan`. Pure.
 */
import { Duration } from "effect"
import { isoTime } from "../base/Text.ts"
import { endOfAttempt, isAccepted, isRejecting, own, type Reason, type Verdict } from "../service/Ends.ts"
import { openMs } from "../ledger/Accounts.ts"
import type { AttemptKept } from "../ledger/Fact.ts"
import {
  courseOf,
  endOfWait,
  isClosed,
  isOpenAtService,
  isUnseen,
  mayRun,
  remainsOf,
} from "../ledger/RunState.ts"
import type { AttemptState, ClosedAttempt, OpenAttempt, TaskState } from "../ledger/RunState.ts"
import { conflictKeys, type Candidate } from "../service/Execution.ts"
import type { RunId } from "../service/Ids.ts"
import { refusesTokenizedStart } from "./Attempt.ts"
import { verdictOf, type Reading } from "./Verdict.ts"
import type { Rules, TaskWork } from "./Work.ts"

/** `night` may start executions; `collect` only follows what an older run left in flight. */
export type Mode = "night" | "collect"

export interface StartAct {
  readonly _tag: "Start"
  readonly attempt: number
  /** The answer to the one before is not known: the same start is sent once more, to find what may run. */
  readonly probe: boolean
  /** Parameters log in even if a token is stored: as in the lost start, or after a refusal. */
  readonly byParameters: boolean
}

export type Act =
  /** It has its verdict, or this mode may do nothing for it. */
  | { readonly _tag: "Done" }
  | { readonly _tag: "Settle"; readonly verdict: Verdict }
  /** Its start was refused; what the refusal says of a token becomes a fact, too. */
  | { readonly _tag: "Refuse"; readonly last: AttemptState; readonly status_reason: string }
  /** Its start was answered, and the answer cannot be used. */
  | { readonly _tag: "Unusable"; readonly last: AttemptState }
  | StartAct
  | { readonly _tag: "Follow"; readonly last: OpenAttempt }
  | { readonly _tag: "Read"; readonly last: ClosedAttempt }

/** Nothing is wrong with the task, but it cannot be started in this run. */
export interface NotStarted {
  readonly _tag: "NotStarted"
  readonly reason: "ALREADY_EXECUTING" | "START_UNKNOWN" | "DEADLINE_REACHED"
}

const done: Act = { _tag: "Done" }
const settle = (reason: Reason): Act => ({ _tag: "Settle", verdict: own(reason) })

export const next = (task: TaskState | undefined, mode: Mode): Act => {
  if (task === undefined) return mode === "night" ? startOf(undefined, 1) : done
  if (task.settled !== undefined) return afterVerdict(task, task.settled.fact, mode)
  const course = courseOf(task)
  switch (course._tag) {
    case "Planned":
      return mode === "night" ? startOf(task, 1) : settle("NIGHT_OVER")
    case "Waiting":
      return afterEnd(task, course.last, mode)
    case "Starting":
    case "Unknown":
      return afterUnknown(task, course, mode)
    case "Running":
      return course.last.disowned === true ? settle("NOT_OURS") : { _tag: "Follow", last: course.last }
    case "Reading":
      return { _tag: "Read", last: course.last }
  }
}

/** Nothing of the newest attempt runs. */
const afterEnd = (task: TaskState, last: AttemptState, mode: Mode): Act => {
  const { attempt, answer, closed } = last
  if (closed !== undefined)
    return mode === "night"
      ? startOf(task, attempt + 1)
      : { _tag: "Settle", verdict: verdictLeft(task) ?? own("NIGHT_OVER") }
  if (answer?.answer !== "refused") return mode === "night" ? startOf(task, attempt) : settle("NIGHT_OVER")
  // The parameters that would have followed were never sent.
  if (mode === "night" && isTokenRefused(last)) return startOf(task, attempt + 1)
  const { status_reason = "UNEXPECTED_ANSWER" satisfies Reason } = answer
  return { _tag: "Refuse", last, status_reason }
}

/** Something of the newest attempt may run, and nobody knows its id. */
const afterUnknown = (
  task: TaskState,
  { last, owesProbe }: { readonly last: AttemptState; readonly owesProbe: boolean },
  mode: Mode,
): Act => {
  if (last.answer?.answer === "taken") return settle("NOT_OURS")
  if (last.answer?.answer === "unusable") return { _tag: "Unusable", last }
  // A collected run only follows: another night's login may be sent to the account by now.
  if (!owesProbe || mode === "collect") return { _tag: "Settle", verdict: lost(last) }
  return { ...startOf(task, last.attempt), probe: true, byParameters: last.token_id === undefined }
}

const unprovenText =
  "its start was answered 503 although the engine says that it is available, so nobody knows whether it " +
  "logged in; no further login of this account is sent in this night"

/** Where its login holds the account, no run starts it again before a person acts. */
const lost = ({ answer, holds_account }: AttemptState): Verdict => {
  // A probe that created nothing is no login.
  const isLost = answer?.answer === "lost"
  if (holds_account === true && (answer === undefined || isLost)) return own("LOGIN_UNPROVEN")
  return isLost && answer.http_status === 503
    ? { ...own("ENGINE_UNAVAILABLE"), message: unprovenText }
    : own("START_UNKNOWN")
}

/** What a closed execution ends its task with. One that the service forgot may have had its login refused. */
export const verdictOfEnd = ({ closed, abort, holds_account }: ClosedAttempt, reading: Reading): Verdict => {
  const { verdict, rejection } = endOfAttempt(closed.fact, abort)
  const isUnproven = reading._tag === "Gone" && rejection === undefined && !isAccepted(closed.fact)
  return holds_account === true && isUnproven ? own("LOGIN_UNPROVEN") : verdictOf(verdict, reading)
}

/** An earlier process settled it. One that is unfinished goes on, and its attempts count anew. */
const afterVerdict = (task: TaskState, { outcome, reason }: Verdict, mode: Mode): Act => {
  const course = courseOf(task)
  // An execution whose state could not be used may answer differently by now.
  const isOpen = course._tag === "Running" && course.last.disowned !== true
  if (outcome !== "unfinished")
    return isOpen && reason === "ANSWER_UNUSABLE" ? { _tag: "Follow", last: course.last } : done
  switch (course._tag) {
    case "Planned":
      return mode === "night" ? startOf(task, 1) : done
    case "Running":
      return isOpen ? { _tag: "Follow", last: course.last } : done
    case "Starting":
    case "Unknown":
      // Otherwise a start and its probe were both sent, and neither was answered.
      if (!course.owesProbe) return done
      return mode === "collect" && reason === "START_UNKNOWN" ? done : afterUnknown(task, course, mode)
    case "Waiting":
    case "Reading": {
      const { last } = course
      if (!isClosed(last)) {
        // An unfinished refusal was the service's own fault: an answered start is not repeated, but a new one
        // may be sent.
        const isAnswered = last.answer?.answer === "refused"
        return mode === "night" ? startOf(task, isAnswered ? last.attempt + 1 : last.attempt) : done
      }
      // Partial results: they are read again.
      if (reason === "RESULTS_PARTIAL") return { _tag: "Read", last }
      // The service forgot it, and may have had its login refused: only a person sends that twice in one run.
      const isLoginUnknown = reason === "EXECUTION_GONE" && !isAccepted(last.closed.fact)
      return mode === "night" && !isLoginUnknown ? startOf(task, last.attempt + 1) : done
    }
  }
}

const startOf = (task: TaskState | undefined, attempt: number): StartAct => ({
  _tag: "Start",
  attempt,
  probe: false,
  byParameters: task?.attempts.slice(task.attemptsBefore).some(isTokenRefused) === true,
})

/** The service refused the form of a start with a token: nothing ran, and no login was tried. */
export const isTokenRefused = ({ token_id, answer, probed }: AttemptState): boolean =>
  !probed &&
  token_id !== undefined &&
  answer?.answer === "refused" &&
  answer.http_status !== undefined &&
  refusesTokenizedStart(answer.http_status) &&
  !isRejecting(answer.status_reason ?? "")

/** How many executions the task has had since its last verdict. */
export const triesOf = ({ attempts, attemptsBefore }: TaskState): number =>
  attempts.slice(attemptsBefore).filter(({ execution_id }) => execution_id !== undefined).length

/** What its facts say of the reading of a closed attempt. */
const readingOf = ({ closed, drained, kept }: ClosedAttempt): Reading => {
  if (closed.fact.landed === undefined) return { _tag: "Gone" }
  return drained || kept === undefined
    ? { _tag: "Drained", basis: "final", families: [] }
    : { ...kept, _tag: "Kept" }
}

/** Its last end, or that it may run unseen; undefined if nothing was found since its last verdict. */
export const verdictLeft = (task: TaskState | undefined): Verdict | undefined => {
  if (task === undefined) return undefined
  const course = courseOf(task)
  if (isUnseen(course)) return lost(course.last)
  const ended = task.attempts.slice(task.attemptsBefore).findLast(isClosed)
  return ended && verdictOfEnd(ended, readingOf(ended))
}

/** What a task that is not over is settled with when its run ends. */
export const cutVerdict = (task: TaskState | undefined): Verdict => {
  const course = task === undefined ? undefined : courseOf(task)
  switch (course?._tag) {
    case undefined:
    case "Planned":
    case "Waiting":
      return verdictLeft(task) ?? own("DEADLINE_REACHED")
    case "Starting":
      return own(course.last.probed ? "START_UNKNOWN" : "SERVICE_UNREACHABLE")
    case "Unknown":
      return lost(course.last)
    case "Running":
      return own("SERVICE_UNREACHABLE")
    case "Reading":
      return own("RESULTS_PARTIAL")
  }
}

/** What keeps tasks of a run from being started, whatever becomes of the others. */
export interface Obstacles {
  /** Milliseconds since the epoch. */
  readonly now: number
  readonly deadlineAt: number | undefined
  /** The conflict keys of executions that may be open and that this run does not follow to their end. */
  readonly taken: ReadonlySet<string>
  /** Those of them that are known to have been created. */
  readonly seen: ReadonlySet<string>
}

/** What may be open at the service: its customer, login and account are used for nobody else meanwhile. */
export interface MaybeOpen extends Candidate {
  /** The service named its execution; otherwise it may never have been created. */
  readonly isSeen: boolean
  /** As `openMs` has it, since it was last seen open (milliseconds since the epoch). */
  readonly until: number
  readonly run_id: RunId
  readonly attempt: AttemptState
}

/** What another run left at a service. */
export interface LeftOpen extends MaybeOpen {
  readonly job: string
  /** Undefined in ledgers from before it was recorded. */
  readonly service: string | undefined
}

/** An execution of which this service can say whether it is still open. */
export interface LeftRunning extends LeftOpen {
  readonly attempt: OpenAttempt
}

/** A task waits until such an execution is out of its way; anything else in its way ends the task. */
export const canBeSeen =
  (here: string) =>
  (one: LeftOpen): one is LeftRunning =>
    isOpenAtService(one.attempt) && (one.service ?? here) === here

/** What a task keeps all others from, whoever looks at it: another run, or the next process of its own. */
export const holdsOf = ({ planned, attempts, settled }: TaskState): ReadonlyArray<MaybeOpen> => {
  const { run_id, task_id, customer_id, engine_reference } = planned
  if (customer_id === undefined || engine_reference === undefined) return []
  // The last look at it, which may have shown what the one before did.
  const lookedAt = settled?.fact.reason === "NOT_STOPPABLE" ? settled.at : 0
  return attempts.filter(mayRun).map((attempt) => {
    const { intended_at, seen_at = intended_at, max_wait, execution_id } = attempt
    const isSeen = execution_id !== undefined
    return {
      task_id,
      customer_id,
      engine_reference,
      fingerprint: attempt.fingerprint,
      account: attempt.account?.account,
      isSeen,
      until: Math.max(intended_at, seen_at, lookedAt) + openMs(isSeen, max_wait),
      run_id,
      attempt,
    }
  })
}

/** `open`: what other runs, and dead processes of this one (`unseenOf`), may still have open. */
export const obstaclesOf = (
  open: ReadonlyArray<MaybeOpen>,
  deadlineAt: number | undefined,
  now: number,
): Obstacles => ({
  now,
  deadlineAt,
  taken: new Set(open.flatMap(conflictKeys)),
  seen: new Set(open.filter(({ isSeen }) => isSeen).flatMap(conflictKeys)),
})

/** What an earlier process of the run left, and what this one neither follows nor looks for with a probe. */
export const unseenOf = (task: TaskState | undefined, now: number): ReadonlyArray<MaybeOpen> => {
  const act = next(task, "night")
  const isTakenUp = act._tag === "Follow" || (act._tag === "Start" && act.probe)
  return task === undefined || isTakenUp ? [] : holdsOf(task).filter(({ until }) => until > now)
}

/**
 * What a run does with a task before anything of it has moved; `plan` and `rerun --dry-run` show it. What the
 * plan settled, such as a task whose secret is missing, keeps its reason.
 */
export const takeUp = (
  work: Pick<
    TaskWork,
    "task_id" | "customer_id" | "engine_reference" | "fingerprint" | "account" | "needs"
  > & {
    /** The plan has the means to start it. */
    readonly isPlanned: boolean
  },
  task: TaskState | undefined,
  mode: Mode,
  { now, deadlineAt = Infinity, taken, seen }: Obstacles,
): Act | NotStarted => {
  const act = next(task, mode)
  // A probe finds what may be running.
  if (act._tag !== "Start" || act.probe) return act
  if (!work.isPlanned) return task?.settled === undefined ? act : done
  const inTheWay = conflictKeys({ ...work, account: work.account?.account }).filter((key) => taken.has(key))
  if (inTheWay.length > 0) {
    const reason = inTheWay.some((key) => seen.has(key)) ? "ALREADY_EXECUTING" : "START_UNKNOWN"
    return { _tag: "NotStarted", reason }
  }
  const overAt = now + Duration.toMillis(work.needs ?? Duration.zero)
  return overAt > deadlineAt ? { _tag: "NotStarted", reason: "DEADLINE_REACHED" } : act
}

/** Not before then (milliseconds; 0: now): what the service asked, or how long the next try waits. */
export const startsAt = (
  { asked }: Pick<TaskWork, "asked">,
  task: TaskState | undefined,
  now: number,
): number => {
  const until = Math.max(endOfWait(asked, now), endOfWait(task?.waits, now))
  return until > now ? until : 0
}

/** The last moment for a start of a task that waits since then (milliseconds). */
export const lastStartAt = (
  { max_wait, deadlineAt = Infinity }: Pick<Rules, "max_wait" | "deadlineAt">,
  since: number,
): number => Math.min(since + Duration.toMillis(max_wait), deadlineAt)

/** Of a task whose start has to wait longer than the run can. */
export const asksTooMuch = (until: number): Verdict => ({
  ...own("SERVICE_UNREACHABLE"),
  message: `the service asked to wait; no start before ${isoTime(until)}`,
})

/** A closed execution that is kept at the service, and why. */
export interface KeptAttempt {
  readonly last: ClosedAttempt
  readonly kept: typeof AttemptKept.Type
  /** Its task ended with it, or with its records: what becomes of it becomes of the task. */
  readonly isEnd: boolean
}

/** Not all of them is here: read again whenever the run is resumed, but for those that `next` reads. */
export const attemptsToReadAgain = (task: TaskState | undefined): ReadonlyArray<KeptAttempt> => {
  const reason = task?.settled?.fact.reason
  if (task === undefined || reason === undefined) return []
  return task.attempts.filter(isClosed).flatMap((last) => {
    const { attempt, closed, kept, deletion } = last
    if (remainsOf(last) !== "kept" || kept === undefined) return []
    // A document may be lost after the deletion was asked for.
    if (deletion !== undefined && kept.reason !== "DOCUMENTS_SHORT") return []
    // Missing documents leave a task the end of its records; one that goes on gets its verdict from there.
    const end = endOfAttempt(closed.fact, last.abort).verdict
    const isOver = end.outcome !== "unfinished" && reason === end.reason
    const isOwn = kept.reason === "DOCUMENTS_SHORT" ? isOver : reason === kept.reason
    const isEnd = isOwn && attempt === task.attempts.at(-1)?.attempt
    return [{ last, kept, isEnd }]
  })
}
