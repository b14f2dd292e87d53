/** Facts, summaries and reports, cleaned as values. */
import { assert, it } from "@effect/vitest"
import { cleanValue } from "../../src/privacy/CleanBody.ts"
import { makeKnownSecrets } from "../../src/privacy/KnownSecrets.ts"

it("a value that this program writes is cleaned in all texts and keys but under the keys that are kept, by the rule of its place", () => {
  const known = makeKnownSecrets()
  known.hold(["hunter22", "1234"], "password")
  const value = {
    a: [
      "x hunter22",
      1234,
      true,
      null,
      undefined,
      { hunter22: "hunter22", "x hunter22": ["1234"], hunter: 1 },
    ],
    kept: { hunter22: "hunter22" },
    hunter22: { hunter22: { kept: "hunter22", c: "PIN 1234" } },
  }
  const clean = (pin: string, kept: unknown, inner: string) => ({
    a: [
      "x [blanked]",
      1234,
      true,
      null,
      undefined,
      { "[blanked]": "[blanked]", "x [blanked] 2": ["[blanked]"], hunter: 1 },
    ],
    kept,
    "[blanked]": { "[blanked]": { kept: inner, c: pin } },
  })
  assert.deepStrictEqual(
    cleanValue(value, known, "echo", new Set(["kept"])),
    clean("PIN [blanked]", { hunter22: "hunter22" }, "hunter22"),
  )
  assert.deepStrictEqual(
    cleanValue(value, known, "own"),
    clean("PIN 1234", { "[blanked]": "[blanked]" }, "[blanked]"),
  )
  assert.deepStrictEqual(
    ["hunter22", 7, null, ["hunter22"]].map((one) => cleanValue(one, known, "own")),
    ["[blanked]", 7, null, ["[blanked]"]],
  )
})
