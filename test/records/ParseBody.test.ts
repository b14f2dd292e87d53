import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import { jsonText } from "../../src/records/ExactNumber.ts"
import { parseBody } from "../../src/records/FindRecords.ts"

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
