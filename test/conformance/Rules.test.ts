/**
 * Rules of the reference whose edges the suites of the embedded service do not walk: who waits how long,
 * until when an answer counts, which features have no settings, and when nobody is told of a challenge.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { Caller, field, inProcess, morning, textField } from "../sandbox/server/Caller.ts"
import { HookTarget, pass, told, run } from "../sandbox/hooks/HookTarget.ts"

const person = { base_configurations: { customer_interaction_available: true } }

const inTheMorning = <A, E>(body: Effect.Effect<A, E, Caller>) =>
  Effect.andThen(TestClock.setTime(morning), body).pipe(Effect.provide(inProcess({ seed: 7 })))

/** How long each of many runs waited before its engine began, in minutes. */
const queues = Effect.fnUntraced(function* (more: Readonly<Record<string, unknown>>) {
  const caller = yield* Caller
  const ids: Array<string> = []
  for (let n = 0; n < 60; n += 1) {
    const started = yield* caller.start("ok", { customer_id: `c-${n}`, ...more })
    ids.push(textField(started, "execution_id"))
  }
  yield* TestClock.adjust("4 hours")
  const states = yield* Effect.forEach(ids, (id) => caller.read(id))
  return states.map(
    (state) =>
      (Date.parse(textField(state, "date_started")) - Date.parse(textField(state, "date_created"))) / 60_000,
  )
})

describe("the queue", () => {
  it.effect(
    "[limit 4] [field base.customer_interaction_available] takes up to three hours where nobody can answer, " +
      "and a minute at most where somebody can",
    () =>
      inTheMorning(
        Effect.gen(function* () {
          const alone = yield* queues({})
          expect([alone.length, Math.max(...alone) <= 180, Math.max(...alone) > 60]).toEqual([60, true, true])
          const answered = yield* queues({ ...person, engine_reference: "sandbox-tax:website" })
          expect([answered.length, Math.max(...answered) <= 1]).toEqual([60, true])
        }),
      ),
  )
})

describe("a challenge", () => {
  it.effect(
    "[limit 5] [move 4] is answered in time to the last moment, and in that moment it is too late",
    () =>
      inTheMorning(
        Effect.gen(function* () {
          const caller = yield* Caller
          const answers = []
          for (const [customer_id, ms] of [
            ["in-time", 119_999],
            ["late", 120_000],
          ] as const) {
            const started = yield* caller.start("queue-0+run-0+challenge-1", { ...person, customer_id })
            const id = textField(started, "execution_id")
            const expires = Date.parse(textField(yield* caller.read(id), "action_required_expires"))
            yield* TestClock.adjust(ms)
            answers.push([expires, (yield* caller.resume(id, { code: "1" })).status])
          }
          // Where no word says otherwise there are two minutes, as a bank gives them.
          expect(answers).toEqual([
            [morning + 120_000, 202],
            [morning + 119_999 + 120_000, 410],
          ])
        }),
      ),
  )

  it("[event action_required] [field base.customer_interaction_available] is told to nobody where no person was declared", () => {
    const events = run(function* (caller) {
      yield* caller.start("queue-1+run-10+challenge-1")
      yield* pass(60)
      return (yield* HookTarget).news().map(told)
    })
    expect(events.map(([, event, reason]) => [event, reason])).toEqual([
      ["started", "WAITING"],
      ["ended", "CUSTOMER_INTERVENTION_REQUIRED"],
    ])
  })
})

/** 4.1: the row of the features that take none. */
const withoutSettings = [
  "customer_information_read",
  "deposits_read",
  "direct_debits_read",
  "funds_read",
  "investment_accounts_read",
  "loans_read",
  "pensions_read",
  "public_document_verification",
  "public_pensions",
  "source_contracts_read",
  "stocks_read",
]

describe("settings", () => {
  it.effect.each(withoutSettings.map((code) => ({ code })))(
    "[settings none] $code shows an empty form wherever it is offered",
    ({ code }) =>
      inTheMorning(
        Effect.gen(function* () {
          const caller = yield* Caller
          const list = yield* caller.call("GET", `${caller.base_url}/config/engines/list?features=${code}`)
          const engines = Array.isArray(list.json)
            ? list.json.map((one: unknown) => field(one, "reference"))
            : []
          expect(engines.length).toBeGreaterThan(0)
          for (const reference of engines) {
            const shown = yield* caller.call("GET", `${caller.base_url}/config/engines/${String(reference)}`)
            const features = field(shown, "features")
            const offered = Array.isArray(features)
              ? features.find((feature: unknown) => field(feature, "code") === code)
              : undefined
            expect(field(offered, "configurations")).toEqual({
              type: "object",
              format: "cg-configs",
              properties: {},
            })
          }
        }),
      ),
  )
})
