/** Workbooks: every cell as the query returned it, and no text that a spreadsheet runs. */
import { describe, expect, it } from "vitest"
import fc from "fast-check"
import { readXlsx } from "hucre/xlsx"
import type { Json } from "../../src/base/DuckDb.ts"
import { xlsxOf } from "../../src/cli/commands/Query.ts"

const workbookOf = async (types: ReadonlyArray<string>, rows: ReadonlyArray<ReadonlyArray<Json>>) => {
  const columns = types.map((type, index) => ({ name: `c${index}`, type }))
  let cut = 0
  const chunks = (async function* () {
    yield* rows.map((row) => [row])
  })()
  const bytes = await new Response(await xlsxOf(columns, chunks, () => void cut++)).bytes()
  const { sheets } = await readXlsx(bytes)
  return { cut, sheets }
}

const cellsOf = async (types: ReadonlyArray<string>, ...rows: ReadonlyArray<ReadonlyArray<Json>>) => {
  const { sheets } = await workbookOf(types, rows)
  return sheets[0]?.rows.slice(1)
}

describe("a workbook", () => {
  it("has numbers, times and truth values as such, and as text what Excel would change", async () => {
    const types = "BIGINT DECIMAL(38,2) DOUBLE DATE TIMESTAMP_WITH_TIME_ZONE BOOLEAN VARCHAR[]"
      .split(" ")
      .map((type) => type.replaceAll("_", " "))
    expect(
      await cellsOf(
        types,
        [12, "-1234567890123.45", 0.1, "2026-11-21", "2026-11-21T22:30:00.250Z", true, ["a", "b"]],
        [9_007_199_254_740_991, "123456789012345.67", "NaN", "1899-12-31", "infinity", false, []],
        ["170141183460469231731687303715884105727", "1000000000000000.00", 1e300, null, null, null, null],
      ),
    ).toEqual([
      [
        12,
        -1_234_567_890_123.45,
        0.1,
        new Date("2026-11-21"),
        new Date("2026-11-21T22:30:00.250Z"),
        true,
        '["a","b"]',
      ],
      ["9007199254740991", "123456789012345.67", "NaN", "1899-12-31", "infinity", false, "[]"],
      ["170141183460469231731687303715884105727", 1e15, 1e300, null, null, null, null],
    ])
  })

  it("has any text unchanged, and none of them as a formula [promise 13 workbooks]", async () => {
    const strange = fc.constantFrom(
      ..."=1+1|+34|-5|@x|_x0041_|\0|\u000b|\ufffe|\ud800|\udc00|\ufffd|\r\n| ".split("|"),
    )
    const texts = fc.array(fc.oneof(strange, fc.string({ unit: "binary" })), { minLength: 1, maxLength: 4 })
    await fc.assert(
      fc.asyncProperty(
        fc.array(
          texts.map((parts) => parts.join("")),
          { minLength: 50, maxLength: 50 },
        ),
        async (column) => {
          const { sheets } = await workbookOf(
            ["VARCHAR"],
            column.map((text) => [text]),
          )
          expect(sheets[0]?.rows.slice(1)).toEqual(column.map((text) => [text]))
          expect(
            [...(sheets[0]?.cells?.values() ?? [])].filter(({ formula }) => formula !== undefined),
          ).toEqual([])
        },
      ),
      { numRuns: Number(process.env["NIGHTJAR_CELLS"] ?? 1_000) / 50 },
    )
  })

  it("has a header on each sheet, which stays in sight, and cuts and counts texts that no cell can hold", async () => {
    const long = "x".repeat(32_767)
    const { cut, sheets } = await workbookOf(["VARCHAR"], [[long], [`${long}y`]])
    const rows = [["c0"], [long], [`${"x".repeat(32_766)}…`]]
    expect([cut, sheets.map((sheet) => [sheet.name, sheet.rows, sheet.freezePane])]).toEqual([
      1,
      [["result", rows, { rows: 1 }]],
    ])
  })
})
