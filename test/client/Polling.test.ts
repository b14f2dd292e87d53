/** How often an execution is looked at, with the rules that a job has by default. */
import { Duration } from "effect"
import { describe, expect, it } from "vitest"
import * as fc from "fast-check"
import { waitMs } from "../../src/base/Time.ts"
import { attemptWaits, kickWaitMax, lookWaits, nextLookInMs } from "../../src/client/Polling.ts"

const rules = { min: Duration.millis(2_000), max: Duration.millis(60_000) }
const hour = 60 * 60_000

const looksWithin = (ms: number): number => {
  let looks = 0
  for (let waited = 0; waited < ms; looks++) waited += nextLookInMs(rules, waited)
  return looks
}

describe("polling an open execution", () => {
  it("costs 203 polls for a wait of three hours, and is never more than a minute late [decision 6]", () => {
    expect(looksWithin(3 * hour)).toBe(203)
    expect(nextLookInMs(rules, 3 * hour)).toBe(60_000)
  })

  it("sees a run of half a minute within six seconds of its end", () => {
    let waited = 0
    while (waited < 30_000) waited += nextLookInMs(rules, waited)
    expect(waited - 30_000).toBeLessThan(6_000)
  })

  it("waits for a date that the service names, and a little longer, but not for a day [decision 6 next_kick_date]", () => {
    expect(nextLookInMs(rules, hour, 5 * 60_000)).toBe(5 * 60_000 + 2_000)
    expect(nextLookInMs(rules, hour, 24 * hour)).toBe(Duration.toMillis(kickWaitMax))
  })

  it("is not more frequent for a date that is near, past or invalid", () => {
    for (const kick of [1_000, 0, -hour, Number.NaN, -Infinity])
      expect(nextLookInMs(rules, hour, kick)).toBe(60_000)
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
        ({ minMs, more }, waited, kick) => {
          const look = nextLookInMs(
            { min: Duration.millis(minMs), max: Duration.millis(minMs + more) },
            waited,
            kick,
          )
          expect(look).toBeGreaterThanOrEqual(minMs)
          expect(look).toBeLessThanOrEqual(Math.max(Duration.toMillis(kickWaitMax), minMs + more))
        },
      ),
    )
  })
})

describe("waiting before another try", () => {
  it("takes up to a fifth off the wait of an attempt, so that waiters do not come back together", () => {
    const waits = attemptWaits({ base: Duration.millis(30_000), max: Duration.millis(900_000) })
    expect([0, 0.5].map((random) => waitMs(waits, 2, random))).toEqual([60_000, 54_000])
  })

  it("takes nothing off the waits of one execution, which never go below polling.min", () => {
    expect([1, 2, 9].map((count) => waitMs(lookWaits(rules), count, 0.9))).toEqual([2_000, 4_000, 60_000])
  })
})
