/** What a run notes about its service: every outage once, with beginning and end; nothing about a lone failure. */
import { describe, expect, it } from "@effect/vitest"
import { Duration } from "effect"
import { SecretRefused, type CallFailure } from "../../src/client/Service.ts"
import { noteCall, noTroubles } from "../../src/task/Troubles.ts"
import type { Fact } from "../../src/ledger/Fact.ts"
import { night, run_id, type Night, succeeded } from "./ScriptedNight.ts"
import { accepted, completed, notSent, throttled, working, type Script } from "./ScriptedService.ts"
import { effect } from "../harness/Steps.ts"

const troublesIn = (facts: ReadonlyArray<Fact>) =>
  facts.filter(({ _tag }) => _tag === "TroubleBegan" || _tag === "TroubleEnded")
const at = (ms: number): string => new Date(ms).toISOString()
const polling = { min: Duration.seconds(5), max: Duration.seconds(5) }

/** Twenty minutes of one execution, while the service answers as `during` says. */
const seen = (during: Script["state"], more: Night = {}) =>
  night({
    script: { state: (id, times) => (times > 240 ? completed : (during?.(id, times) ?? working)) },
    rules: { polling },
    ...more,
  })

describe("the log of a night", () => {
  effect("shows an outage of 45 seconds when it began and when it was over", function* () {
    const told: Night["told"] = []
    const end = yield* seen((_, times) => (times >= 10 && times < 19 ? notSent : working), { told })
    const looks = end.calls.filter(([, verb]) => verb === "state").map(([ms]) => ms + 200)
    const since = at(looks[9] ?? 0)
    expect(troublesIn(end.facts)).toEqual([
      { _tag: "TroubleBegan", run_id, trouble: "silent", since, message: "refused connection" },
      { _tag: "TroubleEnded", run_id: end.state.started.run_id, trouble: "silent", since, failures: 9 },
    ])
    expect(told.flatMap((event) => (event._tag === "Noted" ? event.fact : []))).toEqual(troublesIn(end.facts))
    expect(end.verdict("c-1")).toBe(succeeded)
  })

  effect("shows an engine that takes no start, and when it takes starts again", function* () {
    const end = yield* night({
      tasks: [{ customer: "c-1" }, { customer: "c-2" }],
      script: {
        start: (call, times) =>
          times < 3 ? { _tag: "EngineUnavailable" } : accepted(`${call.customer_id}-${times}`),
      },
    })
    expect(troublesIn(end.facts)).toMatchObject([
      { _tag: "TroubleBegan", trouble: "engine", message: "no execution can be started" },
      { _tag: "TroubleEnded", trouble: "engine", engine_reference: "bank" },
    ])
  })
})

it("what becomes known of the service is told at once when it begins and when it is over, and only then [told revoked]", () => {
  let troubles = noTroubles(run_id)
  const failed = (failure: CallFailure | undefined, now: number) => {
    const { news } = troubles
    troubles = noteCall(troubles, failure, now)
    return troubles.news.length > news.length
  }
  const answered = (now: number) => failed(undefined, now)
  expect([
    answered(0),
    failed(notSent, 1_000),
    failed(notSent, 10_999),
    failed(notSent, 11_000),
    failed(notSent, 12_000),
    answered(13_000),
    answered(14_000),
    failed(throttled(429), 15_000),
    failed(throttled(429), 16_000),
    answered(75_999),
    answered(76_000),
    failed(notSent, 80_000),
    failed(throttled(504), 90_000),
  ]).toEqual([false, false, false, true, false, true, false, true, false, false, true, false, true])
  // Every call is refused: the secret was revoked.
  const refused = new SecretRefused({ message: "401", http_status: 401 })
  expect([failed(refused, 100_000), failed(refused, 110_000), answered(120_000)]).toEqual([false, true, true])
  expect(troubles.news.map((fact) => [fact._tag, fact.trouble, fact.since])).toEqual([
    ["TroubleBegan", "silent", at(1_000)],
    ["TroubleEnded", "silent", at(1_000)],
    ["TroubleBegan", "throttled", at(15_000)],
    ["TroubleEnded", "throttled", at(15_000)],
    ["TroubleBegan", "silent", at(80_000)],
    ["TroubleEnded", "silent", at(80_000)],
    ["TroubleBegan", "silent", at(100_000)],
    ["TroubleEnded", "silent", at(100_000)],
  ])
})
