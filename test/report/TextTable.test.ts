/** Text that fits: columns, wrapped sentences, durations. */
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { plain, span, table, wrap } from "../../src/report/TextTable.ts"

describe("table", () => {
  it("aligns columns, numbers to the right, and ends no line with blanks", () => {
    const text = table(
      ["name", "count", "note"],
      [
        ["a", "1", ""],
        ["bcdef", "100", "x"],
      ],
      {
        width: Infinity,
        right: new Set([1]),
      },
    )
    expect(text).toBe("name   count  note\na          1\nbcdef    100  x")
  })

  it("cuts the widest column first, and never below what can still be read", () => {
    const rows = [["c-1", "a very long engine reference", "COMPLETED"]]
    expect(table(["id", "engine", "end"], rows, { width: 30 })).toBe(
      "id   engine          end\nc-1  a very long e…  COMPLETED",
    )
  })

  it("fits any width that its columns can be cut to, in any text", () => {
    const cell = fc.string({ maxLength: 30 })
    fc.assert(
      fc.property(fc.array(fc.tuple(cell, cell, cell)), fc.integer({ min: 24, max: 120 }), (rows, width) => {
        const lines = table(["a", "b", "c"], rows, { width }).split("\n")
        expect(lines.length).toBe(rows.length + 1)
        expect(lines.filter((line) => line.length > width)).toEqual([])
      }),
    )
  })
})

describe("wrap", () => {
  it("loses no word and exceeds the width only for a longer word", () => {
    fc.assert(
      fc.property(
        fc.array(fc.string({ minLength: 1, maxLength: 12 })),
        fc.integer({ min: 20, max: 80 }),
        (words, width) => {
          const text = words.map((word) => word.replaceAll(/\s/g, "_")).join(" ")
          const wrapped = wrap(text, width, "  ", "    ")
          expect(wrapped.split("\n").filter((line) => line.length > width)).toEqual([])
          expect(wrapped.replaceAll(/\n {4}/g, " ").slice(2)).toBe(plain(text))
        },
      ),
    )
  })
})

describe("span", () => {
  it("names the two largest units", () => {
    expect([5, 45_000, 90_000, 1_500_000, 12_000_000].map(span)).toEqual([
      "5 ms",
      "45 s",
      "1 min 30 s",
      "25 min",
      "3 h 20 min",
    ])
  })
})
