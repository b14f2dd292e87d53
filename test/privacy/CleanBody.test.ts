import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { bodyBounds } from "../../src/service/BodyBounds.ts"
import { cleanBody, type Cleaning } from "../../src/privacy/CleanBody.ts"
import { makeKnownSecrets, type Grade, type KnownSecrets } from "../../src/privacy/KnownSecrets.ts"

const ofRecords: Cleaning = { records: "data" }
const encode = (text: string): Uint8Array => Buffer.from(text)
const holding = (secrets: ReadonlyArray<unknown>, grade: Grade = "password"): KnownSecrets => {
  const known = makeKnownSecrets()
  for (const secret of secrets) known.hold(secret, grade)
  return known
}
const cleaned = (text: string, secrets: ReadonlyArray<unknown>, cleaning: Cleaning = ofRecords): string =>
  Buffer.from(cleanBody(encode(text), holding(secrets), cleaning)).toString()

describe("an answer of the service", () => {
  it("loses only the JSON tokens that contain a secret [decision 3 blanking]", () => {
    const body = `{ "a" : 12345678901234567890.10, "a":1,
      "ticket" :"T-1", "session_token":null, "nested":[{"token_key":"K"}],
      "customer_id":"hunter22", "parameters_errors":[
        {"loc":["body","password"],"input":"hunter22","ctx":{"given":["is hunter22!",1234,12345],"hunter22":1},
         "msg":"\\u0068unter22 is too short","type":"x"}],
      "messages":[{"message":"login hunter22 refused","id":"hunter22"}],
      "data":{"ticket":"kept","msg":"hunter22","input":"hunter22"} }`
    assert.strictEqual(
      cleaned(body, ["hunter22", "1234", "x"]),
      `{ "a" : 12345678901234567890.10, "a":1,
      "ticket" :"[blanked]", "session_token":"[blanked]", "nested":[{"token_key":"[blanked]"}],
      "customer_id":"[blanked]", "parameters_errors":[
        {"loc":["body","password"],"input":"[blanked]","ctx":{"[blanked]":["[blanked]","[blanked]","[blanked]"],"[blanked] 2":"[blanked]"},
         "msg":"[blanked] is too short","type":"x"}],
      "messages":[{"message":"login [blanked] refused","id":"[blanked]"}],
      "data":{"ticket":"kept","msg":"hunter22","input":"hunter22"} }`,
    )
  })

  it("loses secrets in undocumented fields, in keys and as numbers", () => {
    assert.strictEqual(
      cleaned(
        '{"executions.extra":{"x hunter22":"a hunter22"},"locking_hash":"v1.hunter22","n":12345678,"loc":["hunter22"]}',
        ["hunter22", "12345678"],
      ),
      '{"executions.extra":{"x [blanked]":"a [blanked]"},"locking_hash":"v1.[blanked]","n":"[blanked]","loc":["[blanked]"]}',
    )
  })

  it("loses them however they are escaped, and however short they are", () => {
    const escaped = (text: string) =>
      [...text].map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`).join("")
    const body = (value: string) => `{"a":"${value}","date":"x\\/y","msg":"${value}"}`
    assert.strictEqual(cleaned(body(escaped("2#08!43")), ["2#08!43"]), body("[blanked]"))
    const secrets = ["~7^!2$", "1234\n5", "2345\r6", "3456\f7", "4567\b8", 'tab\tand "quote" and \\', "ñ"]
    for (const secret of secrets)
      for (const spelled of [escaped(secret), JSON.stringify(secret).slice(1, -1)])
        assert.strictEqual(
          cleaned(body(spelled), secrets),
          secret.length > 1 ? body("[blanked]") : body(spelled).replace(/"[^"]*"}$/, '"[blanked]"}'),
        )
    const short = Array.from({ length: 40 }, (_, n) => String(100 + n))
    for (const some of [short.slice(0, 5), short])
      assert.strictEqual(
        cleaned('{"msg":104,"input":"104"}', some),
        '{"msg":"[blanked]","input":"[blanked]"}',
      )
  })

  it("keeps two blanked keys distinct, so that no count hides another", () => {
    const body = '{"products_count":{"a:hunter22":3,"b:hunter22":0,"hunter22":1,"hunter22b":0}}'
    const { products_count } = JSON.parse(cleaned(body, ["hunter22", "hunter22b"]))
    assert.deepStrictEqual(products_count, {
      "a:[blanked]": 3,
      "b:[blanked] 2": 0,
      "[blanked] 3": 1,
      "[blanked] 4": 0,
    })
  })

  it("is returned byte for byte if it contains no secret", () => {
    const bytes = encode('{"data":{"x":"hunter22"},"is_closed":true}')
    assert.strictEqual(cleanBody(bytes, holding(["hunter22"]), ofRecords), bytes)
  })

  it("has the field of its records under that name, even if it is somebody's password", () => {
    const body = '{"hunter22":["hunter22"],"n":{"hunter22":1}}'
    assert.strictEqual(
      cleaned(body, ["hunter22"], { records: "hunter22" }),
      '{"hunter22":["hunter22"],"n":{"[blanked]":1}}',
    )
  })

  it("keeps its records, whatever its bytes begin with and however its names are encoded", () => {
    const body = `{"detail":"hunter22","data":[{"name":"José","value":"hunter22"}],"is_closed":true}`
    const kept = body.replace("hunter22", "[blanked]")
    for (const [arrived, expected] of [
      [Buffer.from(`\ufeff${body}`), Buffer.from(`\ufeff${kept}`)],
      [Buffer.from(body, "latin1"), Buffer.from(kept, "latin1")],
    ] as const)
      assert.deepStrictEqual(Buffer.from(cleanBody(arrived, holding(["hunter22"]), ofRecords)), expected)
  })

  it("that consists of records stays as it is, unless it is not JSON", () => {
    assert.strictEqual(cleaned('{"x":"hunter22"}', ["hunter22"], { records: "body" }), '{"x":"hunter22"}')
    assert.strictEqual(cleaned('{"x":"hunter22"', ["hunter22"], { records: "body" }), '{"x":"[blanked]"')
  })

  it("loses short values only as whole strings, and only where the service repeats what it was sent", () => {
    assert.strictEqual(
      cleaned('{"msg":"a b","input":"a","type":"a","date":"2026-11-20","at":2026,"msg":"PIN 2026"}', [
        "a",
        "2026",
      ]),
      '{"msg":"a b","input":"[blanked]","type":"a","date":"2026-11-20","at":2026,"msg":"PIN [blanked]"}',
    )
  })

  it("keeps ids, dates, documented words and the names that the job gives, whoever logs in with them", () => {
    const body = JSON.stringify({
      execution_id: "00000000-2026-1120-1980-123456781234",
      session_id: "12345678",
      customer_id: "c-0001",
      engine_reference: "bank:website",
      status_code: "COMPLETED",
      date_created: "1980-05-17T10:00:00Z",
      products_count: { "financial_account:checking@accounts": 3 },
      features: [{ code: "accounts_read", status_reason: "FEATURE_COMPLETED" }],
      messages: [{ type: "error", loc: ["password"] }],
    })
    const known = holding([
      "12345678",
      "c-0001",
      "bank:website",
      "COMPLETED",
      "1980-05-17",
      "accounts",
      "financial_account",
      "accounts_read",
      "password",
      "status_code",
    ])
    known.name(["c-0001", "bank:website", "password"])
    const bytes = encode(body)
    assert.strictEqual(cleanBody(bytes, known), bytes)
  })

  it("shows in an id only what cannot be distinguished from an id, never the application secret", () => {
    const ids = (id: string) => JSON.stringify({ execution_id: id })
    const known = holding(["app-secret-77"], "process")
    for (const id of ["app-secret-77", `x-${Buffer.from("app-secret-77").toString("hex")}`])
      assert.match(Buffer.from(cleanBody(encode(ids(id)), known)).toString(), /\[blanked\]/)
  })

  it("that is a form keeps its choices, whatever a customer chose, and no password", () => {
    const form = '{"enum":["particulares","hunter22"],"default":"hunter22","title":"2026"}'
    const known = holding(["hunter22"])
    known.hold("particulares", "login")
    assert.strictEqual(
      Buffer.from(cleanBody(encode(form), known, { place: "own" })).toString(),
      '{"enum":["particulares","[blanked]"],"default":"[blanked]","title":"2026"}',
    )
  })

  it("that is not JSON is searched as text, and keeps all other bytes", () => {
    const cut = Buffer.concat([
      Buffer.from('{"ticket":"T-1\\"2","msg":"señor pa55 '),
      Buffer.from([0xff, 0xc3]),
    ])
    assert.deepStrictEqual(
      Buffer.from(cleanBody(cut, holding(["señor pa55"]))),
      Buffer.concat([Buffer.from('{"ticket":"[blanked]","msg":"[blanked] '), Buffer.from([0xff, 0xc3])]),
    )
  })

  it("that is not JSON loses the values of secret fields, and stays the same bytes without any", () => {
    const shown = (text: string) => cleaned(text, ["hunter22"])
    assert.deepStrictEqual(
      [
        '"ticket": 12345, "session_token":true} "token_key" \t: "x',
        '"ticket":{"a":"b"} "ticket": [ "ticket"',
        '"ticket":"ticket":"x\\\\" y"',
        '"ticket":"a\\"ticket":7]',
        '"token_key":!a!1 b',
        '{"ticket":',
        '"ticket" "x"',
      ].map(shown),
      [
        '"ticket": "[blanked]", "session_token":"[blanked]"} "token_key" \t: "[blanked]"',
        '"ticket":{"a":"b"} "ticket": [ "ticket"',
        '"ticket":"[blanked]":"[blanked]" y"',
        '"ticket":"[blanked]":"[blanked]"]',
        '"token_key":"[blanked]" b',
        '{"ticket":',
        '"ticket" "x"',
      ],
    )
    const bytes = Buffer.from([0x61, 0xff, 0x62])
    assert.strictEqual(cleanBody(bytes, holding(["hunter22"])), bytes)
  })

  it("is read as JSON with a byte order mark too, and if it is not UTF-8, unless it breaks a bound", () => {
    const known = holding(["hunter22", "1a2b3"])
    const said = String.raw`{"x":"\u0068unter22 1a2b3"}`
    // In a text that is no JSON, a short secret counts inside of others too.
    const [json, text] = [`{"x":"[blanked] 1a2b3"}`, `{"x":"[blanked] [blanked]"}`]
    const shown = (bytes: Uint8Array, given?: string) => Buffer.from(cleanBody(bytes, known, { text: given }))
    assert.strictEqual(shown(Buffer.from(said)).toString(), json)
    assert.strictEqual(shown(Buffer.from(said), said).toString(), json)
    const marked = Buffer.from(`\ufeff${said}`)
    assert.deepStrictEqual(
      [shown(marked), shown(marked, said)],
      [Buffer.from(`\ufeff${json}`), Buffer.from(`\ufeff${json}`)],
    )
    // A second mark is not JSON for anybody.
    assert.deepStrictEqual(shown(Buffer.from(`\ufeff\ufeff${said}`)), Buffer.from(`\ufeff\ufeff${text}`))
    const replaced = Buffer.from(said.replace('"}', String.raw`ÿ\u20ac"}`), "latin1")
    const kept = Buffer.from(json.replace('"}', String.raw`ÿ\u20ac"}`), "latin1")
    assert.deepStrictEqual([shown(replaced), shown(replaced, replaced.toString())], [kept, kept])
    const depth = bodyBounds.depthMax + 1
    const around = (inner: string) => `${"[".repeat(depth)}${inner}${"]".repeat(depth)}`
    assert.isTrue(shown(Buffer.from(around(said))).equals(Buffer.from(around(text))))
    // Somebody has parsed it: it is not measured again.
    assert.isTrue(shown(Buffer.from(around(said)), around(said)).equals(Buffer.from(around(json))))
  })

  it("contains no form of a secret outside its records, whatever it is and wherever it is [promise 12 landing] [decision 3 blanking]", () => {
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
              unheard_of: { [echo]: [echo] },
              status_reason: echo,
            }
            const json = JSON.stringify(value, null, pretty ? 1 : 0)
            const shown = cleaned(isJson ? json : `<p>${echo}</p>${json.slice(0, -2)}`, [secret])
            const decoded = isJson ? JSON.stringify(JSON.parse(shown)) : shown
            assert.notInclude(decoded, form)
            assert.notInclude(decoded, JSON.stringify(form).slice(1, -1))
            if (isJson) assert.strictEqual(JSON.parse(shown).n, 1)
          }
        },
      ),
      { numRuns: 150, seed: 12 },
    )
  })

  it("may be nested twenty thousand levels deep", () => {
    const deep = `${'{"msg":['.repeat(20_000)}"hunter22"${"]}".repeat(20_000)}`
    assert.strictEqual(cleaned(deep, ["hunter22"]), deep.replace("hunter22", "[blanked]"))
  })
})
