/** How long is waited before trying again, whoever waits. */
import { assert, describe, expect, it } from "@effect/vitest"
import { Clock, Duration, Effect, Fiber } from "effect"
import * as fc from "fast-check"
import { TestClock } from "effect/testing"
import { retrySchedule, waitMs, type RetryBounds, type WaitPolicy } from "../../src/base/Time.ts"
import { effect } from "../harness/Steps.ts"

const policy = (jitter: number): WaitPolicy => ({
  base: Duration.seconds(30),
  max: Duration.minutes(15),
  jitter,
})

const jitters = fc.constantFrom(0, 1 / 5, 1)
const failures = fc.integer({ min: 0, max: 2_000 })
const randoms = fc.double({ min: 0, max: 0.999, noNaN: true })

describe("a wait", () => {
  it("doubles from base to max [decision 4 waits]", () => {
    const waits = [1, 2, 3, 4, 5, 6, 7, 1_000].map((count) => waitMs(policy(0), count, 0.5) / 1_000)
    assert.deepStrictEqual(waits, [30, 60, 120, 240, 480, 900, 900, 900])
  })

  it("is never shorter than the other side asked for [promise 10]", () => {
    fc.assert(
      fc.property(jitters, failures, randoms, fc.nat(3_600_000), (jitter, count, random, asked) => {
        const wait = waitMs(policy(jitter), count, random, Duration.millis(asked))
        return wait >= asked && wait <= Math.max(asked, 900_000) + (jitter === 1 ? 900_000 : 0)
      }),
    )
  })

  it("is shortened by no more than its jitter, so that waiters do not come back together", () => {
    fc.assert(
      fc.property(jitters, failures, randoms, (jitter, count, random) => {
        const whole = waitMs(policy(jitter), count, 0)
        const wait = waitMs(policy(jitter), count, random)
        return wait <= whole && wait >= whole * (1 - jitter)
      }),
    )
    assert.strictEqual(waitMs(policy(1), 1, 0.5), 15_000)
  })

  it("of full jitter comes on top of what was asked for; any other is in it", () => {
    const asked = Duration.minutes(1)
    expect([1, 1 / 5, 0].map((jitter) => waitMs(policy(jitter), 1, 0.5, asked))).toStrictEqual([
      75_000, 60_000, 60_000,
    ])
  })
})

/** When a call that always fails is made, in seconds. */
const triesAt = (waits: WaitPolicy, bounds: RetryBounds<"lost">) =>
  Effect.gen(function* () {
    const at: Array<number> = []
    const call = Effect.flatMap(Clock.currentTimeMillis, (now) => {
      at.push(now / 1_000)
      return Effect.fail("lost" as const)
    })
    const fiber = yield* Effect.forkChild(Effect.flip(Effect.retry(call, retrySchedule(waits, bounds))))
    yield* TestClock.adjust("2 hours")
    assert.strictEqual(yield* Fiber.join(fiber), "lost")
    return at
  })

describe("a loop that sleeps", () => {
  effect("waits as the policy says, and ends with the last failure after so many tries", function* () {
    const at = yield* triesAt(policy(0), { triesMax: () => 4 })
    assert.deepStrictEqual(at, [0, 30, 90, 210])
  })

  effect("waits at least as long as it is asked to", function* () {
    const asked = () => Duration.seconds(50)
    assert.deepStrictEqual(yield* triesAt(policy(0), { triesMax: () => 3, asked }), [0, 50, 110])
  })

  effect("begins no wait that would end too late", function* () {
    const bounds = { triesMax: () => 9, untilAt: 90_000 }
    assert.deepStrictEqual(yield* triesAt(policy(0), bounds), [0, 30, 90])
    assert.deepStrictEqual(yield* triesAt(policy(0), { ...bounds, untilAt: 0 }), [7_200])
  })
})
