/**
 * Fingerprints of logins: equal exactly when what is sent is equal.
 */
import { createHmac } from "node:crypto"
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import {
  accountKeys,
  canonicalJson,
  fingerprintLogin,
  noRoles,
  tokenAccountKeys,
  keptKeys,
  writtenKey,
} from "../../src/privacy/Fingerprint.ts"
import { isOf, newAccount } from "../../src/ledger/Accounts.ts"
import { key } from "../task/Samples.ts"

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
  const place = { customer_id: "c-1", engine_reference: "bank:website" }
  const keys = (
    sent: Readonly<Record<string, unknown>>,
    locking: ReadonlyArray<string> = ["user"],
    more: Partial<typeof place> & { readonly selectors?: ReadonlyArray<string> } = {},
  ) => {
    const { selectors = [], ...of } = more
    const roles = { locking, selectors: new Set(selectors), secret: new Set(["password"]) }
    return accountKeys(key, { ...place, ...of }, { sent, roles, isByHand: true })
  }
  const account = (...of: Parameters<typeof keys>) => keys(...of).account
  const contains = (all: ReturnType<typeof keys>, some: ReturnType<typeof keys>) =>
    some.identity.every((one) => all.identity.includes(one))

  it("is that of the values that never change for a user, however they are called and spelled", () => {
    const one = account({ user: "012345678Z", password: "old" })
    expect(one).toMatch(/^[0-9a-f]{64}$/)
    expect([
      account({ user: " 012.345.678-z ", password: "new", alias: "today" }),
      account({ nif: "012345678Z" }, ["nif"]),
      account({ user: "012345678Z", nif: "012345678Z", branch: "" }, ["user", "nif", "branch", "code"]),
      account({ user: "\uFF10\uFF11\uFF12345678\uFF3A" }),
      account({ user: "012345678Z" }, ["user"], { customer_id: "c-2", engine_reference: "bank:kiosk" }),
    ]).toEqual(Array.from({ length: 5 }, () => one))
    expect([account({ user: "007" }), account({ user: 7 })]).toEqual([
      account({ user: "7" }),
      account({ user: "7" }),
    ])
    // Nothing but signs: the text as it is.
    expect(account({ user: "--" })).not.toBe(account({ user: "++" }))
  })

  it("is another one for another value or source", () => {
    const accounts = [
      account({ user: "12345678Z" }),
      account({ user: "12345678A" }),
      account({ user: "12345678Z", branch: 7 }, ["user", "branch"]),
      account({ user: "12345678Z" }, ["user"], { engine_reference: "tax:website" }),
    ]
    expect(new Set(accounts).size).toBe(accounts.length)
  })

  it("is one with a channel that locks more fields: the one list contains the other", () => {
    const website = keys({ user: "ana", password: "p" })
    const mobile = keys({ user: "Ana", phone: "600 000 000", password: "p" }, ["user", "phone"])
    const other = keys({ user: "ana", phone: "611111111" }, ["user", "phone"])
    expect([contains(mobile, website), contains(website, mobile), contains(mobile, other)]).toEqual([
      true,
      false,
      false,
    ])
  })

  it("is one with that of a form that locks other fields of the user, whatever the password [promise 4 fields]", () => {
    const isOne = (one: ReturnType<typeof keys>, other: ReturnType<typeof keys>) =>
      isOf(newAccount(one), other) && isOf(newAccount(other), one)
    const sent = { user: "ana", document: "12345678Z", password: "p" }
    const [user, document] = [keys(sent), keys({ ...sent, password: "q" }, ["document"])]
    expect([
      isOne(user, document),
      isOne(user, keys({ nif: "12345678-z", password: "q" }, ["nif"])),
      // Of more, there is nothing to keep.
      keys({ user: "ana", kind: "dni", password: "p" }, ["user"], { selectors: ["kind"] }).plain,
    ]).toEqual([true, true, undefined])
    expect([
      // A user in the column of the password, and two users with a document in common.
      isOne(keys({ user: "p", password: "ana" }), keys({ user: "ana", password: "p" })),
      isOne(user, keys({ ...sent, user: "p", password: "ana" }, ["user"])),
      isOne(user, keys({ ...sent, user: "bea" })),
      isOne(user, keys(sent, ["document"], { engine_reference: "tax:website" })),
    ]).toEqual([false, false, false, false])
  })

  it("does not follow a field to choose from", () => {
    expect(account({ user: "ana", kind: "dni" }, ["user", "kind"], { selectors: ["kind"] })).toBe(
      account({ user: "ana" }),
    )
  })

  it("and its password are the same in a channel whose form locks what is secret or not sent [promise 4 locking]", () => {
    const api = keys({ user: "ana", password: "p" })
    for (const locking of [
      ["branch"],
      ["nosuch"],
      ["user", "password"],
      ["password"],
      [],
      ["user", "branch"],
    ]) {
      const website = keys({ user: "ana", password: "p" }, locking, { engine_reference: "bank:website" })
      expect([locking, contains(website, api), website.password]).toEqual([locking, true, api.password])
      const corrected = keys({ user: "ana", password: "q" }, locking)
      const isSame = contains(website, corrected) || website.row === corrected.row
      expect([locking, isSame, corrected.password === website.password]).toEqual([locking, true, false])
    }
    // If all that is sent is secret, the form alone says which of it is the user.
    const sealed = (of: object) =>
      accountKeys(key, place, {
        sent: { access_key: "k", pin: "1", ...of },
        roles: { locking: ["access_key"], selectors: new Set(), secret: new Set(["access_key", "pin"]) },
        isByHand: true,
      })
    const [one, other] = [sealed({}), sealed({ pin: "2" })]
    expect([one.account === other.account, one.password === other.password]).toEqual([true, false])
  })

  it("is everything that is sent if the form names nothing that is sent, with a row of what is no secret", () => {
    const one = keys({ user: "ana", password: "old" }, ["other"])
    const two = keys({ user: "ANA", password: "new" }, [])
    expect([one.account === two.account, one.row === two.row, one.row]).toEqual([
      false,
      true,
      expect.stringMatching(/^[0-9a-f]{64}$/),
    ])
    expect(keys({ password: "only" }, []).row).toBeUndefined()
    expect(keys({ user: "ana", password: "p" }).row).toBeUndefined()
    expect(accountKeys(key, place, { sent: { user: "ana" }, roles: noRoles, isByHand: true }).account).toBe(
      account({ user: "ana" }),
    )
  })

  it("is known again by all that is written down, whatever the form makes of it [promise 4 written text]", () => {
    const written = (sent: Readonly<Record<string, unknown>>, more: Partial<typeof place> = {}) =>
      writtenKey(key, { ...place, ...more }, sent)
    const one = written({ user: "ana", pin: "771" })
    const other = { customer_id: "c-2", engine_reference: "bank:api" }
    expect([written({ pin: 771, user: "ana" }), written({ user: "ana", pin: "771" }, other)]).toEqual([
      one,
      one,
    ])
    const others = [
      written({ user: "ana", pin: "0771" }),
      written({ user: "ana", code: "771" }),
      written({ user: "ana" }),
      written({ user: "ana", pin: "771" }, { engine_reference: "tax:website" }),
    ]
    expect(others.filter((each) => each === one)).toEqual([])
    // Nobody can tell whether two encrypted values are equal: those of one customer may be.
    const sealed = written({ user: "rsa::1", pin: "rsa::2" })
    expect([
      written({ user: "hybrid::3", pin: "rsa::4" }) === sealed,
      written({ user: "rsa::1", pin: "rsa::2" }, other) === sealed,
    ]).toEqual([true, false])
  })

  it("is that of the parameters that a stored token was made with, if they are known", () => {
    const login = keptKeys(keys({ user: "ana", password: "p" }))
    const made = tokenAccountKeys(key, { ...place, customer_id: "c-9" }, { fingerprint: "print", login })
    const { engine_reference: engine } = place
    expect(made).toEqual({ ...login, engine, former: [login.written, "print"], isByHand: false })
  })

  it("is the customer's at the source if what identifies it is encrypted, or sent as a stored token", () => {
    const one = account({ user: "rsa::one" })
    expect([
      account({ user: "hybrid::two" }, [], { engine_reference: "bank:api" }),
      tokenAccountKeys(key, place, { fingerprint: "print" }).account,
      account({}),
    ]).toEqual([one, one, one])
    expect(account({ user: "rsa::one" }, ["user"], { customer_id: "c-2" })).not.toBe(one)
  })

  it("has the same password whatever channel and form make of it, and however often it is encrypted anew [promise 4 type]", () => {
    const { password } = keys({ user: "ana", password: "p" })
    expect(keys({ password: "p", user: "ana" }, ["user"], { engine_reference: "bank:api" }).password).toBe(
      password,
    )
    expect(keys({ user: "ana", password: "q" }).password).not.toBe(password)
    // A form that takes a number where it took a text; "0771" may be what corrects 771.
    const pins = ["771", 771, "0771"].map((pin) => keys({ user: "ana", password: pin }).password)
    expect([pins[0] === pins[1], pins[0] === pins[2]]).toEqual([true, false])
    const sealed = ["rsa::1", "hybrid::2"].map((text) => keys({ user: "ana", password: text }))
    expect(sealed.map(({ password: one, isByHand }) => [one, isByHand])).toEqual(
      sealed.map(() => [sealed[0]?.password, false]),
    )
    // A channel that asks for more about the user; passwords are compared within an account.
    const asked = { document: "12345678Z", login: " ANA", password: "p" }
    expect(keys(asked, ["login", "document"], { engine_reference: "bank:api" }).password).toBe(password)
    const hidden = { ...asked, password: "rsa::3" }
    expect(keys(hidden, ["login", "document"]).password).toBe(sealed[0]?.password)
  })
})
