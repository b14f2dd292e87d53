/**
 * The running night as one value, for people and programs that look at it: each task is counted once, as
 * waiting, running or settled, for each engine. A pure function of the night's state; it contains ids, counts
 * and times, and nothing of a login.
 */
import { isDeepStrictEqual } from "node:util"
import { Context, Duration, Effect, Schema, type Scope } from "effect"
import { given } from "../base/Schemas.ts"
import { outcomes, type Outcome } from "../service/EndTable.ts"
import { estimateNight, type ExpectedTask } from "./Expectations.ts"
import type { RunSteered } from "../ledger/Fact.ts"
import { courseOf } from "../ledger/RunState.ts"
import type { EngineReference, TaskId } from "../service/Ids.ts"
import type { Controls, Night } from "./Night.ts"
import { stages } from "./Progress.ts"
import type { WaitsFor } from "./Schedule.ts"
import type { Limits } from "./SharedSlots.ts"
import type { Troubles } from "./Troubles.ts"

const Count = Schema.Int
/** Milliseconds since the epoch, by the night's own clock. */
const Moment = Schema.Finite

const steeringStates = ["running", "paused", "draining"] as const

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
  /** While the tables are built anew from every run: how many are in them. */
  built: Schema.optionalKey(Schema.Struct({ done: Count, runs: Count })),
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

type Place = Outcome | WaitsFor | "running"

/** A task as it is counted: it has exactly one place, and a session never waits for a slot. */
interface SeenTask {
  readonly task_id: TaskId
  readonly engine: EngineReference | undefined
  readonly place: Place
  readonly isSettledHere: boolean
  readonly running_ms: number | undefined
}

const seeTasks = (night: Night, now: number): ReadonlyArray<SeenTask> => {
  const waiting = new Map(night.schedule.whatWaits(now).map(([{ task_id }, why]) => [task_id, why]))
  return night.tasks.map(({ task_id, engine_reference: engine }): SeenTask => {
    const isTakenUp = engine === undefined || night.rows.has(task_id)
    const place = night.ends.get(task_id) ?? waiting.get(task_id) ?? (isTakenUp ? "running" : "slot")
    const began = place === "running" ? startedAt(night, task_id) : undefined
    const running_ms = began === undefined ? undefined : now - began
    return { task_id, engine, place, isSettledHere: night.settledHere.has(task_id), running_ms }
  })
}

const rowOf = (
  engine_reference: string,
  tasks: ReadonlyArray<SeenTask>,
  elapsedMs: number,
  closedUntil?: number,
): EnginePicture => {
  const places = Map.groupBy(tasks, ({ place }) => place)
  const at = (place: Place): number => places.get(place)?.length ?? 0
  let slowest: EnginePicture["slowest"]
  for (const { task_id, running_ms = -1 } of tasks)
    if (running_ms > (slowest?.running_ms ?? -1)) slowest = { task_id, running_ms }
  const settled = tasks.filter(({ isSettledHere }) => isSettledHere).length
  return {
    engine_reference,
    tasks: tasks.length,
    queued: at("slot"),
    waiting: { time: at("time"), engine: at("engine"), conflict: at("conflict") },
    running: at("running"),
    done: {
      succeeded: at("succeeded"),
      partial: at("partial"),
      failed: at("failed"),
      skipped: at("skipped"),
      unfinished: at("unfinished"),
    },
    per_hour: elapsedMs <= 0 ? 0 : Math.round((settled * hourMs * 10) / elapsedMs) / 10,
    ...given({ slowest, closed_until: closedUntil }),
  }
}

const rowsOf = (night: Night, now: number): Pick<NightPicture, "total" | "engines"> => {
  const sorted = [...Map.groupBy(seeTasks(night, now), ({ engine }) => engine)].toSorted(
    ([, one], [, other]) => other.length - one.length,
  )
  const others = sorted.slice(enginesMax).flatMap(([, tasks]) => tasks)
  const named = sorted
    .slice(0, enginesMax)
    .map(([engine, tasks]) => {
      const until = engine === undefined ? 0 : night.schedule.closedUntil(engine)
      return { name: engine ?? sessionRow, tasks, until: until > now ? until : undefined }
    })
    .toSorted((one, other) => (one.name < other.name ? -1 : 1))
  const rows = others.length === 0 ? named : [...named, { name: otherRow, tasks: others, until: undefined }]
  const elapsedMs = now - night.begunAt
  const all = rows.flatMap(({ tasks }) => tasks)
  return {
    total: rowOf("total", all, elapsedMs),
    engines: rows.map(({ name, tasks, until }) => rowOf(name, tasks, elapsedMs, until)),
  }
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

/** Undefined if nothing is left, if it is not known how long that takes, or if nothing starts now. */
const expectedEnd = (night: Night, now: number): number | undefined => {
  const open = night.tasks.filter(({ task_id }) => !night.ends.has(task_id))
  const left = open.flatMap(({ task_id }) => leftOf(night, task_id, now) ?? [])
  const isKnown = left.length > 0 && left.length === open.length && night.controls.state === "running"
  return isKnown ? now + Duration.toMillis(estimateNight(left, night.schedule.limits)) : undefined
}

const servicePicture = ({ lastAnswerAt, silent, throttled }: Troubles): NightPicture["service"] =>
  given({
    last_answer_at: lastAnswerAt,
    silent_since: silent?.isTold === true ? silent.since : undefined,
    throttled_since: throttled?.since,
  })

/** The night as it is now. */
export const takePicture = (night: Night, now: number): NightPicture => {
  const { state, pausedUntil } = night.controls
  return {
    run_id: night.run_id,
    at: now,
    began_at: night.begunAt,
    stage: "executing",
    state,
    ...given({
      paused_until: pausedUntil,
      deadline_at: night.rules.deadlineAt,
      expected_end_at: expectedEnd(night, now),
    }),
    service: servicePicture(night.troubles),
    limits: night.schedule.limits,
    job_limits: night.rules.limits,
    ...rowsOf(night, now),
  }
}

// What an operator may ask: a look, a pause, other limits, or to start nothing more. Orders never change what
// runs already; each becomes a fact before the next task starts.

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
  const isOver = night.controls.state === "draining" && order._tag !== "Drain"
  const why = isOver ? "draining" : isAbove(order, night.rules.limits) ? "above_job" : undefined
  const changed = why === undefined && obey(night, order, now)
  const picture = takePicture(night, now)
  return why === undefined
    ? { _tag: "Steered", changed, night: picture }
    : { _tag: "NotSteered", why, night: picture }
}

/** False if the night was like that already. */
const obey = (night: Night, order: Order, now: number): boolean => {
  const { controls, schedule, run_id } = night
  switch (order._tag) {
    case "Pause":
      return enter(night, "paused", { order: "pause" }, now + Duration.toMillis(pauseMax))
    case "Resume":
      return enter(night, "running", { order: "resume" })
    case "Drain":
      return enter(night, "draining", { order: "drain" })
    case "Limit": {
      const { _tag, ...asked } = order
      const limits = { ...schedule.limits, ...asked }
      if (isDeepStrictEqual(limits, schedule.limits)) return false
      schedule.setLimits(limits)
      controls.asked.push({ _tag: "RunSteered", run_id, order: "limit", ...limits })
      return true
    }
  }
}

const enter = (
  { controls, run_id }: Night,
  state: Controls["state"],
  asked: Pick<typeof RunSteered.Type, "order" | "because">,
  pausedUntil?: number,
): boolean => {
  if (controls.state === state) return false
  controls.state = state
  controls.pausedUntil = pausedUntil
  controls.asked.push({ _tag: "RunSteered", run_id, ...asked })
  return true
}

/** Ends a pause that took too long. */
export const endLongPause = (night: Night, now: number): void => {
  const { state, pausedUntil } = night.controls
  if (state === "paused" && pausedUntil !== undefined && pausedUntil <= now)
    enter(night, "draining", { order: "drain", because: "pause_over" })
}

/** An order as this night can take it: its own job's limits are the highest. */
const withinJob = (order: Order, { job_limits: highest }: NightPicture): Order => {
  if (order._tag !== "Limit") return order
  const { max_in_flight, per_engine } = order
  const limits = {
    max_in_flight: max_in_flight && Math.min(max_in_flight, highest.max_in_flight),
    per_engine: per_engine && Math.min(per_engine, highest.per_engine),
  }
  return { _tag: "Limit", ...given(limits) }
}

const isAbove = (order: Order, highest: Limits): boolean =>
  order._tag === "Limit" &&
  ((order.max_in_flight ?? 0) > highest.max_in_flight || (order.per_engine ?? 0) > highest.per_engine)

/**
 * Limits above one job's are that job's own, unless they are above every job's. Returns the nights that took
 * the order, or why none did; undefined if none executes.
 */
export const steerAll = (
  nights: ReadonlyArray<SteerableNight>,
  order: Order,
): ReadonlyArray<SteeredNight> | NotSteered | undefined => {
  const isTooMuch = nights.every((night) => isAbove(order, night.look().job_limits))
  const answers = nights.map((night) => night.steer(isTooMuch ? order : withinJob(order, night.look())))
  const taken = answers.flatMap((answer) =>
    answer._tag === "Steered" ? [{ changed: answer.changed, night: answer.night }] : [],
  )
  return taken.length > 0 ? taken : answers.find((answer) => answer._tag === "NotSteered")
}
