/** The address that webhooks are delivered to, over real sockets: what it takes, refuses and survives. */
import { request } from "node:http"
import { connect } from "node:net"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { eventBytesMax, type EventView } from "../../src/client/Views.ts"
import { live } from "../harness/Steps.ts"
import { openReceiver, parseListenAt, receiverHost } from "../../src/client/HookReceiver.ts"

interface Sent {
  readonly method?: string
  readonly path?: string
  readonly body?: string | Buffer
  readonly headers?: Readonly<Record<string, string>>
}

const send = (url: string, { method = "POST", path = "", body = "", headers = {} }: Sent) =>
  Effect.callback<number>((resume) => {
    const sent = request(`${url}${path}`, { method, headers, agent: false }, (response) => {
      response.resume()
      resume(Effect.succeed(response.statusCode ?? 0))
    })
    // The receiver may close while the rest of a body is still on its way.
    sent.on("error", () => resume(Effect.succeed(0)))
    sent.end(body)
  })

const opened = Effect.gen(function* () {
  const events: Array<EventView> = []
  const url = yield* openReceiver({ host: receiverHost, port: 0 }, (event) => events.push(event))
  return { url, events, textsSeen: () => events.map(({ texts }) => [...texts]) }
})

describe("the webhook receiver", () => {
  live("accepts any well-formed delivery, at any path, and answers 204", function* () {
    const { url, textsSeen } = yield* opened
    const body = JSON.stringify({ execution_id: "e-1" })
    const statuses = yield* Effect.all([
      send(url, { body }),
      send(url, { body, method: "PUT", path: "hooks/x?nightjar_execution=x-1" }),
      send(url, { method: "GET", path: "?a=s-1" }),
      send(url, { body: "[]", headers: { "content-type": "text/plain" } }),
      send(url, {}),
    ])
    expect(statuses).toEqual([204, 204, 204, 204, 204])
    const named = ["execution_id", "e-1"]
    expect(textsSeen()).toEqual([named, ["x-1", ...named], ["s-1"], [], []])
  })

  live("refuses what is not an event with a 4xx, and passes nothing of it on", function* () {
    const { url, events } = yield* opened
    const statuses = yield* Effect.all([
      send(url, { body: "{" }),
      send(url, { body: "execution_id=e-1" }),
      send(url, { body: Buffer.from([0xff, 0xfe]) }),
      send(url, { body: "[".repeat(300_000) + "]".repeat(300_000) }),
      send(url, { method: "DELETE" }),
      send(url, { method: "PATCH", body: "{}" }),
    ])
    expect([statuses, events]).toEqual([[400, 400, 400, 400, 405, 405], []])
  })

  live("keeps no more than a mebibyte of a delivery, and still accepts it", function* () {
    const { url, events } = yield* opened
    const limit = `"${"x".repeat(eventBytesMax - 2)}"`
    const filler = `"${"y".repeat(eventBytesMax)}"`
    const large = `{"session_id":"s-1","date":"2026-11-21T00:00:00Z","data":[${filler}],"after":"s-2"}`
    expect(yield* send(url, { body: limit })).toBe(204)
    expect(yield* send(url, { body: large })).toBe(204)
    expect(yield* send(url, { body: large, headers: { "transfer-encoding": "chunked" } })).toBe(204)
    // What the address says counts, whatever the body is.
    const named = { path: "?nightjar_execution=x-1", body: Buffer.alloc(eventBytesMax * 4, 0x20) }
    expect(yield* send(url, named)).toBe(204)
    const seen = ["session_id", "s-1", "date", "2026-11-21T00:00:00Z", "data"]
    expect(events.map(({ texts, dateMs }) => [[...texts], dateMs])).toEqual([
      [[], undefined],
      [seen, undefined],
      [seen, undefined],
      [["x-1"], undefined],
    ])
  })

  live("refuses a delivery with an impossible declared length", function* () {
    const { url, events } = yield* opened
    const headers = { "content-length": String(65 * eventBytesMax) }
    expect([0, 413]).toContain(yield* send(url, { body: "{}", headers }))
    expect(events).toEqual([])
    expect(yield* send(url, { body: "{}" })).toBe(204)
  })

  live("survives invalid HTTP, deliveries that break off and a flood", function* () {
    const { url, events } = yield* opened
    const { port } = new URL(url)
    const raw = (text: string) =>
      Effect.callback<void>((resume) => {
        const socket = connect(Number(port), receiverHost, () => {
          socket.write(text)
          socket.resetAndDestroy()
        })
        socket.on("error", () => undefined)
        socket.on("close", () => resume(Effect.void))
      })
    yield* raw("\0\0\0nonsense\r\n\r\n")
    yield* raw('POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{"execution')
    const statuses = yield* Effect.forEach(
      Array.from({ length: 100 }, (_, index) => JSON.stringify({ id: `e-${index}` })),
      (body) => send(url, { body }),
      { concurrency: 32 },
    )
    expect([new Set(statuses), events.length]).toEqual([new Set([204]), 100])
  })

  live("ends with its scope, and says clearly if it cannot listen", function* () {
    const { url } = yield* opened
    const port = Number(new URL(url).port)
    const taken = yield* Effect.flip(openReceiver({ host: receiverHost, port }, () => undefined))
    expect([taken._tag, taken.message]).toEqual([
      "ReceiverRefused",
      `--webhooks 127.0.0.1:${port}: another program already listens there`,
    ])
    const elsewhere = yield* Effect.flip(openReceiver({ host: "192.0.2.1", port: 0 }, () => undefined))
    expect(elsewhere.message).toBe("--webhooks 192.0.2.1:0: this machine does not have that address")
    const gone = yield* Effect.scoped(opened)
    expect(yield* send(gone.url, { body: "{}" })).toBe(0)
  })
})

it("--webhooks is a port, or a host and a port", () => {
  expect(["8080", "0", "0.0.0.0:80", "[::1]:0", "hooks.example:65535"].map(parseListenAt)).toEqual([
    { host: "127.0.0.1", port: 8080 },
    { host: "127.0.0.1", port: 0 },
    { host: "0.0.0.0", port: 80 },
    { host: "::1", port: 0 },
    { host: "hooks.example", port: 65_535 },
  ])
  for (const text of ["", "x", "65536", ":80", "::1:80", "a b:80", "http://a:80", "80/", "-1", "1e3"])
    expect([text, parseListenAt(text)]).toEqual([text, undefined])
})
