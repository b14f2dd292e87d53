/**
 * The shared state of one executing run, and the few operations that change it: fork, release, settle.
 * Everything is in one process and one thread; only the ledger remembers.
 */
import { Clock, Duration, Effect, Option, Queue } from "effect"
import { accessOf } from "../service/Ids.ts"
import type { EngineReference, RunId, TaskId } from "../service/Ids.ts"
import type { Service } from "../client/Service.ts"
import { own } from "../service/Ends.ts"
import type { Outcome } from "../service/EndTable.ts"
import type { Reason, Verdict } from "../service/Ends.ts"
import type { Landing, LandingFailed } from "../landing/Landing.ts"
import { busyUntil, isOf, strikesMax, strikesOf } from "../ledger/Accounts.ts"
import type { AttemptClosed, RunSteered } from "../ledger/Fact.ts"
import { append, Ledger } from "../ledger/Ledger.ts"
import type { LedgerFailed } from "../ledger/Ledger.ts"
import type { RunState } from "../ledger/RunState.ts"
import type { Candidate } from "../service/Execution.ts"
import type { Schedule } from "./Schedule.ts"
import { loginKeysOf } from "../privacy/Fingerprint.ts"
import type { LoginKeys } from "../privacy/Fingerprint.ts"
import { externalExecutionId } from "./AttemptOrder.ts"
import type { AttemptOrder } from "./AttemptOrder.ts"
import type { Ending } from "./Ending.ts"
import type { EngineBreaker } from "./EngineBreaker.ts"
import type { Heads } from "./LookTurns.ts"
import { tell } from "./Progress.ts"
import type { Mode } from "./TaskResumption.ts"
import type { Troubles } from "./Troubles.ts"
import type { Rules, TaskWork } from "./Work.ts"

export type Failure = LedgerFailed | LandingFailed
export type Needs = Service | Ledger | Landing

/** What is remembered about a task while it runs. */
export interface Book {
  readonly work: TaskWork
  attempt: number
  probe: boolean
  attemptsMade: number
  deferredSince: number | undefined
  deferrals: number
  /** The login that is sent, or will be. */
  keys: LoginKeys
  /** The stored token that logs in; undefined if parameters do. */
  token_id: string | undefined
  /** What the task is settled with if nothing more can be done for it. */
  lastVerdict: Verdict | undefined
  /** How far the newest attempt is. `sent`: its start was sent, or may have been; an execution may run. */
  stage: "waiting" | "sent" | "open" | "closed"
  /** The closing of the newest attempt, once it is closed. */
  closed: typeof AttemptClosed.Type | undefined
  /** The task has its verdict, whatever is still waiting for it. */
  isOver: boolean
  readonly login: { status: string | undefined }
  /** When the newest attempt was started (milliseconds); for those who look on. */
  startedAt: number | undefined
  /** Its start counts as one that waits for an answer. */
  isAwaited: boolean
  /** Sent with parameters although a token is stored: the attempt's probe must log in the same way. */
  byParameters: boolean
}

/** The book of a task for which nothing has been done yet. */
export const openBook = (work: TaskWork): Book => ({
  work,
  attempt: 1,
  probe: false,
  attemptsMade: 0,
  deferredSince: undefined,
  deferrals: 0,
  keys: loginKeysOf(work),
  token_id: undefined,
  lastVerdict: undefined,
  stage: "waiting",
  closed: undefined,
  isOver: false,
  login: { status: undefined },
  startedAt: undefined,
  byParameters: false,
  isAwaited: false,
})

/** A task or a session of the run, with its engine. */
export interface NightTask {
  readonly task_id: TaskId
  readonly engine_reference: EngineReference | undefined
}

export interface Night {
  readonly run: RunState
  readonly run_id: RunId
  readonly rules: Rules
  /** Absent if no deadline lies ahead. */
  readonly ending: Ending | undefined
  readonly mode: Mode
  readonly key: Uint8Array
  readonly schedule: Schedule
  readonly books: Map<string, Book>
  readonly breaker: EngineBreaker
  readonly heads: Heads
  /** Wakes the loop; one poke is as good as many. */
  readonly poke: Queue.Queue<void>
  readonly fork: (task: Effect.Effect<void, Failure, Needs>) => Effect.Effect<void, never, Needs>
  active: number
  /** When this process began to execute (milliseconds). */
  readonly begunAt: number
  /** Every task of the run, each once. */
  readonly tasks: ReadonlyArray<NightTask>
  /** Tasks that are over so far, and those among them that this process settled. */
  readonly ends: Map<string, Outcome>
  readonly settledHere: Set<string>
  readonly controls: Controls
  readonly troubles: Troubles
}

/** What the operator asked of the night. */
export interface Controls {
  state: "running" | "paused" | "draining"
  /** When a pause ends at the latest (milliseconds). */
  pausedUntil: number | undefined
  /** What was asked and is not in the ledger yet. */
  readonly asked: Array<typeof RunSteered.Type>
}

/** What was last found; a start that still needs its probe stays unknown without it. */
export const unstarted = (book: Book | undefined): Verdict | undefined =>
  book?.lastVerdict ?? (book?.probe === true ? own("START_UNKNOWN") : undefined)

/** What a task is settled with if it has not ended by itself when its run is over. */
const cutVerdict = (book: Book): Verdict | undefined => {
  if (book.isOver) return undefined
  switch (book.stage) {
    case "waiting":
      return unstarted(book) ?? own("DEADLINE_REACHED")
    case "sent":
      return own(book.probe ? "START_UNKNOWN" : "SERVICE_UNREACHABLE")
    case "open":
      return own("SERVICE_UNREACHABLE")
    case "closed":
      return own("RESULTS_PARTIAL")
  }
}

/** Settles a task that was cut off, depending on how far it has come. */
export const cutOff = Effect.fnUntraced(function* (night: Night, book: Book) {
  const verdict = cutVerdict(book)
  if (verdict !== undefined) yield* settle(night, book.work.task_id, verdict)
})

/** A task ends with its run, whatever it is waiting for. */
const untilCut = <R>(
  { ending }: Night,
  task: Effect.Effect<void, Failure, Needs>,
  orElse: Effect.Effect<void, Failure, R>,
) =>
  ending === undefined
    ? task
    : Effect.gen(function* () {
        const left = Math.max(0, ending.cutAt - (yield* Clock.currentTimeMillis))
        if (Option.isNone(yield* Effect.timeoutOption(task, left))) yield* orElse
      })

/**
 * Forks a task and counts it, so that the loop knows whether anything can still move. `orElse` runs if the
 * run ends before the task does.
 */
export const occupied = (
  night: Night,
  task: Effect.Effect<void, Failure, Needs>,
  orElse: Effect.Effect<void, Failure, Needs>,
) => {
  night.active += 1
  return night.fork(
    Effect.ensuring(
      untilCut(night, task, orElse),
      Effect.suspend(() => {
        night.active -= 1
        return Effect.asVoid(Queue.offer(night.poke, undefined))
      }),
    ),
  )
}

export const release = (night: Night, task_id: TaskId) =>
  Effect.suspend(() => {
    night.schedule.release(task_id)
    return Effect.asVoid(Queue.offer(night.poke, undefined))
  })

export const candidateOf = (book: Book): Candidate => ({
  task_id: book.work.task_id,
  ...accessOf(book.work),
  fingerprint: book.keys.fingerprint,
  account: book.keys.account?.account,
  takesMs: book.work.takesMs,
  tailMs: book.work.tailMs,
})

export const settle = (night: Night, task_id: TaskId, verdict: Verdict) =>
  settleAll(night, [{ task_id, verdict }])

export const noteEnd = ({ ends, settledHere }: Night, task_id: TaskId, outcome: Outcome): void => {
  ends.set(task_id, outcome)
  settledHere.add(task_id)
}

interface Settlement {
  readonly task_id: TaskId
  readonly verdict: Verdict
}

/** Until when nobody may log in for the task that did not finish (milliseconds); undefined if anybody may. */
const notBefore = Effect.fnUntraced(function* (night: Night, task_id: TaskId, verdict: Verdict) {
  const { outcome, not_before } = verdict
  const account = night.books.get(task_id)?.keys.account
  if (not_before !== undefined) return not_before
  if (outcome !== "unfinished" || account === undefined) return undefined
  const now = Math.trunc(yield* Clock.currentTimeMillis)
  const maxWaitMs = Duration.toMillis(night.rules.max_wait)
  const accounts = (yield* (yield* Ledger).accountsOf(account)).filter((one) => isOf(one, account))
  // One more would be the third: only a night in which others pass shows that it may be risked.
  if (strikesOf(accounts) === strikesMax - 1) return "next_date"
  const until = busyUntil(accounts, { now, maxWaitMs })
  return until > now ? until : undefined
})

/** A task that is cut off meanwhile has this verdict, and gets no other. */
const writeVerdicts = Effect.fnUntraced(function* (night: Night, settlements: ReadonlyArray<Settlement>) {
  const { run_id, books } = night
  const ledger = yield* Ledger
  const facts = yield* Effect.forEach(settlements, ({ task_id, verdict }) =>
    Effect.map(notBefore(night, task_id, verdict), (until) => ({
      _tag: "TaskSettled" as const,
      run_id,
      task_id,
      ...verdict,
      ...(until === undefined ? {} : { not_before: until }),
    })),
  )
  yield* ledger.append(facts)
  for (const { task_id, verdict } of settlements) {
    noteEnd(night, task_id, verdict.outcome)
    const book = books.get(task_id)
    if (book !== undefined) book.isOver = true
  }
}, Effect.uninterruptible)

/** Settles many tasks in one transaction: the end of a run must not cost one sync per task. */
export const settleAll = Effect.fnUntraced(function* (night: Night, settlements: ReadonlyArray<Settlement>) {
  yield* writeVerdicts(night, settlements)
  for (const { task_id, verdict } of settlements)
    yield* tell({ _tag: "Settled", task_id, outcome: verdict.outcome, reason: verdict.reason })
})

/** The task is tried again later, but not before this time (milliseconds). */
export const noteWait = Effect.fnUntraced(function* (
  { run_id }: Night,
  task_id: TaskId,
  reason: string,
  until: number,
) {
  const at = new Date(Math.trunc(until)).toISOString()
  yield* append({ _tag: "TaskWaits", run_id, task_id, reason, until: at })
  yield* tell({ _tag: "Waiting", task_id, why: reason, until })
})

/** Settles tasks that were removed from the schedule before they could start. */
export const settleWaiting = (night: Night, waiting: ReadonlyArray<Candidate>, reason: Reason) =>
  settleAll(
    night,
    waiting.flatMap(({ task_id }) => {
      const book = night.books.get(task_id)
      return book?.isOver === true ? [] : [{ task_id, verdict: unstarted(book) ?? own(reason) }]
    }),
  )

/** What one attempt of a task needs to know. */
export const orderOf = (night: Night, book: Book): AttemptOrder => ({
  run_id: night.run_id,
  task_id: book.work.task_id,
  ...accessOf(book.work),
  attempt: book.attempt,
  external_execution_id: externalExecutionId(night.key, book.work.task_id, book.attempt),
  ...book.keys,
  ...(book.token_id === undefined ? {} : { token_id: book.token_id }),
  ...(night.breaker.believes(book.keys.account?.account) ? {} : { isDisbelieved: true }),
  refused: night.run.tasks.get(book.work.task_id)?.refused ?? [],
  login: book.login,
  polling: night.rules.polling,
  looks: book.work.looks ?? [],
  max_wait: night.rules.max_wait,
  deadlineAt: night.rules.deadlineAt,
})
