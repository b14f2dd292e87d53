/**
 * Fingerprints of logins: equal exactly when what is sent is equal.
 */
import { createHmac } from "node:crypto"
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import { canonicalJson, fingerprintAccount, fingerprintLogin } from "../../src/secrets/Fingerprint.ts"
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

describe("the account that a login opens", () => {
  const of = { customer_id: "c-1", provider: "bank" }
  const account = (
    parameters: Readonly<Record<string, unknown>>,
    locking: ReadonlyArray<string> = ["user"],
    whose: Partial<typeof of> = {},
  ) => fingerprintAccount(key, { ...of, ...whose }, locking, parameters)

  it("is that of the values that never change for a user, however they are called and written", () => {
    const one = account({ user: "12345678Z", password: "old" })
    expect(one).toMatch(/^[0-9a-f]{64}$/)
    expect([
      account({ user: " 12345678z ", password: "new", alias: "today" }),
      account({ nif: "12345678Z" }, ["nif"]),
      account({ user: "12345678Z", nif: "12345678Z", branch: "" }, ["user", "nif", "branch", "code"]),
    ]).toEqual([one, one, one])
  })

  it("is another one for another value, customer or source", () => {
    const accounts = [
      account({ user: "12345678Z" }),
      account({ user: "12345678A" }),
      account({ user: "12345678Z", branch: 7 }, ["user", "branch"]),
      account({ user: "12345678Z" }, ["user"], { customer_id: "c-2" }),
      account({ user: "12345678Z" }, ["user"], { provider: "tax" }),
    ]
    expect(new Set(accounts).size).toBe(accounts.length)
  })

  it("is unknown if the form names nothing that is sent", () => {
    const none = [[], ["other"], ["constructor"], ["list"]].map((locking) =>
      account({ user: "u", list: ["u"] }, locking),
    )
    expect(none).toEqual([undefined, undefined, undefined, undefined])
  })

  it("is the same for all encrypted values of a customer: each text of one is new, whatever it holds", () => {
    const one = account({ user: "rsa::q1w2", password: "rsa::old" })
    expect(one).toMatch(/^[0-9a-f]{64}$/)
    expect([
      account({ user: "hybrid::e3r4", password: "rsa::new" }),
      // A form that names no such field: the logins cannot be told apart either.
      account({ user: "u", password: "rsa::new" }, []),
    ]).toEqual([one, one])
    expect([
      account({ user: "rsa::q1w2" }, ["user"], { customer_id: "c-2" }),
      account({ user: "encrypted" }),
      account({ user: "u", password: "rsa::new" }),
    ]).not.toContain(one)
    expect(account({ user: "u", password: "rsa::new" })).toBe(account({ user: "u", password: "p" }))
  })
})
