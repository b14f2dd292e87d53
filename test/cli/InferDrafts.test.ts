/**
 * Drafts of record schemas: each is a schema that our own parser takes, and takes the records that it was drafted from
 * without a misfit.
 */
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, expect, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import fc from "fast-check"
import { schemasCheck } from "../../src/cli/commands/Doctor.ts"
import { basesOf, inferDrafts, looseKinds, tableName } from "../../src/cli/commands/Tables.ts"
import { sayJson } from "../../src/cli/Output.ts"
import { DuckDb } from "../../src/base/DuckDb.ts"
import { PublisherDuckDb } from "../../src/tables/PublisherDuckDb.ts"
import { Publisher } from "../../src/tables/Publisher.ts"
import { feedersOf } from "../../src/tables/CoverageRows.ts"
import { compileFamily, isMisfit } from "../../src/records/CompileFamily.ts"
import { KeyCandidates, draftSchema, draftText } from "../../src/records/DraftSchema.ts"
import { parseBody } from "../../src/records/FindRecords.ts"
import { parseRecordSchema } from "../../src/records/RecordSchema.ts"
import type { RecordFamily } from "../../src/records/RecordSchema.ts"
import { SeenObject } from "../../src/records/SeenFields.ts"
import { anId } from "../harness/Id.ts"
import { worksHere } from "../harness/CommandsHere.ts"
import { live } from "../harness/Steps.ts"
import { families } from "../records/families.ts"
import {
  append,
  begin,
  folder,
  foundation,
  publisherOptions,
  resultsOf,
  rowsOf,
  succeed,
} from "../tables/night.ts"

type Fields = Readonly<Record<string, unknown>>

const kind = { product: "p", sub_family: "p:one" }
const described = { table: "things", product: "p", sub_families: ["p:one"], features: ["things_read"] }

/** As a body delivers them: numbers too long for a double are exact. */
const asRead = (records: ReadonlyArray<Fields>): ReadonlyArray<Fields> => {
  const parsed = parseBody(new TextEncoder().encode(JSON.stringify(records)))
  if (parsed._tag === "UnreadableBody") throw new Error(parsed.reason)
  return parsed.value as ReadonlyArray<Fields>
}

const draftFrom = (records: ReadonlyArray<Fields>, customerOf = (at: number) => `c-${at}`) => {
  const object = new SeenObject()
  const keys = new KeyCandidates()
  for (const [at, record] of records.entries()) {
    object.add(record, customerOf(at))
    keys.add("one answer", record)
  }
  return draftSchema(described, object, keys)
}
const familyOf = (draft: Parameters<typeof draftText>[0]): RecordFamily =>
  Effect.runSync(
    Effect.flatMap(draftText(draft, "Drafted."), (text) => parseRecordSchema("things.yaml", text)),
  )

/** What a family says to records: why each was refused, or its misfits. */
const troubles = (family: RecordFamily, records: ReadonlyArray<Fields>) => {
  const take = compileFamily(family)
  return records.flatMap((record) => {
    const taken = take(record, { above: undefined, key: "record" })
    return isMisfit(taken) ? [taken.reason] : taken.misfits.map(({ table, column }) => `${table}.${column}`)
  })
}

const word = fc.constantFrom(..."id|amount|day|list|position|Odd Name|__proto__|product|latest".split("|"))
const scalar = fc.oneof(
  fc.constantFrom(..."2026-01-31|2026-01-31T10:00:00Z|12.50|007||EUR|# no: comment|\u2028\n- x".split("|")),
  fc.string(),
  fc.boolean(),
  fc.integer(),
  fc.double({ noNaN: true }),
  fc.bigInt({ min: -(10n ** 40n), max: 10n ** 40n }).map((each) => Number(each)),
  fc.constant(null),
)
const object = fc.dictionary(word, scalar, { maxKeys: 4 })
const field = fc.oneof(scalar, object, fc.array(scalar, { maxLength: 3 }), fc.array(object, { maxLength: 3 }))
const record = fc.dictionary(word, field, { maxKeys: 6 }).map((fields): Fields => ({ ...fields, ...kind }))
const records = fc.array(record, { minLength: 1, maxLength: 6 })

describe("a draft", () => {
  it("is a schema, and takes each record that it was drafted from without a misfit", () => {
    fc.assert(
      fc.property(records, (written) => {
        const read = asRead(written)
        expect(troubles(familyOf(draftFrom(read)), read)).toEqual([])
      }),
      { numRuns: 300 },
    )
  })

  it("has what is required, lists as tables and a key, and says what has no column", () => {
    const read = [
      { iban: "ES1", open: true, lines: [] },
      { iban: "ES2", open: true, lines: [{ line: 0, text: "x" }, { line: 1 }], code: "0042" },
    ].map((fields) => ({ ...kind, ...fields, holder: { name: "Ana" }, nothing: null, "Not A Name": 1 }))
    const { file, notes } = draftFrom(read, () => "one customer")
    const shown = Object.entries(file.columns).map(
      ([name, { type, required }]) => `${name} ${type}${required === true ? " required" : ""}`,
    )
    expect([file.key, ...shown]).toEqual([
      ["iban"],
      "iban VARCHAR required",
      "open BOOLEAN required",
      "holder JSON required",
      "nothing JSON",
      "code VARCHAR",
    ])
    expect(file.children).toEqual({
      lines: {
        table: "things_lines",
        comment: "lines of things, one row each.",
        required: true,
        columns: {
          line: { type: "INTEGER", required: true, comment: "In 2 of 2 items." },
          text: { type: "VARCHAR", comment: "In 1 of 2 items." },
        },
      },
    })
    expect(notes).toEqual([
      "key is proposed: no two records of one answer share it. Check that it stays over nights.",
      'Fields: in `extra`, because their names cannot be columns: "Not A Name".',
    ])
  })

  it("has for each field the narrowest type that takes all its values, and a table for its lists [decision 10 drafted list]", () => {
    /** The type of the field `v` that had these values, as they are written; in braces: of the items of its table. */
    const typeOf = (...values: ReadonlyArray<string>) => {
      const text = `[${values.map((value) => `{"product":"p","sub_family":"p:one","v":${value}}`).join()}]`
      const parsed = parseBody(new TextEncoder().encode(text))
      if (parsed._tag === "UnreadableBody") throw new Error(parsed.reason)
      const { columns, children = {} } = draftFrom(parsed.value as ReadonlyArray<Fields>).file
      const { v: { item, columns: own = {} } = {} } = children
      const ofItems = Object.entries(own).map(([name, { type }]) => `${name} ${type}`)
      return columns["v"]?.type ?? `{${item?.type ?? ofItems.join(", ")}}`
    }
    const [long, longer] = [`${"1".repeat(36)}.5`, `${"1".repeat(37)}.5`]
    const found = {
      numbers: [typeOf("1", "2147483647"), typeOf("2147483648", "1"), typeOf("9223372036854775808")],
      amounts: [typeOf('"12.5"', "7"), typeOf('"-0.125"', '"1.5"'), typeOf("1234567890123456.5", "1.25")],
      wide: [typeOf('"12345678901234567.5"', '"1.5"'), typeOf("1.5", `"${long}"`), typeOf(`"${longer}"`)],
      exact: [typeOf('"1.0123456789"', '"1.5"'), typeOf('"1.01234567891"'), typeOf("1.01234567891")],
      texts: ['"12"', '"01.5"', '"+1.5"', '"1.5e3"', '"1.5 EUR"'].map((value) => typeOf(value, "null")),
      doubles: [typeOf("1e300"), typeOf("1.5e-7", "2"), typeOf("1e300", '"1.5"')],
      days: [typeOf('"2026-01-31"'), typeOf('"2026-01-31"', '"2026-01-31T10:00:00Z"'), typeOf("null")],
      mixed: [typeOf("true", "1"), typeOf("{}"), typeOf('"a"', "{}"), typeOf('["a"]', '"a"'), typeOf("[]")],
      values: [typeOf('["a"]', "[]", "null"), typeOf("[1, 2147483648]"), typeOf('["1.5", 7]')],
      objects: [typeOf('[{"x":1},{"x":2}]', '[{"y":true}]'), typeOf("[{}]"), typeOf('[{"Name":1}]')],
      odd: ['[1,"a"]', '[{"x":1},2]', '["a",null]', '[["a"]]', "[{},[]]"].map((value) => typeOf(value)),
    }
    expect(found).toEqual({
      numbers: ["INTEGER", "BIGINT", "DECIMAL(38,2)"],
      amounts: ["DECIMAL(18,2)", "DECIMAL(18,3)", "DECIMAL(18,2)"],
      wide: ["DECIMAL(38,2)", "DECIMAL(38,2)", "VARCHAR"],
      exact: ["DECIMAL(18,10)", "VARCHAR", "DOUBLE"],
      texts: ["VARCHAR", "VARCHAR", "VARCHAR", "VARCHAR", "VARCHAR"],
      doubles: ["DOUBLE", "DOUBLE", "JSON"],
      days: ["DATE", "VARCHAR", "JSON"],
      mixed: ["JSON", "JSON", "JSON", "JSON", "JSON"],
      values: ["{VARCHAR}", "{BIGINT}", "{DECIMAL(18,2)}"],
      objects: ["{x INTEGER, y BOOLEAN}", "JSON", "JSON"],
      odd: ["JSON", "JSON", "JSON", "JSON", "JSON"],
    })
  })

  it("proposes as key a plain value that tells the records of every answer apart, by its name if it can", () => {
    const columns = ["plain", "iban", "big", "amount", "maybe"].map((name) => ({
      name,
      type:
        name === "amount" ? ("DOUBLE" as const) : name === "big" ? ("BIGINT" as const) : ("VARCHAR" as const),
      required: name !== "maybe",
    }))
    const best = (answers: ReadonlyArray<ReadonlyArray<Fields>>) => {
      const keys = new KeyCandidates()
      for (const [group, answer] of answers.entries())
        for (const each of answer) keys.add(String(group), each)
      return keys.best(columns)
    }
    const [one, other] = [
      { plain: "a", iban: "ES1" },
      { plain: "b", iban: "ES2" },
    ]
    const long = "x".repeat(80)
    expect({
      byName: best([[one, other]]),
      again: best([[one, other], [one]]),
      first: best([[one, { ...other, iban: "ES1" }]]),
      none: best([[one, one]]),
      later: best([
        [one, other],
        [one, { plain: "c", iban: "ES1" }],
      ]),
      number: best([
        [
          { big: 1, plain: "a", iban: "a" },
          { big: 2, plain: "a", iban: "a" },
        ],
      ]),
      long: best([[{ iban: long }, { iban: `${long.slice(1)}y` }]]),
      tooLong: best([
        [
          { plain: 1, iban: `${long}a` },
          { plain: 2, iban: `${long}b` },
        ],
      ]),
      mixed: best([
        [
          { plain: true, iban: "1" },
          { plain: "b", iban: 1 },
        ],
      ]),
      alone: best([[one], [other]]),
      nothing: best([]),
    }).toEqual({
      byName: "iban",
      again: "iban",
      first: "plain",
      none: "big",
      later: "plain",
      number: "big",
      long: "iban",
      tooLong: "plain",
      mixed: "big",
      alone: undefined,
      nothing: undefined,
    })
  })

  it("lists the values of a column only if they are codes that three customers share", () => {
    const commentsOf = (values: ReadonlyArray<string>, customers: number) => {
      const read = values.flatMap((value) => Array.from({ length: customers }, () => ({ ...kind, value })))
      return draftFrom(read, (at) => `c-${at % customers}`).file.columns["value"]?.comment
    }
    expect([
      commentsOf(["EUR"], 3),
      commentsOf(["EUR", "USD"], 3),
      commentsOf(["EUR", "USD"], 2),
      commentsOf(["Ana María", "Luis"], 3),
      commentsOf(["600123123"], 3),
      commentsOf(
        Array.from({ length: 13 }, (_, n) => `code-${n}`),
        3,
      ),
    ]).toEqual([
      "In 3 of 3 records; values: EUR.",
      "In 6 of 6 records; values: EUR, USD.",
      ...[4, 6, 3, 39].map((n) => `In ${n} of ${n} records.`),
    ])
  })

  it("names the features that may feed its records", () => {
    const asked = [
      { feature: "accounts_read", tasks: 2 },
      { feature: "cloud_resource_read", tasks: 2 },
      { feature: "cards_read", tasks: 1 },
    ]
    expect([
      feedersOf("cards", 2, asked, [], []),
      feedersOf("cloud_resources", 2, asked, ["accounts"], []),
      feedersOf("oddities", 2, asked, [], []),
      feedersOf("oddities", 0, [], [], []),
    ]).toEqual([["cards_read"], ["cloud_resource_read"], ["accounts_read", "cloud_resource_read"], []])
  })

  it("has a table that no other table or view has", () => {
    const basis = { product: "1 Cuentas & más", sub_families: ["a:b"], records: 1 }
    const names = ["cuentas_m_s", "cuentas_m_s_a_b"]
    expect([
      tableName(basis, new Set()),
      tableName(basis, new Set(names.slice(0, 1))),
      tableName(basis, new Set(names)),
    ]).toEqual(["cuentas_m_s", "cuentas_m_s_a_b", "cuentas_m_s_2"])
  })
})

/** What `doctor` says of the newest run's records. */
const schemasLine = (output: string) =>
  Effect.map(worksHere(Effect.flatMap(schemasCheck(output), sayJson)), ({ stdout }): unknown =>
    JSON.parse(stdout),
  )

live(
  "drafts of what is published put into the job's schemas, take in the next run what other_records held",
  function* () {
    const base = yield* folder
    const root = join(base, "output")
    const own = join(base, "own")
    mkdirSync(root)
    mkdirSync(own)
    const at = "2026-11-20T03:04:05Z"
    const accounts = ["1.50", "2.25"].map((balance, n) => ({
      product: "accounts",
      sub_family: "bank:account",
      fetch_date: at,
      iban: `ES${n}`,
      balance,
      holders: [{ name: "Ana" }, { name: "Luis", share: 0.5 }],
    }))
    const night = (date: string) =>
      Effect.gen(function* () {
        const run_id = `nightly.${date}`
        yield* append([begin(run_id, date)])
        yield* succeed(run_id, date, "c-1", resultsOf(...accounts))
        const publisher = yield* Publisher
        const { version, receipts, other } = yield* publisher.publish(anId(run_id))
        yield* append([{ _tag: "RunPublished", run_id: anId(run_id), version, receipts, other }])
        return { other, doctor: yield* schemasLine(root) }
      }).pipe(
        Effect.provide(
          PublisherDuckDb.layer({ ...publisherOptions(root), ownSchemas: own }).pipe(
            Layer.provideMerge(foundation(root)),
          ),
        ),
      )
    expect(yield* night("2026-11-20")).toEqual({
      other: {
        records: 2,
        families: 1,
        most: [{ product: "accounts", sub_family: "bank:account", records: 2 }],
      },
      doctor: {
        verdict: "warning",
        says:
          "2 records of 1 family without a schema, in `other_records`: accounts of bank:account (2); " +
          "`nightjar infer` drafts a schema",
        id: "records-without-schema",
      },
    })
    yield* Effect.gen(function* () {
      const database = yield* DuckDb
      const connection = yield* database.open({ path: join(root, "nightjar.duckdb"), access: "read-only" })
      const kinds = yield* looseKinds(connection)
      for (const { table, yaml } of yield* inferDrafts(connection, basesOf(kinds, families).bases, families))
        writeFileSync(join(own, `${table}.yaml`), yaml)
    }).pipe(Effect.scoped, Effect.provide(DuckDb.layer))
    expect(yield* night("2026-11-21")).toEqual({
      other: { records: 0, families: 0, most: [] },
      doctor: { verdict: "ok", says: "every record of the newest run has one" },
    })
    const rows = yield* rowsOf(
      root,
      `SELECT 'accounts' AS held_by, iban AS what, balance::VARCHAR AS also, misfits FROM nights.accounts
         UNION ALL SELECT 'holders', name, share::VARCHAR, misfits FROM nights.accounts_holders WHERE run_date = '2026-11-21'
         UNION ALL SELECT 'other', iban, NULL, NULL FROM
           (SELECT record->>'iban' AS iban FROM nights.other_records WHERE run_date = '2026-11-21')
         ORDER BY ALL`,
    ).pipe(Effect.provide(DuckDb.layer))
    assert.deepStrictEqual(rows, [
      { held_by: "accounts", what: "ES0", also: "1.50", misfits: null },
      { held_by: "accounts", what: "ES1", also: "2.25", misfits: null },
      { held_by: "holders", what: "Ana", also: null, misfits: null },
      { held_by: "holders", what: "Ana", also: null, misfits: null },
      { held_by: "holders", what: "Luis", also: "0.50", misfits: null },
      { held_by: "holders", what: "Luis", also: "0.50", misfits: null },
    ])
  },
)
