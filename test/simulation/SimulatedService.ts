/**
 * The service's own process in a simulated night: the embedded service, and with webhooks its dispatcher, whose
 * deliveries travel over a network of their own.
 */
import { Effect, Layer } from "effect"
import { HttpClient } from "effect/http"
import { HookDispatcher } from "../../src/sandbox/server/HookDispatcher.ts"
import { Sandbox } from "../../src/sandbox/server/Sandbox.ts"
import { SandboxClient } from "../../src/sandbox/server/SandboxServer.ts"
import type { Reading } from "../../src/sandbox/state/Reading.ts"
import type { Truth } from "../../src/sandbox/admin/Truth.ts"
import type { Perform } from "./FaultyNetwork.ts"
import { receiverUrl } from "./SimulatedHooks.ts"
import type { World } from "./World.ts"

export interface SimulatedService {
  /** Runs requests in the service's process; whoever calls it travels by itself. */
  readonly client: HttpClient.HttpClient
  readonly perform: Perform
  readonly truth: () => Truth
}

export const startService = (
  world: World,
  seed: number,
  deliveries: HttpClient.HttpClient | undefined,
  reading: Reading,
): SimulatedService => {
  let client: HttpClient.HttpClient | undefined
  let sandbox: Sandbox["Service"] | undefined
  const dispatcher =
    deliveries === undefined
      ? Layer.empty
      : HookDispatcher.layer().pipe(Layer.provide(Layer.succeed(HttpClient.HttpClient, deliveries)))
  const webhooks =
    deliveries === undefined ? [] : [{ url: receiverUrl, order: "shuffled" as const, duplicates: true }]
  const layers = Layer.merge(SandboxClient.layer, dispatcher).pipe(
    Layer.provideMerge(Sandbox.layer({ seed, webhooks, reading })),
  )
  const handle = world.spawn(
    "service",
    Effect.gen(function* () {
      client = yield* HttpClient.HttpClient
      sandbox = yield* Sandbox
      return yield* Effect.never
    }).pipe(Effect.provide(layers)),
  )
  world.runUntil(() => sandbox !== undefined)
  const { client: http, sandbox: known } = { client, sandbox }
  if (http === undefined || known === undefined) throw new Error("the service did not start")
  return { client: http, perform: handle.perform, truth: () => Effect.runSync(known.truth) }
}
