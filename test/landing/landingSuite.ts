/** What every layer of `Landing` promises, run against the one on disk and the one in memory. */
import { createHash } from "node:crypto"
import { assert, describe } from "@effect/vitest"
import { Effect, Fiber, Layer, Stream } from "effect"
import { TestClock } from "effect/testing"
import { Landing, type BodyMeta, type LandingFailed } from "../../src/landing/Landing.ts"
import { anId } from "../harness/Id.ts"
import { withLayer } from "../harness/Steps.ts"

export const metaOf = (task_id: string, run_id = "nightly.2026-11-21"): BodyMeta => ({
  kind: "results",
  run_id: anId(run_id),
  task_id: anId(task_id),
  session_id: anId('s/..\n"é'),
  http_status: 200,
  received_at: 1_795_000_000_000,
})
export const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text)
export const sha256 = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex")

/** Landing on disk waits for the machine, landing in memory for the Clock: both are waited for. */
const settled = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const fiber = yield* Effect.forkChild(effect, { startImmediately: true })
    yield* TestClock.adjust("1 second")
    return yield* Fiber.join(fiber)
  })

export const landingSuite = (name: string, make: () => Layer.Layer<Landing, LandingFailed>) =>
  describe(name, () => {
    const { effect } = withLayer(Layer.suspend(make))
    const run = anId("nightly.2026-11-21")

    effect("lists what was landed in order and reads it back", function* () {
      const landing = yield* Landing
      const bodies = ["", "{}", 'é\n\0{"njl":1,', "x".repeat(200_000), "{}"].map(bytesOf)
      const refs = yield* settled(
        Effect.forEach(bodies, (bytes, index) => landing.land(metaOf(`t${index}`), bytes)),
      )
      yield* settled(landing.land(metaOf("other", "other.2026-11-21.2"), bytesOf("other")))
      assert.deepStrictEqual(
        yield* landing.list(run),
        refs.map((ref, index) => ({ ref, meta: metaOf(`t${index}`) })),
      )
      assert.deepStrictEqual(
        refs.map((ref) => [ref.bytes, ref.sha256]),
        bodies.map((bytes) => [bytes.length, sha256(bytes)]),
      )
      const read = yield* Effect.forEach(refs, (ref) => landing.read(run, ref))
      assert.deepStrictEqual(read.map(sha256), bodies.map(sha256))
      assert.deepStrictEqual(yield* landing.list(anId("unknown.2026-11-21")), [])
    })

    effect("lands many bodies at once, each in its own place", function* () {
      const landing = yield* Landing
      const texts = Array.from({ length: 3_000 }, (_, index) => `body ${index}`)
      const refs = yield* settled(
        Effect.forEach(texts, (text) => landing.land(metaOf(text), bytesOf(text)), {
          concurrency: "unbounded",
        }),
      )
      const read = yield* Effect.forEach(refs, (ref) => landing.read(run, ref))
      assert.deepStrictEqual(
        read.map((bytes) => new TextDecoder().decode(bytes)),
        texts,
      )
      assert.strictEqual((yield* landing.list(run)).length, texts.length)
    })

    effect("lists bodies of every kind", function* () {
      const landing = yield* Landing
      const kinds = ["start", "state", "challenge", "results", "profile", "unusable"] as const
      yield* settled(Effect.forEach(kinds, (kind) => landing.land({ ...metaOf("t"), kind }, bytesOf(kind))))
      assert.deepStrictEqual(
        (yield* landing.list(run)).map(({ meta }) => meta.kind),
        [...kinds],
      )
    })

    effect("refuses a place that holds something else", function* () {
      const landing = yield* Landing
      const ref = yield* settled(landing.land(metaOf("t"), bytesOf("body")))
      const failure = yield* Effect.flip(landing.read(run, { ...ref, sha256: "0".repeat(64) }))
      assert.strictEqual(failure._tag, "LandingDamaged")
    })

    effect(
      "stores equal documents once, under their hash, and none whose download was cut off",
      function* () {
        const landing = yield* Landing
        const chunks = ["%PDF", "-1.7"].map(bytesOf)
        const expected = sha256(bytesOf("%PDF-1.7"))
        const twice = yield* settled(
          Effect.forEach([1, 2], () => landing.landAttachment(Stream.fromIterable(chunks))),
        )
        const one = { sha256: expected, bytes: 8, path: `attachments/${expected}` }
        assert.deepStrictEqual(twice, [one, one])
        const broken = Stream.concat(Stream.fromIterable(chunks), Stream.fail("cut" as const))
        assert.strictEqual(yield* Effect.flip(settled(landing.landAttachment(broken))), "cut")
      },
    )
  })
