/**
 * Tells the receivers of a job about a run: a ping when it begins, a notice if it is late, and at its end
 * what happened. A receiver that cannot be told costs a warning and some seconds, and never changes an exit
 * code.
 */
import { Cause, Clock, Duration, Effect, Fiber } from "effect"
import type { HttpClient } from "effect/http"
import type { ChildProcessSpawner } from "effect/process"
import type { Job, NotifyEvent, Receiver } from "../jobs/Job.ts"
import { eventsOf, lateNotice, noticeOf } from "../notify/Notice.ts"
import type { RunEnding } from "../notify/Notice.ts"
import { ping, tell, toldWithin } from "../notify/Receivers.ts"
import type { Undelivered } from "../notify/Receivers.ts"
import type { Secrets } from "../jobs/Secrets.ts"
import { deadlineOf, waitsUntil } from "../planning/NightOf.ts"
import { warn } from "./Output.ts"
import { Wiring } from "./Wiring.ts"

const hears = (receiver: Receiver, event: NotifyEvent): receiver is Exclude<Receiver, { _tag: "Ping" }> =>
  receiver._tag !== "Ping" && receiver.on.includes(event)

type Delivery = Effect.Effect<
  void,
  Undelivered,
  HttpClient.HttpClient | ChildProcessSpawner.ChildProcessSpawner | Secrets
>

/** A warning instead of an error; a ping and a notice are bounded by themselves, and once more here. */
const orWarn = (receiver: string, delivery: Delivery) =>
  delivery.pipe(
    Effect.timeoutOrElse({
      duration: toldWithin,
      orElse: () => warn("notice-undelivered", { receiver, why: "it did not answer in time" }),
    }),
    Effect.catchCause((cause) => {
      if (Cause.hasInterruptsOnly(cause)) return Effect.interrupt
      const failure = cause.reasons.find(Cause.isFailReason)?.error
      return warn("notice-undelivered", { receiver, why: failure?.message ?? "a defect" })
    }),
  )

/** All at once, each within its own time: ten dead receivers take as long as one. */
const toAll = Effect.fnUntraced(function* (
  job: Job,
  deliveryTo: (receiver: Receiver) => Delivery | undefined,
) {
  const deliveries = job.notify.flatMap((receiver) => {
    const delivery = deliveryTo(receiver)
    return delivery === undefined ? [] : [orWarn(receiver.name, delivery)]
  })
  if (deliveries.length === 0) return
  const wiring = yield* Wiring
  yield* Effect.all(deliveries, { concurrency: "unbounded", discard: true }).pipe(
    Effect.scoped,
    Effect.provide(wiring.receivers),
  )
})

/**
 * When a run is late, on its own clock; undefined if never. A job without `night` is late after its deadline.
 */
const lateAt = (job: Job, now: number): number | undefined => {
  if (!job.notify.some((receiver) => hears(receiver, "late"))) return undefined
  const at = job.night === undefined ? deadlineOf(job, { started_at: now, now }) : waitsUntil(now, job)
  return at !== undefined && at > now ? at : undefined
}

/**
 * A run during which receivers are told if it is late: it waits on the run's own clock and sends on the
 * machine's. What is being sent when the run ends is sent, within its time.
 */
export const watchedForLate =
  (job: Job, machine: Clock.Clock) =>
  <A, E, R>(work: Effect.Effect<A, E, R>) =>
    Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      const at = lateAt(job, now)
      if (at === undefined) return yield* work
      let isLate = false
      const watch = yield* Effect.forkChild(
        Effect.gen(function* () {
          yield* Effect.sleep(Duration.millis(at - now))
          isLate = true
          const notice = lateNotice(job.name, at)
          yield* toAll(job, (receiver) =>
            hears(receiver, "late") ? tell(receiver, notice) : undefined,
          ).pipe(Effect.provideService(Clock.Clock, machine))
        }),
      )
      const ending = Effect.suspend(() => (isLate ? Fiber.await(watch) : Fiber.interrupt(watch)))
      return yield* Effect.ensuring(work, ending)
    })

/** Undefined: there was nothing to do, so there is nothing to tell beyond a ping. */
export type Ending = RunEnding | undefined

/** Pings at the beginning without waiting for it, and tells the end. */
export const announced =
  (job: Job) =>
  <A extends { readonly exit_code: number; readonly ending: Ending }, E, R>(work: Effect.Effect<A, E, R>) =>
    Effect.gen(function* () {
      const begun = yield* Effect.forkChild(
        toAll(job, (receiver) => (receiver._tag === "Ping" ? ping(receiver, { _tag: "Begins" }) : undefined)),
      )
      const told = yield* work
      const { exit_code, ending } = told
      yield* Fiber.await(begun)
      const events = ending === undefined ? [] : eventsOf(ending)
      yield* toAll(job, (receiver) => {
        if (receiver._tag === "Ping") return ping(receiver, { _tag: "Ended", exit_code })
        const heard = events.filter((event) => hears(receiver, event))
        return ending === undefined || heard.length === 0
          ? undefined
          : tell(receiver, noticeOf(heard, ending))
      })
      return told
    })
