/**
 * Runs the tasks of one run to their verdicts: one loop, which begins a fiber for a task that has something
 * to do; slots and conflicts by the Schedule, every decision by the pure modules of this room. A failure to
 * write the ledger or landing stops the whole run; nothing that the service does ever stops it.
 */
import { Clock, Duration, Effect, FiberSet, Queue } from "effect"
import { DelayQueue } from "../base/Time.ts"
import { Service, everyCall } from "../client/Service.ts"
import { own } from "../service/Ends.ts"
import { tokenUse } from "../ledger/FoldRun.ts"
import { append, Ledger } from "../ledger/Ledger.ts"
import type { RunState, TaskState } from "../ledger/RunState.ts"
import { Schedule } from "./Schedule.ts"
import { SlotsBeside, type Limits } from "./SharedSlots.ts"
import { loginKeysOf } from "../privacy/Fingerprint.ts"
import { EngineBreaker, standingsOf } from "./EngineBreaker.ts"
import { answeredBy, endingOf } from "./Ending.ts"
import {
  candidateOf,
  cutOff,
  cutWhenOver,
  follow,
  newRow,
  occupied,
  settle,
  settleWaiting,
  taskOf,
  wake,
} from "./Night.ts"
import type { Failure, Needs, Night, Row } from "./Night.ts"
import { attemptsToReadAgain, canBeSeen, obstaclesOf, takeUp, unseenOf } from "./Next.ts"
import type { Act, LeftOpen, MaybeOpen, Mode, NotStarted } from "./Next.ts"
import { noteAnswered } from "./Outage.ts"
import { Steering, endLongPause, steer, takePicture } from "./NightPicture.ts"
import { tell } from "./Progress.ts"
import { noting, noTroubles } from "./Troubles.ts"
import { enlistSession, readAgain } from "./FinishTask.ts"
import type { AnswerUnusable } from "./Quarantine.ts"
import { guarded, guardedReading } from "./SettleUnusable.ts"
import { proceed, startTask } from "./RunTask.ts"
import type { SessionTask } from "./Plan.ts"
import type { Rules, TaskWork } from "./Work.ts"

/** On return, every task is settled or left open. */
export const executeRun = Effect.fn("ExecuteRun.executeRun")(function* (input: {
  readonly run: RunState
  readonly works: ReadonlyArray<TaskWork>
  readonly sessions: ReadonlyArray<SessionTask>
  readonly rules: Rules
  readonly mode: Mode
  /** What other runs may still have open: nothing that conflicts with it is started meanwhile. */
  readonly elsewhere: ReadonlyArray<LeftOpen>
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
    states: new Map(input.run.tasks),
    rows: new Map(),
    left: new Map(),
    broken: new Map(),
    breaker,
    heads: { trial: "untried" },
    poke,
    fork: (task) => FiberSet.run(fibers, task),
    active: 0,
    working: new Map(),
    isCut: false,
    resting: new DelayQueue(),
    restingCount: 0,
    sleepsUntil: Infinity,
    scope: yield* Effect.scope,
    begunAt,
    tasks: [
      ...[...input.run.tasks.values()].map(({ planned }) => planned),
      // Those that the job has named since the run began.
      ...input.works.filter(({ task_id }) => !input.run.tasks.has(task_id)),
    ],
    ends: new Map(
      [...input.run.tasks].flatMap(([task_id, { settled }]) =>
        settled === undefined ? [] : [[task_id, settled.fact.outcome]],
      ),
    ),
    settledHere: new Set(),
    controls: { state: "running", pausedUntil: undefined, asked: [] },
    troubles: noTroubles(input.run.started.run_id),
  }
  yield* ledger.follow(follow(night))
  yield* showNight(night)
  const work = Effect.gen(function* () {
    if (ending !== undefined) yield* Effect.forkScoped(cutWhenOver(night, ending.cutAt))
    yield* enlistAll(night, input.works, input.elsewhere)
    for (const session of input.sessions) yield* enlistSession(night, session)
    yield* Effect.raceFirst(dispatch(night), FiberSet.join(fibers))
  })
  const noted = noting(service, night, Queue.offer(night.poke, undefined))
  const lastAnswerAt = ending?.lastAnswerAt ?? Infinity
  const untilThen = everyCall(noted, (call) => answeredBy(call, lastAnswerAt))
  yield* Effect.provideService(work, Service, untilThen)
}, Effect.scoped)

/** Whoever looks on may see it and steer it while it executes. */
const showNight = Effect.fnUntraced(function* (night: Night) {
  const clock = yield* Clock.Clock
  yield* (yield* Steering).hold({
    look: () => takePicture(night, clock.currentTimeMillisUnsafe()),
    steer: (order) => {
      const steered = steer(night, order, clock.currentTimeMillisUnsafe())
      Queue.offerUnsafe(night.poke, undefined)
      return steered
    },
  })
})

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

/** What the operator asked for, and what became known, is in the ledger before anything else happens. */
const obeyOrders = Effect.fnUntraced(function* (night: Night, now: number) {
  const { controls, troubles } = night
  endLongPause(night, now)
  const facts = [...controls.asked.splice(0), ...troubles.news]
  night.troubles = { ...troubles, news: [] }
  if (facts.length > 0) yield* append(...facts)
  for (const fact of facts) yield* tell({ _tag: "Noted", fact })
  if (controls.state === "draining") yield* settleWaiting(night, night.schedule.drain(), "RUN_DRAINED")
})

/**
 * Where many executions are waited for, those that come due so soon after each other are polled together: one
 * by one, each would wake the whole process. None is polled later than that.
 */
const gatherMs = ({ rules, restingCount }: Night): number =>
  restingCount < 100 ? 0 : Math.min(250, Duration.toMillis(rules.polling.min) / 8)

/** Starts what may start, goes on with what is due, and sleeps until something moves. */
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
      const row = night.rows.get(candidate.task_id)
      if (row === undefined) continue
      night.breaker.began(candidate.engine_reference)
      row.isAwaited = true
      const starting = Effect.ensuring(startTask(night, row, candidate), noteAnswered(night, row))
      yield* workOn(night, row, starting)
    }
    for (let row = wake(night, now); row !== undefined; row = wake(night, now))
      yield* workOn(night, row, proceed(night, row))
    const { state, pausedUntil } = night.controls
    const moving = night.active + night.restingCount
    if (moving === 0 && state === "running") {
      if (schedule.waiting === 0) return
      // Only what nobody can look at is in the way: it will not move in this run.
      if (schedule.nextWake(now) === undefined && !schedule.isHeldUp(now))
        yield* settleWaiting(night, schedule.drain(), "ALREADY_EXECUTING")
      if (schedule.waiting === 0) return
    }
    if (moving === 0 && schedule.waiting === 0) return
    const wakeAt = Math.min(
      Math.max(night.resting.nextAt ?? Infinity, now + gatherMs(night)),
      state === "running" ? (schedule.nextWake(now) ?? Infinity) : (pausedUntil ?? Infinity),
      schedule.waiting > 0 ? (rules.deadlineAt ?? Infinity) : Infinity,
    )
    night.sleepsUntil = wakeAt
    const poked = Queue.take(night.poke)
    yield* wakeAt === Infinity ? poked : Effect.timeoutOption(poked, Math.max(1, wakeAt - now))
  }
})

/** Reads where each task goes on, and queues or forks it. */
const enlistAll = Effect.fnUntraced(function* (
  night: Night,
  works: ReadonlyArray<TaskWork>,
  elsewhere: ReadonlyArray<LeftOpen>,
) {
  const { begunAt, mode, rules, left } = night
  const [open, read] = [new Array<MaybeOpen>(), new Array<TaskWork>()]
  const isSeen = canBeSeen(rules.service)
  for (const one of elsewhere)
    if (isSeen(one)) left.set(one, { said: one.attempt.authentication_status, gone: undefined })
    else open.push(one)
  const readPast = (work: TaskWork, look: (task: TaskState | undefined) => void) => {
    const unread = newRow(work)
    const looking = Effect.sync(() => look(taskOf(night, unread)))
    return guarded(night, unread, looking)
  }
  for (const work of works)
    yield* readPast(work, (task) => {
      open.push(...unseenOf(task, begunAt))
      read.push(work)
    })
  for (const one of open) night.schedule.hold(one)
  const obstacles = obstaclesOf(open, rules.deadlineAt, begunAt)
  const found: Array<readonly [Row, Act | NotStarted]> = []
  for (const work of read)
    yield* readPast(work, (task) => {
      const asked = { ...work, isPlanned: work.prepare !== undefined }
      found.push([newRow(work), takeUp(asked, task, mode, obstacles)])
    })
  const owesProbe = found.filter(([, act]) => act._tag === "Start" && act.probe)
  // What may run unseen is looked for first: until then nobody else uses its login.
  for (const [row, act] of new Set([...owesProbe, ...found])) {
    if (act._tag !== "Done") night.ends.delete(row.work.task_id)
    night.rows.set(row.work.task_id, row)
    yield* guarded(night, row, resume(night, row, act))
  }
})

const resume = Effect.fnUntraced(function* (night: Night, row: Row, act: Act | NotStarted) {
  const { task_id } = row.work
  const task = taskOf(night, row)
  for (const kept of attemptsToReadAgain(task)) {
    const again = guardedReading(night, task_id, readAgain(night, row, kept), kept.last)
    // What is not read again now stays at the service as it is.
    yield* occupied(night, again, Effect.void)
  }
  if (act._tag === "Done") return
  if (act._tag === "NotStarted") return yield* settle(night, task_id, own(act.reason))
  if (act._tag === "Settle") return yield* settle(night, task_id, act.verdict)
  if ("last" in act) {
    row.keys = loginKeysOf(act.last)
    row.tokenUse = tokenUse(act.last)
  }
  if (act._tag === "Follow" || act._tag === "Unusable" || (act._tag === "Start" && act.probe))
    night.schedule.occupy(candidateOf(row))
  if (act._tag === "Start") return yield* proceed(night, row)
  yield* workOn(night, row, proceed(night, row))
})

/** One fiber at a time works on a task. */
const workOn = (night: Night, row: Row, work: Effect.Effect<void, Failure | AnswerUnusable, Needs>) =>
  occupied(night, guarded(night, row, work), guarded(night, row, cutOff(night, row)), row)
