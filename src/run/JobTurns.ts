/**
 * When the jobs that are given together take their turns: decided before any of them starts, and kept. A job
 * starts once the jobs that it waits for are over, however they ended, and at the latest before its own
 * deadline. Jobs at one service share its slots.
 */
import { Clock, Deferred, Duration, Effect, Option, Semaphore, type Scope } from "effect"
import { embeddedKey, inOrder, type Job } from "../jobs/Job.ts"
import { maxWaitLongest } from "../jobs/Settings.ts"
import type { RunHeader } from "../ledger/FoldRun.ts"
import { Ledger } from "../ledger/Ledger.ts"
import { runsBesideMax, serviceOf } from "../ledger/RunState.ts"
import { accessOf, type RunId } from "../service/Ids.ts"
import { deadlineOf, isCollectedBy } from "../task/ChooseRun.ts"
import { holdsOf, type LeftOpen } from "../task/Next.ts"
import { SharedSlots, SlotsBeside, besideOthers } from "../task/SharedSlots.ts"
import { takeTurns, type Touches, type Turn } from "../task/SideBySide.ts"

// Executions that runs left at the service and that may still be open: the ledger knows of no end. No other
// run starts the same customers and logins meanwhile.

const openIn = Effect.fnUntraced(function* (isMeant: (run: RunHeader) => boolean) {
  const ledger = yield* Ledger
  const open: Array<LeftOpen> = []
  for (const run of yield* ledger.runs) {
    if (run.ended?.leftovers === false || !isMeant(run)) continue
    const { job, run_id } = run.fact
    for (const task of (yield* ledger.state(run_id))?.tasks.values() ?? [])
      open.push(...holdsOf(task).map((one) => ({ ...one, job, service: serviceOf(run.fact, one.attempt) })))
  }
  return open
})

/** What earlier runs of the job, and of jobs that it replaces, may still have open. */
export const leftOpenBy = (job: Job) => openIn(({ fact }) => isCollectedBy(job, fact.job))

/** What is followed to its end when these runs are collected. */
export const followedIn = (collect: ReadonlyArray<RunId>) =>
  Effect.map(
    openIn(({ fact }) => collect.includes(fact.run_id)),
    // Whoever collects its run learns how it ends, and what the source says to its login.
    (open) => open.filter(({ isSeen }) => isSeen),
  )

/**
 * What other runs have open, as long as it may last (`openMs`): until then, nobody else logs in there. The
 * logins of runs that go on beside this one are waited for instead (`HeldLogin.ts`).
 */
export const leftOpenBeside = Effect.fn("LeftOpen.beside")(function* (
  run_id: RunId,
  /** Runs that will be followed to their end before. */
  collect: ReadonlyArray<RunId> = [],
) {
  const now = yield* Clock.currentTimeMillis
  const newest = now - Duration.toMillis(maxWaitLongest)
  const live = (yield* SlotsBeside)?.jobs()
  const open = yield* openIn(
    ({ fact, ended, newest_at }) =>
      fact.run_id !== run_id && !collect.includes(fact.run_id) && (ended === undefined || newest_at > newest),
  )
  return open
    .filter(({ until }) => until > now)
    .map((one) =>
      live?.has(one.job) === true ? { ...one, fingerprint: undefined, account: undefined } : one,
    )
})

// What each of the jobs may start, read or still have open.

/** On which clock the runs of a job live. */
const timeOf = ({ service }: Job): string => (service._tag === "Remote" ? "machine" : embeddedKey(service))

export const touchesOf = Effect.fn("JobTouches.of")(function* (job: Job) {
  // Who is no longer in the job may still be logged in.
  const open = yield* leftOpenBy(job)
  return {
    job: job.name,
    after: (job.after ?? []).map((one) => one.job),
    collects: [job.name, ...(job.replaces ?? [])],
    time: timeOf(job),
    accesses: [...job.assignments, ...open].map(accessOf),
    sessions: job.sessions.map(({ session_id }) => session_id),
    isUnderWay: open.length > 0,
  } satisfies Touches as Touches
})

/** A job alone waits for nobody. What is under way at the service is finished first. */
export const turnsOf = Effect.fnUntraced(function* (jobs: ReadonlyArray<Job>) {
  const [only] = jobs
  if (only !== undefined && jobs.length === 1) return [{ job: only.name, waits: [] } satisfies Turn as Turn]
  const touches = new Map((yield* Effect.forEach(jobs, touchesOf)).map((one) => [one.job, one] as const))
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

/** What became of each job, in the order of `jobs`; one whose turn came too late is told so. */
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
