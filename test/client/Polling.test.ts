/** How often an execution is looked at, with the rules that a job has by default. */
import { Duration } from "effect"
import { describe, expect, it } from "vitest"
import * as fc from "fast-check"
import { waitMs } from "../../src/base/Time.ts"
import { attemptWaits, kickWaitMax, lookWaits, nextLookInMs, planLooks } from "../../src/client/Polling.ts"

const rules = { min: Duration.millis(2_000), max: Duration.millis(60_000) }
const hour = 60 * 60_000

const looksWithin = (ms: number): number => {
  let looks = 0
  for (let waited = 0; waited < ms; looks++) waited += nextLookInMs(rules, waited)
  return looks
}

describe("polling an open execution", () => {
  it("costs 211 polls for a wait of three hours, and is never more than a minute late [decision 6]", () => {
    expect(looksWithin(3 * hour)).toBe(211)
    expect(nextLookInMs(rules, 3 * hour)).toBe(60_000)
  })

  it("looks at a short run hardly more often than every five seconds would, and sees its end within a sixth of it", () => {
    const around = (seconds: number) => Array.from({ length: 400 }, (_, n) => seconds * (800 + n))
    for (const seconds of [20, 40, 70, 120, 300]) {
      const { looks, late } = followed(around(seconds), [])
      expect(looks, `${seconds} s`).toBeLessThan(seconds / 5 + 3)
      expect(late, `${seconds} s`).toBeLessThan((seconds * 1_000) / 6)
    }
    expect(followed(around(70), []).looks).toBeLessThan(70 / 5)
  })

  it("waits for a date that the service names, and a little longer, but not for a day [decision 6 next_kick_date]", () => {
    expect(nextLookInMs(rules, hour, { kickInMs: 5 * 60_000 })).toBe(5 * 60_000 + 2_000)
    expect(nextLookInMs(rules, hour, { kickInMs: 24 * hour })).toBe(Duration.toMillis(kickWaitMax))
  })

  it("is not more frequent for a date that is near, past or invalid", () => {
    for (const kick of [1_000, 0, -hour, Number.NaN, -Infinity])
      expect(nextLookInMs(rules, hour, { kickInMs: kick })).toBe(60_000)
  })

  it("is never sooner than polling.min nor later than the longest wait, whatever the answers", () => {
    fc.assert(
      fc.property(
        fc.record({
          minMs: fc.integer({ min: 1, max: 10_000 }),
          more: fc.integer({ min: 0, max: 4 * hour }),
        }),
        fc.integer({ min: 0, max: 10 * hour }),
        fc.option(fc.double(), { nil: undefined }),
        fc.array(fc.integer({ min: 0, max: 12 * hour }), { maxLength: 5 }),
        ({ minMs, more }, waited, kick, plan) => {
          const look = nextLookInMs(
            { min: Duration.millis(minMs), max: Duration.millis(minMs + more) },
            waited,
            { kickInMs: kick, plan: plan.toSorted((a, b) => a - b) },
          )
          expect(look).toBeGreaterThanOrEqual(minMs)
          expect(look).toBeLessThanOrEqual(Math.max(Duration.toMillis(kickWaitMax), minMs + more))
        },
      ),
    )
  })
})

/** How often executions of these lengths are looked at, and how late their end is seen, on average. */
const followed = (lengths: ReadonlyArray<number>, plan: ReadonlyArray<number>) => {
  let looks = 0
  let late = 0
  for (const length of lengths) {
    let waited = 0
    for (; waited < length || waited === 0; looks++) waited += nextLookInMs(rules, waited, { plan })
    late += waited - length
  }
  return { looks: looks / lengths.length, late: late / lengths.length }
}

const bells = (middle: number, share: number, count: number): ReadonlyArray<number> =>
  fc
    .sample(fc.tuple(...Array.from({ length: 6 }, () => fc.double({ min: -1, max: 1, noNaN: true }))), {
      numRuns: count,
      seed: 27,
    })
    .map((parts) => Math.round(middle * (1 + (share / 1.4) * parts.reduce((sum, one) => sum + one, 0))))
    .toSorted((one, other) => one - other)

describe("looking when it has probably just ended", () => {
  const learnt = (middle: number, share: number) => {
    const [past, tonight] = [bells(middle, share, 200), bells(middle, share, 1_000).toReversed()]
    return { plan: planLooks(rules, past), tonight }
  }

  it("sees the end of 70 seconds sooner than a look every five seconds would, with a third of its looks [decision 7 learnt]", () => {
    const { plan, tonight } = learnt(70_000, 0.15)
    const { looks, late } = followed(tonight, plan)
    expect(looks).toBeLessThan(5)
    expect(late).toBeLessThan(2_600)
    const unlearnt = followed(tonight, [])
    expect(unlearnt.looks).toBeGreaterThan(3 * looks)
    expect(unlearnt.late).toBeGreaterThan(2 * late)
  })

  it("waits no longer than it has waited already, since this one may be over much sooner than all before it", () => {
    const plan = planLooks(rules, bells(3 * hour, 0.1, 50))
    const minutes = [0, 2, 7, 60]
    expect(minutes.map((waited) => nextLookInMs(rules, waited * 60_000, { plan }) / 60_000)).toEqual([
      1, 2, 7, 15,
    ])
  })

  it("goes on as after an acceptance where an execution takes longer than all before it", () => {
    const plan = planLooks(
      rules,
      [60, 60, 61, 61, 62, 62, 63, 63, 64, 64].map((seconds) => seconds * 1_000),
    )
    expect(plan.at(-1)).toBe(64_000)
    expect([64_000, 70_000, 64_000 + hour].map((waited) => nextLookInMs(rules, waited, { plan }))).toEqual([
      2_000, 3_464, 60_000,
    ])
  })

  it("follows a customer's own past for half of its looks, and plans nothing without ten ends", () => {
    const all = bells(300_000, 0.4, 200)
    const own = [100_000, 101_000, 102_000]
    expect(followed(own, planLooks(rules, all, own)).late).toBeLessThan(1_500)
    expect(planLooks(rules, [1, 2, 3, 4, 5, 6, 7, 8, 9])).toEqual([])
  })

  it("costs no more than any other choice of looks at the ends that it knows", () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 1, max: 400_000 }), { minLength: 10, maxLength: 11 }),
        (ends) => {
          const sorted = ends.toSorted((one, other) => one - other)
          const costOf = (looks: ReadonlyArray<number>): number =>
            sorted.reduce((sum, end) => {
              const at = looks.findIndex((look) => look >= end)
              const late = at < 0 ? Infinity : (looks[at] ?? 0) - end
              return sum + at + 1 + late / Math.max(500, end / 1_000)
            }, 0)
          const last = sorted.at(-1) ?? 0
          const others = Array.from({ length: 2 ** (sorted.length - 1) }, (_, bits) => [
            ...sorted.slice(0, -1).filter((_one, at) => ((bits >> at) & 1) === 1),
            last,
          ])
          expect(costOf(planLooks(rules, sorted))).toBeLessThanOrEqual(Math.min(...others.map(costOf)) + 1e-6)
        },
      ),
      { numRuns: 200 },
    )
  })
})

describe("waiting before another try", () => {
  it("takes up to a fifth off the wait of an attempt, and nothing off those of one execution's looks", () => {
    const waits = attemptWaits({ base: Duration.millis(30_000), max: Duration.millis(900_000) })
    expect([0, 0.5].map((random) => waitMs(waits, 2, random))).toEqual([60_000, 54_000])
    expect([1, 2, 9].map((count) => waitMs(lookWaits(rules), count, 0.9))).toEqual([2_000, 4_000, 60_000])
  })
})
