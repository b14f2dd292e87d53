/**
 * Two nights of which something is lost afterwards: a later night is published all the same, and what can be made good
 * is. The kinds of damage, one by one, are in `test/cli/Damage.test.ts`.
 */
import { rmSync, statSync, truncateSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { DuckDb } from "../../src/base/DuckDb.ts"
import { parquetRows } from "../../src/tables/FileColumns.ts"
import { layoutOf, nothingPublished, readManifest, type Manifest } from "../../src/tables/Manifest.ts"
import { Publisher } from "../../src/tables/Publisher.ts"
import { restorable } from "../../src/tables/RestoreFiles.ts"
import { rollback } from "../../src/tables/Rollback.ts"
import { Instead } from "../../src/tables/SharedFile.ts"
import {
  append,
  folder,
  layers,
  liveNight,
  namesIn,
  problemsIn,
  profileOf,
  rowsOf,
  storeOf,
  liveIn,
} from "./night.ts"
import { copiesOf } from "../harness/CopiesOf.ts"
import { anId } from "../harness/Id.ts"

const first = "nightly.2026-11-20"
const nights = Effect.andThen(
  liveNight(first, "1", profileOf("Ana")),
  liveNight("nightly.2026-11-21", "2", profileOf("Bea")),
)

const names = (root: string) => Effect.map(namesIn(root), (all) => all.join("+"))

const profiles = `tables/customer_profiles/run_date=2026-11-20/${first}-v1.parquet`
const gone = (path: string) => (root: string) => rmSync(join(root, path), { recursive: true })

/** A folder in which both nights were lived. */
const afterNights = copiesOf((root) => Effect.provide(nights, layers(root)))

const second = "nightly.2026-11-21"
const later = `tables/customer_profiles/run_date=2026-11-21/${second}-v2.parquet`
const cutInHalf = (path: string) => (root: string) =>
  truncateSync(join(root, path), Math.floor(statSync(join(root, path)).size / 2))
const third = anId("nightly.2026-11-22")
const thirdNight = liveNight(third, "3", profileOf("Cid"))

/** Nothing can be derived again: the landed bodies of both nights are gone by age. */
const pruneAll = Effect.fnUntraced(function* (root: string) {
  for (const run of [first, second]) {
    yield* append([{ _tag: "LandingPruned", run_id: anId(run), bytes: 1 }])
    gone(`landing/${run}`)(root)
  }
})

/** What a file has: its columns, and its rows in their order. */
const contentOf = Effect.fnUntraced(function* (path: string) {
  const duckdb = yield* DuckDb
  const connection = yield* duckdb.open({ path: ":memory:", access: "read-write" })
  const rows = `SELECT * FROM ${parquetRows([path])}`
  return { columns: yield* connection.columnTypes(rows), rows: yield* connection.rows(rows) }
}, Effect.scoped)

const everyRow = (root: string) =>
  rowsOf(root, `FROM nights.customer_profiles WHERE run_id IN ('${first}', '${second}') ORDER BY ALL`)

describe("a later run", () => {
  const damages: ReadonlyArray<{
    readonly how: string
    readonly runs: ReadonlyArray<string>
    readonly damage: (root: string) => void
    /** Another night comes before the rollback: then no database has the rows from the lost files any more. */
    readonly isLong: boolean
  }> = [
    {
      how: "two older files, of different runs",
      runs: [first, second],
      damage: (root) => [cutInHalf(profiles)(root), gone(later)(root)],
      isLong: true,
    },
    {
      how: "an older file, from the kept database where the published one is gone",
      runs: [first],
      damage: (root) => [gone(profiles)(root), gone("nightjar.duckdb")(root)],
      isLong: false,
    },
  ]
  it.live.each(damages)(
    "writes $how again, with all rows, which a rollback finds [promise 7 restored] [promise 7 kept] [promise 6 restored]",
    ({ damage, runs, isLong }) =>
      Effect.gen(function* () {
        const root = yield* afterNights
        yield* Effect.gen(function* () {
          yield* pruneAll(root)
          const before = [yield* everyRow(root), yield* contentOf(join(root, profiles))]
          damage(root)
          const { without, restored } = yield* thirdNight
          assert.deepStrictEqual([without, restored], [[], runs])
          assert.strictEqual(yield* names(root), "Ana+Bea+Cid")
          const written = join(root, profiles.replace("-v1", "-v3"))
          assert.deepStrictEqual([yield* everyRow(root), yield* contentOf(written)], before)
          const publisher = yield* Publisher
          yield* publisher.publishOutcome(third)
          assert.deepStrictEqual(yield* problemsIn(root), [])
          if (isLong) yield* liveNight("nightly.2026-11-23", "4", profileOf("Dan"))
          const to = { to: 2, isDry: false }
          const back = yield* Effect.flatMap(storeOf(root), (store) => rollback(store, to))
          assert.strictEqual(back._tag, "RolledBack")
          assert.strictEqual(yield* names(root), "Ana+Bea")
          assert.deepStrictEqual(yield* problemsIn(root), [])
        }).pipe(Effect.provide(layers(root)))
      }).pipe(Effect.scoped),
  )

  liveIn(afterNights)(
    "names all earlier runs where a person removed every table with the manifest [promise 7 tables]",
    function* (root) {
      gone("tables")(root)
      assert.deepStrictEqual((yield* thirdNight).without, [first, second])
      assert.deepStrictEqual(
        (yield* problemsIn(root)).map(({ id, where }) => [id, where]),
        [first, second].map((run) => ["run-not-in-manifest", run]),
      )
    },
  )

  liveIn(afterNights)(
    "takes no rows from a database that somebody changed [promise 7 whole]",
    function* (root) {
      gone("published/previous/nightjar.duckdb")(root)
      const duckdb = yield* DuckDb
      const change = duckdb.open({ path: join(root, "nightjar.duckdb"), access: "read-write" })
      yield* Effect.scoped(
        Effect.flatMap(change, ({ run }) => run("UPDATE store.customer_profiles SET name = 'Eve'")),
      )
      gone(profiles)(root)
      assert.deepStrictEqual((yield* thirdNight).without, [first])
      assert.strictEqual(yield* names(root), "Bea+Cid")
    },
  )
})

describe("a rollback", () => {
  liveIn(afterNights)(
    "writes a lost file of its version again with the rows of a database",
    function* (root) {
      yield* pruneAll(root)
      gone(profiles)(root)
      const back = yield* Effect.flatMap(storeOf(root), (store) => rollback(store))
      assert.strictEqual(back._tag, "RolledBack")
      assert.strictEqual(yield* names(root), "Ana")
      assert.deepStrictEqual(yield* problemsIn(root), [])
      assert.deepStrictEqual((yield* thirdNight).without, [])
      assert.strictEqual(yield* names(root), "Ana+Bea+Cid")
      assert.deepStrictEqual(yield* problemsIn(root), [])
    },
  )
})

describe("a table of a run that lacks a file", () => {
  it.live(
    "can be restored if the database has it from that file, in the schema that it had [promise 7 schema]",
    () =>
      Effect.gen(function* () {
        const root = yield* afterNights
        const { families } = yield* storeOf(root)
        const current = readManifest(layoutOf(root).manifest) ?? nothingPublished
        const gaps = Object.values(current.runs).flatMap(({ files }) =>
          files.map(({ path }) => ({ path, state: "missing" as const })),
        )
        const tablesFrom = (of: Manifest) =>
          restorable(families, { next: current, gaps }, of, new Instead())
            .filter(({ run_id }) => run_id === first)
            .map(({ table }) => table)
        const all = tablesFrom(current)
        const schemas = { ...current.schemas, customer_profiles: 7 }
        const unknown = { ...current, runs: {} }
        assert.include(all, "customer_profiles")
        assert.deepStrictEqual(
          [tablesFrom({ ...current, schemas }), tablesFrom(unknown)],
          [all.filter((table) => table !== "customer_profiles" && table !== "emails"), []],
        )
      }).pipe((work) => Effect.flatMap(folder, (root) => Effect.provide(work, layers(root))), Effect.scoped),
  )
})
