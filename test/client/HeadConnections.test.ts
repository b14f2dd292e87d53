/** HEAD over real sockets: it keeps its connection, and a server that answers it with a body harms nobody. */
import { createServer } from "node:net"
import type { AddressInfo, Socket } from "node:net"
import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { Service } from "../../src/client/Service.ts"
import { startCall } from "./Examples.ts"
import { serviceAt } from "./FakeService.ts"
import { anId } from "../harness/Id.ts"
import { live } from "../harness/Steps.ts"

/** A raw server: what it writes for a request, by the request's first word. */
const listenRaw = (answers: Readonly<Record<string, string>>) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.callback<{ server: ReturnType<typeof createServer>; sockets: Set<Socket> }>((resume) => {
        const sockets = new Set<Socket>()
        const server = createServer((socket) => {
          sockets.add(socket)
          socket.on("error", () => undefined)
          socket.on("data", (chunk) => {
            const [method = ""] = chunk.toString("latin1").split(" ", 1)
            if (answers[method] !== undefined) socket.write(answers[method])
          })
        })
        server.listen(0, "127.0.0.1", () => resume(Effect.succeed({ server, sockets })))
      }),
      ({ server, sockets }) =>
        Effect.callback<void>((resume) => {
          for (const socket of sockets) socket.destroy()
          server.close(() => resume(Effect.void))
        }),
    ),
    ({ server, sockets }) => ({
      origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      sockets,
    }),
  )

const accepted = 'HTTP/1.1 202 Accepted\r\ncontent-length: 22\r\n\r\n{"execution_id":"e-1"}'
const bare = "HTTP/1.1 202 Accepted\r\ncontent-length: 22\r\n\r\n"

describe("HEAD", () => {
  live("keeps its connection, as every other call does", function* () {
    const { origin, sockets } = yield* listenRaw({ HEAD: bare, POST: accepted })
    yield* Effect.gen(function* () {
      const service = yield* Service
      for (let times = 0; times < 5; times++)
        assert.strictEqual(yield* service.pollExecution(anId("e-1")), "working")
      assert.strictEqual(sockets.size, 1)
      assert.strictEqual((yield* service.startExecution(startCall(), Effect.void))._tag, "Accepted")
      assert.strictEqual(sockets.size, 2)
    }).pipe(Effect.provide(serviceAt(origin, {}, { connectionsMax: 1 })))
  })

  live("that a server wrongly answers with a body loses no other call's answer", function* () {
    const { origin } = yield* listenRaw({ HEAD: accepted, POST: accepted })
    yield* Effect.gen(function* () {
      const service = yield* Service
      for (let times = 0; times < 5; times++) {
        yield* Effect.ignore(service.pollExecution(anId("e-1")))
        assert.strictEqual((yield* service.startExecution(startCall(), Effect.void))._tag, "Accepted")
      }
    }).pipe(Effect.provide(serviceAt(origin, {}, { connectionsMax: 1 })))
  })
})
