/** How long an answer may take, in virtual time: whole, in pieces, and byte by byte. */
import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Fiber, Layer, Stream } from "effect"
import type { Duration } from "effect"
import { HttpClient, HttpServerResponse } from "effect/http"
import { TestClock } from "effect/testing"
import { Service } from "../../src/client/Service.ts"
import type { CallFailure, ServiceSettingsRefused } from "../../src/client/Service.ts"
import { ServiceHttp } from "../../src/client/ServiceHttp.ts"
import { builtInSources } from "../../src/service/FlowResults.ts"
import { settingsFor } from "./FakeService.ts"
import { anId } from "../harness/Id.ts"
import { effect } from "../harness/Steps.ts"

const [flowResults] = builtInSources

describe("an answer that drips", () => {
  const mebibyte = new Uint8Array(1024 * 1024)
  /** A body of so many chunks, one after each pause. */
  const dripping = (chunk: Uint8Array, pause: Duration.Input, chunks = Infinity) =>
    HttpClient.make((request) =>
      Effect.sync(() => {
        const bytes = Stream.fromEffectRepeat(Effect.as(Effect.sleep(pause), chunk)).pipe(Stream.take(chunks))
        const response = HttpServerResponse.stream(bytes, { status: 200 })
        return HttpServerResponse.toClientResponse(response, { request })
      }),
    )
  const service = (client: HttpClient.HttpClient) =>
    Effect.provide(
      Service,
      ServiceHttp.layer(settingsFor("http://localhost")).pipe(
        Layer.provide(Layer.succeed(HttpClient.HttpClient, client)),
      ),
    )
  const results = (client: HttpClient.HttpClient) =>
    Effect.flatMap(service(client), (one) => one.readResults(flowResults!, { session_id: anId("s") }))
  const document = (client: HttpClient.HttpClient) =>
    Effect.flatMap(service(client), (one) =>
      Effect.flatMap(one.downloadAttachment(anId("s"), "a"), (answer) =>
        answer._tag === "Document" ? Stream.runFold(answer.bytes, () => 0, add) : Effect.succeed(0),
      ),
    )
  const add = (total: number, chunk: Uint8Array) => total + chunk.length
  const state = (client: HttpClient.HttpClient) =>
    Effect.flatMap(service(client), (one) => one.readExecution(anId("e")))
  /** When it failed, in seconds, and with what; undefined after three hours. */
  const endOf = (call: Effect.Effect<unknown, CallFailure | ServiceSettingsRefused>) =>
    Effect.gen(function* () {
      const timed = Effect.gen(function* () {
        const { message } = yield* Effect.flip(Effect.asVoid(call))
        return [Math.round((yield* Clock.currentTimeMillis) / 1_000), message] as const
      })
      const fiber = yield* Effect.forkChild(timed)
      yield* TestClock.adjust("3 hours")
      const exit = fiber.pollUnsafe()
      return exit?._tag === "Success" ? exit.value : exit
    })

  effect("is given up after its time, by the kind of answer that it is", function* () {
    const byte = dripping(new Uint8Array(1), "1 second")
    assert.deepStrictEqual(yield* endOf(state(byte)), [60, "readExecution: no answer within 1m"])
  })

  it.effect.each([
    ["results", results, "flow_results"],
    ["an attachment", document, "downloadAttachment"],
  ] as const)(
    "is given up within a minute where it is %s that stops or comes byte by byte",
    ([, read, name]) =>
      Effect.gen(function* () {
        const told = `${name}: the answer stalled: less than 65536 bytes in 1m`
        assert.deepStrictEqual(yield* endOf(read(dripping(new Uint8Array(1), "1 second"))), [60, told])
      }),
  )

  effect("is given up in the end, even if every minute brings enough", function* () {
    const slow = dripping(mebibyte, "20 seconds")
    const told = "downloadAttachment: the answer did not end within 30m"
    assert.deepStrictEqual(yield* endOf(document(slow)), [1_800, told])
  })

  effect("is read to its end if it is slow and long but arrives", function* () {
    const fiber = yield* Effect.forkChild(document(dripping(mebibyte, "20 seconds", 60)))
    yield* TestClock.adjust("1201 seconds")
    assert.deepStrictEqual(yield* Fiber.join(fiber), 60 * 1024 * 1024)
  })
})
