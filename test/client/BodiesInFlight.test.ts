/** One budget over all bodies that a process handles: who waits, who does not, and that everybody comes through. */
import { describe, expect } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import {
  BodiesInFlight,
  makeBodyBudget,
  uncountedBytes,
  whileHandled,
  whileHeld,
} from "../../src/client/AnswerBytes.ts"
import type { BodyBudget } from "../../src/client/AnswerBytes.ts"
import { effect, live } from "../harness/Steps.ts"

const mega = 1024 * 1024

/** Grows step by step, holds for a second, and tells when it began to hold. */
const taker = (budget: BodyBudget, name: string, steps: ReadonlyArray<number>, told: Array<string>) =>
  Effect.gen(function* () {
    const hold = yield* budget.hold
    for (const bytes of steps) {
      yield* hold.grow(bytes)
      yield* Effect.yieldNow
    }
    told.push(`${name} has all`)
    yield* Effect.sleep("1 second")
    told.push(`${name} ends`)
    yield* hold.release
  })

describe("the budget of bodies in flight", () => {
  live("makes no small body wait, and large ones until there is room", function* () {
    const budget = makeBodyBudget(10 * mega)
    const told: Array<string> = []
    const all = [
      taker(budget, "a", [8 * mega], told),
      taker(budget, "b", [8 * mega], told),
      taker(budget, "c", [8 * mega], told),
      taker(budget, "small", [uncountedBytes], told),
    ]
    yield* Effect.all(all, { concurrency: "unbounded" })
    // b is the oldest that waits and goes beyond the budget; c waits for one of them.
    expect(told.slice(0, 3)).toEqual(["a has all", "b has all", "small has all"])
    expect(told.indexOf("c has all")).toBeGreaterThan(told.indexOf("b ends"))
  })

  live("lets two bodies that need each other's room both finish", function* () {
    const budget = makeBodyBudget(10 * mega)
    const told: Array<string> = []
    const steps = Array.from({ length: 30 }, () => mega)
    const all = ["a", "b", "c", "d"].map((name) => taker(budget, name, steps, told))
    yield* Effect.timeout(Effect.all(all, { concurrency: "unbounded" }), "20 seconds")
    expect(told.filter((text) => text.endsWith("ends"))).toHaveLength(4)
  })

  effect("releases what an interrupted wait or a handled body held", function* () {
    const budget = makeBodyBudget(mega)
    const first = yield* budget.hold
    const second = yield* budget.hold
    const third = yield* budget.hold
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
