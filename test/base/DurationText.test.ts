/** Durations as files have them. */
import { Duration, Option } from "effect"
import { describe, expect, it } from "vitest"
import { isDurationWithin, readDuration } from "../../src/base/Text.ts"

describe("a duration in a file", () => {
  it("is a number, a space and a unit, in singular or plural", () => {
    const texts = ["250 millis", "1.5 seconds", "2 minutes", "1 hour", " 3.5  hours ", "7 days"]
    expect(texts.map((text) => Option.map(readDuration(text), Duration.toMillis))).toEqual(
      [250, 1_500, 120_000, 3_600_000, 12_600_000, 604_800_000].map(Option.some),
    )
  })

  it("is nothing else that the underlying parser accepts", () => {
    const texts = ["soon", "", "Infinity", "-5 seconds", "5", "5seconds", "3 weeks", "9 nanos", "2 seconds 3"]
    expect(texts.map(readDuration)).toEqual(texts.map(() => Option.none()))
  })

  it("may be as short and as long as its limits, and not shorter or longer", () => {
    const isFitting = isDurationWithin({ minimum: "2 seconds", maximum: "1 minute" })
    const texts = ["1999 millis", "2 seconds", "60 seconds", "1 minute", "60.001 seconds", "soon"]
    expect(texts.map(isFitting)).toEqual([false, true, true, true, false, false])
  })
})
