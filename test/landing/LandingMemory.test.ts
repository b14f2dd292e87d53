import { assert, describe } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { Landing } from "../../src/landing/Landing.ts"
import { LandingMemory } from "../harness/LandingMemory.ts"
import { bytesOf, landingSuite, metaOf } from "./landingSuite.ts"
import { anId } from "../harness/Id.ts"
import { effect } from "../harness/Steps.ts"

landingSuite("LandingMemory", () => LandingMemory.layer(LandingMemory.makeStore()))

const begun = <A, E>(work: Effect.Effect<A, E>) => Effect.forkChild(work, { startImmediately: true })

describe("LandingMemory", () => {
  effect("loses in a crash what was not synced, and keeps the rest for the next process", function* () {
    const store = LandingMemory.makeStore()
    const first = yield* Effect.provide(Landing, LandingMemory.layer(store))
    const landed = yield* begun(first.land(metaOf("landed"), bytesOf("1")))
    yield* TestClock.adjust("5 millis")
    const ref = yield* Fiber.join(landed)
    const lost = yield* begun(first.land(metaOf("lost"), bytesOf("2")))
    yield* TestClock.adjust("4 millis")
    store.crash()
    yield* Fiber.interrupt(lost)
    const next = yield* Effect.provide(Landing, LandingMemory.layer(store))
    assert.deepStrictEqual(yield* next.list(anId("nightly.2026-11-21")), [{ ref, meta: metaOf("landed") }])
  })
})
