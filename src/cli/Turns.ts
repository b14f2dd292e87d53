/**
 * When the jobs that are given together take their turns: decided before any of them starts, told on stderr,
 * and kept. A job starts once the jobs that it waits for are over, however they ended, and at the latest
 * before its own deadline.
 */
import { Clock, Deferred, Duration, Effect, Option, Semaphore } from "effect"
import type { Job } from "../jobs/Job.ts"
import { inOrder } from "../jobs/JobOrder.ts"
import { runsBesideMax } from "../ledger/RunId.ts"
import { touchesOf } from "../night/JobTouches.ts"
import { deadlineOf } from "../planning/NightOf.ts"
import { takeTurns } from "../planning/SideBySide.ts"
import type { Turn, Wait } from "../planning/SideBySide.ts"
import { SharedSlots } from "../scheduling/SharedSlots.ts"
import { counted } from "../foundation/Counted.ts"
import { note } from "./Output.ts"

const reasonText = (wait: Wait): string => {
  switch (wait.why) {
    case "after":
      return "as `after` asks"
    case "time":
      return "they do not run on the same clock"
    case "customer": {
      const { customer_id, engine_reference } = wait.example
      const others = wait.shared > 1 ? ` and ${wait.shared - 1} more` : ""
      return `both name ${customer_id} on ${engine_reference}${others}`
    }
    case "session":
      return `both read ${wait.shared > 1 ? counted(wait.shared, "session") : `the session ${wait.example}`}`
    case "login":
      return `both may send the same login to ${wait.engine_reference}`
  }
}

/** For people: a line for the jobs that start at once, and one for each that waits. */
export const turnLines = (turns: ReadonlyArray<Turn>): ReadonlyArray<string> => {
  const first = turns.flatMap(({ job, waits }) => (waits.length === 0 ? [job] : []))
  return [
    ...(first.length > 1 ? [`Side by side: ${first.join(", ")}.`] : []),
    ...turns.flatMap(({ job, waits }) => {
      const whom = waits.map((wait) => `${wait.job} (${reasonText(wait)})`)
      return whom.length === 0 ? [] : [`${job} starts after ${whom.join(", ")}.`]
    }),
  ]
}

/** Resolves references of logins, and reads the ledger; a job alone waits for nobody. */
export const turnsOf = Effect.fnUntraced(function* (jobs: ReadonlyArray<Job>) {
  const [only] = jobs
  if (only !== undefined && jobs.length === 1) return [{ job: only.name, waits: [] } satisfies Turn as Turn]
  return takeTurns(yield* Effect.forEach(inOrder(jobs), touchesOf))
})

/** Where the slots of a job's service are counted: one host, one count. */
const serviceName = ({ service }: Job): string =>
  service._tag === "Remote" ? new URL(service.base_url).host : "embedded"

interface Place {
  /** Its turn came before its own deadline. */
  readonly isInTime: boolean
  /** Slots that it shares; undefined for a job that is alone. */
  readonly slots: SharedSlots | undefined
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
  const slotsOf = (job: Job) => {
    const known = slots.get(serviceName(job)) ?? new SharedSlots()
    slots.set(serviceName(job), known)
    return known
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
    return yield* work(job, { isInTime, slots: jobs.length > 1 ? slotsOf(job) : undefined })
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

/** Told only if there is more than one. */
export const tellTurns = (turns: ReadonlyArray<Turn>) =>
  Effect.forEach(turnLines(turns), note, { discard: true })
