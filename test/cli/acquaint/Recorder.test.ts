/**
 * The recorder between a client and a service: what passes through is the same on both sides.
 */
import { expect } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { HttpClient, HttpClientRequest, HttpClientResponse } from "effect/http"
import { matcherOf } from "../../../src/cli/acquaint/Compare.ts"
import { makeRecorder } from "../../../src/cli/acquaint/Recorder.ts"
import { builtInSources } from "../../../src/service/FlowResults.ts"
import { effect } from "../../harness/Steps.ts"

const root = "https://service.example/api"

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

effect("a recorded call passes unchanged, and is recorded with what its reader read", function* () {
  const { client, asked } = service(() => ({ status: 404, body: { detail: "no" } }))
  const { calls, through } = makeRecorder(matcherOf(builtInSources))
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

effect("a start is recorded with the caller's own reference", function* () {
  const { client } = service(() => ({ status: 202, body: { execution_id: "run-1" } }))
  const { calls, through } = makeRecorder(matcherOf(builtInSources))
  const body = { external_execution_id: "x-1", parameters: { password: "hunter2" } }
  const start = HttpClientRequest.post(`${root}/executions/init/v1/parametrized`)
  yield* through(client).execute(HttpClientRequest.bodyJsonUnsafe(start, body))
  expect(calls.map(({ external_execution_id }) => external_execution_id)).toEqual(["x-1"])
})
