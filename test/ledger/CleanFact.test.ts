/** Every field of every fact, from the schema: what may hold an echo is cleaned, and a clean fact is a fact. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { DatabaseSync } from "node:sqlite"
import { cleanFact, keptFields } from "../../src/ledger/FactRows.ts"
import { Fact } from "../../src/ledger/Fact.ts"
import { Ledger } from "../../src/ledger/Ledger.ts"
import { openLedger } from "../../src/ledger/LedgerSchema.ts"
import { KnownSecrets, makeKnownSecrets } from "../../src/privacy/KnownSecrets.ts"
import { effect } from "../harness/Steps.ts"
import { choices, sampleFacts } from "./AnyFacts.ts"

const secret = "canary-5f2c9d"

const placesOf = (value: unknown, path: string): ReadonlyArray<string> => {
  if (typeof value === "string") return value.includes(secret) ? [path] : []
  if (typeof value !== "object" || value === null) return []
  return Object.entries(value).flatMap(([key, inner]) => [
    ...(key.includes(secret) ? [`${path} (key)`] : []),
    ...placesOf(inner, Array.isArray(value) ? path : `${path}.${key}`),
  ])
}

describe("a fact", () => {
  const known = makeKnownSecrets()
  known.hold(secret, "password")
  const cleaned = sampleFacts(`x ${secret}`).map((fact) => cleanFact(fact, known))

  it("repeats no secret except in our own ids and words, whatever the service said", () => {
    const places = new Set(cleaned.flatMap((fact) => placesOf(fact, "")))
    const left = [...places].filter((path) => !path.split(".").some((key) => keptFields.has(key)))
    assert.deepStrictEqual(left, [])
    const elsewhere = [...places].filter((path) => !path.startsWith(".sources"))
    const own = [...new Set(elsewhere.map((path) => path.split(".").at(-1) ?? ""))].toSorted()
    assert.deepStrictEqual(own, [
      "account",
      "ahead",
      "asked_as",
      "attachment_id",
      "customer_id",
      "engine_reference",
      "execution_id",
      "external_execution_id",
      "fingerprint",
      "former",
      "identity",
      "job",
      "job_path",
      "landed_sha256",
      "missed",
      "name",
      "parent",
      "part",
      "password",
      "path",
      "plain",
      "row",
      "run_date",
      "run_id",
      "secret",
      "segment",
      "service",
      "session_id",
      "sha256",
      "source",
      "task_id",
      "token_id",
      "tool_version",
      "why",
      "worker",
      "written",
    ])
  })

  it("is still a valid fact, and unchanged if it contains no secret", () => {
    const is = Schema.is(Fact)
    const before = sampleFacts(`x ${secret}`)
    // A results source is ours, and its sample is none.
    assert.deepStrictEqual(
      cleaned.flatMap((fact, index) => (is(fact) || !is(before[index]) ? [] : [fact])),
      [],
    )
    const plain = sampleFacts("plain")
    assert.deepStrictEqual(
      plain.map((fact) => cleanFact(fact, known)),
      plain,
    )
  })

  it("keeps our own words, even if they are somebody's password", () => {
    const odd = makeKnownSecrets()
    for (const member of choices.flatMap((choice) => sampleFacts("x", choice)))
      for (const value of Object.values(member)) if (typeof value === "string") odd.hold(value, "password")
    for (const fact of choices.flatMap((choice) => sampleFacts("xyz", choice)))
      assert.deepStrictEqual(cleanFact(fact, odd), fact)
  })

  it("keeps what a run is resumed by, even if the application secret is such a word", () => {
    const all = choices.flatMap((choice) => sampleFacts("x", choice))
    const words = ["_tag", "answer", "kind", "outcome", "who_acts", "status"] as const
    const odd = makeKnownSecrets()
    const wordsOf = (fact: Fact) =>
      words.map((key) => Object.entries(fact).find(([name]) => name === key)?.[1])
    for (const word of all.flatMap(wordsOf)) if (typeof word === "string") odd.hold(word, "process")
    assert.deepStrictEqual(
      all.map((fact) => wordsOf(cleanFact(fact, odd))),
      all.map(wordsOf),
    )
  })

  effect("is clean in the ledger [promise 12 ledger]", function* () {
    const database = openLedger({ path: ":memory:" })
    yield* Effect.gen(function* () {
      const ledger = yield* Ledger
      yield* ledger.append(sampleFacts(secret).filter(({ _tag }) => _tag === "TaskSettled"))
    }).pipe(Effect.provide(Ledger.layerOver(database)), Effect.provideService(KnownSecrets, known))
    const { body } = (database satisfies DatabaseSync).prepare("SELECT body FROM facts").get() ?? {}
    const { reason, message } = JSON.parse(String(body))
    assert.deepStrictEqual({ reason, message }, { reason: "[blanked]", message: "[blanked]" })
  })
})
