/** Patterns in linear time: the answers of the language's own; what cannot be matched so is named and refuses nobody. */
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import { comparedMax, linearPattern } from "../../src/client/CompiledForm.ts"

const compiled = (pattern: string) => {
  const warnings: Array<string> = []
  const { test } = linearPattern(pattern, (message) => warnings.push(message))
  return { test, warnings }
}
const native = (pattern: string): RegExp => {
  try {
    return new RegExp(pattern, "u")
  } catch {
    return new RegExp(pattern)
  }
}

const atoms = fc.constantFrom(
  ..."a,b,.,\\d,\\D,\\w,\\W,\\s,\\S,\\b,\\B,\\t,\\n,\\cJ,\\x41,\\u00e9,\\u{1F600},\\uD83D\\uDE00,\\0,\\/,\\.,é,😀".split(
    ",",
  ),
  ..."[a-c],[^a-c],[\\s-x],[\\w.-],[\\]\\\\^-],[^\\S],[\\b],[[:alpha:]],[],[^],\\p{Lu},\\P{L},[^\\p{Script=Greek}]".split(
    ",",
  ),
)
const pattern: fc.Arbitrary<string> = fc.letrec<{ all: string; group: string }>((tie) => ({
  group: fc.oneof(
    atoms,
    fc.tuple(fc.constantFrom("(", "(?:", "(?<n>"), tie("all")).map(([open, inner]) => `${open}${inner})`),
  ),
  all: fc
    .array(fc.tuple(tie("group"), fc.constantFrom("", "", "", "*", "+?", "?", "{2}", "{1,}", "{0,2}", "|")), {
      maxLength: 4,
    })
    .map((parts) => parts.map(([one, sign]) => one + sign).join("")),
})).all
const text = fc
  .array(
    fc.constantFrom(
      ..."a,b,c,A,x,é,É,α,😀,1,_,-,.,/,[,],^,\n,\r,\t,\u2028,\u00a0,\ufeff,\b,\0, ,:".split(","),
    ),
  )
  .map((signs) => signs.join(""))

describe("patterns", () => {
  it("match what the language's own regular expressions match", () => {
    fc.assert(
      fc.property(pattern, fc.boolean(), fc.boolean(), text, (inner, starts, ends, value) => {
        const whole = `${starts ? "^" : ""}${inner}${ends ? "$" : ""}`
        let expected: boolean
        try {
          expected = new RegExp(whole, "u").test(value)
        } catch {
          return
        }
        const { test, warnings } = compiled(whole)
        expect([whole, value, warnings, test(value)]).toEqual([whole, value, [], expected])
      }),
      { numRuns: 1_000 },
    )
  })

  it("mean the same characters, sign by sign", () => {
    const codes = [
      ...Array.from({ length: 0x180 }, (_, code) => code),
      ...Array.from({ length: 0x70 }, (_, offset) => 0x1fff + offset),
    ]
    const rare = [0x167f, 0x1680, 0x1681, 0x2fff, 0x3000, 0x3001, 0xfefe, 0xfeff, 0xff00, 0x1f600, 0x10ffff]
    const characters = [...codes, ...rare].map((code) => String.fromCodePoint(code))
    const signs = String.raw`. \s \S [\s] [\S] [^\s] [^\S] \w \W \d \D [\b-\r] \p{Lu}`.split(" ")
    for (const sign of signs) {
      const { test, warnings } = compiled(`^${sign}$`)
      const expected = characters.filter((one) => native(`^${sign}$`).test(one))
      expect([sign, warnings, characters.filter(test)]).toEqual([sign, [], expected])
    }
  })

  it("read the signs of older patterns as those patterns mean them", () => {
    const texts = ["", "a\n", ...String.raw`a A -x a{,3} Aa { ] \ [w-a] - w Qa _ e`.split(" ")]
    for (const old of String.raw`^\-x$ \Aa a{,3} [\w-a] { ] \Qa \_ \e a{x} ^a$`.split(" ")) {
      const found = texts.filter(compiled(old).test)
      expect([old, found]).toEqual([old, texts.filter((one) => native(old).test(one))])
    }
  })

  it("take time that grows only with the text, even if backtracking would never end", () => {
    const endless = ["^(a+)+$", "^(a|aa)+$", `${".?".repeat(40)}x{40}`, "^((a{1,30}){1,30})+b$", "(.*)*b"]
    const value = `${"a".repeat(comparedMax - 1)}!`
    const started = performance.now()
    expect(endless.map((one) => compiled(one).test(value))).toEqual(endless.map(() => false))
    expect(performance.now() - started).toBeLessThan(10_000)
  })

  it("that cannot be matched in linear time are named once, and accept", () => {
    const refused = {
      "(?=.*\\d).{8,}": "it uses lookahead or lookbehind",
      "(?<!a)b": "it uses lookahead or lookbehind",
      "(a)\\1": "it uses a backreference",
      "(?<n>a)\\k<n>": "it uses a backreference",
      "(?i:a)b": "it changes its flags inside the pattern",
      "\\p{Alphabetic}": "it uses an unknown character property",
      "^(((a{1,30}){1,30}){1,30}){1,30}$": "it repeats too often",
      ".{1,4000}": "it repeats too often or uses a name that is not known",
      "(": "it is not a regular expression",
    }
    for (const [one, why] of Object.entries(refused)) {
      const { test, warnings } = compiled(one)
      expect([test("a"), test(""), warnings]).toEqual([
        true,
        true,
        [`the pattern \`${one}\` of this form is not checked: ${why}`],
      ])
    }
    const long = compiled(`\u001b[2J${"a".repeat(3_000)}`)
    expect(long.warnings).toEqual([
      `the pattern \`?[2J${"a".repeat(32)}… [cut: 3004 characters]\` of this form is not checked: it is longer than 2000 characters`,
    ])
  })

  it("are not matched against values that no login field has", () => {
    const { test } = compiled("^a$")
    expect([test("b".repeat(comparedMax)), test("b".repeat(comparedMax + 1))]).toEqual([false, true])
  })
})
