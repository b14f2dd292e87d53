/** Clocks that are not the machine's, which here is one that the test moves. */
import { expect, it } from "@effect/vitest"
import { Clock, Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { ScaledClock, SteadyClock, suspendedMs } from "../../src/base/Time.ts"
import { effect } from "../harness/Steps.ts"

effect("shows its origin, runs at its speed and shortens sleeps accordingly", function* () {
  yield* TestClock.setTime(5_000_000)
  const scaled = ScaledClock.layer({ speed: 300, originMs: 1_000 })
  const times: Array<number> = []
  const look = Effect.map(Clock.currentTimeMillis, (now) => void times.push(now))
  const sleeper = yield* Effect.forkChild(
    look.pipe(Effect.andThen(Effect.sleep("5 minutes")), Effect.andThen(look), Effect.provide(scaled)),
  )
  yield* TestClock.adjust(999)
  expect(times).toEqual([1_000])
  yield* TestClock.adjust(1)
  yield* Fiber.join(sleeper)
  expect(times).toEqual([1_000, 301_000])
})

effect(
  "counts the time for which the machine was suspended, and none by which its clock was set [promise 9 suspend]",
  function* () {
    yield* TestClock.setTime(5_000_000)
    const machine = { up: 70, wall: 0 }
    const monotonic = yield* Clock.Clock
    /** The test's clock is the monotonic one; the wall clock may be set. */
    const clock = Layer.succeed(Clock.Clock, {
      currentTimeMillisUnsafe: () => monotonic.currentTimeMillisUnsafe() + machine.wall,
      currentTimeMillis: Effect.map(monotonic.currentTimeMillis, (now) => now + machine.wall),
      currentTimeNanosUnsafe: () => monotonic.currentTimeNanosUnsafe(),
      currentTimeNanos: monotonic.currentTimeNanos,
      monotonicTimeNanosUnsafe: () => monotonic.currentTimeNanosUnsafe(),
      monotonicTimeNanos: monotonic.currentTimeNanos,
      sleep: (duration) => monotonic.sleep(duration),
    })
    let reads = 0
    const steady = yield* Effect.provide(
      Clock.Clock,
      SteadyClock.layer(() => {
        reads += 1
        return machine.up
      }).pipe(Layer.provide(clock)),
    )
    const passes = Effect.fnUntraced(function* (awake: number, asleep = 0) {
      machine.up += (awake + asleep) / 1_000
      yield* TestClock.adjust(awake)
      return steady.currentTimeMillisUnsafe() - 5_000_000
    })
    const hours = 60 * 60_000
    const shown = [yield* passes(1_000), yield* passes(1_000, 2 * hours)]
    machine.wall = -48 * hours
    shown.push(yield* passes(1_000), yield* passes(1_000, 4_000), yield* passes(1_000, 4_000))
    // The container has moved to another host.
    machine.up = 3
    shown.push(yield* passes(1_000))
    expect(shown).toEqual(
      [1_000, 2_000, 3_000, 4_000, 13_000, 14_000].map((ms, n) => (n > 0 ? 2 * hours : 0) + ms),
    )
    reads = 0
    for (let look = 0; look < 1_000; look++) steady.currentTimeMillisUnsafe()
    expect(reads).toBe(0)
  },
)

it("no time is taken for a suspension that goes back, is rounding, or is longer than any", () => {
  const day = 24 * 60 * 60_000
  const cases: ReadonlyArray<readonly [number, number, number]> = [
    [0, 1_000, 1_010],
    [0, 1_000, 6_000],
    [7_000, 1_000, 1_000],
    [7_000, 1_000, 9_000],
    [0, 1_000, -4 * day],
    [0, 1_000, 4 * day],
  ]
  expect(cases.map((one) => suspendedMs(...one))).toEqual([0, 5_000, 7_000, 7_000, 0, 0])
})
