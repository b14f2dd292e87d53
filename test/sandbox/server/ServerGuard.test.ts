/** The server against callers that mean harm: another Host, bodies without end, nesting, what is no request: never a 5xx. */
import { connect } from "node:net"
import { describe, expect, it } from "@effect/vitest"
import { Duration, Effect, Layer } from "effect"
import fc from "fast-check"
import { Sandbox } from "../../../src/sandbox/server/Sandbox.ts"
import { SandboxServer, serverLimits } from "../../../src/sandbox/server/SandboxServer.ts"
import { Caller, field, overSockets, inProcess, textField } from "./Caller.ts"
import { withLayer } from "../../harness/Steps.ts"

const server = (host: string) =>
  SandboxServer.layer({ port: 0, host }).pipe(Layer.provide(Sandbox.layer({ seed: 7 })))

/** Sends bytes as they are and answers what came back until the server closed, or had answered once. */
const exchange = (base_url: string, pieces: Iterable<string>) =>
  Effect.callback<string>((resume) => {
    const socket = connect(Number(new URL(base_url).port), "127.0.0.1")
    let answer = ""
    const over = () => {
      socket.destroy()
      resume(Effect.succeed(answer))
    }
    socket.on("data", (data) => {
      answer += data.toString("latin1")
      const [head = "", body] = answer.split("\r\n\r\n")
      const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0)
      if (body !== undefined && body.length >= length) over()
    })
    socket.on("error", over)
    socket.on("close", over)
    const iterator = pieces[Symbol.iterator]()
    const send = (): void => {
      const { done = false, value } = iterator.next()
      if (!done && !socket.destroyed) socket.write(value, "latin1", () => send())
    }
    send()
    return Effect.sync(() => socket.destroy())
  })

const statusOf = (answer: string): number => Number(/^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1] ?? 0)

const get = (host: string | undefined, version = "1.1") => [
  `GET /api/config/engines/list HTTP/${version}\r\n${host === undefined ? "" : `Host: ${host}\r\n`}` +
    "X-APP-SECRET: sandbox-app-1\r\nConnection: close\r\n\r\n",
]
const post = (header: string) =>
  "POST /api/executions/init/v1/parametrized HTTP/1.1\r\nHost: localhost\r\nX-APP-SECRET: sandbox-app-1\r\n" +
  `Content-Type: application/json\r\n${header}\r\n\r\n`

const { live: here } = withLayer(server("127.0.0.1"))

describe("a server on this machine", () => {
  here("answers callers that name this machine, and nobody else's name for it", function* () {
    const { base_url } = yield* SandboxServer
    const ask = (host: string | undefined, version?: string) =>
      Effect.map(exchange(base_url, get(host, version)), statusOf)
    const ours = ["localhost", "LOCALHOST:1", "127.0.0.1:8730", "127.9.9.9", "[::1]:80"]
    expect(yield* Effect.forEach(ours, (host) => ask(host))).toEqual(ours.map(() => 200))
    expect(yield* ask(undefined, "1.0")).toBe(200)
    const evil = ["", ":8730"].map((port) => `evil.example${port}`)
    const near = ["localhost.", "127.0.0.1.", "127.0.0.1@"].map((start) => `${start}evil.example`)
    const others = [...evil, ...near, "0.0.0.0", "[::]", "sub.localhost", "localhost:1:1", "localhost evil"]
    expect(yield* Effect.forEach(others, (host) => ask(host))).toEqual(others.map(() => 421))
    const [head = "", body] = (yield* exchange(base_url, get("evil.example"))).split("\r\n\r\n")
    expect(body).toBe(
      '{"detail":"this server answers to localhost and 127.0.0.1 only, unless --host says more"}',
    )
    expect(head).not.toMatch(/access-control/i)
  })

  here("refuses a body of two gigabytes at its first bytes, declared or not", function* () {
    const { base_url } = yield* SandboxServer
    const told = yield* exchange(base_url, [post("Content-Length: 2000000000"), '{"a":"'])
    expect([statusOf(told), told.split("\r\n\r\n")[1]]).toEqual([
      413,
      '{"detail":"the body is larger than 4 MB"}',
    ])
    let sent = 0
    const piece = "x".repeat(65_536)
    const untold = function* () {
      yield post("Transfer-Encoding: chunked")
      for (; sent < 2_000_000_000; sent += piece.length) yield `10000\r\n${piece}\r\n`
    }
    expect(statusOf(yield* exchange(base_url, untold()))).toBe(413)
    expect(sent).toBeLessThan(100_000_000)
  })

  here("[no route] [no route spelling] says which paths are there, with which methods", function* () {
    const { base_url } = yield* SandboxServer
    const init = "/api/executions/init/v1/parametrized"
    const lines = [
      ["GET /nothing", 404, undefined],
      ["HEAD /nothing", 404, undefined],
      ["POST /flows/nothing?x=1", 404, undefined],
      ["GET /admin/nothing", 404, undefined],
      [`GET ${init}`, 405, "POST"],
      [`HEAD ${init}`, 405, "POST"],
      ["PATCH /api/executions/handler/v1/some-id/", 405, "GET, HEAD, PUT"],
      ["GET //api/executions/handler/v1/some-id", 404, undefined],
      ["GET /api/executions/HANDLER/v1/some-id", 404, undefined],
      ["PUT /api/config/engines/sandbox-bank:website", 405, "GET, HEAD"],
      ["POST /admin", 405, "GET, HEAD"],
    ] as const
    const rest = "HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    for (const [line, status, allow] of lines) {
      const answer = yield* exchange(base_url, [`${line} ${rest}`])
      const [head = "", body] = answer.split("\r\n\r\n")
      const detail = status === 404 ? "Not Found" : "Method Not Allowed"
      expect([line, statusOf(answer), /^allow: (.*)\r$/im.exec(head)?.[1], body]).toEqual([
        line,
        status,
        allow,
        line.startsWith("HEAD") ? "" : JSON.stringify({ detail }),
      ])
      expect(head).toMatch(/^content-type: application\/json/im)
    }
  })

  here("[not utf-8] refuses a body that is not UTF-8: two customers would be one", function* () {
    const { base_url } = yield* SandboxServer
    const body = '{"engine_reference":"sandbox-bank:website","customer_id":"cliente-\xF1","parameters":{}}'
    const answer = yield* exchange(base_url, [post(`Content-Length: ${body.length}`), body])
    expect([statusOf(answer), answer.split("\r\n\r\n")[1]]).toEqual([
      422,
      '{"detail":[{"loc":["body"],"msg":"not UTF-8","type":"value_error"}]}',
    ])
  })

  here("answers an invalid request without a 5xx", function* () {
    const { base_url } = yield* SandboxServer
    const lines = [
      "GET /api/executions/handler/v1/%ZZ HTTP/1.1",
      "GET /api/executions/handler/v1/%E0%A4%A HTTP/1.1",
      "GET /%00 HTTP/1.1",
      "GET /admin?limit[]=1&limit=1e9&customer=%FF HTTP/1.1",
      "GET /admin/truth?limit=%00 HTTP/1.1",
      "GET /api/config/engines/list?markets=%&markets[x]=1 HTTP/1.1",
      `GET /api/executions/handler/v1/${"x".repeat(9_000)} HTTP/1.1`,
      "GET //evil.example/api HTTP/1.1",
      "GET http://evil.example/admin HTTP/1.1",
      "OPTIONS * HTTP/1.1",
      "PATCH /api/hooks/update HTTP/1.1",
      "BREW / HTTP/1.1",
      "GET /api/config/engines/list HTTP/9.9",
    ]
    const rest = "Host: localhost\r\nX-APP-SECRET: sandbox-app-1\r\nConnection: close\r\n\r\n"
    for (const line of lines) {
      const status = statusOf(yield* exchange(base_url, [`${line}\r\n${rest}`]))
      expect([line, status >= 200 && status < 500]).toEqual([line, true])
    }
  })
  it.effect("that was bound to another address answers to every name", () =>
    Effect.gen(function* () {
      const { base_url } = yield* SandboxServer
      expect(statusOf(yield* exchange(base_url, get("evil.example")))).toBe(200)
    }).pipe(Effect.provide(server("0.0.0.0"))),
  )

  it("gives a caller that sends slowly 20 seconds for its headers and 60 for the rest", () => {
    const [headersTimeout, requestTimeout] = [Duration.seconds(20), Duration.seconds(60)]
    expect(serverLimits).toEqual({ headersTimeout, requestTimeout })
  })
})

describe("the in-process service", () => {
  it("answers within the caller's own step: no Promise, no timer, so that runs can be simulated", () => {
    const read = Effect.flatMap(Caller, (caller) => caller.read("nobody")).pipe(
      Effect.provide(inProcess({ seed: 7 })),
    )
    expect(Effect.runSync(read)).toMatchObject({ status: 404, json: { detail: "no such execution" } })
  })

  it("is one origin: any other is refused like a connection", () => {
    const elsewhere = Effect.flatMap(Caller, (caller) => caller.call("GET", "http://elsewhere.invalid/api"))
    expect(Effect.runSyncExit(elsewhere.pipe(Effect.provide(inProcess({ seed: 7 }))))._tag).toBe("Failure")
  })
})

const nested = (depth: number, isList: boolean): unknown =>
  Array.from({ length: depth }).reduce<unknown>((inner) => (isList ? [inner] : { a: inner }), 1)

overSockets("an absurd body", (it) => {
  it("is invalid if it is nested too deeply, at every endpoint that accepts one", function* () {
    const { call, startUrl, base_url, flows_url, executionUrl } = yield* Caller
    const widget = `${flows_url}/es-public-administration/v1/widget`
    const calls = [
      ["POST", startUrl],
      ["POST", `${base_url}/executions/init/v1/tokenized`],
      ["PUT", executionUrl("x")],
      ["PUT", `${base_url}/executions/t10n`],
      ["POST", `${flows_url}/hooks/create`],
      ["PATCH", `${flows_url}/hooks/update`],
      ["PUT", `${new URL(base_url).origin}/sandbox/hooks`],
      ["POST", widget],
      ["POST", `${widget}/x/connect`],
    ] as const
    const detail = [{ loc: ["body"], msg: "nested more than 64 deep", type: "value_error" }]
    for (const [method, url] of calls)
      for (const isList of [true, false]) {
        const answer = yield* call(method, url, { body: { parameters: nested(1_000, isList), a: 1 } })
        expect([url, answer.status, answer.json]).toEqual([url, 422, { detail }])
      }
    const fine = yield* call("POST", startUrl, { body: { parameters: nested(60, false) } })
    expect(field(fine, "detail", 0, "msg")).not.toBe("nested more than 64 deep")
  })
})

const json = fc.jsonValue({ maxDepth: 4 })
const hostileWords = ["queue-1+run-1", "run-1e999", "queue-99999999999999999999", "rsa::x", "hybrid::a::b"]
const words = fc.constantFrom(...hostileWords)

describe("a start", () => {
  here("of any JSON is answered without a 5xx", function* () {
    const { base_url } = yield* SandboxServer
    const keys =
      "engine_reference customer_id external_execution_id parameters features base_configurations " +
      "configurations hooks_extra_data execution_timeout token"
    const fields = Object.fromEntries(keys.split(" ").map((key) => [key, json]))
    const start = fc.record(fields, { requiredKeys: [] })
    const login = fc.record({ username: fc.oneof(words, json), password: json })
    const bodies = fc.sample(
      fc.tuple(start, login, fc.boolean()).map(([some, parameters, isWhole]) => ({
        ...some,
        ...(isWhole ? { engine_reference: "sandbox-bank:website", customer_id: "c-1", parameters } : {}),
      })),
      { numRuns: 50, seed: 8 },
    )
    const url = `${base_url}/executions/init/v1/parametrized`
    const headers = { "X-APP-SECRET": "sandbox-app-1", "Content-Type": "application/json" }
    for (const body of bodies) {
      const sent = fetch(url, { method: "POST", headers, body: JSON.stringify(body) })
      const answer = yield* Effect.promise(() => sent)
      yield* Effect.promise(() => answer.arrayBuffer())
      expect([body, answer.status < 500]).toEqual([body, true])
    }
  })
})

overSockets("the application secret", (it) => {
  it("is never in an answer [auth-rule 2]", function* (caller) {
    const started = yield* caller.start("queue-0+run-0")
    const answers = [
      started,
      yield* caller.read(textField(started, "execution_id")),
      yield* caller.results(textField(started, "session_id")),
      yield* caller.start("ok", { features: ["nothing"] }),
      yield* caller.call("GET", `${caller.base_url}/config/engines/list`),
      yield* caller.start("ok", {}, "sandbox-app-9"),
    ]
    expect(answers.map(({ status }) => status)).toEqual([202, 200, 200, 422, 200, 403])
    for (const { text } of answers) expect(text).not.toMatch(/sandbox-app-\d/)
  })
})
