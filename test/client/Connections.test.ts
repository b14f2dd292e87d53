import * as Net from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import type { Scope } from "effect"
import { Service } from "../../src/client/Service.ts"
import type { CallFailure } from "../../src/client/Service.ts"
import { listen, serviceAt } from "./FakeService.ts"
import { startCall } from "./Examples.ts"
import { anId } from "../harness/Id.ts"

/** A raw server; what it does with each connection is the test's. */
const listenRaw = (onConnection: (socket: Net.Socket) => void) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.callback<{ server: Net.Server; sockets: Set<Net.Socket> }>((resume) => {
        const sockets = new Set<Net.Socket>()
        const server = Net.createServer((socket) => {
          sockets.add(socket)
          socket.on("error", () => undefined)
          onConnection(socket)
        })
        server.listen(0, "127.0.0.1", () => resume(Effect.succeed({ server, sockets })))
      }),
      ({ server, sockets }) =>
        Effect.callback<void>((resume) => {
          for (const socket of sockets) socket.destroy()
          server.close(() => resume(Effect.void))
        }),
    ),
    ({ server }) => {
      const address = server.address()
      const port = typeof address === "object" && address !== null ? address.port : 0
      return { origin: `http://127.0.0.1:${port}` }
    },
  )

const onRequest = (socket: Net.Socket, react: (requests: number) => void) => {
  let requests = 0
  socket.on("data", (chunk: Buffer) => {
    // A request's headers and body may come apart: it is whole with its body's last byte.
    if (chunk.toString().endsWith("}") || chunk.toString().startsWith("GET")) react(++requests)
  })
}

const started = (origin: string, limits = {}) =>
  Effect.provide(
    Effect.flatMap(Service, (service) => Effect.result(service.startExecution(startCall(), Effect.void))),
    serviceAt(origin, limits),
  )

const tagOf = (result: {
  readonly _tag: string
  readonly failure?: CallFailure
  readonly success?: { readonly _tag: string }
}) => result.failure?._tag ?? result.success?._tag ?? result._tag

const startAgainst = (react: (socket: Net.Socket) => void, limits = {}) =>
  Effect.gen(function* () {
    const { origin } = yield* listenRaw((socket) => onRequest(socket, () => react(socket)))
    return tagOf(yield* started(origin, limits))
  })

const live = (title: string, test: () => Effect.Effect<void, never, Scope.Scope>) =>
  it.live(title, () => Effect.scoped(test()))

describe("a start over a connection that fails", () => {
  live("a refused connection was not sent", () =>
    Effect.gen(function* () {
      const origin = yield* Effect.scoped(
        Effect.map(
          listenRaw(() => undefined),
          (raw) => raw.origin,
        ),
      )
      assert.strictEqual(tagOf(yield* started(origin)), "NotSent")
    }),
  )

  live("a request to a host whose addresses all refuse was not sent", () =>
    Effect.gen(function* () {
      const origin = yield* Effect.scoped(
        Effect.map(
          listenRaw(() => undefined),
          (raw) => raw.origin,
        ),
      )
      assert.strictEqual(tagOf(yield* started(origin.replace("127.0.0.1", "localhost"))), "NotSent")
    }),
  )

  live("a request to a host that no name server knows was not sent", () =>
    Effect.gen(function* () {
      assert.strictEqual(tagOf(yield* started("https://nightjar.invalid")), "NotSent")
    }),
  )

  live("a server that accepts and closes loses the answer", () =>
    Effect.gen(function* () {
      const { origin } = yield* listenRaw((socket) => socket.end())
      assert.strictEqual(tagOf(yield* started(origin)), "AnswerLost")
    }),
  )

  live("a reset after the request loses the answer", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* startAgainst((socket) => socket.resetAndDestroy()), "AnswerLost")
    }),
  )

  live("a server that does not speak HTTP loses the answer", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* startAgainst((socket) => socket.end("220 smtp ready\r\n\r\n")), "AnswerLost")
    }),
  )

  live("half of the headers loses the answer", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* startAgainst((socket) => socket.end("HTTP/1.1 202 Acc")), "AnswerLost")
    }),
  )

  live("a body shorter than its length loses the answer", () =>
    Effect.gen(function* () {
      const cut = 'HTTP/1.1 202 Accepted\r\ncontent-length: 100\r\n\r\n{"execution_id":"e-1"}'
      assert.strictEqual(yield* startAgainst((socket) => socket.end(cut)), "AnswerLost")
    }),
  )

  live("a chunked body without its end loses the answer", () =>
    Effect.gen(function* () {
      const cut = "HTTP/1.1 202 Accepted\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n"
      assert.strictEqual(yield* startAgainst((socket) => socket.end(cut)), "AnswerLost")
      assert.strictEqual(
        yield* startAgainst((socket) => socket.write(cut, () => socket.resetAndDestroy())),
        "AnswerLost",
      )
    }),
  )

  live("a cut body does not hide a status that is the whole answer", () =>
    Effect.gen(function* () {
      const cut = "HTTP/1.1 503 Unavailable\r\ncontent-length: 100\r\nretry-after: 3\r\n\r\n{"
      assert.strictEqual(yield* startAgainst((socket) => socket.end(cut)), "EngineUnavailable")
    }),
  )

  live("no headers in time, and no end of the body in time, lose the answer", () =>
    Effect.gen(function* () {
      const limits = { requestTimeout: "80 millis" }
      assert.strictEqual(yield* startAgainst(() => undefined, limits), "AnswerLost")
      const slow = "HTTP/1.1 202 Accepted\r\ncontent-length: 100\r\n\r\n{"
      assert.strictEqual(yield* startAgainst((socket) => socket.write(slow), limits), "AnswerLost")
    }),
  )

  live("a kept-alive connection that breaks under the second request loses its answer", () =>
    Effect.gen(function* () {
      const good = 'HTTP/1.1 202 Accepted\r\ncontent-length: 22\r\n\r\n{"execution_id":"e-1"}'
      let seen = 0
      const { origin } = yield* listenRaw((socket) =>
        onRequest(socket, (requests) => {
          seen++
          if (requests === 1) socket.write(good)
          else socket.resetAndDestroy()
        }),
      )
      const tags = yield* Effect.provide(
        Effect.gen(function* () {
          const service = yield* Service
          const first = yield* Effect.result(service.startExecution(startCall(), Effect.void))
          const second = yield* Effect.result(service.startExecution(startCall(), Effect.void))
          return [tagOf(first), tagOf(second)]
        }),
        serviceAt(origin, {}, { connectionsMax: 1 }),
      )
      // Nothing below repeats a request by itself either.
      assert.deepStrictEqual([...tags, seen], ["Accepted", "AnswerLost", 2])
    }),
  )

  live("a kept-alive connection that the server closed while it was idle is replaced, not lost", () =>
    Effect.gen(function* () {
      const good = 'HTTP/1.1 202 Accepted\r\ncontent-length: 22\r\n\r\n{"execution_id":"e-1"}'
      const { origin } = yield* listenRaw((socket) => onRequest(socket, () => socket.end(good)))
      const tags = yield* Effect.provide(
        Effect.gen(function* () {
          const service = yield* Service
          const first = yield* Effect.result(service.startExecution(startCall(), Effect.void))
          yield* Effect.sleep("20 millis")
          return [tagOf(first), tagOf(yield* Effect.result(service.startExecution(startCall(), Effect.void)))]
        }),
        serviceAt(origin, {}, { connectionsMax: 1 }),
      )
      assert.deepStrictEqual(tags, ["Accepted", "Accepted"])
    }),
  )

  live("[auth-rule 2] a redirect is not followed: the secret stays with the configured host", () =>
    Effect.gen(function* () {
      const elsewhere: Array<string> = []
      const other = yield* listen((request, response) => {
        elsewhere.push(String(request.headers["x-app-secret"]))
        response.end("{}")
      })
      for (const status of [301, 302, 303, 307, 308]) {
        const origin = yield* listen((_, response) => {
          response.writeHead(status, { location: `${other}/api` }).end()
        })
        assert.strictEqual(tagOf(yield* started(origin)), "UnexpectedAnswer")
      }
      assert.deepStrictEqual(elsewhere, [])
    }),
  )
})

describe("a download", () => {
  const download = (origin: string, limits = {}) =>
    Effect.provide(
      Effect.flatMap(Service, (service) =>
        Effect.flatMap(service.downloadAttachment(anId("s"), "a"), (answer) =>
          answer._tag === "Document" ? Stream.runCollect(answer.bytes) : Effect.succeed([]),
        ),
      ),
      serviceAt(origin, limits),
    ).pipe(
      Effect.match({
        onFailure: (failure) => failure._tag,
        onSuccess: (chunks) => Buffer.concat(chunks).toString(),
      }),
    )

  live("arrives whole, or fails as a lost answer when it is cut or stops", () =>
    Effect.gen(function* () {
      const head = "HTTP/1.1 200 OK\r\ncontent-type: application/pdf\r\ncontent-length: 4\r\n\r\n"
      const results = yield* Effect.forEach(
        [
          (socket: Net.Socket) => socket.write(`${head}%PDF`),
          (socket: Net.Socket) => socket.end(`${head}%P`),
          (socket: Net.Socket) => socket.write(`${head}%P`),
        ],
        (react) =>
          Effect.flatMap(
            listenRaw((socket) => onRequest(socket, () => react(socket))),
            ({ origin }) => download(origin, { window: "80 millis" }),
          ),
      )
      assert.deepStrictEqual(results, ["%PDF", "AnswerLost", "AnswerLost"])
    }),
  )
})
