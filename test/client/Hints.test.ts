/** What hints may change, and the board that passes them on: one slot per watch, nothing kept of what nobody watches. */
import { assert, describe, expect, it } from "@effect/vitest"
import { Clock, Duration, Effect, Fiber } from "effect"
import * as fc from "fast-check"
import { TestClock } from "effect/testing"
import { Hints, isOutdated, isTrusted, makeHintBoard, noTrust } from "../../src/client/Hints.ts"
import { plausibleDate, trustAfter } from "../../src/client/Hints.ts"
import type { HintWatch, LookResult } from "../../src/client/Hints.ts"
import { hintedWaitMax, nextLookInMs } from "../../src/client/Polling.ts"
import { anId } from "../harness/Id.ts"
import { effect } from "../harness/Steps.ts"

const naming = (...texts: ReadonlyArray<string>) => ({ texts: new Set(texts), dateMs: undefined })
const about = (engine_reference: string | undefined, ...ids: ReadonlyArray<string | undefined>) => ({
  engine_reference: engine_reference === undefined ? undefined : anId(engine_reference),
  ids: ids.map((one) => (one === undefined ? undefined : anId(one))),
})
/** One look at a time, by somebody who is told this. */
const look = (watch: HintWatch, told: "nothing" | "news" | "end", first = false) => {
  const hinted = watch.beginLook(0)
  watch.endLook({ hinted, first, told })
  return hinted
}

describe("a watch", () => {
  effect("gets hints for any of its ids, even one learnt later, until it polls", function* () {
    const board = makeHintBoard()
    const watch = yield* board.source.watch(about("bank", "e-1", undefined))
    const other = yield* board.source.watch(about("bank", "e-2"))
    board.offer(naming("s-1"))
    assert.isFalse(watch.isHinted())
    watch.learn("s-1")
    for (const id of ["e-1", "s-1"]) {
      board.offer(naming("x", id))
      board.offer(naming(id))
      assert.deepStrictEqual([watch.isHinted(), other.isHinted()], [true, false])
      assert.deepStrictEqual([look(watch, "nothing"), look(watch, "nothing")], [true, false])
    }
  })

  effect("keeps a hint that arrives during a poll for the next poll", function* () {
    const board = makeHintBoard()
    const watch = yield* board.source.watch(about("bank", "e-1"))
    watch.beginLook(0)
    board.offer(naming("e-1"))
    watch.endLook({ hinted: false, first: false, told: "nothing" })
    assert.isTrue(look(watch, "nothing"))
  })

  effect("is never named by an empty string, nor by anything once its scope is closed", function* () {
    const board = makeHintBoard()
    const gone = yield* Effect.scoped(board.source.watch(about("bank", "e-1", "")))
    const watch = yield* board.source.watch(about("bank", ""))
    board.offer(naming("e-1", ""))
    assert.deepStrictEqual([gone.isHinted(), watch.isHinted()], [false, false])
  })

  effect("rests until its time, a hint, or the end of trust in its engine, whichever is first", function* () {
    const board = makeHintBoard()
    const watch = yield* board.source.watch(about("bank", "e-1"))
    const neighbour = yield* board.source.watch(about("bank", "e-2"))
    const elsewhere = yield* board.source.watch(about("tax", "e-3"))
    const rested = (one: HintWatch) =>
      Effect.gen(function* () {
        const since = yield* Clock.currentTimeMillis
        yield* one.rest(60_000)
        return (yield* Clock.currentTimeMillis) - since
      })
    const first = yield* Effect.forkChild(rested(watch))
    yield* TestClock.adjust("10 seconds")
    board.offer(naming("e-1"))
    assert.strictEqual(yield* Fiber.join(first), 10_000)
    look(watch, "news")
    expect([watch.isTrusted(), neighbour.isTrusted(), elsewhere.isTrusted()]).toStrictEqual([
      true,
      true,
      false,
    ])
    const second = yield* Effect.forkChild(rested(watch))
    const third = yield* Effect.forkChild(rested(elsewhere))
    yield* TestClock.adjust("20 seconds")
    look(neighbour, "end")
    assert.deepStrictEqual([yield* Fiber.join(second), watch.isTrusted()], [20_000, false])
    yield* TestClock.adjust("1 minute")
    assert.strictEqual(yield* Fiber.join(third), 60_000)
  })
})

effect("without webhooks there are no hints, and a wait is a sleep", function* () {
  const source = yield* Hints
  const watch = yield* source.watch(about("bank", "e-1"))
  expect([source.on, watch.isHinted(), look(watch, "news"), watch.isTrusted()]).toStrictEqual([
    false,
    false,
    false,
    false,
  ])
})

const minute = 60_000
const result = (hinted: boolean, told: LookResult["told"], first = false) => ({ hinted, told, first })
const after = (...looks: ReadonlyArray<LookResult>) => looks.reduce(trustAfter, noTrust)

describe("trust in hints", () => {
  it("is earned by a hint that led to news, and by nothing else", () => {
    const trusted = [after(), after(result(true, "news")), after(result(true, "end", true))].map(isTrusted)
    expect(trusted).toEqual([false, true, true])
    const worthless = [
      result(true, "nothing"),
      result(false, "news"),
      result(false, "end"),
      // A first look tells something new whoever asked for it.
      result(true, "news", true),
    ]
    for (const one of worthless) expect(isTrusted(after(one, one, one))).toBe(false)
  })

  it("is lost by an end that polling found first, and costs twice as much each time", () => {
    const news = result(true, "news")
    const missed = result(false, "end")
    const early = result(false, "end", true)
    const trusted = [
      after(news, news, missed),
      after(news, missed, news),
      after(news, missed, news, news),
      // The hint of an end that the very first poll found may have come too early.
      after(news, early),
    ]
    expect(trusted.map(isTrusted)).toEqual([false, false, true, true])
    expect(after(news, missed, news, news, missed)).toEqual({ useful: 0, needed: 4 })
  })

  it("is never more than 64 hints away, whatever happened", () => {
    const anyLook = fc.record({
      hinted: fc.boolean(),
      first: fc.boolean(),
      told: fc.constantFrom<LookResult["told"]>("nothing", "news", "end"),
    })
    fc.assert(
      fc.property(fc.array(anyLook, { maxLength: 300 }), (looks) => {
        const regained = Array.from({ length: 64 }, () => result(true, "end"))
        expect(isTrusted(regained.reduce(trustAfter, after(...looks)))).toBe(true)
      }),
    )
  })

  it("makes polls rare: four an hour, or as rare as the job's own polling", () => {
    const [min, hinted] = [Duration.millis(2_000), Duration.toMillis(hintedWaitMax)]
    const looks = [
      [minute, 0, undefined],
      [minute, minute, undefined],
      [minute, 60 * minute, undefined],
      [minute, 0, 30_000],
      [40 * minute, 0, undefined],
    ] as const
    const waits = looks.map(([max, waited, kick]) =>
      nextLookInMs({ min, max: Duration.millis(max) }, waited, { kickInMs: kick, trusted: true }),
    )
    expect(waits).toEqual([hinted, hinted, hinted, hinted, 40 * minute])
  })
})

describe("the order of events", () => {
  const now = 1_000 * minute

  it("is given by dates, except one further in the future than clocks differ", () => {
    const dates = [now + 5 * minute, now + 5 * minute + 1, undefined]
    expect(dates.map((date) => plausibleDate(date, now))).toEqual([now + 5 * minute, undefined, undefined])
  })

  it("an event older than the newest means nothing once the state was read after it", () => {
    const times = { confirmedAt: now, lookedAt: now }
    expect([
      isOutdated(now - 1, times),
      // One and the same moment may hold two events: the login's end and the run's.
      isOutdated(now, times),
      isOutdated(undefined, times),
      isOutdated(now - 1, { confirmedAt: now, lookedAt: now - 2 }),
      isOutdated(now - 1, { confirmedAt: -Infinity, lookedAt: now }),
    ]).toEqual([true, false, false, false, false])
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
