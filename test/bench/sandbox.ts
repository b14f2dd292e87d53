/**
 * What one request costs the embedded service: the state of an open execution, read over loopback from `nightjar
 * sandbox` in a process of its own. The peer is a node:http server that answers the same reads with a fixed text.
 */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import Undici from "@effect/platform-node/Undici"
import { Schema } from "effect"
import { secretHeader } from "../../src/contract/Api.ts"
import { installCommand } from "../faults/NightjarCommand.ts"
import { median } from "./Figure.ts"
import type { Benchmark } from "./Figure.ts"
import { startLoopback } from "./loopback.ts"
import { startMeasured } from "./MeasuredProcess.ts"

const rounds = 5
const atOnce = 32
const headers = { [secretHeader]: "sandbox-app-1", "content-type": "application/json" }

const decodeAddress = Schema.decodeUnknownSync(
  Schema.fromJsonString(Schema.Struct({ base_url: Schema.String })),
)
const decodeStarted = Schema.decodeUnknownSync(
  Schema.fromJsonString(Schema.Struct({ execution_id: Schema.String })),
)

/** An execution that stays in the queue, and the address of its state. */
const startExecution = async (base_url: string): Promise<string> => {
  const answer = await Undici.request(`${base_url}/executions/init/v1/parametrized`, {
    method: "POST",
    headers,
    body: JSON.stringify({
      engine_reference: "sandbox-bank:website",
      customer_id: "c-1",
      parameters: { username: "queue-3600", password: "password-1" },
    }),
  })
  return `${base_url}/executions/handler/v1/${decodeStarted(await answer.body.text()).execution_id}`
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
  about: "state reads a second that `nightjar sandbox` answers",
  run: async ({ sample }) => {
    const folder = mkdtempSync(join(tmpdir(), "sandbox-"))
    const command = await installCommand(join(folder, "command"))
    const service = startMeasured([command, "sandbox", "--port", "0", "--seed", "7"], join(folder, "usage"))
    const bare = await startLoopback()
    try {
      const { base_url } = decodeAddress(await service.firstLine)
      const address = await startExecution(base_url)
      const [value = 0, peer = 0] = await compare([address, `${bare.origin}/`], sample ? 500 : 5_000)
      const figure = { name: "state reads answered", value, unit: "reads/s" }
      return { figures: [{ ...figure, peer: { name: "bare node:http", value: peer } }], complaints: [] }
    } finally {
      bare.stop()
      service.stop()
      await service.ended
      rmSync(folder, { recursive: true, force: true })
    }
  },
}
