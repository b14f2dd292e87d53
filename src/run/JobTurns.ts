/**
 * When the jobs that are given together take their turns: decided before any of them starts, and kept. A job
 * starts once the jobs that it waits for are over, however they ended, and at the latest before its own
 * deadline. Jobs at one service share its slots.
 */
import { Clock, Deferred, Duration, Effect, Option, Semaphore } from "effect"
import type { Scope } from "effect"
import { besideOthers } from "../task/SlotsBeside.ts"
import type { Job } from "../jobs/Job.ts"
import { inOrder } from "../jobs/JobOrder.ts"
import { runsBesideMax } from "../ledger/RunId.ts"
import { deadlineOf } from "../task/NightOf.ts"
import { takeTurns } from "../task/SideBySide.ts"
import type { Touches, Turn } from "../task/SideBySide.ts"
import { SharedSlots } from "../task/SharedSlots.ts"
import { touchesOf } from "./JobTouches.ts"

/**
 * Resolves references of logins, and reads the ledger; a job alone waits for nobody. What is under way at the
 * service is finished before others may want the same customers.
 */
export const turnsOf = Effect.fnUntraced(function* (jobs: ReadonlyArray<Job>) {
  const [only] = jobs
  if (only !== undefined && jobs.length === 1) return [{ job: only.name, waits: [] } satisfies Turn as Turn]
  const touches = new Map<string, Touches>()
  for (const job of jobs) touches.set(job.name, yield* touchesOf(job))
  const isUnderWay = ({ name }: Job) => touches.get(name)?.isUnderWay === true
  const given = [...jobs.filter(isUnderWay), ...jobs.filter((job) => !isUnderWay(job))]
  return takeTurns(inOrder(given).flatMap(({ name }) => touches.get(name) ?? []))
})

/** Where the slots of a job's service are counted: one host, one count. */
const serviceName = ({ service }: Job): string =>
  service._tag === "Remote" ? new URL(service.base_url).host : "embedded"

export interface Place {
  /** Its turn came before its own deadline. */
  readonly isInTime: boolean
  /** Runs the job's run with its part in the slots of its service. */
  readonly beside: <A, E, R>(run: Effect.Effect<A, E, R>) => Effect.Effect<A, E, Exclude<R, Scope.Scope>>
}

/**
 * Runs the work of each job in its turn, and returns what became of it in the order of `jobs`. The work of a
 * job whose turn came too late is told so.
 */
export const inTurns = Effect.fnUntraced(function* <A, E, R>(
  jobs: ReadonlyArray<Job>,
  turns: ReadonlyArray<Turn>,
  work: (job: Job, place: Place) => Effect.Effect<A, E, R>,
) {
  const over = new Map(jobs.map(({ name }) => [name, Deferred.makeUnsafe<void>()]))
  const places = Semaphore.makeUnsafe(runsBesideMax)
  const slots = new Map<string, SharedSlots>()
  const placeOf = (job: Job): Place["beside"] => {
    if (jobs.length === 1) return Effect.scoped
    const known = slots.get(serviceName(job)) ?? new SharedSlots()
    slots.set(serviceName(job), known)
    return besideOthers(known, job)
  }
  const begunAt = yield* Clock.currentTimeMillis
  const awaitTurn = Effect.fnUntraced(function* (job: Job) {
    for (const wait of turns.find((turn) => turn.job === job.name)?.waits ?? []) {
      const other = over.get(wait.job)
      if (other !== undefined) yield* Deferred.await(other)
    }
    yield* Effect.acquireRelease(places.take(1), () => places.release(1), { interruptible: true })
  })
  const one = Effect.fnUntraced(function* (job: Job) {
    const deadlineAt = deadlineOf(job, { started_at: begunAt, now: begunAt })
    const turn =
      deadlineAt === undefined
        ? Effect.asSome(awaitTurn(job))
        : Effect.timeoutOption(awaitTurn(job), Duration.millis(deadlineAt - begunAt))
    const isInTime = Option.isSome(yield* turn)
    return yield* work(job, { isInTime, beside: placeOf(job) })
  }, Effect.scoped)
  return yield* Effect.forEach(
    jobs,
    (job) =>
      Effect.ensuring(
        one(job),
        Effect.sync(() => Deferred.doneUnsafe(over.get(job.name)!, Effect.void)),
      ),
    { concurrency: "unbounded" },
  )
})
