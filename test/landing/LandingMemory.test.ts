import { assert, describe } from "@effect/vitest"
import { Effect, Fiber, Stream } from "effect"
import { TestClock } from "effect/testing"
import { Landing } from "../../src/landing/Landing.ts"
import { LandingMemory } from "../harness/LandingMemory.ts"
import { bytesOf, landingSuite, metaOf } from "./landingSuite.ts"
import { anId } from "../harness/Id.ts"
import { effect } from "../harness/Steps.ts"

landingSuite("LandingMemory", () => LandingMemory.layer(LandingMemory.makeStore()))

const begun = <A, E>(work: Effect.Effect<A, E>) => Effect.forkChild(work, { startImmediately: true })

describe("LandingMemory", () => {
  effect("keeps bodies and documents after 5 ms, as they were, whoever changes what was read", function* () {
    const store = LandingMemory.makeStore()
    const landing = yield* Effect.provide(Landing, LandingMemory.layer(store))
    const run = anId("nightly.2026-11-21")
    const bytes = bytesOf("a")
    const body = yield* begun(landing.land(metaOf("a"), bytes))
    const next = yield* begun(landing.land(metaOf("b"), bytesOf("b")))
    const document = yield* begun(landing.landAttachment(Stream.make(bytesOf("d"))))
    yield* TestClock.adjust("4 millis")
    assert.deepStrictEqual([...store.attachments.keys()], [])
    yield* TestClock.adjust("1 millis")
    const ref = yield* Fiber.join(body)
    bytes.fill(0)
    // As if each body stood in one segment, with a byte between them.
    const where = [ref, yield* Fiber.join(next)].map(({ segment, offset }) => [segment, offset])
    assert.deepStrictEqual(
      where,
      [0, 2].map((offset) => ["segment-000001.njl", offset]),
    )
    const { sha256 } = yield* Fiber.join(document)
    assert.deepStrictEqual([...store.attachments], [[sha256, Buffer.from("d")]])
    const read = yield* landing.read(run, ref)
    read.fill(0)
    assert.deepStrictEqual(yield* landing.read(run, ref), bytesOf("a"))
    const missing = yield* Effect.flip(landing.read(run, { ...ref, offset: 9 }))
    const other = yield* Effect.flip(landing.read(anId("other.2026-11-21"), ref))
    assert.deepStrictEqual(
      [missing, other].map(({ path, message }) => [path, message]),
      [
        ["nightly.2026-11-21", "no such body at offset 9"],
        ["other.2026-11-21", "no such body at offset 0"],
      ],
    )
  })

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
