import { createHash } from "node:crypto"
import { describe, expect, it } from "@effect/vitest"
import * as fc from "fast-check"
import { judgeCustomerId } from "../../src/jobs/PersonalData.ts"

const verdict = (id: string) => judgeCustomerId(id)._tag
const letters = "TRWAGMYFPDXBNJZSQVHLCKE"

describe("a customer_id", () => {
  const [iban, insured] = ["an account number (IBAN)", "a Spanish social-security number"]
  const phone = "a phone number"
  const colombian = (code: string) => `a Colombian identity number (${code})`
  it.each([
    // Verdict, ids, kind; without a kind only the verdict counts.
    ["Certain", "12345678Z|12345678-z|12.345.678 Z|X1234567L|Y1234567X|Z1234567R|K1234567L"],
    ["Certain", "A58818501|a58818501|B-58818501|Q2826000H|G28029643|ana.lopez@mail.example"],
    ["Resembles", "12345678A|X1234567A|A58818502|customer-12345678Z|ana@home|c-58818501"],
    ["Certain", "ES9121000418450200051332|es91 2100 0418 4502 0005 1332|DE89370400440532013000", iban],
    ["Certain", "ES91-2100-0418-4502-0005-1332|GB82 WEST 1234 5698 7654 32", iban],
    ["Resembles", "ES9221000418450200051332|customer_ES9121000418450200051332", iban],
    [
      "Certain",
      "281234567840|28/12345678/40|28 12345678 40|28-1234567840|280001234520|20/25000001/65",
      insured,
    ],
    ["Resembles", "202500000165|28/12345678/41|crm-281234567840", insured],
    ["Resembles", "+34 600 123 456|+34600123456|0034 600123456|600123456|600 12 34 56|600-123-456", phone],
    ["Resembles", "91 123 45 67|+57 300 123 4567|3001234567|+44 20 7946 0958|(+34) 912345678", phone],
    ["Resembles", "tel:912345678|crm-+34600123456|\uFF16\uFF10\uFF10123456|600\u200B123456", phone],
    ["Certain", "NIT 890.903.938-8|nit890903938-8|890.903.938-8|899 999 068-1", colombian("NIT")],
    ["Resembles", "890903938-8|8909039388|nit-890903938-7", colombian("NIT")],
    ["Resembles", "CC 1020304050|cc-79123456|C.C. 79.123.456|1.020.304.050", colombian("CC")],
    ["Resembles", "CE 345678", colombian("CE")],
    ["Resembles", "ti:1020304050", colombian("TI")],
    ["Clean", "c-0001|c-00000001|c-58818502|12345678|65e0|65f0c0ffee65f0c0ffee65f0"],
    ["Clean", "0b8f8e2a-7f0e-4bb0-9d7a-8f7c1d2e3f40|281234567841|991234567840|000000000123"],
    ["Clean", "123456|79123456|1020304050|912345678|890903938-7|customer-2024-000123|cc-000123"],
    ["Clean", "ti-0001|ES91|2024.11.21"],
  ] as const)("is %s: %s [promise 12 customer ids]", (_tag, ids, kind?: string) => {
    const judged = ids.split("|").map((id) => [id, kind === undefined ? verdict(id) : judgeCustomerId(id)])
    expect(judged).toEqual(ids.split("|").map((id) => [id, kind === undefined ? _tag : { _tag, kind }]))
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
  const counted = (prefix: string, length: number) => (index: number) =>
    `${prefix}-${String(index).padStart(length, "0")}`
  it.each([
    ["c-0001", counted("c", 4), 0, 0],
    ["customer-2024-000123", counted("customer-2024", 6), 0, 0],
    ["a UUID", uuid, 0, 4],
    ["24 hexadecimal digits", () => hex(12), 0, 4],
    ["32 hexadecimal digits", () => hex(16), 0, 0],
    ["6 digits", () => digits(6), 0, 0],
    ["8 digits", () => digits(8), 0, 0],
    ["9 digits", () => digits(9), 0, 3_000],
    ["10 digits", () => digits(10), 0, 1_800],
    ["12 digits", () => digits(12), 140, 40],
  ] as const)("of 20,000 ids like %s no more are suspected than measured", (_, make, certain, resembling) => {
    const found = { Certain: 0, Resembles: 0, Clean: 0 }
    for (let index = 0; index < 20_000; index++) found[verdict(make(index))] += 1
    expect(found.Certain).toBeLessThanOrEqual(certain)
    expect(found.Resembles).toBeLessThanOrEqual(resembling)
  })
})
