/** How long an answer may take, in virtual time: whole, in pieces, and byte by byte. */
import { assert, describe } from "@effect/vitest"
import { Clock, Effect, Fiber, Stream, type Duration } from "effect"
import { HttpClient, HttpServerResponse } from "effect/http"
import { TestClock } from "effect/testing"
import { Service } from "../../src/client/Service.ts"
import { startCall } from "./Examples.ts"
import { flowResultsSource } from "../../src/service/FlowResults.ts"
import { serviceOver } from "./FakeService.ts"
import { anId } from "../harness/Id.ts"
import { effect } from "../harness/Steps.ts"

/** A body of so many chunks, one after each pause; `declared`: how many bytes its headers promise. */
const dripping = (chunk: Uint8Array, pause: Duration.Input, chunks = Infinity, declared?: number) =>
  HttpClient.make((request) =>
    Effect.sync(() => {
      const bytes = Stream.fromEffectRepeat(Effect.as(Effect.sleep(pause), chunk)).pipe(Stream.take(chunks))
      const answer = HttpServerResponse.stream(bytes, { contentLength: declared })
      return HttpServerResponse.toClientResponse(answer, { request })
    }),
  )
const declaring = (bytes: number) => dripping(new Uint8Array(1), "1 second", Infinity, bytes)
const byByte = dripping(new Uint8Array(1), "1 second")
const mebibyte = new Uint8Array(1024 * 1024)
const silent = HttpClient.make(() => Effect.never)

const state = Effect.flatMap(Service, (service) => service.readExecution(anId("e")))
const start = Effect.flatMap(Service, (service) => service.startExecution(startCall(), Effect.void))
const results = Effect.flatMap(Service, (service) =>
  service.readResults(flowResultsSource, { session_id: anId("s") }),
)
const document = Effect.flatMap(Service, (service) =>
  Effect.flatMap(service.downloadAttachment(anId("s"), "a"), (answer) =>
    answer._tag === "Document"
      ? Stream.runFold(
          answer.bytes,
          () => 0,
          (total, { length }) => total + length,
        )
      : Effect.succeed(0),
  ),
)

describe("an answer", () => {
  const stalled = "the answer stalled: less than 65536 bytes in 1m"
  effect.each([
    ["a request that is never answered", start, silent, 60, "startExecution: no answer within 1m"],
    ["a state that comes byte by byte", state, byByte, 60, "readExecution: no answer within 1m"],
    ["results that come byte by byte", results, byByte, 60, `flow_results: ${stalled}`],
    [
      "results of a small declared length that come byte by byte [promise 10 stalled]",
      results,
      declaring(5_000),
      60,
      `flow_results: ${stalled}`,
    ],
    ["the same, of one that is counted", results, declaring(60_000), 60, `flow_results: ${stalled}`],
    [
      "unless every minute brings enough of them [promise 10 slow]",
      results,
      dripping(new Uint8Array(100_000), "30 seconds", 5, 500_000),
      150,
      "flow_results: the answer contains no JSON object (200)",
    ],
    ["an attachment that comes byte by byte", document, byByte, 60, `downloadAttachment: ${stalled}`],
    [
      "an attachment of which every minute brings enough, in the end",
      document,
      dripping(mebibyte, "20 seconds"),
      1_800,
      "downloadAttachment: the answer did not end within 30m",
    ],
    [
      "unless it is slow and long but arrives",
      document,
      dripping(mebibyte, "20 seconds", 60),
      1_200,
      60 * 2 ** 20,
    ],
  ] as const)("is given up after its time: %s", function* ([, call, client, seconds, said]) {
    const ended = Effect.match(call as Effect.Effect<unknown, { readonly message: string }, Service>, {
      onFailure: ({ message }): unknown => message,
      onSuccess: (value) => value,
    }).pipe(Effect.provide(serviceOver(client)))
    const timed = Effect.flatMap(ended, (end) =>
      Effect.map(Clock.currentTimeMillis, (now) => [Math.round(now / 1_000), end]),
    )
    const fiber = yield* Effect.forkChild(timed)
    yield* TestClock.adjust("3 hours")
    assert.deepStrictEqual(yield* Fiber.join(fiber), [seconds, said])
  })
})
