/** The schedule against a plain model of its rules: what may run together, and that nobody is forgotten. */
import { describe, expect, it } from "vitest"
import * as fc from "fast-check"
import { DelayQueue } from "../../src/base/Time.ts"
import { tailsOf } from "../../src/task/Expectations.ts"
import { Schedule, longerFirst } from "../../src/task/Schedule.ts"
import type { Candidate } from "../../src/service/Execution.ts"
import { anId } from "../harness/Id.ts"

const candidate = (
  task_id: string,
  customer_id = task_id,
  engine_reference = "bank",
  fingerprint: string | undefined = undefined,
): Candidate => ({
  task_id: anId(task_id),
  customer_id: anId(customer_id),
  engine_reference: anId(engine_reference),
  fingerprint,
})

const ids = (candidates: ReadonlyArray<Candidate>) => candidates.map(({ task_id }) => task_id)

const takeAll = (schedule: Schedule, now: number): ReadonlyArray<string> => {
  const taken: Array<string> = []
  for (let one = schedule.take(now); one !== undefined; one = schedule.take(now)) taken.push(one.task_id)
  return taken
}

const conflicting = (one: Candidate, other: Candidate): boolean =>
  (one.customer_id === other.customer_id &&
    one.engine_reference.slice(0, 2) === other.engine_reference.slice(0, 2)) ||
  (one.fingerprint !== undefined && one.fingerprint === other.fingerprint)

/** Two engines of one source, and one of another. */
const engines = ["e0:website", "e0:api", "e1:website"] as const

/** A login belongs to its engine, as fingerprints do. */
const candidatesArbitrary = fc
  .array(
    fc.record({
      customer: fc.integer({ min: 0, max: 4 }),
      engine: fc.constantFrom(...engines),
      login: fc.option(fc.integer({ min: 0, max: 2 }), { nil: undefined }),
      notBefore: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 300 })),
    }),
    { minLength: 1, maxLength: 80 },
  )
  .map((drafts) =>
    drafts.map(({ customer, engine, login, notBefore }, index) => ({
      notBefore,
      candidate: candidate(
        `t${index}`,
        `c${customer}`,
        engine,
        login === undefined ? undefined : `l${login}@${engine}`,
      ),
    })),
  )
const limitsArbitrary = fc.record({
  max_in_flight: fc.integer({ min: 1, max: 9 }),
  per_engine: fc.integer({ min: 1, max: 4 }),
})

describe("Schedule", () => {
  it("takes exactly what may start, whatever arrived and was released before, and forgets nothing [promise 3] [promise 3 sources]", () => {
    fc.assert(
      fc.property(
        candidatesArbitrary,
        limitsArbitrary,
        fc.array(fc.nat(1000), { minLength: 200, maxLength: 200 }),
        (arrivals, limits, choices) => {
          const schedule = new Schedule(limits)
          const waiting = new Map(arrivals.map((one) => [one.candidate.task_id, one]))
          const flying: Array<Candidate> = []
          for (const one of arrivals) schedule.add(one.candidate, one.notBefore)
          const closedUntil = new Map<string, number>()
          const mayStart = (now: number) => (one: (typeof arrivals)[number]) =>
            one.notBefore <= now &&
            (closedUntil.get(one.candidate.engine_reference) ?? 0) <= now &&
            flying.length < limits.max_in_flight &&
            flying.filter((other) => other.engine_reference === one.candidate.engine_reference).length <
              limits.per_engine &&
            !flying.some((other) => conflicting(one.candidate, other))
          let now = 0
          for (let turn = 0; waiting.size > 0 || flying.length > 0; turn++) {
            expect(turn).toBeLessThan(2_000)
            expect([schedule.waiting, schedule.claim(0).open]).toEqual([waiting.size, flying.length])
            const choice = choices[turn % choices.length] ?? 0
            if (choice % 29 === 0) {
              const engine = anId([...engines, "e2"][choice % 4] ?? "")
              const until = Math.max(now + (choice % 50), closedUntil.get(engine) ?? 0)
              schedule.closeEngine(engine, now + (choice % 50))
              closedUntil.set(engine, until)
            }
            const startable = [...waiting.values()].filter(mayStart(now))
            const taken = schedule.take(now)
            expect(taken === undefined).toBe(startable.length === 0)
            if (taken !== undefined) {
              expect(ids(startable.map((one) => one.candidate))).toContain(taken.task_id)
              waiting.delete(taken.task_id)
              flying.push(taken)
            } else if (flying.length > 0 && choice % 3 > 0) {
              const [released] = flying.splice(choice % flying.length, 1)
              schedule.release(released?.task_id ?? anId(""))
            } else now += 1 + (choice % 20)
          }
        },
      ),
      { numRuns: 300 },
    )
  })

  it("wakes no later than the time at which something may start", () => {
    fc.assert(
      fc.property(candidatesArbitrary, fc.integer({ min: 0, max: 300 }), (arrivals, closedUntil) => {
        const schedule = new Schedule({ max_in_flight: 1_000, per_engine: 1_000 })
        for (const one of arrivals) schedule.add(one.candidate, one.notBefore)
        schedule.closeEngine(anId(engines[0]), closedUntil)
        takeAll(schedule, 0)
        const wake = schedule.nextWake(0)
        for (let now = 1; now < (wake ?? 400); now++) expect(schedule.take(now)).toBeUndefined()
        if (wake === undefined) {
          for (const { candidate: one } of arrivals) schedule.release(one.task_id)
          expect(schedule.waiting === 0 || schedule.take(0) !== undefined).toBe(true)
        } else expect(wake).toBeGreaterThan(0)
      }),
    )
  })

  it("takes turns between engines, so that a full or long one starves no other", () => {
    const schedule = new Schedule({ max_in_flight: 6, per_engine: 4 })
    for (let index = 0; index < 50; index++) schedule.add(candidate(`long${index}`, undefined, "long"))
    for (let index = 0; index < 3; index++) schedule.add(candidate(`short${index}`, undefined, "short"))
    expect(takeAll(schedule, 0)).toEqual(["long0", "short0", "long1", "short1", "long2", "short2"])
    schedule.release(anId("short0"))
    expect(takeAll(schedule, 0)).toEqual(["long3"])
    schedule.release(anId("short1"))
    expect(takeAll(schedule, 0)).toEqual([])
  })

  it("counts executions that an earlier process left open, and frees a slot once", () => {
    const schedule = new Schedule({ max_in_flight: 3, per_engine: 3 })
    schedule.occupy(candidate("old1", "c1", "bank", "login"))
    schedule.occupy(candidate("old2", "c2"))
    schedule.add(candidate("t1", "c1"))
    schedule.add(candidate("t2", "c9", "bank", "login"))
    schedule.add(candidate("t3", "c3"))
    schedule.release(anId("old2"))
    schedule.release(anId("old2"))
    expect(takeAll(schedule, 0)).toEqual(["t3"])
    schedule.release(anId("old1"))
    expect([takeAll(schedule, 0).toSorted(), schedule.claim(0).open]).toEqual([["t1", "t2"], 3])
  })

  it("drains one engine or all: ready, delayed and conflicting alike, and the rest continues", () => {
    const schedule = new Schedule({ max_in_flight: 9, per_engine: 9 })
    schedule.occupy(candidate("open", "c1", "bank", "login"))
    schedule.add(candidate("same-login", "c2", "bank", "login"))
    schedule.add(candidate("later", "c3"), 50)
    schedule.add(candidate("other-later", "c3", "tax"), 40)
    schedule.add(candidate("other", "c4", "tax"))
    expect(takeAll(schedule, 0)).toEqual(["other"])
    expect(ids(schedule.drain(anId("bank")))).toEqual(["same-login", "later"])
    expect([schedule.waiting, schedule.nextWake(0)]).toEqual([1, 40])
    expect([ids(schedule.drain()), schedule.waiting, schedule.nextWake(0)]).toEqual([
      ["other-later"],
      0,
      undefined,
    ])
  })

  /** Schedules so many candidates and answers what that cost (CPU seconds). */
  const costOf = (customers: number, make: (index: number) => Candidate) => {
    const before = process.cpuUsage()
    const schedule = new Schedule({ max_in_flight: 100, per_engine: 20 })
    for (let index = 0; index < customers; index++)
      schedule.add(make(index), index % 3 === 0 ? 1 + (index % 999) : 0)
    let taken = 0
    while (schedule.waiting > 0) {
      const batch = takeAll(schedule, 1_000)
      if (batch.length === 0) break
      taken += batch.length
      for (const task_id of batch) schedule.release(anId(task_id))
    }
    expect(taken).toBe(customers)
    return process.cpuUsage(before).user / 1e6
  }

  it("schedules 20,000 customers behind one login at a cost that grows with their number, not its square", () => {
    const make = (index: number) => candidate(`t${index}`, undefined, "bank", "one")
    costOf(2_500, make)
    const few = Math.max(0.01, costOf(2_500, make))
    // Eight times as many cost eight times as much; with the square it would be 64.
    expect(costOf(20_000, make) / few).toBeLessThan(32)
  })
})

describe("the order of starts", () => {
  /** A night of so many tasks on four engines, some of which share an account; how long each takes is known. */
  const nightOf = (numbers: ReadonlyArray<number>) => {
    const tasks = numbers.map((number, index) => ({
      ...candidate(`t${index}`, undefined, `e${(number >> 4) % 7 < 4 ? 0 : (number >> 4) % 4}`),
      account: number % 4 === 0 ? `a${number % 60}` : `own-${index}`,
      takesMs: 20 + (number % 199) + (number % 11 === 0 ? 300 : 0),
    }))
    const tails = tailsOf(tasks, 0)
    return tasks
      .map((task) => ({ ...task, tailMs: tails.get(task.task_id) ?? 0 }))
      .toSorted((one, other) => longerFirst(one.tailMs, other.tailMs))
  }
  const limits = { max_in_flight: 12, per_engine: 8 }
  const sumBy = (tasks: ReadonlyArray<Candidate>, nameOf: (task: Candidate) => string): number =>
    Math.max(
      ...[...Map.groupBy(tasks, nameOf).values()].map((same) =>
        same.reduce((sum, { takesMs = 0 }) => sum + takesMs, 0),
      ),
    )
  const makespan = (tasks: ReadonlyArray<Candidate>): number => {
    const schedule = new Schedule(limits)
    for (const one of tasks) schedule.add(one)
    const running = new DelayQueue<Candidate>()
    for (let now = 0; ;) {
      for (let next = schedule.take(now); next !== undefined; next = schedule.take(now))
        running.add(next, now + (next.takesMs ?? 0))
      if (running.nextAt === undefined) return now
      now = running.nextAt
      for (let done = running.takeDue(now); done !== undefined; done = running.takeDue(now))
        schedule.release(done.task_id)
    }
  }

  it("keeps a night within 5 % of what its slots, its engines and its rows allow [decision 7 tails]", () => {
    const nights = fc.sample(fc.array(fc.nat(10_000), { minLength: 300, maxLength: 300 }), {
      numRuns: 20,
      seed: 27,
    })
    const over = nights.map((numbers) => {
      const tasks = nightOf(numbers)
      const bound = Math.max(
        sumBy(tasks, () => "all") / limits.max_in_flight,
        sumBy(tasks, (task) => task.engine_reference) / limits.per_engine,
        sumBy(tasks, ({ account = "" }) => account),
      )
      return makespan(tasks) / bound
    })
    expect(Math.max(...over)).toBeLessThan(1.05)
  })

  it("puts what was stopped before first, whatever the others take", () => {
    const schedule = new Schedule({ max_in_flight: 2, per_engine: 9 })
    schedule.add({ ...candidate("slow", undefined, "a"), takesMs: 500, tailMs: 500 })
    schedule.add({ ...candidate("first", undefined, "b"), takesMs: 1, tailMs: Infinity })
    expect(takeAll(schedule, 0)).toEqual(["first", "slow"])
  })
})

it("what can still start on an engine is what waits for a time, a slot or something in flight, and not what was given up", () => {
  const schedule = new Schedule({ max_in_flight: 9, per_engine: 9 })
  schedule.occupy(candidate("lost", "c-1"))
  schedule.abandon(anId("lost"))
  schedule.occupy(candidate("open", "c-2"))
  schedule.add(candidate("stuck", "c-1"))
  schedule.add(candidate("next", "c-2"))
  schedule.add(candidate("later", "c-3"), 50)
  schedule.add(candidate("elsewhere", "c-4", "other"), 50)
  expect(takeAll(schedule, 1)).toEqual([])
  const hopeful = () => ids(schedule.hopefulOn(anId("bank"))).toSorted()
  expect([hopeful(), schedule.waitingOn(anId("bank"))]).toEqual([["later", "next"], 3])
  schedule.abandon(anId("open"))
  expect(hopeful()).toEqual(["later"])
})

it("DelayQueue returns everything by time, and by arrival if times are equal", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 9 })), fc.integer({ min: 0, max: 9 }), (times, gone) => {
      const queue = new DelayQueue<{ readonly at: number; readonly index: number }>()
      times.forEach((at, index) => queue.add({ at, index }, at))
      const sorted = times
        .map((at, index) => ({ at, index }))
        .toSorted((a, b) => a.at - b.at || a.index - b.index)
      expect(queue.remove(({ at }) => at === gone)).toEqual(sorted.filter(({ at }) => at === gone))
      const due = []
      for (let now = 0; now <= 9; now++)
        for (let one = queue.takeDue(now); one !== undefined; one = queue.takeDue(now)) {
          expect(one.at).toBe(now)
          due.push(one)
        }
      expect(due).toEqual(sorted.filter(({ at }) => at !== gone))
      expect([queue.size, queue.nextAt]).toEqual([0, undefined])
    }),
  )
})
