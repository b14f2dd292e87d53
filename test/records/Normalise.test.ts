import { describe, expect, it } from "vitest"
import { flowResultsSource, profileSource, recordsIn } from "../../src/service/FlowResults.ts"
import { findingOf } from "../../src/task/DrainProof.ts"
import { BoundBroken, cutText } from "../../src/service/BodyBounds.ts"
import { nothingCounted } from "../../src/records/FindRecords.ts"
import { LongTexts } from "../../src/records/ColumnData.ts"
import { column } from "../../src/records/Columns.ts"
import { Normaliser, nothingBeside } from "../../src/records/Normalise.ts"
import { otherRecordsOf } from "../../src/records/Misfits.ts"
import { ownerOf } from "../../src/records/RecordIdentity.ts"
import type { RecordFamily } from "../../src/records/RecordSchema.ts"
import { addBody, degree, families, flushOf, flushedRows, lineage, profile, readBack } from "./families.ts"
import { anId } from "../harness/Id.ts"

const idPattern = /^[0-9a-f]{32}$/

/** Rows of one table as the database shows them. */
const rowsOf = async (data: unknown, table: string, of = families, query?: string) => {
  const normaliser = new Normaliser(of)
  normaliser.add(lineage, data)
  const flushed = flushOf(normaliser).find(({ spec }) => spec.name === table)
  return flushed === undefined ? [] : (await readBack(flushed.spec, flushed.table, query)).rows
}

/** The same without the database, of all tables. */
const rowsIn = (data: unknown, of = families, from = lineage) => {
  const normaliser = new Normaliser(of)
  normaliser.add(from, data)
  return flushedRows(normaliser)
}

const rejectionOf = (record: unknown) => {
  const rows = rowsIn([profile, record, degree])
  expect([rows["customer_profiles"]?.length, rows["higher_education"]?.length]).toEqual([1, 1])
  return (rows["rejected_records"] ?? []).map(({ path, reason }) => [path, reason])
}

describe("the normaliser", () => {
  it("reports a long string beside records without repeating it", async () => {
    const rows = await rowsOf([profile, "x".repeat(65_534), "x".repeat(65_535)], "rejected_records")
    expect(rows.map((row) => [row["path"], row["reason"], String(row["record"] ?? "").length])).toEqual([
      ["data[1]", "not a record", 65_536],
      ["data[2]", "not a record; its 65537 characters are in landing", 0],
    ])
  })

  it("refuses the body whose long texts would not fit into a database beside those before them", () => {
    const normaliser = new Normaliser(families)
    const mebibyte = 1024 * 1024
    const long = "x".repeat(mebibyte)
    const body = (records: number, text: string) => ({
      data: Array.from({ length: records }, (_, n) => ({ product: "p", sub_family: "p:s", n, text })),
    })
    const add = (records: number, text = long) => {
      const takeBack = normaliser.mark(undefined)
      try {
        return normaliser.add(lineage, body(records, text).data).other
      } catch (refused) {
        takeBack()
        return refused instanceof BoundBroken ? refused.message : refused
      }
    }
    const refused = "other_records has no room left for its long texts"
    expect([add(50), add(20), add(18), add(1), add(1, "short")]).toEqual([50, refused, 18, refused, 1])
    // Each short row makes room for as much as it could have held itself.
    expect([add(32, "short"), add(2), add(1)]).toEqual([32, 2, refused])
  })

  it("counts the long texts of every column, and those of a table for itself", () => {
    const normaliser = new Normaliser(families)
    const name = "x".repeat(1024 * 1024)
    const add = (record: object, times: number) =>
      normaliser.add(
        lineage,
        Array.from({ length: times }, () => record),
      ).inTables
    expect(add({ ...profile, name }, 60)).toBe(60)
    expect(add({ ...degree, institution_name: name }, 60)).toBe(60)
    const refused = "customer_profiles has no room left for its long texts"
    expect(() => add({ ...profile, name }, 10)).toThrow(refused)
  })

  it("forgets the ids of what is taken back, so that another body may bring the same record", () => {
    const normaliser = new Normaliser(families)
    const record = (n: number) => ({ product: "p", sub_family: "p:s", n })
    const beside = { ...nothingBeside(), isHeld: () => false }
    const placed = (data: ReadonlyArray<unknown>) => {
      const { other, repeated } = normaliser.add(lineage, data, beside)
      return { other, repeated }
    }
    expect(placed([record(1)])).toEqual({ other: 1, repeated: 0 })
    const takeBack = normaliser.mark(beside)
    expect(placed([record(1), record(2)])).toEqual({ other: 1, repeated: 1 })
    takeBack()
    expect([beside.seen.size, flushedRows(normaliser)["other_records"]?.length]).toEqual([1, 1])
    expect(placed([record(1), record(2)])).toEqual({ other: 1, repeated: 1 })
  })

  it("gives the items of a list the ids of their record, and keeps what has no column", async () => {
    const [row] = await rowsOf([profile], "customer_profiles")
    expect([row?.["extra"], row?.["fetch_date"]]).toEqual([
      '{"loyalty_points":9}',
      "2026-11-20 02:04:05.123456+00",
    ])
    const child = { ...lineage, record_id: row!["record_id"], content_id: row!["content_id"] }
    expect(await rowsOf([profile], "emails")).toEqual([
      { ...child, position: 0, email: "a@example.org", misfits: null, extra: null },
      { ...child, position: 1, email: "b@example.org", misfits: null, extra: null },
    ])
    expect(await rowsOf([profile], "phones")).toEqual([])
  })

  it("keeps a record of an unknown family whole, digit by digit [decision 10 unknown families]", async () => {
    const normaliser = new Normaliser(families)
    const body =
      '{"data":[{"product":"x","sub_family":"x:y","fetch_date":"2026-11-20T00:00:00Z","n":9007199254740993}]}'
    expect(addBody(normaliser, Buffer.from(body))).toEqual({
      records: 1,
      inTables: 0,
      other: 1,
      rejected: 0,
      repeated: 0,
      strays: 0,
      byTable: {},
      byProduct: new Map([["x", 1]]),
      misfits: [],
      refusedFor: [],
      otherBy: [{ product: "x", sub_family: "x:y", records: 1 }],
      tally: { bySubFamily: new Map([["x:y", 1]]), byProduct: new Map([["x", 1]]) },
    })
    const { spec, table } = [...flushOf(normaliser)][0]!
    expect(spec.name).toBe("other_records")
    expect((await readBack(spec, table)).rows).toEqual([
      {
        ...lineage,
        record_id: expect.stringMatching(idPattern),
        content_id: expect.stringMatching(idPattern),
        product: "x",
        sub_family: "x:y",
        fetch_date: "2026-11-20 00:00:00+00",
        record: '{"product":"x","sub_family":"x:y","fetch_date":"2026-11-20T00:00:00Z","n":9007199254740993}',
      },
    ])
  })

  it("counts records of unknown families by family, of which those with the most are named, cut", () => {
    const long = "x".repeat(3_000_000)
    const all = [
      ...Array.from({ length: 5_000 }, (_, at) => ({ product: "p", sub_family: `f-${at}`, records: 1 })),
      { product: "p", sub_family: "f-7", records: 2 },
      { product: long, sub_family: long, records: 9 },
      // The same letters, and two families.
      { product: "ab", sub_family: "c", records: 4 },
      { product: "a", sub_family: "bc", records: 4 },
    ]
    const { most, ...counts } = otherRecordsOf(all)
    expect(counts).toEqual({ records: 5_019, families: 5_003 })
    expect(most.length).toBe(10)
    expect(most.slice(0, 5)).toEqual([
      { product: cutText(long, 100), sub_family: cutText(long, 100), records: 9 },
      { product: "a", sub_family: "bc", records: 4 },
      { product: "ab", sub_family: "c", records: 4 },
      { product: "p", sub_family: "f-7", records: 3 },
      { product: "p", sub_family: "f-0", records: 1 },
    ])
    expect(otherRecordsOf([])).toEqual({ records: 0, families: 0, most: [] })
  })

  it("rejects a whole record whose time or key cannot be read, or whose child is no list, with the path, without affecting its neighbours [promise 11 schemas]", async () => {
    const rejections: ReadonlyArray<readonly [record: unknown, path: string, reason: string]> = [
      [
        { ...profile, fetch_date: "yesterday" },
        "data[1].fetch_date",
        "expected TIMESTAMPTZ, got another text",
      ],
      [{ ...profile, fetch_date: null }, "data[1].fetch_date", "required, and missing"],
      [{ ...profile, type: 7 }, "data[1].type", "expected VARCHAR, got number"],
      [{ ...degree, institution_name: {} }, "data[1].institution_name", "expected VARCHAR, got object"],
      [{ ...profile, phones: "one" }, "data[1].phones", "expected list, got text"],
      [{ ...profile, sub_family: 7 }, "data[1]", "a record needs sub_family as text"],
    ]
    for (const [record, path, reason] of rejections) expect(rejectionOf(record)).toEqual([[path, reason]])
    const [broken] = rejections[0]!
    const { product, sub_family } = profile
    const [row] = await rowsOf([broken], "rejected_records")
    expect(row).toMatchObject({ ...lineage, product, sub_family, record: JSON.stringify(broken) })
  })

  it("keeps values that do not fit in `extra`, as they arrived, with the reasons, and counts them", async () => {
    const numbers = profile.identification_numbers
    const changed = {
      ...profile,
      gender: 7,
      birth_date: "yesterday",
      civil_status: null,
      emails: ["a", 3, null],
      phones: null,
      addresses: undefined,
      identification_numbers: [numbers[0], { ...numbers[1], validated: 1 }, null, [2]],
    }
    const normaliser = new Normaliser(families)
    const counts = normaliser.add(lineage, [changed, { ...profile, gender: 8 }])
    expect([counts.inTables, counts.rejected]).toEqual([2, 0])
    expect(counts.misfits).toEqual([
      { table: "customer_profiles", column: "birth_date", count: 1 },
      { table: "customer_profiles", column: "gender", count: 2 },
      { table: "customer_profiles", column: "civil_status", count: 1 },
      { table: "customer_profiles", column: "phones", count: 1 },
      { table: "customer_profiles", column: "addresses", count: 1 },
      { table: "identification_numbers", column: "validated", count: 1 },
      { table: "identification_numbers", column: "item", count: 2 },
      { table: "emails", column: "email", count: 2 },
    ])
    const [row] = await rowsOf([changed], "customer_profiles")
    expect(row).toMatchObject({
      name: "María",
      gender: null,
      birth_date: null,
      civil_status: null,
      misfits: [
        "birth_date: expected DATE, got another text",
        "gender: expected VARCHAR, got number",
        "civil_status: required, and missing",
        "phones: required, and missing",
        "addresses: required, and missing",
      ],
      extra: '{"birth_date":"yesterday","gender":7,"civil_status":null,"phones":null,"loyalty_points":9}',
    })
    const childrenOf = async (table: string, ...names: ReadonlyArray<string>) =>
      (await rowsOf([changed], table)).map((each) => names.map((name) => each[name]))
    expect(await childrenOf("emails", "position", "email", "misfits", "extra")).toEqual([
      [0, "a", null, null],
      [1, null, ["email: expected VARCHAR, got number"], '{"email":3}'],
      [2, null, ["email: required, and missing"], '{"email":null}'],
    ])
    expect(await childrenOf("identification_numbers", "position", "validated", "misfits", "extra")).toEqual([
      [0, true, null, null],
      [1, null, ["validated: expected BOOLEAN, got number"], '{"validated":1,"issued_by":{"office":3}}'],
      [2, null, ["item: required, and missing"], '{"item":null}'],
      [3, null, ["item: expected object, got list"], '{"item":[2]}'],
    ])
    expect(await rowsOf([changed], "rejected_records")).toEqual([])
  })

  it("does with misfits and unknown fields what the mode of the schema says", () => {
    const placesIn = (mode: RecordFamily["mode"], ...records: ReadonlyArray<unknown>) => {
      const normaliser = new Normaliser(families.map((family) => ({ ...family, mode })))
      const { inTables, misfits } = normaliser.add(lineage, records)
      const { rejected_records = [] } = flushedRows(normaliser)
      return [
        inTables,
        misfits.map(({ table, column, count }) => `${table}.${column} ${count}`),
        rejected_records.map(({ path, reason }) => `${String(path)}: ${String(reason)}`),
      ]
    }
    const misfit = { ...degree, total_credits: "sixty" }
    const unknown = { ...degree, dean: "Ada", campus: 1 }
    expect(placesIn("evolve", misfit, unknown)).toEqual([2, ["higher_education.total_credits 1"], []])
    expect(placesIn("discard_value", misfit, unknown)).toEqual([
      2,
      ["higher_education.total_credits 1", "higher_education.extra 2"],
      [],
    ])
    const refused = "data[0].total_credits: expected DECIMAL(18,6), got another text"
    expect(placesIn("quarantine", misfit, unknown)).toEqual([1, [], [refused]])
    const notKnown = "data[1].dean: a field that the schema does not have"
    expect(placesIn("freeze", misfit, unknown, degree)).toEqual([1, [], [refused, notKnown]])
    const { loyalty_points: _, ...known } = profile
    const strange = { ...known, emails: [1] }
    expect(placesIn("freeze", strange)).toEqual([
      0,
      [],
      ["data[0].identification_numbers[1].issued_by: a field that the schema does not have"],
    ])
    expect(placesIn("quarantine", strange)).toEqual([
      0,
      [],
      ["data[0].emails[0]: expected VARCHAR, got number"],
    ])
    expect(placesIn("quarantine", { ...profile, phones: null })).toEqual([
      0,
      [],
      ["data[0].phones: required, and missing"],
    ])
  })

  it("says how many fields are unknown where values are discarded, and nothing where there are none", async () => {
    const misfitsOf = async (record: unknown) => {
      const discarding = families.map((family): RecordFamily => ({ ...family, mode: "discard_value" }))
      const [row] = await rowsOf([record], "higher_education", discarding)
      return [row?.["misfits"], row?.["extra"]]
    }
    expect(await misfitsOf({ ...degree, dean: "Ada", campus: 1 })).toEqual([
      ["extra: 2 unknown fields"],
      '{"dean":"Ada","campus":1}',
    ])
    expect(await misfitsOf({ ...degree, total_credits: "sixty" })).toEqual([
      ["total_credits: expected DECIMAL(18,6), got another text"],
      '{"total_credits":"sixty"}',
    ])
    expect(await misfitsOf(degree)).toEqual([null, null])
  })

  it("names the item of a list of texts that is no text, or the field if it is no list", async () => {
    const codes = {
      name: "codes",
      type: "VARCHAR[]",
      comment: "",
      required: false,
      identifies: false,
    } as const
    const listing = families.map((family) => ({ ...family, columns: [...family.columns, codes] }))
    const records = [["a", "b"], ["a", 7], "a"].map((value) => ({ ...degree, codes: value }))
    const rows = await rowsOf(records, "higher_education", listing)
    expect(rows.map((row) => [row["codes"], row["misfits"], row["extra"]])).toEqual([
      [["a", "b"], null, null],
      [null, ["codes[1]: expected VARCHAR, got number"], '{"codes":["a",7]}'],
      [null, ["codes: expected VARCHAR[], got text"], '{"codes":"a"}'],
    ])
  })

  it("rejects a whole record that is nested too deep, and still accepts the next one", async () => {
    let deep: unknown = 1
    for (let i = 0; i < 100_000; i++) deep = [deep]
    const records = [{ ...degree, deep }, degree]
    expect(new Normaliser(families).add(lineage, records)).toMatchObject({ inTables: 1, rejected: 1 })
    const query = "SELECT path, reason, length(record) > 200000 AS whole, record::JSON IS NULL AS lost FROM t"
    expect(await rowsOf(records, "rejected_records", families, query)).toEqual([
      { path: "data[0]", reason: "nested deeper than 32 levels", whole: true, lost: false },
    ])
  })

  it("keeps the ids of a record from one version of the program to the next", () => {
    const normaliser = new Normaliser(families)
    const exact = '"n":-12345678901234567890.50,"m":12345678901234567890,"list":[null,true,{"b":"ñ","a":1.5}]'
    const body = `{"data":[{"product":"x","sub_family":"x:y","fetch_date":"2026-11-20T00:00:00Z",${exact}}]}`
    addBody(normaliser, Buffer.from(body))
    normaliser.add(lineage, [degree, degree])
    const rows = flushedRows(normaliser)
    const idsIn = (table: string) =>
      (rows[table] ?? []).map(({ record_id, content_id }) => [record_id, content_id])
    expect([...idsIn("other_records"), ...idsIn("higher_education")]).toEqual([
      ["424537a220a26c4d332b89473b3f4d04", "56c8c0e4523193509786e24a076d8643"],
      ["c5c9b46d333f7b0e7072ae9402d67fb0", "3c359c2731f45be78f6bc17e53ac8fac"],
      ["cfbd8f1aecb2af3174c2da6408f48235", "3c359c2731f45be78f6bc17e53ac8fac"],
    ])
  })

  it("has room for any number of short texts, which make room for long ones", () => {
    const texts = new LongTexts()
    const short = 64 * 1024
    texts.add("t", 1024 * short)
    const long = () => texts.add("t", short + 1)
    expect(long).toThrow("t has no room left for its long texts")
    texts.add("t", short)
    expect(long).not.toThrow()
    texts.add("other", 1024 * short)
  })

  it("gives equal data equal ids in another run, and repeated records different ones", () => {
    const ids = (data: unknown, from = lineage) =>
      (rowsIn(data, families, from)["higher_education"] ?? []).map(({ record_id }) => record_id)
    const reordered = Object.fromEntries(Object.entries(degree).toReversed())
    const first = ids([degree, degree])
    expect(new Set(ids([degree, degree, degree, degree])).size).toBe(4)
    const otherNight = {
      ...lineage,
      run_id: anId("r2"),
      task_id: anId("r2/c"),
      execution_id: anId("e-2"),
      session_id: anId("s-2"),
    }
    expect(ids([reordered, degree], otherNight)).toEqual(first)
    expect(ids([degree], { ...lineage, customer_id: anId("c-0002") })).not.toEqual(first.slice(0, 1))
    expect(ids([{ ...degree, official_id: "7", fetch_date: "2026-11-21T03:04:05Z" }])).toEqual(
      first.slice(0, 1),
    )
    expect(ids([{ ...degree, qualification_name: "Another" }])).not.toEqual(first.slice(0, 1))
    const pulled = { ...lineage, engine_reference: null, execution_id: null }
    expect(ids([degree], pulled)).toEqual(ids([degree], { ...pulled, customer_id: null, run_id: anId("r2") }))
    expect(ids([degree], pulled)).not.toEqual(ids([degree], { ...pulled, session_id: anId("s-9") }))
  })

  it("tells owners apart whatever their ids contain [promise 18 owners]", () => {
    const owner = (customer_id: string, engine_reference: string) =>
      ownerOf({
        customer_id: anId(customer_id),
        engine_reference: anId(engine_reference),
        session_id: anId("s"),
      })
    const session = (session_id: string) =>
      ownerOf({ customer_id: anId("c"), engine_reference: null, session_id: anId(session_id) })
    // As they have always been, where nothing can be mistaken.
    expect([owner("c-1", "bank:website"), owner("ES/0012", "bank:website"), session("s-1")]).toEqual([
      "c-1/bank:website",
      "ES/0012/bank:website",
      "session/s-1",
    ])
    const parts = ["a", "b", "a/b", "b/c", "a/b/c", "session", "session/a", "1:a", "1:ab", "/", "a/", "/a"]
    const owners = parts.flatMap((one) => [session(one), ...parts.map((other) => owner(one, other))])
    expect(new Set(owners).size).toBe(owners.length)
  })

  it("gives a record the same content_id as long as only its times of fetching change [decision 10 content]", () => {
    const ids = (data: unknown, table = "higher_education") =>
      (rowsIn(data)[table] ?? []).map((row) => [row["record_id"], row["content_id"]])
    const later = { fetch_date: "2026-11-21T03:04:05Z" }
    const content = (...from: Parameters<typeof ids>) => ids(...from).map(([, content_id]) => content_id)
    const [[record_id, content_id] = []] = ids([degree])
    const [[laterRecord, laterContent] = []] = ids([{ ...degree, ...later }])
    expect([laterRecord === record_id, laterContent === content_id]).toEqual([true, true])
    expect(content([{ ...degree, total_credits: "61" }])).not.toEqual([content_id])
    // Two records that differ only in their times are two records of one content.
    const both = ids([degree, { ...degree, ...later }])
    expect(both.map(([, each]) => each)).toEqual([content_id, content_id])
    expect(new Set(both.map(([each]) => each)).size).toBe(2)
    const movement = { product: "a", sub_family: "a:movement", fetch_date: "2026-11-20", amount: 1 }
    const account = { product: "a", sub_family: "a:account", fetch_date: "2026-11-20", held: [movement] }
    const nextNight = { ...account, ...later, held: [{ ...movement, ...later }] }
    expect(content([nextNight], "other_records")).toEqual(content([account], "other_records"))
    expect(content([{ ...account, held: [] }], "other_records")).not.toEqual(
      content([account], "other_records").slice(0, 1),
    )
    // A date of fetching of something that is no record is a field like any other.
    const visit = { fetch_date: "2026-11-20" }
    const visited = (by: object) => content([{ ...account, visit: by }], "other_records")
    expect(visited(later)).not.toEqual(visited(visit))
    const half = { product: "a", fetch_date: "2026-11-20", n: 1 }
    expect(content([{ ...half, ...later }, degree], "rejected_records")).toEqual(
      content([half, degree], "rejected_records"),
    )
    let deep: unknown = 1
    for (let i = 0; i < 40; i++) deep = [deep]
    expect(content([{ ...degree, ...later, deep }], "rejected_records")).toEqual(
      content([{ ...degree, deep }], "rejected_records"),
    )
  })

  it("gives rows that are equal in their columns one content_id, however their bodies spell them [promise 18 content] [promise 18 missing] [promise 18 unlisted]", () => {
    const typed = (type: "DECIMAL(18,6)" | "INTEGER") =>
      families.map((family) => ({
        ...family,
        columns: [
          ...family.columns.map((each) => (each.name === "total_credits" ? { ...each, type } : each)),
          { ...column("loyalty", "JSON", "clear", "Any JSON."), required: false, identifies: false },
        ],
      }))
    const contentOf = (change: object, of = typed("DECIMAL(18,6)")) =>
      rowsIn([{ ...degree, ...change }], of)["higher_education"]?.[0]?.["content_id"]
    const same: ReadonlyArray<readonly [object, object]> = [
      [{ total_credits: "240" }, { total_credits: "240.00" }],
      [{ total_credits: 240 }, { total_credits: "2.4e2" }],
      [{ total_credits: null }, { total_credits: undefined }],
      [{ loyalty: { a: 1, b: [1.5], c: null } }, { loyalty: { b: [1.5], a: 1 } }],
      [{ fetch_date: "2026-11-20T03:04:05Z" }, { fetch_date: "2026-11-21T03:04:05Z" }],
      [{ loyalty: null }, {}],
      [{ loyalty: [] }, {}],
      [{ unlisted: 1 }, { unlisted: [2], seen_at: 3 }],
    ]
    for (const [one, other] of same) expect(contentOf(one)).toBe(contentOf(other))
    // A list that has to be there: that it is missing is told, and no other content.
    const phones = [{ phones: [] }, { phones: null }, { phones: undefined }].map((change) => {
      const [row] = rowsIn([{ ...profile, ...change }])["customer_profiles"] ?? []
      return [row?.["content_id"], row?.["misfits"] === null]
    })
    const [[content] = []] = phones
    expect(phones).toEqual([
      [content, true],
      [content, false],
      [content, false],
    ])
    // In a list neither, what has no column counts.
    const streets = [{}, { seen_at: 1 }, { street: "Calle Mayor 2" }].map((change) => {
      const rows = rowsIn([{ ...profile, addresses: [{ ...profile.addresses[0], ...change }] }])
      return rows["customer_profiles"]?.[0]?.["content_id"]
    })
    expect([streets[1] === streets[0], streets[2] === streets[0]]).toEqual([true, false])
    const credits = { total_credits: 240 }
    expect(contentOf(credits, typed("INTEGER"))).toBe(contentOf(credits))
    const different: ReadonlyArray<readonly [object, object]> = [
      [{ total_credits: "240" }, { total_credits: "24" }],
      [{ total_credits: 0 }, { total_credits: null }],
      [{ loyalty: [1, 2] }, { loyalty: [2, 1] }],
      [{ loyalty: "1" }, { loyalty: 1 }],
      [{ loyalty: {} }, {}],
    ]
    for (const [one, other] of different) expect(contentOf(one)).not.toBe(contentOf(other))
  })

  it("reads `data` of results, and a profile body with or without it", () => {
    expect(recordsIn(flowResultsSource, { data: [1] })).toEqual([1])
    expect(recordsIn(flowResultsSource, { is_closed: true })).toBe(undefined)
    expect(recordsIn(flowResultsSource, 5)).toBe(undefined)
    expect(recordsIn(profileSource, { data: [1] })).toEqual([1])
    expect(recordsIn(profileSource, [degree])).toEqual([degree])
  })

  it("reads the whole body if a record stands outside `data` [promise 14 anywhere]", () => {
    const elsewhere = [
      { records: [degree] },
      { more: { page: { next: degree } } },
      { consent: { accepted_documents: { d: { signature_metadata: { seen: degree } } } } },
      degree,
    ]
    for (const other of elsewhere) {
      for (const body of [other, { is_closed: true, data: [{ ...degree, official_id: "9" }], ...other }]) {
        const counts = new Normaliser(families).add(lineage, recordsIn(flowResultsSource, body))
        expect([counts.records, counts.inTables]).toEqual("data" in body ? [2, 2] : [1, 1])
        expect(findingOf(flowResultsSource, body).tally.byProduct.get("academic_data")).toBe(counts.records)
      }
    }
    // Half a record outside `data` is none.
    const half = { data: [], consent: { origin: "x", product: "academic_data" } }
    expect(recordsIn(flowResultsSource, half)).toEqual([])
  })

  it("stores what a second body of the session shares with the first only once", () => {
    const normaliser = new Normaliser(families)
    const beside = { ...nothingBeside(), isHeld: (sub_family: string) => sub_family === "c:d" }
    const other = { product: "a", sub_family: "a:b", n: 1 }
    const first = normaliser.add(lineage, [degree, other, other], beside)
    const strange = { product: "c", sub_family: "c:d" }
    const second = normaliser.add(lineage, [other, { ...degree, official_id: "9" }, degree, strange], beside)
    expect([first.repeated, first.inTables, first.other]).toEqual([0, 1, 2])
    // A family that another body holds whole is left out; every other record counts unless it is the same.
    expect([second.records, second.repeated, second.inTables, second.other]).toEqual([4, 3, 1, 0])
    expect([...second.tally.bySubFamily]).toEqual([
      ["a:b", 1],
      [degree.sub_family, 2],
      ["c:d", 1],
    ])
    expect([...second.byProduct]).toEqual([[degree.product, 1]])
    const rows = new Map(flushOf(normaliser).map(({ spec, rows: count }) => [spec.name, count]))
    expect([rows.get("higher_education"), rows.get("other_records")]).toEqual([2, 2])
  })

  it("numbers records of one key over all bodies of a session, also after one is taken back [decision 10 session ids]", () => {
    const normaliser = new Normaliser(families)
    const beside = { ...nothingBeside(), isHeld: () => false }
    const [ana, bea, eve] = ["Ana", "Bea", "Eve"].map((name) => ({ ...profile, name }))
    const named = new Map<unknown, string>()
    normaliser.add(lineage, [ana], beside, named)
    const takeBack = normaliser.mark(beside)
    normaliser.add(lineage, [bea], beside)
    takeBack()
    const again = { ...ana }
    normaliser.add(lineage, [eve, again, bea], beside, named)
    const alone = rowsIn([ana, eve, bea])["customer_profiles"]
    expect(flushedRows(normaliser)["customer_profiles"]).toEqual(alone)
    expect(new Set(alone?.map(({ record_id }) => record_id)).size).toBe(3)
    expect(named.get(again)).toBe(named.get(ana))
  })

  it("keeps a body that cannot be read as one rejected row", () => {
    const normaliser = new Normaliser(families)
    expect(addBody(normaliser, Buffer.from('{"data":['))).toEqual({
      ...nothingCounted,
      strays: 1,
      refusedFor: [{ table: null, count: 1 }],
    })
    expect([nothingCounted.misfits, nothingCounted.refusedFor, nothingCounted.byTable]).toEqual([[], [], {}])
    expect(flushedRows(normaliser)["rejected_records"]).toMatchObject([
      { reason: "the body is not JSON", record: null },
    ])
  })
})
