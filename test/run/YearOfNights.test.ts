/** Nights after each other, as cron and a machine's troubles give it; NIGHTJAR_YEAR=1 makes it a year. */
import { describe, expect, it } from "vitest"
import { Clock, Duration, Effect, Exit } from "effect"
import { NotSent, Service } from "../../src/client/Service.ts"
import type { Job } from "../../src/jobs/Job.ts"
import { KnownSecrets, makeKnownSecrets } from "../../src/privacy/KnownSecrets.ts"
import { Ledger } from "../../src/ledger/Ledger.ts"
import { runNight, type NightOptions } from "../../src/run/Nightly.ts"
import { lastTimeOfDay, localDate, nextTimeOfDay } from "../../src/task/ChooseRun.ts"
import { Sandbox } from "../../src/sandbox/server/Sandbox.ts"
import { customer, jobOf, makeNights, options } from "../harness/SmallNights.ts"

const hour = 60 * 60_000
const timezone = "Europe/Madrid"
const starts = "22:30"

const job: Job = {
  ...jobOf([]),
  name: "job",
  timezone,
  night: { starts, until: "07:00" },
  execution: { ...jobOf([]).execution, max_wait: Duration.hours(20) },
  retry: { ...jobOf([]).retry, max_attempts: 1 },
  // When the long one is looked at is another matter.
  polling: { min: Duration.minutes(1), max: Duration.minutes(10) },
  // What earlier nights took keeps nothing from starting.
  on_deadline: "abort",
}

type Days = ReadonlyArray<number>
const daysFrom = (first: number, count: number): Days =>
  Array.from({ length: count }, (_, day) => first + day)

/** What happens on a day of the year, by its number. */
const isOff = (day: number) => day % 61 === 17 || day % 61 === 18
const isDown = (day: number) => day % 13 === 5
const isLong = (day: number) => day % 29 === 11
const isSick = (day: number) => day % 7 === 3
const isForced = (day: number) => day % 31 === 9 && !isLong(day)
/** The machine's clock is wrong from here on, until it is corrected on the next day. */
const clockStep = (day: number) => (day % 23 === 8 ? hour : day % 23 === 15 ? -hour : 0)

const assignments = (day: number) => [
  customer("c-1", isLong(day) ? "run-1+queue-40000" : "run-1"),
  customer("c-2", isSick(day) ? "run-1+end-NETWORK_ERROR" : "run-1"),
]

interface Told {
  readonly run_id: string
  readonly exit_code: number
}

/** One evening after the other, from the first day on. */
const liveNights = (startMs: number, days: Days) => {
  const { world, layers } = makeNights({}, { startMs })
  const told: Array<Told> = []
  const nights = Effect.gen(function* () {
    const service = yield* Service
    const begunAt = yield* Clock.currentTimeMillis
    const run = (day: number, more: Partial<NightOptions> = {}, of = assignments(day)) =>
      Effect.gen(function* () {
        const now = yield* Clock.currentTimeMillis
        // Down in the evening, back after an hour.
        const backAt = isDown(day) ? lastTimeOfDay(now, starts, timezone) + hour : 0
        const listEngines = Effect.flatMap(Clock.currentTimeMillis, (at) =>
          at < backAt ? Effect.fail(new NotSent({ message: "down" })) : service.listEngines,
        )
        const night = runNight({ ...job, assignments: of }, { ...options, ...more })
        const { run_id, exit_code } = yield* Effect.updateService(night, Service, (real) => ({
          ...real,
          listEngines,
        }))
        told.push({ run_id, exit_code })
        return run_id
      })
    // As cron does: the clock may be set while it waits.
    const sleepUntil = (at: number) =>
      Effect.repeat(
        Effect.flatMap(Clock.currentTimeMillis, (now) => Effect.sleep(Math.max(0, at - now))),
        { until: () => Effect.map(Clock.currentTimeMillis, (now) => now >= at) },
      )
    let evening = nextTimeOfDay(begunAt - 12 * hour, starts, timezone)
    for (const day of days) {
      yield* sleepUntil(evening)
      if (!isOff(day)) {
        const run_id = yield* run(day)
        // Cron fires again an hour later, and someone looks in the morning: neither may begin another run.
        yield* Effect.sleep(hour)
        yield* run(day)
        const noon = nextTimeOfDay(evening, "12:00", timezone)
        yield* sleepUntil(noon)
        if (isSick(day)) {
          const only = new Set(["c-2/sandbox-bank:website"])
          const mended = [customer("c-1", "run-1"), customer("c-2", "run-1")]
          yield* run(day, { further: true, parent: run_id, only }, mended)
        } else if (isForced(day)) yield* run(day, { further: true })
      }
      evening = nextTimeOfDay(evening, starts, timezone)
    }
    const ledger = yield* Ledger
    const { executions } = yield* Effect.flatMap(Sandbox, ({ truth }) => truth)
    return { runs: (yield* ledger.runs).map(({ fact }) => fact), executions }
  })
  const life = Effect.provide(nights, layers).pipe(Effect.provideService(KnownSecrets, makeKnownSecrets()))
  const machine = world.spawn("nights", life)
  for (const [index, day] of days.entries()) {
    const noon = world.now() + (index + 0.7) * 24 * hour
    if (clockStep(day) !== 0) {
      world.at(noon, () => machine.jump(clockStep(day)))
      world.at(noon + 24 * hour, () => machine.jump(-clockStep(day)))
    }
  }
  world.runUntil(() => machine.exit() !== undefined)
  const exit = machine.exit()
  if (exit === undefined || Exit.isFailure(exit)) throw new Error(`the nights failed: ${String(exit?.cause)}`)
  return { ...exit.value, told }
}

/** How many executions a night needs. */
const startsOf = (day: number): number => {
  if (isOff(day)) return 0
  // The long one is aborted at the end of the night and started again by the next `run`.
  const first = isLong(day) ? 2 : 1
  // Once more by the second `run` of the night, and once by the rerun.
  const second = isSick(day) ? 3 : 1
  return first + second + (isForced(day) && !isSick(day) ? 2 : 0)
}

/** The dates of the evenings, in the job's zone. */
const datesOf = (begunAt: number, days: Days) => {
  let at = begunAt - 12 * hour
  return days.map((day) => {
    at = nextTimeOfDay(at, starts, timezone)
    return { day, date: localDate(at, timezone) }
  })
}

describe("nights after each other", () => {
  // Each kind of day is in one of the two.
  it.each([
    ["in spring, when the clocks go forward", Date.UTC(2027, 2, 23, 20), daysFrom(2, 10)],
    ["in autumn, when they go back", Date.UTC(2027, 9, 29, 20), daysFrom(13, 7)],
    ...(process.env["NIGHTJAR_YEAR"] === undefined
      ? []
      : [["of a year", Date.UTC(2026, 10, 21, 20), daysFrom(0, 365)] as const]),
  ] as const)(
    "take place once each, %s, and say which ones were missed [run year] [promise 16]",
    (_, startMs, days) => {
      const { runs, executions, told } = liveNights(startMs, days)
      const all = datesOf(startMs, days)
      const when = (is: (day: number) => boolean) => all.flatMap(({ day, date }) => (is(day) ? [date] : []))
      const first = runs.filter(({ run_id, run_date }) => run_id === `job.${run_date}`)
      expect(first.map(({ run_date }) => run_date)).toEqual(when((day) => !isOff(day)))
      expect(runs.flatMap(({ missed = [] }) => missed)).toEqual(when(isOff))
      expect(executions.length).toBe(days.reduce((sum, day) => sum + startsOf(day), 0))
      const last = new Map(told.map(({ run_id, exit_code }) => [run_id, exit_code]))
      const bad = [...last].filter(([, exit_code]) => exit_code !== 0)
      expect(bad.map(([run_id]) => run_id)).toEqual(
        when((day) => isSick(day) && !isOff(day)).map((date) => `job.${date}`),
      )
    },
    600_000,
  )
})
