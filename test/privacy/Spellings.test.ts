/** Every spelling of a secret, found wherever it begins in a text, and blanked to its last character. */
import * as fc from "fast-check"
import { describe, expect, it, vi } from "vitest"
import { makeKnownSecrets, type Place } from "../../src/privacy/KnownSecrets.ts"

const cleaned = (secrets: ReadonlyArray<string>, text: string, place: Place = "free"): string => {
  const known = makeKnownSecrets()
  known.hold(secrets, "password")
  return known.clean(text, place)
}

describe("a secret with every odd character", () => {
  const secret = `a B!'(c)*~>d/"ñ&\n<€`
  const spelled: Readonly<Record<string, string>> = {
    "as it is": secret,
    "in JSON": String.raw`a B!'(c)*~>d/\"ñ&\n<€`,
    "in JSON of plain ASCII": String.raw`a B!'(c)*~>d/\"\u00f1&\n<\u20ac`,
    "in JSON of plain ASCII, in capitals": String.raw`A B!'(C)*~>D/\"\u00F1&\N<\u20AC`,
    "in JSON with escaped slashes": String.raw`a B!'(c)*~>d\/\"ñ&\n<€`,
    "in JSON of plain ASCII with escaped slashes": String.raw`a B!'(c)*~>d\/\"\u00f1&\n<\u20ac`,
    "in JSON for a page": String.raw`a B!'(c)*~\u003ed/\"ñ\u0026\n\u003c€`,
    "in JSON of plain ASCII for a page": String.raw`a B!'(c)*~\u003ed/\"\u00f1\u0026\n\u003c\u20ac`,
    "in JSON for a page, apostrophes too": String.raw`a B!\u0027(c)*~\u003ed/\"ñ\u0026\n\u003c€`,
    "in JSON within JSON": String.raw`a B!'(c)*~>d/\\\"ñ&\\n<€`,
    "in JSON of plain ASCII within JSON": String.raw`a B!'(c)*~>d/\\\"\\u00f1&\\n<\\u20ac`,
    "in HTML by names, with a zero": "a B!&#039;(c)*~&gt;d/&quot;ñ&amp;\n&lt;€",
    "in HTML by numbers alone": "a B!&#39;(c)*~&#62;d/&#34;ñ&#38;\n&#60;€",
    "in HTML by hexadecimal numbers alone": "a B!&#x27;(c)*~&#x3E;d/&#x22;ñ&#x26;\n&#x3C;€",
    "in HTML of plain ASCII": "a B!&#39;(c)*~&gt;d/&quot;&#241;&amp;\n&lt;&#8364;",
    "in an address within an address": encodeURIComponent(encodeURIComponent(`a B!'(c)*~>d/"ñ&\n<€`)),
    "in HTML by names": "a B!&apos;(c)*~&gt;d/&quot;ñ&amp;\n&lt;€",
    "in HTML by numbers": "a B!&#39;(c)*~&gt;d/&#34;ñ&amp;\n&lt;€",
    "in HTML by a name and a number": "a B!&#39;(c)*~&gt;d/&quot;ñ&amp;\n&lt;€",
    "in HTML by a name and a hexadecimal number": "a B!&#x27;(c)*~&gt;d/&quot;ñ&amp;\n&lt;€",
    "in HTML by a number and a hexadecimal one": "a B!&#x27;(c)*~&gt;d/&#34;ñ&amp;\n&lt;€",
    "in HTML by a number and a name": "a B!&apos;(c)*~&gt;d/&#34;ñ&amp;\n&lt;€",
    "in an address": "a%20B!'(c)*~%3Ed%2F%22%C3%B1%26%0A%3C%E2%82%AC",
    "in an address with plus signs": "a+B!'(c)*~%3Ed%2F%22%C3%B1%26%0A%3C%E2%82%AC",
    "in an address, strictly": "a%20B%21%27%28c%29%2A%7E%3Ed%2F%22%C3%B1%26%0A%3C%E2%82%AC",
    "in an address, strictly and with plus signs": "a+B%21%27%28c%29%2a%7e%3ed%2f%22%c3%b1%26%0a%3c%e2%82%ac",
    "in a form": "a+B%21%27%28c%29*%7E%3Ed%2F%22%C3%B1%26%0A%3C%E2%82%AC",
    "in an address, in lower case": encodeURIComponent(secret).toLowerCase(),
    "in an address, every byte": Buffer.from(secret).toString("hex").replaceAll(/../g, "%$&"),
    "in an address, slashes kept": "a%20B%21%27%28c%29%2A~%3Ed/%22%C3%B1%26%0A%3C%E2%82%AC",
    "in an address whose own signs are kept": "a%20B!'(c)*~%3Ed/%22%C3%B1&%0A%3C%E2%82%AC",
    "in an address within a page": "a%20B!&#39;(c)*~%3Ed/%22%C3%B1&amp;%0A%3C%E2%82%AC",
    "in HTML by the names of letters": "a B!'(c)*~&gt;d/&quot;&ntilde;&amp;\n&lt;&euro;",
    "in HTML by the names of all signs":
      "a&#x20;B&excl;&apos;&lpar;c&rpar;&ast;&#126;&gt;d&sol;&quot;&ntilde;&amp;&NewLine;&lt;&euro;",
    "in HTML by names, in capitals": "A B!&APOS;(C)*~&GT;D/&QUOT;&NTILDE;&AMP;\n&LT;&EURO;",
    "in HTML, every sign by its number":
      "a&#32;B&#33;&#39;&#40;c&#41;&#42;&#126;&#62;d&#47;&#34;&#241;&#38;&#10;&#60;&#8364;",
    "in program text": String.raw`a B!\'(c)*~>d/\"\xf1&\n<\u20ac`,
    "in base64 without its end": Buffer.from(secret).toString("base64").replaceAll("=", ""),
    "in base64 for addresses": Buffer.from(secret).toString("base64url"),
    "in hexadecimal": Buffer.from(secret).toString("hex"),
    "in hexadecimal capitals": Buffer.from(secret).toString("hex").toUpperCase(),
    "in bytes read one by one": Buffer.from(secret).toString("latin1"),
    "in JSON, in bytes read one by one": Buffer.from(JSON.stringify(secret).slice(1, -1)).toString("latin1"),
    "in HTML, in bytes read one by one": Buffer.from("a B!&#39;(c)*~&gt;d/&quot;ñ&amp;\n&lt;€").toString(
      "latin1",
    ),
  }
  it("[promise 12 escapes] is blanked however it is spelled", () => {
    const shown = Object.entries(spelled).map(([how, text]) => [how, cleaned([secret], `x ${text} y`)])
    expect(shown).toEqual(Object.keys(spelled).map((how) => [how, "x [blanked] y"]))
  })

  it("[promise 12 variants] is blanked in capitals, with accents apart and with other ends of lines", () => {
    const secret = "Müßig&\nLöwe Жук7"
    const other = [
      "MÜSSIG&\nLÖWE ЖУК7",
      "müßig&\nlöwe жук7",
      secret.normalize("NFD"),
      secret.replace("\n", "\r\n"),
      secret.normalize("NFD").toUpperCase().replace("\n", "\r\n"),
    ]
    const everyWay = other.flatMap((text) => [
      text,
      encodeURIComponent(text),
      JSON.stringify(text).slice(1, -1),
    ])
    const bytes = everyWay.map((text) => Buffer.from(text).toString("latin1"))
    expect(
      [...everyWay, ...bytes].filter((text) => cleaned([secret], `x ${text} y`) !== "x [blanked] y"),
    ).toEqual([])
    expect(cleaned([other[3] ?? ""], `x ${secret} y`)).toBe("x [blanked] y")
  })

  it("may look like escapes itself: it is blanked as it is, and as decoders take it", () => {
    const secrets = [String.raw`C:\new"\x41b`, "100%25a&amp;b;zz", "&amp;&amp;", String.raw`\\\\\\`]
    for (const secret of secrets) {
      const other = [secret, encodeURIComponent(secret), JSON.stringify(secret).slice(1, -1)]
      const pages = [secret, encodeURI(secret)].map((text) =>
        text.replaceAll("&", "&amp;").replaceAll('"', "&quot;"),
      )
      const kept = [...other, ...pages].map((text) => `x ${text} y`)
      expect(kept.map((text) => cleaned([secret], text))).toEqual(kept.map(() => "x [blanked] y"))
    }
    // What is left of such a secret may stand anywhere by chance.
    expect(cleaned(["&amp;&amp;", String.raw`\\\\\\`], String.raw`a && b \\ c`)).toBe(String.raw`a && b \\ c`)
  })

  it("leaves every character around it, whatever stands escaped there", () => {
    const around = String.raw`\"%41&uuml;%E2%82%AC&#128512;\u20ac %zz &nope; &#9999999; %`
    expect(cleaned(["geheim/mit leer?x"], `${around}geheim/mit%20leer?x${around}`)).toBe(
      `${around}[blanked]${around}`,
    )
    expect(cleaned(["geheim/mit leer?x"], around)).toBe(around)
  })

  it("is blanked in HTML of plain ASCII with a character of two halves", () => {
    expect(cleaned(["key-😀-one"], "x key-&#128512;-one y")).toBe("x [blanked] y")
  })

  it("is blanked in an address of one byte a character", () => {
    expect(cleaned(["pässwörd-1"], "x p%E4ssw%F6rd-1 p%e4ssw%f6rd-1")).toBe("x [blanked] [blanked]")
  })

  it("is not blanked where other signs stand in the place of its own", () => {
    expect(cleaned(["a/b+c/d+e"], "a_b-c_d-e a/b+c/d+e")).toBe("a_b-c_d-e [blanked]")
  })

  it("may hold half a character, which no encoding of addresses can say", () => {
    expect(cleaned(["ab\ud800cdef"], "x ab\ud800cdef ab%EF%BF%BDcdef")).toBe("x [blanked] [blanked]")
  })

  it("is found in base64 and hexadecimal from six characters on, and from four where it stands alone", () => {
    const base64 = (text: string) => Buffer.from(text).toString("base64")
    const hex = (text: string) => Buffer.from(text).toString("hex")
    const shown = (secret: string, text: string) => cleaned([secret], text, "echo")
    expect([
      shown("1a2b", `x ${base64("1a2b")} y`),
      shown("1a2b", `x ${base64("z1a2b")} y`),
      shown("1a2b", `x ${hex("1a2b")} y`),
      shown("1a2", `x ${base64("1a2")} ${hex("1a2")} y`),
      shown("1a2b3", `x ${base64("u:1a2b3,4")} y`),
    ]).toEqual([
      "x [blanked]== y",
      `x ${base64("z1a2b")} y`,
      "x [blanked] y",
      `x ${base64("1a2")} ${hex("1a2")} y`,
      "x dT[blanked]zQ= y".replace("zQ=", base64("u:1a2b3,4").slice(10)),
    ])
  })
})

describe("a secret in base64", () => {
  const secrets = fc.string({ unit: "grapheme", minLength: 6, maxLength: 20 })
  const beside = fc.string({ maxLength: 6 })

  it("is blanked with every character that holds a bit of it, and no other, in both alphabets", () => {
    fc.assert(
      fc.property(secrets, beside, beside, fc.boolean(), (secret, before, behind, isUrl) => {
        fc.pre(secret.trim().length > 5)
        const text = Buffer.from(before + secret + behind).toString(isUrl ? "base64url" : "base64")
        const from = Math.floor((Buffer.byteLength(before) * 8) / 6)
        const to = Math.ceil((Buffer.byteLength(before + secret) * 8) / 6)
        const rest = behind === "" ? "" : text.slice(to)
        expect(cleaned([secret], `Basic ${text}\n`)).toBe(`Basic ${text.slice(0, from)}[blanked]${rest}\n`)
      }),
      { numRuns: 400, seed: 8 },
    )
  })

  it("takes no character that is no base64 with it, and two signs of its end at most", () => {
    const inner = (text: string, skipped: number) =>
      Buffer.from(`${"x".repeat(skipped)}${text}`).toString("base64")
    // Four characters for three bytes: the first two hold `x` and a rest, the last one is all rest.
    const cut = inner("hunter22", 1).slice(2)
    expect([
      cleaned(["hunter22"], `(${cut})`),
      cleaned(["hunter22"], `-${cut}_`),
      cleaned(["hunter22"], `${inner("hunter22", 0)}===`),
      cleaned(["hunter22"], `(${inner("hunter22", 0).slice(0, 10)}====)`),
      cleaned(["hunter22"], `(${inner("hunter22", 0).slice(0, 10)}$==)`),
    ]).toEqual(["([blanked])", "[blanked]_", "[blanked]==", "([blanked]=)", "([blanked]$==)"])
  })
})

describe("known secrets in one text", () => {
  it("leave what stands between them, and touching ones become one, as a slow search finds them", () => {
    const word = fc.string({
      unit: fc.constantFrom("a", "b", "A", "Z", "z", "-"),
      minLength: 4,
      maxLength: 9,
    })
    const text = fc.array(fc.oneof(word, fc.string({ maxLength: 5 })), { maxLength: 8 })
    fc.assert(
      fc.property(fc.array(word, { minLength: 1, maxLength: 6 }), text, (secrets, parts) => {
        const said = [...parts, secrets[0], ...parts.toReversed(), ...secrets].join("")
        const isHit = Array.from({ length: said.length }, () => false)
        for (const secret of secrets)
          for (let at = 0; at + secret.length <= said.length; at++)
            if (said.slice(at, at + secret.length).toLowerCase() === secret.toLowerCase())
              isHit.fill(true, at, at + secret.length)
        const expected = [...said].map((sign, at) => (isHit[at] ? "\0" : sign)).join("")
        expect(cleaned(secrets, said, "echo")).toBe(expected.replaceAll(/\0+/g, "[blanked]"))
      }),
      { numRuns: 400, seed: 5 },
    )
  })

  it("cost a text nothing where it holds nothing that begins like one of them", () => {
    const known = makeKnownSecrets()
    known.hold(
      Array.from({ length: 500 }, (_, index) => `${index}#secret`),
      "password",
    )
    const text = "Another sentence, and one more of them. ".repeat(100)
    const asked = vi.spyOn(Map.prototype, "get")
    known.clean(text, "free")
    const count = asked.mock.calls.length
    asked.mockRestore()
    expect(count).toBeLessThan(text.length / 5)
  })

  it("may be thousands, with long beginnings in common, and be found to their last character", () => {
    const known = makeKnownSecrets()
    const begin = "-----BEGIN CERTIFICATE----- MIIC:".padEnd(64, "x")
    const secrets = Array.from({ length: 3_000 }, (_, index) => `${index * 7919}k${index}.Zz`)
    const long = ["", "1", "2y", "33333333333"].map((end) => `${begin}${end}`)
    known.hold([secrets, long], "password")
    const lost = secrets.filter((secret) => known.clean(`a ${secret}! b`, "free") !== "a [blanked]! b")
    expect(lost).toEqual([])
    expect([
      ...long.map((one) => known.clean(`<${one}>`, "free")),
      known.clean(`<${begin.slice(0, -1)}>`, "free"),
      known.clean(`<${begin}333>`, "free"),
    ]).toEqual([...long.map(() => "<[blanked]>"), `<${begin.slice(0, -1)}>`, "<[blanked]333>"])
  })

  it("that are numbers are no part of longer numbers, as they are; in hexadecimal a digit beside means nothing", () => {
    const hex = Buffer.from("12345678").toString("hex")
    expect(cleaned(["12345678"], `12345678 912345678 123456789 ${hex} 9${hex}9`)).toBe(
      "[blanked] 912345678 123456789 [blanked] 9[blanked]9",
    )
  })

  it("may stand in one another's encodings: the widest counts", () => {
    const inner = Buffer.from("xhunter22").toString("base64").slice(2)
    const around = Buffer.from("xhunter22yz").toString("base64")
    expect(cleaned([inner, "hunter22"], around)).toBe(`${around[0]}[blanked]${around.slice(12)}`)
    expect(cleaned(["hunter22", inner], around)).toBe(`${around[0]}[blanked]${around.slice(12)}`)
  })
})
