/**
 * Bodies that nobody would send on purpose. Whatever arrives: nothing throws, every record is somewhere
 * exactly once, and every JSON text that is kept can be read by the database. NIGHTJAR_FUZZ_RUNS makes the
 * campaign longer.
 */
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import { findRecords } from "../../src/records/FindRecords.ts"
import { flowResultsSource, recordsIn } from "../../src/contract/ResultsSource.ts"
import { makeNormaliser } from "../../src/records/Normalise.ts"
import type { Normaliser } from "../../src/records/Normalise.ts"
import { parseBody } from "../../src/records/ParseBody.ts"
import { degree, families, lineage, profile, readBack } from "./families.ts"

const numRuns = Number(process.env["NIGHTJAR_FUZZ_RUNS"] ?? 300)

const rowsIn = (normaliser: Normaliser, table: string): number => normaliser.tables().get(table)!.rows

/** Adds one body and checks that rows and records balance. */
const balance = (normaliser: Normaliser, bytes: Uint8Array): void => {
  const before = new Map([...normaliser.tables()].map(([name, { rows }]) => [name, rows]))
  const counts = normaliser.addBody(lineage, flowResultsSource, bytes)
  const added = (table: string) => rowsIn(normaliser, table) - before.get(table)!
  const parsed = parseBody(bytes)
  const found =
    parsed._tag === "ReadableBody"
      ? findRecords(recordsIn(flowResultsSource, parsed.value)).records.length
      : 0
  expect(counts.records).toBe(found)
  expect(counts.inTables + counts.other + counts.rejected).toBe(found)
  expect(added("other_records")).toBe(counts.other)
  expect(added("rejected_records")).toBe(counts.rejected + counts.strays)
  expect(families.reduce((sum, { table }) => sum + added(table), 0)).toBe(counts.inTables)
}

/** Every kept JSON text is one for the database too. */
const expectReadable = async (normaliser: Normaliser): Promise<void> => {
  for (const { spec, table, rows } of normaliser.flush()) {
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

const hostileText = fc.oneof(
  fc.string(),
  fc.constantFrom("\ud83d", "\ude00x", "\u0000", "=cmd()", "../../etc", "'; DROP TABLE x; --", "__proto__"),
)
const hostileKey = fc.oneof(
  hostileText,
  fc.constantFrom("__proto__", "constructor", "toString", "product", "sub_family", "fetch_date", "emails"),
)
/** JSON as text, so that duplicate keys and numbers of any length can stand in it. */
const hostileJson = fc.letrec<{ any: string; list: string; map: string; leaf: string }>((tie) => ({
  leaf: fc.oneof(
    hostileText.map((text) => JSON.stringify(text)),
    fc.constantFrom(
      "null",
      "true",
      "1e999",
      "-0",
      "9007199254740993",
      `${"9".repeat(400)}`,
      "1E-400",
      "0.10",
    ),
    fc.constantFrom(JSON.stringify(profile.sub_family), JSON.stringify(degree.sub_family)),
  ),
  list: fc.array(tie("any"), { maxLength: 4 }).map((items) => `[${items.join(",")}]`),
  map: fc
    .array(fc.tuple(hostileKey, tie("any")), { maxLength: 6 })
    .map((entries) => `{${entries.map(([key, value]) => `${JSON.stringify(key)}:${value}`).join(",")}}`),
  any: fc.oneof({ maxDepth: 5, withCrossShrink: true }, tie("leaf"), tie("map"), tie("list")),
})).any

/** A good record in which one value, anywhere, was replaced. */
const damaged = fc
  .tuple(fc.constantFrom(profile, degree), fc.nat(), hostileJson)
  .map(([record, nth, value]) => {
    const keys = Object.keys(record)
    const key = keys[nth % keys.length]!
    const field = `${JSON.stringify(key)}:${value}`
    // First and last: of two equal keys the last wins.
    return `{${field},${JSON.stringify(record).slice(1, -1)},${field}}`
  })

describe("hostile bodies", () => {
  it("lose no record, whatever stands in them [promise 14] [promise 11]", async () => {
    const normaliser = makeNormaliser(families)
    const body = fc
      .array(
        fc.oneof(
          hostileJson,
          damaged,
          fc.constantFrom(profile, degree).map((each) => JSON.stringify(each)),
        ),
      )
      .map((items) => `{"data":[${items.join(",")}]}`)
    fc.assert(
      fc.property(body, (text) => balance(normaliser, Buffer.from(text))),
      { numRuns },
    )
    await expectReadable(normaliser)
  })

  it("cost their own record at most [promise 11]", () => {
    fc.assert(
      fc.property(damaged, (text) => {
        const normaliser = makeNormaliser(families)
        normaliser.addBody(
          lineage,
          flowResultsSource,
          Buffer.from(`{"data":[${JSON.stringify(degree)},${text}]}`),
        )
        expect(rowsIn(normaliser, "higher_education")).toBeGreaterThanOrEqual(1)
      }),
      { numRuns },
    )
  })

  it("may be cut at every byte", () => {
    const whole = Buffer.from(JSON.stringify({ data: [profile, degree] }))
    const normaliser = makeNormaliser(families)
    for (let length = 0; length < whole.length; length++) balance(normaliser, whole.subarray(0, length))
    expect(rowsIn(normaliser, "rejected_records")).toBe(whole.length)
    balance(normaliser, whole)
    expect(rowsIn(normaliser, "customer_profiles")).toBe(1)
  })

  it("may have any byte replaced", async () => {
    const whole = Buffer.from(JSON.stringify({ data: [profile, degree] }))
    const normaliser = makeNormaliser(families)
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

  it("may be nested 100,000 levels deep, around, inside and beside records", async () => {
    const depth = 100_000
    const nest = (inner: string, open: string, close: string) =>
      open.repeat(depth) + inner + close.repeat(depth)
    const good = JSON.stringify(degree)
    const normaliser = makeNormaliser(families)
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
