import { assert, describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import fc from "fast-check"
import { DuckDb } from "../../src/base/DuckDb.ts"
import { identifier, literal } from "../../src/base/DuckDbFailed.ts"

/** Pieces that break out of naive quoting, mixed with any text there is. */
const hostile = fc
  .array(
    fc.oneof(
      fc.constantFrom(..."' \" '' \\ \\' ; -- /* */ \0 \n $$ E' \uD800 ? $1".split(" ")),
      fc.constantFrom("'); DROP TABLE safe; --", '"; DROP TABLE safe; --', "../../x", "%s", "😀", "=cmd()"),
      fc.string({ unit: "binary", maxLength: 8 }),
    ),
    { maxLength: 8 },
  )
  .map((parts) => parts.join(""))

describe("SqlText", () => {
  it.effect("a hostile value stays a value and a hostile name a name [promise 13 SQL]", () =>
    Effect.gen(function* () {
      const connection = yield* Effect.flatMap(DuckDb, (duckdb) =>
        duckdb.open({ path: ":memory:", access: "read-write", threads: 1 }),
      )
      yield* connection.run("CREATE TABLE safe AS SELECT 1 AS one")
      const values = fc.sample(hostile, { numRuns: 5_000, seed: 13 })
      for (let from = 0; from < values.length; from += 500) {
        const batch = values.slice(from, from + 500)
        const { rows } = yield* connection.query(`SELECT unnest([${batch.map(literal).join(", ")}]) AS value`)
        expect(rows.map(([value]) => value)).toStrictEqual(batch.map((value) => value.toWellFormed()))
      }
      const names = [...new Set(values.map((value) => `n${value.toWellFormed().toLowerCase()}`))].slice(
        0,
        300,
      )
      for (let from = 0; from < names.length; from += 100) {
        const batch = names.slice(from, from + 100).map((name, index) => `${index}${name}`)
        const { columns } = yield* connection.query(
          `SELECT ${batch.map((name) => `1 AS ${identifier(name)}`).join(", ")}`,
        )
        expect(columns.map(({ name }) => name)).toStrictEqual(
          batch.map((name) => name.replaceAll("\0", "\uFFFD")),
        )
      }
      assert.deepStrictEqual(yield* connection.rows("SELECT * FROM safe"), [{ one: 1 }])
    }).pipe(Effect.provide(DuckDb.layer)),
  )
})
