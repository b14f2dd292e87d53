/**
 * Counts of a state are counts of what is there (section 2.4), whatever was asked for and whenever it is looked
 * at.
 */
import { expect, it } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { TestClock } from "effect/testing"
import fc from "fast-check"
import { ExecutionState } from "../../../src/service/Execution.ts"
import { features, featureStatusReasons, statusReasons } from "../../../src/service/Vocabulary.ts"
import { engineDefinitions } from "../../../src/sandbox/engines/EngineCatalogue.ts"
import { morning } from "../server/BothWays.ts"
import { Caller, field, inProcess, textField } from "../server/Caller.ts"

const rowsOf = (value: unknown): ReadonlyArray<unknown> => (Array.isArray(value) ? value : [])

const words = fc
  .record({
    records: fc.option(fc.nat({ max: 40 })),
    end: fc.option(fc.constantFrom(...statusReasons)),
    feature: fc.option(fc.constantFrom(...featureStatusReasons)),
    challenge: fc.option(fc.constantFrom(...features)),
    flags: fc.subarray(["partial", "odd", "attach-3"]),
  })
  .map(({ records, end, feature, challenge, flags }) =>
    [
      "queue-1+run-60",
      ...(records === null ? [] : [`records-${records}`]),
      ...(end === null ? [] : [`end-${end}`]),
      ...(feature === null ? [] : [`feature-${feature}`]),
      ...(challenge === null ? [] : [`challenge-1+by-${challenge}+expire-20`]),
      ...flags,
    ].join("+"),
  )
const runnable = ["sandbox-bank:website", "sandbox-tax:website", "es-bank:api", "es-utility:mobile"]
const asked = fc.constantFrom(...runnable).chain((engine_reference) => {
  const offered = engineDefinitions.find(({ reference }) => reference === engine_reference)?.features ?? []
  return fc.record({ engine_reference: fc.constant(engine_reference), features: fc.subarray([...offered]) })
})

const countedIn = (data: unknown): Readonly<Record<string, number>> => {
  const counts: Record<string, number> = {}
  for (const records of Object.values(Object(data))) {
    for (const record of rowsOf(records)) {
      if (field(record, "sub_family") === undefined) continue
      const key = `${textField(record, "sub_family")}@${textField(record, "product")}`
      counts[key] = (counts[key] ?? 0) + 1
    }
  }
  return counts
}

const decode = Schema.decodeUnknownSync(ExecutionState)

/** Looks at a run and its results after each of these waits. */
const look = Effect.fnUntraced(function* (
  said: string,
  more: Readonly<Record<string, unknown>>,
  waits: ReadonlyArray<number>,
) {
  yield* TestClock.setTime(morning)
  const caller = yield* Caller
  const person = { base_configurations: { customer_interaction_available: true } }
  const started = yield* caller.start(said, { ...more, ...person })
  for (const wait of waits) {
    yield* TestClock.adjust(wait)
    const state = yield* caller.read(textField(started, "execution_id"))
    const results = yield* caller.results(textField(started, "session_id"))
    if (state.status === 423) continue
    decode(state.json)
    const messages = rowsOf(field(state, "messages")).map((message) => field(message, "type"))
    expect([field(state, "warnings_count"), field(state, "errors_count")]).toEqual([
      messages.filter((type) => type === "warning").length,
      messages.filter((type) => type === "error").length,
    ])
    const counted = results.status === 200 ? countedIn(field(results, "data")) : {}
    expect([results.status === 200 || results.status === 412, field(state, "products_count")]).toEqual([
      true,
      counted,
    ])
  }
})

it("products_count is the records, and the counts of messages are the messages, at every moment", async () => {
  const waits = fc.array(fc.integer({ min: 5_001, max: 40_000 }), { maxLength: 4 })
  await fc.assert(
    fc.asyncProperty(words, asked, waits, (said, more, times) =>
      Effect.runPromise(
        look(said, more, [...times, 200_000]).pipe(
          Effect.provide(inProcess({ seed: 7 }).pipe(Layer.provideMerge(TestClock.layer()))),
        ),
      ),
    ),
    { numRuns: 40 },
  )
})
