/**
 * Secrets in texts: whole, inside, and encoded; and what is not taken for one.
 */
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import { makeSecretFinder } from "../../src/jobs/SecretMatch.ts"

const kept = (value: unknown) => ({ value, whose: "kept", isKept: true })
const plain = (value: unknown) => ({ value, whose: "plain", isKept: false })
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
  const found = find(text)
  if (found === undefined) return "nothing"
  const { how, isEncoded, isCertain, secret } = found
  return [isCertain ? "refused:" : "warned:", how, ...(isEncoded ? ["encoded"] : []), secret.whose].join(" ")
}
const base64 = (text: string) => Buffer.from(text).toString("base64")

describe("a text", () => {
  it.each([
    ["Hunter22", "refused: is kept"],
    [" hunter22\n", "refused: is kept"],
    ["HUNTER22", "refused: is kept"],
    ["ＨＵＮＴＥＲ22", "refused: is kept"],
    ["x-Hunter22-y", "refused: contains kept"],
    ["Hunter%32%32", "refused: is encoded kept"],
    ["%2548unter22", "refused: is encoded kept"],
    [base64("Hunter22"), "refused: is encoded kept"],
    [base64("Hunter22").replace("=", ""), "refused: is encoded kept"],
    [encodeURIComponent(base64("Hunter22")), "refused: is encoded kept"],
    [base64("ana:Hunter22"), "refused: contains encoded kept"],
    [`auth=${base64("Hunter22")}`, "refused: is encoded kept"],
    [`Basic${base64("ana:Hunter22")}`, "refused: contains encoded kept"],
    [Buffer.from("Hunter22").toString("hex"), "refused: is encoded kept"],
    ["contrase%C3%B1a+secreta", "refused: is encoded kept"],
    [Buffer.from("contraseña secreta").toString("base64url"), "refused: is encoded kept"],
    ["2024", "refused: is kept"],
    ["261121", "refused: is kept"],
    ["build-98765432-a", "refused: contains kept"],
    ["blue whale", "refused: is kept"],
    ["7070", "refused: is kept"],
    ["Madrid", "refused: is plain"],
    ["madrid-centre", "warned: contains plain"],
    ["ok", "warned: is plain"],
    ["madrid Hunter22", "refused: contains kept"],
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
  ])("%j: %s", (text, what) => {
    expect(seen(text)).toBe(what)
  })

  it("that holds a secret of six letters or more is found, however it is wrapped and encoded", () => {
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
        expect(makeSecretFinder([kept(secret)])(encode(before + secret + after))?.isCertain).toBe(true)
      }),
      { numRuns: 500 },
    )
  })

  it("takes no longer among a hundred thousand user names that begin alike", () => {
    const names = Array.from({ length: 100_000 }, (_, index) => kept(`customer${index}`))
    const among = makeSecretFinder(names)
    const texts = Array.from({ length: 10_000 }, (_, index) => `customers-of-${index}`)
    expect(texts.filter((text) => among(text) !== undefined)).toEqual([])
    expect(among("for customer99999 only")?.how).toBe("contains")
  })
})
