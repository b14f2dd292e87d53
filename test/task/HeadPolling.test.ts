/** When a look may be a HEAD, and what makes it be believed or not. */
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import { afterHead, afterNothing, afterRead, beforeHead, mayHead } from "../../src/task/LookTurns.ts"
import type { HeadTrial } from "../../src/task/LookTurns.ts"

const going = { ongoing: true, settled: true, headsInARow: 0 }

describe("a HEAD", () => {
  it("needs an earlier read that showed the execution running, and a read after every third", () => {
    expect(mayHead("untried", going)).toBe(true)
    expect(mayHead("proven", { ...going, headsInARow: 2 })).toBe(true)
    expect(mayHead("proven", { ...going, headsInARow: 3 })).toBe(false)
    expect(mayHead("proven", { ...going, ongoing: false })).toBe(false)
    expect(mayHead("off", going)).toBe(false)
    // While the first one is under way nobody else sends one.
    expect([beforeHead("untried"), mayHead("trying", going)]).toEqual(["trying", false])
    // A run that may end soon would cost a HEAD and a read.
    expect(mayHead("proven", { ...going, settled: false })).toBe(false)
  })

  it("is checked by a read until one has agreed, and always if it says that something changed", () => {
    expect(afterHead("trying", "working")).toEqual({ trial: "trying", next: "read" })
    expect(afterHead("proven", "working")).toEqual({ trial: "proven", next: "rest" })
    expect(afterHead("proven", "changed")).toEqual({ trial: "proven", next: "read" })
  })

  it("that is not answered, or that a read contradicts, is the last one", () => {
    for (const trial of ["trying", "proven"] as const) {
      expect(afterHead(trial, "unanswered")).toEqual({ trial: "off", next: "read" })
      expect(afterRead(trial, "working", "changed")).toBe("off")
      expect(afterRead(trial, "changed", "working")).toBe("off")
    }
    expect(afterRead("trying", "working", "working")).toBe("proven")
    expect(afterRead("proven", "changed", "changed")).toBe("proven")
    expect([afterRead("trying", "changed", "changed"), afterNothing("trying")]).toEqual([
      "untried",
      "untried",
    ])
  })

  it("never replaces a read unless a read has agreed before, and never again once it is off", () => {
    const step = fc.tuple(
      fc.constantFrom("working", "changed", "unanswered" as const),
      fc.constantFrom("working", "changed" as const),
    )
    fc.assert(
      fc.property(fc.array(step, { maxLength: 50 }), (steps) => {
        let trial: HeadTrial = "untried"
        let agreed = false
        for (const [head, read] of steps) {
          const before: HeadTrial = trial
          if (!mayHead(before, going)) {
            expect(before).toBe("off")
            continue
          }
          const { trial: seen, next } = afterHead(beforeHead(before), head)
          if (next === "rest") expect([agreed, head]).toEqual([true, "working"])
          trial = next === "rest" || head === "unanswered" ? seen : afterRead(seen, head, read)
          agreed ||= trial === "proven"
        }
      }),
    )
  })
})
