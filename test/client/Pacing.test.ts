/** How fast a host is called, by what it bears and what it says about it: decisions, and whole nights in virtual time. */
import { describe, expect, it } from "vitest"
import { noteAnswered, noteComplaint, noteSent, openPace, rateOf } from "../../src/client/Pacing.ts"
import type { Asked, Pace } from "../../src/client/Pacing.ts"
import { callers, evenly, executions, play, shareRefused, takenPerSecond, twoRefused } from "./PacedHost.ts"
import type { Demand, Host } from "./PacedHost.ts"

const second = 1_000
const minute = 60 * second
const hour = 60 * minute

const asked: Asked = { host: "h", endpoint: "listEngines" }

const refusal = { http_status: 429, asked, engine: undefined, askedMs: 0 }

const unavailable = (nowMs: number, engine: string | undefined) => (pace: Pace) =>
  noteComplaint(pace, { http_status: 503, asked, engine, sentMs: nowMs - 30, nowMs, askedMs: 0 })
const throttled =
  (sentMs: number, nowMs: number, askedMs = 0) =>
  (pace: Pace) =>
    noteComplaint(pace, { http_status: 429, asked, engine: undefined, sentMs, nowMs, askedMs })
const answered = (sentMs: number, nowMs: number) => (pace: Pace) => noteAnswered(pace, asked, sentMs, nowMs)
/** Answers to this many requests, which were sent so long apart from a moment on. */
const sent = (count: number, fromMs: number, apartMs: number) => (before: Pace) =>
  Array.from({ length: count }, (_, index) => fromMs + index * apartMs).reduce(
    (pace, atMs) => noteAnswered(noteSent(pace, atMs), asked, atMs, atMs),
    before,
  )
const rateAfter = (...events: ReadonlyArray<(pace: Pace) => Pace>): number =>
  rateOf(events.reduce((pace, event) => event(pace), openPace))

describe("the pace of a host that complains", () => {
  it("begins with 20 a second, or half of what it bore, and doubles [promise 10 demand]", () => {
    const first = throttled(0, 10)
    expect([
      rateAfter(),
      rateAfter(first),
      rateAfter(first, sent(3, 50, 50)),
      rateAfter(first, sent(4, 50, 50)),
      // Not twice within a tenth of a second, and up to full speed.
      rateAfter(first, sent(8, 50, 20)),
      rateAfter(first, sent(12, 50, 50)),
      rateAfter(first, sent(24, 50, 50)),
      rateAfter(sent(90, 0, 5), throttled(449, 450)),
      // What was asked of a host that was not paced is not all that it bears.
      rateAfter(sent(200, 0, 10), throttled(1_995, 2_000), sent(24, 2_050, 50)),
    ]).toEqual([Infinity, 20, 20, 40, 40, 160, Infinity, 45, Infinity])
  })

  it("stays below what it bore for a second, and is twice as much only after a while of use", () => {
    const known = [sent(200, 0, 10), throttled(1_995, 2_000), answered(2_005, 2_006), throttled(2_015, 2_020)]
    const used = (seconds: number) => rateAfter(...known, sent(200 * seconds, 2_020, 5)) / rateAfter(...known)
    const unused = rateAfter(...known, sent(60, 2_020, 1_000)) / rateAfter(...known)
    expect(
      [rateAfter(...known), used(10) * 0.85, used(30) * 0.85, unused].map((rate) => rate.toFixed(1)),
    ).toEqual(["42.5", "1.0", "2.2", "1.0"])
  })

  it("is kept although timers are late by a few milliseconds", () => {
    let pace = throttled(1_995, 2_000)(sent(500, 0, 4)(openPace))
    const rate = rateOf(pace)
    let requests = 0
    for (let nowMs = 2_000; nowMs < 3_000; nowMs = Math.ceil(pace.nextMs) + 3)
      for (; pace.nextMs <= nowMs; requests += 1) pace = noteSent(pace, nowMs)
    expect(Math.abs(requests - rate)).toBeLessThan(rate / 20)
  })

  it("is not cut again by requests that were under way at the last cut", () => {
    const cut = [sent(200, 0, 10), throttled(1_995, 2_000), answered(1_996, 2_001)]
    expect(rateAfter(...cut, throttled(1_997, 2_002))).toBe(rateAfter(...cut))
    expect(rateAfter(...cut, throttled(2_001, 2_030))).toBeLessThan(rateAfter(...cut))
  })

  it("is cut once by one subject, unless others are refused too [promise 10 subject] [promise 10 everybody]", () => {
    const about = (subject: string): Asked => ({ ...asked, endpoint: "readExecution", subject })
    const refused = (subject: string, nowMs: number) => (pace: Pace) =>
      noteComplaint(pace, { ...refusal, asked: about(subject), sentMs: nowMs - 5, nowMs })
    const others = sent(24, 50, 50)
    const own = (pace: Pace) => noteAnswered(pace, about("a"), 1_300, 1_300)
    expect([
      rateAfter(refused("a", 10), refused("a", 2_000), refused("a", 4_000)),
      rateAfter(refused("a", 10), others, refused("a", 2_000), refused("a", 4_000)),
      rateAfter(refused("a", 10), others, own, refused("a", 2_000)),
      rateAfter(refused("a", 10), refused("b", 2_000), refused("a", 4_000), refused("b", 6_000)),
    ]).toEqual([20, Infinity, 20, 1.8423749999999999])
  })

  it("is cut by a 503 only if calls about two engines had one within two seconds, or a call about none", () => {
    const cut = (...events: ReadonlyArray<readonly [nowMs: number, engine: string | undefined]>) =>
      rateAfter(...events.map(([nowMs, engine]) => unavailable(nowMs, engine))) < Infinity
    expect([
      cut([100, "a"], [200, "a"], [300, "a"], [400, "a"], [500, "a"]),
      cut([100, "a"], [2_101, "b"], [4_102, "a"]),
      cut([100, "a"], [2_100, "b"]),
      cut([100, "a"], [200, "b"], [300, "b"]),
      cut([100, undefined]),
    ]).toEqual([false, false, true, true, true])
  })

  it("is nothing while the host refuses everybody: as long as asked, and longer each time, up to 30 s", () => {
    const storm = (askedMs: number) =>
      [10, 11, 12, 13]
        .map((nowMs) => throttled(0, nowMs, askedMs))
        .reduce((pace, event) => event(pace), openPace)
    const again = (pace: Pace) =>
      noteComplaint(pace, { ...refusal, sentMs: pace.nextMs, nowMs: pace.nextMs + 30 })
    const waits = (pace: Pace) => pace.nextMs - pace.pausedMs
    const pauses = Array.from({ length: 6 }).reduce<Array<Pace>>(
      (paused) => [...paused, again(paused.at(-1) ?? openPace)],
      [storm(0)],
    )
    expect(pauses.map(waits)).toEqual([1, 2, 4, 8, 16, 30, 30].map((seconds) => seconds * second))
    expect([5 * second, 99_999_999 * second].map((askedMs) => waits(storm(askedMs)))).toEqual([5_000, 30_000])
    // Eight clean answers later a pause is short again.
    const calm = sent(8, 200 * second, 100)(pauses.at(-1) ?? openPace)
    expect(waits([1, 2, 3, 4].reduce((pace, ms) => throttled(200_750, 200_800 + ms)(pace), calm))).toBe(
      second,
    )
  })
})

it.each([0, 200])(
  "a night of 800 quick executions with two 429s from %i ms on takes at most a tenth longer than one without",
  (fromMs) => {
    const host: Host = { takes: () => 500, retryAfterMs: second }
    const undisturbed = play(host, executions(800))
    const disturbed = play({ ...host, says: twoRefused(fromMs) }, executions(800))
    expect([undisturbed.refused, disturbed.refused]).toEqual([0, 2])
    expect(disturbed.endedMs / undisturbed.endedMs).toBeLessThan(1.1)
  },
)

describe("a host that bears so many requests, and says so by 429", () => {
  const second20: Host = { takes: () => 20 }
  const tenSeconds = { takes: () => 200, windowMs: 10 * second }
  const hosts: ReadonlyArray<readonly [string, Host, Demand, used: number, minutes?: number]> = [
    ["20 a second", { ...second20, retryAfterMs: second }, callers(100), 0.9],
    ["20 a second, in bursts", { ...second20, retryAfterMs: second }, callers(100, 20), 0.35],
    ["20 a second, answering late", { ...second20, latencyMs: 400, retryAfterMs: second }, callers(100), 0.9],
    ["200 in 10 seconds, but names 20", { ...tenSeconds, retryAfterMs: 20 * second }, callers(100), 0.4, 20],
  ]
  for (const [name, host, demand, used, minutes = 10] of hosts)
    it(`sees at most 3 % complaints and is well used: ${name} [promise 10]`, () => {
      const seen = play(host, demand, { forMs: minutes * minute })
      expect(shareRefused(seen)).toBeLessThan(0.03)
      expect(seen.taken / (minutes * 1_200)).toBeGreaterThan(used)
    })

  it("is followed when its limit falls and rises", () => {
    const takes = (elapsedMs: number) => (elapsedMs < minute || elapsedMs >= 2 * minute ? 80 : 20)
    const seen = play({ takes, retryAfterMs: second }, callers(100), { forMs: 5 * minute })
    expect(shareRefused(seen)).toBeLessThan(0.03)
    expect(takenPerSecond(seen, 60, 120)).toBeGreaterThan(16)
    expect(takenPerSecond(seen, 240, 300)).toBeGreaterThan(64)
  })
})

describe("a host that has room", () => {
  const host: Host = { takes: () => Infinity, latencyMs: second }

  it("is called as often as before while it refuses all that one subject asks [promise 10 subject]", () => {
    const says = (_: number, subject: string) => (subject === "0" ? 429 : undefined)
    const seen = play({ ...host, says }, callers(4), { forMs: 30 * minute })
    expect(takenPerSecond(seen, 0, 1_800)).toBeGreaterThan(2.9)
  })

  it("is called as often as before two minutes after it refused every other call [promise 10 recovery]", () => {
    let calls = 0
    const says = (elapsedMs: number) => (elapsedMs < 10 * minute && calls++ % 2 === 0 ? 429 : undefined)
    const seen = play({ ...host, says }, callers(40), { forMs: 13 * minute })
    expect(takenPerSecond(seen, 60, 600)).toBeLessThan(0.5)
    expect(takenPerSecond(seen, 720, 780)).toBeGreaterThan(35)
  })
})

describe("a hostile host", () => {
  it("that answers 429 to everything gets few requests [promise 10]", () => {
    const host: Host = { takes: () => 0, retryAfterMs: second }
    const { taken, refused } = play(host, callers(100), { forMs: 10 * minute })
    expect([taken, refused < 100]).toEqual([0, true])
  })

  it("that refuses everything for ten seconds delays the night by less than half a minute [promise 10]", () => {
    const host: Host = { takes: (elapsedMs) => (elapsedMs < 10 * second ? 0 : 500), retryAfterMs: second }
    expect(play(host, evenly(4_500, 474)).endedMs).toBeLessThan(40 * second)
  })

  it("meets the same pace whatever the wall clock is set to", () => {
    const host: Host = { takes: () => 20, retryAfterMs: second }
    const days = (count: number) => count * 24 * hour
    const jumps = [
      { atMs: 10 * second, byMs: days(2) },
      { atMs: 70 * second, byMs: days(-4) },
    ]
    const forMs = 3 * minute
    expect(play(host, callers(100), { forMs, jumps })).toEqual(play(host, callers(100), { forMs }))
  })
})
