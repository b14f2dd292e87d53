/** What is cut says so and how long it was, within its bound, and never holds half a character. */
import { describe, expect, it } from "vitest"
import { cutText } from "../../src/service/BodyBounds.ts"

describe("a text that is too long", () => {
  it("is cut with a mark that gives its length, together as long as the limit", () => {
    expect(cutText("x".repeat(40), 40)).toBe("x".repeat(40))
    expect(cutText("x".repeat(41), 40)).toBe(`${"x".repeat(18)}… [cut: 41 characters]`)
    expect(cutText("x".repeat(41), 5)).toBe("… [cut: 41 characters]")
  })

  it("never ends in half of a character that takes two units", () => {
    expect(cutText(`${"x".repeat(17)}😀${"x".repeat(31)}`, 40)).toBe(
      `${"x".repeat(17)}\ufffd… [cut: 50 characters]`,
    )
  })
})
