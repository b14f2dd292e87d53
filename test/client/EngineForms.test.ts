/** The cache of engine forms: half a day, never for unknown engines, and of use while an engine is away. */
import { assert, describe, expect } from "@effect/vitest"
import { Effect, Fiber, Layer, Redacted, Result } from "effect"
import { TestClock } from "effect/testing"
import { Ledger } from "../../src/ledger/Ledger.ts"
import { openLedger } from "../../src/ledger/LedgerSchema.ts"
import { CatalogueFailed, FormCache, type EngineFinding } from "../../src/client/EngineForms.ts"
import { AnswerLost, NotSent, SecretRefused, Service, UnexpectedAnswer } from "../../src/client/Service.ts"
import type { CallFailure, EngineAnswer } from "../../src/client/Service.ts"
import type { EngineDetails } from "../../src/service/Engine.ts"
import { FormChecker } from "../../src/client/FormProcess.ts"
import { FormCheckerInProcess } from "../harness/FormCheckerInProcess.ts"
import { engineDetails, paramsForm } from "../task/Samples.ts"
import { anId } from "../harness/Id.ts"
import { effect } from "../harness/Steps.ts"

const bank = anId("bank:website")
const answering = (engine: EngineDetails): EngineAnswer => ({ _tag: "Engine", engine })
const here = answering(engineDetails())
const why = "checking it takes longer than 5s"
const ofSlow = engineDetails({ name: "SLOW" })
const slow = answering(ofSlow)
const away: EngineAnswer = { _tag: "EngineUnavailable", detail: "maintenance" }
const unknown: EngineAnswer = { _tag: "EngineUnknown" }

/** As the checker's process answers a form that takes too long. */
const checker = Layer.effect(
  FormChecker,
  Effect.map(FormChecker, ({ check }) => ({
    check: (request) =>
      request.body.includes("SLOW") ? Effect.succeed({ _tag: "Unusable", why } as const) : check(request),
  })),
).pipe(Layer.provide(FormCheckerInProcess.layer))

/** A service that gives these answers in turn, counts the questions, and lists its engines so. */
const withAnswers = (
  answers: ReadonlyArray<EngineAnswer | CallFailure>,
  listEngines: Service["Service"]["listEngines"] = Effect.succeed({
    body: { bytes: new Uint8Array(), json: [] },
  }),
) => {
  const asked: Array<string> = []
  const service = Layer.mock(Service, {
    showEngine: (reference) =>
      Effect.suspend(() => {
        const answer = answers[asked.length] ?? new NotSent({ message: "refused" })
        asked.push(reference)
        return answer instanceof Error ? Effect.fail(answer) : Effect.succeed(answer)
      }),
    listEngines,
  })
  const ledger = Ledger.layerOver(openLedger({ path: ":memory:" }))
  const around = Layer.mergeAll(service, ledger, checker)
  const opened = Effect.all({ cache: FormCache, ledger: Ledger, asked: Effect.succeed(asked) })
  return Effect.provide(opened, FormCache.layer.pipe(Layer.provideMerge(around)))
}
const seen = (finding: EngineFinding) =>
  finding._tag === "Known" ? { available: finding.available, name: finding.engine.details.name } : finding

const known = { available: true, name: "Bank" }
const gone = { available: false, name: "Bank" }

describe("forms of engines", () => {
  effect("[limit 10] are kept for half a day, and compiled once", function* () {
    const { asked, cache } = yield* withAnswers([here, answering(engineDetails({ name: "New" }))])
    const first = yield* cache.find(bank)
    yield* TestClock.adjust("719 minutes")
    const second = yield* cache.find(bank)
    assert.isTrue(first._tag === "Known" && second._tag === "Known" && first.engine === second.engine)
    assert.deepStrictEqual([asked.length, seen(second)], [1, known])
    yield* TestClock.adjust("1 minutes")
    expect([seen(yield* cache.find(bank)), asked.length]).toStrictEqual([{ available: true, name: "New" }, 2])
  })

  effect("are still used when they are out of date and the engine is away", function* () {
    const { cache } = yield* withAnswers([here, away, away])
    yield* cache.find(bank)
    assert.deepStrictEqual(seen(yield* cache.look(bank)), gone)
    yield* TestClock.adjust("13 hours")
    assert.deepStrictEqual(seen(yield* cache.find(bank)), gone)
  })

  effect("an engine that is unknown, or away and never seen, is read again each time", function* () {
    const { asked, cache } = yield* withAnswers([unknown, away, here])
    const findings = [yield* cache.find(bank), yield* cache.find(bank), yield* cache.find(bank)]
    assert.deepStrictEqual(findings.map(seen), [
      { _tag: "Unknown" },
      { _tag: "Unavailable", detail: "maintenance" },
      known,
    ])
    assert.strictEqual(asked.length, 3)
  })

  effect("an engine that is offline or in maintenance is asked again [decision 3 away]", function* () {
    const offline = answering(engineDetails({ is_online: false }))
    const maintained = answering(engineDetails({ status: "maintenance" }))
    const { cache } = yield* withAnswers([offline, maintained, maintained, here])
    const findings = [yield* cache.look(bank), yield* cache.look(bank)]
    assert.deepStrictEqual(findings.map(seen), [gone, gone])
    // In the next run, too, whose plan would else start logins.
    const planned = [yield* cache.find(bank), yield* cache.find(bank), yield* cache.find(bank)]
    assert.deepStrictEqual(planned.map(seen), [gone, known, known])
  })

  effect("each engine of a job is read once, and a service out of reach ends planning", function* () {
    const { asked, cache } = yield* withAnswers([here, unknown])
    const found = yield* cache.findAll([bank, anId("x:y"), bank])
    for (const engines of [[...found.keys()], asked]) assert.deepStrictEqual(engines, [bank, "x:y"])
    const failing = yield* Effect.forkChild(Effect.flip(cache.findAll([anId("x:z")])))
    yield* TestClock.adjust("3 minutes")
    assert.strictEqual((yield* Fiber.join(failing))._tag, "CatalogueFailed")
  })

  effect("a page that is refused, odd or lost is its engine's alone [run refused engine]", function* () {
    const refused = new SecretRefused({ http_status: 403, message: "showEngine: refused" })
    const odd = new UnexpectedAnswer({ http_status: 200, message: "showEngine: no form" })
    const looked = Effect.fnUntraced(function* (failure: CallFailure, list?: typeof refused) {
      const { cache } = yield* withAnswers(
        Array.from({ length: 9 }, () => failure),
        list,
      )
      const looking = yield* Effect.forkChild(Effect.result(cache.look(bank)))
      yield* TestClock.adjust("1 hours")
      return yield* Fiber.join(looking)
    })
    const alone = "showEngine: the service does not show this engine to the application (403)"
    const found = [
      yield* looked(refused),
      yield* looked(odd),
      yield* looked(new AnswerLost({ message: "lost" })),
    ]
    expect([...found, yield* looked(refused, refused)]).toStrictEqual([
      Result.succeed({ _tag: "Unreadable", detail: alone }),
      Result.succeed({ _tag: "Unreadable", detail: odd.message }),
      Result.succeed({ _tag: "Unavailable", detail: "lost" }),
      Result.fail(new CatalogueFailed({ message: refused.message })),
    ])
  })

  effect(
    "a preview asks for each engine once, and says of which it is not known [preview asks]",
    function* () {
      const other = anId("x:y")
      const cached = [here, here]
      const { asked, cache } = yield* withAnswers([...cached, away, unknown])
      yield* cache.findAll([bank, other])
      const asks = (...engines: ReadonlyArray<typeof bank>) =>
        Effect.map(cache.previewAll(engines), (found) => [...found.values()])
      assert.deepStrictEqual((yield* asks(bank, other)).map(seen), [gone, { _tag: "Unknown" }])
      const silent = yield* asks(bank, bank)
      const more = yield* asks(other)
      assert.deepStrictEqual([...silent, ...more].map(seen), [known, known])
      const unasked = [{ why: "refused", fetched_at: 0 }]
      assert.deepStrictEqual(
        silent.map((one) => one._tag === "Known" && one.unasked),
        unasked,
      )
      assert.strictEqual(asked.length, 6)
    },
  )

  effect("a form that cannot be used is reported, and not cached", function* () {
    const { asked, cache, ledger } = yield* withAnswers([here, slow, here])
    yield* cache.find(bank)
    const before = yield* ledger.cachedForm(bank)
    yield* TestClock.adjust("13 hours")
    assert.deepStrictEqual(yield* cache.find(bank), { _tag: "Unusable", why })
    assert.deepStrictEqual(yield* ledger.cachedForm(bank), before)
    assert.deepStrictEqual(seen(yield* cache.find(bank)), known)
    assert.strictEqual(asked.length, 3)
  })

  effect("a form that is too long, too deep or too wide is not even written out", function* () {
    const deep: unknown = JSON.parse("[".repeat(50_000) + "]".repeat(50_000))
    const wide = Array.from({ length: 200_001 }, () => 0)
    const forms = [deep, wide].map((example) => ({ parameters: paramsForm({ a: { example } }) }))
    const bodies = [{ name: "n".repeat(1_000_001) }, ...forms]
    const { cache } = yield* withAnswers(bodies.map((changes) => answering(engineDetails(changes))))
    const found = yield* Effect.forEach(bodies, () => cache.find(bank))
    assert.deepStrictEqual(found, [
      { _tag: "Unusable", why: "its details are longer than 1,000,000 characters" },
      { _tag: "Unusable", why: "its details are nested more than 100 levels deep" },
      { _tag: "Unusable", why: "its details hold more than 200,000 values" },
    ])
  })

  effect.each([JSON.stringify(ofSlow), '{"reference":1}'])(
    "a form that an older version cached and nobody can use is fetched again: %s",
    function* (body) {
      const { asked, cache, ledger } = yield* withAnswers([here])
      yield* ledger.cacheForm({ engine_reference: anId(bank), fetched_at: 0, body })
      for (const _ of [1, 2]) assert.deepStrictEqual(seen(yield* cache.find(bank)), known)
      assert.strictEqual(asked.length, 1)
    },
  )

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
    expect(fits.map(({ login }) => login && Redacted.value(login.parameters)["branch"])).toStrictEqual(
      cases.map((_, at) => at),
    )
  })
})
