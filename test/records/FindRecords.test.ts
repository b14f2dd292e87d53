import { describe, expect, it } from "vitest"
import { bodyBounds } from "../../src/service/BodyBounds.ts"
import { ExactNumber, attachmentIds, jsonText } from "../../src/records/ExactNumber.ts"
import { findRecords, pathText, parseBody } from "../../src/records/FindRecords.ts"
import * as fc from "fast-check"

const record = (n: number, more: object = {}) => ({ product: "p", sub_family: "p:s", n, ...more })

const found = (data: unknown) => {
  const { records, strays } = findRecords(data)
  return {
    records: records.map(({ value, place }) => [pathText(place), value["n"]]),
    strays: strays.map(({ reason, place }) => [pathText(place), reason]),
  }
}

describe("findRecords", () => {
  it("finds records in lists, maps and nests, in the order of the body [decision 10 records]", () => {
    expect(found([record(1), [record(2)]]).records).toEqual([
      ["data[0]", 1],
      ["data[1][0]", 2],
    ])
    expect(found({ b: [record(1)], a: { "odd key": record(2) } })).toEqual({
      records: [
        ["data.b[0]", 1],
        ['data.a["odd key"]', 2],
      ],
      strays: [],
    })
    expect(found(record(1)).records).toEqual([["data", 1]])
  })

  it("finds a record inside a record too", () => {
    expect(found([record(1, { inner: [{ deeper: record(2) }] })])).toEqual({
      records: [
        ["data[0]", 1],
        ["data[0].inner[0].deeper", 2],
      ],
      strays: [],
    })
  })

  it("leaves the records inside a record that is too deep to that record, whose text contains them", () => {
    let chain: object = record(0)
    for (let n = 1; n <= 40; n++) chain = record(n, { inner: chain })
    expect(found([chain, record(99)])).toEqual({
      records: [
        ["data[0]", 40],
        ["data[1]", 99],
      ],
      strays: [],
    })
  })

  it("reports values in place of records", () => {
    expect(
      found([record(1), { product: "p" }, { product: "p", sub_family: 5 }, { x: { y: 1 } }, "text", null])
        .strays,
    ).toEqual([
      ["data[1]", "a record needs sub_family as text"],
      ["data[2]", "a record needs sub_family as text"],
      ["data[3]", "a record needs product and sub_family as text"],
      ["data[4]", "not a record"],
      ["data[5]", "not a record"],
    ])
    expect(found({ customer: { sub_family: "x", name: { product: "y" } } }).strays).toEqual([
      ["data.customer", "a record needs product as text"],
    ])
    expect(found("text").strays).toEqual([["data", "not a record"]])
  })

  it("does not count a description of records as a record", () => {
    const data = {
      customer: { name: "x" },
      documents: [{ title: "y" }],
      source: { a: 1, records: [record(1)] },
    }
    expect(found(data)).toEqual({ records: [["data.source.records[0]", 1]], strays: [] })
  })

  it("reports values beside a list of records, however deep in it the records are", () => {
    const described = { name: "x", list: [[{ of: record(1) }]] }
    expect(found({ outer: [described, 5, { lonely: true }] })).toEqual({
      records: [["data.outer[0].list[0][0].of", 1]],
      strays: [
        ["data.outer[1]", "not a record"],
        ["data.outer[2]", "a record needs product and sub_family as text"],
      ],
    })
    // The record has what stands in it, in its lists too; what stands beside it is told.
    expect(found({ outer: [record(1, { inner: [record(2), 5, { a: 1 }] }), 6] })).toEqual({
      records: [
        ["data.outer[0]", 1],
        ["data.outer[0].inner[0]", 2],
      ],
      strays: [["data.outer[1]", "not a record"]],
    })
  })

  it("finds no strays in what is empty, absent, or inside a record", () => {
    const nothing = { records: [], strays: [] }
    expect([null, undefined, [], {}, { a: [], b: {} }, { total: 0, a: [[]] }].map(found)).toEqual(
      Array.from({ length: 6 }, () => nothing),
    )
    expect(found([record(1, { product_details: { product: "x" }, list: [{ a: 1 }, 5] })]).strays).toEqual([])
  })

  it("walks any nesting", () => {
    let data: unknown = record(1)
    for (let i = 0; i < 100_000; i++) data = i % 2 === 0 ? [data] : { a: data }
    const { records, strays } = findRecords(data)
    expect([records.length, strays.length]).toEqual([1, 0])
    expect(pathText(records[0]!.place).startsWith("…")).toBe(true)
  })
})

describe("attachmentIds", () => {
  it("finds strings under keys that contain `attachment`, and refuses what is not harmless [promise 13 attachment ids] [decision 10 attachments]", () => {
    const data = {
      records: [
        { attachment_id: "65f0", pdfAttachments: ["a-b_C", 5, "../../etc/passwd"], other: "x" },
        {
          attachment: { id: "not-taken", attachment_ids: ["65f0", ""] },
          attachments: [{ attachmentId: "z" }],
        },
      ],
      long_attachment: "x".repeat(129),
    }
    expect(attachmentIds(data)).toEqual({
      requestable: ["65f0", "a-b_C", "z"],
      refused: ["x".repeat(129), "../../etc/passwd", ""],
      textual: new Set(),
    })
    expect(attachmentIds(null)).toEqual({ requestable: [], refused: [], textual: new Set() })
  })

  it("refuses what is named by something else than a text, under its key [decision 10 no text]", () => {
    const data = [
      { attachment_id: 12_345, attachments_count: 3, has_attachments: true, attachment: null },
      { attachment_ids: [1, new ExactNumber("12345678901234567890")], attachmentSizes: [100] },
      { attachments: [{ id: "not-taken", name: "a.pdf" }, {}, []], no_attachments: {} },
      { attachment: { id: "not-taken", attachment_id: "taken", type: "text/html" } },
    ]
    expect(attachmentIds(data)).toEqual({
      requestable: ["taken"],
      refused: ["attachment_id", "attachment_ids", "attachments"],
      textual: new Set(["taken"]),
    })
  })

  it("refuses a body that names one document more than a run can download", () => {
    const named = (count: number) => ({ attachments: Array.from({ length: count }, (_, n) => `doc-${n}`) })
    const { documentsMax } = bodyBounds
    expect(attachmentIds(named(documentsMax)).requestable).toHaveLength(documentsMax)
    expect(attachmentIds([named(documentsMax), named(documentsMax)]).requestable).toHaveLength(documentsMax)
    expect(() => attachmentIds(named(documentsMax + 1))).toThrow("it names more than 10000 documents")
    const hostile = Array.from({ length: documentsMax + 1 }, (_, n) => ({ attachment: `../${n}` }))
    expect(() => attachmentIds(hostile)).toThrow("it names more than 10000 documents")
  })
})

describe("limits of one body", () => {
  const record = { product: "p", sub_family: "f:s" }

  it("reports a limited number of strays one by one, and how many more there are", () => {
    const zeros = (count: number) => Array.from({ length: count }, () => 0)
    expect(findRecords([...zeros(10_000), record]).strays).toHaveLength(10_000)
    const { records, strays } = findRecords([
      [record, ...zeros(10_001)],
      [record, ...zeros(7)],
    ])
    expect(records).toHaveLength(2)
    expect(strays).toHaveLength(10_001)
    const place = { above: undefined, key: "data" }
    const reason = "8 more values that are not records"
    expect(strays.at(-1)).toEqual({ value: null, reason, place })
  })

  it("accepts half a million records and refuses one more, with its own message", () => {
    const data = Array.from({ length: 500_000 }, () => record)
    expect(findRecords(data).records).toHaveLength(500_000)
    expect(() => findRecords([...data, record])).toThrow(
      expect.objectContaining({ name: "BoundBroken", message: "it contains more than 500000 records" }),
    )
  })
})

const read = (text: string): unknown => {
  const parsed = parseBody(Buffer.from(text))
  if (parsed._tag === "UnreadableBody") throw new Error(parsed.reason)
  return parsed.value
}

describe("parseBody", () => {
  it("keeps every digit of every number", () => {
    const text =
      '{"a":9007199254740993,"b":[-123456789012345678901234567890.123,1e400,0.12345678901234567],"c":1e-400}'
    expect(jsonText(read(text))).toBe(text)
  })

  it("reads numbers that fit a double as plain numbers, whatever is beside them", () => {
    const plain = { a: 1.5, b: 100, c: -0.25, d: 1e21, e: 12345678901234567000 }
    expect(read('{"a":1.50,"b":1e2,"c":-25e-2,"d":1000000000000000000000,"e":12345678901234567000}')).toEqual(
      plain,
    )
  })

  it("reads a body with a long number exactly as any other body", () => {
    const anyJson = fc.json({ maxDepth: 6 })
    fc.assert(
      fc.property(anyJson, fc.boolean(), (text, spaced) => {
        const json = spaced ? JSON.stringify(JSON.parse(text), null, 2) : text
        const value = read(`[12345678901234567890123, ${json} ]`) as ReadonlyArray<unknown>
        expect(JSON.stringify(value[1])).toBe(JSON.stringify(JSON.parse(json)))
      }),
    )
  })

  it("keeps keys named __proto__ and constructor as fields", () => {
    for (const more of ["", ',"n":12345678901234567890123']) {
      const value = read(`{"__proto__":{"x":1},"constructor":2${more}}`)
      expect(Object.keys(Object(value)).slice(0, 2)).toEqual(["__proto__", "constructor"])
      expect(Reflect.get(Object(value), "x")).toBe(undefined)
    }
  })

  it("[promise 11 twice] loses nothing where a key stands twice", () => {
    const twice = (...values: ReadonlyArray<string>) =>
      read(`{"k" : "a\\":b", ${values.map((value) => `"x"\n:${value}`).join(", ")}}`)
    const value = (x: unknown) => ({ k: 'a":b', x })
    expect(twice("1", "1", "1.0")).toEqual(value(1))
    expect(twice("1", "null", "2", "2")).toEqual(value([1, null, 2]))
    expect(twice('{"n":1}', '{"n":2}', "[3]")).toEqual(value([{ n: 1 }, { n: 2 }, [3]]))
    expect(twice("[1]", "[2,3]", "[1,2,3]", "4")).toEqual(value([[1, 2, 3], 4]))
    expect(read('{"__proto__":1,"__proto__":2}')).toEqual(JSON.parse('{"__proto__":[1,2]}'))
    expect(
      found(read(`{"a":[${jsonText(record(1))}],"a":[${jsonText(record(2))}],"b":{},"b":{}}`)).records,
    ).toEqual([
      ["data.a[0]", 1],
      ["data.a[1]", 2],
    ])
  })

  it("[promise 11 twice] keeps every value of any text, and reads one without repeated keys as JSON.parse does", () => {
    let leaf = 0
    const key = fc.constantFrom('"a"', '"b"', '"c\\":"', '"__proto__"')
    const { any } = fc.letrec<{ any: string; leaf: string; list: string; map: string }>((tie) => ({
      leaf: fc.constant("").map(() => `"<${leaf++}>"`),
      list: fc.array(tie("any"), { maxLength: 3 }).map((items) => `[${items.join(", ")}]`),
      map: fc
        .array(fc.tuple(key, tie("any")), { maxLength: 4 })
        .map((entries) => `{${entries.map(([name, value]) => `${name} :${value}`).join(",")}}`),
      any: fc.oneof({ maxDepth: 5 }, tie("leaf"), tie("list"), tie("map")),
    }))
    const leavesOf = (text: string) => text.match(/<\d+>/g)?.toSorted() ?? []
    fc.assert(
      fc.property(any, (text) => {
        expect(leavesOf(JSON.stringify(read(text)))).toEqual(leavesOf(text))
        const once = JSON.stringify(JSON.parse(text))
        expect(read(once)).toEqual(JSON.parse(once))
      }),
    )
  })

  it("reads a body of very many equal keys in time that grows with it", { timeout: 20_000 }, () => {
    const body = (values: ReadonlyArray<string>) => `{${values.map((value) => `"k":${value}`).join(",")}}`
    const big = `[${"7,".repeat(200_000)}7]`
    const many = Array.from({ length: 100_000 }, (_, at) => String(at % 7))
    expect(read(body([big, ...many]))).toEqual({ k: expect.anything() })
    expect(Object(read(body(many))).k).toHaveLength(100_000)
  })

  it("survives any nesting and keeps the digits in it", () => {
    const deep = `${'{"a":['.repeat(50_000)}9007199254740993${"]}".repeat(50_000)}`
    expect(jsonText(read(deep))).toBe(deep)
  })

  it("returns a reason that quotes nothing if a body is not JSON", () => {
    for (const text of ['{"a":"secret', "<html>", "[1,]", "\u0000", "nul"]) {
      expect(parseBody(Buffer.from(text))).toEqual({
        _tag: "UnreadableBody",
        reason: "the body is not JSON",
        breaksBound: false,
      })
    }
    expect(parseBody(new Uint8Array())).toEqual({
      _tag: "UnreadableBody",
      reason: "the body is empty",
      breaksBound: false,
    })
  })

  it("lets bytes that are not UTF-8 affect only their own string", () => {
    const bytes = Buffer.concat([Buffer.from('{"a":"x'), Buffer.from([0xff, 0xc3]), Buffer.from('","b":1}')])
    expect(parseBody(bytes)).toEqual({ _tag: "ReadableBody", value: { a: "x\ufffd\ufffd", b: 1 } })
  })
})

describe("jsonText", () => {
  it("does not hide what is wrong with a value", () => {
    const broken = {
      toJSON: () => {
        throw new TypeError("no text")
      },
    }
    expect(() => jsonText({ broken })).toThrow("no text")
  })

  it("replaces halves of surrogate pairs, which the database refuses, and nothing else", () => {
    expect(jsonText({ a: "\ud83d", b: "😀", c: "\\ud83d", d: "\\\ud83d" })).toBe(
      '{"a":"\\ufffd","b":"😀","c":"\\\\ud83d","d":"\\\\\\ufffd"}',
    )
  })
})
