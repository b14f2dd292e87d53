/** Text that fits: columns, wrapped sentences, durations. */
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { paint } from "../../src/report/RenderSummary.ts"
import { forTerminal, plain, span, table, wrap } from "../../src/report/TextTable.ts"
import { cutText } from "../../src/service/BodyBounds.ts"

describe("table", () => {
  it("aligns columns, numbers to the right, and ends no line with blanks", () => {
    const text = table(
      ["name", "count", "note"],
      [
        ["a", "1", ""],
        ["bcdef", "100", "x"],
      ],
      { width: Infinity, right: new Set([1]) },
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

it("wrap loses no word and exceeds the width only for a longer word", () => {
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

it("span names the two largest units", () => {
  expect([5, 45_000, 90_000, 1_500_000, 12_000_000].map(span)).toEqual([
    "5 ms",
    "45 s",
    "1 min 30 s",
    "25 min",
    "3 h 20 min",
  ])
})

// What a terminal is shown of a text that somebody else wrote.

const escape = "\u001b"

describe("a text for a terminal", () => {
  it("shows control characters as JSON spells them, and keeps line ends and tabs", () => {
    const text = `a${escape}[31mb\u009b2Jc\u0007\td\r\ne\rf\u202eg\u2028h\u007f\n`
    expect(forTerminal(text, false)).toBe(
      "a\\u001b[31mb\\u009b2Jc\\u0007\td\r\ne\\u000df\\u202eg\\u2028h\\u007f\n",
    )
  })

  it("keeps the colours of this program, and no other escape code, in a text that it painted", () => {
    const style = { width: 80, colour: true }
    const text = `${paint(style, "red", "failed")} ${escape}[5mx${escape}]0;title\u0007`
    expect(forTerminal(text, true)).toBe(`${escape}[31mfailed${escape}[0m \\u001b[5mx\\u001b]0;title\\u0007`)
  })

  it("is still JSON for JSON, whatever its strings contain", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 40 }), (text) => {
        const shown = forTerminal(JSON.stringify({ text }), false)
        expect(JSON.parse(shown)).toEqual({ text })
        expect(shown).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u)
      }),
    )
  })

  it("is cut if a line is endless, with a mark that gives its length", () => {
    const text = `short\n${"x".repeat(3_000_000)}\nlast`
    expect(forTerminal(text, false)).toBe(`short\n${cutText("x".repeat(3_000_000), 10_000)}\nlast`)
  })
})

it("a text of the service of three million characters is short in a sentence and in a cell, in a pipe too", () => {
  const reason = "REASON_".repeat(430_000)
  expect(wrap(reason, Infinity)).toBe(cutText(reason, 2_000))
  const rows = Array.from({ length: 3_000 }, () => ["c-1", reason])
  expect(table(["id", "reason"], rows, { width: Infinity }).length).toBeLessThan(4_000_000)
})
