/**
 * What one request costs the embedded service: the state of an open execution, read over loopback from `nightjar
 * sandbox` in a process of its own, and in this process without a network. The peer of both is a node:http server
 * that answers the same reads with the very body that the service answered.
 */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import Undici from "@effect/platform-node/Undici"
import { Effect, Layer, Schema } from "effect"
import { HttpClient, HttpClientRequest } from "effect/http"
import { secretHeader } from "../../src/service/Api.ts"
import { Sandbox } from "../../src/sandbox/server/Sandbox.ts"
import { SandboxClient } from "../../src/sandbox/server/SandboxServer.ts"
import { median, type Benchmark } from "./Figure.ts"
import { startLoopback } from "./loopback.ts"
import { installedCommand, startMeasured } from "./MeasuredProcess.ts"

const rounds = 5
const atOnce = 32
const headers = { [secretHeader]: "sandbox-app-1", "content-type": "application/json" }

const decodeAddress = Schema.decodeUnknownSync(
  Schema.fromJsonString(Schema.Struct({ base_url: Schema.String })),
)
const decodeStarted = Schema.decodeUnknownSync(
  Schema.fromJsonString(Schema.Struct({ execution_id: Schema.String })),
)

const startPath = "/executions/init/v1/parametrized"
/** An execution that stays in the queue. */
const startBody = {
  engine_reference: "sandbox-bank:website",
  customer_id: "c-1",
  parameters: { username: "queue-3600", password: "password-1" },
}
const addressOf = (base_url: string, started: string): string =>
  `${base_url}/executions/handler/v1/${decodeStarted(started).execution_id}`

/** The address of the execution's state, and what it answers. */
const startExecution = async (base_url: string) => {
  const body = JSON.stringify(startBody)
  const answer = await Undici.request(base_url + startPath, { method: "POST", headers, body })
  const address = addressOf(base_url, await answer.body.text())
  const state = await Undici.request(address, { headers })
  return { address, state: await state.body.text() }
}

/** Reads a second in this process, one after another: no socket, but routes, gate and codecs are the same. */
const readsInProcess = (count: number): number => {
  const { base_url } = SandboxClient
  const measured = Effect.gen(function* () {
    const client = yield* HttpClient.HttpClient
    const start = HttpClientRequest.post(base_url + startPath, { headers })
    const started = yield* client.execute(HttpClientRequest.bodyJsonUnsafe(start, startBody))
    const read = HttpClientRequest.get(addressOf(base_url, yield* started.text), { headers })
    const one = Effect.flatMap(client.execute(read), ({ text }) => text)
    const rate = Effect.gen(function* () {
      const startedAt = performance.now()
      for (let n = 0; n < count; n++) yield* one
      return (count * 1_000) / (performance.now() - startedAt)
    })
    yield* rate
    return median(yield* Effect.all(Array.from({ length: rounds }, () => rate)))
  })
  const service = SandboxClient.layer.pipe(Layer.provide(Sandbox.layer({ seed: 7 })))
  return Effect.runSync(Effect.provide(measured, service))
}

const readsPerSecond = async (address: string, count: number, pool: Undici.Pool): Promise<number> => {
  const { origin, pathname: path } = new URL(address)
  let left = count
  const startedAt = performance.now()
  const reader = async () => {
    while (left-- > 0) {
      const { statusCode, body } = await pool.request({ origin, path, method: "GET", headers })
      await body.arrayBuffer()
      if (statusCode !== 202) throw new Error(`a state read was answered ${statusCode}`)
    }
  }
  await Promise.all(Array.from({ length: atOnce }, reader))
  return (count * 1_000) / (performance.now() - startedAt)
}

const compare = async (addresses: readonly [string, string], count: number) => {
  const lanes = addresses.map((address) => ({
    address,
    pool: new Undici.Pool(new URL(address).origin, { connections: atOnce, pipelining: 1 }),
    rates: new Array<number>(),
  }))
  for (const { address, pool } of lanes) await readsPerSecond(address, count, pool)
  for (let n = 0; n < rounds; n++)
    for (const { address, pool, rates } of lanes) rates.push(await readsPerSecond(address, count, pool))
  await Promise.all(lanes.map(({ pool }) => pool.close()))
  return lanes.map(({ rates }) => median(rates))
}

export const sandbox: Benchmark = {
  name: "sandbox",
  about: "state reads a second that the embedded service answers",
  run: async ({ sample }) => {
    const count = sample ? 200 : 5_000
    const folder = mkdtempSync(join(tmpdir(), "sandbox-"))
    const command = await installedCommand()
    const service = startMeasured([command, "sandbox", "--port", "0", "--seed", "7"], join(folder, "usage"))
    const stops = [service.stop]
    try {
      const { base_url } = decodeAddress(await service.firstLine)
      const { address, state } = await startExecution(base_url)
      const bare = await startLoopback(state)
      stops.push(bare.stop)
      const [value = 0, peer = 0] = await compare([address, `${bare.origin}/`], count)
      const beside = { unit: "reads/s", peer: { name: "bare node:http", value: peer } }
      return {
        figures: [
          { name: "state reads over HTTP", value, ...beside },
          { name: "state reads in process", value: readsInProcess(count), ...beside },
        ],
        complaints: [],
      }
    } finally {
      for (const stop of stops) stop()
      await service.ended
      rmSync(folder, { recursive: true, force: true })
    }
  },
}
