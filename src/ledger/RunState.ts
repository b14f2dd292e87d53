/**
 * The state of a run, as `foldRun` derives it from its facts. Resume, publishing, reports and `status` all
 * use this state, so that none of them can know something that the ledger does not.
 */
import { Struct } from "effect"
import { given } from "../base/Schemas.ts"
import { dayMs } from "../base/Text.ts"
import type {
  AbortIntended,
  AnswerRefused,
  At,
  AttachmentRead,
  AttemptClosed,
  AttemptDrained,
  AttemptKept,
  InterimPublished,
  LandedRef,
  ResultsRead,
  StartAnswered,
  TaskPlanned,
  TaskSettled,
} from "./Fact.ts"
import type { TicketDropped, TokenDropped, TokenExpiring, TokenStored } from "./LoginFacts.ts"
import type { RunEnded, RunHeld, RunPublished, RunStarted } from "./RunFacts.ts"
import type { AccountKeys } from "../privacy/Fingerprint.ts"
import { own, type Verdict } from "../service/Ends.ts"
import type { ResultsSource } from "../service/FlowResults.ts"
import { sessionKey, type ExecutionId, type SessionId } from "../service/Ids.ts"

/** One remote execution, from its intent. Times are milliseconds since the epoch. */
export interface AttemptState {
  readonly attempt: number
  readonly external_execution_id: string
  /** The login that was sent, as the breaker identifies it. */
  readonly fingerprint: string | undefined
  readonly account?: AccountKeys | undefined
  /** As in the fact of its newest request. */
  readonly holds_account?: true
  readonly worker?: string
  /** Its job wanted no results, as in the facts of all its requests. */
  readonly results_off?: true
  /** Where it was sent or found, if that is another service than the one at which its run began. */
  readonly service?: string
  /** The stored token that logged in; absent if parameters did. */
  readonly token_id?: string
  /** Features of the task that were not requested, because the token does not cover them. */
  readonly outside?: ReadonlyArray<string>
  readonly intended_at: number
  /** As in the fact of its newest request. */
  readonly max_wait?: number
  /** Requests sent for this attempt; a second one is the probe after a lost answer. */
  readonly probed: boolean
  /** The newest answer; undefined if the process died before one was known. */
  readonly answer?: typeof StartAnswered.Type
  readonly accepted_at?: number
  /** When it was last found open (milliseconds); absent if no process found it so. */
  readonly seen_at?: number
  readonly execution_id?: ExecutionId | undefined
  readonly session_id?: SessionId | undefined
  /** What the service called its session before, newest first; absent if it was never called otherwise. */
  readonly sessions_before?: ReadonlyArray<SessionId>
  readonly status_code?: string
  readonly status_reason?: string
  readonly authentication_status?: string | undefined
  readonly abort?: (typeof AbortIntended.Type)["why"]
  readonly closed?: At<typeof AttemptClosed.Type>
  readonly orphanSuspected: boolean
  /** Its id belongs to somebody else's run. */
  readonly disowned?: boolean
  /** Everything in the execution is landed. */
  readonly drained: boolean
  /** The proof; absent if it is not drained, and in ledgers from before proofs were recorded. */
  readonly proof?: typeof AttemptDrained.Type.proof
  /** Why it stays at the service, as last found. */
  readonly kept?: typeof AttemptKept.Type
  /** Of the newest publication, if its bodies alone prove that all of it is in the tables. */
  readonly receipt?: string
  readonly deletion?: Deletion
}

/** What happened to the deletion of an execution at the service. */
export interface Deletion {
  readonly asked_at: number
  /** The receipt with which it was requested. */
  readonly landed_sha256: string
  readonly http_status?: number
  /** When the service said that it was deleted or gone. */
  readonly deleted_at?: number
  readonly outcome: "deleted" | "gone" | "pending"
}

/** What happened to the task's tickets and tokens. */
export type TokenNote =
  | typeof TicketDropped.Type
  | typeof TokenStored.Type
  | typeof TokenExpiring.Type
  | typeof TokenDropped.Type

export interface TaskState {
  readonly planned: typeof TaskPlanned.Type
  readonly planned_at: number
  readonly attempts: ReadonlyArray<AttemptState>
  /** Every read of results or profile, oldest first. */
  readonly results: ReadonlyArray<At<typeof ResultsRead.Type>>
  readonly attachments: ReadonlyArray<typeof AttachmentRead.Type>
  /** Answers that the task could not use, oldest first; absent if there were none. */
  readonly refused?: ReadonlyArray<typeof AnswerRefused.Type>
  /** Bodies that were damaged or removed, and whose executions were read again; absent if there are none. */
  readonly lost?: ReadonlyArray<LandedRef>
  /** Absent if the task had nothing to do with tokens. */
  readonly tokens?: ReadonlyArray<TokenNote>
  readonly settled: At<typeof TaskSettled.Type> | undefined
  /** Attempts made when the task was last settled; a resumed task gets new attempts from there. */
  readonly attemptsBefore: number
  /** Absent if nothing was said since its last start. */
  readonly waits?: Waits
}

/** Until when the next start of a task waits, and when that was said (milliseconds). */
export interface Waits {
  readonly until: number
  readonly at: number
  /** By the service: later runs obey it, too. */
  readonly isAsked?: boolean
}

/**
 * When it is over: no wait is longer than it was when it was said, whatever the clock has shown since, nor
 * longer than a day. A service that asks for a month would keep a customer out of every night of it.
 */
export const endOfWait = (waits: Waits | undefined, now: number): number => {
  if (waits === undefined) return 0
  const longest = Math.min(waits.until - waits.at, dayMs)
  return Math.min(waits.at, now) + longest
}

// What a summary reads of a task: a fifth of it.

const ofAttempt = [
  "probed",
  "execution_id",
  "session_id",
  "status_reason",
  "token_id",
  "outside",
  "orphanSuspected",
  "disowned",
  "drained",
  "kept",
] as const

const briefOfAttempt = (attempt: AttemptState) => {
  const { answer, closed, deletion, proof } = attempt
  const { landed, products_count } = closed?.fact ?? {}
  const isMet = proof?.families.every((one) => one.counted === one.landed) === true
  return {
    ...Struct.pick(attempt, ofAttempt),
    ...given({
      proof: isMet ? undefined : proof,
      answer: answer && Struct.pick(answer, ["answer", "http_status"]),
      closed: closed && { fact: given({ landed: landed && {}, products_count }) },
      deletion: deletion && Struct.pick(deletion, ["deleted_at"]),
    }),
  }
}
export type AttemptBrief = ReturnType<typeof briefOfAttempt>

const each = <A, B>(all: ReadonlyArray<A>, brief: (one: A) => B): ReadonlyArray<B> => all.map(brief)
export const briefOf = ({ planned, attempts, attachments, tokens, settled }: TaskState) => ({
  planned: Struct.pick(planned, ["task_id", "customer_id", "engine_reference", "session_id"]),
  attempts: each(attempts, briefOfAttempt),
  attachments: each(attachments, ({ status }) => ({ status })),
  ...given({ tokens }),
  settled: settled && { fact: Struct.omit(settled.fact, ["_tag", "run_id", "task_id"]) },
})
export type TaskBrief = ReturnType<typeof briefOf>

export interface RunBrief extends Omit<RunState, "tasks"> {
  readonly tasks: ReadonlyMap<string, TaskBrief>
}

/** An execution whose id is known, and one that is over. */
export type OpenAttempt = AttemptState & { readonly execution_id: ExecutionId }
export type ClosedAttempt = AttemptState & { readonly closed: At<typeof AttemptClosed.Type> }

/**
 * How far a task is. Planned: nothing was sent. Waiting: nothing of it runs, and a start may follow.
 * Starting: its request is sent, and not answered. Unknown: something of it may run, and nobody knows its id.
 * Running: its execution is open. Reading: it is over.
 */
export type Course =
  | { readonly _tag: "Planned" }
  | { readonly _tag: "Waiting"; readonly last: AttemptState }
  | { readonly _tag: "Starting" | "Unknown"; readonly last: AttemptState; readonly owesProbe: boolean }
  | { readonly _tag: "Running"; readonly last: OpenAttempt }
  | { readonly _tag: "Reading"; readonly last: ClosedAttempt }

/** Whether it has a verdict or not: a task that ended unfinished may go on from there. */
export const courseOf = ({ attempts, waits }: Pick<TaskState, "attempts" | "waits">): Course => {
  const last = attempts.at(-1)
  if (last === undefined) return { _tag: "Planned" }
  if (isClosed(last)) return { _tag: waits === undefined ? "Reading" : "Waiting", last }
  if (isNamed(last)) return { _tag: "Running", last }
  if (isUncreated(last)) return { _tag: "Waiting", last }
  const answer = last.answer?.answer
  // The start is repeated once; a probe that created nothing is still owed.
  const isOver = answer === "taken" || answer === "unusable"
  const owesProbe = !isOver && (!last.probed || createsNothing.has(answer))
  return { _tag: answer === undefined ? "Starting" : "Unknown", last, owesProbe }
}

/** Something of it may run, and its id is not known: its probe is owed, or was spent. */
export const isUnseen = (
  course: Course,
): course is Extract<Course, { readonly _tag: "Starting" | "Unknown" }> =>
  course._tag === "Starting" || course._tag === "Unknown"

export const isClosed = (attempt: AttemptState): attempt is ClosedAttempt => attempt.closed !== undefined
const isNamed = (attempt: AttemptState): attempt is OpenAttempt => attempt.execution_id !== undefined

/** When each stage was last over, in milliseconds; what is collected after the end moves only `collected`. */
export interface Stages {
  readonly resumed?: number
  readonly executed?: number
  readonly published?: number
  readonly deleted?: number
  readonly collected?: number
}

interface RunEnd extends Omit<typeof RunEnded.Type, "_tag" | "run_id" | "kept"> {
  readonly at: number
  readonly kept: number
}

export interface RunState {
  readonly started: typeof RunStarted.Type
  readonly started_at: number
  /** Its place among all runs: the order in which they began, whatever the clocks said. */
  readonly sequence: number
  /** The place of its newest fact. */
  readonly newest: number
  /** In the order in which they were planned. */
  readonly tasks: ReadonlyMap<string, TaskState>
  /** The endpoints that its results are read from. */
  readonly sources: ReadonlyArray<ResultsSource>
  /** Its receipts are with the attempts. */
  readonly published: At<Omit<typeof RunPublished.Type, "receipts">> | undefined
  /** The newest version that was published while the run went on; absent once the run is published. */
  readonly interim?: At<typeof InterimPublished.Type>
  /** The newest version with this run did not pass the gates of its job; absent once one did. */
  readonly held?: At<typeof RunHeld.Type>
  /** It had tasks of a customer who was forgotten. */
  readonly forgotten?: true
  /** A person let it through, and its new end is not published yet. */
  readonly accepted?: boolean
  readonly stages: Stages
  /** `at` is when it first ended, or first after it was resumed: collecting it later does not move that. */
  readonly ended: RunEnd | undefined
}

/**
 * The attempts of a task: its remote executions, and those that may or may not exist. A start that
 * certainly created nothing (400, 409, 422, 429, 503, connection refused) does not count.
 */
export const executionsOf = <A extends AttemptBrief>({
  attempts,
}: {
  readonly attempts: ReadonlyArray<A>
}): ReadonlyArray<A> =>
  attempts.filter(
    ({ execution_id, answer, probed }) =>
      execution_id !== undefined ||
      (answer?.http_status !== 503 && (probed || mayHaveRun.has(answer?.answer))),
  )
const mayHaveRun: ReadonlySet<string | undefined> = new Set([undefined, "lost", "taken"])

/**
 * What the service may have of an attempt, as far as is known here: the one place that says so. `unseen`: a
 * start of ours may run, and nobody knows its id. `foreign`: somebody else's execution answered. `open`: not
 * closed yet. `forgotten`: closed, and the service says that there is none. `unread`: nobody has said yet
 * whether all of it is here; `kept`: not all of it is. `due`: all of it is here, and it may be deleted;
 * `asked`: it was asked to, and has not said that it did. `nothing`: never created, or deleted.
 */
type Remains = "nothing" | "foreign" | "unseen" | "open" | "forgotten" | "unread" | "kept" | "due" | "asked"

export const remainsOf = (attempt: AttemptBrief): Remains => {
  const { execution_id, closed, deletion } = attempt
  if (attempt.disowned === true) return "foreign"
  if (deletion?.deleted_at !== undefined) return "nothing"
  if (closed === undefined && execution_id !== undefined) return "open"
  if (closed === undefined) return isUncreated(attempt) ? "nothing" : "unseen"
  if (closed.fact.landed === undefined) return "forgotten"
  if (!attempt.drained) return attempt.kept === undefined ? "unread" : "kept"
  return deletion === undefined ? "due" : "asked"
}

/** No request of the attempt created an execution: after a probe, that is known only of a refusal. */
const isUncreated = ({ answer, probed }: AttemptBrief): boolean =>
  answer?.answer === "refused" || (!probed && createsNothing.has(answer?.answer))
const createsNothing: ReadonlySet<string | undefined> = new Set(["not_created", "foreign"])

/** A second execution may have come of the attempt: its probe ran, or nobody knows whether it did. */
export const mayBeTwo = (attempt: AttemptState): boolean =>
  attempt.orphanSuspected ||
  (attempt.probed && remainsAny(attempt, "unseen") && !createsNothing.has(attempt.answer?.answer))

export const remainsAny = (attempt: AttemptBrief, ...any: ReadonlyArray<Remains>): boolean =>
  any.includes(remainsOf(attempt))

/** An execution of ours that the service has not closed. */
export const isOpenAtService = <A extends AttemptBrief>(
  attempt: A,
): attempt is A & { readonly execution_id: ExecutionId } => remainsOf(attempt) === "open"

/** Something may run at the service because of the attempt. */
export const mayRun = (attempt: AttemptState): boolean => remainsAny(attempt, "open", "unseen", "foreign")

/** The service that an attempt is at; undefined in ledgers from before it was recorded. */
export const serviceOf = (
  { service }: Pick<typeof RunStarted.Type, "service">,
  attempt: Pick<AttemptState, "service">,
): string | undefined => attempt.service ?? service

/** Whether it is at another service than this one, as far as is known. */
export const isElsewhere = (
  started: Pick<typeof RunStarted.Type, "service">,
  attempt: Pick<AttemptState, "service">,
  here: string,
): boolean => (serviceOf(started, attempt) ?? here) !== here

/** All of it is here, and the service may still have it. */
export const isToDelete = (attempt: AttemptBrief): boolean => remainsAny(attempt, "due", "asked")

/** As far as is known still at the service. None of a run that is held back: trying again deletes nothing. */
export const pendingDeletions = (run: Pick<RunBrief, "held" | "tasks">): number =>
  (run.held === undefined ? [...run.tasks.values()] : [])
    .filter((task) => task.settled !== undefined)
    .flatMap((task) => task.attempts)
    .filter(isToDelete).length

/** Closed executions of a settled task that stay there: it is not proved that all of them is here. */
export const keptOf = <A extends AttemptBrief>({
  settled,
  attempts,
}: {
  readonly settled: unknown
  readonly attempts: ReadonlyArray<A>
}): ReadonlyArray<A> =>
  settled === undefined ? [] : attempts.filter((one) => remainsAny(one, "unread", "kept"))

/** The service did not say that a document of the task cannot be had: asking again may bring it. */
export const awaitsDocuments = ({ attachments }: Pick<TaskBrief, "attachments">): boolean =>
  attachments.some(({ status }) => status === "failed")

/** What a task is settled with; one that is not settled is in progress. */
export const verdictOfTask = ({ settled }: Pick<TaskBrief, "settled">): Verdict =>
  settled?.fact ?? own("IN_PROGRESS")

/** What a task is about, across runs: `<customer_id>/<engine_reference>`, or `session/<session_id>`. */
export const subjectOf = ({
  planned: { customer_id, engine_reference, session_id },
}: Pick<TaskBrief, "planned">): string =>
  session_id === undefined ? `${customer_id}/${engine_reference}` : sessionKey({ session_id })

/** The place of the newest state or results that came for a task; 0 if none did. */
export const newestAnswer = ({ attempts, results }: Pick<TaskState, "attempts" | "results">): number =>
  Math.max(0, ...attempts.map(({ closed }) => closed?.seq ?? 0), ...results.map(({ seq }) => seq))

/** `<job name>.<date>`, sometimes with a number; it becomes a folder, so nothing from outside may be one. */
const pattern = /^[a-z0-9][a-z0-9.-]{0,199}$/

export const isRunId = (run_id: string): boolean => pattern.test(run_id) && !run_id.includes("..")

/** A job's newest runs, which say how long executions take and what comes first. */
export const runsLearntFrom = 10

/** So many runs go on beside each other at most: each has a thread for forms, and a part of the memory. */
export const runsBesideMax = 8
