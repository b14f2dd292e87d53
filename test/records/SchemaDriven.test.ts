/**
 * Properties over records generated from the schema files themselves: a further family is tried as soon as
 * its file is there. NIGHTJAR_FUZZ_RUNS makes the campaign longer.
 */
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import type { ColumnType } from "../../src/records/ColumnData.ts"
import { Normaliser } from "../../src/records/Normalise.ts"
import type { RecordChild, RecordColumn, RecordFamily } from "../../src/records/RecordSchema.ts"
import { addBody, families, flushOf, flushedRows, lineage, readBack } from "./families.ts"

const numRuns = Number(process.env["NIGHTJAR_FUZZ_RUNS"] ?? 100)

/** A value as JSON, and as the database shows it. */
interface Sample {
  readonly json: unknown
  readonly shown: unknown
}

const plain = (arbitrary: fc.Arbitrary<unknown>): fc.Arbitrary<Sample> =>
  arbitrary.map((json) => ({ json, shown: json }))

const day = fc.integer({ min: -200_000, max: 200_000 }).map((n) => new Date(n * 86_400_000).toISOString())

const sampleOf = (type: ColumnType): fc.Arbitrary<Sample> => {
  switch (type) {
    case "VARCHAR":
      return plain(fc.string({ unit: "grapheme" }))
    case "BOOLEAN":
      return plain(fc.boolean())
    case "INTEGER":
      return plain(fc.integer())
    case "DATE":
      return plain(day.map((text) => text.slice(0, 10)))
    case "TIMESTAMPTZ":
      return day.map((text) => ({ json: text, shown: `${text.slice(0, 10)} 00:00:00+00` }))
    default: {
      const scale = Number(/,(\d+)\)$/.exec(type)?.[1])
      if (!Number.isInteger(scale)) throw new Error(`no samples of ${type} yet`)
      return fc
        .tuple(fc.integer({ min: -9_999_999, max: 9_999_999 }), fc.nat({ max: 999_999 }))
        .map(([whole, fraction]) => {
          const text = `${whole}.${String(fraction).padStart(6, "0")}`
          return { json: text, shown: text.padEnd(text.length + scale - 6, "0") }
        })
    }
  }
}

/** A field that is not there, that is null, or that holds a value. */
const fieldOf = ({ type, required }: RecordColumn): fc.Arbitrary<Sample> =>
  required
    ? sampleOf(type)
    : fc.oneof(
        { weight: 4, arbitrary: sampleOf(type) },
        {
          weight: 1,
          arbitrary: fc.constantFrom({ json: null, shown: null }, { json: undefined, shown: null }),
        },
      )

interface Fields {
  readonly json: Record<string, unknown>
  readonly shown: Record<string, unknown>
}

const fieldsOf = (columns: ReadonlyArray<RecordColumn>): fc.Arbitrary<Fields> =>
  fc
    .tuple(
      fc.tuple(...columns.map(fieldOf)),
      fc.option(fc.record({ zz_unknown: fc.jsonValue({ maxDepth: 2 }) }), { nil: {} }),
    )
    .map(([samples, extra]) => {
      const json: Record<string, unknown> = {}
      const shown: Record<string, unknown> = {}
      columns.forEach(({ name }, i) => {
        if (samples[i]!.json !== undefined) json[name] = samples[i]!.json
        shown[name] = samples[i]!.shown
      })
      Object.assign(json, extra)
      shown["misfits"] = null
      shown["extra"] = Object.keys(extra).length === 0 ? null : JSON.stringify(extra)
      return { json, shown }
    })

interface Generated {
  readonly family: RecordFamily
  readonly record: Record<string, unknown>
  readonly row: Record<string, unknown>
  readonly children: Record<string, ReadonlyArray<Record<string, unknown>>>
}

const childOf = (
  child: RecordChild,
): fc.Arbitrary<{ json: unknown; rows: ReadonlyArray<Record<string, unknown>> }> => {
  const { name, type } = child.columns[0]!
  const item: fc.Arbitrary<Fields | { json: unknown; shown: Record<string, unknown> }> =
    child.items === "objects"
      ? fieldsOf(child.columns)
      : sampleOf(type).map(({ json, shown }) => ({
          json,
          shown: { [name]: shown, misfits: null, extra: null },
        }))
  return fc.array(item, { maxLength: 3 }).map((items) => ({
    json: items.map(({ json }) => json),
    rows: items.map(({ shown }, position) => ({ position, ...shown })),
  }))
}

const recordOf = (family: RecordFamily): fc.Arbitrary<Generated> =>
  fc
    .tuple(
      fc.constantFrom(...family.subFamilies),
      fieldsOf(family.columns),
      fc.tuple(...family.children.map(childOf)),
    )
    .map(([sub_family, { json, shown }, lists]) => {
      const names = { product: family.product, sub_family }
      const record: Record<string, unknown> = { ...names, ...json }
      const children: Record<string, ReadonlyArray<Record<string, unknown>>> = {}
      family.children.forEach(({ field, table }, i) => {
        record[field] = lists[i]!.json
        children[table] = lists[i]!.rows
      })
      return { family, record, row: { ...names, ...shown }, children }
    })

const anyRecord = fc.oneof(...families.map(recordOf))

const withoutLineage = (rows: ReadonlyArray<Record<string, unknown>>) =>
  rows.map((row) => Object.fromEntries(Object.entries(row).slice(9)))

// No column of any type takes an object with a list in it, except JSON.
const wrong = { wrong: [1] }

interface Corruption {
  readonly path: string
  readonly put: (copy: Record<string, unknown>) => void
  /** Where it stands by default, if the record is not rejected for it. */
  readonly misfit?: {
    readonly table: string
    readonly column: string
    readonly position?: number
    readonly value: unknown
  }
}

const corruptionsOf = ({ family, record }: Generated): ReadonlyArray<Corruption> => {
  const { table } = family
  const ofColumns = family.columns.flatMap(({ name, required, identifies }): ReadonlyArray<Corruption> => {
    const standing = (value: unknown) => (identifies ? {} : { misfit: { table, column: name, value } })
    const replaced = { path: name, put: (copy: Record<string, unknown>) => (copy[name] = wrong) }
    const missing = { path: name, put: (copy: Record<string, unknown>) => delete copy[name] }
    const emptied = { path: name, put: (copy: Record<string, unknown>) => (copy[name] = null) }
    return [
      { ...replaced, ...standing(wrong) },
      ...(required
        ? [
            { ...missing, ...standing(undefined) },
            { ...emptied, ...standing(null) },
          ]
        : []),
    ]
  })
  const ofChildren = family.children.flatMap((child): ReadonlyArray<Corruption> => {
    const { field, columns, items } = child
    const list = record[field] as ReadonlyArray<unknown>
    const at = (copy: Record<string, unknown>) => copy[field] as Array<Record<string, unknown>>
    const ofItems = list.flatMap((_, position): ReadonlyArray<Corruption> => {
      const path = `${field}[${position}]`
      const standing = (column: string) => ({ table: child.table, column, position, value: wrong })
      return items === "values"
        ? [{ path, put: (copy) => (at(copy)[position] = wrong), misfit: standing(columns[0]!.name) }]
        : [
            {
              path,
              put: (copy) => ((at(copy) as Array<unknown>)[position] = "text"),
              misfit: { table: child.table, column: "item", position, value: "text" },
            },
            ...columns.map(({ name }) => ({
              path: `${path}.${name}`,
              put: (copy: Record<string, unknown>) => (at(copy)[position]![name] = wrong),
              misfit: standing(name),
            })),
          ]
    })
    const noList = { path: field, put: (copy: Record<string, unknown>) => (copy[field] = wrong) }
    const missing = { path: field, put: (copy: Record<string, unknown>) => delete copy[field] }
    const misfit = { table, column: field, value: undefined }
    return [noList, ...(child.required ? [{ ...missing, misfit }] : []), ...ofItems]
  })
  return [...ofColumns, ...ofChildren]
}

const corrupted = anyRecord.chain((generated) =>
  fc.record({ generated: fc.constant(generated), corruption: fc.constantFrom(...corruptionsOf(generated)) }),
)

const expectRejected = (
  normaliser: Normaliser,
  record: Record<string, unknown>,
  { path }: Corruption,
  neighbour: Record<string, unknown>,
  { table }: RecordFamily,
): void => {
  const counts = normaliser.add(lineage, { list: [record, neighbour] })
  expect(counts).toMatchObject({ records: 2, inTables: 1, rejected: 1, other: 0, strays: 0 })
  expect([counts.misfits, counts.refusedFor]).toEqual([[], [{ table, count: 1 }]])
  const rejected = flushedRows(normaliser)["rejected_records"]!
  expect(rejected.map((row) => ({ path: row["path"], record: row["record"] }))).toEqual([
    { path: `data.list[0].${path}`, record: JSON.stringify(record) },
  ])
}

describe("records generated from the schema files", () => {
  it("come back from the database cell by cell", async () => {
    const samples = fc.sample(anyRecord, Math.max(200, numRuns))
    const normaliser = new Normaliser(families)
    const body = JSON.stringify({ data: samples.map(({ record }) => record) })
    const counts = addBody(normaliser, Buffer.from(body))
    expect(counts).toMatchObject({ records: samples.length, inTables: samples.length, strays: 0 })
    const expected: Record<string, Array<Record<string, unknown>>> = {}
    for (const { family, row, children } of samples) {
      ;(expected[family.table] ??= []).push(row)
      for (const [table, rows] of Object.entries(children)) (expected[table] ??= []).push(...rows)
    }
    for (const { spec, table } of flushOf(normaliser)) {
      const { rows } = await readBack(spec, table)
      expect(withoutLineage(rows as ReadonlyArray<Record<string, unknown>>)).toEqual(expected[spec.name])
      delete expected[spec.name]
    }
    expect(Object.values(expected).flat()).toEqual([])
  })

  it("are rejected with the right path when one field is corrupted, if their schema says quarantine", () => {
    const strict = families.map((family) => ({ ...family, mode: "quarantine" as const }))
    fc.assert(
      fc.property(corrupted, anyRecord, ({ generated, corruption }, neighbour) => {
        const copy = structuredClone(generated.record)
        corruption.put(copy)
        expectRejected(new Normaliser(strict), copy, corruption, neighbour.record, generated.family)
      }),
      { numRuns },
    )
  })

  it("keep their row and the corrupted value if time and key can be read [decision 10 one misfit value]", () => {
    fc.assert(
      fc.property(corrupted, anyRecord, ({ generated, corruption }, neighbour) => {
        const copy = structuredClone(generated.record)
        corruption.put(copy)
        const normaliser = new Normaliser(families)
        if (corruption.misfit === undefined)
          return expectRejected(normaliser, copy, corruption, neighbour.record, generated.family)
        const { table, column, position, value } = corruption.misfit
        const counts = normaliser.add(lineage, { list: [copy, neighbour.record] })
        expect(counts).toMatchObject({ records: 2, inTables: 2, rejected: 0, other: 0, strays: 0 })
        expect([counts.misfits, counts.refusedFor]).toEqual([[{ table, column, count: 1 }], []])
        const rows = flushedRows(normaliser)[table]!
        const row = rows.find((each) => position === undefined || each["position"] === position)!
        const extra = row["extra"] === null ? {} : JSON.parse(String(row["extra"]))
        expect([
          row[column] ?? null,
          extra[column],
          [...(row["misfits"] as Iterable<string>)].length,
        ]).toEqual([null, value, 1])
      }),
      { numRuns },
    )
  })
})
