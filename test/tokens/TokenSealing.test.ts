/** Sealed values of earlier versions open, and nothing that is not exactly what was sealed. */
import { describe, expect, it } from "vitest"
import { Redacted } from "effect"
import { deriveKey, malformedKey, readKey } from "../../src/tokens/StoredToken.ts"

const master = Buffer.alloc(32, 1)
const key = deriveKey(master, Buffer.alloc(32, 2))
const opened = (sealed: Uint8Array, boundTo = "entry") => {
  const value = key.open(sealed, boundTo)
  return value && Redacted.value(value)
}

describe("a sealed value", () => {
  it("opens in every later version", () => {
    const sealed = "FM/X7xLvLdNOUqkFpJM6m9PQBxdvMlMDVJRuqppcEsFKuUsZ7g=="
    expect(opened(Buffer.from(sealed, "base64"))).toBe("geheim é")
  })

  it("opens as it was, empty ones too, and only for its entry and with each of its bytes", () => {
    for (const text of ["", "a", "geheim é"]) {
      const sealed = key.seal(Redacted.make(text), "entry")
      expect([opened(sealed), opened(sealed, "other")]).toEqual([text, undefined])
      for (let at = 0; at < sealed.length; at++) {
        const changed = Uint8Array.from(sealed)
        changed[at] = (changed[at] ?? 0) ^ 1
        expect([opened(changed), opened(sealed.subarray(0, at))]).toEqual([undefined, undefined])
      }
    }
  })

  it("is never the same twice", () => {
    const seal = () => Buffer.from(key.seal(Redacted.make("a"), "entry")).toString("hex")
    expect(seal()).not.toBe(seal())
  })
})

it("a key is 32 bytes in hexadecimal or base64, and nothing that a decoder would coerce", () => {
  const read = (text: string) => readKey(Redacted.make(text))
  const bytes = Buffer.alloc(32, 0xfb)
  for (const text of [
    bytes.toString("hex"),
    bytes.toString("hex").toUpperCase(),
    bytes.toString("base64"),
    bytes.toString("base64url"),
    bytes.toString("base64").replace("=", ""),
    ` ${bytes.toString("base64")}\n`,
  ])
    expect(read(text)).toEqual(bytes)
  for (const text of [
    "",
    "geheim",
    bytes.toString("hex").slice(1),
    `${bytes.toString("hex")}0`,
    bytes.subarray(1).toString("base64"),
    bytes.toString("base64").replace("+", "!+"),
    `${bytes.toString("base64")}=`,
  ])
    expect(read(text)).toBeUndefined()
  expect(malformedKey).toBe(
    "the key of the token store is not 32 bytes in hexadecimal or base64; " +
      "`openssl rand -base64 32` generates one: keep it where `tokens.key` points",
  )
})
