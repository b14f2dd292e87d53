import { assert, describe, it } from "@effect/vitest"
import { Redacted } from "effect"
import fc from "fast-check"
import { makeKnownSecrets } from "../../src/secrets/KnownSecrets.ts"
import type { Grade, Place } from "../../src/secrets/KnownSecrets.ts"

const holding = (secrets: ReadonlyArray<unknown>, grade: Grade = "password") => {
  const known = makeKnownSecrets()
  for (const secret of secrets) known.hold(secret, grade)
  return (text: string, place: Place = "free") => known.clean(text, place)
}
const base64 = (text: string) => Buffer.from(text).toString("base64")

describe("a known secret", () => {
  const secret = "jot/K~ñ+\"z'9&<é"
  const clean = holding([Redacted.make(secret)])
  const spelled: Readonly<Record<string, string>> = {
    "as it is": secret,
    "in capitals": "JOT/K~ñ+\"Z'9&<é",
    "in JSON": JSON.stringify(secret).slice(1, -1),
    "in JSON of plain ASCII": "jot/K~\\u00f1+\\\"z'9&<\\u00e9",
    "in JSON with escaped slashes": JSON.stringify(secret).slice(1, -1).replaceAll("/", "\\/"),
    "in HTML": "jot/K~ñ+&quot;z&#39;9&amp;&lt;é",
    "in a URL": encodeURIComponent(secret),
    "in a URL, in lower case": encodeURIComponent(secret).toLowerCase(),
    "in a form": new URLSearchParams({ a: secret }).toString().slice(2),
    "in a URL, every byte": Buffer.from(secret).toString("hex").replaceAll(/../g, "%$&"),
    "in base64": base64(secret),
    "in base64 without its end": base64(secret).replaceAll("=", ""),
    "in base64 for URLs": Buffer.from(secret).toString("base64url"),
    "in hexadecimal": Buffer.from(secret).toString("hex"),
    "in hexadecimal capitals": Buffer.from(secret).toString("hex").toUpperCase(),
    "in bytes read one by one": Buffer.from(secret).toString("latin1"),
  }
  for (const [how, text] of Object.entries(spelled))
    it(`is blanked if it is ${how}`, () => {
      assert.strictEqual(clean(`a "${text}" b`), 'a "[blanked]" b')
    })

  it("is blanked wherever it begins in a base64 text, as in user:password", () => {
    for (const user of ["u", "us", "use", "user", "user:", "somebody@example.org:"])
      for (const after of ["", ":x", "yz", "\n"]) {
        const text = base64(`${user}${secret}${after}`)
        const shown = clean(`Basic ${text}`)
        assert.include(shown, "[blanked]")
        const rest = Buffer.from(shown.replace(/^Basic /, "").split("[blanked]")[1] ?? "", "base64")
        assert.isBelow(rest.length, 4)
        assert.notInclude(Buffer.from(shown.slice(6), "base64").toString(), secret.slice(3))
      }
  })

  it("is found among others that begin alike, inside and overlapping each other, and nothing of any is left [promise 12 lengths]", () => {
    const several = holding(["abcdefgh", "abcdefghij", "ghijklmnop", "bcdefghijk", "xyzxyz"])
    assert.strictEqual(several("1abcdefgh2"), "1[blanked]2")
    assert.strictEqual(several("1abcdefghij2"), "1[blanked]2")
    assert.strictEqual(several("1abcdefghijklmnop2"), "1[blanked]2")
    assert.strictEqual(several("xyzxyzxyz-abcdefghxyzxyz"), "[blanked]-[blanked]")
  })

  it("is of any length, and found to its last character only", () => {
    const long = `-----BEGIN KEY-----\n${"MIIC".repeat(2_000)}`
    const found = holding([long])
    assert.strictEqual(found(`x${long}x`), "x[blanked]x")
    assert.strictEqual(found(long.slice(0, -1)), long.slice(0, -1))
  })

  it("in lists and mappings is registered one by one; true, false and nothing are not secrets", () => {
    const known = holding([{ a: ["hunter22", { b: 87654321 }], c: true, d: "", e: null }])
    assert.strictEqual(known("hunter22 87654321 true"), "[blanked] [blanked] true")
  })

  it("that is a number is not found inside a longer number", () => {
    const known = holding(["12345678"])
    assert.strictEqual(
      known("12345678 112345678 123456789 x12345678x"),
      "[blanked] 112345678 123456789 x[blanked]x",
    )
  })
})

describe("where a secret counts", () => {
  const places: ReadonlyArray<Place> = ["echo", "free", "word", "own", "id"]
  const where = (secret: string, text: string, grade: Grade) => {
    const clean = holding([secret], grade)
    return places.filter((place) => clean(text, place) !== text)
  }
  const rows: ReadonlyArray<readonly [string, string, string, Grade, ReadonlyArray<Place>]> = [
    [
      "a long password inside a text",
      "hunter22",
      "x hunter22 y",
      "password",
      ["echo", "free", "word", "own"],
    ],
    ["a long user name inside a text", "maria.77", "x maria.77 y", "login", ["echo", "free", "word"]],
    ["a plain word inside a text", "personal", "personal_data:x", "password", ["echo", "free"]],
    ["a plain word as the whole text", "personal", "personal", "password", ["echo", "free", "word"]],
    ["a PIN inside a text", "2026", "run.2026-11-20", "password", ["echo"]],
    ["a PIN as the whole text", "2026", "2026", "password", ["echo", "free", "word", "own"]],
    ["a letter as the whole text", "P", "P", "password", ["echo"]],
    ["the application secret inside a text", "appsecretword", "x-appsecretword", "process", places],
    ["a documented word", "INCORRECT_CREDENTIALS", "INCORRECT_CREDENTIALS", "process", []],
    ["a documented field", "products_count", "a products_count", "password", []],
  ]
  for (const [what, secret, text, grade, expected] of rows)
    it(`${what}: ${expected.join(", ") || "nowhere"}`, () => {
      assert.deepStrictEqual(where(secret, text, grade), expected)
    })

  it("a name of the job counts nowhere, and of two grades the highest counts", () => {
    const known = makeKnownSecrets()
    known.hold("customer-77", "process")
    known.hold("customer-99", "login")
    known.hold("customer-99", "process")
    known.name(["customer-77"])
    assert.strictEqual(known.clean("customer-77 customer-99", "own"), "customer-77 [blanked]")
  })

  it("no UUID and no hexadecimal id is ever changed by customers' values", () => {
    const known = makeKnownSecrets()
    for (let digits = 10_000_000; digits < 10_020_000; digits++) known.hold(String(digits), "password")
    fc.assert(
      fc.property(fc.uuid(), fc.integer({ min: 10_000_000, max: 10_019_999 }), (uuid, digits) => {
        const id = `${digits}${uuid.slice(8)}`
        assert.strictEqual(known.clean(id, "id"), id)
      }),
      { numRuns: 500, seed: 3 },
    )
  })
})
