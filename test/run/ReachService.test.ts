/** Before anything starts the service has to answer: how often it is asked, how long, and what remains if it never does. */
import { describe, expect } from "@effect/vitest"
import { Clock, Duration, Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { NotSent, SecretRefused, Service, Throttled, UnexpectedAnswer } from "../../src/client/Service.ts"
import type { CallFailure } from "../../src/client/Service.ts"
import { Progress, type ProgressEvent } from "../../src/task/Progress.ts"
import { Ledger } from "../../src/ledger/Ledger.ts"
import { reachService } from "../../src/run/Nightly.ts"
import { run_id } from "../report/Samples.ts"
import { bodyOf, scripted } from "../task/ScriptedService.ts"
import { effect } from "../harness/Steps.ts"

const minute = 60_000
const hour = 60 * minute
const begun = {
  _tag: "RunStarted",
  run_id,
  job: "demo",
  job_path: "jobs/demo.yaml",
  run_date: "2026-11-21",
  tool_version: "0.1.0",
} as const
const away = new NotSent({ message: "no connection" })

interface Asked {
  readonly untilAt?: number
  /** The service fails before this moment. */
  readonly awayUntil?: number
  readonly failure?: CallFailure
  readonly leavesTrace?: boolean
}

/** What became of it within a day: whether the beginning is recorded, the tries, the words, and the ledger's facts. */
const reach = ({ untilAt, awayUntil = 0, failure = away, leavesTrace = false }: Asked) =>
  Effect.gen(function* () {
    const told: Array<ProgressEvent> = []
    let tries = 0
    let gaveUp = 0
    const ledger = yield* Ledger
    const service: Service["Service"] = {
      ...(yield* Service),
      listEngines: Effect.flatMap(Clock.currentTimeMillis, (now) => {
        tries += 1
        return now < awayUntil ? Effect.fail(failure) : Effect.succeed({ body: bodyOf([]) })
      }),
    }
    const waiting = reachService({
      untilAt,
      ...(leavesTrace ? { begun } : {}),
      giveUp: Effect.sync(() => void (gaveUp += 1)),
    }).pipe(
      Effect.provideService(Service, service),
      Effect.provideService(Progress, { tell: (event) => Effect.sync(() => void told.push(event)) }),
      Effect.result,
      Effect.flatMap((result) => Effect.map(Clock.currentTimeMillis, (endedAt) => ({ result, endedAt }))),
    )
    const fiber = yield* Effect.forkChild(waiting)
    yield* TestClock.adjust("1 day")
    const { result, endedAt } = yield* Fiber.join(fiber)
    const outcome =
      result._tag === "Success" ? result.success : `${result.failure._tag}: ${result.failure.message}`
    const facts = (yield* ledger.facts(run_id)).map(({ fact }) => fact._tag)
    return { outcome, tries, told, gaveUp, facts, endedAt }
  }).pipe(
    Effect.provide(Layer.mergeAll(Ledger.layer({ path: ":memory:" }), scripted({}, []), TestClock.layer())),
  )

const refused = "ServiceRefused: no connection"

describe("a service that answers", () => {
  effect(
    "is asked once, or a few times if it fails, and nothing is recorded, whether or not the run may leave a trace",
    function* () {
      const once = { outcome: false, tries: 1, told: [], gaveUp: 0, facts: [], endedAt: 0 }
      expect(yield* reach({})).toEqual(once)
      expect(yield* reach({ untilAt: hour, leavesTrace: true })).toEqual(once)
      const { outcome, told, facts } = yield* reach({ awayUntil: 1, untilAt: hour, leavesTrace: true })
      expect([outcome, told, facts]).toEqual([false, [], []])
    },
  )
})

describe("a service that is away", () => {
  effect("is tried four times for a run that does not wait, which leaves nothing behind", function* () {
    const { endedAt, ...seen } = yield* reach({ awayUntil: Infinity })
    expect(seen).toEqual({ outcome: refused, tries: 4, told: [], gaveUp: 0, facts: [] })
    expect(endedAt).toBeLessThan(60_000)
  })

  effect("is waited for until the night ends; the run is recorded at once, and not given up", function* () {
    const { endedAt, tries, ...seen } = yield* reach({
      awayUntil: hour,
      untilAt: 3 * hour,
      leavesTrace: true,
    })
    const told = [{ _tag: "ServiceAway", message: "no connection", until: 3 * hour }]
    expect(seen).toEqual({ outcome: true, told, gaveUp: 0, facts: ["RunStarted"] })
    expect([endedAt >= hour, endedAt < hour + 2 * 60_000, tries > 50]).toEqual([true, true, true])
  })

  effect("is waited for whatever a gateway answers in its place [run gateway]", function* () {
    const failure = new UnexpectedAnswer({ http_status: 404, message: "not found" })
    const seen = yield* reach({ awayUntil: hour, untilAt: 3 * hour, failure })
    expect([seen.outcome, seen.tries > 50, seen.told]).toEqual([
      false,
      true,
      [{ _tag: "ServiceAway", message: "not found", until: 3 * hour }],
    ])
    expect((yield* reach({ awayUntil: hour, failure })).tries).toBe(2)
  })

  effect("is waited for as long as it asks, if the night is that long [run asked wait]", function* () {
    const failure = new Throttled({ http_status: 503, retry_after: Duration.minutes(11), message: "later" })
    const night = { untilAt: hour, failure, leavesTrace: true }
    const { endedAt, ...seen } = yield* reach({ ...night, awayUntil: 30 * minute })
    const told = [{ _tag: "ServiceAway", message: "later", until: hour }]
    // The second one follows at once: outside a test, `ServicePaced` answers it without a request.
    expect(seen).toEqual({ outcome: true, tries: 5, told, gaveUp: 0, facts: ["RunStarted"] })
    expect([endedAt >= 33 * minute, endedAt < 34 * minute]).toEqual([true, true])
    const plain = yield* reach({ awayUntil: Infinity, failure })
    expect([plain.outcome, plain.tries]).toEqual(["ServiceRefused: it asks to wait 11m (503)", 1])
  })

  effect("and asks to wait longer than the night costs the run at once [run asked too long]", function* () {
    const failure = new Throttled({ http_status: 429, retry_after: Duration.hours(2), message: "later" })
    const seen = yield* reach({ untilAt: hour, awayUntil: Infinity, failure, leavesTrace: true })
    const outcome = "ServiceRefused: it asks to wait 2h (429), and the night ends at 1970-01-01T01:00:00.000Z"
    expect(seen).toEqual({ outcome, tries: 1, told: [], gaveUp: 1, facts: ["RunStarted"], endedAt: 0 })
  })

  effect("for a while is no secret: a night says after a minute that it waits", function* () {
    const failure = new Throttled({ http_status: 429, retry_after: Duration.minutes(5), message: "later" })
    const { told } = yield* reach({ untilAt: hour, awayUntil: minute, failure })
    expect(told).toEqual([{ _tag: "ServiceAway", message: "later", until: hour }])
  })

  effect("until the night ends costs the run, which is given up once, and recorded", function* () {
    const { endedAt, outcome, gaveUp, facts } = yield* reach({
      awayUntil: Infinity,
      untilAt: 3 * hour,
      leavesTrace: true,
    })
    expect([outcome, gaveUp, facts]).toEqual([refused, 1, ["RunStarted"]])
    expect([endedAt <= 3 * hour, endedAt > 3 * hour - 5 * 60_000]).toEqual([true, true])
    const late = yield* reach({ awayUntil: Infinity, leavesTrace: true })
    expect([late.outcome, late.tries, late.gaveUp, late.facts]).toEqual([refused, 4, 1, ["RunStarted"]])
  })
})

effect("a refused application secret is not sent again, nor waited for [run refused secret]", function* () {
  const failure = new SecretRefused({ http_status: 401, message: "wrong secret" })
  const plain = yield* reach({ awayUntil: Infinity, failure })
  expect([plain.outcome, plain.tries]).toEqual(["ServiceRefused: wrong secret", 2])
  const nightly = yield* reach({ awayUntil: Infinity, failure, untilAt: 3 * hour, leavesTrace: true })
  expect([nightly.outcome, nightly.tries, nightly.gaveUp]).toEqual(["ServiceRefused: wrong secret", 2, 1])
  // It ends at once: nobody is told that it waits.
  expect([nightly.told, nightly.facts]).toEqual([[], ["RunStarted"]])
})
