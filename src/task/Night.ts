/**
 * The shared state of one executing run, and the few operations that change it: fork, release, settle.
 * Everything is in one process and one thread; only the ledger remembers.
 */
import { Clock, Effect, Fiber, Queue, type Scope } from "effect"
import { given } from "../base/Schemas.ts"
import { isoTime } from "../base/Text.ts"
import { DelayQueue } from "../base/Time.ts"
import { cutText } from "../service/BodyBounds.ts"
import { accessOf, type RunId, type TaskId } from "../service/Ids.ts"
import type { Service } from "../client/Service.ts"
import { own, type Reason, type Verdict } from "../service/Ends.ts"
import type { Outcome } from "../service/EndTable.ts"
import type { Landing, LandingFailed } from "../landing/Landing.ts"
import { busyUntil, isOf, strikesFor, strikesMax } from "../ledger/Accounts.ts"
import type { Fact, Recorded, RunSteered, TaskPlanned } from "../ledger/Fact.ts"
import { evolve, planTask } from "../ledger/FoldRun.ts"
import { append, Ledger, type LedgerFailed } from "../ledger/Ledger.ts"
import { courseOf, isElsewhere, serviceOf, type RunState, type TaskState } from "../ledger/RunState.ts"
import type { Candidate } from "../service/Execution.ts"
import type { Schedule } from "./Schedule.ts"
import { loginKeysOf, type LoginKeys } from "../privacy/Fingerprint.ts"
import { externalExecutionId, type AttemptOrder } from "./AttemptOrder.ts"
import type { Ending } from "./Ending.ts"
import type { EngineBreaker } from "./EngineBreaker.ts"
import type { Missed, Watch } from "./FollowAttempt.ts"
import type { Heads } from "./LookTurns.ts"
import { canBeSeen, cutVerdict, holdsOf, next, verdictLeft } from "./Next.ts"
import type { Act, LeftOpen, LeftRunning, Mode } from "./Next.ts"
import { tell } from "./Progress.ts"
import type { Troubles } from "./Troubles.ts"
import type { Rules, TaskWork } from "./Work.ts"

export type Failure = LedgerFailed | LandingFailed
export type Needs = Service | Ledger | Landing

/** What a process remembers of a task beside its facts: lost with the process, and decides no verdict. */
export interface Row {
  readonly work: TaskWork
  /** The login that is sent, or will be. */
  keys: LoginKeys
  tokenUse: Pick<AttemptOrder, "token_id" | "outside">
  /** Since when its start is put off (milliseconds), and how often it was. */
  deferredSince: number | undefined
  deferrals: number
  /** How often its start was answered that a run of somebody else is in its way. */
  conflicts: number
  /** Its probe is not sent sooner (milliseconds). */
  probeAt: number
  /** Its start counts as one that waits for an answer. */
  isAwaited: boolean
  /** Its login is sent although it may be the third strike of its account. */
  risks: "third" | undefined
  /** The execution that is followed. */
  watching: { readonly watch: Watch; readonly scope: Scope.Closeable } | undefined
  /** When it goes on without anybody's doing (milliseconds); undefined while a fiber works on it. */
  wakesAt: number | undefined
}

/** The row of a task for which nothing has been done yet. */
export const newRow = (work: TaskWork): Row => ({
  work,
  keys: loginKeysOf(work),
  tokenUse: {},
  deferredSince: undefined,
  deferrals: 0,
  conflicts: 0,
  probeAt: 0,
  isAwaited: false,
  risks: undefined,
  watching: undefined,
  wakesAt: undefined,
})

/** What the newest looks at another run's execution showed. */
export interface Sighting {
  said: string | undefined
  gone: Missed | undefined
}

/** A task or a session of the run. */
export type NightTask = Pick<typeof TaskPlanned.Type, "task_id" | "engine_reference">

export interface Night {
  /** As this process found it. */
  readonly run: RunState
  readonly run_id: RunId
  readonly rules: Rules
  /** Absent if no deadline lies ahead. */
  readonly ending: Ending | undefined
  readonly mode: Mode
  readonly key: Uint8Array
  readonly schedule: Schedule
  /** The tasks that this process takes up. */
  readonly rows: Map<string, Row>
  /** What other runs left open here and is not known to be over, with what this process saw of it. */
  readonly left: Map<LeftRunning, Sighting>
  /** What the facts of each task say by now. */
  readonly states: Map<string, TaskState>
  /** Tasks of which a fact met a defect of ours: their state is as it was before. */
  readonly broken: Map<string, { readonly cause: unknown }>
  readonly breaker: EngineBreaker
  readonly heads: Heads
  /** Wakes the loop; one poke is as good as many. */
  readonly poke: Queue.Queue<void>
  readonly fork: (
    task: Effect.Effect<void, Failure, Needs>,
  ) => Effect.Effect<Fiber.Fiber<void, Failure>, never, Needs>
  /** Fibers that work on a task: a task that only waits has none. */
  active: number
  /** What those of them do instead once the run is over; kept only where it has an end. */
  readonly working: Map<Fiber.Fiber<void, Failure>, Effect.Effect<void, Failure, Needs>>
  isCut: boolean
  /** Tasks whose executions are open, until their next poll; an entry counts while `wakesAt` is its time. */
  readonly resting: DelayQueue<Row>
  restingCount: number
  /** Until when the loop sleeps if nobody pokes it (milliseconds). */
  sleepsUntil: number
  readonly scope: Scope.Scope
  /** When this process began to execute (milliseconds). */
  readonly begunAt: number
  /** Every task of the run, each once. */
  readonly tasks: ReadonlyArray<NightTask>
  /** Tasks that are over so far, and those among them that this process settled. */
  readonly ends: Map<string, Outcome>
  readonly settledHere: Set<string>
  readonly controls: Controls
  troubles: Troubles
}

/** What the operator asked of the night. */
export interface Controls {
  state: "running" | "paused" | "draining"
  /** When a pause ends at the latest (milliseconds). */
  pausedUntil: number | undefined
  /** What was asked and is not in the ledger yet. */
  readonly asked: Array<typeof RunSteered.Type>
}

/** What the facts say of a task by now, also those of this process. */
export const taskOf = (night: Night, { work }: Row): TaskState | undefined => {
  const defect = night.broken.get(work.task_id)
  if (defect !== undefined) throw defect.cause
  return night.states.get(work.task_id)
}

export const nextOf = (night: Night, row: Row): Act =>
  night.ends.has(row.work.task_id) ? { _tag: "Done" } : next(taskOf(night, row), night.mode)

/** Every fact of the run changes its task here, before whoever wrote it goes on. */
export const follow = (night: Night) => {
  const { states, broken, rows, ends, settledHere, run_id } = night
  return ({ seq, at, fact }: Recorded): void => {
    if (!("task_id" in fact) || fact.task_id === undefined || fact.run_id !== run_id) return
    const { task_id } = fact
    if (fact._tag === "TaskSettled") {
      ends.set(task_id, fact.outcome)
      settledHere.add(task_id)
    }
    const work = rows.get(task_id)?.work
    const known = states.get(task_id) ?? (work && planTask(undefined, unplanned(run_id, work), at))
    if (fact._tag === "TaskPlanned") states.set(task_id, planTask(known, fact, at))
    else if (known !== undefined)
      try {
        states.set(task_id, evolve(known, { seq, at, fact }))
      } catch (cause) {
        // Whoever works on the task meets it, and settles that task alone.
        broken.set(task_id, { cause })
      }
  }
}

/** A task of which the run has no plan. */
const unplanned = (run_id: RunId, work: TaskWork): typeof TaskPlanned.Type => ({
  _tag: "TaskPlanned",
  run_id,
  task_id: work.task_id,
  ...accessOf(work),
  features: [],
})

/** Settles a task that was cut off, depending on how far it has come. */
export const cutOff = Effect.fnUntraced(function* (night: Night, row: Row) {
  const { task_id } = row.work
  if (!night.ends.has(task_id)) yield* settle(night, task_id, cutVerdict(taskOf(night, row)))
})

/**
 * Forks a task and counts it as moving. `orElse` runs if the run ends before the task does. A row that rests
 * then longer than the loop sleeps does not wake it.
 */
export const occupied = Effect.fnUntraced(function* (
  night: Night,
  task: Effect.Effect<void, Failure, Needs>,
  orElse: Effect.Effect<void, Failure, Needs>,
  row?: Row,
) {
  const left = Effect.sync(() => {
    night.active -= 1
    if ((row?.wakesAt ?? 0) < night.sleepsUntil) Queue.offerUnsafe(night.poke, undefined)
  })
  night.active += 1
  const fiber = yield* night.fork(Effect.ensuring(night.isCut ? orElse : task, left))
  if (night.ending === undefined || night.isCut) return
  night.working.set(fiber, Effect.ensuring(orElse, left))
  fiber.addObserver(() => night.working.delete(fiber))
})

/** A task ends with its run, whatever it is waiting for: nothing of it goes on after that. */
export const cutWhenOver = Effect.fnUntraced(function* (night: Night, cutAt: number) {
  yield* Effect.sleep(Math.max(0, cutAt - (yield* Clock.currentTimeMillis)))
  night.isCut = true
  for (const [fiber, orElse] of night.working) {
    night.active += 1
    yield* night.fork(Effect.andThen(Fiber.interrupt(fiber), orElse))
  }
})

/** The task has no fiber until then. */
export const rest = (night: Night, row: Row, until: number): void => {
  row.wakesAt = until
  night.resting.add(row, until)
  night.restingCount += 1
}

/** It goes on at once, and sees whether there is anything to do. */
export const stir = (night: Night, row: Row): void => {
  if (row.wakesAt === undefined || row.wakesAt === 0) return
  row.wakesAt = 0
  night.resting.add(row, 0)
  Queue.offerUnsafe(night.poke, undefined)
}

/** The next task whose time has come. */
export const wake = (night: Night, now: number): Row | undefined => {
  for (let row = night.resting.takeDue(now); row !== undefined; row = night.resting.takeDue(now)) {
    if (row.wakesAt === undefined || row.wakesAt > now) continue
    row.wakesAt = undefined
    night.restingCount -= 1
    return row
  }
  return undefined
}

export const release = (night: Night, task_id: TaskId) =>
  Effect.suspend(() => {
    night.schedule.release(task_id)
    return Effect.asVoid(Queue.offer(night.poke, undefined))
  })

/**
 * Its slot is free; what may still run at the service keeps its customer and its login. Whoever needs them
 * looks at what can be seen of it, and waits.
 */
export const leave = (night: Night, row: Row) => {
  const task = taskOf(night, row)
  const { started } = night.run
  const open = (task === undefined ? [] : holdsOf(task)).map((one): LeftOpen => ({
    ...one,
    job: started.job,
    service: serviceOf(started, one.attempt),
  }))
  const seen = open.filter(canBeSeen(night.rules.service))
  for (const one of seen) night.left.set(one, { said: one.attempt.authentication_status, gone: undefined })
  if (seen.length === open.length) return release(night, row.work.task_id)
  return Effect.suspend(() => {
    night.schedule.abandon(row.work.task_id)
    return Effect.asVoid(Queue.offer(night.poke, undefined))
  })
}

export const candidateOf = ({ work, keys }: Row): Candidate => ({
  task_id: work.task_id,
  ...accessOf(work),
  fingerprint: keys.fingerprint,
  account: keys.account?.account,
  takesMs: work.takesMs,
  tailMs: work.tailMs,
})

/** `proof`: what was found of its execution, in the same transaction. */
export const settle = (night: Night, task_id: TaskId, verdict: Verdict, proof: ReadonlyArray<Fact> = []) =>
  settleAll(night, [{ task_id, verdict, proof }])

interface Settlement {
  readonly task_id: TaskId
  readonly verdict: Verdict
  readonly proof?: ReadonlyArray<Fact>
}

/** Until when nobody may log in for the task that did not finish (milliseconds); undefined if anybody may. */
const notBefore = Effect.fnUntraced(function* (night: Night, task_id: TaskId, verdict: Verdict) {
  const { outcome, not_before } = verdict
  const account = night.rows.get(task_id)?.keys.account
  if (not_before !== undefined) return not_before
  if (outcome !== "unfinished" || account === undefined) return undefined
  const now = Math.trunc(yield* Clock.currentTimeMillis)
  const accounts = (yield* (yield* Ledger).accountsOf(account)).filter((one) => isOf(one, account))
  // One more would be the third: only a night in which others pass shows that it may be risked.
  if (strikesFor(accounts, account) === strikesMax - 1) return "next_date"
  // Its own execution is followed by whoever goes on with it.
  const task = night.states.get(task_id)
  const course = task && courseOf(task)
  const self = course?._tag === "Running" ? { ...course.last, run_id: night.run_id, task_id } : undefined
  const until = busyUntil(accounts, { now, ...given({ self }) })
  return until > now ? until : undefined
})

/**
 * Settles many tasks in one transaction: the end of a run must not cost one sync per task. A task that is cut
 * off meanwhile has this verdict, and gets no other.
 */
export const settleAll = Effect.fnUntraced(function* (night: Night, settlements: ReadonlyArray<Settlement>) {
  const facts = yield* Effect.forEach(settlements, ({ task_id, verdict, proof = [] }) =>
    Effect.map(notBefore(night, task_id, verdict), (until): ReadonlyArray<Fact> => {
      const told = { ...verdict, ...given({ not_before: until }) }
      return [...proof, { _tag: "TaskSettled", run_id: night.run_id, task_id, ...told }]
    }),
  )
  yield* append(...facts.flat())
}, Effect.uninterruptible)

interface Wait {
  readonly reason: string
  /** Milliseconds. */
  readonly until: number
  /** The service asked for it. */
  readonly isAsked?: boolean
}

export const waitFact = ({ run_id }: Night, task_id: TaskId, { reason, until, isAsked }: Wait): Fact => ({
  _tag: "TaskWaits",
  run_id,
  task_id,
  reason,
  until: isoTime(until),
  ...(isAsked === true ? { asked: true } : {}),
})

/** The task is tried again later, but not before; `proof` as in `settle`. */
export const noteWait = Effect.fnUntraced(function* (
  night: Night,
  task_id: TaskId,
  wait: Wait,
  proof: ReadonlyArray<Fact> = [],
) {
  yield* append(...proof, waitFact(night, task_id, wait))
  yield* tell({ _tag: "Waiting", task_id, why: wait.reason, until: wait.until })
})

/** Settles tasks that were removed from the schedule before they could start. */
export const settleWaiting = (
  night: Night,
  waiting: ReadonlyArray<Candidate>,
  reason: Reason,
  message?: string,
) => {
  const verdict: Verdict = { ...own(reason), ...given({ message: message && cutText(message) }) }
  return settleAll(
    night,
    waiting.flatMap(({ task_id }) =>
      night.ends.has(task_id)
        ? []
        : [{ task_id, verdict: verdictLeft(night.states.get(task_id)) ?? verdict }],
    ),
  )
}

/** What one attempt of a task needs to know. */
export const orderOf = (night: Night, row: Row, attempt: number): AttemptOrder => ({
  run_id: night.run_id,
  task_id: row.work.task_id,
  ...accessOf(row.work),
  attempt,
  external_execution_id: externalExecutionId(night.key, row.work.task_id, attempt),
  ...row.keys,
  ...row.tokenUse,
  ...(isElsewhere(night.run.started, {}, night.rules.service) ? { service: night.rules.service } : {}),
  ...(night.rules.flow_results.enabled ? {} : { results_off: true }),
  refused: taskOf(night, row)?.refused ?? [],
  said: () => {
    const last = taskOf(night, row)?.attempts.at(-1)
    return last?.attempt === attempt ? last.authentication_status : undefined
  },
  polling: night.rules.polling,
  looks: row.work.looks ?? [],
  max_wait: night.rules.max_wait,
  deadlineAt: night.rules.deadlineAt,
})
