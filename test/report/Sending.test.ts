/** What waits for a collector is bounded, and why something is lost is told. */
import { assert } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { HttpClient, HttpClientRequest, HttpClientResponse } from "effect/http"
import type { HttpClientError } from "effect/http"
import { TestClock } from "effect/testing"
import { sendingThrough } from "../../src/report/Outbound.ts"
import { effect } from "../harness/Steps.ts"

type Answering = (
  request: HttpClientRequest.HttpClientRequest,
) => Effect.Effect<HttpClientResponse.HttpClientResponse, HttpClientError.HttpClientError>

const sending = (answering: Answering) => {
  let asked = 0
  const inner = HttpClient.make((request) => {
    asked += 1
    return answering(request)
  })
  const { client, whyLost } = sendingThrough(inner)
  const send = Effect.exit(client.execute(HttpClientRequest.post("http://collector.example/v1/traces")))
  return { send, whyLost, asked: () => asked }
}
const answers =
  (status: number): Answering =>
  (request) =>
    Effect.succeed(HttpClientResponse.fromWeb(request, new Response(null, { status })))

effect(
  "refuses at once what comes while eight bodies wait, and gives those up after 17 seconds [exit telemetry dead]",
  function* () {
    const { send, whyLost, asked } = sending(() => Effect.never)
    const waiting = yield* Effect.forEach(Array.from({ length: 8 }), () => Effect.forkChild(send), {})
    yield* TestClock.adjust("1 millis")
    const ninth = yield* Effect.forkChild(send)
    yield* TestClock.adjust("1 millis")
    assert.deepStrictEqual([ninth.pollUnsafe() === undefined, asked()], [false, 8])
    assert.strictEqual((yield* Fiber.join(ninth))._tag, "Failure")
    assert.strictEqual(whyLost(), "it accepts records more slowly than they arrive")
    yield* TestClock.adjust("17 seconds")
    const ends = yield* Effect.forEach(waiting, Fiber.join)
    assert.deepStrictEqual(new Set(ends.map(({ _tag }) => _tag)), new Set(["Failure"]))
    assert.strictEqual(whyLost(), "it did not answer within 5 seconds")
  },
)

effect("tries a passing refusal three times and any other once [exit telemetry dead]", function* () {
  const tried = Effect.fnUntraced(function* (status: number) {
    const { send, whyLost, asked } = sending(answers(status))
    const sent = yield* Effect.forkChild(send)
    yield* TestClock.adjust("10 seconds")
    yield* Fiber.join(sent)
    return [status, asked(), whyLost()]
  })
  assert.deepStrictEqual(yield* Effect.forEach([200, 429, 503, 400, 401, 302], tried), [
    [200, 1, undefined],
    [429, 3, "it answered 429"],
    [503, 3, "it answered 503"],
    [400, 1, "it answered 400"],
    [401, 1, "it answered 401"],
    [302, 1, "it redirects (302), which is not followed"],
  ])
})
