/** What waits for a collector is bounded, and what is lost is counted. */
import { assert } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { HttpBody, HttpClient, HttpClientRequest, HttpClientResponse } from "effect/http"
import type { HttpClientError } from "effect/http"
import { TestClock } from "effect/testing"
import { noDeliveries, sendingThrough, type Counted } from "../../src/report/Outbound.ts"
import { effect } from "../harness/Steps.ts"

type Answering = (
  request: HttpClientRequest.HttpClientRequest,
) => Effect.Effect<HttpClientResponse.HttpClientResponse, HttpClientError.HttpClientError>

const sending = (answering: Answering) => {
  const counted: Counted = new WeakMap()
  const deliveries = noDeliveries()
  let asked = 0
  const inner = HttpClient.make((request) => {
    asked += 1
    return answering(request)
  })
  const client = sendingThrough(inner, counted, deliveries)
  const send = (records: number) => {
    const body = HttpBody.text("{}", "application/json")
    counted.set(body, { signal: "traces", records })
    const request = HttpClientRequest.post("http://collector.example/v1/traces")
    return Effect.exit(client.execute(HttpClientRequest.setBody(request, body)))
  }
  return { send, deliveries, asked: () => asked }
}
const answers =
  (status: number): Answering =>
  (request) =>
    Effect.succeed(HttpClientResponse.fromWeb(request, new Response(null, { status })))

effect(
  "refuses at once what comes while eight bodies wait, and gives those up after 17 seconds [exit telemetry dead]",
  function* () {
    const { send, deliveries, asked } = sending(() => Effect.never)
    const waiting = yield* Effect.forEach(Array.from({ length: 8 }), () => Effect.forkChild(send(1_000)), {})
    yield* TestClock.adjust("1 millis")
    assert.strictEqual(deliveries.traces.underWay, 8)
    const ninth = yield* Effect.forkChild(send(1_000))
    yield* TestClock.adjust("1 millis")
    assert.deepStrictEqual([ninth.pollUnsafe() === undefined, asked()], [false, 8])
    assert.strictEqual((yield* Fiber.join(ninth))._tag, "Failure")
    assert.strictEqual(deliveries.traces.why, "it accepts records more slowly than they arrive")
    yield* TestClock.adjust("17 seconds")
    const ends = yield* Effect.forEach(waiting, Fiber.join)
    assert.deepStrictEqual(new Set(ends.map(({ _tag }) => _tag)), new Set(["Failure"]))
    assert.deepStrictEqual(deliveries.traces, {
      delivered: 0,
      underWay: 0,
      isUpToDate: false,
      why: "it did not answer within 5 seconds",
    })
  },
)

effect("tries a passing refusal three times and any other once [exit telemetry dead]", function* () {
  const tried = Effect.fnUntraced(function* (status: number) {
    const { send, deliveries, asked } = sending(answers(status))
    const sent = yield* Effect.forkChild(send(7))
    yield* TestClock.adjust("10 seconds")
    yield* Fiber.join(sent)
    return [status, asked(), deliveries.traces.delivered]
  })
  assert.deepStrictEqual(yield* Effect.forEach([200, 429, 503, 400, 401, 302], tried), [
    [200, 1, 7],
    [429, 3, 0],
    [503, 3, 0],
    [400, 1, 0],
    [401, 1, 0],
    [302, 1, 0],
  ])
})
