/**
 * Whole nights against the embedded service in one process and in virtual time, for tests that look at what one
 * night leaves for the next: one place, one customer or a few, nothing that goes wrong by itself.
 */
import { Clock, Duration, Effect, Exit, Layer, Redacted } from "effect"
import { HttpClient } from "effect/http"
import { FormCache } from "../../src/client/EngineForms.ts"
import { ServiceHttp } from "../../src/client/ServiceHttp.ts"
import { builtInSources } from "../../src/service/FlowResults.ts"
import type { Assignment, Job, JobFeature } from "../../src/jobs/Job.ts"
import { secretsOf } from "./SecretsMemory.ts"
import { LandingMemory } from "./LandingMemory.ts"
import { Ledger } from "../../src/ledger/Ledger.ts"
import { openLedger } from "../../src/ledger/LedgerSchema.ts"
import type { RecordFamily } from "../../src/records/RecordSchema.ts"
import { KnownSecrets, makeKnownSecrets } from "../../src/privacy/KnownSecrets.ts"
import { TokenStore } from "../../src/tokens/TokenStore.ts"
import { openTokenDatabase } from "../../src/tokens/TokenTables.ts"
import { FormCheckerInProcess } from "./FormCheckerInProcess.ts"
import type { Reading } from "../../src/sandbox/state/Reading.ts"
import { Sandbox } from "../../src/sandbox/server/Sandbox.ts"
import { SandboxClient } from "../../src/sandbox/server/SandboxServer.ts"
import { SimulatedPublisher } from "../simulation/SimulatedPublisher.ts"
import { World } from "../simulation/World.ts"
import type { Failure } from "./Steps.ts"
import { anId } from "./Id.ts"

const day = 24 * 60 * 60_000
const start = Date.UTC(2026, 10, 21, 22)
export const features = (...codes: ReadonlyArray<string>): ReadonlyArray<JobFeature> =>
  codes.map((code) => ({ code, configurations: undefined }))

export const customer = (id: string, words: string, password = "a-secret-password"): Assignment => {
  const literal = (value: unknown) => ({ _tag: "Literal", value: Redacted.make(value) }) as const
  return {
    customer_id: anId(id),
    engine_reference: anId("sandbox-bank:website"),
    features: features("accounts_read", "cards_read"),
    configurations: {},
    hooks_extra_data: {},
    login: {
      _tag: "Parameters",
      parameters: { username: literal(`${words}+customer-${id}`), password: literal(password) },
      tokenized_access: true,
    },
    source: `test:${id}`,
  }
}

export const jobOf = (assignments: ReadonlyArray<Assignment>): Job => ({
  name: "tokens",
  path: "tokens.yaml",
  service: { _tag: "Embedded", seed: 5, speed: 1, faults: undefined },
  execution: {
    execution_timeout: Duration.seconds(1_200),
    unlock_protected_data: false,
    max_wait: Duration.millis(12_000_000),
  },
  concurrency: { max_in_flight: 10, per_engine: 10 },
  polling: { min: Duration.millis(2_000), max: Duration.millis(60_000) },
  retry: { max_attempts: 3, base: Duration.millis(30_000), max: Duration.millis(900_000) },
  flow_results: {
    enabled: true,
    min_interval: Duration.millis(5_000),
    wait_final: Duration.millis(600_000),
    attachments: true,
  },
  deadline: undefined,
  on_deadline: "carry",
  night: undefined,
  timezone: "UTC",
  after_export: "delete",
  share: "none",
  parquet: [],
  documents: "by_hash",
  exit_on: "any",
  notify: [],
  assignments,
  sources: builtInSources,
  hooks: [],
  tokens_key: undefined,
  sessions: [],
})

interface NightsOptions {
  readonly startMs?: number | undefined
  /** Of the embedded service. */
  readonly seed?: number
  readonly families?: ReadonlyArray<RecordFamily>
  /** What every call passes through on its way to the service. */
  readonly through?: (client: HttpClient.HttpClient) => HttpClient.HttpClient
}

/** One place in which nights follow each other, a day apart. */
export const makeNights = (
  reading: Reading = {},
  { startMs = start, seed = 5, families = [], through = (client) => client }: NightsOptions = {},
) => {
  const world = World.make({ startMs, seed: 1 })
  const addresses = { base_url: SandboxClient.base_url, flows_url: SandboxClient.flows_url }
  const ledger = Ledger.layerOver(openLedger({ path: ":memory:" }))
  const disk = LandingMemory.makeStore()
  const landing = LandingMemory.layer(disk)
  const history = SimulatedPublisher.makeHistory()
  const publisher = SimulatedPublisher.layer(history, families, () => world.now())
  const database = openTokenDatabase(":memory:")
  const key = Redacted.make("5c".repeat(32))
  const layers = Layer.mergeAll(
    FormCache.layer.pipe(Layer.provide(FormCheckerInProcess.layer)),
    publisher,
    secretsOf(),
  ).pipe(
    Layer.provideMerge(
      ServiceHttp.layer({
        ...addresses,
        attachments_url: addresses.flows_url,
        app_secret: Redacted.make("sandbox-app-1"),
      }),
    ),
    Layer.provideMerge(Layer.mergeAll(ledger, landing)),
    Layer.provideMerge(TokenStore.layerOver(database, { key, service: "sandbox" })),
    Layer.provide(
      Layer.effect(HttpClient.HttpClient, Effect.map(HttpClient.HttpClient, through)).pipe(
        Layer.provide(SandboxClient.layer),
      ),
    ),
    Layer.provideMerge(Sandbox.layer({ seed, reading })),
  )
  return { world, layers, history, ledger, landing, disk }
}

export const options = { further: false, parent: undefined, only: undefined, toolVersion: "test" }

type Nights = ReturnType<typeof makeNights>
type Services = Layer.Success<Nights["layers"]>

/** What becomes of this work, or of these steps, in that place. */
export const live = <A>(
  { world, layers }: Pick<Nights, "world" | "layers">,
  work:
    | Effect.Effect<A, Failure, Services>
    | (() => Generator<Effect.Effect<unknown, Failure, Services>, A, never>),
): A => {
  const whole = Effect.isEffect(work) ? work : Effect.gen(work)
  const life = Effect.provide(whole, layers).pipe(Effect.provideService(KnownSecrets, makeKnownSecrets()))
  const process = world.spawn("nights", life)
  world.runUntil(() => process.exit() !== undefined)
  const exit = process.exit()
  if (exit === undefined || Exit.isFailure(exit)) throw new Error(`the nights failed: ${String(exit?.cause)}`)
  return exit.value
}

export const wait = (days: number) => Effect.sleep(days * day)

/** Only the clock of the work is fast. */
export const aheadByDays = (days: number) => {
  const ms = days * day
  return Effect.updateService(Clock.Clock, (clock) => ({
    ...clock,
    currentTimeMillisUnsafe: () => clock.currentTimeMillisUnsafe() + ms,
    currentTimeMillis: Effect.map(clock.currentTimeMillis, (now) => now + ms),
    sleep: (duration) => clock.sleep(duration),
  }))
}
