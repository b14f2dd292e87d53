/**
 * Bodies that nobody would send on purpose. Whatever arrives: nothing throws, every record is somewhere
 * exactly once, and every JSON text that is kept can be read by the database. NIGHTJAR_FUZZ_RUNS makes the
 * campaign longer.
 */
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import { Normaliser } from "../../src/records/Normalise.ts"
import { addBody, degree, families, flushOf, profile, readBack } from "./families.ts"
import { damaged, hostileBody, lossOf, rowsIn } from "./HostileBody.ts"

const numRuns = Number(process.env["NIGHTJAR_FUZZ_RUNS"] ?? 100)

/** Adds one body and checks that rows and records balance. */
const balance = (normaliser: Normaliser, bytes: Uint8Array): void => {
  expect(lossOf(normaliser, bytes)).toBeUndefined()
}

/** Every kept JSON text is one for the database too. */
const expectReadable = async (normaliser: Normaliser): Promise<void> => {
  for (const { spec, table, rows } of flushOf(normaliser)) {
    const json = spec.columns.filter(({ type }) => type === "JSON").map(({ name }) => name)
    if (json.length === 0) continue
    const checks = json.map(
      (name) => `count(*) FILTER (${name} IS NULL OR ${name}::JSON IS NOT NULL) AS ${name}`,
    )
    const read = await readBack(spec, table, `SELECT ${checks.join(", ")} FROM t`)
    expect([spec.name, read.rows]).toEqual([
      spec.name,
      [Object.fromEntries(json.map((name) => [name, String(rows)]))],
    ])
  }
}

describe("hostile bodies", () => {
  it("lose no record, whatever is in them [promise 14] [promise 11]", async () => {
    const normaliser = new Normaliser(families)
    fc.assert(
      fc.property(hostileBody, (text) => balance(normaliser, Buffer.from(text))),
      { numRuns },
    )
    await expectReadable(normaliser)
  })

  it("affect only their own record [promise 11]", () => {
    fc.assert(
      fc.property(damaged, (text) => {
        const normaliser = new Normaliser(families)
        addBody(normaliser, Buffer.from(`{"data":[${JSON.stringify(degree)},${text}]}`))
        expect(rowsIn(normaliser, "higher_education")).toBeGreaterThanOrEqual(1)
      }),
      { numRuns },
    )
  })

  it("may be cut at every byte", () => {
    const whole = Buffer.from(JSON.stringify({ data: [profile, degree] }))
    const normaliser = new Normaliser(families)
    for (let length = 0; length < whole.length; length++) balance(normaliser, whole.subarray(0, length))
    expect(rowsIn(normaliser, "rejected_records")).toBe(whole.length)
    balance(normaliser, whole)
    expect(rowsIn(normaliser, "customer_profiles")).toBe(1)
  })

  it("may have any byte replaced", async () => {
    const whole = Buffer.from(JSON.stringify({ data: [profile, degree] }))
    const normaliser = new Normaliser(families)
    fc.assert(
      fc.property(fc.nat({ max: whole.length - 1 }), fc.nat({ max: 255 }), (at, byte) => {
        const copy = Buffer.from(whole)
        copy[at] = byte
        balance(normaliser, copy)
      }),
      { numRuns },
    )
    await expectReadable(normaliser)
  })

  it("may be nested 20,000 levels deep, around, inside and beside records", async () => {
    const depth = 20_000
    const nest = (inner: string, open: string, close: string) =>
      open.repeat(depth) + inner + close.repeat(depth)
    const good = JSON.stringify(degree)
    const normaliser = new Normaliser(families)
    const bodies = [
      nest(good, "[", "]"),
      nest(good, '{"a":', "}"),
      nest("9007199254740993", '{"a":[', "]}"),
      good.replace("{", `{"deep":${nest("1", "[", "]")},`),
      good.replace("{", `{"deep":${nest(good, '{"x":', "}")},`),
    ]
    for (const body of bodies) balance(normaliser, Buffer.from(`{"data":[${body},${good}]}`))
    expect(rowsIn(normaliser, "higher_education")).toBe(7)
    expect(rowsIn(normaliser, "rejected_records")).toBe(3)
    await expectReadable(normaliser)
  })
})
