import { describe, expect, it } from "@effect/vitest"
import * as fc from "fast-check"
import { features } from "../../src/service/Vocabulary.ts"
import { editDistance, nearestName, suggestion } from "../../src/base/Text.ts"

describe("the nearest known name", () => {
  it("is the one with the fewest edits, a swap being one", () => {
    expect(editDistance("form", "from")).toBe(1)
    expect(editDistance("kitten", "sitting")).toBe(3)
    expect(nearestName("acounts_read", features)).toBe("accounts_read")
    expect(nearestName("Max_Wat", ["min", "max_wait"])).toBe("max_wait")
  })

  it("is none when nothing is near", () => {
    expect(nearestName("zebra", features)).toBeUndefined()
    expect(suggestion("zebra", ["min", "max"])).toBe("; known names: min, max")
    expect(suggestion("zebra", features)).toBe("")
  })

  it("is not searched for a name that is too long, however long it is", () => {
    expect(nearestName("zebra", ["z".repeat(20_000_000), "zebr"])).toBe("zebr")
  }, 2_000)

  it("is found for every feature with one letter replaced, lost or doubled, or two swapped", () => {
    const edits = (name: string, at: number) => [
      `${name.slice(0, at)}#${name.slice(at + 1)}`,
      name.slice(0, at) + name.slice(at + 1),
      name.slice(0, at) + name.slice(at, at + 1) + name.slice(at),
      name.slice(0, at) + name.slice(at + 1, at + 2) + name.slice(at, at + 1) + name.slice(at + 2),
    ]
    fc.assert(
      fc.property(fc.constantFrom(...features), fc.nat(), (name, seed) => {
        for (const edited of edits(name, seed % name.length)) {
          expect(editDistance(edited, nearestName(edited, features) ?? "")).toBeLessThanOrEqual(1)
        }
      }),
    )
  })
})
