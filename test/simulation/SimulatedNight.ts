/**
 * One simulated night: pipeline and service in one process in virtual time, a faulty network between them, the
 * pipeline killed and started again at moments of the seed's choice, and an observer that knows the service's truth.
 */
import { Context, Effect, Exit, Layer, Redacted } from "effect"
import { HttpClient } from "effect/http"
import { runNight } from "../../src/Nightly.ts"
import * as SteadyClock from "../../src/SteadyClock.ts"
import { Service } from "../../src/client/Service.ts"
import { ServiceCatalogue } from "../../src/client/ServiceCatalogue.ts"
import { ServiceHttp } from "../../src/client/ServiceHttp.ts"
import { ServicePaced, ServicePause } from "../../src/client/ServicePaced.ts"
import { Secrets } from "../../src/jobs/Secrets.ts"
import type { Job } from "../../src/jobs/Job.ts"
import { LandingMemory } from "../../src/landing/LandingMemory.ts"
import type { LandingStore } from "../../src/landing/LandingMemory.ts"
import { Ledger, openLedger } from "../../src/ledger/Ledger.ts"
import type { Recorded } from "../../src/ledger/Fact.ts"
import { FormCache } from "../../src/planning/EngineForms.ts"
import type { RecordFamily } from "../../src/records/RecordSchema.ts"
import { Sandbox } from "../../src/sandbox/Sandbox.ts"
import { SandboxClient } from "../../src/sandbox/SandboxClient.ts"
import type { Truth } from "../../src/sandbox/Truth.ts"
import { calm, faultyClient } from "./FaultyNetwork.ts"
import type { FaultRates, Perform } from "./FaultyNetwork.ts"
import { makeJob } from "./SimulatedJob.ts"
import { SimulatedPublisher } from "./SimulatedPublisher.ts"
import type { PublishedHistory } from "./SimulatedPublisher.ts"
import { World } from "./World.ts"

const hour = 3_600_000
/** Pipelines that one plan may need: crashes, and further runs for what stayed unfinished. */
const processesMax = 40
/** Whatever a calm rerun cannot finish after so many tries is not finished by further ones. */
const exitsMax = 3

/** A small generator of numbers in [0, 1): the same seed, the same night. */
export const seeded = (seed: number): (() => number) => {
  let state = (seed ^ 0x9e3779b9) >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

export interface NightPlan {
  readonly seed: number
  readonly job: Job
  readonly rates: FaultRates
  /** How many events the pipeline lives before each crash. */
  readonly crashes: ReadonlyArray<number>
  /** When `run` is called, after the beginning, and whether with `--new`. */
  readonly nights: ReadonlyArray<{ readonly atMs: number; readonly further: boolean }>
  /** Wrong wall clocks of the pipeline's processes, in milliseconds. */
  readonly clockOffsets: ReadonlyArray<number>
}

/** A defect put in on purpose, to show that the observer sees it. */
export interface Plant {
  readonly service?: (service: Service["Service"]) => Service["Service"]
  readonly ledger?: (ledger: Ledger["Service"]) => Ledger["Service"]
  /** How many rows become of a body's records. */
  readonly place?: (rows: number) => number
}

export interface NightOutcome {
  readonly plan: NightPlan
  readonly truth: Truth
  readonly facts: ReadonlyArray<Recorded>
  readonly landing: LandingStore
  readonly published: PublishedHistory
  readonly exitCodes: ReadonlyArray<number>
  readonly processes: number
  readonly requests: number
  readonly virtualHours: number
  readonly eventsHash: string
}

export const planNight = (seed: number): NightPlan => {
  const random = seeded(seed)
  const storm = random()
  const rate = (most: number) => (storm < 0.25 ? 0 : random() ** 2 * most * (storm < 0.9 ? 1 : 4))
  const rates: FaultRates = {
    refused: rate(0.05),
    lostBefore: rate(0.04),
    lostAfter: rate(0.04),
    throttled: rate(0.05),
    unavailable: rate(0.05),
    errorBefore: rate(0.03),
    errorAfter: rate(0.03),
    cutBody: rate(0.03),
  }
  const crashes = Array.from({ length: Math.floor(random() * 6) }, () => Math.floor(random() ** 2 * 60_000))
  const clockOffsets = Array.from({ length: processesMax }, () =>
    random() < 0.05 ? Math.trunc((random() - 0.5) * 60_000) : 0,
  )
  // Every tenth night is a large one, of some hundred executions; the small ones try more moments in the same time.
  const customers = seed % 10 === 0 ? 60 + Math.floor(random() * 90) : 4 + Math.floor(random() ** 2 * 40)
  const job = makeJob(random, customers)
  const later = random()
  const nights = [
    { atMs: 0, further: false },
    ...(later < 0.15
      ? [{ atMs: 24 * hour, further: false }]
      : later < 0.3
        ? [{ atMs: hour, further: true }]
        : []),
  ]
  return { seed, job, rates, crashes, nights, clockOffsets }
}

const day = Date.UTC(2026, 10, 20, 22, 0, 0)

export const runSimulatedNight = (
  plan: NightPlan,
  families: ReadonlyArray<RecordFamily>,
  plant: Plant = {},
): NightOutcome => {
  const world = World.make({ startMs: day, seed: plan.seed })
  const random = seeded(plan.seed ^ 0x5bd1e995)
  const server = startService(world, plan.seed)
  let rates = plan.rates
  let requests = 0
  const http = faultyClient({
    world,
    service: server.client,
    perform: server.perform,
    random,
    rates: () => {
      requests += 1
      return rates
    },
  })
  const database = openLedger({ path: ":memory:" })
  const landing = LandingMemory.makeStore()
  const published = SimulatedPublisher.makeHistory()
  const layers = layersOf(http, database, landing, published, families, () => world.now(), plant)
  const options = { parent: undefined, only: undefined, toolVersion: "simulated" }
  const pipeline = Effect.provide(runNight(plan.job, { ...options, further: false }), layers)
  const furtherRun = Effect.provide(runNight(plan.job, { ...options, further: true }), layers)
  const exitCodes: Array<number> = []
  let processes = 0
  for (const { atMs, further } of plan.nights) {
    if (day + atMs > world.now()) wait(world, day + atMs - world.now())
    rates = plan.rates
    // Only the first process of `--new` is asked for a further run; the ones after a crash resume it.
    let command = further ? furtherRun : pipeline
    for (let exits = 0; exits < exitsMax && processes < processesMax;) {
      const exit = livePipeline(world, plan, processes, command)
      processes += 1
      command = pipeline
      if (exit === undefined || Exit.isFailure(exit)) {
        landing.crash()
        if (exit !== undefined) expectExpected(exit)
        wait(world, Math.floor(random() ** 3 * hour))
        continue
      }
      exits += 1
      exitCodes.push(exit.value.exit_code)
      if (exit.value.exit_code !== 4) break
      rates = calm
      wait(world, hour)
    }
  }
  const truth = server.truth()
  const facts = readFacts(database)
  return {
    plan,
    truth,
    facts,
    landing,
    published,
    exitCodes,
    processes,
    requests,
    virtualHours: (world.now() - day) / hour,
    eventsHash: world.eventsHash,
  }
}

/** One process of the pipeline, to its end or to the moment at which the plan kills it. */
const livePipeline = <A, E>(
  world: World,
  plan: NightPlan,
  processes: number,
  pipeline: Effect.Effect<A, E>,
): Exit.Exit<A, E> | undefined => {
  const crashAt = plan.crashes[processes]
  const bornAt = world.stepsTaken
  const handle = world.spawn(`pipeline ${processes}`, pipeline, {
    offsetMs: plan.clockOffsets[processes] ?? 0,
  })
  world.runUntil(
    () => handle.exit() !== undefined || (crashAt !== undefined && world.stepsTaken - bornAt >= crashAt),
  )
  const exit = handle.exit()
  handle.kill()
  return exit
}

/** A pipeline may end because the service could not be reached; a defect of the program may not be. */
const expectExpected = (exit: Exit.Failure<unknown, unknown>) => {
  for (const reason of exit.cause.reasons) {
    if (reason._tag === "Die") throw reason.defect
    if (
      reason._tag === "Fail" &&
      !isTagged(reason.error, "ServiceRefused") &&
      !isTagged(reason.error, "CatalogueFailed")
    )
      throw reason.error
  }
}

const isTagged = (error: unknown, tag: string): boolean =>
  typeof error === "object" && error !== null && "_tag" in error && error._tag === tag

const wait = (world: World, ms: number) => {
  let due = false
  world.at(world.now() + ms, () => (due = true))
  world.runUntil(() => due)
}

const startService = (world: World, seed: number) => {
  let client: HttpClient.HttpClient | undefined
  let sandbox: Sandbox["Service"] | undefined
  const handle = world.spawn(
    "service",
    Effect.gen(function* () {
      client = yield* HttpClient.HttpClient
      sandbox = yield* Sandbox
      return yield* Effect.never
    }).pipe(Effect.provide(SandboxClient.layer.pipe(Layer.provideMerge(Sandbox.layer({ seed }))))),
  )
  world.runUntil(() => sandbox !== undefined)
  const { client: http, sandbox: known } = { client, sandbox }
  if (http === undefined || known === undefined) throw new Error("the service did not start")
  const perform: Perform = handle.perform
  return { client: http, perform, truth: () => Effect.runSync(known.truth) }
}

const layersOf = (
  http: HttpClient.HttpClient,
  database: ReturnType<typeof openLedger>,
  store: LandingStore,
  published: PublishedHistory,
  families: ReadonlyArray<RecordFamily>,
  now: () => number,
  plant: Plant,
) => {
  const addresses = {
    base_url: SandboxClient.base_url,
    flows_url: SandboxClient.flows_url,
    attachments_url: SandboxClient.flows_url,
  }
  const same = <S>(unchanged: S): S => unchanged
  const service = ServicePaced.layer(addresses).pipe(
    Layer.provide(ServiceHttp.layer({ ...addresses, app_secret: Redacted.make("sandbox-app-1") })),
    Layer.provide(ServicePause.layer()),
    Layer.provide(Layer.succeed(HttpClient.HttpClient, http)),
    Layer.flatMap((context) =>
      Layer.succeed(Service, (plant.service ?? same)(Context.get(context, Service))),
    ),
  )
  const ledger = Ledger.layerOver(database).pipe(
    Layer.flatMap((context) => Layer.succeed(Ledger, (plant.ledger ?? same)(Context.get(context, Ledger)))),
  )
  const landing = LandingMemory.layer(store)
  const forms = FormCache.layer.pipe(
    Layer.provide(ServiceCatalogue.layer),
    Layer.provide(service),
    Layer.provide(ledger),
  )
  const publisher = SimulatedPublisher.layer(published, families, now, plant.place).pipe(
    Layer.provide(ledger),
    Layer.provide(landing),
  )
  return Layer.mergeAll(service, ledger, landing, forms, publisher, Secrets.layerMemory(new Map())).pipe(
    Layer.provideMerge(SteadyClock.layer),
  )
}

const readFacts = (database: ReturnType<typeof openLedger>): ReadonlyArray<Recorded> =>
  database
    .prepare("SELECT seq, at, body FROM facts ORDER BY seq")
    .all()
    .map((row) => ({ seq: Number(row["seq"]), at: Number(row["at"]), fact: JSON.parse(String(row["body"])) }))
