/** Which rows leave memory when: full row groups, much text, and the largest tables where all are too large together. */
import { describe, expect, it } from "vitest"
import { TableBuilder, column } from "../../src/records/Columns.ts"
import { flushAll, flushFull } from "../../src/records/Flush.ts"
import type { Flushed } from "../../src/records/Flush.ts"
import { readBack } from "./families.ts"

const numbers = (name: string) =>
  new TableBuilder({ name, comment: "", columns: [column("n", "INTEGER", "clear", "")] })
const texts = (name: string) =>
  new TableBuilder({ name, comment: "", columns: [column("text", "VARCHAR", "clear", "")] })

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
    expect([seen.length, large.rows, small.rows, [...flushAll([small, large])]]).toEqual([300_000, 0, 0, []])
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
    expect([a.rows, b.rows, told(flushAll(all)).length]).toEqual([2, 0, 8])
  })

  it("come back from several batches with the words of each", async () => {
    const spec = {
      name: "t",
      comment: "",
      columns: [
        { ...column("word", "VARCHAR", "clear", ""), repeats: true as const },
        column("n", "INTEGER", "clear", ""),
      ],
    }
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

describe("rows that are taken back", () => {
  it("leave those before them, and the room that their text took", () => {
    const builder = texts("t")
    builder.append(["kept"])
    const before = [builder.rows, builder.openUnits, builder.size]
    const takeBack = builder.mark()
    for (let n = 0; n < 3; n++) builder.append(["taken back"])
    takeBack()
    expect([builder.rows, builder.openUnits, builder.size]).toEqual(before)
    expect([...builder.finish().getChild("text")!]).toEqual(["kept"])
  })
})
