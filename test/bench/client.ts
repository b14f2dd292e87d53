/**
 * What one state read costs this process: CPU per read of a 4 KB state over loopback, through the client as a night
 * uses it (contract, pacing, connections) and through bare undici, in turns.
 */
import Undici from "@effect/platform-node/Undici"
import { Effect, Layer, Redacted } from "effect"
import { NodeClient } from "../../src/client/NodeClient.ts"
import { Service } from "../../src/client/Service.ts"
import { ServiceHttp } from "../../src/client/ServiceHttp.ts"
import { ServicePaced, ServicePause } from "../../src/client/ServicePaced.ts"
import { median, type Benchmark } from "./Figure.ts"
import { startLoopback } from "./loopback.ts"
import { anId } from "../harness/Id.ts"

const rounds = 5
const atOnce = 64
const execution_id = anId("65f0c0ffee65f0c0ffee65f0")

/** Microseconds of CPU per read. */
const costOf = async (reads: number, round: (count: number) => Promise<void>): Promise<number> => {
  const before = process.cpuUsage()
  await round(reads)
  const { user, system } = process.cpuUsage(before)
  return (user + system) / reads
}

const bareRound = (origin: string, pool: Undici.Pool) => async (count: number) => {
  const path = `/api/executions/handler/v1/${execution_id}`
  let left = count
  const reader = async () => {
    while (left-- > 0) await (await pool.request({ origin, path, method: "GET" })).body.arrayBuffer()
  }
  await Promise.all(Array.from({ length: atOnce }, reader))
}

const clientLayer = (origin: string) => {
  const addresses = {
    base_url: `${origin}/api`,
    flows_url: `${origin}/flows`,
    attachments_url: `${origin}/flows`,
  }
  return ServicePaced.layer(addresses).pipe(
    Layer.provide(ServiceHttp.layer({ ...addresses, app_secret: Redacted.make("sandbox-app-1") })),
    Layer.provide(ServicePause.layer()),
    Layer.provide(NodeClient.layer()),
  )
}

const compare = Effect.fnUntraced(function* (origin: string, reads: number) {
  const service = yield* Service
  const run = Effect.runPromiseWith(yield* Effect.context<never>())
  const read = service.readExecution(execution_id)
  const clientRound = (count: number) =>
    run(
      Effect.forEach(Array.from({ length: count }), () => read, { concurrency: atOnce, discard: true }).pipe(
        Effect.orDie,
      ),
    )
  const pool = new Undici.Pool(origin, { connections: 96, pipelining: 1 })
  yield* Effect.addFinalizer(() => Effect.promise(() => pool.close()))
  const bare = bareRound(origin, pool)
  return yield* Effect.promise(async () => {
    await clientRound(reads)
    await bare(reads)
    const costs = { client: new Array<number>(), bare: new Array<number>() }
    for (let n = 0; n < rounds; n++) {
      costs.client.push(await costOf(reads, clientRound))
      costs.bare.push(await costOf(reads, bare))
    }
    return { client: median(costs.client), bare: median(costs.bare) }
  })
})

export const client: Benchmark = {
  name: "client",
  about: "CPU per read of an execution's state, through the whole client",
  run: async ({ sample }) => {
    const { origin, stop } = await startLoopback()
    try {
      const comparing = compare(origin, sample ? 400 : 10_000)
      const costs = await Effect.runPromise(
        Effect.scoped(comparing).pipe(Effect.provide(clientLayer(origin))),
      )
      const peer = { name: "bare undici", value: costs.bare }
      return {
        figures: [{ name: "CPU per state read", value: costs.client, unit: "µs", peer }],
        complaints: [],
      }
    } finally {
      stop()
    }
  },
}
