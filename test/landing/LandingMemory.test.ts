import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { Landing } from "../../src/landing/Landing.ts"
import { LandingMemory } from "../../src/landing/LandingMemory.ts"
import { bytesOf, landingSuite, metaOf } from "./landingSuite.ts"
import { anId } from "../harness/Id.ts"

landingSuite("LandingMemory", () => LandingMemory.layer(LandingMemory.makeStore()))

describe("LandingMemory", () => {
  it.effect("loses in a crash what was not synced, and keeps the rest for the next process", () =>
    Effect.gen(function* () {
      const store = LandingMemory.makeStore()
      const first = yield* Effect.provide(Landing, LandingMemory.layer(store))
      const landed = yield* Effect.forkChild(first.land(metaOf("landed"), bytesOf("1")), {
        startImmediately: true,
      })
      yield* TestClock.adjust("5 millis")
      const ref = yield* Fiber.join(landed)
      const lost = yield* Effect.forkChild(first.land(metaOf("lost"), bytesOf("2")), {
        startImmediately: true,
      })
      yield* TestClock.adjust("4 millis")
      store.crash()
      yield* Fiber.interrupt(lost)
      const next = yield* Effect.provide(Landing, LandingMemory.layer(store))
      assert.deepStrictEqual(yield* next.list(anId("nightly.2026-11-21")), [{ ref, meta: metaOf("landed") }])
    }),
  )
})
