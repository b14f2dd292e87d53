import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, expect } from "@effect/vitest"
import { tableFromIPC } from "apache-arrow"
import { Effect } from "effect"
import { parquetOf } from "../../src/cli/commands/Query.ts"
import { DuckDb } from "../../src/base/DuckDb.ts"
import { queryArrow } from "../../src/base/QueryArrow.ts"
import { withLayer } from "../harness/Steps.ts"
import { folder } from "../harness/Folder.ts"

const { effect } = withLayer(DuckDb.layer)

const connection = Effect.flatMap(DuckDb, (duckdb) =>
  duckdb.open({ path: ":memory:", access: "read-write", threads: 1 }),
)

describe("queryArrow", () => {
  effect("keeps every type, NULL and digit", function* () {
    const bytes = yield* queryArrow(
      yield* connection,
      `SELECT * FROM (VALUES
          (true, 1::TINYINT, 7::INTEGER, 9007199254740993::BIGINT, 1.5::DOUBLE, -1.10::DECIMAL(38,2), 'añ😀', DATE '2026-01-02',
            TIMESTAMPTZ '2026-01-02 00:00:00.000001+00', ['a', NULL, 'ccc'], {'k': [1]}),
          (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
          (false, -1, -7, -9007199254740993, -1.5, 123456789012345678901234567890.12, '', DATE '1969-12-31',
            TIMESTAMPTZ '1969-12-31 23:59:59.999999+00', [], NULL)
        ) v(b, tiny, int, big, real, amount, text, day, "at", codes, nested)`,
    )
    const table = tableFromIPC(bytes)
    expect(table.schema.fields.map((field) => `${field.name} ${field.type}`).join(", ")).toStrictEqual(
      "b Bool, tiny Int8, int Int32, big Int64, real Float64, amount Decimal[38e+2], text Utf8, " +
        "day Date32<DAY>, at Timestamp<MICROSECOND, UTC>, codes List<Utf8>, nested Utf8",
    )
    const column = (name: string) => [...(table.getChild(name) ?? [])]
    assert.deepStrictEqual(["b", "tiny", "int", "big", "real", "text", "day", "nested"].map(column), [
      [true, null, false],
      [1, null, -1],
      [7, null, -7],
      [9_007_199_254_740_993n, null, -9_007_199_254_740_993n],
      [1.5, null, -1.5],
      ["añ😀", null, ""],
      [Date.UTC(2026, 0, 2), null, -86_400_000],
      ['{"k":[1]}', null, null],
    ])
    const at = table.getChild("at")?.data[0]?.values
    assert.deepStrictEqual([...(at ?? [])], [1_767_312_000_000_001n, 0n, -1n])
    expect(column("codes").map((list) => (list === null ? null : [...list]))).toStrictEqual([
      ["a", null, "ccc"],
      null,
      [],
    ])
    const words: Uint32Array = table.getChild("amount")?.data[0]?.values
    expect([0, 1, 2].map((row) => signed(words.subarray(row * 4, row * 4 + 4)))).toStrictEqual([
      -110n,
      0n,
      12_345_678_901_234_567_890_123_456_789_012n,
    ])
  })

  effect("keeps sums as numbers, in Parquet too, and refuses more digits than a decimal has", function* () {
    const open = yield* connection
    const bytes = yield* queryArrow(
      open,
      `SELECT sum(n) AS total, sum(amount) AS paid, max(n)::UHUGEINT AS most, sum(n) FILTER (false) AS nothing
         FROM (VALUES (9223372036854775807, 1.10::DECIMAL(18,2)), (9223372036854775807, 2.20)) v(n, amount)`,
    )
    const file = join(yield* folder, "sums.parquet")
    writeFileSync(file, yield* Effect.promise(() => parquetOf(bytes)))
    expect(
      yield* open.rows(
        "SELECT *, typeof(total) AS t, typeof(paid) AS p, typeof(most) AS m FROM read_parquet(?)",
        [file],
      ),
    ).toStrictEqual([
      {
        total: "18446744073709551614",
        paid: "3.30",
        most: "9223372036854775807",
        nothing: null,
        t: "DECIMAL(38,0)",
        p: "DECIMAL(38,2)",
        m: "DECIMAL(38,0)",
      },
    ])
    const tooLong = yield* Effect.flip(
      queryArrow(open, "SELECT 170141183460469231731687303715884105727::HUGEINT AS n"),
    )
    assert.strictEqual(tooLong.message, "an integer has more than 38 digits; cast the column to VARCHAR")
  })

  effect("keeps days and times without an end, in Parquet too", function* () {
    const open = yield* connection
    const endless = `SELECT 'infinity'::DATE AS day, '-infinity'::DATE AS first, 'infinity'::TIMESTAMP AS "at",
      '-infinity'::TIMESTAMPTZ AS since, ['infinity'::DATE] AS days`
    const file = join(yield* folder, "endless.parquet")
    const bytes = yield* queryArrow(open, endless)
    writeFileSync(file, yield* Effect.promise(() => parquetOf(bytes)))
    const read = yield* open.rows("SELECT * FROM read_parquet(?)", [file])
    expect(read).toStrictEqual([
      { day: "infinity", first: "-infinity", at: "infinity", since: "-infinity", days: ["infinity"] },
    ])
  })

  effect("handles many batches, and a result without rows but with columns", function* () {
    const open = yield* connection
    const many = tableFromIPC(yield* queryArrow(open, "SELECT i, i::VARCHAR AS s FROM range(10000) r(i)"))
    assert.strictEqual(many.numRows, 10_000)
    assert.deepStrictEqual(many.get(9_999)?.toJSON(), { i: 9_999n, s: "9999" })
    const none = tableFromIPC(yield* queryArrow(open, "SELECT 1 AS one WHERE false"))
    assert.deepStrictEqual([none.numRows, none.schema.names], [0, ["one"]])
  })
})

const signed = (words: Uint32Array): bigint =>
  BigInt.asIntN(
    128,
    words.reduceRight((total, word) => (total << 32n) | BigInt(word), 0n),
  )
