import { assert, describe, it } from "@effect/vitest"
import { Redacted } from "effect"
import fc from "fast-check"
import { blank } from "../../src/landing/Blanking.ts"

const encode = (text: string): Uint8Array => Buffer.from(text)
const blankedText = (
  text: string,
  secrets: ReadonlyArray<string>,
  kind: "start" | "results" = "start",
): string => Buffer.from(blank(encode(text), kind, secrets)).toString()

describe("blank", () => {
  it("rewrites only the tokens that hold a secret [decision 3 blanking]", () => {
    const body = `{ "a" : 12345678901234567890.10, "a":1,
      "ticket" :"T-1", "session_token":null, "nested":[{"token_key":"K"}],
      "customer_id":"hunter22", "parameters_errors":[
        {"loc":["body","password"],"input":"hunter22","ctx":{"given":["is hunter22!",1234,12345],"hunter22":1},
         "msg":"\\u0068unter22 is too short","type":"x"}],
      "messages":[{"message":"login hunter22 refused","id":"hunter22"}],
      "data":{"ticket":"kept","msg":"hunter22","input":"hunter22"} }`
    assert.strictEqual(
      blankedText(body, ["hunter22", "1234", "x"]),
      `{ "a" : 12345678901234567890.10, "a":1,
      "ticket" :"[blanked]", "session_token":"[blanked]", "nested":[{"token_key":"[blanked]"}],
      "customer_id":"hunter22", "parameters_errors":[
        {"loc":["body","password"],"input":"[blanked]","ctx":{"given":["is [blanked]!","[blanked]","12345"],"[blanked]":1},
         "msg":"[blanked] is too short","type":"x"}],
      "messages":[{"message":"login [blanked] refused","id":"hunter22"}],
      "data":{"ticket":"kept","msg":"hunter22","input":"hunter22"} }`.replace('"12345"', "12345"),
    )
  })

  it("returns the very bytes of a body that holds nothing secret", () => {
    const bytes = encode('{"data":{"x":"hunter22"},"is_closed":true}')
    assert.strictEqual(blank(bytes, "results", [Redacted.make("hunter22")]), bytes)
  })

  it("takes short values only as whole strings", () => {
    assert.strictEqual(blankedText('{"msg":"a b","input":"a"}', ["a"]), '{"msg":"a b","input":"[blanked]"}')
  })

  it("searches a body that is no JSON as text, keeping all other bytes", () => {
    const cut = Buffer.concat([
      Buffer.from('{"ticket":"T-1\\"2","msg":"señor pa55 '),
      Buffer.from([0xff, 0xc3]),
    ])
    assert.deepStrictEqual(
      Buffer.from(blank(cut, "start", ["señor pa55"])),
      Buffer.concat([Buffer.from('{"ticket":"[blanked]","msg":"[blanked] '), Buffer.from([0xff, 0xc3])]),
    )
  })

  it("leaves no form of a secret outside data, whatever it is and wherever it stands [promise 12 landing] [decision 3 blanking]", () => {
    const forms = (secret: string): ReadonlyArray<string> => [
      secret,
      encodeURIComponent(secret),
      Buffer.from(secret).toString("base64"),
      Buffer.from(secret).toString("hex"),
      Buffer.from(secret).toString("hex").toUpperCase(),
    ]
    const secrets = fc.string({ unit: "grapheme", minLength: 6, maxLength: 24 }).map((text) => `€${text}¡`)
    const around = fc.string({ unit: "grapheme", maxLength: 12 })
    fc.assert(
      fc.property(
        secrets,
        around,
        around,
        fc.boolean(),
        fc.boolean(),
        (secret, before, after, isJson, pretty) => {
          for (const form of forms(secret)) {
            const echo = `${before}${form}${after}`
            const value = {
              n: 1,
              detail: [{ input: echo, ctx: { [echo]: { deep: [echo] } }, msg: echo }],
              message: echo,
            }
            const json = JSON.stringify(value, null, pretty ? 1 : 0)
            const shown = blankedText(isJson ? json : `<p>${echo}</p>${json.slice(0, -2)}`, [secret])
            const decoded = isJson ? JSON.stringify(JSON.parse(shown)) : shown
            assert.notInclude(decoded, form)
            assert.notInclude(decoded, JSON.stringify(form).slice(1, -1))
            if (isJson) assert.strictEqual(JSON.parse(shown).n, 1)
          }
        },
      ),
      { numRuns: 1_000, seed: 12 },
    )
  })

  it("survives a body nested twenty thousand levels deep", () => {
    const deep = `${'{"msg":['.repeat(20_000)}"hunter22"${"]}".repeat(20_000)}`
    assert.strictEqual(blankedText(deep, ["hunter22"]), deep.replace("hunter22", "[blanked]"))
  })
})
