import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import { columnData, converter, dateCell, timestampCell } from "../../src/records/ColumnData.ts"
import type { ColumnType } from "../../src/records/ColumnData.ts"
import { ExactNumber } from "../../src/records/ExactNumber.ts"

const refuses = (type: ColumnType, values: ReadonlyArray<unknown>) =>
  expect(values.map((value) => converter(type)(value))).toEqual(values.map(() => undefined))

describe("cells", () => {
  it("count days as the calendar does, and refuse days that do not exist", () => {
    fc.assert(
      fc.property(fc.integer({ min: -719_162, max: 2_932_896 }), (days) => {
        expect(dateCell(new Date(days * 86_400_000).toISOString().slice(0, 10))).toBe(days)
      }),
    )
    const days = ["2024-02-28", "2024-02-29", "2024-03-01", "2000-02-29"].map(dateCell)
    expect(days).toEqual([19_781, 19_782, 19_783, 11_016])
    const wrong = [
      "2023-02-29",
      "2025-02-29",
      "2100-02-29",
      "1900-02-29",
      "2024-13-01",
      "2024-00-10",
      "2024-04-31",
      "0000-01-01",
    ]
    refuses("DATE", [...wrong, "2024-1-1", "2024-01-01T00:00:00Z", "20240101", "", 5, true, ["2024-01-01"]])
  })

  it("read times with a zone, and as UTC without one", () => {
    const noon = Date.UTC(2026, 10, 20, 12, 0, 5)
    for (const text of [
      "2026-11-20T12:00:05Z",
      "2026-11-20T12:00:05",
      "2026-11-20 12:00:05",
      "2026-11-20T13:00:05+01:00",
      "2026-11-20T07:30:05.000000-0430",
    ]) {
      expect(timestampCell(text)).toBe(noon)
    }
    expect(timestampCell("2026-11-20T12:00")).toBe(noon - 5000)
    expect(timestampCell("2026-11-20T12:00:05.25")).toBe(noon + 250)
    expect(timestampCell("2026-11-20T12:00:05.123456789Z")).toBe(BigInt(noon) * 1000n + 123_456n)
    // The last second of a day, in the zones that are furthest away.
    const last = Date.UTC(2026, 10, 20, 23, 59, 59)
    const zone = (23 * 60 + 59) * 60_000
    expect(["Z", "+23:59", "-2359"].map((each) => timestampCell(`2026-11-20T23:59:59${each}`))).toEqual([
      last,
      last - zone,
      last + zone,
    ])
    refuses("TIMESTAMPTZ", [
      "2026-11-20T12:00:60Z",
      "2026-11-20T12:00:00+24:00",
      "2026-11-20T12:00:00+23:60",
      "yesterday",
      "2026-11-20",
      "2026-11-20T24:00:00Z",
      "2026-11-20T12:60:00Z",
      "2026-02-30T12:00:00Z",
      "2026-11-20T12:00:05Zjunk",
      noon,
      null,
    ])
  })

  it("keep every millisecond of every year, as in a date that means for ever", () => {
    const stored = (at: number) => {
      const cell = timestampCell(new Date(at).toISOString()) ?? null
      return columnData({ name: "at", type: "TIMESTAMPTZ" }, [cell], 0).values[0] as bigint
    }
    const forEver = Date.UTC(9999, 11, 31, 23, 59, 59, 999)
    const all = fc.integer({ min: Date.parse("0001-01-01T00:00:00Z"), max: forEver })
    fc.assert(fc.property(all, (at) => stored(at) === BigInt(at) * 1000n))
    expect(stored(forEver)).toBe(253_402_300_799_999_000n)
  })

  it("scale decimals without rounding, and refuse what does not fit", () => {
    const decimal = converter("DECIMAL(18,6)")
    const values = ["60.50", "-0.000001", "+7", "1e3", "0", "000.10000000000", "12e-1", 8.25, 5]
    expect(values.map((value) => decimal(value))).toEqual([
      60_500_000n,
      -1n,
      7_000_000n,
      1_000_000_000n,
      0n,
      100_000n,
      1_200_000n,
      8_250_000n,
      5_000_000n,
    ])
    refuses("DECIMAL(18,6)", [
      "0.0000001",
      "1000000000000",
      "8,5",
      "",
      " 1",
      "NaN",
      "0x10",
      "1e999999999",
      true,
    ])
    expect(decimal(new ExactNumber("999999999999.999999"))).toBe(999_999_999_999_999_999n)
  })

  it("hold whole numbers of 64 bits and refuse larger ones", () => {
    const bigint = converter("BIGINT")
    expect(bigint(new ExactNumber("9223372036854775807"))).toBe(9_223_372_036_854_775_807n)
    expect(bigint(9_007_199_254_740_992)).toBe(9_007_199_254_740_992n)
    refuses("BIGINT", [new ExactNumber("9223372036854775808"), 1.5, "1", new ExactNumber("1e400")])
    refuses("INTEGER", [2_147_483_648, 1.5, "2", true, new ExactNumber("1e400")])
  })

  it("keep any JSON as its text, and lists of texts as they are", () => {
    const json = converter("JSON")
    expect([{ a: [1] }, "a", null, false].map((value) => json(value))).toEqual([
      '{"a":[1]}',
      '"a"',
      "null",
      "false",
    ])
    expect(converter("VARCHAR[]")(["a", ""])).toEqual(["a", ""])
    expect(converter("BOOLEAN")(false)).toBe(false)
    expect(converter("DOUBLE")(0)).toBe(0)
  })

  it("refuse every value of another kind", () => {
    refuses("VARCHAR", [1, true, {}, [], ["a"]])
    refuses("BOOLEAN", ["true", 1, 0, {}])
    refuses("DOUBLE", ["1.5", true, new ExactNumber("1e400")])
    refuses("VARCHAR[]", ["a", [1], ["a", null], {}])
  })
})
