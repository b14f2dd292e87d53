/** When a run will end, and how nights really end; NIGHTJAR_SEEDS=N compares the nights of so many seeds. */
import { describe, expect, it } from "vitest"
import { Clock, Duration, Effect } from "effect"
import type { Job } from "../../src/jobs/Job.ts"
import { quantile } from "../../src/task/Expectations.ts"
import { expectedCalls, expectEnd } from "../../src/task/ExpectedEnd.ts"
import { inStartOrder, planJob } from "../../src/run/PlanJob.ts"
import { runNight } from "../../src/run/Nightly.ts"
import type { Candidate } from "../../src/service/Execution.ts"
import { anId } from "../harness/Id.ts"
import { customer, jobOf, live, makeNights, options } from "../harness/SmallNights.ts"

const taskOf = (id: number, more: Partial<Candidate> = {}): Candidate => ({
  task_id: anId(`t-${id}`),
  customer_id: anId(`c-${id}`),
  engine_reference: anId("a"),
  fingerprint: `f-${id}`,
  ...more,
})
const tasks = (count: number, more: Partial<Candidate> = {}) =>
  Array.from({ length: count }, (_, id) => taskOf(id, more))
const past = (durations: ReadonlyArray<number>, closing = 0) => ({
  byEngine: new Map([["a", durations]]),
  own: new Map(),
  all: durations,
  closing,
})
const endOf = (...of: Parameters<typeof expectEnd>) => {
  const end = expectEnd(...of)
  return end && [Duration.toMillis(end.p50), Duration.toMillis(end.p95), end.late, end.maybeLate]
}
const wide = { max_in_flight: 100, per_engine: 100 }

describe("the expected end", () => {
  it("is limited by all slots, by those of one engine, and by those that wait for each other [plan expected end]", () => {
    expect(endOf(tasks(6), wide, past([10]), undefined)).toEqual([10, 10, 0, 0])
    expect(endOf(tasks(6), { ...wide, max_in_flight: 2 }, past([10]), undefined)).toEqual([30, 30, 0, 0])
    expect(endOf(tasks(6), { ...wide, per_engine: 3 }, past([10], 5), undefined)).toEqual([25, 25, 0, 0])
    expect(endOf(tasks(4, { fingerprint: "one" }), wide, past([10]), undefined)).toEqual([40, 40, 0, 0])
  })

  it("follows each engine's own executions, and all of them for an engine that never ran", () => {
    const byEngine = new Map([
      ["a", [10]],
      ["b", [40]],
    ])
    const both = { byEngine, own: new Map(), all: [10, 40], closing: 0 }
    const on = (engine: string) => endOf(tasks(1, { engine_reference: anId(engine) }), wide, both, undefined)
    expect([on("a"), on("b")]).toEqual([
      [10, 10, 0, 0],
      [40, 40, 0, 0],
    ])
    const [p50 = 0] = on("new") ?? []
    expect([p50 > 20, p50 < 30]).toEqual([true, true])
  })

  it("of nothing that starts is the time after the last execution; what ends after the deadline is counted", () => {
    expect(endOf([], wide, past([10], 5), undefined)).toEqual([5, 5, 0, 0])
    expect(endOf(tasks(3), { ...wide, max_in_flight: 1 }, past([0], 5), 0)).toEqual([5, 5, 0, 0])
    expect(endOf(tasks(6), { ...wide, max_in_flight: 2 }, past([10]), 25)).toEqual([30, 30, 2, 2])
    expect(endOf(tasks(6), { ...wide, max_in_flight: 2 }, past([10]), 30)).toEqual([30, 30, 0, 0])
  })

  it("follows the slow executions of an engine, not its median", () => {
    const [p50 = 0, p95 = 0] = endOf(tasks(60), wide, past([10, 10, 10, 10, 1_000]), undefined) ?? []
    expect(p50).toBeGreaterThan(700)
    expect(p95).toBeGreaterThanOrEqual(p50)
  })

  it("is earlier in half of the cases than in nearly all, whatever the plan", () => {
    const slots = { ...wide, max_in_flight: 4 }
    for (let count = 1; count <= 30; count++) {
      const [p50 = 0, p95 = 0, late = 0, maybeLate = 0] =
        endOf(tasks(count), slots, past([1, 5, 9, 70]), 40) ?? []
      expect([count, p50 <= p95, late <= maybeLate]).toEqual([count, true, true])
    }
  })

  it("is the same for the same plan, and unknown before the first run", () => {
    const of = [tasks(30), { ...wide, max_in_flight: 4 }, past([1, 5, 9, 70]), 100] as const
    expect(endOf(...of)).toEqual(endOf(...of))
    expect(endOf(tasks(3), wide, past([]), undefined)).toBeUndefined()
  })

  it("lies between the two values around a share", () => {
    expect([0, 0.25, 0.5, 1].map((share) => quantile([1, 2, 3], share))).toEqual([1, 1.5, 2, 3])
    expect(quantile([], 0.5)).toBeUndefined()
  })

  it("comes with the number of requests: a start, the polls, the results, the deletion", () => {
    const polling = { min: Duration.seconds(2), max: Duration.minutes(1) }
    const each = (seconds: number) => [{ expected: Duration.seconds(seconds) }]
    expect([0, 2, 4, 60].map((seconds) => expectedCalls(each(seconds), polling, () => []))).toEqual([
      3, 4, 5, 14,
    ])
    expect(expectedCalls([...each(4), ...each(4)], polling, () => [])).toBe(10)
  })
})

const seeds = Number(process.env["NIGHTJAR_SEEDS"] ?? 1)

/** How far the end that the plan expects is from the real one, as a share of the real duration. */
const errorOf = (seed: number): number => {
  const job: Job = {
    ...jobOf(Array.from({ length: 40 }, (_, index) => customer(`c-${index}`, "ok"))),
    name: "job",
    concurrency: { max_in_flight: 10, per_engine: 10 },
    // Neither moves the end by a percent, and both are most of the work.
    flow_results: { ...jobOf([]).flow_results, enabled: false },
    polling: { min: Duration.seconds(10), max: Duration.minutes(5) },
  }
  const world = makeNights({}, { seed })
  return live(world, function* () {
    for (let night = 0; night < 3; night++) {
      yield* runNight(job, { ...options, further: true })
      yield* Effect.sleep(Duration.days(1))
    }
    const { plan, learnt } = yield* planJob(job, anId("job.next"), undefined)
    const candidates = inStartOrder(plan.tasks, learnt).map((task) => ({
      ...task,
      account: task.account.account,
    }))
    const end = expectEnd(candidates, job.concurrency, learnt.expectations, undefined)
    const begunAt = yield* Clock.currentTimeMillis
    yield* runNight(job, { ...options, further: true })
    const took = (yield* Clock.currentTimeMillis) - begunAt
    return Duration.toMillis(end?.p50 ?? Duration.zero) / took - 1
  })
}

it.each(Array.from({ length: seeds }, (_, index) => index + 1))(
  "the expected end after three nights is within 15 % of the real one, seed %i",
  (seed) => {
    expect(Math.abs(errorOf(seed))).toBeLessThan(0.15)
  },
)
