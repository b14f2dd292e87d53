/** One budget over all bodies that a process handles: who waits, who does not, and that everybody comes through. */
import { describe, expect } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { BodiesInFlight, makeBodyBudget, uncountedBytes, whileHandled } from "../../src/client/AnswerBytes.ts"
import { whileHeld } from "../../src/client/AnswerBytes.ts"
import type { Hold } from "../../src/client/AnswerBytes.ts"
import { effect } from "../harness/Steps.ts"

const mega = 1024 * 1024

/** Grows step by step, holds for a second, and tells when it began to hold. */
const taker = (
  budget: Effect.Effect<Hold>,
  name: string,
  steps: ReadonlyArray<number>,
  told: Array<string>,
) =>
  Effect.gen(function* () {
    const hold = yield* budget
    for (const bytes of steps) {
      yield* hold.grow(bytes)
      yield* Effect.yieldNow
    }
    told.push(`${name} has all`)
    yield* Effect.sleep("1 second")
    told.push(`${name} ends`)
    yield* hold.release
  })

/** All of them at once, with twenty seconds to end. */
const inTime = (all: ReadonlyArray<Effect.Effect<void>>) =>
  Effect.gen(function* () {
    const fiber = yield* Effect.forkChild(Effect.all(all, { concurrency: "unbounded" }))
    for (let second = 0; second < 20; second += 1) yield* TestClock.adjust("1 second")
    expect(fiber.pollUnsafe()?._tag).toBe("Success")
  })

describe("the budget of bodies in flight", () => {
  effect("makes no small body wait, and large ones until there is room", function* () {
    const budget = makeBodyBudget(10 * mega)
    const told: Array<string> = []
    const all = [
      taker(budget, "a", [8 * mega], told),
      taker(budget, "b", [8 * mega], told),
      taker(budget, "c", [8 * mega], told),
      taker(budget, "small", [uncountedBytes], told),
    ]
    yield* inTime(all)
    // b is the oldest that waits and goes beyond the budget; c waits for one of them.
    expect(told.slice(0, 3)).toEqual(["a has all", "b has all", "small has all"])
    expect(told.indexOf("c has all")).toBeGreaterThan(told.indexOf("b ends"))
  })

  effect("lets two bodies that need each other's room both finish", function* () {
    const budget = makeBodyBudget(10 * mega)
    const told: Array<string> = []
    const steps = Array.from({ length: 30 }, () => mega)
    const all = ["a", "b", "c", "d"].map((name) => taker(budget, name, steps, told))
    yield* inTime(all)
    expect(told.filter((text) => text.endsWith("ends"))).toHaveLength(4)
  })

  effect("releases what an interrupted wait or a handled body held", function* () {
    const budget = makeBodyBudget(mega)
    const first = yield* budget
    const second = yield* budget
    const third = yield* budget
    yield* first.grow(4 * mega)
    const waiting = yield* Effect.forkChild(second.grow(4 * mega))
    yield* Effect.yieldNow
    yield* Fiber.interrupt(waiting)
    const next = yield* Effect.forkChild(third.grow(4 * mega))
    yield* Effect.yieldNow
    expect(next.pollUnsafe()).toBeUndefined()
    yield* first.release
    yield* Fiber.join(next)
    yield* third.release
    const read = whileHeld(({ grow }) => grow(4 * mega))
    const handled = whileHandled(Effect.andThen(read, read), Effect.failCause)
    yield* Effect.provideService(Effect.andThen(handled, handled), BodiesInFlight, budget)
  })
})
