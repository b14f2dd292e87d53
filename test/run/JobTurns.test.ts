/** Jobs that are given together: side by side what shares nothing, one after the other what does. */
import { describe, expect, it } from "vitest"
import { Clock, Duration, Effect, Fiber } from "effect"
import type { Assignment, Job } from "../../src/jobs/Job.ts"
import { inTurns, turnsOf } from "../../src/run/JobTurns.ts"
import { runNight } from "../../src/run/Nightly.ts"
import { previewNight } from "../../src/run/Preview.ts"
import { Sandbox } from "../../src/sandbox/server/Sandbox.ts"
import { anId } from "../harness/Id.ts"
import { customer, jobOf, live, makeNights, options, wait } from "../harness/SmallNights.ts"

const minute = 60_000

const named = (name: string, assignments: ReadonlyArray<Assignment>, more: Partial<Job> = {}): Job => ({
  ...jobOf(assignments),
  name,
  path: `${name}.yaml`,
  polling: { min: Duration.minutes(1), max: Duration.minutes(1) },
  ...more,
})

/** What a job came to, when it began and ended, and what of it is in the tables. */
const nightOf = (job: Job, further = false) =>
  Effect.gen(function* () {
    const from = yield* Clock.currentTimeMillis
    const { exit_code, state } = yield* runNight(job, { ...options, further })
    const verdicts = [...state.tasks.values()]
      .map(({ planned, settled }) => `${planned.customer_id} ${settled?.fact.reason}`)
      .toSorted()
    return { job: job.name, exit_code, verdicts, from, to: yield* Clock.currentTimeMillis }
  })

/** The jobs as `run` runs them. */
const together = Effect.fnUntraced(function* (jobs: ReadonlyArray<Job>) {
  const turns = yield* turnsOf(jobs)
  const told = yield* inTurns(jobs, turns, (job, { isInTime, beside }) =>
    isInTime
      ? beside(nightOf(job))
      : Effect.succeed({ job: job.name, exit_code: -1, verdicts: [], from: 0, to: 0 }),
  )
  const { executions } = yield* (yield* Sandbox).truth
  const spans = executions.map(({ customer_id, started_at, closes_at, login_key }) => ({
    customer_id,
    login_key,
    from: started_at,
    to: closes_at,
  }))
  return { turns, told, spans }
})

type Span = Effect.Success<ReturnType<typeof together>>["spans"][number]

/** The most executions that were open at the same time. */
const mostAtOnce = (spans: ReadonlyArray<Span>): number =>
  Math.max(0, ...spans.map(({ from }) => spans.filter((one) => one.from <= from && from < one.to).length))

const long = "ok+queue-1800+run-900+records-5"
const short = "ok+queue-600+run-900+records-3"
const some = (prefix: string, count: number, words: string) =>
  Array.from({ length: count }, (_, index) => customer(`${prefix}-${index}`, words))

describe("jobs given together", () => {
  it("take as long as the longest if they share nothing, and end as they do alone", () => {
    const jobs = [named("a", some("a", 3, long)), named("b", some("b", 3, short))]
    const { told, spans } = live(makeNights(), together(jobs))
    const alone = live(
      makeNights(),
      Effect.forEach(jobs, (job) => nightOf(job)),
    )
    const kept = ({ exit_code, verdicts }: (typeof told)[number]) => ({ exit_code, verdicts })
    expect(told.map(kept)).toEqual(alone.map(kept))
    const lengths = alone.map(({ from, to }) => to - from)
    const whole = Math.max(...told.map(({ to }) => to)) - Math.min(...told.map(({ from }) => from))
    expect(whole).toBeLessThan(Math.max(...lengths) + 5 * minute)
    expect(whole).toBeLessThan(lengths.reduce((sum, one) => sum + one, 0) - 10 * minute)
    expect(mostAtOnce(spans)).toBe(6)
  })

  it("run at once if they share a login alone, which is sent by one of them at a time, and never again once it is rejected", () => {
    const nightsOf = (words: string) => {
      const shared = customer("c-1", words)
      const others = some("b", 1, short)
      const same: Assignment = { ...shared, customer_id: anId("c-9") }
      return live(makeNights(), together([named("a", [shared]), named("b", [same, ...others])]))
    }
    const good = nightsOf(long)
    expect(good.turns.map(({ waits }) => waits)).toEqual([[], []])
    expect(good.told.map(({ verdicts }) => verdicts)).toEqual([
      ["c-1 COMPLETED"],
      ["b-0 COMPLETED", "c-9 COMPLETED"],
    ])
    const [first, ...later] = good.spans.toSorted((one, other) => one.from - other.from)
    expect(later.some(({ from }) => from < first!.to)).toBe(true)
    const logins = [...Map.groupBy(good.spans, ({ login_key }) => login_key).values()]
    expect(logins.map((spans) => [spans.length, mostAtOnce(spans)]).toSorted()).toEqual([
      [1, 1],
      [2, 1],
    ])
    const bad = nightsOf("end-BLOCKED_USER+queue-600+run-60")
    expect(bad.told.map(({ verdicts }) => verdicts)).toEqual([
      ["c-1 BLOCKED_USER"],
      ["b-0 COMPLETED", "c-9 BLOCKED_USER"],
    ])
    expect(bad.spans.length).toBe(2)
  })

  it("never have more open together than one of them may, and each gets its part [promise 3 slots]", () => {
    const concurrency = { max_in_flight: 4, per_engine: 4 }
    const jobs = ["a", "b"].map((name) => named(name, some(name, 8, short), { concurrency }))
    const { told, spans } = live(makeNights(), together(jobs))
    expect(told.map(({ exit_code }) => exit_code)).toEqual([0, 0])
    expect([mostAtOnce(spans), spans.length]).toEqual([4, 16])
    const firstHalf = spans.toSorted((one, other) => one.from - other.from).slice(0, 8)
    expect(firstHalf.filter(({ customer_id }) => customer_id.startsWith("b")).length).toBe(4)
  })

  it("follow those that they name however these end, but not beyond their own deadline [run after]", () => {
    const place = { file: "b.yaml", line: 1, column: 1 }
    const after = [{ job: "a", place }]
    // The night begins at 22:00; the first job takes half an hour at least.
    const jobs = [
      named("c", some("c", 1, short), { after, deadline: "22:10" }),
      named("b", some("b", 1, short), { after, deadline: "07:00" }),
      named("a", some("a", 1, "end-BLOCKED_USER+queue-600+run-1800")),
    ]
    const { told } = live(makeNights(), together(jobs))
    expect(told.map(({ job, exit_code }) => [job, exit_code])).toEqual([
      ["c", -1],
      ["b", 0],
      ["a", 3],
    ])
    expect(told[1]!.from).toBeGreaterThanOrEqual(told[2]!.to)
  })

  it("start nobody whom another run still has open, and finish first what was begun [promise 3 other runs]", () => {
    const shared = customer("c-1", "ok+unstoppable-30000+queue-7200+run-600+records-2")
    const first = named("a", [shared], { deadline: "22:30" })
    const second = named("b", [shared, ...some("b", 1, short)])
    // Another login is another account: only the customer and the engine are the same.
    const otherLogin = named("c", [customer("c-1", "ok+records-2")])
    const hasty = (job: Job): Job => ({
      ...job,
      execution: { ...job.execution, max_wait: Duration.minutes(30) },
    })
    const { alone, turns, told, spans } = live(makeNights(), function* () {
      const stuck = yield* nightOf(first)
      const meanwhile = yield* nightOf(hasty(second))
      const other = yield* nightOf(hasty(otherLogin))
      const further = yield* nightOf(hasty(first), true)
      return {
        alone: [stuck.verdicts, meanwhile.verdicts, other.verdicts, further.verdicts],
        ...(yield* together([second, { ...first, deadline: undefined }])),
      }
    })
    expect(alone).toEqual([
      ["c-1 NOT_STOPPABLE"],
      ["b-0 COMPLETED", "c-1 ALREADY_EXECUTING"],
      ["c-1 ALREADY_EXECUTING"],
      ["c-1 ALREADY_EXECUTING"],
    ])
    expect(turns.map(({ job, waits }) => [job, ...waits.map((wait) => wait.job)])).toEqual([
      ["a"],
      ["b", "a"],
    ])
    expect(told.map(({ verdicts }) => verdicts)).toEqual([
      ["b-0 COMPLETED", "c-1 COMPLETED"],
      ["c-1 COMPLETED"],
    ])
    expect(mostAtOnce(spans.filter(({ customer_id }) => customer_id === "c-1"))).toBe(1)
  })

  it("wait for what another night could not stop, and start once it is over [promise 3 left open] [promise 3 left look]", () => {
    // Open until 23:00 of the second night, longer than one can last after it was sent.
    const stuck = customer("c-1", "ok+unstoppable-999999+queue-90000+run-1+records-2")
    // The customer with another login, and another customer with the login.
    const others = [
      customer("c-1", "ok+records-2"),
      { ...stuck, customer_id: customer("c-9", "").customer_id },
    ]
    const first = named("a", [stuck], { deadline: "22:30" })
    const second = { ...first, assignments: others, deadline: "03:00" }
    const { said, nights, spans } = live(makeNights(), function* () {
      const before = yield* nightOf(first)
      yield* Effect.sleep(Duration.hours(23))
      const { waiting, notStarted } = yield* previewNight(second, options)
      const night = yield* nightOf(second)
      const { executions } = yield* (yield* Sandbox).truth
      const said = [waiting.map(({ customer_id }) => customer_id), notStarted.length]
      return { said, nights: [before, night], spans: executions }
    })
    expect(said).toEqual([["c-1", "c-9"], 0])
    expect(nights.map(({ verdicts }) => verdicts)).toEqual([
      ["c-1 NOT_STOPPABLE"],
      ["c-1 COMPLETED", "c-9 NOT_STOPPABLE"],
    ])
    const [left, ...later] = spans
    const waited = later.map(({ started_at }) => (started_at - left!.closes_at) / minute)
    expect([waited.length, Math.min(...waited) >= 0, Math.max(...waited) < 31]).toEqual([2, true, true])
  })

  it("start nobody whom another run may have open, for as long as that one would wait [promise 3 own wait]", () => {
    const shared = customer("c-1", "ok+queue-19000+run-600+records-2")
    const execution = (hours: number) => ({
      execution: { ...jobOf([]).execution, max_wait: Duration.hours(hours) },
    })
    const first = named("a", [shared], execution(6))
    // The customer with another login, and another customer with the login: neither waits long itself.
    const others = [
      customer("c-1", "ok+records-2"),
      { ...shared, customer_id: customer("c-9", "").customer_id },
    ]
    const second = named("b", others, execution(1 / 60))
    const verdicts = live(makeNights(), function* () {
      const killed = yield* Effect.forkChild(runNight(first, options))
      yield* Effect.sleep(5 * minute)
      yield* Fiber.interrupt(killed)
      const soon = yield* nightOf(second)
      yield* Effect.sleep(Duration.hours(5))
      const late = yield* nightOf(second, true)
      yield* Effect.sleep(Duration.hours(1))
      const over = yield* nightOf({ ...second, ...execution(1), assignments: others.slice(0, 1) }, true)
      return [soon, late, over].map((one) => one.verdicts)
    })
    expect(verdicts).toEqual([
      ["c-1 ALREADY_EXECUTING", "c-9 ALREADY_EXECUTING"],
      ["c-1 ALREADY_EXECUTING", "c-9 ALREADY_EXECUTING"],
      ["c-1 COMPLETED"],
    ])
  })

  it("start nobody whose execution was found open a moment ago, however many nights that lasts [promise 3 stuck] [promise 3 open run]", () => {
    const tasks = [customer("c-1", "ok+unstoppable-999999+queue-999999"), ...some("a", 1, short)]
    const plain = named("a", tasks, { deadline: "23:30" })
    // Given up within less time than it takes to find that it cannot be stopped.
    const hasty = { ...plain, execution: { ...plain.execution, max_wait: Duration.seconds(5) } }
    for (const stuck of [plain, hasty]) {
      const { nights, starts } = live(makeNights(), function* () {
        const nights: Array<ReadonlyArray<string>> = []
        for (let count = 0; count < 2; count++) {
          nights.push((yield* nightOf(stuck)).verdicts)
          yield* wait(1)
        }
        // Another run of the same date, and another job.
        nights.push((yield* nightOf(stuck, true)).verdicts)
        nights.push((yield* nightOf({ ...stuck, name: "b" })).verdicts)
        const { executions } = yield* (yield* Sandbox).truth
        return { nights, starts: executions.filter(({ customer_id }) => customer_id === "c-1").length }
      })
      expect(nights.map(([, first]) => first)).toEqual([
        "c-1 NOT_STOPPABLE",
        ...Array.from({ length: 3 }, () => "c-1 ALREADY_EXECUTING"),
      ])
      expect(starts).toBe(1)
    }
  })
})
