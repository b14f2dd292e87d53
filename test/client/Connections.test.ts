/** Calls over real sockets: what a connection that fails proves, what is kept alive, and whom TLS trusts. */
import type * as Net from "node:net"
import { afterEach, assert, describe, expect } from "@effect/vitest"
import { Deferred, Effect, Fiber, Stream } from "effect"
import { vi } from "vitest"
import { HttpClient } from "effect/http"
import { defaultLimits } from "../../src/client/Exchange.ts"
import { NodeClient } from "../../src/client/NodeClient.ts"
import { Service, type CallFailure } from "../../src/client/Service.ts"
import { listen, listenRaw, listenTls, secret, serviceAt } from "./FakeService.ts"
import { startCall } from "./Examples.ts"
import { selfSigned } from "./SelfSigned.ts"
import { anId } from "../harness/Id.ts"
import { live } from "../harness/Steps.ts"

/** A request's headers and body may come apart: it is whole with its body's last byte. */
const onRequest = (react: (socket: Net.Socket, requests: number) => void) => (socket: Net.Socket) => {
  let requests = 0
  socket.on("data", (chunk: Buffer) => {
    if (chunk.toString().endsWith("}") || /^(?:GET|HEAD)/.test(chunk.toString())) react(socket, ++requests)
  })
}

const tagged = <A extends { readonly _tag: string }>(call: Effect.Effect<A, CallFailure>) =>
  Effect.match(call, { onFailure: ({ _tag }) => _tag, onSuccess: ({ _tag }): string => _tag })
const start = Effect.flatMap(Service, (service) => tagged(service.startExecution(startCall(), Effect.void)))
const started = (origin: string, limits = {}) => Effect.provide(start, serviceAt(origin, limits))
const closedOrigin = Effect.scoped(listenRaw(() => undefined))

const accepted = 'HTTP/1.1 202 Accepted\r\ncontent-length: 22\r\n\r\n{"execution_id":"e-1"}'
const bare = "HTTP/1.1 202 Accepted\r\ncontent-length: 22\r\n\r\n"
const long = 'HTTP/1.1 202 Accepted\r\ncontent-length: 100\r\n\r\n{"execution_id":"e-1"}'
const chunked = "HTTP/1.1 202 Accepted\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n"
const away = "HTTP/1.1 503 Unavailable\r\ncontent-length: 100\r\nretry-after: 3\r\n\r\n{"

describe("a start over a connection that fails", () => {
  live("was not sent if there is no connection: refused, no such host", function* () {
    const origin = yield* closedOrigin
    for (const one of [origin, origin.replace("127.0.0.1", "localhost"), "https://nightjar.invalid"])
      assert.strictEqual(yield* started(one), "NotSent", one)
  })

  live.each<readonly [string, (socket: Net.Socket) => void, string?]>([
    ["a reset after the request", (socket) => socket.resetAndDestroy()],
    ["a server that does not speak HTTP", (socket) => socket.end("220 smtp ready\r\n\r\n")],
    ["half of the headers", (socket) => socket.end("HTTP/1.1 202 Acc")],
    ["a body shorter than its length", (socket) => socket.end(long)],
    ["a chunked body without its end", (socket) => socket.end(chunked)],
    ["a chunked body that is reset", (socket) => socket.write(chunked, () => socket.resetAndDestroy())],
    ["no headers in time", () => undefined],
    ["no end of the body in time", (socket) => socket.write(long)],
    ["a cut body, unless its status is the whole answer", (socket) => socket.end(away), "EngineUnavailable"],
  ])("loses the answer: %s", function* ([, react, tag = "AnswerLost"]) {
    const origin = yield* listenRaw(onRequest(react))
    assert.strictEqual(
      yield* started(origin, { small: { ...defaultLimits.small, timeout: "80 millis" } }),
      tag,
    )
  })

  live.each<readonly [string, (socket: Net.Socket) => void]>([
    ["is reset", (socket) => socket.resetAndDestroy()],
    ["is closed", (socket) => socket.end()],
    ["is answered without TLS", (socket) => socket.end("HTTP/1.1 400 Bad Request\r\n\r\n")],
    ["is reset later", (socket) => socket.once("data", () => socket.resetAndDestroy())],
  ])("was not sent if TLS never began: the handshake %s [promise 1 handshake]", function* ([, react]) {
    const origin = (yield* listenRaw(react)).replace("http:", "https:")
    assert.strictEqual(yield* Effect.provide(start, serviceAt(origin)), "NotSent")
  })

  live("loses the answer if it breaks after TLS began [promise 1 begun]", function* () {
    const origin = yield* listenTls(onRequest((socket) => socket.destroy()))
    const trusting = serviceAt(origin, {}, { acceptAnyCertificate: true })
    assert.strictEqual(yield* Effect.provide(start, trusting), "AnswerLost")
  })

  live("loses the answer if the server accepts and closes", function* () {
    assert.strictEqual(yield* started(yield* listenRaw((socket) => socket.end())), "AnswerLost")
  })

  live("was answered if the answer came while the process was stopped [promise 1 stopped]", function* () {
    const stopMs = (ms: number) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
    const origin = yield* listenRaw(onRequest((socket) => socket.write(accepted) && stopMs(300)))
    const limits = { small: { ...defaultLimits.small, timeout: "200 millis" } }
    assert.strictEqual(yield* started(origin, limits), "Accepted")
  })

  live("[auth-rule 2] a redirect is not followed: the secret stays with the configured host", function* () {
    const elsewhere: Array<string> = []
    const other = yield* listen((request, response) => {
      elsewhere.push(String(request.headers["x-app-secret"]))
      response.end("{}")
    })
    for (const status of [301, 302, 303, 307, 308]) {
      const location = `${other}/api`
      const origin = yield* listen((_, response) => response.writeHead(status, { location }).end())
      assert.strictEqual(yield* started(origin), "UnexpectedAnswer")
    }
    assert.deepStrictEqual(elsewhere, [])
  })
})

describe("a kept-alive connection", () => {
  const twice = Effect.all([start, Effect.delay(start, "20 millis")])
  const over = <A, E>(work: Effect.Effect<A, E, Service>, origin: string) =>
    Effect.provide(work, serviceAt(origin, {}, { connectionsMax: 1 }))

  live("that breaks under the second request loses its answer, and repeats nothing", function* () {
    let seen = 0
    const origin = yield* listenRaw(
      onRequest((socket, requests) => {
        seen++
        if (requests === 1) socket.write(accepted)
        else socket.resetAndDestroy()
      }),
    )
    assert.deepStrictEqual([...(yield* over(twice, origin)), seen], ["Accepted", "AnswerLost", 2])
  })

  live("that the server closed while it was idle is replaced, not lost", function* () {
    const origin = yield* listenRaw(onRequest((socket) => socket.end(accepted)))
    assert.deepStrictEqual(yield* over(twice, origin), ["Accepted", "Accepted"])
  })

  const poll = Effect.flatMap(Service, (service) => service.pollExecution(anId("e-1")))
  /** A server that answers HEAD like this, and everything else with an acceptance; it counts connections. */
  const heads = Effect.fnUntraced(function* (head: string) {
    const seen = { sockets: 0 }
    const origin = yield* listenRaw((socket) => {
      seen.sockets++
      socket.on("data", (chunk) => socket.write(chunk.toString().startsWith("HEAD") ? head : accepted))
    })
    return { seen, origin }
  })

  live("survives a HEAD, as every other call", function* () {
    const { seen, origin } = yield* heads(bare)
    const polls = Array.from({ length: 5 }, () => poll)
    expect(
      yield* over(Effect.all([Effect.all(polls), Effect.sync(() => seen.sockets), start]), origin),
    ).toStrictEqual([polls.map(() => "working"), 1, "Accepted"])
    assert.strictEqual(seen.sockets, 2)
  })

  live("is not disturbed by a server that wrongly answers HEAD with a body", function* () {
    const { origin } = yield* heads(accepted)
    const both = Effect.andThen(Effect.ignore(poll), start)
    const tags = yield* over(Effect.all(Array.from({ length: 5 }, () => both)), origin)
    assert.deepStrictEqual(new Set(tags), new Set(["Accepted"]))
  })
})

describe("a download", () => {
  const download = Effect.flatMap(Service, (service) =>
    Effect.flatMap(service.downloadAttachment(anId("s"), "a"), (answer) =>
      answer._tag === "Document" ? Stream.runCollect(answer.bytes) : Effect.succeed([]),
    ),
  ).pipe(
    Effect.match({ onFailure: ({ _tag }) => _tag, onSuccess: (chunks) => Buffer.concat(chunks).toString() }),
  )

  live("arrives whole, or fails as a lost answer when it is cut or stops", function* () {
    const head = "HTTP/1.1 200 OK\r\ncontent-type: application/pdf\r\ncontent-length: 4\r\n\r\n"
    const reactions: ReadonlyArray<(socket: Net.Socket) => void> = [
      (socket) => socket.write(`${head}%PDF`),
      (socket) => socket.end(`${head}%P`),
      (socket) => socket.write(`${head}%P`),
    ]
    const results = yield* Effect.forEach(reactions, (react) =>
      Effect.flatMap(listenRaw(onRequest(react)), (origin) =>
        Effect.provide(
          download,
          serviceAt(origin, {
            attachment: {
              ...defaultLimits.attachment,
              large: { ...defaultLimits.attachment.large, window: "80 millis" },
            },
          }),
        ),
      ),
    )
    assert.deepStrictEqual(results, ["%PDF", "AnswerLost", "AnswerLost"])
  })
})

describe("a call that ends early", () => {
  const read = Effect.flatMap(Service, (service) => service.readExecution(anId("e")))
  const document = Effect.flatMap(Service, (service) => service.downloadAttachment(anId("s"), "a"))
  const first = Effect.flatMap(document, (answer) =>
    answer._tag === "Document" ? Stream.runHead(answer.bytes) : Effect.void,
  )

  live.each<readonly [string, string, Effect.Effect<unknown, CallFailure, Service>]>([
    ["before the answer", "", read],
    ["after the headers", long, read],
    ["in a body of unknown length", chunked, read],
    ["between two pieces of a document", chunked.replace("202 Accepted", "200 OK"), first],
  ])("ends its request: %s", function* ([, said, call]) {
    const arrived = yield* Deferred.make<void>()
    const closed = yield* Deferred.make<void>()
    const origin = yield* listenRaw((socket) => {
      socket.on("data", () => socket.write(said, () => Deferred.doneUnsafe(arrived, Effect.void)))
      socket.on("close", () => Deferred.doneUnsafe(closed, Effect.void))
    })
    yield* Effect.gen(function* () {
      const calling = yield* Effect.forkChild(call)
      yield* Deferred.await(arrived)
      yield* Effect.sleep("20 millis")
      yield* Fiber.interrupt(calling)
      // The connections of the client are open still: it is this request that closes its own.
      yield* Effect.timeout(Deferred.await(closed), "5 seconds")
    }).pipe(Effect.provide(serviceAt(origin)))
  })

  live("makes nobody read ahead: a document waits at the server until its reader wants more", function* () {
    const size = 16 * 1024 * 1024
    let sent = 0
    const origin = yield* listenRaw((socket) => {
      const piece = Buffer.alloc(1024 * 1024, 1)
      const more = (): void => {
        if (sent === size) return
        sent += piece.length
        socket.write(piece, more)
      }
      socket.on("data", () => socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${size}\r\n\r\n`, more))
    })
    let seen = 0
    let sentByThen = 0
    yield* Effect.provide(
      Effect.flatMap(document, (answer) =>
        answer._tag !== "Document"
          ? Effect.void
          : Stream.runForEach(answer.bytes, (chunk) => {
              seen += chunk.length
              if (sentByThen > 0) return Effect.void
              return Effect.map(Effect.sleep("500 millis"), () => void (sentByThen = sent))
            }),
      ),
      serviceAt(origin),
    )
    assert.deepStrictEqual([seen, sentByThen > 0 && sentByThen < size], [size, true])
  })
})

describe("an answer that more than one reader wants", () => {
  const body = '{"execution_id":"e-1"}'
  const asked = Effect.gen(function* () {
    const origin = yield* listen((_, response) => response.end(body))
    return yield* (yield* HttpClient.HttpClient).get(origin)
  }).pipe(Effect.provide(NodeClient.layer()))

  live("is the same for each of them [promise 1 read twice]", function* () {
    const answer = yield* asked
    const texts = yield* Effect.forEach([1, 2], () => Effect.map(answer.arrayBuffer, textOf))
    const inPieces = yield* Stream.runCollect(answer.stream)
    assert.deepStrictEqual([...texts, ...inPieces.map(textOf)], [body, body, body])
  })

  live("is no answer to whoever comes after a part of it was read", function* () {
    const answer = yield* asked
    yield* Stream.runDrain(Stream.take(answer.stream, 1))
    assert.strictEqual((yield* Effect.exit(answer.arrayBuffer))._tag, "Failure")
  })
})

const textOf = (bytes: ArrayBuffer | Uint8Array): string => Buffer.from(bytes as Uint8Array).toString()

describe("an untrusted certificate", () => {
  afterEach(() => vi.unstubAllEnvs())

  /** What one call says, and the secrets that the server was sent. */
  const listAt = Effect.fnUntraced(function* (connections = {}) {
    const { origin, requests } = yield* selfSigned
    const call = Effect.flatMap(Service, (service) => service.listEngines).pipe(
      Effect.match({ onFailure: ({ _tag, message }) => `${_tag} ${message}`, onSuccess: () => "listed" }),
    )
    const said = yield* Effect.provide(call, serviceAt(origin, {}, connections))
    return [said, ...requests.map(({ headers }) => headers["x-app-secret"])]
  })

  live.each(["1", "0"])("gets no request if NODE_TLS_REJECT_UNAUTHORIZED is %s", function* (environment) {
    vi.stubEnv("NODE_TLS_REJECT_UNAUTHORIZED", environment)
    assert.deepStrictEqual(yield* listAt(), [
      "NotSent listEngines: no connection to the service (DEPTH_ZERO_SELF_SIGNED_CERT)",
    ])
  })

  live("is accepted only if the connections are configured so", function* () {
    assert.deepStrictEqual(yield* listAt({ acceptAnyCertificate: true }), ["listed", secret])
  })
})
