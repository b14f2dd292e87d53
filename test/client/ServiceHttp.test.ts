import { inspect } from "node:util"
import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Exit, Layer, Redacted, Result, Stream, Tracer } from "effect"
import { HttpClient, HttpClientError, HttpClientResponse } from "effect/http"
import { ExecutionApi, FlowApi } from "../../src/service/Api.ts"
import { encodeSegment, parseRetryAfter } from "../../src/client/CallFailures.ts"
import { whileHandled } from "../../src/client/AnswerBytes.ts"
import { defaultLimits } from "../../src/client/Exchange.ts"
import { Service, checkAddress, checkSecret, type CallFailure } from "../../src/client/Service.ts"
import { ServiceHttp } from "../../src/client/ServiceHttp.ts"
import { startCall } from "./Examples.ts"
import {
  fakeHttpClient,
  secret,
  serviceOver,
  settingsFor,
  stageInProcess,
  stageOverHttp,
} from "./FakeService.ts"
import type { SeenRequest } from "./FakeService.ts"
import { calls, describeStatuses, documented } from "./ServiceContract.ts"
import { anId } from "../harness/Id.ts"
import { effect } from "../harness/Steps.ts"

describeStatuses("any service, in the process", stageInProcess)
describeStatuses("any service, over a socket", stageOverHttp)

const endpoints = [
  ...Object.values(ExecutionApi.groups.executions.endpoints),
  ...Object.values(ExecutionApi.groups.engines.endpoints),
  ...Object.values(FlowApi.groups.flows.endpoints),
]

describe("the requests", () => {
  it("every status that the contract declares for a call is one that the suite tries", () => {
    const untried = endpoints.flatMap((endpoint) => {
      const tried: Record<string, Readonly<Record<number, string>>> = documented
      const known = tried[endpoint.identifier]
      if (known === undefined) return []
      const everywhere = [401, 403, 429]
      const statuses = [...endpoint.success, ...endpoint.error].flatMap((schema) => {
        const status: unknown = schema.ast.annotations?.["httpApiStatus"]
        return typeof status === "number" && !everywhere.includes(status) ? [status] : []
      })
      return statuses.filter((status) => known[status] === undefined).map((s) => [endpoint.identifier, s])
    })
    assert.deepStrictEqual(untried, [])
  })

  effect(
    "go to the contract's paths under the configured roots, with the secret and without compression",
    function* () {
      const seen: Array<readonly [string, string]> = []
      for (const call of Object.values(calls)) {
        const stage = yield* stageOverHttp({ status: 404, body: "{}" })
        yield* Effect.ignore(
          Effect.provide(call as Effect.Effect<unknown, CallFailure, Service>, stage.layer),
        )
        const request = stage.requests[0]
        seen.push([request?.method ?? "", request?.url ?? ""])
        assert.deepStrictEqual(
          [request?.headers["x-app-secret"], request?.headers["accept-encoding"], request?.headers["b3"]],
          [secret, "identity", undefined],
        )
      }
      assert.deepStrictEqual(seen, [
        ["POST", "/api/executions/init/v1/parametrized"],
        ["GET", "/api/executions/handler/v1/e-1"],
        ["DELETE", "/api/executions/handler/v1/e-1/abort"],
        ["DELETE", "/api/executions/handler/v1/e-1/delete"],
        ["GET", "/flows/es-public-administration/v1/manager/s-1/results"],
        ["GET", "/api/executions/results/e-1/customer/v1/profile"],
        ["GET", "/documents/attachments/s-1/a-1"],
        ["PUT", "/api/executions/t10n"],
        ["DELETE", "/api/executions/t10n/t-1"],
        ["GET", "/api/config/engines/list"],
        ["GET", "/api/config/engines/sandbox-bank%3Awebsite"],
      ])
    },
  )

  effect("leave the newest answer, with its status, to whoever saves what met a defect", function* () {
    const stage = yield* stageInProcess({ status: 423, body: '{"challenge":1}' })
    const handled = whileHandled(Effect.andThen(calls.readExecution, Effect.die("ours")), (_, newest) =>
      Effect.succeed(newest),
    )
    assert.deepStrictEqual(yield* Effect.provide(handled, stage.layer), {
      http_status: 423,
      bytes: Buffer.from('{"challenge":1}'),
    })
  })

  effect("a start sends its call as JSON, with the parameters in clear text", function* () {
    const stage = yield* stageOverHttp({ status: 202, body: "{}" })
    yield* Effect.provide(calls.startExecution, stage.layer)
    const { login, ...call } = startCall()
    assert.deepStrictEqual(JSON.parse(stage.requests[0]?.body ?? ""), {
      ...call,
      parameters: login._tag === "Parameters" ? Redacted.value(login.parameters) : undefined,
    })
    assert.strictEqual(stage.requests[0]?.headers["content-type"], "application/json")
  })

  effect(
    "a hostile id fills one path segment or no request is made [promise 13 addresses] [decision 9]",
    function* () {
      const sent = ["../../x", "a/b", "?q=1", "#h", "%2e%2e", "a b", "é", "\u0000", "...", "a;b", "\\..\\"]
      for (const id of sent) {
        const stage = yield* stageOverHttp({ status: 404, body: "{}" })
        const remove = Effect.flatMap(Service, (service) => service.deleteExecution(anId(id)))
        yield* Effect.provide(remove, stage.layer)
        const url = `/api/executions/handler/v1/${encodeURIComponent(id)}/delete`
        assert.deepStrictEqual(
          stage.requests.map((request) => request.url),
          [url],
        )
      }
      for (const id of ["", ".", "..", "\ud800"]) {
        const stage = yield* stageInProcess({ status: 204 })
        const service = yield* Effect.provide(Service, stage.layer)
        const failure = yield* Effect.flip(service.deleteExecution(anId(id)))
        const engine = yield* service.showEngine(anId(id))
        assert.deepStrictEqual(
          [failure._tag, engine, stage.requests],
          ["NotSent", { _tag: "EngineUnknown", http_status: 422 }, []],
        )
      }
      assert.strictEqual(encodeSegment(".."), undefined)
    },
  )
})

describe("a start that is answered", () => {
  effect("with a refused login is refused, whatever the status; other bodies change nothing", function* () {
    const refusal = '{"status_code":"AUTH_ERROR","status_reason":"INCORRECT_CREDENTIALS"}'
    const tagOf = Effect.fnUntraced(function* (status: number, body: string) {
      const stage = yield* stageInProcess({ status, body })
      const answer = Effect.flatMap(Service, (service) => service.startExecution(startCall(), Effect.void))
      const told = yield* Effect.provide(Effect.result(answer), stage.layer)
      return Result.isSuccess(told) ? told.success._tag : told.failure._tag
    })
    for (const [status, otherwise] of [
      [401, "SecretRefused"],
      [403, "SecretRefused"],
      [429, "Throttled"],
      [500, "AnswerLost"],
      [503, "EngineUnavailable"],
      [504, "AnswerLost"],
    ] as const) {
      assert.strictEqual(yield* tagOf(status, refusal), "Refused", String(status))
      for (const body of ['{"status_reason":"INTERNAL_ERROR"}', "[]", "<html>", ""])
        assert.strictEqual(yield* tagOf(status, body), otherwise, `${status} ${body}`)
    }
  })
})

describe("the settings", () => {
  it("plain http is for this machine only, and a URL has only scheme, host and path [promise 12 plain http]", () => {
    const roots = {
      "https://service.example/api/": "https://service.example/api",
      "http://127.0.0.1:80/api": "http://127.0.0.1/api",
      "http://localhost:9/x": "http://localhost:9/x",
      "http://[::1]:9": "http://[::1]:9",
      "http://2130706433/a": "http://127.0.0.1/a",
    }
    for (const [address, root] of Object.entries(roots))
      assert.deepStrictEqual(checkAddress("base_url", address), Result.succeed(root))
    const refused = [
      ..."service.example/api 127.0.0.1.service.example localhost.service.example 0.0.0.0/ 192.168.1.4/"
        .split(" ")
        .map((host) => `http://${host}`),
      "https://user:pw@service.example",
      "https://service.example/?a=1",
      "https://service.example/#a",
      "ftp://service.example",
      "service.example",
      "",
    ]
    for (const address of refused)
      assert.strictEqual(checkAddress("base_url", address)._tag, "Failure", address)
  })

  it("a secret that does not fit into a header is refused without being shown", () => {
    for (const bad of ["", "canary\n", " canary", "canary ", "can\r\nary: x", "canarÿ", "can\u0000ary"]) {
      const result = checkSecret(Redacted.make(bad))
      assert.strictEqual(result._tag, "Failure")
      if (bad !== "") assert.notInclude(JSON.stringify(result), "canar")
    }
    assert.strictEqual(checkSecret(Redacted.make("with space inside"))._tag, "Success")
  })

  effect("the layer refuses them before any request", function* () {
    const requests: Array<SeenRequest> = []
    const client = Layer.succeed(HttpClient.HttpClient, fakeHttpClient({ status: 200 }, requests))
    const settings = { ...settingsFor("http://localhost"), flows_url: "http://service.example/flows" }
    const layer = ServiceHttp.layer(settings).pipe(Layer.provide(client))
    const refusal = yield* Effect.flip(Effect.provide(Service, layer))
    assert.deepStrictEqual([refusal.setting, requests], ["flows_url", []])
  })
})

describe("secrets", () => {
  effect(
    "no failure, cause or span of a call shows the application secret or the parameters [promise 12 errors]",
    function* () {
      const spans: Array<unknown> = []
      const tracer = Tracer.make({
        span: (options) => {
          const span = new Tracer.NativeSpan(options)
          spans.push(span)
          return span
        },
      })
      const broken = HttpClient.make((request) =>
        Effect.fail(
          new HttpClientError.HttpClientError({
            reason: new HttpClientError.TransportError({
              request,
              cause: new Error(`echo ${secret} password-canary-2`),
            }),
          }),
        ),
      )
      const exit = yield* calls.startExecution.pipe(
        Effect.provide(serviceOver(broken)),
        Effect.withSpan("outer"),
        Effect.provideService(Tracer.Tracer, tracer),
        Effect.exit,
      )
      const stage = yield* stageInProcess({ status: 400, body: "{}" })
      yield* Effect.provideService(Effect.provide(calls.startExecution, stage.layer), Tracer.Tracer, tracer)
      assert.isTrue(Exit.isFailure(exit))
      const shown = [
        Exit.isFailure(exit) ? Cause.pretty(exit.cause) : "",
        inspect(exit, { depth: 20 }),
        JSON.stringify(exit),
        ...spans.map((span) => (span instanceof Tracer.NativeSpan ? span.name : "")),
      ].join("\n")
      assert.include(shown, "startExecution")
      assert.notInclude(shown, "canary")
      assert.strictEqual(spans.length, 1)
    },
  )
})

describe("bounds", () => {
  effect(
    "an answer larger than its limit is not read to its end; its beginning is returned, and says so",
    function* () {
      const client = fakeHttpClient({ status: 200, body: `{"x": "${"y".repeat(5000)}"}` }, [])
      const limits = { answerBytesMax: 1000, resultsBytesMax: 1000, attachmentBytesMax: 1000 }
      const service = yield* Effect.provide(Service, serviceOver(client, limits))
      const read = yield* service.readExecution(anId("e"))
      const document = yield* service.downloadAttachment(anId("s"), "a")
      const bytes = document._tag === "Document" ? document.bytes : Stream.empty
      const download = yield* Effect.flip(Stream.runDrain(bytes))
      const kept = new TextEncoder().encode(`{"x": "${"y".repeat(993)}`)
      const unusable = "it is larger than 1000 bytes"
      assert.deepStrictEqual(read, {
        _tag: "Closed",
        body: { bytes: kept, json: undefined, unusable },
        view: {},
      })
      assert.strictEqual(download._tag, "UnexpectedAnswer")
    },
  )

  effect("a document that comes encoded, although it was asked for as it is, is none", function* () {
    const headers = { "content-type": "application/pdf", "content-encoding": "gzip" }
    const client = fakeHttpClient({ status: 200, body: "%PDF", headers }, [])
    const service = yield* Effect.provide(Service, serviceOver(client))
    const failure = yield* Effect.flip(service.downloadAttachment(anId("s"), "a"))
    assert.strictEqual(failure._tag, "UnexpectedAnswer")
  })

  effect("an answer that declares itself too large is read as far as it is kept", function* () {
    let sent = 0
    const piece = new Uint8Array(64 * 1024).fill(0x20)
    const stream = new ReadableStream<Uint8Array>({
      pull: (controller) => {
        sent += piece.length
        controller.enqueue(piece)
      },
    })
    const headers = { "content-length": String(200 * 1024 * 1024) }
    const client = HttpClient.make((request) =>
      Effect.succeed(HttpClientResponse.fromWeb(request, new Response(stream, { headers }))),
    )
    const read = yield* Effect.provide(calls.readFlowResults, serviceOver(client))
    const unusable = `it is larger than ${defaultLimits.resultsBytesMax} bytes`
    assert.deepStrictEqual(read._tag === "Results" ? read.body.unusable : read, unusable)
    assert.isBelow(sent, 2 * 1024 * 1024)
  })

  it("Retry-After is seconds or an HTTP date, at most thirty days; anything else counts as absent [promise 10 clock]", () => {
    const now = Date.parse("2026-11-21T02:00:00Z")
    const thirtyDays = 30 * 24 * 3_600_000
    const times = [
      ["7", 7_000],
      [" 7 ", 7_000],
      ["0", 0],
      ["99999999", thirtyDays],
      ["Sat, 21 Nov 2026 02:00:30 GMT", 30_000],
      ["Sat, 21 Nov 2026 01:00:00 GMT", 0],
      ["Sat, 21 Nov 2099 01:00:00 GMT", thirtyDays],
    ] as const
    assert.deepStrictEqual(
      times.map(([header]) => [header, parseRetryAfter(header, now)]),
      times.map((one) => [...one]),
    )
    for (const absent of ["-1", "1.5", "soon", "1e9", "", undefined, "Sat, 99 Nov 2026 02:00:30 GMT"])
      assert.isUndefined(parseRetryAfter(absent, now), absent)
    // The clock of the service may be an hour off: its answer says by how much.
    const at = "Sat, 21 Nov 2026 01:00:30 GMT"
    const answered = ["Sat, 21 Nov 2026 01:00:00 GMT", "Sat, 99 Nov 2026 01:00:00 GMT", "", undefined]
    assert.deepStrictEqual(
      answered.map((date) => parseRetryAfter(at, now, date)),
      [30_000, 0, 0, 0],
    )
  })

  effect("a Retry-After that cannot be read is reported with the failure", function* () {
    const messages = yield* Effect.forEach(["-1", "soon", "99999999"], (value) =>
      Effect.flatMap(
        stageInProcess({ status: 429, headers: { "retry-after": value }, body: "{}" }),
        ({ layer }) => Effect.flip(Effect.provide(calls.readExecution, layer)),
      ),
    )
    const start = "readExecution: the service asks to retry later (429"
    const unread = `${start}; its Retry-After cannot be read)`
    assert.deepStrictEqual(
      messages.map(({ message }) => message),
      [unread, unread, `${start})`],
    )
  })
})
