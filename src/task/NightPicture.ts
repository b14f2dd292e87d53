/**
 * The running night as one value, for people and programs that look at it: each task is counted once, as
 * waiting, running or settled, for each engine. A pure function of the night's state; it contains ids, counts
 * and times, and nothing of a login.
 */
import { Context, Duration, Effect, Schema, type Scope } from "effect"
import { outcomes, type Outcome } from "../service/EndTable.ts"
import { estimateNight, type ExpectedTask } from "./Expectations.ts"
import { courseOf } from "../ledger/RunState.ts"
import type { Night, NightTask } from "./Night.ts"
import type { WaitsFor } from "./Schedule.ts"
import type { Troubles } from "./Troubles.ts"

const Count = Schema.Int
/** Milliseconds since the epoch, by the night's own clock. */
const Moment = Schema.Finite

const steeringStates = ["running", "paused", "draining"] as const
const stages = ["executing", "publishing", "deleting", "ended"] as const

const LimitsPicture = Schema.Struct({ max_in_flight: Count, per_engine: Count })

/** queued + waiting + running + done = tasks. */
const EnginePicture = Schema.Struct({
  engine_reference: Schema.String,
  tasks: Count,
  /** For a free slot. */
  queued: Count,
  /** For a time (a retry), for an engine that is offline, for a customer or a login that is in use. */
  waiting: Schema.Struct({ time: Count, engine: Count, conflict: Count }),
  running: Count,
  done: Schema.Record(Schema.Literals(outcomes), Count),
  /** Tasks that this process settled per hour. */
  per_hour: Schema.Finite,
  slowest: Schema.optionalKey(Schema.Struct({ task_id: Schema.String, running_ms: Schema.Finite })),
  closed_until: Schema.optionalKey(Moment),
})
export type EnginePicture = typeof EnginePicture.Type

export const NightPicture = Schema.Struct({
  run_id: Schema.String,
  at: Moment,
  began_at: Moment,
  stage: Schema.Literals(stages),
  state: Schema.Literals(steeringStates),
  /** The end of a pause: then the run is drained. */
  paused_until: Schema.optionalKey(Moment),
  deadline_at: Schema.optionalKey(Moment),
  /** By what earlier runs took; absent if that is not known for every task that is left. */
  expected_end_at: Schema.optionalKey(Moment),
  /** What the last calls showed; the moments are those of the first call that failed. */
  service: Schema.Struct({
    last_answer_at: Schema.optionalKey(Moment),
    silent_since: Schema.optionalKey(Moment),
    throttled_since: Schema.optionalKey(Moment),
  }),
  /** The newest version that was published while the run goes on, and how many tasks are in it. */
  published: Schema.optionalKey(Schema.Struct({ at: Moment, version: Count, tasks: Count })),
  limits: LimitsPicture,
  job_limits: LimitsPicture,
  total: EnginePicture,
  engines: Schema.Array(EnginePicture),
})
export type NightPicture = typeof NightPicture.Type

/** Flow sessions have no engine. */
const sessionRow = "(session)"
/** Engines in a picture; those with the fewest tasks are one row. */
const enginesMax = 100
const otherRow = "(other engines)"
const hourMs = 3_600_000

type Mutable<A> = { -readonly [K in keyof A]: A[K] }
interface Row {
  tasks: number
  queued: number
  readonly waiting: Mutable<EnginePicture["waiting"]>
  running: number
  readonly done: Record<Outcome, number>
  settledHere: number
  slowest: EnginePicture["slowest"]
  closed_until: number | undefined
}

const emptyRow = (): Row => ({
  tasks: 0,
  queued: 0,
  waiting: { time: 0, engine: 0, conflict: 0 },
  running: 0,
  done: { succeeded: 0, partial: 0, failed: 0, skipped: 0, unfinished: 0 },
  settledHere: 0,
  slowest: undefined,
  closed_until: undefined,
})

const addRow = (sum: Row, one: Row): Row => {
  sum.tasks += one.tasks
  sum.queued += one.queued
  for (const why of ["time", "engine", "conflict"] as const) sum.waiting[why] += one.waiting[why]
  sum.running += one.running
  for (const outcome of outcomes) sum.done[outcome] += one.done[outcome]
  sum.settledHere += one.settledHere
  if ((one.slowest?.running_ms ?? -1) > (sum.slowest?.running_ms ?? -1)) sum.slowest = one.slowest
  return sum
}

const rowPicture = (
  engine_reference: string,
  { settledHere, slowest, closed_until, ...row }: Row,
  elapsedMs: number,
): EnginePicture => ({
  engine_reference,
  ...row,
  per_hour: elapsedMs <= 0 ? 0 : Math.round((settledHere * hourMs * 10) / elapsedMs) / 10,
  ...(slowest === undefined ? {} : { slowest }),
  ...(closed_until === undefined ? {} : { closed_until }),
})

type Place = Outcome | WaitsFor | "running"

/** What became of a task so far; each task has exactly one place. A session never waits for a slot. */
const placeOf = (
  night: Night,
  { task_id, engine_reference }: NightTask,
  waiting: ReadonlyMap<string, WaitsFor>,
): Place =>
  night.ends.get(task_id) ??
  waiting.get(task_id) ??
  (engine_reference === undefined || night.rows.has(task_id) ? "running" : "slot")

const countTask = (row: Row, place: Place): void => {
  row.tasks += 1
  if (place === "slot") row.queued += 1
  else if (place === "running") row.running += 1
  else if (place === "time" || place === "engine" || place === "conflict") row.waiting[place] += 1
  else row.done[place] += 1
}

/** What is left of a task, by earlier runs; undefined if they do not say. */
const leftOf = (night: Night, task_id: string, now: number): ExpectedTask | undefined => {
  const work = night.rows.get(task_id)?.work
  if (work?.takesMs === undefined) return undefined
  const spent = now - (startedAt(night, task_id) ?? now)
  const left = Duration.millis(Math.max(0, work.takesMs - spent))
  return { task_id: work.task_id, engine_reference: work.engine_reference, expected: left }
}

/** When the execution that it has was started (milliseconds); undefined if it has none. */
const startedAt = (night: Night, task_id: string): number | undefined => {
  const task = night.rows.has(task_id) ? night.states.get(task_id) : undefined
  const course = task === undefined ? undefined : courseOf(task)
  if (course === undefined || course._tag === "Planned" || course._tag === "Waiting") return undefined
  return course.last.accepted_at ?? course.last.intended_at
}

const servicePicture = ({ lastAnswerAt, silent, throttled }: Troubles): NightPicture["service"] => ({
  ...(lastAnswerAt === undefined ? {} : { last_answer_at: lastAnswerAt }),
  ...(silent?.isTold === true ? { silent_since: silent.since } : {}),
  ...(throttled === undefined ? {} : { throttled_since: throttled.since }),
})

/** The night as it is now. */
export const takePicture = (night: Night, now: number): NightPicture => {
  const waiting = new Map(night.schedule.whatWaits(now).map(([{ task_id }, why]) => [task_id as string, why]))
  const rows = new Map<string, Row>()
  const left: Array<ExpectedTask> = []
  let isExpected = true
  for (const task of night.tasks) {
    const { task_id, engine_reference: engine } = task
    const row = rows.get(engine ?? sessionRow) ?? emptyRow()
    rows.set(engine ?? sessionRow, row)
    const place = placeOf(night, task, waiting)
    countTask(row, place)
    if (night.settledHere.has(task_id)) row.settledHere += 1
    const began = startedAt(night, task_id)
    if (place === "running" && began !== undefined && now - began > (row.slowest?.running_ms ?? -1))
      row.slowest = { task_id, running_ms: now - began }
    if (engine !== undefined) {
      const until = night.schedule.closedUntil(engine)
      row.closed_until = until > now ? until : undefined
    }
    if (night.ends.has(task_id)) continue
    const one = leftOf(night, task_id, now)
    if (one === undefined) isExpected = false
    else left.push(one)
  }
  const { limits } = night.schedule
  const elapsedMs = now - night.begunAt
  const sorted = [...rows].toSorted(([, one], [, other]) => other.tasks - one.tasks)
  const others = sorted.slice(enginesMax)
  const told = sorted
    .slice(0, enginesMax)
    .toSorted(([one], [other]) => (one < other ? -1 : 1))
    .concat(others.length === 0 ? [] : [[otherRow, others.map(([, row]) => row).reduce(addRow, emptyRow())]])
  const total = told.map(([, row]) => row).reduce(addRow, emptyRow())
  const { deadlineAt } = night.rules
  const { state, pausedUntil } = night.controls
  return {
    run_id: night.run_id,
    at: now,
    began_at: night.begunAt,
    stage: "executing",
    state,
    ...(pausedUntil === undefined ? {} : { paused_until: pausedUntil }),
    ...(deadlineAt === undefined ? {} : { deadline_at: deadlineAt }),
    ...(isExpected && left.length > 0 && state === "running"
      ? { expected_end_at: now + Duration.toMillis(estimateNight(left, limits)) }
      : {}),
    service: servicePicture(night.troubles),
    limits,
    job_limits: night.rules.limits,
    total: rowPicture("total", total, elapsedMs),
    engines: told.map(([engine, row]) => rowPicture(engine, row, elapsedMs)),
  }
}

// What an operator may ask of the night that is running: a look, a pause, other limits, or to start nothing
// more. Orders change what starts and never what is already running; each becomes a fact before the next
// task starts.

const Limit = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 100_000 }))

export const Order = Schema.Union([
  Schema.TaggedStruct("Pause", {}),
  Schema.TaggedStruct("Resume", {}),
  Schema.TaggedStruct("Drain", {}),
  Schema.TaggedStruct("Limit", {
    max_in_flight: Schema.optionalKey(Limit),
    per_engine: Schema.optionalKey(Limit),
  }),
])
export type Order = typeof Order.Type

/** draining: nothing can be asked any more. above_job: the job's own limits are the highest. */
export const NotSteered = Schema.TaggedStruct("NotSteered", {
  why: Schema.Literals(["draining", "above_job"]),
  night: NightPicture,
})
type NotSteered = typeof NotSteered.Type

/** `changed`: false if the night was like that already. */
export const SteeredNight = Schema.Struct({ changed: Schema.Boolean, night: NightPicture })
type SteeredNight = typeof SteeredNight.Type

export const Steered = Schema.Union([Schema.TaggedStruct("Steered", SteeredNight.fields), NotSteered])
export type Steered = typeof Steered.Type

/** A pause that nobody ends becomes a drain, so that no run waits for ever. */
export const pauseMax = Duration.hours(8)

/** The night as whoever steers it sees it; both calls return at once. */
export interface SteerableNight {
  readonly look: () => NightPicture
  readonly steer: (order: Order) => Steered
}

/** Whoever looks on, if anybody does; the night is theirs until the scope ends. */
export const Steering = Context.Reference<{
  readonly hold: (night: SteerableNight) => Effect.Effect<void, never, Scope.Scope>
  /** The night that is held, or as it was last; undefined before the first. */
  readonly look: () => NightPicture | undefined
}>("nightjar/execution/Steering", {
  defaultValue: () => ({ hold: () => Effect.void, look: () => undefined }),
})

/** Carries out an order; what it becomes in the ledger is left in `controls.asked`. */
export const steer = (night: Night, order: Order, now: number): Steered => {
  const { controls, schedule, run_id } = night
  const done = (changed: boolean): Steered => ({
    _tag: "Steered",
    changed,
    night: takePicture(night, now),
  })
  const refused = (why: "draining" | "above_job"): Steered => ({
    _tag: "NotSteered",
    why,
    night: takePicture(night, now),
  })
  if (controls.state === "draining") return order._tag === "Drain" ? done(false) : refused("draining")
  switch (order._tag) {
    case "Pause":
      if (controls.state === "paused") return done(false)
      controls.state = "paused"
      controls.pausedUntil = now + Duration.toMillis(pauseMax)
      controls.asked.push({ _tag: "RunSteered", run_id, order: "pause" })
      return done(true)
    case "Resume":
      if (controls.state === "running") return done(false)
      controls.state = "running"
      controls.pausedUntil = undefined
      controls.asked.push({ _tag: "RunSteered", run_id, order: "resume" })
      return done(true)
    case "Drain":
      drain(night)
      return done(true)
    case "Limit": {
      const { _tag, ...asked } = order
      const limits = { ...schedule.limits, ...asked }
      const highest = night.rules.limits
      if (limits.max_in_flight > highest.max_in_flight || limits.per_engine > highest.per_engine)
        return refused("above_job")
      const isSame =
        limits.max_in_flight === schedule.limits.max_in_flight &&
        limits.per_engine === schedule.limits.per_engine
      if (isSame) return done(false)
      schedule.setLimits(limits)
      controls.asked.push({ _tag: "RunSteered", run_id, order: "limit", ...limits })
      return done(true)
    }
  }
}

const drain = ({ controls, run_id }: Night, because?: "pause_over"): void => {
  controls.state = "draining"
  controls.pausedUntil = undefined
  controls.asked.push({
    _tag: "RunSteered",
    run_id,
    order: "drain",
    ...(because === undefined ? {} : { because }),
  })
}

/** Ends a pause that took too long. */
export const endLongPause = (night: Night, now: number): void => {
  const { state, pausedUntil } = night.controls
  if (state === "paused" && pausedUntil !== undefined && pausedUntil <= now) drain(night, "pause_over")
}

/** An order as this night can take it: its own job's limits are the highest. */
const withinJob = (order: Order, { job_limits }: NightPicture): Order => {
  if (order._tag !== "Limit") return order
  const { max_in_flight, per_engine } = order
  return {
    _tag: "Limit",
    ...(max_in_flight === undefined
      ? {}
      : { max_in_flight: Math.min(max_in_flight, job_limits.max_in_flight) }),
    ...(per_engine === undefined ? {} : { per_engine: Math.min(per_engine, job_limits.per_engine) }),
  }
}

const isAbove = (order: Order, { job_limits }: NightPicture): boolean =>
  order._tag === "Limit" &&
  ((order.max_in_flight ?? 0) > job_limits.max_in_flight || (order.per_engine ?? 0) > job_limits.per_engine)

/**
 * Gives an order to all nights that execute. Limits that are above one job's are its own, unless they are
 * above every job's. Returns the nights that took it, or why none did; undefined if none executes.
 */
export const steerAll = (
  nights: ReadonlyArray<SteerableNight>,
  order: Order,
): ReadonlyArray<SteeredNight> | NotSteered | undefined => {
  const isTooMuch = nights.every((night) => isAbove(order, night.look()))
  const answers = nights.map((night) => night.steer(isTooMuch ? order : withinJob(order, night.look())))
  const taken = answers.flatMap((answer) =>
    answer._tag === "Steered" ? [{ changed: answer.changed, night: answer.night }] : [],
  )
  return taken.length > 0 ? taken : answers.find((answer) => answer._tag === "NotSteered")
}
