/**
 * The recorder between a client and a service: what passes through is the same on both sides, and the one call
 * that it may add is added only where it is certain not to log in again.
 */
import { describe, expect } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { HttpClient, HttpClientRequest, HttpClientResponse } from "effect/http"
import { matcherOf } from "../../../src/cli/acquaint/Compare.ts"
import { makeRecorder } from "../../../src/cli/acquaint/Recorder.ts"
import { builtInSources } from "../../../src/service/FlowResults.ts"
import { effect } from "../../harness/Steps.ts"

const root = "https://service.example/api"
const startUrl = `${root}/executions/init/v1/parametrized`
const start = HttpClientRequest.post(startUrl).pipe(
  HttpClientRequest.setHeader("X-APP-SECRET", "s"),
  HttpClientRequest.bodyJsonUnsafe({ external_execution_id: "x-1", parameters: { password: "hunter2" } }),
)

interface Answer {
  readonly status: number
  readonly body?: unknown
}

/** A service that answers what a list says, and remembers what it was asked. */
const service = (answers: (asked: string, nth: number) => Answer) => {
  const asked: Array<string> = []
  const client = HttpClient.make((request) =>
    Effect.sync(() => {
      const name = `${request.method} ${request.url.slice(root.length)}`
      const nth = asked.filter((one) => one === name).length
      asked.push(name)
      const { status, body } = answers(name, nth)
      const text = body === undefined ? null : JSON.stringify(body)
      return HttpClientResponse.fromWeb(
        request,
        new Response(text, { status, headers: { "retry-after": "7" } }),
      )
    }),
  )
  return { asked, client }
}

const recorder = (probeConflict: boolean) => makeRecorder({ match: matcherOf(builtInSources), probeConflict })
const state = (id: string) => `GET /executions/handler/v1/${id}`
const started = "POST /executions/init/v1/parametrized"

/** Accepts every start, each as a run of its own that stays open or is over at once. */
const careless = (stateStatus: number) =>
  service((name, nth) =>
    name === started
      ? { status: 202, body: { execution_id: `run-${nth + 1}` } }
      : name.startsWith("DELETE")
        ? { status: 204 }
        : { status: stateStatus, body: {} },
  )

effect("a recorded call passes unchanged, and is recorded with what its reader read", function* () {
  const { client, asked } = service(() => ({ status: 404, body: { detail: "no" } }))
  const { calls, through } = recorder(false)
  const seen = through(client)
  const url = `${root}/executions/handler/v1/a%2Fb`
  const buffered = yield* Effect.flatMap(seen.get(url), ({ arrayBuffer }) => arrayBuffer)
  const streamed = yield* Effect.flatMap(seen.get(url), ({ stream }) => Stream.runCollect(stream))
  yield* seen.head(url)
  expect([new TextDecoder().decode(buffered), Buffer.concat([...streamed]).toString()]).toEqual([
    '{"detail":"no"}',
    '{"detail":"no"}',
  ])
  expect(asked.length).toBe(3)
  expect(
    calls.map(({ number, route, ids, http_status, headers, body }) => [
      number,
      route.name,
      ids,
      http_status,
      headers,
      body,
    ]),
  ).toEqual(
    [
      [1, "readExecution", { _tag: "Json", json: { detail: "no" } }],
      [2, "readExecution", { _tag: "Json", json: { detail: "no" } }],
      [3, "pollExecution", { _tag: "Unread" }],
    ].map(([number, name, body]) => [
      number,
      name,
      { execution_id: "a/b" },
      404,
      { "content-type": "text/plain;charset=UTF-8", "retry-after": "7" },
      body,
    ]),
  )
})

describe("a second start", () => {
  effect(
    "is not sent unless requested, nor if the first execution is already over or cannot be read",
    function* () {
      const { client: unasked, asked } = careless(202)
      yield* recorder(false).through(unasked).execute(start)
      expect(asked).toEqual([started])
      for (const status of [200, 404, 503]) {
        const { client, asked } = careless(status)
        yield* recorder(true).through(client).execute(start)
        expect(asked).toEqual([started, state("run-1")])
      }
    },
  )

  effect("is the same one, sent once, and its answer does not reach the caller", function* () {
    const { client, asked } = service((name, nth) =>
      name !== started
        ? { status: 202, body: {} }
        : nth === 1
          ? { status: 409, body: { execution_id: "run-1" } }
          : { status: 202, body: { execution_id: `run-${nth + 1}` } },
    )
    const { calls, through } = recorder(true)
    const seen = through(client)
    const first = yield* Effect.flatMap(seen.execute(start), ({ json }) => json)
    yield* seen.execute(start)
    expect(first).toEqual({ execution_id: "run-1" })
    expect(asked).toEqual([started, state("run-1"), started, started])
    expect(
      calls.map(({ probe, http_status, external_execution_id }) => [
        probe,
        http_status,
        external_execution_id,
      ]),
    ).toEqual([
      [false, 202, "x-1"],
      [false, 202, undefined],
      [true, 409, "x-1"],
      [false, 202, "x-1"],
    ])
  })

  effect("that a service accepts as a new run is aborted at once", function* () {
    const { client, asked } = careless(202)
    yield* recorder(true).through(client).execute(start)
    expect(asked).toEqual([started, state("run-1"), started, "DELETE /executions/handler/v1/run-2/abort"])
  })
})
