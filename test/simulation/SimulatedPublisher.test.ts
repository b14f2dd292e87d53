import { assert, it } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { LandingMemory } from "../harness/LandingMemory.ts"
import { Ledger } from "../../src/ledger/Ledger.ts"
import { Publisher } from "../../src/tables/Publisher.ts"
import { SimulatedPublisher } from "./SimulatedPublisher.ts"
import { account, append, begin, profileOf, resultsOf, succeed } from "../tables/night.ts"
import { anId } from "../harness/Id.ts"
import { families } from "../records/families.ts"

const run_id = anId("nightly.2026-11-20")

it.effect("a kill before the version is visible publishes nothing, and the next one publishes it whole", () =>
  Effect.gen(function* () {
    const history = SimulatedPublisher.makeHistory()
    const { store } = history
    const layer = SimulatedPublisher.layer(history, families, () => 0).pipe(
      Layer.provideMerge(
        Layer.mergeAll(Ledger.layer({ path: ":memory:" }), LandingMemory.layer(LandingMemory.makeStore())),
      ),
    )
    yield* Effect.gen(function* () {
      const night = yield* Effect.forkChild(
        Effect.gen(function* () {
          yield* append([begin(run_id, "2026-11-20")])
          yield* succeed(run_id, "1", "c-1", resultsOf(profileOf("Ana"), account))
        }),
      )
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(night)
      const publisher = yield* Publisher
      const killed = yield* Effect.forkChild(publisher.publish(run_id))
      yield* TestClock.adjust("100 millis")
      yield* Fiber.interrupt(killed)
      assert.deepStrictEqual([store.version, store.runs.size], [0, 0])
      const whole = yield* Effect.forkChild(publisher.publish(run_id))
      yield* TestClock.adjust("1 second")
      const { version, receipts } = yield* Fiber.join(whole)
      const { rows = {} } = store.runs.get(run_id) ?? {}
      assert.deepStrictEqual([version, rows["customer_profiles"], rows["other_records"]], [1, 1, 1])
      assert.deepStrictEqual(
        receipts.map(({ execution_id }) => execution_id),
        ["e-1"],
      )
      assert.deepStrictEqual(
        store.runs.get(run_id)?.bodies.map(({ found, placed }) => [found, placed]),
        [[2, 2]],
      )
      // What is landed later is in no table before the run is published again; how it ended is.
      const later = yield* Effect.forkChild(
        Effect.gen(function* () {
          yield* succeed(run_id, "2", "c-2", resultsOf(profileOf("Bea"), profileOf("Eva")))
          yield* publisher.publishOutcome(run_id)
        }),
      )
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(later)
      const after = store.runs.get(run_id)
      assert.deepStrictEqual(
        [after?.version, after?.rows["tasks"], after?.rows["customer_profiles"], after?.rows["emails"]],
        [2, 2, 1, 1],
      )
    }).pipe(Effect.provide(layer))
  }),
)
