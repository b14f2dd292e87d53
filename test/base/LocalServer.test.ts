/** A server on this machine over real sockets: nobody who connects can hold it, slow it down or end it. */
import { connect, type Socket } from "node:net"
import { describe, expect } from "@effect/vitest"
import { Duration, Effect, Fiber, Layer } from "effect"
import { HttpServer, HttpServerRequest, HttpServerResponse } from "effect/http"
import { LocalServer } from "../../src/base/LocalServer.ts"
import { live } from "../harness/Steps.ts"

const limits = { headersTimeout: Duration.millis(200), requestTimeout: Duration.millis(400) }

/** Answers the length of what it was sent. */
const lengthOf = Effect.gen(function* () {
  const request = yield* HttpServerRequest.HttpServerRequest
  return HttpServerResponse.text(String((yield* request.arrayBuffer).byteLength))
})

const listening = (options: Partial<typeof limits> & { readonly connectionsMax?: number } = {}) =>
  Effect.gen(function* () {
    const at = { host: "127.0.0.1", port: 0, ...limits, ...options }
    const context = yield* Layer.build(LocalServer.layer(at))
    return yield* Effect.gen(function* () {
      yield* HttpServer.serveEffect(lengthOf)
      const { address } = yield* HttpServer.HttpServer
      return address._tag === "UnixPathAddress" ? 0 : address.port
    }).pipe(Effect.provide(context))
  })

const connected = (port: number, text: string) =>
  Effect.callback<Socket>((resume) => {
    const socket = connect(port, "127.0.0.1", () => {
      socket.write(text)
      resume(Effect.succeed(socket))
    })
    socket.on("error", () => undefined)
  })

/** All that a connection says until it is closed. */
const said = (socket: Socket) =>
  Effect.callback<string>((resume) => {
    let text = ""
    socket.setEncoding("latin1").on("data", (chunk: string) => (text += chunk))
    socket.on("close", () => resume(Effect.succeed(text.split("\r\n", 1)[0] ?? "")))
  })

const halfSent = "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\nhalf"

describe("a server on this machine", () => {
  live("closes the connection of a caller that does not send on in time", function* () {
    const port = yield* listening()
    const slowHeaders = yield* connected(port, "POST / HTTP/1.1\r\nhost:")
    const slowBody = yield* connected(port, halfSent)
    expect(yield* Effect.all([said(slowHeaders), said(slowBody)], { concurrency: 2 })).toEqual([
      "HTTP/1.1 408 Request Timeout",
      "HTTP/1.1 408 Request Timeout",
    ])
  })

  live("ends with its scope, though a caller is still sending", function* () {
    const patient = { headersTimeout: Duration.hours(1), requestTimeout: Duration.hours(1) }
    const ended = yield* Effect.scoped(
      Effect.gen(function* () {
        const socket = yield* connected(yield* listening(patient), halfSent)
        return yield* Effect.forkDetach(said(socket), { startImmediately: true })
      }),
    )
    expect(yield* Fiber.join(ended)).toBe("")
  })

  live("turns away connections beyond its limit, and serves the others", function* () {
    const port = yield* listening({ connectionsMax: 1 })
    const first = yield* connected(port, "")
    const second = yield* connected(port, "")
    expect(yield* said(second)).toBe("")
    first.write("POST / HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 4\r\n\r\nfour")
    expect(yield* said(first)).toBe("HTTP/1.1 200 OK")
  })
})
