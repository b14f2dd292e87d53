import { describe, expect, it } from "vitest"
import { TableBuilder, column, required, type TableSpec } from "../../src/records/Columns.ts"
import { encodeTexts, columnData, converter, dateCell, timestampCell } from "../../src/records/ColumnData.ts"
import { decimalShape } from "../../src/records/ColumnData.ts"
import { finished, readBack, rowsHeld } from "./families.ts"
import { flushAll, flushFull, type Flushed } from "../../src/records/Flush.ts"
import * as fc from "fast-check"
import type { ColumnType } from "../../src/records/ColumnData.ts"
import { ExactNumber, decimalIdentity, exactNumber } from "../../src/records/ExactNumber.ts"
import { canonicalText } from "../../src/records/RecordIdentity.ts"
import { readJson } from "../../src/service/ReadJson.ts"

const specOf = (name: string, ...columns: TableSpec["columns"]): TableSpec => ({
  name,
  comment: "",
  key: [],
  columns,
})
const text = column("text", "VARCHAR", "clear", "")
const twoColumns = specOf(
  "t",
  required(column("a", "INTEGER", "clear", "")),
  column("b", "VARCHAR", "clear", ""),
)

const everyType = specOf(
  "every_type",
  { ...column("word", "VARCHAR", "clear", "few values"), repeats: true },
  column("text", "VARCHAR", "clear", "any text"),
  column("flag", "BOOLEAN", "clear", ""),
  column("small", "INTEGER", "clear", ""),
  column("large", "BIGINT", "clear", ""),
  column("float", "DOUBLE", "clear", ""),
  column("credits", "DECIMAL(18,6)", "clear", ""),
  column("wide", "DECIMAL(38,18)", "clear", ""),
  column("day", "DATE", "clear", ""),
  column("time", "TIMESTAMPTZ", "clear", ""),
  column("codes", "VARCHAR[]", "clear", ""),
  column("json", "JSON", "clear", ""),
)

describe("Arrow columns and Parquet", () => {
  it("come back from the database with their types and every digit", async () => {
    const builder = new TableBuilder(everyType)
    builder.append([
      "x",
      "ñandú 😀",
      true,
      -5,
      -9_007_199_254_740_993n,
      1.5,
      -1_500_000n,
      123_456_789_012_345_678_901_234_567n,
      19_000,
      1_700_000_000_123,
      ["a", "ñ"],
      '{"a":1}',
    ])
    builder.append(everyType.columns.map(() => null))
    builder.append([
      "y",
      "",
      false,
      5,
      -3,
      0,
      999_999_999_999_999_999n,
      -1n,
      -1,
      253_402_300_799_999_999n,
      [],
      "null",
    ])
    expect(rowsHeld(builder)).toBe(3)
    const { rows, types, ranges, metadata } = await readBack(everyType, finished(builder))
    expect(rowsHeld(builder)).toBe(0)
    expect(types).toEqual({
      word: "VARCHAR",
      text: "VARCHAR",
      flag: "BOOLEAN",
      small: "INTEGER",
      large: "BIGINT",
      float: "DOUBLE",
      credits: "DECIMAL(18,6)",
      wide: "DECIMAL(38,18)",
      day: "DATE",
      time: "TIMESTAMP WITH TIME ZONE",
      codes: "VARCHAR[]",
      // Parquet carries the text; whoever builds the table casts it.
      json: "VARCHAR",
    })
    // A list's texts stand below it.
    const plain = everyType.columns
      .map(({ name }) => name)
      .filter((name) => name !== "json" && name !== "codes")
    expect(ranges.filter((name) => !String(name).startsWith("codes"))).toEqual(plain)
    expect(rows).toEqual([
      {
        word: "x",
        text: "ñandú 😀",
        flag: true,
        small: -5,
        large: "-9007199254740993",
        float: 1.5,
        credits: "-1.500000",
        wide: "123456789.012345678901234567",
        day: "2022-01-08",
        time: "2023-11-14 22:13:20.123+00",
        codes: ["a", "ñ"],
        json: '{"a":1}',
      },
      Object.fromEntries(everyType.columns.map(({ name }) => [name, null])),
      {
        word: "y",
        text: "",
        flag: false,
        small: 5,
        large: "-3",
        float: 0,
        credits: "999999999999.999999",
        wide: "-0.000000000000000001",
        day: "1969-12-31",
        time: "9999-12-31 23:59:59.999999+00",
        codes: [],
        json: "null",
      },
    ])
    expect(metadata).toMatchObject({ run_id: "nightly.2026-11-20", schema_version: "1" })
  })

  it("write an empty table that the database can read", async () => {
    const { rows } = await readBack(everyType, finished(new TableBuilder(everyType)))
    expect(rows).toEqual([])
  })

  it("refuse wrong cells, rows of another length, unknown columns and forbidden NULLs", () => {
    const rowOf = (cells: ReadonlyArray<never>) => () => {
      const builder = new TableBuilder(twoColumns)
      builder.append(cells)
      finished(builder)
    }
    expect(rowOf([1.5, "x"] as never)).toThrow("column a of type INTEGER got a number")
    expect(rowOf([1, 2] as never)).toThrow("column b of type VARCHAR got a number")
    expect(rowOf([1] as never)).toThrow("a row of 1 cell for 2 columns")
    expect(rowOf([null, "x"] as never)).toThrow("t.a is required and got a NULL")
    const word = new TableBuilder(specOf("t", { ...twoColumns.columns[1]!, repeats: true }))
    word.append([7])
    expect(() => finished(word)).toThrow("column b of type VARCHAR got a number")
    expect(() => new TableBuilder(twoColumns).appendRow({ a: 1, c: 2 })).toThrow("t has no column c")
  })
})

it("texts of a column end where their bytes end, for each length that a character may have, whole or half", () => {
  const units = [0x7f, 0x80, 0x7ff, 0x800, 0xd7ff, 0xd800, 0xdbff, 0xdc00, 0xdfff, 0xe000, 0xffff]
  const characters = units.map((unit) => String.fromCharCode(unit))
  const texts = ["", ...characters, ...characters.flatMap((one) => characters.map((other) => one + other))]
  const { offsets, bytes } = encodeTexts(texts)
  let end = 0
  const ends = texts.map((text) => (end += Buffer.byteLength(text)))
  expect([...offsets]).toEqual([0, ...ends])
  const parts = texts.map((_, index) => bytes.slice(offsets[index], offsets[index + 1]))
  expect(parts.map((part) => Buffer.from(part).toString("hex"))).toEqual(
    texts.map((text) => Buffer.from(text).toString("hex")),
  )
})

const number = column("n", "INTEGER", "clear", "")
const numbers = (name: string) => new TableBuilder(specOf(name, number))
const texts = (name: string) => new TableBuilder(specOf(name, text))

const told = (all: Iterable<Flushed>) =>
  Array.from(all, ({ spec, rows, table }) => {
    expect(table.numRows).toBe(rows)
    return [spec.name, rows]
  })

describe("the rows of a table", () => {
  it("leave memory in whole row groups, while those of a table with few of them stay until the end", () => {
    const [large, small] = [numbers("large"), numbers("small")]
    const seen: Array<number> = []
    const collect = (all: Iterable<Flushed>) =>
      Array.from(all, ({ spec, rows, table }) => {
        if (spec.name === "large") for (const n of table.getChild("n")!) seen.push(Number(n))
        return [spec.name, rows]
      })
    const parts: Array<unknown> = []
    for (let task = 0; task < 300; task++) {
      for (let n = 0; n < 1_000; n++) large.append([task * 1_000 + n])
      small.append([task])
      parts.push(...collect(flushFull([small, large])))
    }
    expect(parts).toEqual([
      ["large", 122_880],
      ["large", 122_880],
    ])
    expect(collect(flushAll([small, large]))).toEqual([
      ["small", 300],
      ["large", 54_240],
    ])
    expect(seen.every((n, at) => n === at)).toBe(true)
    expect([seen.length, rowsHeld(large), rowsHeld(small), [...flushAll([small, large])]]).toEqual([
      300_000,
      0,
      0,
      [],
    ])
  })

  it("leave it sooner if their text is long, every row once and in order", () => {
    const builder = texts("t")
    const text = "x".repeat(1_000_000)
    const ids: Array<string> = []
    const collect = (all: Iterable<Flushed>) =>
      Array.from(all, ({ rows, table }) => {
        for (const each of table.getChild("text")!) ids.push(String(each).slice(0, 4))
        return rows
      })
    for (let n = 0; n < 70; n++) builder.append([String(n).padStart(4, "0") + text])
    // Four become a batch, and the fourth batch is the first beyond 12 MiB.
    expect(collect(flushFull([builder]))).toEqual([16, 16, 16, 16])
    expect(collect(flushAll([builder]))).toEqual([6])
    expect(ids.map(Number)).toEqual(Array.from({ length: 70 }, (_, n) => n))
  })

  it("leave it in whole row groups also after long ones", () => {
    const builder = texts("t")
    for (let n = 0; n < 2; n++) builder.append(["x".repeat(4_200_000)])
    for (let n = 0; n < 140_000; n++) builder.append(["x"])
    expect(told(flushFull([builder]))).toEqual([["t", 122_880]])
    expect(told(flushAll([builder]))).toEqual([["t", 17_122]])
  })

  it("leave it for the largest table alone where all together have too much", () => {
    const text = "x".repeat(4_200_000)
    const all = ["a", "b", "c", "d", "e", "f", "g", "h", "i"].map(texts)
    const [a, b, last] = [all[0]!, all[1]!, all[8]!]
    b.append(["longer"])
    for (const builder of all.slice(0, 8)) builder.append([text])
    for (const builder of all.slice(0, 7)) builder.append([text])
    expect(told(flushFull(all))).toEqual([])
    last.append([text])
    // 16 texts are more than 64 MiB.
    expect(told(flushFull(all))).toEqual([["b", 3]])
    expect(told(flushFull(all))).toEqual([])
    expect([rowsHeld(a), rowsHeld(b), told(flushAll(all)).length]).toEqual([2, 0, 8])
  })

  it("come back from several batches with the words of each", async () => {
    const spec = specOf("t", { ...column("word", "VARCHAR", "clear", ""), repeats: true }, number)
    const wordOf = (n: number) => (n % 7 === 0 ? null : `w${Math.floor(n / 5_000)}`)
    const builder = new TableBuilder(spec)
    for (let n = 0; n < 20_000; n++) builder.append([wordOf(n), n])
    expect(told(flushFull([builder]))).toEqual([])
    expect(builder.encodedRows).toBe(16_384)
    const [flushed] = [...flushAll([builder])]
    const { rows } = await readBack(
      spec,
      flushed!.table,
      "SELECT word, count(*)::INTEGER AS rows, sum(n)::INTEGER AS total FROM t GROUP BY ALL ORDER BY word",
    )
    const expected = ["w0", "w1", "w2", "w3", null].map((word) => {
      const group = Array.from({ length: 20_000 }, (_, n) => n).filter((n) => wordOf(n) === word)
      return { word, rows: group.length, total: group.reduce((sum, n) => sum + n, 0) }
    })
    expect(rows).toEqual(expected)
  })
})

it("rows that are taken back leave those before them, and the room that their text took", () => {
  const builder = texts("t")
  builder.append(["kept"])
  const before = [rowsHeld(builder), builder.openUnits, builder.size]
  const takeBack = builder.mark()
  for (let n = 0; n < 3; n++) builder.append(["taken back"])
  takeBack()
  expect([rowsHeld(builder), builder.openUnits, builder.size]).toEqual(before)
  expect([...finished(builder).getChild("text")!]).toEqual(["kept"])
})

/** A number as a body has it. */
const numberIn = (text: string): unknown => (readJson(`[${text}]`, exactNumber) as ReadonlyArray<unknown>)[0]

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

  it("hold every double, however many of its digits are written, and no other number [decision 10 exact double]", () => {
    const double = (text: string) => converter("DOUBLE")(numberIn(text))
    const finite = fc.double({ noNaN: true, noDefaultInfinity: true })
    fc.assert(
      fc.property(finite, fc.integer({ min: 17, max: 40 }), (number, digits) => {
        const texts = [String(number), number.toPrecision(digits), number.toExponential(digits)]
        for (const text of texts) expect(double(text)).toBe(numberIn(text) === 0 ? 0 : number)
      }),
    )
    const others = ["9007199254740993", "1e-400", "1e400", "0.1234567890123456789", "123456789012345678"]
    expect(others.map(double)).toEqual(others.map(() => undefined))
  })

  it("have the number that was written, digit by digit, whatever their type [decision 10 exact numbers]", () => {
    const digits = fc.stringMatching(/^(0|[1-9]\d{0,24})$/)
    const rest = fc.stringMatching(/^(\.\d{1,24})?([eE][+-]?\d{1,3})?$/)
    const types = ["INTEGER", "BIGINT", "DECIMAL(9,3)", "DECIMAL(38,20)", "VARCHAR", "JSON"] as const
    const token = fc.tuple(fc.constantFrom("", "-"), digits, rest).map((parts) => parts.join(""))
    fc.assert(
      fc.property(token, (text) => {
        for (const type of types) {
          const cell = converter(type, true)(numberIn(text))
          if (cell === undefined) continue
          const written = `${String(cell)}e-${decimalShape(type)?.scale ?? 0}`
          const shown = typeof cell === "string" ? cell : written
          expect([type, decimalIdentity(shown)]).toEqual([type, decimalIdentity(text)])
        }
      }),
      { numRuns: 2_000 },
    )
  })

  it("of JSON are read again with every digit, also where they are one number [decision 10 long JSON]", () => {
    expect(canonicalText(readJson("9007199254740993", exactNumber))).toBe("#9007199254740993e0")
  })

  it("refuse every value of another kind", () => {
    refuses("VARCHAR", [1, true, {}, [], ["a"]])
    refuses("BOOLEAN", ["true", 1, 0, {}])
    refuses("DOUBLE", ["1.5", true, new ExactNumber("1e400")])
    refuses("VARCHAR[]", ["a", [1], ["a", null], {}])
  })
})
