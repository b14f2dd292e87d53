import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import fc from "fast-check"
import { KnownSecrets, leavesOf, makeKnownSecrets, processSecrets } from "../../src/privacy/KnownSecrets.ts"
import type { Grade, Place } from "../../src/privacy/KnownSecrets.ts"

const holding = (secrets: ReadonlyArray<unknown>, grade: Grade = "password") => {
  const known = makeKnownSecrets()
  for (const secret of secrets) known.hold(secret, grade)
  return (text: string, place: Place = "free") => known.clean(text, place)
}
const base64 = (text: string) => Buffer.from(text).toString("base64")

describe("a known secret", () => {
  it("is found among others that begin alike, inside and overlapping each other, and nothing of any is left [promise 12 lengths]", () => {
    const several = holding(["abcdefgh", "abcdefghij", "ghijklmnop", "bcdefghijk", "xyzxyz"])
    assert.strictEqual(several("1abcdefgh2"), "1[blanked]2")
    assert.strictEqual(several("1abcdefghij2"), "1[blanked]2")
    assert.strictEqual(several("1abcdefghijklmnop2"), "1[blanked]2")
    assert.strictEqual(several("xyzxyzxyz-abcdefghxyzxyz"), "[blanked]-[blanked]")
  })

  it("is of any length, and found to its last character only", () => {
    const long = `-----BEGIN KEY-----\n${"MIIC".repeat(2_000)}`
    const found = holding([Redacted.make(long)])
    assert.strictEqual(found(`x${long}x`), "x[blanked]x")
    assert.strictEqual(found(long.slice(0, -1)), long.slice(0, -1))
  })

  it("in lists and mappings is registered one by one; true, false and nothing are not secrets", () => {
    const deep = Array.from({ length: 60 }).reduce<unknown>((inner) => ({ a: [inner] }), "deep-down-7")
    const known = holding([
      { a: ["hunter22", { b: 87654321, c: 12345678901234567890n }], c: true, d: "", e: null },
      [deep, " TRUE\n", "false", "  ", undefined, "untrue", "trues"],
    ])
    assert.strictEqual(
      known("hunter22 87654321 12345678901234567890 deep-down-7", "echo"),
      "[blanked] [blanked] [blanked] [blanked]",
    )
    for (const word of ["true", " TRUE\n", "false", "  ", "null", "undefined", ""])
      assert.strictEqual(known(word, "echo"), word)
    assert.deepStrictEqual(leavesOf([" True ", "", null, undefined, false, { a: () => 1, b: 2 }, "trues"]), [
      "2",
      "trues",
    ])
    for (const word of ["untrue", "trues"]) assert.strictEqual(known(word, "echo"), "[blanked]")
  })
})

it.effect("the registry is the one of the process where nobody gives another", () =>
  Effect.map(KnownSecrets, (known) => assert.strictEqual(known, processSecrets)),
)

describe("where a secret counts", () => {
  const places: ReadonlyArray<Place> = ["echo", "free", "word", "own", "id"]
  const where = (secret: string, text: string, grade: Grade) => {
    const clean = holding([secret], grade)
    return places.filter((place) => clean(text, place) !== text)
  }
  /** Of a password: everywhere but in ids; of a login: where the program's own words are not. */
  const [most, said, echo]: ReadonlyArray<ReadonlyArray<Place>> = [
    ["echo", "free", "word", "own"],
    ["echo", "free", "word"],
    ["echo"],
  ]
  const loose: ReadonlyArray<Place> = ["echo", "free"]
  const cases: ReadonlyArray<readonly [string, string, string, Grade, ReadonlyArray<Place> | undefined]> = [
    ["a long password inside a text", "hunter22", "x hunter22 y", "password", most],
    ["three characters inside a text", "1a2", "x 1a2 y", "password", []],
    ["three characters as the whole text", "1a2", "1a2", "password", echo],
    ["four characters inside a text", "1a2b", "x 1a2b y", "password", echo],
    ["four characters as the whole text", "1a2b", "1a2b", "password", most],
    ["five characters inside a text", "1a2b3", "x 1a2b3 y", "password", echo],
    ["six characters inside a text", "1a2b3c", "x 1a2b3c y", "password", most],
    ["seven digits inside a text", "1234567", "x 1234567 y", "password", echo],
    ["eight digits inside a text", "12345678", "x 12345678 y", "password", most],
    ["a long user name inside a text", "maria.77", "x maria.77 y", "login", said],
    ["a user name as the whole text", "ma77", "ma77", "login", said],
    ["a user name in base64", "maria.77", `x ${base64("maria.77")}`, "login", said],
    ["a plain word inside a text", "personal", "personal_data:x", "password", loose],
    ["a plain word as the whole text", "personal", "personal", "password", said],
    ["a plain word in base64", "personal", `x ${base64("personal")}`, "password", most],
    ["a plain word inside of base64", "personal", `x ${base64("u:personal!")}`, "password", most],
    ["words with every joint", "My_data:x@y.z a-b", "a My_data:x@y.z a-b", "password", loose],
    ["a word with a digit", "personal1", "a personal1", "password", most],
    ["a PIN inside a text", "2026", "run.2026-11-20", "password", echo],
    ["a PIN as the whole text", "2026", "2026", "password", most],
    ["a letter as the whole text", "P", "P", "password", echo],
    ["a key of three letters as the whole text", "abc", "abc", "process", echo],
    ["a key of letters as the whole text", "abcd", "abcd", "process", most],
    ["the application secret inside a text", "appsecretword", "x-appsecretword", "process", places],
    ["the application secret as the whole text", "appsecretword", "appsecretword", "process", places],
    ["a key of eleven letters", "gppsecretwo", "x-gppsecretwo", "process", most],
    ["a key of twelve letters", "gppsecretwor", "x-gppsecretwor", "process", places],
    ["a long password", "hunter22hunter", "x-hunter22hunter", "password", places],
    ["a long password of letters", "hunterhunter", "x-hunterhunter", "password", loose],
    ["a long user name", "maria.77.maria", "x-maria.77.maria", "login", said],
    ["a key of 23 hex signs", "0123456789-abcdef-01234", "x-0123456789-abcdef-01234", "process", most],
    ["a key of 24 of them", "0123456789-abcdef-012345", "x-0123456789-abcdef-012345", "process", places],
    ["a documented word", "INCORRECT_CREDENTIALS", "INCORRECT_CREDENTIALS", "process", []],
    ["a documented field", "products_count", "a products_count", "password", []],
  ]
  it("depends on its kind, its length and what it is made of", () => {
    assert.deepStrictEqual(
      cases.map(([what, secret, text, grade]) => [what, where(secret, text, grade)]),
      cases.map(([what, , , , expected]) => [what, expected]),
    )
  })

  it("a name of the job counts nowhere, nor does a documented word that contains it", () => {
    const known = makeKnownSecrets()
    known.hold(["customer-77", "customer-99", "bank:web", "INCORRECT_C"], "process")
    known.name(["customer-77", "bank:website"])
    assert.strictEqual(known.clean("customer-77 customer-99", "own"), "customer-77 [blanked]")
    assert.strictEqual(known.clean("customer-77", "echo"), "customer-77")
    assert.strictEqual(known.clean("bank:website", "echo"), "bank:website")
    assert.strictEqual(known.clean("INCORRECT_CREDENTIALS", "echo"), "INCORRECT_CREDENTIALS")
    assert.strictEqual(known.clean("bank:website INCORRECT_C", "own"), "[blanked]site [blanked]")
  })

  it("the highest of two grades counts, whichever comes first", () => {
    const grades = ["login", "password", "process"] as const
    for (const [rank, highest] of grades.entries())
      for (const other of grades.slice(0, rank + 1))
        for (const held of [
          [highest, other],
          [other, highest],
        ]) {
          const known = makeKnownSecrets()
          const alone = makeKnownSecrets()
          for (const secret of ["maria.77", "personalword", "1a2b"]) {
            alone.hold(secret, highest)
            for (const grade of held) known.hold(secret, grade)
          }
          for (const text of ["a maria.77", "a personalword", "maria.77", "personalword", "1a2b"])
            assert.deepStrictEqual(
              places.map((place) => known.clean(text, place)),
              places.map((place) => alone.clean(text, place)),
            )
        }
  })

  it("a number counts as a whole, with a fraction of nothing too, long ones everywhere, short ones where the service repeats", () => {
    const known = makeKnownSecrets()
    known.hold(["1234", "1234567", 8500, "12345678", "87654321", "-12345.5", "1e3"], "password")
    known.hold("33333333", "login")
    known.name(["87654321"])
    const shown: Readonly<Record<string, ReadonlyArray<Place> | undefined>> = {
      "1234": echo,
      "1234567": echo,
      "12345678": most,
      "12345678.0": most,
      "87654321": [],
      "-12345.5": echo,
      "1e3": echo,
      "33333333": said,
      "123456789": [],
      "8500.0": echo,
      "8500.00": echo,
      "8500.01": [],
      "8500.": [],
    }
    const found = Object.keys(shown).map((number) => [
      number,
      places.filter((place) => known.isSecretNumber(number, place)),
    ])
    assert.deepStrictEqual(Object.fromEntries(found), shown)
  })

  it("no UUID and no hexadecimal id is ever changed by customers' values", () => {
    const known = makeKnownSecrets()
    for (let digits = 10_000_000; digits < 10_002_000; digits++) known.hold(String(digits), "password")
    fc.assert(
      fc.property(fc.uuid(), fc.integer({ min: 10_000_000, max: 10_001_999 }), (uuid, digits) => {
        const id = `${digits}${uuid.slice(8)}`
        assert.strictEqual(known.clean(id, "id"), id)
      }),
      { numRuns: 500, seed: 3 },
    )
  })
})
