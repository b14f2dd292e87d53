/**
 * What happens to published tables when the service, the schemas or the program change: older files, records
 * that no longer fit, schemas that are gone.
 */
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { DuckDb } from "../../src/duckdb/DuckDb.ts"
import { Publisher } from "../../src/publishing/Publisher.ts"
import { anId } from "../harness/Id.ts"
import { append, begin, folder, layers, profileOf, resultsOf, rowsOf, succeed } from "./night.ts"

const publish = (run: string) => Effect.flatMap(Publisher, (publisher) => publisher.publish(anId(run)))

/** One night of one customer, published. */
const night = Effect.fnUntraced(function* (date: string, ...data: ReadonlyArray<unknown>) {
  const run_id = `nightly.${date}`
  yield* append([begin(run_id, date)])
  yield* succeed(run_id, date, "c-1", resultsOf(...data))
  return yield* publish(run_id)
})

/** Replaces the only Parquet file of a table by what a query makes of it. */
const rewrite = Effect.fnUntraced(function* (root: string, table: string, select: string) {
  const duckdb = yield* DuckDb
  const connection = yield* duckdb.open({ path: ":memory:", access: "read-write" })
  const files = join(root, "tables", table, "*", "*.parquet")
  const [found] = yield* connection.rows("SELECT file FROM glob(?)", [files])
  const file = String(found?.["file"])
  yield* connection.run(`CREATE TABLE old AS SELECT ${select} FROM read_parquet('${file}')`)
  yield* connection.run(`COPY old TO '${file}' (FORMAT parquet)`)
}, Effect.scoped)

describe("tables of a changing world", () => {
  it.live("give the rows of an older version the date of their run, and no content_id", () =>
    Effect.gen(function* () {
      const root = yield* folder
      yield* Effect.gen(function* () {
        yield* night("2026-11-20", profileOf("Ana"))
        yield* rewrite(root, "customer_profiles", "* EXCLUDE (run_date, content_id)")
        yield* night("2026-11-21", profileOf("Ana"))
        assert.deepStrictEqual(
          yield* rowsOf(
            root,
            `SELECT run_date::VARCHAR AS run_date, content_id IS NULL AS without, name
             FROM customer_profiles ORDER BY run_date`,
          ),
          [
            { run_date: "2026-11-20", without: true, name: "Ana" },
            { run_date: "2026-11-21", without: false, name: "Ana" },
          ],
        )
      }).pipe(Effect.provide(layers(root)))
    }),
  )

  it.live("keep every profile in `_latest` when one field changes its type", () =>
    Effect.gen(function* () {
      const root = yield* folder
      yield* Effect.gen(function* () {
        const profiles = Array.from({ length: 20 }, (_, n) => profileOf(`Ana ${n}`))
        yield* night("2026-11-20", ...profiles)
        const published = yield* night("2026-11-21", ...profiles.map((each) => ({ ...each, gender: 2 })))
        assert.deepStrictEqual(
          [published.misfits, published.rejected],
          [[{ table: "customer_profiles", column: "gender", count: 20 }], []],
        )
        assert.deepStrictEqual(
          yield* rowsOf(
            root,
            `SELECT run_date::VARCHAR AS run_date, gender, extra->>'gender' AS kept, misfits,
               count(*)::INTEGER AS rows
             FROM customer_profiles_latest GROUP BY ALL`,
          ),
          [
            {
              run_date: "2026-11-21",
              gender: null,
              kept: "2",
              misfits: ["gender: expected VARCHAR, got number"],
              rows: 20,
            },
          ],
        )
      }).pipe(Effect.provide(layers(root)))
    }),
  )
})
