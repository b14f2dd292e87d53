/**
 * Runs the tasks of one run to their verdicts: one fiber per task, slots and conflicts by the Schedule,
 * every decision by the pure modules of this room. A failure to write the ledger or landing stops the whole
 * run; nothing that the service does ever stops it.
 */
import { Clock, Effect, FiberSet, Queue } from "effect"
import { Service } from "../client/Service.ts"
import { own } from "../service/Ends.ts"
import { append, Ledger } from "../ledger/Ledger.ts"
import type { RunState, TaskState } from "../ledger/RunState.ts"
import { Schedule } from "./Schedule.ts"
import type { Candidate } from "../service/Execution.ts"
import { SlotsBeside } from "./SharedSlots.ts"
import type { Limits } from "./SharedSlots.ts"
import { loginKeysOf } from "../privacy/Fingerprint.ts"
import { EngineBreaker, standingsOf } from "./EngineBreaker.ts"
import { endingOf, serviceUntil } from "./Ending.ts"
import { candidateOf, cutOff, occupied, openBook, settle, settleWaiting, unstarted } from "./Night.ts"
import type { Book, Failure, Night, NightTask } from "./Night.ts"
import { noteAnswered } from "./Outage.ts"
import { Steering, endLongPause, steer, takePicture } from "./NightPicture.ts"
import { tell } from "./Progress.ts"
import { noting, noTroubles } from "./Troubles.ts"
import { enlistSession, finish, readAgain } from "./FinishTask.ts"
import { AnswerUnusable } from "./Quarantine.ts"
import { guarded, guardedReading } from "./SettleUnusable.ts"
import { follow, settleRefusal, startTask } from "./RunTask.ts"
import { attemptsToReadAgain, obstaclesOf, resumeWork, unseenOf } from "./TaskResumption.ts"
import type { Mode, TaskResumption } from "./TaskResumption.ts"
import type { Rules, SessionWork, TaskWork } from "./Work.ts"

/**
 * Executes, follows, pulls and settles until nothing is left to do; on return, every task is settled or
 * left open.
 */
export const executeRun = Effect.fn("ExecuteRun.executeRun")(function* (input: {
  readonly run: RunState
  readonly works: ReadonlyArray<TaskWork>
  readonly sessions: ReadonlyArray<SessionWork>
  readonly rules: Rules
  readonly mode: Mode
  /** What other runs may still have open: nothing that conflicts with it is started. */
  readonly elsewhere: ReadonlyArray<Candidate>
}) {
  const ledger = yield* Ledger
  const service = yield* Service
  const begunAt = yield* Clock.currentTimeMillis
  const ending = endingOf(input.rules.deadlineAt, begunAt)
  const fibers = yield* FiberSet.make<void, Failure>()
  const poke = yield* Queue.sliding<void>(1)
  const breaker = new EngineBreaker(standingsOf(input.works, yield* ledger.accounts))
  const night: Night = {
    run: input.run,
    run_id: input.run.started.run_id,
    rules: input.rules,
    ending,
    mode: input.mode,
    key: yield* ledger.fingerprintKey,
    schedule: yield* openSchedule(input.rules.limits, { poke, breaker }),
    books: new Map(),
    breaker,
    heads: { trial: "untried" },
    poke,
    fork: (task) => Effect.asVoid(FiberSet.run(fibers, task)),
    active: 0,
    begunAt,
    tasks: tasksOf(input),
    ends: new Map(
      [...input.run.tasks].flatMap(([task_id, { settled }]) =>
        settled === undefined ? [] : [[task_id, settled.fact.outcome]],
      ),
    ),
    settledHere: new Set(),
    controls: { state: "running", pausedUntil: undefined, asked: [] },
    troubles: noTroubles(),
  }
  const clock = yield* Clock.Clock
  yield* (yield* Steering).hold({
    look: () => takePicture(night, clock.currentTimeMillisUnsafe()),
    steer: (order) => {
      const steered = steer(night, order, clock.currentTimeMillisUnsafe())
      Queue.offerUnsafe(night.poke, undefined)
      return steered
    },
  })
  for (const open of input.elsewhere) {
    night.schedule.occupy(open)
    night.schedule.abandon(open.task_id)
  }
  const work = Effect.gen(function* () {
    yield* enlistAll(night, input.works, input.elsewhere)
    for (const session of input.sessions) yield* enlistSession(night, session)
    yield* Effect.raceFirst(dispatch(night), FiberSet.join(fibers))
  })
  const { run_id, troubles } = night
  const noted = noting(service, troubles, { run_id, told: Queue.offer(night.poke, undefined) })
  yield* Effect.provideService(work, Service, serviceUntil(noted, ending?.lastAnswerAt ?? Infinity))
}, Effect.scoped)

/** Beside other runs its slots are shared with theirs, until the run is over. */
const openSchedule = Effect.fnUntraced(function* (
  limits: Limits,
  { poke, breaker }: Pick<Night, "poke" | "breaker">,
) {
  const share = yield* SlotsBeside
  const schedule = new Schedule(limits, share, breaker)
  if (share !== undefined)
    yield* Effect.acquireRelease(
      Effect.sync(() => share.attach(schedule, () => Queue.offerUnsafe(poke, undefined))),
      () => Effect.sync(share.detach),
    )
  return schedule
})

/** The tasks of the run, and those that the job has named since it began. */
const tasksOf = ({
  run,
  works,
}: {
  readonly run: RunState
  readonly works: ReadonlyArray<TaskWork>
}): ReadonlyArray<NightTask> => [
  ...[...run.tasks.values()].map(({ planned: { task_id, engine_reference } }) => ({
    task_id,
    engine_reference,
  })),
  ...works.filter(({ task_id }) => !run.tasks.has(task_id)),
]

/** What the operator asked for, and what became known, is in the ledger before anything else happens. */
const obeyOrders = Effect.fnUntraced(function* (night: Night, now: number) {
  const { controls, troubles } = night
  endLongPause(night, now)
  const facts = [...controls.asked.splice(0), ...troubles.news.splice(0)]
  if (facts.length > 0) yield* append(...facts)
  for (const fact of facts) yield* tell({ _tag: "Noted", fact })
  if (controls.state === "draining") yield* settleWaiting(night, night.schedule.drain(), "RUN_DRAINED")
})

/** The loop: starts every task that may start, then sleeps until a task moves or a time comes. */
const dispatch = Effect.fnUntraced(function* (night: Night) {
  const { schedule, rules } = night
  for (;;) {
    const now = yield* Clock.currentTimeMillis
    if (rules.deadlineAt !== undefined && now >= rules.deadlineAt)
      yield* settleWaiting(night, schedule.drain(), "DEADLINE_REACHED")
    yield* obeyOrders(night, now)
    const take = () => (night.controls.state === "running" ? schedule.take(now) : undefined)
    for (let next = take(); next !== undefined; next = take()) {
      const candidate = next
      const book = night.books.get(candidate.task_id)
      if (book === undefined) continue
      night.breaker.began(candidate.engine_reference)
      book.isAwaited = true
      const starting = Effect.ensuring(startTask(night, book, candidate), noteAnswered(night, book))
      yield* occupied(night, guarded(night, book, starting), cutOff(night, book))
    }
    const { state, pausedUntil } = night.controls
    if (night.active === 0 && state === "running") {
      if (schedule.waiting === 0) return
      // Only what could not be stopped, or is another run's, is in the way: it will not move in this run.
      if (schedule.nextWake(now) === undefined && !schedule.isHeldUp(now))
        yield* settleWaiting(night, schedule.drain(), "ALREADY_EXECUTING")
      if (schedule.waiting === 0) return
    }
    if (night.active === 0 && schedule.waiting === 0) return
    const wakeAt = Math.min(
      state === "running" ? (schedule.nextWake(now) ?? Infinity) : (pausedUntil ?? Infinity),
      schedule.waiting > 0 ? (rules.deadlineAt ?? Infinity) : Infinity,
    )
    const poked = Queue.take(night.poke)
    yield* wakeAt === Infinity ? poked : Effect.timeoutOption(poked, Math.max(1, wakeAt - now))
  }
})

/** Reads where each task continues, and queues or forks it. */
const enlistAll = Effect.fnUntraced(function* (
  night: Night,
  works: ReadonlyArray<TaskWork>,
  elsewhere: ReadonlyArray<Candidate>,
) {
  const { begunAt, mode, rules } = night
  const [open, read] = [[...elsewhere], new Array<TaskWork>()]
  const readPast = (work: TaskWork, look: (state: TaskState | undefined) => void) => {
    const unread: Book = { ...openBook(work), stage: "sent" }
    const looking = Effect.sync(() => {
      const state = night.run.tasks.get(work.task_id)
      noteLeft(unread, state)
      look(state)
    })
    return guarded(night, unread, looking)
  }
  for (const work of works)
    yield* readPast(work, (state) => {
      open.push(...unseenOf(state, rules.max_wait, begunAt))
      read.push(work)
    })
  const obstacles = obstaclesOf(open, rules.deadlineAt, begunAt)
  const found: Array<readonly [Book, TaskResumption]> = []
  for (const work of read)
    yield* readPast(work, (state) => {
      const asked = { ...work, isPlanned: work.prepare !== undefined }
      found.push([openBook(work), resumeWork(asked, state, mode, obstacles)])
    })
  const owesProbe = found.filter(([, one]) => one._tag === "Start" && one.probe)
  // What may run unseen is looked for first: until then nobody else uses its login.
  for (const [book, resumption] of new Set([...owesProbe, ...found])) {
    if (resumption._tag !== "Nothing") night.ends.delete(book.work.task_id)
    night.books.set(book.work.task_id, book)
    yield* guarded(night, book, resume(night, book, resumption))
  }
})

/** Until it is known where a task continues, what is left of its newest attempt stays as it is. */
const noteLeft = (unread: Book, state: TaskState | undefined): void => {
  const last = state?.attempts.at(-1)
  if (last === undefined) return void (unread.stage = "waiting")
  unread.keys = loginKeysOf(last)
  if (last.closed === undefined) return
  unread.stage = "closed"
  if (last.deletion === undefined) unread.closed = last.closed.fact
}

const resume = Effect.fnUntraced(function* (night: Night, book: Book, resumption: TaskResumption) {
  const { work } = book
  const state = night.run.tasks.get(work.task_id)
  if ("attemptsMade" in resumption) book.attemptsMade = resumption.attemptsMade
  for (const kept of attemptsToReadAgain(state)) {
    const again = guardedReading(night, work.task_id, readAgain(night, book, kept), kept.closed)
    // What is not read again now stays at the service as it is.
    yield* occupied(night, again, Effect.void)
  }
  yield* holdUnseen(night, state)
  switch (resumption._tag) {
    case "Nothing":
      return
    case "NightOver":
      return yield* settle(night, work.task_id, own("NIGHT_OVER"))
    case "NotStarted":
      return yield* settle(night, work.task_id, own(resumption.reason))
    case "StartUnknown":
      return yield* settle(night, work.task_id, own("START_UNKNOWN"))
    case "NotOurs":
      return yield* settle(night, work.task_id, own("NOT_OURS"))
    case "Unusable":
      book.stage = "sent"
      book.keys = loginKeysOf(resumption.attempt)
      night.schedule.occupy(candidateOf(book))
      return yield* occupied(night, guarded(night, book, unusableStart), cutOff(night, book))
    case "Refused":
      book.token_id = state?.attempts.at(-1)?.token_id
      return yield* settleRefusal(night, book, resumption.status_reason)
    case "Start":
      book.attempt = resumption.attempt
      book.probe = resumption.probe
      book.byParameters = resumption.probe && state?.attempts.at(-1)?.token_id === undefined
      if (work.prepare === undefined)
        return yield* settle(night, work.task_id, unstarted(book) ?? own("NIGHT_OVER"))
      if (!book.probe) return night.schedule.add(candidateOf(book))
      book.stage = "sent"
      night.schedule.occupy(candidateOf(book))
      return night.schedule.owe(candidateOf(book), 0)
    case "Follow": {
      const { attempt, execution_id } = resumption
      book.attempt = attempt.attempt
      book.keys = loginKeysOf(attempt)
      book.token_id = attempt.token_id
      book.login.status = attempt.authentication_status
      night.schedule.occupy(candidateOf(book))
      const { session_id, accepted_at, abort } = attempt
      const open = { execution_id, session_id, accepted_at: accepted_at ?? attempt.intended_at, abort }
      return yield* occupied(night, guarded(night, book, follow(night, book, open)), cutOff(night, book))
    }
    case "Finish":
      book.attempt = resumption.attempt.attempt
      book.keys = loginKeysOf(resumption.attempt)
      book.token_id = resumption.attempt.token_id
      return yield* occupied(
        night,
        guarded(night, book, finish(night, book, resumption.closed, resumption.attempt.abort)),
        cutOff(night, book),
      )
  }
})

const holdUnseen = Effect.fnUntraced(function* (night: Night, state: TaskState | undefined) {
  for (const unseen of unseenOf(state, night.rules.max_wait, yield* Clock.currentTimeMillis)) {
    night.schedule.occupy(unseen)
    night.schedule.abandon(unseen.task_id)
  }
})

/** An earlier process read the answer to the start, and died before it could settle the task. */
const unusableStart = Effect.fail(
  new AnswerUnusable({ what: "start", why: "an earlier process could not use it" }),
)
