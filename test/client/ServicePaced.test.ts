import { assert, describe, it } from "@effect/vitest"
import { Clock, Context, Duration, Effect, Fiber, Layer, Random, type Scope } from "effect"
import { TestClock } from "effect/testing"
import type { Asked } from "../../src/client/Pacing.ts"
import { NotSent, Service, Throttled, type CallFailure } from "../../src/client/Service.ts"
import { ServicePaced, ServicePause } from "../../src/client/ServicePaced.ts"
import { scripted } from "../task/ScriptedService.ts"
import { startCall } from "./Examples.ts"
import { anId } from "../harness/Id.ts"
import type { Failure } from "../harness/Steps.ts"

/** With the same draws each time: calls that return apart do so at other moments. */
const effect = (
  title: string,
  steps: () => Generator<Effect.Effect<unknown, Failure, ServicePause | Scope.Scope>, void, never>,
) =>
  it.effect(title, () =>
    Effect.gen(steps).pipe(Effect.provide(ServicePause.layer()), Random.withSeed("apart")),
  )

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
  at: "flows_url",
})

const throttled = (askedMs?: number) =>
  new Throttled({
    http_status: 429,
    message: "m",
    ...(askedMs === undefined ? {} : { retry_after: Duration.millis(askedMs) }),
  })

/** The pause, a call that it refuses so, and one that notes when it was sent. */
const paced = Effect.gen(function* () {
  const pause = yield* ServicePause
  const times: Array<number> = []
  const note = Effect.map(Clock.currentTimeMillis, (now) => void times.push(now))
  const refused = (asked: Asked, failure = throttled(30_000)) =>
    Effect.ignore(pause.call(asked, Effect.fail(failure)))
  return { pause, times, note, refused }
})
/** The service behind the pause of the test, with these calls of its own. */
const pacedService = (changes: Partial<Service["Service"]> = {}) => {
  const changed = Effect.map(Service, (service) => Service.of({ ...service, ...changes }))
  const behind = Layer.effect(Service, changed).pipe(Layer.provide(scripted({}, [])))
  return Effect.map(
    Layer.build(ServicePaced.layer(addresses).pipe(Layer.provide(behind))),
    Context.get(Service),
  )
}
const many = <A>(count: number, one: (index: number) => Effect.Effect<A, CallFailure>) =>
  Effect.all(
    Array.from({ length: count }, (_, index) => one(index)),
    { concurrency: "unbounded", discard: true },
  )

describe("the pace of a host", () => {
  effect("a host that never complains is slowed by the limit on concurrent requests alone", function* () {
    const { pause } = yield* paced
    let open = 0
    let most = 0
    const call = Effect.gen(function* () {
      most = Math.max(most, ++open)
      yield* Effect.sleep("1 second")
      open--
    })
    const fiber = yield* Effect.forkChild(many(640, () => pause.call(at("h"), call)))
    yield* TestClock.adjust("10 seconds")
    assert.deepStrictEqual([most, fiber.pollUnsafe()?._tag], [64, "Success"])
  })

  effect("a Retry-After about nothing particular closes its endpoint, and calls return apart", function* () {
    const { pause, times, note, refused } = yield* paced
    yield* refused(at("h"))
    const fiber = yield* Effect.forkChild(many(20, () => pause.call(at("h"), note)))
    yield* pause.call(at("elsewhere"), note)
    yield* TestClock.adjust("29999 millis")
    assert.deepStrictEqual(times, [0])
    yield* TestClock.adjust("2 minutes")
    yield* Fiber.join(fiber)
    const returned = times.slice(1)
    assert.strictEqual(new Set(returned).size, 20)
    assert.isAtLeast(Math.min(...returned), 30_000)
  })

  effect("an engine that is away is not called before its Retry-After, and no other waits", function* () {
    const asked: Array<string> = []
    const { showEngine } = yield* pacedService({
      showEngine: (engine) =>
        Effect.sync(() => {
          asked.push(engine)
          return { _tag: "EngineUnavailable", retry_after: Duration.millis(300_000) }
        }),
    })
    yield* showEngine(anId("a:website"))
    const again = yield* Effect.flip(showEngine(anId("a:website")))
    assert.deepInclude(again, { http_status: 503, retry_after: Duration.minutes(5) })
    yield* showEngine(anId("b:website"))
    yield* TestClock.adjust("5 minutes")
    yield* showEngine(anId("a:website"))
    assert.deepStrictEqual(asked, ["a:website", "b:website", "a:website"])
  })

  effect("a start is sent when its turn has come, not while it waits", function* () {
    const { times, note, refused } = yield* paced
    const { startExecution } = yield* pacedService()
    const subject = JSON.stringify([startCall().customer_id, startCall().engine_reference])
    yield* refused({ host: "host", endpoint: "startExecution", subject })
    const fiber = yield* Effect.forkChild(startExecution(startCall(), note))
    yield* TestClock.adjust("29 seconds")
    assert.deepStrictEqual(times, [])
    yield* TestClock.adjust("10 seconds")
    yield* Fiber.join(fiber)
    assert.lengthOf(times, 1)
  })

  effect("a Retry-After that arrives while calls wait for their slot makes them wait longer", function* () {
    const { pause, times, note, refused } = yield* paced
    yield* refused(at("h"), throttled())
    const slow = Effect.andThen(Effect.sleep("10 millis"), Effect.fail(throttled(60_000)))
    const calls = [Effect.ignore(pause.call(at("h"), slow)), ...[1, 2].map(() => pause.call(at("h"), note))]
    const fiber = yield* Effect.forkChild(Effect.all(calls, { concurrency: "unbounded", discard: true }))
    yield* TestClock.adjust("5 minutes")
    yield* Fiber.join(fiber)
    assert.isAtLeast(Math.min(...times), 60_000)
  })

  effect("a call that is interrupted while it waits has sent nothing, and reports it", function* () {
    const { pause, times, note, refused } = yield* paced
    yield* refused(at("h"))
    let told: CallFailure | undefined
    const start = Effect.tapError(pause.call(at("h"), note), (failure) => Effect.sync(() => (told = failure)))
    const fiber = yield* Effect.forkChild(Effect.uninterruptible(Effect.ignore(start)))
    yield* TestClock.adjust("1 second")
    fiber.interruptUnsafe()
    yield* TestClock.adjust("1 second")
    const seen = [times, told instanceof NotSent]
    // Whoever still waits is let go, so that the test ends where it fails.
    yield* TestClock.adjust("1 minute")
    assert.deepStrictEqual(seen, [[], true])
  })
})

describe("the documents of a session", () => {
  const documents = ["d-1", "d-2", "d-3", "d-4", "d-5", "d-6"]
  /** What asks for a document of a service that refuses each of them so, and notes it. */
  const pulling = (failure: Throttled, asked: Array<string> = []) =>
    Effect.map(
      pacedService({
        downloadAttachment: (_, id) => Effect.suspend(() => (asked.push(id), Effect.fail(failure))),
      }),
      ({ downloadAttachment }) =>
        (id: string) =>
          Effect.ignore(downloadAttachment(anId("s"), id)),
    )

  effect("are one subject: the host is as fast after all were refused [promise 10 documents]", function* () {
    const { pause, times, note } = yield* paced
    const pull = yield* pulling(throttled())
    const others = many(30, () => pause.call(at("host"), note))
    const all = Effect.forEach(documents, (id) => Effect.andThen(pull(id), others), { discard: true })
    const fiber = yield* Effect.forkChild(all)
    yield* TestClock.adjust("1 minute")
    yield* Fiber.join(fiber)
    assert.strictEqual(new Set(times.slice(-30)).size, 1)
  })

  effect("are each held back by a Retry-After of its own alone", function* () {
    const asked: Array<string> = []
    const pull = yield* pulling(throttled(3_600_000), asked)
    const fiber = yield* Effect.forkChild(Effect.forEach([...documents, ...documents], pull))
    yield* TestClock.adjust("1 minute")
    yield* Fiber.join(fiber)
    assert.deepStrictEqual(asked, documents)
  })
})

describe("a Retry-After about one session or execution", () => {
  const absurd = 99_999_999_000

  effect("holds back that session, but neither its endpoint nor the pace of its host", function* () {
    const { pause, times, note, refused } = yield* paced
    yield* refused(session("s-1"))
    yield* many(20, (index) => pause.call(session(`other-${index}`), note))
    const own = yield* Effect.forkChild(pause.call(session("s-1"), note))
    yield* TestClock.adjust("36 seconds")
    yield* Fiber.join(own)
    assert.deepStrictEqual([times.slice(0, 20), times.length], [Array.from({ length: 20 }, () => 0), 21])
    assert.isAtLeast(times[20] ?? 0, 30_000)
  })

  effect("is obeyed in full: nothing is sent before, and a call that would wait long fails", function* () {
    const { pause, times, note, refused } = yield* paced
    yield* refused(state("e-1"), throttled(absurd))
    yield* TestClock.adjust("10 hours")
    const answer = yield* Effect.flip(pause.call(state("e-1"), note))
    assert.deepInclude(answer, { _tag: "Throttled", retry_after: Duration.millis(absurd - 36_000_000) })
    assert.deepStrictEqual(times, [])
    assert.match(answer.message, /^readExecution: not sent: the service asked to wait .*\(429\)$/)
  })

  effect("costs other calls of its endpoint only pace, however often it is repeated", function* () {
    const { pause, times, note, refused } = yield* paced
    const complain = refused(state("e-1"), throttled(50_000))
    yield* complain
    const again = yield* Effect.forkChild(Effect.forever(complain))
    const read = Effect.andThen(pause.call(state("e-2"), note), Effect.sleep("10 seconds"))
    const reader = yield* Effect.forkChild(Effect.forever(read))
    yield* TestClock.adjust("10 minutes")
    yield* Effect.all([Fiber.interrupt(again), Fiber.interrupt(reader)])
    assert.isAtLeast(times.length, 55)
  })

  effect("holds no slot among the concurrent requests", function* () {
    yield* Effect.gen(function* () {
      const { pause, refused } = yield* paced
      const ids = ["s-1", "s-2", "s-3"]
      for (const id of ids) yield* refused(session(id), throttled(50_000))
      const waiting = many(3, (index) => pause.call(session(ids[index] ?? ""), Effect.void))
      const fiber = yield* Effect.forkChild(waiting)
      yield* TestClock.adjust("1 second")
      yield* pause.call(session("s-4"), Effect.void)
      assert.strictEqual(fiber.pollUnsafe(), undefined)
    }).pipe(Effect.provide(ServicePause.layer({ requestsAtOnce: 2 })))
  })

  effect("that is a lock (504) says nothing about the host", function* () {
    const { pause, refused } = yield* paced
    yield* refused(
      state("s-1"),
      new Throttled({ http_status: 504, retry_after: Duration.millis(60_000), message: "m" }),
    )
    yield* pause.call(state("s-2"), Effect.void)
  })
})
