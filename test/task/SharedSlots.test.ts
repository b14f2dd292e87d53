/** Slots that several runs share: never more than one run alone may have, and an equal part for whoever wants it. */
import { describe, expect, it } from "vitest"
import * as fc from "fast-check"
import { Schedule } from "../../src/task/Schedule.ts"
import type { Candidate } from "../../src/service/Execution.ts"
import { SharedSlots, type Limits } from "../../src/task/SharedSlots.ts"
import { anId } from "../harness/Id.ts"

const candidate = (run: number, number: number, engine: string): Candidate => ({
  task_id: anId(`r-${run}/c-${number}/${engine}`),
  customer_id: anId(`c-${run}-${number}`),
  engine_reference: anId(engine),
  fingerprint: undefined,
})

/** A run with a schedule and as many tasks on each engine as it expects. */
const joined = (slots: SharedSlots, run: number, limits: Limits, tasks: Readonly<Record<string, number>>) => {
  const seat = slots.join(`job-${run}`, limits, new Map(Object.entries(tasks)))
  const schedule = new Schedule(limits, seat.share)
  let woken = 0
  const begin = () => {
    seat.share.attach(schedule, () => (woken += 1))
    for (const [engine, count] of Object.entries(tasks))
      for (let number = 0; number < count; number++) schedule.add(candidate(run, number, engine))
  }
  const takeAll = (): ReadonlyArray<Candidate> => {
    const taken: Array<Candidate> = []
    for (let one = schedule.take(0); one !== undefined; one = schedule.take(0)) taken.push(one)
    return taken
  }
  return { ...seat, schedule, begin, takeAll, woken: () => woken }
}

type Joined = ReturnType<typeof joined>

describe("runs that share slots", () => {
  it("have as many together as one of them may have alone, each its equal part if it wants that", () => {
    const slots = new SharedSlots()
    const limits = { max_in_flight: 10, per_engine: 6 }
    const first = joined(slots, 1, limits, { bank: 20, tax: 20 })
    const second = joined(slots, 2, limits, { tax: 3 })
    first.begin()
    // The second one has not begun yet, and wants three.
    const own = first.takeAll()
    expect(own.length).toBe(7)
    second.begin()
    expect(second.takeAll().length).toBe(3)
    expect([first.takeAll().length, second.schedule.claim(0, anId("tax")).open]).toEqual([0, 3])
    // What it does not want any more is the first one's again, who is told so.
    const before = first.woken()
    second.schedule.release(candidate(2, 0, "tax").task_id)
    expect([first.woken() - before, first.takeAll().length]).toEqual([1, 1])
    second.share.detach()
    second.leave()
    expect([first.schedule.claim(0).open, first.takeAll().length]).toEqual([8, 2])
  })

  it("keep nothing for a run that does not begin, and are not called stuck while others have the slots", () => {
    const slots = new SharedSlots()
    const limits = { max_in_flight: 2, per_engine: 2 }
    const late = joined(slots, 1, limits, { bank: 5 })
    const busy = joined(slots, 2, limits, { bank: 5 })
    busy.begin()
    expect(busy.takeAll().length).toBe(1)
    late.expectNothing()
    expect(busy.takeAll().length).toBe(1)
    late.begin()
    expect([late.takeAll().length, late.schedule.isHeldUp(0), late.schedule.nextWake(0)]).toEqual([
      0,
      true,
      undefined,
    ])
    // The next slot that is free is the late one's: the other has its part.
    busy.schedule.release(candidate(2, 0, "bank").task_id)
    expect([busy.takeAll().length, late.takeAll().length]).toEqual([0, 1])
  })

  it("do not wait for others where only their own executions, which do not move any more, have the slots", () => {
    const slots = new SharedSlots()
    const limits = { max_in_flight: 2, per_engine: 2 }
    const stuck = joined(slots, 1, limits, { bank: 2, tax: 1 })
    stuck.begin()
    const beside = joined(slots, 2, limits, {})
    beside.begin()
    expect([stuck.takeAll().length, stuck.schedule.isHeldUp(0)]).toEqual([2, false])
  })

  it("do not wait for each other if none of them can move any more [run side by side ends]", () => {
    const slots = new SharedSlots()
    const limits = { max_in_flight: 3, per_engine: 3 }
    const one = joined(slots, 1, limits, { bank: 3 })
    const other = joined(slots, 2, limits, { bank: 4 })
    const third = joined(slots, 3, limits, {})
    const all = [one, other, third]
    all.forEach((run) => run.begin())
    // Whatever comes first, somebody has no slot that he wants.
    expect([one.takeAll().length, other.takeAll().length, other.takeAll().length]).toEqual([2, 1, 0])
    // One stands still; the other may still release what it has.
    expect(one.schedule.isHeldUp(0)).toBe(true)
    const before = one.woken()
    expect(other.schedule.isHeldUp(0)).toBe(false)
    // It gives up what waits, and is over: the slots are for whoever is left.
    other.schedule.drain()
    other.share.detach()
    expect([one.woken() > before, one.takeAll().length]).toEqual([true, 1])
    // Who has started something moves again.
    const late = joined(slots, 4, limits, { bank: 1 })
    late.begin()
    expect([late.takeAll().length, late.schedule.isHeldUp(0)]).toEqual([0, true])
  })

  it("do not wake each other for nothing: at a deadline, each drains again and again", () => {
    const slots = new SharedSlots()
    const limits = { max_in_flight: 3, per_engine: 3 }
    const [one, other] = [1, 2].map((run) => joined(slots, run, limits, { bank: 1 })) as [Joined, Joined]
    one.begin()
    other.begin()
    const before = other.woken()
    expect([one.schedule.drain().length, one.schedule.drain().length]).toEqual([1, 0])
    expect(other.woken() - before).toBe(1)
  })

  it("never exceed a limit, and never all wait for each other", () => {
    const limits = fc.record({
      max_in_flight: fc.integer({ min: 1, max: 6 }),
      per_engine: fc.integer({ min: 1, max: 6 }),
    })
    const runs = fc.array(
      fc.record({ limits, bank: fc.integer({ min: 0, max: 8 }), tax: fc.integer({ min: 0, max: 8 }) }),
      { minLength: 1, maxLength: 4 },
    )
    fc.assert(
      fc.property(runs, fc.array(fc.nat(), { maxLength: 60 }), (given, moves) => {
        const slots = new SharedSlots()
        const all = given.map(({ limits: own, bank, tax }, index) => joined(slots, index, own, { bank, tax }))
        const open: Array<readonly [number, Candidate]> = []
        const highest = (of: (one: Limits) => number) => Math.max(...given.map((one) => of(one.limits)))
        all.forEach((run) => run.begin())
        const waiting = () => all.reduce((sum, { schedule }) => sum + schedule.waiting, 0)
        const step = (move: number) => {
          const index = move % all.length
          const taken = all[index]!.schedule.take(0)
          if (taken !== undefined) open.push([index, taken])
          else if (open.length > 0) {
            const [run, one] = open.splice(move % open.length, 1)[0]!
            all[run]!.schedule.release(one.task_id)
          }
          expect(open.length).toBeLessThanOrEqual(highest((one) => one.max_in_flight))
          for (const engine of ["bank", "tax"])
            expect(open.filter(([, one]) => one.engine_reference === engine).length).toBeLessThanOrEqual(
              highest((one) => one.per_engine),
            )
        }
        moves.forEach(step)
        // Whoever is left finishes: with nothing open, somebody may always start.
        for (let left = waiting(); left > 0; left = waiting()) {
          for (const [run, one] of open.splice(0)) all[run]!.schedule.release(one.task_id)
          const started = all.flatMap((run, index) => run.takeAll().map((one) => [index, one] as const))
          expect(started.length).toBeGreaterThan(0)
          open.push(...started)
        }
      }),
      { numRuns: 200 },
    )
  })
})
