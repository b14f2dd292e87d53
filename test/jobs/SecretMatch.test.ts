/**
 * Secrets in texts: whole, inside, and encoded; and what is not taken for one.
 */
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import { makeSecretFinder } from "../../src/jobs/HooksData.ts"

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
  kept("rate%41xx%42"),
  kept("~~?>secret?"),
  kept("P1n"),
  kept("hunter-abc"),
  kept("hunter-abcdef"),
  kept("hunter-abcd"),
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
    ["long: is kept", ["Hunter22", " hunter22\n", "HUNTER22", "ＨＵＮＴＥＲ22", "blue whale"]],
    [
      "long: contains kept",
      ["x-Hunter22-y", "x hunter-abc y", "x hunter-abcd y", "build-98765432-a", "9-98765432-9"],
    ],
    [
      "long: is encoded kept",
      [
        "Hunter%32%32",
        "%2548unter22",
        base64("Hunter22"),
        base64("Hunter22").replace("=", ""),
        encodeURIComponent(base64("Hunter22")),
        `auth=${base64("Hunter22")}`,
        Buffer.from("Hunter22").toString("hex"),
        "contrase%C3%B1a+secreta",
        Buffer.from("contraseña secreta").toString("base64url"),
        `xy${base64("Hunter22")}`,
        `xyz${base64("Hunter22")}`,
        encodeURIComponent(base64("~~?>secret?")),
        base64("rate%41xx%42"),
        base64(encodeURIComponent("contraseña secreta")),
        `d${Buffer.from("Hunter22").toString("hex")}`,
      ],
    ],
    [
      "long: contains encoded kept",
      [
        base64("ana:Hunter22"),
        `Basic${base64("ana:Hunter22")}`,
        `dead${Buffer.from("Hunter22").toString("hex")}f`,
      ],
    ],
    ["short: is encoded kept", [base64("7070")]],
    [
      "nothing",
      [
        base64("P1n"),
        "%50%31%6e",
        "2024-11-21",
        "20261121",
        "night-261121",
        "1987654321",
        "a987654321",
        "198765432a",
        "true",
        "",
        "{external_execution_id}",
        "{event}",
        "Hunter2",
        "token",
      ],
    ],
    ["short: is kept", ["2024", "261121", "7070"]],
    ["long: is plain", ["Madrid"]],
    ["long: contains plain", ["madrid-centre"]],
    ["short: is plain", ["ok"]],
  ] as const)("has what it has, whatever the spelling: %s [promise 12 webhook addresses]", (what, texts) => {
    expect(texts.map((text) => [text, seen(text)])).toEqual(texts.map((text) => [text, what]))
  })

  it("returns everything that a text contains, each once if it is not encoded, and nothing else", () => {
    expect(find("madrid Hunter22").map(({ secret }) => secret.whose)).toEqual(["plain", "kept"])
    expect(find("Hunter22").map(({ how }) => how)).toEqual(["is"])
    expect(find("x hunter-abcdef").map(({ secret }) => secret.value)).toEqual([
      "hunter-abc",
      "hunter-abcdef",
      "hunter-abcd",
    ])
  })

  it("belongs to the owner whose password it is, then to the one who keeps it elsewhere, then to the first of equals", () => {
    const ways = ["value", "reference", "password"] as const
    for (const one of ways)
      for (const other of ways) {
        const [found] = makeSecretFinder([
          { value: "Hunter22", whose: "first", kept: one },
          { value: "hunter22", whose: "second", kept: other },
        ])("hunter22")
        expect([one, other, found?.secret.whose]).toEqual([
          one,
          other,
          ways.indexOf(other) > ways.indexOf(one) ? "second" : "first",
        ])
      }
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
