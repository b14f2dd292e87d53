/**
 * Bodies that nobody would send on purpose, made with their structure in mind: broken records beside good ones,
 * keys twice, numbers that fit no double, half characters, bombs of depth and of count; and what is lost of one.
 */
import * as fc from "fast-check"
import { flowResultsSource, recordsIn } from "../../src/service/FlowResults.ts"
import { findRecords, parseBody } from "../../src/records/FindRecords.ts"
import type { Normaliser } from "../../src/records/Normalise.ts"
import { addBody, degree, families, profile, rowsHeld } from "./families.ts"

export const rowsIn = (normaliser: Normaliser, table: string): number =>
  rowsHeld(normaliser.tables().get(table)!)

/** Adds one body; what does not balance between its records and the rows that it became. */
export const lossOf = (normaliser: Normaliser, bytes: Uint8Array): string | undefined => {
  const before = new Map([...normaliser.tables()].map(([name, builder]) => [name, rowsHeld(builder)]))
  const counts = addBody(normaliser, bytes)
  const added = (table: string) => rowsIn(normaliser, table) - before.get(table)!
  const parsed = parseBody(bytes)
  const found =
    parsed._tag === "ReadableBody"
      ? findRecords(recordsIn(flowResultsSource, parsed.value)).records.length
      : 0
  const sums: ReadonlyArray<readonly [string, number, number]> = [
    ["records", counts.records, found],
    ["places", counts.inTables + counts.other + counts.rejected, found],
    ["other_records", added("other_records"), counts.other],
    ["rejected_records", added("rejected_records"), counts.rejected + counts.strays],
    [
      "refusals",
      counts.refusedFor.reduce((sum, { count }) => sum + count, 0),
      counts.rejected + counts.strays,
    ],
    ["tables", families.reduce((sum, { table }) => sum + added(table), 0), counts.inTables],
  ]
  const wrong = sums.filter(([, is, expected]) => is !== expected)
  return wrong.length === 0 ? undefined : wrong.map(([what, is, to]) => `${what}: ${is} of ${to}`).join()
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
export const damaged = fc
  .tuple(fc.constantFrom(profile, degree), fc.nat(), hostileJson)
  .map(([record, nth, value]) => {
    const keys = Object.keys(record)
    const key = keys[nth % keys.length]!
    const others = JSON.stringify({ ...record, [key]: undefined }).slice(1, -1)
    return `{${others},${JSON.stringify(key)}:${value}}`
  })

/** What is small on the wire and large in memory, or deep, or long; none of it reaches a bound by itself. */
const bomb = fc
  .tuple(
    fc.constantFrom("{},", "[],", "0,", '{"k":0},', '"",', '{"product":0},'),
    fc.nat({ max: 300 }),
    fc.nat({ max: 300 }),
  )
  .map(([unit, count, depth]) => `${"[".repeat(depth)}[${unit.repeat(count)}0]${"]".repeat(depth)}`)

export const hostileBody = fc
  .array(
    fc.oneof(
      hostileJson,
      damaged,
      { arbitrary: bomb, weight: 1 },
      fc.constantFrom(profile, degree).map((each) => JSON.stringify(each)),
    ),
  )
  .map((items) => `{"data":[${items.join(",")}]}`)
