import { assert, describe, it } from "@effect/vitest"
import { Clock, Duration, Effect, Fiber, Layer, Random } from "effect"
import { TestClock } from "effect/testing"
import type { Asked } from "../../src/client/Pacing.ts"
import { NotSent, Service, Throttled, type CallFailure } from "../../src/client/Service.ts"
import { ServicePaced, ServicePause } from "../../src/client/ServicePaced.ts"
import { scripted } from "../task/ScriptedService.ts"
import { startCall } from "./Examples.ts"
import { anId } from "../harness/Id.ts"
import { withLayer } from "../harness/Steps.ts"

const { effect } = withLayer(ServicePause.layer())

const addresses = {
  base_url: "https://host/api",
  flows_url: "https://host/flows",
  attachments_url: "https://host/flows",
}

const at = (host: string): Asked => ({ host, endpoint: "any" })
const state = (subject: string): Asked => ({ host: "h", endpoint: "readExecution", subject })
const session = (subject: string): Asked => ({
  host: "h",
  endpoint: "flow_results",
  subject,
  limit: "session",
})

const throttled = (askedMs?: number) =>
  new Throttled({
    http_status: 429,
    message: "m",
    ...(askedMs === undefined ? {} : { retry_after: Duration.millis(askedMs) }),
  })

describe("the pace of a host", () => {
  effect(
    "a host that never complains is not slowed, except by the limit on concurrent requests",
    function* () {
      const pause = yield* ServicePause
      let open = 0
      let most = 0
      const call = Effect.gen(function* () {
        most = Math.max(most, ++open)
        yield* Effect.sleep("1 second")
        open--
      })
      const fiber = yield* Effect.forkChild(
        Effect.all(
          Array.from({ length: 640 }, () => pause.call(at("h"), call)),
          { concurrency: 640 },
        ),
      )
      yield* TestClock.adjust("10 seconds")
      assert.deepStrictEqual([most, fiber.pollUnsafe()?._tag], [64, "Success"])
    },
  )

  it.effect(
    "a Retry-After about nothing in particular closes its endpoint, and calls return spread out",
    () =>
      Effect.gen(function* () {
        const pause = yield* ServicePause
        const times: Array<number> = []
        const note = Effect.map(Clock.currentTimeMillis, (now) => void times.push(now))
        yield* Effect.ignore(pause.call(at("h"), Effect.fail(throttled(30_000))))
        const fiber = yield* Effect.forkChild(
          Effect.all(
            Array.from({ length: 20 }, () => pause.call(at("h"), note)),
            { concurrency: 20 },
          ),
        )
        yield* pause.call(at("elsewhere"), note)
        yield* TestClock.adjust("29999 millis")
        assert.deepStrictEqual(times, [0])
        yield* TestClock.adjust("2 minutes")
        yield* Fiber.join(fiber)
        const returned = times.slice(1)
        assert.strictEqual(new Set(returned).size, 20)
        assert.isAtLeast(Math.min(...returned), 30_000)
      }).pipe(Effect.provide(ServicePause.layer()), Random.withSeed("apart")),
  )

  effect(
    "an engine that is away is not called again before its Retry-After, and no other engine waits",
    function* () {
      const asked: Array<string> = []
      const away = Layer.effect(
        Service,
        Effect.map(Service, (service) =>
          Service.of({
            ...service,
            showEngine: (engine) =>
              Effect.sync(() => {
                asked.push(engine)
                return { _tag: "EngineUnavailable", retry_after: Duration.millis(300_000) }
              }),
          }),
        ),
      ).pipe(Layer.provide(scripted({}, [])))
      const paced = ServicePaced.layer(addresses).pipe(
        Layer.provide(ServicePause.layer()),
        Layer.provide(away),
      )
      yield* Effect.gen(function* () {
        const { showEngine } = yield* Service
        yield* showEngine(anId("a:website"))
        const again = yield* Effect.flip(showEngine(anId("a:website")))
        assert.deepStrictEqual(again instanceof Throttled && [again.http_status, again.retry_after], [
          503,
          Duration.minutes(5),
        ])
        yield* showEngine(anId("b:website"))
        yield* TestClock.adjust("5 minutes")
        yield* showEngine(anId("a:website"))
      }).pipe(Effect.provide(paced))
      assert.deepStrictEqual(asked, ["a:website", "b:website", "a:website"])
    },
  )

  it.effect("a start is sent when its turn has come, not while it waits", () =>
    Effect.gen(function* () {
      const pause = yield* ServicePause
      const service = yield* Service
      const subject = JSON.stringify([startCall().customer_id, startCall().engine_reference])
      const asked: Asked = { host: "host", endpoint: "startExecution", subject }
      yield* Effect.ignore(pause.call(asked, Effect.fail(throttled(30_000))))
      const left: Array<number> = []
      const leaving = Effect.map(Clock.currentTimeMillis, (now) => void left.push(now))
      const fiber = yield* Effect.forkChild(service.startExecution(startCall(), leaving))
      yield* TestClock.adjust("29 seconds")
      assert.deepStrictEqual(left, [])
      yield* TestClock.adjust("10 seconds")
      yield* Fiber.join(fiber)
      assert.lengthOf(left, 1)
    }).pipe(
      Effect.provide(
        ServicePaced.layer(addresses).pipe(
          Layer.provideMerge(ServicePause.layer()),
          Layer.provide(scripted({}, [])),
        ),
      ),
    ),
  )

  effect("a Retry-After that arrives while calls wait for their slot makes them wait longer", function* () {
    const pause = yield* ServicePause
    yield* Effect.ignore(pause.call(at("h"), Effect.fail(throttled())))
    const times: Array<number> = []
    const note = Effect.map(Clock.currentTimeMillis, (now) => void times.push(now))
    const slow = Effect.andThen(Effect.sleep("10 millis"), Effect.fail(throttled(60_000)))
    const first = yield* Effect.forkChild(Effect.ignore(pause.call(at("h"), slow)))
    const second = yield* Effect.forkChild(pause.call(at("h"), note))
    const third = yield* Effect.forkChild(pause.call(at("h"), note))
    yield* TestClock.adjust("5 minutes")
    yield* Effect.all([Fiber.join(first), Fiber.join(second), Fiber.join(third)])
    assert.isAtLeast(Math.min(...times), 60_000)
  })

  effect(
    "a call that is interrupted while it waits has sent nothing, and reports it if it must not be cut off",
    function* () {
      const pause = yield* ServicePause
      let sent = 0
      const call = Effect.sync(() => void (sent += 1))
      yield* Effect.ignore(pause.call(at("h"), Effect.fail(throttled(30_000))))
      let told: CallFailure | undefined
      const start = Effect.tapError(pause.call(at("h"), call), (failure) =>
        Effect.sync(() => (told = failure)),
      )
      const fiber = yield* Effect.forkChild(Effect.uninterruptible(Effect.ignore(start)))
      yield* TestClock.adjust("1 second")
      fiber.interruptUnsafe()
      yield* TestClock.adjust("1 second")
      const seen = [sent, told instanceof NotSent]
      // Whoever still waits is let go, so that the test ends where it fails.
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(seen, [0, true])
    },
  )
})

describe("a Retry-After about one session or execution", () => {
  const absurd = 99_999_999_000

  it.effect("holds back that session, but neither its endpoint nor the pace of its host", () =>
    Effect.gen(function* () {
      const pause = yield* ServicePause
      const times: Array<number> = []
      const note = Effect.map(Clock.currentTimeMillis, (now) => void times.push(now))
      yield* Effect.ignore(pause.call(session("s-1"), Effect.fail(throttled(30_000))))
      const others = Array.from({ length: 20 }, (_, index) => pause.call(session(`other-${index}`), note))
      yield* Effect.all(others, { concurrency: 20 })
      const own = yield* Effect.forkChild(pause.call(session("s-1"), note))
      yield* TestClock.adjust("36 seconds")
      yield* Fiber.join(own)
      assert.deepStrictEqual([times.slice(0, 20), times.length], [Array.from({ length: 20 }, () => 0), 21])
      assert.isAtLeast(times[20] ?? 0, 30_000)
    }).pipe(Effect.provide(ServicePause.layer()), Random.withSeed("session")),
  )

  effect(
    "is obeyed in full: nothing is sent before, and a call that would wait long fails at once",
    function* () {
      const pause = yield* ServicePause
      let sent = 0
      const call = Effect.sync(() => void (sent += 1))
      yield* Effect.ignore(pause.call(state("e-1"), Effect.fail(throttled(absurd))))
      yield* TestClock.adjust("10 hours")
      const answer = yield* Effect.flip(pause.call(state("e-1"), call))
      assert.deepStrictEqual(
        [answer._tag, answer._tag === "Throttled" && answer.retry_after, sent],
        ["Throttled", Duration.millis(absurd - 36_000_000), 0],
      )
      assert.match(answer.message, /^readExecution: not sent: the service asked to wait .*\(429\)$/)
    },
  )

  it.effect("costs other calls of its endpoint only pace, however often it is repeated", () =>
    Effect.gen(function* () {
      const pause = yield* ServicePause
      const times: Array<number> = []
      const note = Effect.map(Clock.currentTimeMillis, (now) => void times.push(now))
      const complain = Effect.ignore(pause.call(state("e-1"), Effect.fail(throttled(50_000))))
      yield* complain
      const again = yield* Effect.forkChild(Effect.forever(complain))
      const reader = yield* Effect.forkChild(
        Effect.forever(Effect.andThen(pause.call(state("e-2"), note), Effect.sleep("10 seconds"))),
      )
      yield* TestClock.adjust("10 minutes")
      yield* Effect.all([Fiber.interrupt(again), Fiber.interrupt(reader)])
      assert.isAtLeast(times.length, 55)
    }).pipe(Effect.provide(ServicePause.layer()), Random.withSeed("again")),
  )

  it.effect("holds no slot among the concurrent requests", () =>
    Effect.gen(function* () {
      const pause = yield* ServicePause
      for (const id of ["s-1", "s-2", "s-3"])
        yield* Effect.ignore(pause.call(session(id), Effect.fail(throttled(50_000))))
      const waiting = ["s-1", "s-2", "s-3"].map((id) => pause.call(session(id), Effect.void))
      const fiber = yield* Effect.forkChild(Effect.all(waiting, { concurrency: 3 }))
      yield* TestClock.adjust("1 second")
      yield* pause.call(session("s-4"), Effect.void)
      assert.strictEqual(fiber.pollUnsafe(), undefined)
    }).pipe(Effect.provide(ServicePause.layer({ requestsAtOnce: 2 }))),
  )

  effect("that is a lock (504) says nothing about the host", function* () {
    const pause = yield* ServicePause
    const locked = new Throttled({ http_status: 504, retry_after: Duration.millis(60_000), message: "m" })
    yield* Effect.ignore(pause.call(state("s-1"), Effect.fail(locked)))
    yield* pause.call(state("s-2"), Effect.void)
  })
})
