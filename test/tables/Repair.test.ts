/**
 * Two nights of which something is lost afterwards: a later night is published all the same, and what can be made good
 * is. The kinds of damage, one by one, are in `test/cli/Damage.test.ts`.
 */
import { rmSync, truncateSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Publisher } from "../../src/tables/Publisher.ts"
import { repair } from "../../src/tables/Repair.ts"
import { layers, liveNight, namesIn, problemsIn, profileOf, storeOf } from "./night.ts"
import { copiesOf } from "../harness/CopiesOf.ts"
import { anId } from "../harness/Id.ts"

const first = "nightly.2026-11-20"
const nights = Effect.andThen(
  liveNight(first, "1", profileOf("Ana")),
  liveNight("nightly.2026-11-21", "2", profileOf("Bea")),
)

const names = (root: string) => Effect.map(namesIn(root), (all) => all.join("+"))
const mend = (root: string) => Effect.flatMap(storeOf(root), (opened) => repair(opened))

const profiles = `tables/customer_profiles/run_date=2026-11-20/${first}-v1.parquet`
const gone = (root: string) => (path: string) => rmSync(join(root, path), { recursive: true })
const derived = [`${first}: its tables were derived again from landing/${first}`]

/** A folder in which both nights were lived. */
const afterNights = copiesOf((root) => Effect.provide(nights, layers(root)))

describe("a later run", () => {
  const damages: ReadonlyArray<{ readonly how: string; readonly damage: (root: string) => void }> = [
    { how: "cannot be read", damage: (root) => truncateSync(join(root, profiles), 100) },
    {
      how: "is missing, and the database with it",
      damage: (root) => {
        gone(root)(profiles)
        gone(root)("nightjar.duckdb")
      },
    },
  ]
  it.live.each(damages)("is published although an older file $how: reported, and rebuilt", ({ damage }) =>
    Effect.gen(function* () {
      const root = yield* afterNights
      yield* Effect.gen(function* () {
        damage(root)
        const third = anId("nightly.2026-11-22")
        assert.deepStrictEqual((yield* liveNight(third, "3", profileOf("Cid"))).without, [first])
        assert.strictEqual(yield* names(root), "Bea+Cid")
        const publisher = yield* Publisher
        yield* publisher.publishOutcome(third)
        assert.deepStrictEqual((yield* mend(root)).done, derived)
        assert.strictEqual(yield* names(root), "Ana+Bea+Cid")
        assert.deepStrictEqual(yield* problemsIn(root), [])
      }).pipe(Effect.provide(layers(root)))
    }).pipe(Effect.scoped),
  )
})
