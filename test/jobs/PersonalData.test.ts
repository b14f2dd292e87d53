import { createHash } from "node:crypto"
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

  const iban = "an account number (IBAN)"
  const insured = "a Spanish social-security number"
  const phone = "a phone number"
  const colombian = (code: string) => `a Colombian identity number (${code})`
  it.each([
    ["ES9121000418450200051332", "Certain", iban],
    ["es91 2100 0418 4502 0005 1332", "Certain", iban],
    ["ES91-2100-0418-4502-0005-1332", "Certain", iban],
    ["DE89370400440532013000", "Certain", iban],
    ["GB82 WEST 1234 5698 7654 32", "Certain", iban],
    ["ES9221000418450200051332", "Resembles", iban],
    ["customer_ES9121000418450200051332", "Resembles", iban],
    ["281234567840", "Certain", insured],
    ["28/12345678/40", "Certain", insured],
    ["28 12345678 40", "Certain", insured],
    ["28-1234567840", "Certain", insured],
    ["280001234520", "Certain", insured],
    ["20/25000001/65", "Certain", insured],
    ["202500000165", "Resembles", insured],
    ["28/12345678/41", "Resembles", insured],
    ["crm-281234567840", "Resembles", insured],
    ["+34 600 123 456", "Resembles", phone],
    ["+34600123456", "Resembles", phone],
    ["0034 600123456", "Resembles", phone],
    ["600123456", "Resembles", phone],
    ["600 12 34 56", "Resembles", phone],
    ["600-123-456", "Resembles", phone],
    ["91 123 45 67", "Resembles", phone],
    ["+57 300 123 4567", "Resembles", phone],
    ["3001234567", "Resembles", phone],
    ["+44 20 7946 0958", "Resembles", phone],
    ["(+34) 912345678", "Resembles", phone],
    ["tel:912345678", "Resembles", phone],
    ["crm-+34600123456", "Resembles", phone],
    ["\uFF16\uFF10\uFF10123456", "Resembles", phone],
    ["600\u200B123456", "Resembles", phone],
    ["NIT 890.903.938-8", "Certain", colombian("NIT")],
    ["nit890903938-8", "Certain", colombian("NIT")],
    ["890.903.938-8", "Certain", colombian("NIT")],
    ["899 999 068-1", "Certain", colombian("NIT")],
    ["890903938-8", "Resembles", colombian("NIT")],
    ["8909039388", "Resembles", colombian("NIT")],
    ["nit-890903938-7", "Resembles", colombian("NIT")],
    ["CC 1020304050", "Resembles", colombian("CC")],
    ["cc-79123456", "Resembles", colombian("CC")],
    ["C.C. 79.123.456", "Resembles", colombian("CC")],
    ["1.020.304.050", "Resembles", colombian("CC")],
    ["CE 345678", "Resembles", colombian("CE")],
    ["ti:1020304050", "Resembles", colombian("TI")],
  ])("%s: %s %s [promise 12 customer ids]", (id, _tag, kind) => {
    expect(judgeCustomerId(id)).toEqual({ _tag, kind })
  })

  it.each([
    ["281234567841"],
    ["991234567840"],
    ["000000000123"],
    ["123456"],
    ["79123456"],
    ["1020304050"],
    ["912345678"],
    ["890903938-7"],
    ["customer-2024-000123"],
    ["cc-000123"],
    ["ti-0001"],
    ["ES91"],
    ["2024.11.21"],
  ])("%s may be an internal id", (id) => {
    expect(judgeCustomerId(id)).toEqual({ _tag: "Clean" })
  })

  it("is refused with exactly one of the 23 letters after eight digits, and a warning with the others", () => {
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

  let drawn = 0
  const hex = (bytes: number) =>
    createHash("sha256")
      .update(String((drawn += 1)))
      .digest("hex")
      .slice(0, bytes * 2)
  const digits = (length: number) => String(BigInt(`0x${hex(16)}`)).slice(-length)
  const uuid = () => hex(16).replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-")

  // Warnings are said once per file; what is refused stops the job.
  it.each<
    readonly [string, (index: number) => string, { readonly Certain: number; readonly Resembles: number }]
  >([
    ["c-0001", (index) => `c-${String(index).padStart(4, "0")}`, { Certain: 0, Resembles: 0 }],
    [
      "customer-2024-000123",
      (index) => `customer-2024-${String(index).padStart(6, "0")}`,
      { Certain: 0, Resembles: 0 },
    ],
    ["a UUID", uuid, { Certain: 0, Resembles: 4 }],
    ["24 hexadecimal digits", () => hex(12), { Certain: 0, Resembles: 4 }],
    ["32 hexadecimal digits", () => hex(16), { Certain: 0, Resembles: 0 }],
    ["6 digits", () => digits(6), { Certain: 0, Resembles: 0 }],
    ["8 digits", () => digits(8), { Certain: 0, Resembles: 0 }],
    ["9 digits", () => digits(9), { Certain: 0, Resembles: 3_000 }],
    ["10 digits", () => digits(10), { Certain: 0, Resembles: 1_800 }],
    ["12 digits", () => digits(12), { Certain: 140, Resembles: 40 }],
  ])("of 20,000 ids like %s no more are suspected than measured", (_, make, most) => {
    const found = { Certain: 0, Resembles: 0, Clean: 0 }
    for (let index = 0; index < 20_000; index++) found[verdict(make(index))] += 1
    expect(found.Certain).toBeLessThanOrEqual(most.Certain)
    expect(found.Resembles).toBeLessThanOrEqual(most.Resembles)
  })
})
