/**
 * What an operator may ask of the night that is running: a look, a pause, other limits, or to start nothing
 * more. Orders change what starts and never what is already running; each becomes a fact before the next
 * task starts.
 */
import { Context, Duration, Effect, Schema } from "effect"
import type { Scope } from "effect"
import type { Night } from "./Night.ts"
import { NightPicture, takePicture } from "./NightPicture.ts"

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
