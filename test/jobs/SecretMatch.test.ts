/**
 * Secrets in texts: whole, inside, and encoded; and what is not taken for one.
 */
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import { makeSecretFinder } from "../../src/jobs/SecretMatch.ts"

const kept = (value: unknown) => ({ value, whose: "kept", kept: "password" as const })
const plain = (value: unknown) => ({ value, whose: "plain", kept: "value" as const })
const find = makeSecretFinder([
  kept("Hunter22"),
  kept("2024"),
  kept("261121"),
  kept("98765432"),
  kept("true"),
  kept(""),
  kept({ answers: ["Blue Whale", 7070] }),
  kept("contraseña secreta"),
  plain("madrid"),
  plain("ok"),
])
const seen = (text: string) => {
  const [found] = find(text)
  if (found === undefined) return "nothing"
  const { how, isEncoded, isLong, secret } = found
  return [isLong ? "long:" : "short:", how, ...(isEncoded ? ["encoded"] : []), secret.whose].join(" ")
}
const base64 = (text: string) => Buffer.from(text).toString("base64")

describe("a text", () => {
  it.each([
    ["Hunter22", "long: is kept"],
    [" hunter22\n", "long: is kept"],
    ["HUNTER22", "long: is kept"],
    ["ＨＵＮＴＥＲ22", "long: is kept"],
    ["x-Hunter22-y", "long: contains kept"],
    ["Hunter%32%32", "long: is encoded kept"],
    ["%2548unter22", "long: is encoded kept"],
    [base64("Hunter22"), "long: is encoded kept"],
    [base64("Hunter22").replace("=", ""), "long: is encoded kept"],
    [encodeURIComponent(base64("Hunter22")), "long: is encoded kept"],
    [base64("ana:Hunter22"), "long: contains encoded kept"],
    [`auth=${base64("Hunter22")}`, "long: is encoded kept"],
    [`Basic${base64("ana:Hunter22")}`, "long: contains encoded kept"],
    [Buffer.from("Hunter22").toString("hex"), "long: is encoded kept"],
    ["contrase%C3%B1a+secreta", "long: is encoded kept"],
    [Buffer.from("contraseña secreta").toString("base64url"), "long: is encoded kept"],
    ["2024", "short: is kept"],
    ["261121", "short: is kept"],
    ["build-98765432-a", "long: contains kept"],
    ["blue whale", "long: is kept"],
    ["7070", "short: is kept"],
    ["Madrid", "long: is plain"],
    ["madrid-centre", "long: contains plain"],
    ["ok", "short: is plain"],
    ["2024-11-21", "nothing"],
    ["20261121", "nothing"],
    ["night-261121", "nothing"],
    ["1987654321", "nothing"],
    ["true", "nothing"],
    ["", "nothing"],
    ["{external_execution_id}", "nothing"],
    ["{event}", "nothing"],
    ["Hunter2", "nothing"],
    ["token", "nothing"],
  ])("%j: %s [promise 12 webhook addresses]", (text, what) => {
    expect(seen(text)).toBe(what)
  })

  it("returns everything that a text contains", () => {
    expect(find("madrid Hunter22").map(({ secret }) => secret.whose)).toEqual(["plain", "kept"])
  })

  it("that contains a secret of six letters or more is found, however it is wrapped and encoded", () => {
    const word = fc.stringMatching(/^[a-z][a-z0-9!?ñ]{5,19}$/)
    const around = fc.stringMatching(/^[A-Z .:-]{0,8}$/)
    const encoding = fc.constantFrom<(text: string) => string>(
      (text) => text,
      (text) => text.toUpperCase(),
      encodeURIComponent,
      (text) => [...Buffer.from(text)].map((byte) => `%${byte.toString(16).padStart(2, "0")}`).join(""),
      base64,
      (text) => Buffer.from(text).toString("base64url"),
      (text) => Buffer.from(text).toString("hex"),
    )
    fc.assert(
      fc.property(word, around, around, encoding, (secret, before, after, encode) => {
        expect(makeSecretFinder([kept(secret)])(encode(before + secret + after))[0]?.secret.value).toBe(
          secret,
        )
      }),
      { numRuns: 500 },
    )
  })

  it("takes no longer with a hundred thousand user names that begin alike", () => {
    const names = Array.from({ length: 100_000 }, (_, index) => kept(`customer${index}`))
    const among = makeSecretFinder(names)
    const texts = Array.from({ length: 10_000 }, (_, index) => `customers-of-${index}`)
    expect(texts.filter((text) => among(text).length > 0)).toEqual([])
    expect(among("for customer99999 only")[0]?.how).toBe("contains")
  })
})
