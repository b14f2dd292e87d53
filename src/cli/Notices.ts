/**
 * Tells the receivers of a job when a run begins, is late, ends or cannot begin. A receiver that cannot be
 * told costs a warning and some seconds, and never changes an exit code.
 */
import { existsSync } from "node:fs"
import { hostname } from "node:os"
import { join, resolve } from "node:path"
import { Cause, Clock, Duration, Effect, Fiber } from "effect"
import { renderProblem, topOf, type Problem } from "../base/DurableFile.ts"
import { counted } from "../base/Text.ts"
import { endingOfCause, failed, messageIn, ok, refuse, type Ending as CommandEnding } from "./Failures.ts"
import { note, warn } from "./Output.ts"
import { ping, tell } from "./Receivers.ts"
import { runFolder } from "./OutputFolder.ts"
import { Wiring } from "./Wiring.ts"
import type { Job, NotifyEvent, Receiver } from "../jobs/Job.ts"
import type { Secrets } from "../jobs/Secrets.ts"
import { eventsOf, isIncomplete, lateNotice, noticeOf } from "../report/Notice.ts"
import type { Origin, RunEnding } from "../report/Notice.ts"
import { deadlineOf, runDateAt, waitsUntil } from "../task/ChooseRun.ts"
import { Steering } from "../task/NightPicture.ts"

const hears = (receiver: Receiver, event: NotifyEvent): receiver is Exclude<Receiver, { _tag: "Ping" }> =>
  receiver._tag !== "Ping" && receiver.on.includes(event)

type Delivery = ReturnType<typeof tell>

/** A warning instead of an error. */
const orWarn = (receiver: string, delivery: Delivery) =>
  Effect.catchCause(delivery, (cause) => {
    if (Cause.hasInterruptsOnly(cause)) return Effect.interrupt
    const why = cause.reasons.find(Cause.isFailReason)?.error ?? "a defect"
    return warn("notice-undelivered", { receiver, why })
  })

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

export const originOf = (job: Job) =>
  Effect.map(Clock.currentTimeMillis, (now): Origin => ({
    host: hostname(),
    job: job.name,
    run_date: runDateAt(now, job),
  }))

/** On the run's own clock; undefined if never. A job without `night` is late after its deadline. */
const lateAt = (job: Job, now: number): number | undefined => {
  if (!job.notify.some((receiver) => hears(receiver, "late"))) return undefined
  const at = job.night === undefined ? deadlineOf(job, { started_at: now, now }) : waitsUntil(now, job)
  return at !== undefined && at > now ? at : undefined
}

/** The end of a night is the deadline too, which ends what is open: a moment later nothing of it is. */
const lookedBeforeMs = 10_000

/** It waits on the run's clock and sends on the machine's; what is being sent at its end is sent. */
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
          const { look } = yield* Steering
          const lookedAt = Math.max(now, at - lookedBeforeMs)
          yield* Effect.sleep(Duration.millis(lookedAt - now))
          const picture = look()
          yield* Effect.sleep(Duration.millis(at - lookedAt))
          isLate = true
          const notice = lateNotice(yield* originOf(job), at, picture)
          const told = toAll(job, (one) => (hears(one, "late") ? tell(one, notice) : undefined))
          yield* Effect.provideService(told, Clock.Clock, machine)
        }),
      )
      const ending = Effect.suspend(() => (isLate ? Fiber.await(watch) : Fiber.interrupt(watch)))
      return yield* Effect.ensuring(work, ending)
    })

export interface ToldEnd {
  readonly exit_code: number
  /** Undefined: there was nothing to do, so there is nothing to tell beyond a ping. */
  readonly ending: RunEnding | undefined
}

export const endingWithoutRun = (job: Job, ended: CommandEnding): RunEnding => {
  const { exit_code, lines } = ended
  const id = messageIn(ended)
  const message = id && { id, afterwards: lines.at(-1) ?? "" }
  return { job: job.name, exit_code, summary: undefined, message, recovered: false, news: [] }
}

const reportOf = (output: string, { summary }: RunEnding): string | undefined => {
  if (summary === undefined) return undefined
  const path = resolve(join(runFolder(output, summary.run_id), "report.html"))
  return existsSync(path) ? path : undefined
}

const tellEnd = Effect.fnUntraced(function* (job: Job, output: string, { exit_code, ending }: ToldEnd) {
  const events = ending === undefined ? [] : eventsOf(ending)
  const isAlarm = isIncomplete(exit_code) || events.some((event) => event !== "recovered")
  const origin = yield* originOf(job)
  yield* toAll(job, (receiver) => {
    if (receiver._tag === "Ping")
      return ping(receiver, isAlarm ? "fail" : "success", `exit code ${exit_code}\n`)
    const heard = events.filter((event) => hears(receiver, event))
    return ending === undefined || heard.length === 0
      ? undefined
      : tell(receiver, noticeOf(heard, ending, { ...origin, report: reportOf(output, ending) }))
  })
})

/** Pings at the beginning without waiting for it, and tells the end. */
export const announced =
  (job: Job, output: string) =>
  <A extends ToldEnd, E, R>(work: Effect.Effect<A, E, R>) =>
    Effect.gen(function* () {
      const begun = yield* Effect.forkChild(
        toAll(job, (receiver) => (receiver._tag === "Ping" ? ping(receiver, "start", "") : undefined)),
      )
      const told = yield* work
      yield* Fiber.await(begun)
      yield* tellEnd(job, output, told)
      return told
    })

/** Tells the receivers of all these jobs if they cannot even begin, for the reason that the command ends. */
export const toldUnbegun =
  (jobs: ReadonlyArray<Job>, output: string) =>
  <A, E, R>(work: Effect.Effect<A, E, R>) =>
    Effect.tapCause(work, (cause) => {
      if (Cause.hasInterruptsOnly(cause)) return Effect.void
      const ended = endingOfCause(cause)
      const toldTo = (job: Job) => ({ exit_code: ended.exit_code, ending: endingWithoutRun(job, ended) })
      const tellOne = (job: Job) => tellEnd(job, output, toldTo(job))
      return Effect.forEach(jobs, tellOne, { concurrency: "unbounded", discard: true })
    })

// Whether an alarm would arrive: what `notify` and `telemetry` refer to is resolved by the code that uses it
// later. An alarm that nobody would hear is a wrong setting, so a run does not start with one.

type Checked = readonly [name: string, check: Effect.Effect<unknown, string, Secrets>]

const checksOf = Effect.fnUntraced(function* ({ notify, telemetry }: Job) {
  const checks: Array<Checked> = []
  if (notify.length > 0) {
    const { checkReceiver } = yield* Effect.promise(() => import("./Receivers.ts"))
    checks.push(...notify.map((receiver): Checked => [receiver.name, checkReceiver(receiver)]))
  }
  if (telemetry !== undefined) {
    const { readEndpoint, readHeaders } = yield* Effect.promise(() => import("./RunTelemetry.ts"))
    const { otlp, headers } = telemetry
    if (otlp !== undefined) checks.push(["telemetry.otlp", readEndpoint(otlp)])
    checks.push(["telemetry.headers", readHeaders(headers)])
  }
  return checks
})

/** Where a receiver, or what telemetry refers to, stands in the job. */
export const alarmPlace = ({ path, alarmPlaces }: Job, name: string) => alarmPlaces?.get(name) ?? topOf(path)

const problemsOf = Effect.fnUntraced(function* (job: Job) {
  const problemOf = ([name, check]: Checked) =>
    Effect.mapError(check, (why): Problem => ({ ...alarmPlace(job, name), message: `\`${name}\`: ${why}` }))
  const [, problems] = yield* Effect.partition(yield* checksOf(job), problemOf, { concurrency: 8 })
  return problems
})

/** Exit code 2, after every problem was printed with its place in the job. */
export const refuseSilent = Effect.fnUntraced(function* (jobs: ReadonlyArray<Job>) {
  const wiring = yield* Wiring
  const problems = (yield* Effect.forEach(jobs, problemsOf).pipe(Effect.provide(wiring.secrets))).flat()
  for (const problem of problems) yield* note(renderProblem(problem))
  if (problems.length > 0)
    return yield* refuse("alarms-unreachable", { problems: counted(problems.length, "problem") })
})

/** A check of `doctor`; no line for a job that tells nobody. */
export const alarmsCheck = Effect.fnUntraced(function* (job: Job) {
  const { notify, telemetry } = job
  if (notify.length === 0 && telemetry === undefined) return undefined
  const problems = yield* problemsOf(job)
  const receivers = counted(notify.length, "receiver")
  return problems.length === 0
    ? ok(`${receivers}${telemetry === undefined ? "" : " and telemetry"}, resolved and not told`)
    : failed("alarms-unresolved", { detail: problems.map(renderProblem).join("; ") })
})
