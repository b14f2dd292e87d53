/**
 * The cache of engine forms: half a day, never for unknown engines, and of use while an engine is away.
 */
import { assert, describe } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { TestClock } from "effect/testing"
import { Ledger } from "../../src/ledger/Ledger.ts"
import { openLedger } from "../../src/ledger/LedgerSchema.ts"
import { CatalogueFailed, EngineCatalogue, FormCache } from "../../src/client/EngineForms.ts"
import type { EngineAnswer, EngineFinding } from "../../src/client/EngineForms.ts"
import { FormCheckerInProcess } from "../harness/FormCheckerInProcess.ts"
import { engineDetails, paramsForm } from "../task/Samples.ts"
import { anId } from "../harness/Id.ts"
import { effect } from "../harness/Steps.ts"

const bank = anId("bank:website")
const here: EngineAnswer = { _tag: "Known", details: engineDetails() }
const itself = {
  _tag: "Known",
  details: engineDetails({
    parameters: paramsForm({ a: { $ref: "#/$defs/A" } }, { $defs: { A: { $ref: "#/$defs/A" } } }),
  }),
} as const
const away: EngineAnswer = { _tag: "Unavailable", detail: "maintenance" }
const unknown: EngineAnswer = { _tag: "Unknown" }

/** A catalogue that gives these answers in turn, and counts the questions. */
const withAnswers = (answers: ReadonlyArray<EngineAnswer | "fails">) => {
  const asked: Array<string> = []
  const catalogue = Layer.succeed(EngineCatalogue, {
    showEngine: (reference) => {
      const answer = answers[asked.length] ?? "fails"
      asked.push(reference)
      return answer === "fails" ? new CatalogueFailed({ message: "refused" }) : Effect.succeed(answer)
    },
  })
  const ledger = Ledger.layerOver(openLedger({ path: ":memory:" }))
  const around = Layer.mergeAll(catalogue, ledger, FormCheckerInProcess.layer)
  const opened = Effect.all({ cache: FormCache, ledger: Ledger, asked: Effect.succeed(asked) })
  return Effect.provide(opened, FormCache.layer.pipe(Layer.provideMerge(around)))
}
const seen = (finding: EngineFinding) =>
  finding._tag === "Known" ? { available: finding.available, name: finding.engine.details.name } : finding

describe("forms of engines", () => {
  effect("[limit 10] are kept for half a day, and compiled once", function* () {
    const { asked, cache } = yield* withAnswers([
      here,
      { _tag: "Known", details: engineDetails({ name: "New" }) },
    ])
    const first = yield* cache.find(bank)
    yield* TestClock.adjust("719 minutes")
    const second = yield* cache.find(bank)
    assert.strictEqual(
      first._tag === "Known" && second._tag === "Known" && first.engine === second.engine,
      true,
    )
    assert.deepStrictEqual([asked.length, seen(second)], [1, { available: true, name: "Bank" }])
    yield* TestClock.adjust("1 minutes")
    assert.deepStrictEqual(
      [seen(yield* cache.find(bank)), asked.length],
      [{ available: true, name: "New" }, 2],
    )
  })

  effect("are still used when they are out of date and the engine is away", function* () {
    const { cache } = yield* withAnswers([here, away, away])
    yield* cache.find(bank)
    assert.deepStrictEqual(seen(yield* cache.look(bank)), { available: false, name: "Bank" })
    yield* TestClock.adjust("13 hours")
    assert.deepStrictEqual(seen(yield* cache.find(bank)), { available: false, name: "Bank" })
  })

  effect("an engine that is unknown, or away and never seen, is read again each time", function* () {
    const { asked, cache } = yield* withAnswers([unknown, away, here])
    const findings = [yield* cache.find(bank), yield* cache.find(bank), yield* cache.find(bank)]
    assert.deepStrictEqual(findings.map(seen), [unknown, away, { available: true, name: "Bank" }])
    assert.strictEqual(asked.length, 3)
  })

  effect(
    "an engine that answers but is offline or in maintenance is not available, and is asked again [decision 3 away]",
    function* () {
      const offline: EngineAnswer = { _tag: "Known", details: engineDetails({ is_online: false }) }
      const maintained: EngineAnswer = { _tag: "Known", details: engineDetails({ status: "maintenance" }) }
      const { cache } = yield* withAnswers([offline, maintained, maintained, here])
      const findings = [yield* cache.look(bank), yield* cache.look(bank)]
      assert.deepStrictEqual(findings.map(seen), [
        { available: false, name: "Bank" },
        { available: false, name: "Bank" },
      ])
      // In the next run, too, whose plan would else start logins.
      const planned = [yield* cache.find(bank), yield* cache.find(bank), yield* cache.find(bank)]
      assert.deepStrictEqual(planned.map(seen), [
        { available: false, name: "Bank" },
        { available: true, name: "Bank" },
        { available: true, name: "Bank" },
      ])
    },
  )

  effect("each engine of a job is read once, and a catalogue that fails ends planning", function* () {
    const { asked, cache } = yield* withAnswers([here, unknown])
    const found = yield* cache.findAll([bank, anId("x:y"), bank])
    assert.deepStrictEqual(
      [[...found.keys()], asked],
      [
        [bank, "x:y"],
        [bank, "x:y"],
      ],
    )
    const failure = yield* Effect.flip(cache.findAll([anId("x:z")]))
    assert.strictEqual(failure._tag, "CatalogueFailed")
  })

  effect("a form that cannot be used is reported, and not cached", function* () {
    const { asked, cache, ledger } = yield* withAnswers([here, itself, here])
    yield* cache.find(bank)
    const before = yield* ledger.cachedForm(bank)
    yield* TestClock.adjust("13 hours")
    const why = "parameters: it refers to itself"
    assert.deepStrictEqual(yield* cache.find(bank), { _tag: "Unusable", why })
    assert.deepStrictEqual(yield* ledger.cachedForm(bank), before)
    assert.deepStrictEqual(seen(yield* cache.find(bank)), { available: true, name: "Bank" })
    assert.strictEqual(asked.length, 3)
  })

  effect("a form that is too long or too deep is not even written out", function* () {
    const deep: unknown = JSON.parse("[".repeat(50_000) + "]".repeat(50_000))
    const bodies = [{ name: "n".repeat(1_000_001) }, { parameters: paramsForm({ a: { example: deep } }) }]
    const { cache } = yield* withAnswers(
      bodies.map((changes) => ({ _tag: "Known", details: engineDetails(changes) })),
    )
    const found = [yield* cache.find(bank), yield* cache.find(bank)]
    assert.deepStrictEqual(found, [
      { _tag: "Unusable", why: "its details are longer than 1,000,000 characters" },
      { _tag: "Unusable", why: "its details are nested more than 100 levels deep" },
    ])
  })

  effect("an unusable form that an older version cached is fetched again", function* () {
    const { asked, cache, ledger } = yield* withAnswers([here])
    const body = JSON.stringify(itself.details)
    yield* ledger.cacheForm({ engine_reference: anId(bank), fetched_at: 0, body })
    assert.deepStrictEqual(seen(yield* cache.find(bank)), { available: true, name: "Bank" })
    assert.deepStrictEqual(seen(yield* cache.find(bank)), { available: true, name: "Bank" })
    assert.strictEqual(asked.length, 1)
  })

  effect("values are checked in batches, with one answer for each", function* () {
    const { cache } = yield* withAnswers([here])
    const finding = yield* cache.find(bank)
    if (finding._tag !== "Known") return assert.fail(finding._tag)
    const cases = Array.from({ length: 600 }, (_, at) => ({
      features: [],
      configurations: {},
      parameters: Redacted.make({ username: "user", password: "pass", branch: `${at}` }),
    }))
    const fits = yield* cache.fit(finding.engine, cases)
    if ("why" in fits) return assert.fail(fits.why)
    assert.deepStrictEqual(
      fits.map(({ login }) => login && Redacted.value(login.parameters)["branch"]),
      cases.map((_, at) => at),
    )
  })

  effect("a cached body that cannot be read any more is fetched again", function* () {
    const { cache, ledger } = yield* withAnswers([here])
    yield* ledger.cacheForm({ engine_reference: anId(bank), fetched_at: 0, body: '{"reference":1}' })
    assert.deepStrictEqual(seen(yield* cache.find(bank)), { available: true, name: "Bank" })
  })
})
