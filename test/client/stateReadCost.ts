/**
 * What one state read costs: CPU per read of a 4 KB state over loopback, through the whole client and through
 * bare undici, in one process each run. The server runs in a child process, so that only the client's CPU is
 * counted. `node test/client/stateReadCost.ts [reads] [concurrency]`
 */
import { fork } from "node:child_process"
import * as Http from "node:http"
import { NodeHttpClient } from "@effect/platform-node"
import { Effect, Layer, Redacted } from "effect"
import { HttpClient } from "effect/http"
import type { HttpClientError } from "effect/http"
import { NodeClient } from "../../src/client/NodeClient.ts"
import type { CallFailure } from "../../src/client/Service.ts"
import { Service } from "../../src/client/Service.ts"
import { ServiceHttp } from "../../src/client/ServiceHttp.ts"
import { ServicePaced, ServicePause } from "../../src/client/ServicePaced.ts"

const state = JSON.stringify({
  execution_id: "65f0c0ffee65f0c0ffee65f0",
  session_id: "65f0c0ffee65f0c0ffee65f1",
  external_execution_id: "run/c-0001/sandbox-bank:website#1",
  status_code: "ONGOING",
  status_reason: "RUNNING",
  authentication_status: "AUTH_OK",
  is_closed: false,
  products_count: { "accounts:current@accounts": 3, "cards:debit@cards": 2 },
  features: [
    { code: "accounts_read", status_reason: "FEATURE_RUNNING" },
    { code: "cards_read", status_reason: "FEATURE_COMPLETED" },
  ],
  messages: Array.from({ length: 20 }, (_, n) => ({
    date: "2026-11-21T02:00:00Z",
    type: "info",
    id: `situation-${n}`,
    loc: [],
    message: "A text in the language of the source market, which may be reworded at any time.",
  })),
})

const serve = () => {
  const server = Http.createServer((_, response) => {
    response.writeHead(202, {
      "content-type": "application/json",
      "content-length": Buffer.byteLength(state),
    })
    response.end(state)
  })
  let connections = 0
  server.on("connection", () => connections++)
  process.on("message", () => process.send?.(connections))
  server.listen(0, "127.0.0.1", () => process.send?.(server.address()))
}

const measure = (
  title: string,
  reads: number,
  concurrency: number,
  read: Effect.Effect<unknown, CallFailure | HttpClientError.HttpClientError>,
) =>
  Effect.gen(function* () {
    const round = (count: number) =>
      Effect.forEach(Array.from({ length: count }), () => read, { concurrency, discard: true })
    yield* round(reads / 4)
    const before = process.cpuUsage()
    const [elapsed] = yield* Effect.timed(round(reads))
    const { user, system } = process.cpuUsage(before)
    const perRead = (user + system) / reads
    console.log(`${title.padEnd(44)} ${perRead.toFixed(1)} µs CPU/read, ${String(elapsed)}`)
  })

const main = async () => {
  const reads = Number(process.argv[2] ?? 20_000)
  const concurrency = Number(process.argv[3] ?? 64)
  const connectionsMax = Number(process.argv[4] ?? 96)
  const child = fork(import.meta.filename, ["serve"])
  const { port } = await new Promise<{ port: number }>((resolve) => {
    child.once("message", (message) => resolve(message as { port: number }))
  })
  const origin = `http://127.0.0.1:${port}`
  const addresses = {
    base_url: `${origin}/api`,
    flows_url: `${origin}/flows`,
    attachments_url: `${origin}/flows`,
  }
  const settings = { ...addresses, app_secret: Redacted.make("sandbox-app-1") }
  const readState = Effect.flatMap(Service, (service) =>
    measure("client", reads, concurrency, service.readExecution("65f0c0ffee65f0c0ffee65f0")),
  )
  const plain = ServiceHttp.layer(settings)
  const paced = ServicePaced.layer(addresses).pipe(Layer.provide([plain, ServicePause.layer()]))
  const bare = Effect.gen(function* () {
    const client = yield* HttpClient.HttpClient
    const url = `${origin}/api/executions/handler/v1/65f0c0ffee65f0c0ffee65f0`
    const read = Effect.flatMap(client.get(url), (response) => response.arrayBuffer)
    yield* measure("bare HttpClient, tracing on", reads, concurrency, read)
    const quiet = Effect.provideService(read, HttpClient.TracerDisabledWhen, () => true)
    yield* measure("bare HttpClient, tracing off", reads, concurrency, quiet)
  })
  const runs = [
    ["bare HttpClient", bare.pipe(Effect.provide(NodeClient.layer({ connectionsMax })))],
    [
      "ServiceHttp, NodeClient",
      readState.pipe(Effect.provide(plain.pipe(Layer.provide(NodeClient.layer({ connectionsMax }))))),
    ],
    [
      "ServicePaced over it",
      readState.pipe(Effect.provide(paced.pipe(Layer.provide(NodeClient.layer({ connectionsMax }))))),
    ],
    [
      "ServiceHttp, plain layerUndici",
      readState.pipe(Effect.provide(plain.pipe(Layer.provide(NodeHttpClient.layerUndici)))),
    ],
  ] as const
  for (const [title, run] of runs) {
    console.log(`# ${title}`)
    await Effect.runPromise(Effect.scoped(run))
  }
  child.send("count")
  child.once("message", (connections) => {
    console.log(`${String(connections)} connections were opened`)
    child.kill()
  })
}

if (process.argv[2] === "serve") serve()
else await main()
