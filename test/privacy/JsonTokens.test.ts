/** Tokens of a JSON text, however long one of them is. */
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import { cleanBody, jsonTokens } from "../../src/privacy/CleanBody.ts"
import { blanked, makeKnownSecrets } from "../../src/privacy/KnownSecrets.ts"

type Path = ReadonlyArray<string>
type Told = readonly [source: string, path: string, isKey: boolean]
const paths = { top: [] as Path, below: (outer: Path, key: string): Path => [...outer, key] }
const tokensOf = (text: string, skipped?: string): ReadonlyArray<Told> =>
  [...jsonTokens(text, paths, skipped)].map(({ from, to, around, isKey }) => [
    text.slice(from, to),
    around.join("."),
    isKey,
  ])

/** The same from the value that a parser made. */
const tokensIn = (value: unknown, path: Path = [], skipped?: string): ReadonlyArray<Told> => {
  if (Array.isArray(value)) return value.flatMap((item) => tokensIn(item, path))
  if (typeof value !== "object" || value === null) return [[JSON.stringify(value), path.join("."), false]]
  return Object.entries(value).flatMap(([key, inner]): ReadonlyArray<Told> =>
    key === skipped ? [] : [[JSON.stringify(key), path.join("."), true], ...tokensIn(inner, [...path, key])],
  )
}

describe("tokens of a JSON text", () => {
  it("are its strings, numbers and words, each with the keys around it", () => {
    expect(
      tokensOf('{"a" : [1,-2.5e+3,true,{},[],7],"b\\"\\\\":{"c":null}, "d":"x\\\\","a":{"":[[{"e":[]}]]}}\n'),
    ).toEqual([
      ['"a"', "", true],
      ["1", "a", false],
      ["-2.5e+3", "a", false],
      ["true", "a", false],
      ["7", "a", false],
      ['"b\\"\\\\"', "", true],
      ['"c"', 'b"\\', true],
      ["null", 'b"\\.c', false],
      ['"d"', "", true],
      ['"x\\\\"', "d", false],
      ['"a"', "", true],
      ['""', "a", true],
      ['"e"', "a.", true],
    ])
    expect([
      tokensOf(' ["x",[1] , {"y":2},3]'),
      tokensOf(" null"),
      tokensOf("-1"),
      tokensOf('"\\""'),
    ]).toEqual([
      [
        ['"x"', "", false],
        ["1", "", false],
        ['"y"', "", true],
        ["2", "y", false],
        ["3", "", false],
      ],
      [["null", "", false]],
      [["-1", "", false]],
      [['"\\""', "", false]],
    ])
  })

  it("are those of the parsed value, in any layout, with one top-level key left out", () => {
    const few = fc.dictionary(fc.constantFrom("data", "a", 'b"', "}"), fc.jsonValue({ maxDepth: 4 }))
    const layout = fc.constantFrom(0, 1, "\t", "\r\n ")
    fc.assert(
      fc.property(fc.oneof(fc.jsonValue(), few), layout, (value, indent) => {
        const text = JSON.stringify(value, null, indent)
        expect(tokensOf(text)).toEqual(tokensIn(JSON.parse(text)))
        expect(tokensOf(text, "data")).toEqual(tokensIn(JSON.parse(text), [], "data"))
      }),
      { numRuns: 300, seed: 4 },
    )
  })

  it("are never in the records, whatever those are", () => {
    for (const records of [
      '[{"a":"]},{"},[1]]',
      '{"b":{"data":1},"c":[2,3]}',
      '"x\\"},"',
      "12",
      " null",
      "[]",
      "{}",
    ])
      expect(
        tokensOf(`{"m":"k","data" : ${records} ,"n":{"data":7},"data":${records},"o":[2]}`, "data"),
      ).toEqual([
        ['"m"', "", true],
        ['"k"', "m", false],
        ['"n"', "", true],
        ['"data"', "n", true],
        ["7", "n.data", false],
        ['"o"', "", true],
        ["2", "o", false],
      ])
    expect([tokensOf('{"data":[1]}', "data"), tokensOf('[{"data":1}]', "data")]).toEqual([
      [],
      [
        ['"data"', "", true],
        ["1", "data", false],
      ],
    ])
    expect([tokensOf('{"data":[1,2', "data"), tokensOf('{"data":"1', "data")]).toEqual([[], []])
  })

  it("may be as long as a scanned document in base64", () => {
    const document = `"${"A".repeat(20_000_000)}"`
    const text = `{"data":[{"pdf":${document}}],"message":${document}}`
    expect([...jsonTokens(text, paths)].map(({ from, to }) => to - from)).toEqual([
      6, 5, 20_000_002, 9, 20_000_002,
    ])
  })
})

it("blanking handles a text of 4 MB, JSON or not", () => {
  const long = "A".repeat(4_000_000)
  const known = makeKnownSecrets()
  known.hold("hunter2!", "password")
  const json = Buffer.from(`{"message":"B${long} hunter2!","ticket":"${"C".repeat(long.length)}"}`)
  expect(Buffer.from(cleanBody(json, known)).toString()).toBe(
    `{"message":"B${long} ${blanked}","ticket":"${blanked}"}`,
  )
  const cut = Buffer.from(`{"ticket": "${long}`)
  expect(Buffer.from(cleanBody(cut, makeKnownSecrets())).toString()).toBe(`{"ticket": "${blanked}"`)
})
