/**
 * One simulated night: pipeline and service in one process in virtual time, a faulty network between them, the
 * pipeline killed and started again at moments of the seed's choice, and an observer that knows the service's truth.
 */
import { Effect, Exit } from "effect"
import { Hints, makeHintBoard, type HintSource } from "../../src/client/Hints.ts"
import { runNight } from "../../src/run/Nightly.ts"
import { LandingMemory, type LandingStore } from "../harness/LandingMemory.ts"
import { KnownSecrets, makeKnownSecrets } from "../../src/privacy/KnownSecrets.ts"
import type { openLedger } from "../../src/ledger/LedgerSchema.ts"
import type { Recorded } from "../../src/ledger/Fact.ts"
import type { RecordFamily } from "../../src/records/RecordSchema.ts"
import type { Truth } from "../../src/sandbox/admin/Truth.ts"
import { calm, faultyClient } from "./FaultyNetwork.ts"
import { commonOf, layersOf, seededLedger, type Common, type PlantedServices } from "./NightLayers.ts"
import { processesMax, seeded, type NightPlan } from "./NightPlan.ts"
import { Neighbour } from "./Neighbour.ts"
import { deliveryNetwork, forger, type Listening } from "./SimulatedHooks.ts"
import { SimulatedPublisher, type PublishedHistory } from "./SimulatedPublisher.ts"
import { startService } from "./SimulatedService.ts"
import { counted, runTogether, type PlantTogether } from "./SimulatedTurns.ts"
import { heardService, nothingHeard, openTokens, revokeOne, type Heard } from "./SimulatedTokens.ts"
import { World } from "./World.ts"

const hour = 3_600_000

/** A defect put in on purpose, to show that the observer sees it. */
export interface Plant extends PlantedServices {
  readonly together?: PlantTogether
}

export interface NightOutcome {
  readonly plan: NightPlan
  readonly truth: Truth
  readonly facts: ReadonlyArray<Recorded>
  readonly landing: LandingStore
  readonly published: PublishedHistory
  /** What another application saw or suffered of ours. */
  readonly neighbourComplaints: ReadonlyArray<string>
  /** Requests of ours that came before the end of a Retry-After about the same. */
  readonly tooSoon: ReadonlyArray<string>
  readonly heard: Heard
  readonly exitCodes: ReadonlyArray<number>
  /** For each process, the newest fact of those before it. */
  readonly bornAt: ReadonlyArray<number>
  /** Jobs whose turn came too late, in whichever process. */
  readonly late: ReadonlySet<string>
  /** The most requests that were under way at the same time; only known of several jobs. */
  readonly requestsAtOnce: number
  /** The same jobs one after the other, if their tables are to be the same. */
  readonly inARow: NightOutcome | undefined
  readonly processes: number
  readonly requests: number
  readonly virtualHours: number
  readonly eventsHash: string
}

const day = Date.UTC(2026, 10, 20, 22, 0, 0)

export const runSimulatedNight = (
  plan: NightPlan,
  families: ReadonlyArray<RecordFamily>,
  plant: Plant = {},
): NightOutcome => {
  const world = World.make({ startMs: day, seed: plan.seed })
  const random = seeded(plan.seed ^ 0x5bd1e995)
  const listening: Listening = { board: undefined }
  const deliveries =
    plan.webhooks === undefined
      ? undefined
      : deliveryNetwork(listening, seeded(plan.seed ^ 0x3f84d5b5), plan.webhooks.lossRate)
  const heard = nothingHeard()
  const server = heardService(startService(world, plan.seed, deliveries, plan.reading), heard)
  const tokens = plan.tokens ? openTokens() : undefined
  let rates = plan.rates
  let requests = 0
  let processes = 0
  const tooSoon: Array<string> = []
  const busy = { now: 0, most: 0 }
  const late = new Set<string>()
  const http = faultyClient({
    world,
    process: () => processes,
    tooSoon,
    service: server.client,
    perform: server.perform,
    random,
    rates: () => {
      requests += 1
      return rates
    },
  })
  const database = seededLedger(plan.seed)
  const landing = LandingMemory.makeStore()
  const published = SimulatedPublisher.makeHistory()
  const stores = { database, tokens, landing, published }
  const [job] = plan.jobs
  const isAlone = plan.jobs.length === 1 && job !== undefined
  const client = isAlone ? http : counted(http, busy)
  const common = commonOf(stores, plan, plant)
  const layers = (of: Common) => layersOf(client, of, stores, families, () => world.now(), plant)
  const options = { parent: undefined, only: undefined, toolVersion: "simulated" }
  const run = (further: boolean) => {
    const given = { ...options, further }
    // A process that was killed knows nothing any more.
    const night = (
      isAlone
        ? Effect.provide(runNight(job, given), layers(common))
        : runTogether(plan, given, { common, layers, late }, plant.together)
    ).pipe(Effect.provideService(KnownSecrets, makeKnownSecrets()))
    return plan.webhooks === undefined ? night : listeningTo(listening, night)
  }
  const neighbour = new Neighbour({
    service: server,
    random: seeded(plan.seed ^ 0x2c1b3c6d),
    subjects: plan.jobs.flatMap(({ assignments }) => assignments),
    deeds: plan.neighbourDeeds,
  })
  world.spawn("neighbour", neighbour.live)
  const forgeries = plan.webhooks?.forgeries ?? 0
  world.spawn("forger", forger(world, listening, server.truth, seeded(plan.seed ^ 0x1b873593), forgeries))
  const exitCodes: Array<number> = []
  const bornAt: Array<number> = []
  for (const { atMs, further } of plan.nights) {
    if (day + atMs > world.now()) wait(world, day + atMs - world.now())
    if (plan.tokens && random() < 0.5) world.run(revokeOne(server, random))
    rates = plan.rates
    // Only the first process of `--new` is asked for a further run; the ones after a crash resume it.
    let command = run(further)
    for (let exits = 0; exits < plan.exitsMax && processes < processesMax;) {
      bornAt.push(newestFact(database))
      busy.now = 0
      const age = () => (plan.crashesCount === "requests" ? requests : world.stepsTaken)
      const exit = livePipeline(world, plan, processes, age, command)
      processes += 1
      command = run(false)
      listening.board = undefined
      if (exit === undefined || Exit.isFailure(exit)) {
        landing.crash()
        if (exit !== undefined) expectExpected(exit)
        wait(world, Math.floor(random() ** 3 * hour))
        // Rates that together leave no call an answer: then no process could ever begin.
        if (processes >= processesMax / 2) rates = calm
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
    neighbourComplaints: neighbour.complaints,
    tooSoon,
    heard,
    exitCodes,
    bornAt,
    late,
    requestsAtOnce: busy.most,
    inARow:
      plan.isEven && !plan.isInARow ? runSimulatedNight({ ...plan, isInARow: true }, families) : undefined,
    processes,
    requests,
    virtualHours: (world.now() - day) / hour,
    eventsHash: world.eventsHash,
  }
}

/** A process that listens for webhooks from its first step. */
const listeningTo = <A, E, R>(listening: Listening, night: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.suspend(() => {
    const board = makeHintBoard()
    listening.board = board
    return Effect.provideService(night, Hints, board.source satisfies HintSource)
  })

/** One process of the pipeline, to its end or to the moment at which the plan kills it. */
const livePipeline = <A, E>(
  world: World,
  plan: NightPlan,
  processes: number,
  age: () => number,
  pipeline: Effect.Effect<A, E>,
): Exit.Exit<A, E> | undefined => {
  const crashAt = plan.crashes[processes]
  const bornAt = age()
  const handle = world.spawn(`pipeline ${processes}`, pipeline, {
    offsetMs: plan.clockOffsets[processes] ?? 0,
  })
  world.runUntil(() => handle.exit() !== undefined || (crashAt !== undefined && age() - bornAt >= crashAt))
  const exit = handle.exit()
  handle.kill()
  return exit
}

/** A pipeline may end because the service could not be reached; a defect of the program may not be. */
export const expectExpected = (exit: Exit.Failure<unknown, unknown>) => {
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

export const wait = (world: World, ms: number) => {
  let due = false
  world.at(world.now() + ms, () => (due = true))
  world.runUntil(() => due)
}

const newestFact = (database: ReturnType<typeof openLedger>): number =>
  Number(database.prepare("SELECT coalesce(max(seq), 0) AS newest FROM facts").get()?.["newest"])

export const readFacts = (database: ReturnType<typeof openLedger>): ReadonlyArray<Recorded> =>
  database
    .prepare("SELECT seq, at, body FROM facts ORDER BY seq")
    .all()
    .map((row) => ({ seq: Number(row["seq"]), at: Number(row["at"]), fact: JSON.parse(String(row["body"])) }))
