import { describe, expect, it } from "@effect/vitest"
import * as fc from "fast-check"
import { judgeCustomerId } from "../../src/jobs/PersonalData.ts"

const verdict = (id: string) => judgeCustomerId(id)._tag
const letters = "TRWAGMYFPDXBNJZSQVHLCKE"

describe("a customer_id", () => {
  it.each([
    ["12345678Z", "Certain"],
    ["12345678-z", "Certain"],
    ["12.345.678 Z", "Certain"],
    ["X1234567L", "Certain"],
    ["Y1234567X", "Certain"],
    ["Z1234567R", "Certain"],
    ["K1234567L", "Certain"],
    ["A58818501", "Certain"],
    ["a58818501", "Certain"],
    ["B-58818501", "Certain"],
    ["Q2826000H", "Certain"],
    ["G28029643", "Certain"],
    ["ana.lopez@mail.example", "Certain"],
    ["12345678A", "Resembles"],
    ["X1234567A", "Resembles"],
    ["A58818502", "Resembles"],
    ["customer-12345678Z", "Resembles"],
    ["ana@home", "Resembles"],
    ["c-0001", "Clean"],
    ["c-00000001", "Clean"],
    ["c-58818501", "Resembles"],
    ["c-58818502", "Clean"],
    ["12345678", "Clean"],
    ["65e0", "Clean"],
    ["65f0c0ffee65f0c0ffee65f0", "Clean"],
    ["0b8f8e2a-7f0e-4bb0-9d7a-8f7c1d2e3f40", "Clean"],
  ])("%s is %s", (id, tag) => {
    expect(verdict(id)).toBe(tag)
  })

  it("is refused with exactly one of the 23 letters after eight digits, suspected with the others", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 99_999_999 }), (number) => {
        const digits = String(number).padStart(8, "0")
        const certain = [...letters].filter((letter) => verdict(digits + letter) === "Certain")
        expect(certain).toEqual([letters[number % 23]])
        expect([...letters].every((letter) => verdict(digits + letter) !== "Clean")).toBe(true)
      }),
      { numRuns: 50 },
    )
  })
})
