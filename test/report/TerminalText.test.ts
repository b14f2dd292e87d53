/** What a terminal is shown of a text that somebody else wrote. */
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { cutText } from "../../src/service/BodyBounds.ts"
import { paint } from "../../src/report/RenderSummary.ts"
import { forTerminal, table, wrap } from "../../src/report/TextTable.ts"

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

describe("a text of the service of three million characters", () => {
  const reason = "REASON_".repeat(430_000)

  it("is short in a sentence and in a cell, in a pipe too", () => {
    expect(wrap(reason, Infinity)).toBe(cutText(reason, 2_000))
    const rows = Array.from({ length: 3_000 }, () => ["c-1", reason])
    expect(table(["id", "reason"], rows, { width: Infinity }).length).toBeLessThan(4_000_000)
  })
})
