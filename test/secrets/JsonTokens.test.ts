/** Tokens of a JSON text, however long one of them is. */
import { describe, expect, it } from "vitest"
import { cleanBody } from "../../src/secrets/CleanBody.ts"
import { jsonTokens } from "../../src/secrets/JsonTokens.ts"
import { blanked, makeKnownSecrets } from "../../src/secrets/KnownSecrets.ts"

const tokensOf = (text: string) =>
  [...jsonTokens(text)].map(({ from, to, path, isKey }) => [text.slice(from, to), path.join("."), isKey])

describe("tokens of a JSON text", () => {
  it("are its strings, numbers and words, each with the keys around it", () => {
    expect(tokensOf('{"a" : [1,-2.5e+3,true],"b\\"\\\\":{"c":null}, "d":"x\\\\"}\n')).toEqual([
      ['"a"', "a", true],
      ["1", "a", false],
      ["-2.5e+3", "a", false],
      ["true", "a", false],
      ['"b\\"\\\\"', 'b"\\', true],
      ['"c"', 'b"\\.c', true],
      ["null", 'b"\\.c', false],
      ['"d"', "d", true],
      ['"x\\\\"', "d", false],
    ])
  })

  it("are never in the records, whatever those are", () => {
    for (const records of ['[{"a":"]}"},[1]]', '{"b":{"data":1}}', '"x\\"}"', "12", " null", "[]"]) {
      const tokens = [...jsonTokens(`{"m":"k","data" : ${records} ,"n":{"data":7},"o":2}`, "data")]
      expect(tokens.map(({ path, isKey }) => (isKey ? path.join(".") : ""))).toEqual([
        "m",
        "",
        "data",
        "n",
        "n.data",
        "",
        "o",
        "",
      ])
    }
  })

  it("may be as long as a scanned document in base64", () => {
    const document = `"${"A".repeat(20_000_000)}"`
    const text = `{"data":[{"pdf":${document}}],"message":${document}}`
    expect([...jsonTokens(text)].map(({ from, to }) => to - from)).toEqual([6, 5, 20_000_002, 9, 20_000_002])
  })
})

describe("blanking", () => {
  it("handles a text of 20 MB, JSON or not", () => {
    const long = "A".repeat(20_000_000)
    const known = makeKnownSecrets()
    known.hold("hunter2!", "password")
    const json = Buffer.from(`{"message":"B${long} hunter2!","ticket":"${"C".repeat(long.length)}"}`)
    expect(Buffer.from(cleanBody(json, known)).toString()).toBe(
      `{"message":"B${long} ${blanked}","ticket":"${blanked}"}`,
    )
    const cut = Buffer.from(`{"ticket": "${long}`)
    expect(Buffer.from(cleanBody(cut, makeKnownSecrets())).toString()).toBe(`{"ticket": "${blanked}"`)
  })
})
