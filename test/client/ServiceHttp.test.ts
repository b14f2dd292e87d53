/** What the service owes the pipeline: every status of every call, its requests, its settings, its bounds. */
import { inspect } from "node:util"
import { assert, describe, expect, it } from "@effect/vitest"
import { Cause, Duration, Effect, Exit, Layer, Record, Redacted, Result, Stream, Tracer } from "effect"
import { HttpClient, HttpClientError, HttpClientResponse } from "effect/http"
import { ExecutionApi, FlowApi } from "../../src/service/Api.ts"
import { flowResultsSource, profileSource } from "../../src/service/FlowResults.ts"
import { parseRetryAfter } from "../../src/client/CallFailures.ts"
import { whileHandled } from "../../src/client/AnswerBytes.ts"
import { defaultLimits } from "../../src/client/Exchange.ts"
import { Service, checkAddress, checkSecret, type CallFailure } from "../../src/client/Service.ts"
import { ServiceHttp } from "../../src/client/ServiceHttp.ts"
import { engineDetails, startCall } from "./Examples.ts"
import { fakeHttpClient, secret, serviceOver, settingsFor, stageInProcess } from "./FakeService.ts"
import { stageOverHttp } from "./FakeService.ts"
import type { Behaviour, SeenRequest } from "./FakeService.ts"
import { anId } from "../harness/Id.ts"
import { effect } from "../harness/Steps.ts"

const summarise = (answer: unknown): string =>
  typeof answer === "object" && answer !== null && "_tag" in answer ? String(answer._tag) : String(answer)

type Call = Effect.Effect<unknown, CallFailure, Service>

const use = <A>(f: (service: Service["Service"]) => Effect.Effect<A, CallFailure>) =>
  Effect.flatMap(Service, f)

const withToken = startCall({
  login: { _tag: "Token", token_id: "t-1", token_key: Redacted.make("token-key-canary-1") },
})

/** Every call of the port by its endpoint's name. */
const calls = {
  startExecution: use((service) => service.startExecution(startCall(), Effect.void)),
  readExecution: use((service) => service.readExecution(anId("e-1"))),
  abortExecution: use((service) => service.abortExecution(anId("e-1"))),
  deleteExecution: use((service) => service.deleteExecution(anId("e-1"))),
  readFlowResults: use((service) => service.readResults(flowResultsSource, { session_id: anId("s-1") })),
  readProfile: use((service) => service.readResults(profileSource, { execution_id: anId("e-1") })),
  downloadAttachment: use((service) =>
    Effect.flatMap(service.downloadAttachment(anId("s-1"), "a-1"), (answer) =>
      Effect.as(answer._tag === "Document" ? Stream.runDrain(answer.bytes) : Effect.void, answer._tag),
    ),
  ),
  exchangeTicket: use((service) => service.exchangeTicket(anId("e-1"), Redacted.make("ticket-canary-1"))),
  startTokenized: use((service) => service.startExecution(withToken, Effect.void)),
  pollExecution: use((service) => service.pollExecution(anId("e-1"))),
  revokeToken: use((service) => service.revokeToken("t-1")),
  listEngines: use((service) => Effect.as(service.listEngines, "listed")),
  showEngine: use((service) => service.showEngine(anId("sandbox-bank:website"))),
} satisfies Record<string, Call>
type CallName = keyof typeof calls

const goodBody = (call: CallName): string => {
  if (call === "listEngines") return "[]"
  if (call === "exchangeTicket")
    return JSON.stringify({ token: { token_id: "t-1", token_key: "token-key-canary-1" }, context: {} })
  return JSON.stringify(call === "showEngine" ? engineDetails : { execution_id: anId("e-1") })
}

/** Section 7. */
const ownError = '{"detail":"no"}'

const started = {
  202: "Accepted",
  400: "Refused",
  409: "AlreadyExecuting",
  422: "Refused",
  503: "EngineUnavailable",
}

/** Documented statuses: what each becomes, by the tag of the answer or of the failure. */
const documented: { readonly [K in CallName]: Readonly<Record<number, string>> } = {
  startExecution: started,
  startTokenized: { ...started, 404: "UnexpectedAnswer" },
  readExecution: { 200: "Closed", 202: "Working", 423: "ActionRequired", 404: "NotFound" },
  pollExecution: { 200: "changed", 202: "working", 404: "changed", 423: "changed" },
  abortExecution: {
    204: "aborted",
    304: "already_closed",
    404: "not_found",
    409: "not_stoppable",
    422: "UnexpectedAnswer",
  },
  deleteExecution: { 204: "deleted", 404: "gone", 409: "still_running", 422: "UnexpectedAnswer" },
  readFlowResults: {
    200: "Results",
    404: "NothingThere",
    412: "NothingThere",
    422: "UnexpectedAnswer",
    504: "Throttled",
  },
  readProfile: { 200: "Results", 404: "NothingThere" },
  downloadAttachment: { 200: "Document", 404: "Missing" },
  exchangeTicket: { 200: "Exchanged", 403: "Refused", 422: "UnexpectedAnswer" },
  revokeToken: { 204: "revoked", 304: "already_revoked", 404: "not_found", 422: "UnexpectedAnswer" },
  listEngines: { 200: "listed", 422: "UnexpectedAnswer" },
  showEngine: { 200: "Engine", 404: "EngineUnknown", 422: "EngineUnknown", 503: "EngineUnavailable" },
}

const starts = new Set<CallName>(["startExecution", "startTokenized"])
const effectful = new Set<CallName>([
  ...starts,
  "abortExecution",
  "deleteExecution",
  "exchangeTicket",
  "revokeToken",
])

/** What a status becomes that the call's own section does not list. */
const otherwise = (call: CallName, status: number): string => {
  if (call === "pollExecution") return status === 429 || status === 503 ? "Throttled" : "unanswered"
  if (status === 401 || status === 403) return "SecretRefused"
  if (status === 429 || status === 503) return "Throttled"
  if (status >= 500 || status === 408) return "AnswerLost"
  // 4.1 lists 202; an acceptance body is an acceptance all the same.
  if (starts.has(call) && (status === 200 || status === 201)) return "Accepted"
  return effectful.has(call) && status < 300 ? "AnswerLost" : "UnexpectedAnswer"
}

// Those of the HTTP standard that matter here, and those that proxies and gateways answer.
const otherStatuses =
  "200 201 202 203 204 206 300 301 302 303 304 307 308 400 401 402 403 404 405 408 409 410 412 413 418 422 423 425 429 " +
  "431 451 499 500 501 502 503 504 507 520 522 524 599"

const seenOf = (call: Call, behaviour: Behaviour): Effect.Effect<unknown> =>
  Effect.flatMap(Effect.scoped(stageInProcess(behaviour)), ({ layer }) =>
    Effect.match(Effect.provide(call, layer), {
      onFailure: (failure): unknown => failure,
      onSuccess: (answer) => answer,
    }),
  )
const outcomeOf = (call: CallName, behaviour: Behaviour) =>
  Effect.map(seenOf(calls[call], behaviour), summarise)

describe("any service", () => {
  for (const call of Object.keys(documented) as ReadonlyArray<CallName>) {
    const tag = call === "pollExecution" ? " [pollExecution 202]" : ""
    effect(`${call}: every status becomes the port's answer or failure${tag}`, function* () {
      const own = Object.keys(documented[call])
      for (const status of new Set([...own, ...otherStatuses.split(" ")].map(Number))) {
        const body = status < 400 ? goodBody(call) : ownError
        const behaviour = { status, body, headers: { location: "/elsewhere" } }
        const expected = documented[call][status] ?? otherwise(call, status)
        assert.strictEqual(yield* outcomeOf(call, behaviour), expected, String(status))
      }
    })
  }

  effect(
    "is not what a gateway answers [promise 10 gateway] [promise 10 gateway page] [promise 10 gateway status]",
    function* () {
      const page = { "content-type": "text/html; charset=utf-8" }
      const answers = [
        { body: "<html>", headers: page },
        { body: '{"message":"no Route matched"}' },
        { body: "" },
      ]
      const told = Effect.fnUntraced(function* (call: CallName, status: number) {
        const all = yield* Effect.forEach(answers, (answer) => outcomeOf(call, { status, ...answer }))
        return [call, status, ...all]
      })
      const refused = "SecretRefused"
      expect([
        yield* told("startExecution", 404),
        yield* told("startTokenized", 404),
        yield* told("showEngine", 404),
        yield* told("readExecution", 404),
        yield* told("startExecution", 403),
        yield* told("listEngines", 401),
        yield* told("exchangeTicket", 403),
        yield* told("readFlowResults", 403),
        yield* told("abortExecution", 404),
        yield* told("deleteExecution", 404),
        yield* told("revokeToken", 404),
      ]).toStrictEqual([
        ["startExecution", 404, "AnswerLost", "UnexpectedAnswer", "UnexpectedAnswer"],
        ["startTokenized", 404, "AnswerLost", "UnexpectedAnswer", "UnexpectedAnswer"],
        ["showEngine", 404, "UnexpectedAnswer", "EngineUnknown", "EngineUnknown"],
        ["readExecution", 404, "UnexpectedAnswer", "NotFound", "NotFound"],
        ["startExecution", 403, "AnswerLost", refused, refused],
        ["listEngines", 401, "AnswerLost", refused, refused],
        ["exchangeTicket", 403, "AnswerLost", "Refused", "Refused"],
        ["readFlowResults", 403, refused, refused, refused],
        ["abortExecution", 404, "UnexpectedAnswer", "not_found", "not_found"],
        ["deleteExecution", 404, "UnexpectedAnswer", "gone", "gone"],
        ["revokeToken", 404, "UnexpectedAnswer", "not_found", "not_found"],
      ])
    },
  )

  effect("a success without JSON of the needed kind is a lost answer", function* () {
    const broken = ["<html>Bad gateway</html>", "", '{"execution_id": "e-1", "sta']
    const wrong = [...broken, "[1]"]
    const cases: ReadonlyArray<readonly [CallName, number, ReadonlyArray<string>]> = [
      ["startExecution", 202, wrong],
      ["readExecution", 200, wrong],
      ["readExecution", 202, wrong],
      ["readFlowResults", 200, wrong],
      ["showEngine", 200, wrong],
      ["listEngines", 200, [...broken, "{}"]],
      ["readProfile", 200, broken],
    ]
    for (const [call, status, bodies] of cases)
      for (const body of bodies)
        assert.strictEqual(yield* outcomeOf(call, { status, body }), "AnswerLost", `${call} ${body}`)
  })

  effect("the body's bytes are kept exactly, whatever they are", function* () {
    const text = '\uFEFF{ "is_closed" : true,\r\n "big": 12345678901234567890, "x": "\\u00e9é" }'
    const stage = yield* stageOverHttp({ status: 200, body: Buffer.from(text) })
    const answer = yield* Effect.provide(calls.readFlowResults, stage.layer)
    assert.isTrue(answer._tag === "Results" && Buffer.from(text).equals(answer.body.bytes))
  })

  effect("a Retry-After arrives with every answer that asks us to wait", function* () {
    for (const [call, status] of [
      ["startExecution", 503],
      ["showEngine", 503],
      ["readExecution", 429],
      ["readFlowResults", 504],
    ] as const) {
      const got = yield* seenOf(calls[call], { status, headers: { "retry-after": "7" }, body: "{}" })
      assert.deepPropertyVal(got, "retry_after", Duration.seconds(7), call)
    }
  })
})

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

  effect("go to the contract's paths under the configured roots, with the secret", function* () {
    const seen: Array<readonly [string, string]> = []
    for (const call of Object.values(calls)) {
      const stage = yield* stageOverHttp({ status: 404, body: "{}" })
      yield* Effect.ignore(Effect.provide(call as Call, stage.layer))
      const request = stage.requests[0]
      seen.push([request?.method ?? "", request?.url ?? ""])
      expect([
        request?.headers["x-app-secret"],
        request?.headers["accept-encoding"],
        request?.headers["b3"],
      ]).toStrictEqual([secret, "identity", undefined])
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
      ["POST", "/api/executions/init/v1/tokenized"],
      ["HEAD", "/api/executions/handler/v1/e-1"],
      ["DELETE", "/api/executions/t10n/t-1"],
      ["GET", "/api/config/engines/list"],
      ["GET", "/api/config/engines/sandbox-bank%3Awebsite"],
    ])
  })

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

  effect("have a start's call as JSON, with its login, and an exchange's ticket", function* () {
    const { login, ...call } = startCall()
    const parameters = login._tag === "Parameters" ? Redacted.value(login.parameters) : undefined
    for (const [start, how] of [
      [calls.startExecution, { parameters }],
      [calls.startTokenized, { token: { token_id: "t-1", token_key: "token-key-canary-1" } }],
      [calls.exchangeTicket, { execution_id: "e-1", ticket: "ticket-canary-1" }],
    ] as const) {
      const stage = yield* stageOverHttp({ status: 202, body: "{}" })
      yield* Effect.ignore(Effect.provide(start as Call, stage.layer))
      const common = "ticket" in how ? {} : call
      assert.deepStrictEqual(JSON.parse(stage.requests[0]?.body ?? ""), { ...common, ...how })
      assert.strictEqual(stage.requests[0]?.headers["content-type"], "application/json")
    }
  })

  effect("a hostile id fills one path segment or none [promise 13 addresses] [decision 9]", function* () {
    const sent = ["../../x", "a/b", "?q=1", "#h", "%2e%2e", "a b", "é", "\u0000", "...", "a;b", "\\..\\"]
    for (const id of sent) {
      const stage = yield* stageOverHttp({ status: 404, body: "{}" })
      const remove = Effect.flatMap(Service, (service) => service.deleteExecution(anId(id)))
      yield* Effect.provide(remove, stage.layer)
      const urls = stage.requests.map(({ url }) => url)
      assert.deepStrictEqual(urls, [`/api/executions/handler/v1/${encodeURIComponent(id)}/delete`])
    }
    for (const id of ["", ".", "..", "\ud800"]) {
      const stage = yield* stageInProcess({ status: 204 })
      const service = yield* Effect.provide(Service, stage.layer)
      const failure = yield* Effect.flip(service.deleteExecution(anId(id)))
      assert.strictEqual((yield* Effect.flip(service.revokeToken(id)))._tag, "NotSent")
      const engine = yield* service.showEngine(anId(id))
      expect([failure._tag, engine, stage.requests]).toStrictEqual(["NotSent", { _tag: "EngineUnknown" }, []])
    }
  })
})

effect("a start answered with a refused login is refused, whatever the status; no other is", function* () {
  const refusal = '{"status_code":"AUTH_ERROR","status_reason":"INCORRECT_CREDENTIALS"}'
  const tagOf = (status: number, body: string) => outcomeOf("startExecution", { status, body })
  for (const [status, other] of [
    [401, "SecretRefused"],
    [403, "SecretRefused"],
    [429, "Throttled"],
    [500, "AnswerLost"],
    [503, "EngineUnavailable"],
    [504, "AnswerLost"],
  ] as const) {
    assert.strictEqual(yield* tagOf(status, refusal), "Refused", String(status))
    for (const body of ['{"status_reason":"INTERNAL_ERROR"}', "[]", "<html>", ""])
      assert.strictEqual(yield* tagOf(status, body), other, `${status} ${body}`)
  }
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

effect("no failure, cause or span shows secret or parameters [promise 12 errors]", function* () {
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
})

describe("bounds", () => {
  effect("an answer larger than its limit is not read to its end, and says so", function* () {
    const client = fakeHttpClient({ status: 200, body: `{"x": "${"y".repeat(5000)}"}` }, [])
    const limits = Record.map(defaultLimits, (given) => ({ ...given, bytesMax: 1000 }))
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
  })

  effect(
    "an execution that no address can name is an answer that cannot be used; any other id is asked for as it is [decision 10 address]",
    function* () {
      const ids = [".", "..", "\ud800", "a/../b", "%2e%2e"]
      const seen: Array<unknown> = []
      for (const execution_id of ids) {
        const urls: Array<string> = []
        const client = HttpClient.make((request) => {
          urls.push(request.url)
          const response = Response.json({ execution_id, session_id: "." }, { status: 202 })
          return Effect.succeed(HttpClientResponse.fromWeb(request, response))
        })
        const service = yield* Effect.provide(Service, serviceOver(client))
        const started = yield* service.startExecution(startCall(), Effect.void)
        yield* Effect.ignore(service.readExecution(anId(execution_id)))
        const unusable = "body" in started ? started.body.unusable : started._tag
        seen.push([unusable, ...urls.slice(1).map((url) => new URL(url).pathname.split("/").at(-1))])
      }
      const why = "its execution_id cannot be a part of an address"
      assert.deepStrictEqual(seen, [
        [why],
        [why],
        [why],
        [undefined, "a%2F..%2Fb"],
        [undefined, "%252e%252e"],
      ])
    },
  )

  effect(
    "a document that comes encoded, although it was asked for as it is, is none, and nor are results",
    function* () {
      const headers = { "content-type": "application/pdf", "content-encoding": "gzip" }
      const client = fakeHttpClient({ status: 200, body: "%PDF", headers }, [])
      const service = yield* Effect.provide(Service, serviceOver(client))
      const failure = yield* Effect.flip(service.downloadAttachment(anId("s"), "a"))
      assert.strictEqual(failure._tag, "UnexpectedAnswer")
      const lost = yield* Effect.flip(service.readResults(flowResultsSource, { session_id: anId("s") }))
      assert.strictEqual(
        lost.message,
        "flow_results: the answer contains no JSON object, but is compressed, which was not asked for (200)",
      )
    },
  )

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
    const unusable = `it is larger than ${defaultLimits.results.bytesMax} bytes`
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
    expect(times.map(([header]) => [header, parseRetryAfter(header, now)])).toStrictEqual(
      times.map((one) => [...one]),
    )
    for (const absent of ["-1", "1.5", "soon", "1e9", "", undefined, "Sat, 99 Nov 2026 02:00:30 GMT"])
      assert.isUndefined(parseRetryAfter(absent, now), absent)
    // The clock of the service may be an hour off: its answer says by how much.
    const at = "Sat, 21 Nov 2026 01:00:30 GMT"
    const answered = ["Sat, 21 Nov 2026 01:00:00 GMT", "Sat, 99 Nov 2026 01:00:00 GMT", "", undefined]
    expect(answered.map((date) => parseRetryAfter(at, now, date))).toStrictEqual([30_000, 0, 0, 0])
  })

  effect("a Retry-After that cannot be read is reported with the failure", function* () {
    const start = "readExecution: the service asks to retry later (429"
    const unread = `${start}; its Retry-After cannot be read)`
    for (const [value, message] of [
      ["-1", unread],
      ["soon", unread],
      ["99999999", `${start})`],
    ] as const) {
      const headers = { "retry-after": value }
      const failure = yield* seenOf(calls.readExecution, { status: 429, headers, body: "{}" })
      assert.propertyVal(failure, "message", message)
    }
  })
})
