/** What hints may change, decision by decision. */
import { Duration } from "effect"
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import { isOutdated, isTrusted, noTrust, plausibleDate, trustAfter } from "../../src/client/Hints.ts"
import type { LookResult } from "../../src/client/Hints.ts"
import { hintedWaitMax, nextLookInMs } from "../../src/client/Polling.ts"

const minute = 60_000
const look = (hinted: boolean, told: LookResult["told"], first = false): LookResult => ({
  hinted,
  told,
  first,
})
const after = (...looks: ReadonlyArray<LookResult>) => looks.reduce(trustAfter, noTrust)

describe("trust in hints", () => {
  it("is earned by a hint that led to news, and by nothing else", () => {
    expect(isTrusted(noTrust)).toBe(false)
    expect(isTrusted(after(look(true, "news")))).toBe(true)
    expect(isTrusted(after(look(true, "end", true)))).toBe(true)
    const worthless = [
      look(true, "nothing"),
      look(false, "news"),
      look(false, "end"),
      // A first look tells something new whoever asked for it.
      look(true, "news", true),
    ]
    for (const one of worthless) expect(isTrusted(after(one, one, one))).toBe(false)
  })

  it("is lost by an end that polling found first, and costs twice as much each time", () => {
    const news = look(true, "news")
    const missed = look(false, "end")
    expect(isTrusted(after(news, news, missed))).toBe(false)
    expect(isTrusted(after(news, missed, news))).toBe(false)
    expect(isTrusted(after(news, missed, news, news))).toBe(true)
    expect(after(news, missed, news, news, missed)).toEqual({ useful: 0, needed: 4 })
  })

  it("survives an end found by the very first poll, whose hint may have come too early", () => {
    expect(isTrusted(after(look(true, "news"), look(false, "end", true)))).toBe(true)
  })

  it("is never more than 64 hints away, whatever happened", () => {
    const anyLook = fc.record({
      hinted: fc.boolean(),
      first: fc.boolean(),
      told: fc.constantFrom<LookResult["told"]>("nothing", "news", "end"),
    })
    fc.assert(
      fc.property(fc.array(anyLook, { maxLength: 300 }), (looks) => {
        const regained = Array.from({ length: 64 }, () => look(true, "end"))
        expect(isTrusted(regained.reduce(trustAfter, after(...looks)))).toBe(true)
      }),
    )
  })

  it("makes polls rare: four an hour, or as rare as the job's own polling", () => {
    const rules = { min: Duration.millis(2_000), max: Duration.millis(minute) }
    expect([0, minute, 60 * minute].map((waited) => nextLookInMs(rules, waited, undefined, true))).toEqual([
      Duration.toMillis(hintedWaitMax),
      Duration.toMillis(hintedWaitMax),
      Duration.toMillis(hintedWaitMax),
    ])
    expect(
      nextLookInMs({ min: Duration.millis(2_000), max: Duration.millis(40 * minute) }, 0, undefined, true),
    ).toBe(40 * minute)
    expect(nextLookInMs(rules, 0, 30_000, true)).toBe(Duration.toMillis(hintedWaitMax))
  })
})

describe("the order of events", () => {
  const now = 1_000 * minute

  it("is given by dates, except one further in the future than clocks differ", () => {
    expect(plausibleDate(now + 5 * minute, now)).toBe(now + 5 * minute)
    expect(plausibleDate(now + 5 * minute + 1, now)).toBeUndefined()
    expect(plausibleDate(undefined, now)).toBeUndefined()
  })

  it("an event older than the newest means nothing once the state was read after it", () => {
    const times = { confirmedAt: now, lookedAt: now }
    expect(isOutdated(now - 1, times)).toBe(true)
    // One and the same moment may hold two events: the login's end and the run's.
    expect(isOutdated(now, times)).toBe(false)
    expect(isOutdated(undefined, times)).toBe(false)
    expect(isOutdated(now - 1, { confirmedAt: now, lookedAt: now - 2 })).toBe(false)
    expect(isOutdated(now - 1, { confirmedAt: -Infinity, lookedAt: now })).toBe(false)
  })

  it("a forged newest date hides nothing that happened after the last poll", () => {
    fc.assert(
      fc.property(fc.nat(10 * minute), fc.nat(10 * minute), (forgedAhead, since) => {
        const times = { confirmedAt: now + forgedAhead, lookedAt: now }
        expect(isOutdated(now + 1 + since, times)).toBe(false)
      }),
    )
  })
})
