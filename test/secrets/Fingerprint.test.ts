/**
 * Fingerprints of logins: equal exactly when what is sent is equal.
 */
import { createHmac } from "node:crypto"
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import { canonicalJson, fingerprintLogin } from "../../src/secrets/Fingerprint.ts"
import { key } from "../planning/Samples.ts"

const json = fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 2 }), { maxKeys: 5 })
const shuffled = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(shuffled)
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .toReversed()
      .map(([name, item]) => [name, shuffled(item)]),
  )
}

describe("fingerprint", () => {
  it("does not change with the order of keys, and is hexadecimal [decision 5]", () => {
    fc.assert(
      fc.property(json, (parameters) => {
        const fingerprint = fingerprintLogin(key, "e", parameters)
        expect(fingerprint).toMatch(/^[0-9a-f]{64}$/)
        expect(
          fingerprintLogin(key, "e", Object.fromEntries(Object.entries(shuffled(parameters) ?? {}))),
        ).toBe(fingerprint)
      }),
    )
  })

  it("is the same in every version: the breaker recognises a rejected login by it for years", () => {
    expect(canonicalJson({ b: [2, { d: null, c: "x" }], a: undefined, "": true })).toBe(
      '{"":true,"b":[2,{"c":"x","d":null}]}',
    )
    expect(canonicalJson([undefined, () => 1])).toBe("[null,null]")
    expect(fingerprintLogin(new Uint8Array(32).fill(7), "bank:website", { user: "u", password: "p" })).toBe(
      createHmac("sha256", new Uint8Array(32).fill(7))
        .update('["bank:website",{"password":"p","user":"u"}]')
        .digest("hex"),
    )
  })

  it("two logins have equal fingerprints exactly when they send equal JSON", () => {
    const few = fc.dictionary(
      fc.constantFrom("a", "b"),
      fc.constantFrom<unknown>("1", 1, true, "true", null, [1], ["1"]),
    )
    const engine = fc.constantFrom("e", "f")
    fc.assert(
      fc.property(few, few, engine, engine, (a, b, first, second) => {
        let equal = first === second
        try {
          expect(JSON.parse(JSON.stringify(a))).toStrictEqual(JSON.parse(JSON.stringify(b)))
        } catch {
          equal = false
        }
        expect(fingerprintLogin(key, first, a) === fingerprintLogin(key, second, b)).toBe(equal)
      }),
      { numRuns: 500 },
    )
  })

  it("changes when any parameter changes, and with the key [decision 5]", () => {
    fc.assert(
      fc.property(json, fc.string(), fc.string(), (parameters, name, text) => {
        const changed = { ...parameters, [name]: { was: text } }
        expect(fingerprintLogin(key, "e", changed) === fingerprintLogin(key, "e", parameters)).toBe(
          canonicalJson(changed) === canonicalJson(parameters),
        )
        expect(fingerprintLogin(new Uint8Array(32), "e", parameters)).not.toBe(
          fingerprintLogin(key, "e", parameters),
        )
      }),
    )
  })

  it("canonical JSON is JSON of the same value", () => {
    fc.assert(
      fc.property(json, (value) => {
        expect(JSON.parse(canonicalJson(value))).toEqual(JSON.parse(JSON.stringify(value)))
      }),
    )
  })
})
