/** What an answer issues and repeats is blanked in this very answer, before anybody holds it. */
import { assert, describe, it } from "@effect/vitest"
import { secretCharactersMax } from "../../src/service/BodyBounds.ts"
import { cleanBody, type Cleaning } from "../../src/privacy/CleanBody.ts"
import { makeKnownSecrets } from "../../src/privacy/KnownSecrets.ts"

const ofRecords: Cleaning = { records: "data" }
const cleaned = (text: string, secrets: ReadonlyArray<unknown>, cleaning: Cleaning = ofRecords): string => {
  const known = makeKnownSecrets()
  known.hold(secrets, "password")
  return Buffer.from(cleanBody(Buffer.from(text), known, cleaning)).toString()
}

describe("an answer that issues a secret", () => {
  it("repeats nowhere what it issues itself, nor inside it what was known before", () => {
    const body = '{"ticket":{"a":["T-12345678"],"T-1234":1},"x":"hunter22 T-12345678 T-12345678x","is":1}'
    assert.strictEqual(
      cleaned(body, ["hunter22"]),
      '{"ticket":{"[blanked]":["[blanked]"],"[blanked] 2":"[blanked]"},"x":"[blanked] [blanked] [blanked]x","is":1}',
    )
  })

  it("repeats what it issues nowhere, from eight characters to the longest ticket, as a text or a number", () => {
    const shown = (ticket: unknown, also: unknown = ticket) =>
      JSON.parse(cleaned(JSON.stringify({ x: also, session_token: [ticket], y: [also] }), []))
    const all = { x: "[blanked]", session_token: ["[blanked]"], y: ["[blanked]"] }
    const longest = "é1".repeat(secretCharactersMax / 2)
    assert.deepStrictEqual(
      [shown("T-123456"), shown(12345678), shown(longest), shown("T-12345"), shown(`${longest}2`).y],
      [all, all, all, { ...all, x: "T-12345", y: ["T-12345"] }, [`${longest}2`]],
    )
    const written = JSON.stringify(longest).replaceAll("é", "\\u00e9").replaceAll("1", "\\u0031")
    assert.strictEqual(
      cleaned(`{"ticket":${written},"x":${written}}`, []),
      '{"ticket":"[blanked]","x":"[blanked]"}',
    )
    assert.strictEqual(cleaned('{"x":"a null","ticket":null}', []), '{"x":"a null","ticket":"[blanked]"}')
  })

  it("repeats it in no word either that decisions rest on, even if it is made of letters alone", () => {
    assert.strictEqual(
      cleaned('{"ticket":"lettersalone","status":"a lettersalone"}', []),
      '{"ticket":"[blanked]","status":"a [blanked]"}',
    )
  })

  it("repeats nowhere what it issues under a name that is written with escapes", () => {
    for (const name of ["\\u0074icket", "session\\u005Ftoken", "token_ke\\u0079", "\\u006bx", "tick\\u0065t"])
      assert.strictEqual(
        cleaned(`{"x":"T-1234567","${name}":"T-1234567"}`, []),
        name.endsWith("x")
          ? `{"x":"T-1234567","${name}":"T-1234567"}`
          : `{"x":"[blanked]","${name}":"[blanked]"}`,
      )
  })

  it("repeats no refused login value, whether or not the job still has it [promise 12 refused]", () => {
    const refused = (name: string) =>
      cleaned(
        JSON.stringify({
          [name]: [
            {
              loc: ["password"],
              input: "hunter22",
              ctx: { given: 7 },
              msg: "hunter22 is no password",
              type: "x",
            },
          ],
          messages: [{ text: "not hunter22" }],
          configurations_errors: [{ loc: ["from"], input: "2024-01-01", msg: "2024-01-01 is too early" }],
          input: "kept",
        }),
        [],
      )
    const own = '{"loc":["password"],"input":"[blanked]","ctx":{"[blanked]":"[blanked]"},'
    const rest =
      '"messages":[{"text":"not [blanked]"}],"configurations_errors":[{"loc":["from"],' +
      '"input":"2024-01-01","msg":"2024-01-01 is too early"}],"input":"kept"}'
    for (const name of ["parameters_errors", "payload_errors"])
      assert.strictEqual(
        refused(name),
        `{"${name}":[${own}"msg":"[blanked] is no password","type":"x"}],${rest}`,
      )
  })

  it("issues nothing in its records", () => {
    const body = '{"x":"T-1234567","data":{"ticket":"T-1234567"}}'
    assert.strictEqual(cleaned(body, []), body)
    assert.strictEqual(cleaned(body, [], {}), '{"x":"[blanked]","data":{"ticket":"[blanked]"}}')
  })

  it("may issue sixteen secrets; more of them are blanked where they stand, and cost nothing", () => {
    const tickets = Array.from({ length: 18 }, (_, index) => `T-${index + 1_000_000}`)
    assert.deepStrictEqual(
      JSON.parse(cleaned(JSON.stringify({ ticket: [tickets[0], ...tickets], x: tickets }), [])),
      {
        ticket: ["[blanked]", ...tickets.map(() => "[blanked]")],
        x: tickets.map((ticket, index) => (index < 16 ? "[blanked]" : ticket)),
      },
    )
  })
})
