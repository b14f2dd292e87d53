import { describe, expect, it } from "vitest"
import { TableBuilder, column, required } from "../../src/records/Columns.ts"
import type { TableSpec } from "../../src/records/Columns.ts"
import { encodeTexts } from "../../src/records/ColumnData.ts"
import { readBack } from "./families.ts"

const everyType: TableSpec = {
  name: "every_type",
  comment: "One column of each type.",
  columns: [
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
  ],
}

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
    expect(builder.rows).toBe(3)
    const { rows, types, ranges, metadata } = await readBack(everyType, builder.finish())
    expect(builder.rows).toBe(0)
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

  it("keep each string in its own row when halves of a surrogate pair are in neighbouring rows", async () => {
    const spec = { name: "t", comment: "", columns: [column("text", "VARCHAR", "clear", "")] }
    const builder = new TableBuilder(spec)
    for (const text of ["ab\ud83d", "\ude00cd", "é", "plain"]) builder.append([text])
    const { rows } = await readBack(spec, builder.finish())
    expect(rows.map(({ text }) => text)).toEqual(["ab\ufffd", "\ufffdcd", "é", "plain"])
  })

  it("write an empty table that the database can read", async () => {
    const { rows } = await readBack(everyType, new TableBuilder(everyType).finish())
    expect(rows).toEqual([])
  })

  it("refuse wrong cells, rows of another length, unknown columns and forbidden NULLs", () => {
    const spec = {
      name: "t",
      comment: "",
      columns: [required("a", "INTEGER", "clear", ""), column("b", "VARCHAR", "clear", "")],
    }
    const rowOf = (cells: ReadonlyArray<never>) => () => {
      const builder = new TableBuilder(spec)
      builder.append(cells)
      builder.finish()
    }
    expect(rowOf([1.5, "x"] as never)).toThrow("column a of type INTEGER got a number")
    expect(rowOf([1, 2] as never)).toThrow("column b of type VARCHAR got a number")
    expect(rowOf([1] as never)).toThrow("a row of 1 cell for 2 columns")
    expect(rowOf([null, "x"] as never)).toThrow("t.a is required and got a NULL")
    const word = new TableBuilder({
      ...spec,
      columns: [{ ...column("b", "VARCHAR", "clear", ""), repeats: true }],
    })
    word.append([7])
    expect(() => word.finish()).toThrow("column b of type VARCHAR got a number")
    expect(() => new TableBuilder(spec).appendRow({ a: 1, c: 2 })).toThrow("t has no column c")
  })

  it("take rows by column name", async () => {
    const spec = {
      name: "t",
      comment: "",
      columns: [required("a", "INTEGER", "clear", ""), column("b", "VARCHAR", "clear", "")],
    }
    const builder = new TableBuilder(spec)
    builder.appendRow({ a: 1 })
    builder.appendRow({ b: "x", a: 2 })
    const { rows } = await readBack(spec, builder.finish())
    expect(rows).toEqual([
      { a: 1, b: null },
      { a: 2, b: "x" },
    ])
  })
})

describe("texts of a column", () => {
  it("end where their bytes end, for each length that a character may have, whole or half", () => {
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
})
