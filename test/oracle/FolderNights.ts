/**
 * Seeds whose nights leave a real output folder: ledger, landing and the DuckDB publisher on disk, the pipeline still in
 * virtual time. What needs Promises (the publisher, a command) is done outside the world while its time stands still, so
 * that the order of events is the seed's alone.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Clock, ConfigProvider, Context, Effect, Exit, Layer, ManagedRuntime } from "effect"
import { HttpClient, HttpServerResponse } from "effect/http"
import { ServicePause } from "../../src/client/ServicePaced.ts"
import { reportNight, tidyAfterNight, writeSummary } from "../../src/cli/Nights.ts"
import { announced } from "../../src/cli/Notices.ts"
import { Output, sayPainted } from "../../src/cli/Output.ts"
import { readingsOf } from "../../src/cli/ReadingsOfJob.ts"
import { prepareOutput } from "../../src/cli/OutputFolder.ts"
import { DuckDb } from "../../src/base/DuckDb.ts"
import { FileCalls, machineCalls } from "../../src/base/DurableFile.ts"
import { sha256 } from "../../src/base/Hashes.ts"
import type { Job } from "../../src/jobs/Job.ts"
import { loadJob } from "../../src/jobs/LoadJob.ts"
import { secretsOf } from "../harness/SecretsMemory.ts"
import { Landing } from "../../src/landing/Landing.ts"
import { LandingFiles } from "../../src/landing/LandingFiles.ts"
import { Ledger } from "../../src/ledger/Ledger.ts"
import { writeKey } from "../../src/ledger/LedgerKeys.ts"
import { openLedger } from "../../src/ledger/LedgerSchema.ts"
import { subjectOf, verdictOfTask } from "../../src/ledger/RunState.ts"
import { acceptRun, type NightResult } from "../../src/run/Nightly.ts"
import { Publisher } from "../../src/tables/Publisher.ts"
import { publisherOfJob } from "../../src/tables/PublisherDuckDb.ts"
import { renderSummary } from "../../src/report/RenderSummary.ts"
import { Sandbox } from "../../src/sandbox/server/Sandbox.ts"
import { SandboxClient } from "../../src/sandbox/server/SandboxServer.ts"
import { KnownSecrets, makeKnownSecrets } from "../../src/privacy/KnownSecrets.ts"
import { commandWork, worksHere, type Ended } from "../harness/CommandsHere.ts"
import { firstNightMs } from "../simulation/AccountNights.ts"
import { calm, faultyClient } from "../simulation/FaultyNetwork.ts"
import { runsOf } from "../simulation/InvariantsBeside.ts"
import { layersOf, plantedLedger, type Common, type PlantedServices } from "../simulation/NightLayers.ts"
import { seeded } from "../simulation/NightPlan.ts"
import { expectExpected, readFacts, wait } from "../simulation/SimulatedNight.ts"
import { SimulatedPublisher } from "../simulation/SimulatedPublisher.ts"
import { startService } from "../simulation/SimulatedService.ts"
import { runTogether } from "../simulation/SimulatedTurns.ts"
import { World } from "../simulation/World.ts"
import { packageFolder } from "./Texts.ts"

/** What jobs refer to. */
const variables = {
  ALERT_URL: "https://alert.example/told",
  PING_URL: "https://watch.example/ping",
  PSEUDONYMS: "0f1e2d3c4b5a69788796a5b4c3d2e1f00123456789abcdeffedcba9876543210",
}
const secrets = secretsOf(new Map(Object.entries(variables).map(([name, value]) => [`env:${name}`, value])))

/** Nothing here outlives the process, so nothing is synced. */
const calls: FileCalls = { ...machineCalls, sync: () => {}, syncData: (_, done) => done(null) }

/** What goes on outside the world, at one moment of its time. */
class Outside {
  private readonly world: World
  private waiting: Promise<void> | undefined
  constructor(world: World) {
    this.world = world
  }

  /** Work at the world's time, which stands still; what sleeps does so on the machine. */
  async at<A, E>(work: Effect.Effect<A, E>): Promise<Exit.Exit<A, E>> {
    const machine = await Effect.runPromise(Clock.Clock)
    const millis = () => this.world.now()
    const nanos = () => BigInt(millis()) * 1_000_000n
    const clock: Clock.Clock = {
      currentTimeMillisUnsafe: millis,
      currentTimeMillis: Effect.sync(millis),
      currentTimeNanosUnsafe: nanos,
      currentTimeNanos: Effect.sync(nanos),
      monotonicTimeNanosUnsafe: nanos,
      monotonicTimeNanos: Effect.sync(nanos),
      sleep: (duration) => machine.sleep(duration),
    }
    const environment = ConfigProvider.fromEnvRecord(variables)
    return Effect.runPromiseExit(
      work.pipe(
        Effect.provideService(Clock.Clock, clock),
        Effect.provideService(ConfigProvider.ConfigProvider, environment),
        Effect.provideService(KnownSecrets, makeKnownSecrets()),
        Effect.provideService(FileCalls, calls),
      ),
    )
  }

  /** The same for a fiber of the world: one step of it. */
  readonly step = <A, E>(work: Effect.Effect<A, E>): Effect.Effect<A, E> =>
    Effect.callback<A, E>((resume) => {
      const before = this.waiting ?? Promise.resolve()
      this.waiting = before.then(async () => resume(await this.at(work)))
    })

  async runUntil(done: () => boolean): Promise<void> {
    for (;;) {
      this.world.runUntil(() => this.waiting !== undefined || done())
      if (this.waiting === undefined) return
      const { waiting } = this
      await waiting
      if (this.waiting === waiting) this.waiting = undefined
    }
  }
}

/** The real publisher of a job, as a fiber of the world calls it. */
const publisherOutside = (outside: Outside, job: Job, root: string) =>
  Layer.effect(
    Publisher,
    Effect.gen(function* () {
      const known = Context.make(Ledger, yield* Ledger).pipe(Context.add(Landing, yield* Landing))
      const folders = { root, schemasFolder: join(packageFolder, "schemas/records"), toolVersion: "oracle" }
      const runtime = ManagedRuntime.make(
        publisherOfJob(job, { ...folders, readings: readingsOf(job) }).pipe(
          Layer.provide(Layer.mergeAll(Layer.succeedContext(known), DuckDb.layer, secrets)),
          Layer.provide(NodeServices.layer),
          Layer.provide(Layer.succeed(FileCalls, calls)),
        ),
      )
      const { publish, publishInterim, publishOutcome } = yield* outside.step(
        Effect.orDie(
          Effect.flatMap(runtime.contextEffect, (built) => Effect.succeed(Context.get(built, Publisher))),
        ),
      )
      return Publisher.of({
        publish: (run_id) => outside.step(publish(run_id)),
        publishInterim: (run_id, over) => outside.step(publishInterim(run_id, over)),
        publishOutcome: (run_id) => outside.step(publishOutcome(run_id)),
      })
    }),
  )

/** When something happens, and what the jobs' settings are from then on. */
interface Moment {
  /** Since the first night; without it, at once. */
  readonly day?: number
  readonly hour?: number
  readonly settings?: string
}
export interface RunStep extends Moment {
  readonly what: "run" | "new" | "rerun" | "accept"
  /** The process is killed after so many requests, and started again. */
  readonly crashes?: ReadonlyArray<number>
}
export type Step = RunStep | (Moment & { readonly what: "command"; readonly args: string })

const hour = 3_600_000
const livesMax = 6

/** One output folder, the service beside it, and the time of both. */
export class FolderNights {
  readonly work = mkdtempSync(join(tmpdir(), "nightjar-oracle-"))
  readonly output = join(this.work, "output")
  /** What receivers were told, in order. */
  readonly notices: Array<string> = []
  private readonly seed: number
  private readonly plant: PlantedServices
  private readonly world: World
  private readonly outside: Outside
  private readonly server: ReturnType<typeof startService>
  private readonly random: () => number
  private requests = 0
  private processes = 0

  constructor(seed: number, plant: PlantedServices = {}) {
    this.seed = seed
    this.plant = plant
    this.world = World.make({ startMs: firstNightMs, seed })
    this.outside = new Outside(this.world)
    this.random = seeded(seed ^ 0x5bd1e995)
    this.server = startService(this.world, seed, undefined, {})
    mkdirSync(join(this.work, "jobs"))
  }

  remove(): void {
    rmSync(this.work, { recursive: true, force: true })
  }

  async begin(): Promise<void> {
    await this.outside.at(
      Effect.orDie(Effect.provide(prepareOutput(this.output, ["none"]), NodeServices.layer)),
    )
    const database = openLedger({ path: join(this.output, "ledger.sqlite") })
    writeKey(database, "fingerprint", sha256(`key ${this.seed}`))
    database.close()
  }

  readonly pathOf = (name: string): string => join(this.work, "jobs", `${name}.yaml`)

  /** The job as a command loads it; but the ledger must not say where this machine has it. */
  async job(name: string, text: string): Promise<Job> {
    writeFileSync(this.pathOf(name), text, { mode: 0o600 })
    const loaded = await this.outside.at(Effect.provide(loadJob(this.pathOf(name)), NodeServices.layer))
    if (Exit.isFailure(loaded)) throw new Error(`${name}: ${String(loaded.cause)}`)
    return { ...loaded.value.job, path: `/jobs/${name}.yaml` }
  }

  facts(): ReturnType<typeof readFacts> {
    const database = openLedger({ path: join(this.output, "ledger.sqlite"), readOnly: true })
    try {
      return readFacts(database)
    } finally {
      database.close()
    }
  }

  /** A command, in the folder as it stands. */
  async command(args: ReadonlyArray<string>): Promise<Ended> {
    return this.done(commandWork([...args, "--output", this.output], this.wiring()))
  }

  private async done(work: Effect.Effect<Ended>): Promise<Ended> {
    const exit = await this.outside.at(work)
    if (Exit.isFailure(exit)) throw new Error(String(exit.cause))
    return exit.value
  }

  /** The service as it is at the beginning, for commands that ask what it offers. */
  private wiring() {
    const asked = () =>
      Layer.unwrap(
        Effect.map(HttpClient.HttpClient, (http) =>
          this.layers(
            http,
            this.common(Layer.orDie(Ledger.layer({ path: join(this.output, "ledger.sqlite") }))),
          ),
        ),
      ).pipe(Layer.provide(SandboxClient.layer), Layer.provide(Sandbox.layer({ seed: this.seed })))
    const tell = HttpClient.make((request) =>
      Effect.sync(() => {
        const { body, method, url } = request
        const text = body._tag === "Uint8Array" ? new TextDecoder().decode(body.body) : ""
        this.notices.push(`${method} ${url}\n${text}`)
        return HttpServerResponse.toClientResponse(HttpServerResponse.empty({ status: 204 }), { request })
      }),
    )
    const receivers = Layer.merge(Layer.succeed(HttpClient.HttpClient, tell), secrets)
    return { plan: asked, catalogue: asked, receivers, secrets, packageFolder } as Record<string, unknown>
  }

  private common(ledger: Layer.Layer<Ledger>): Common {
    const landing = Layer.orDie(LandingFiles.layer({ root: this.output }))
    return { pause: ServicePause.layer({ requestsAtOnce: 64 }), ledger, landing }
  }

  private layers(http: HttpClient.HttpClient, common: Common, job?: Job) {
    const stores = { tokens: undefined, published: SimulatedPublisher.makeHistory() }
    const publisher = job && { publisher: publisherOutside(this.outside, job, this.output) }
    return layersOf(http, common, stores, [], () => this.world.now(), { ...this.plant, ...publisher })
  }

  waitFor({ day = 0, hour: hours = 0 }: Moment): void {
    const dueMs = firstNightMs + (24 * day + hours) * hour
    if (dueMs > this.world.now()) wait(this.world, dueMs - this.world.now())
  }

  /** Lives until the night is over; then what a command does at its end. */
  async run({ what, crashes = [] }: RunStep, jobs: ReadonlyArray<Job>): Promise<Ended> {
    const results: Array<readonly [Job, NightResult]> = []
    const codes: Array<number | string> = []
    for (let life = 0; life < livesMax; life += 1) {
      results.length = 0
      const night = this.night(what === "new" && life > 0 ? "run" : what, jobs, (job, result) =>
        results.push([job, result]),
      )
      const exit = await this.live(night, crashes[life])
      codes.push(exit === undefined ? "killed" : Exit.isSuccess(exit) ? exit.value : "nothing started")
      if (exit !== undefined && Exit.isFailure(exit)) expectExpected(exit)
      if (exit !== undefined) break
      wait(this.world, hour / 4)
    }
    const ends: Array<Ended> = []
    for (const [job, result] of results)
      ends.push(await this.done(worksHere(this.ended(job, result), this.wiring())))
    const told = (stream: "stdout" | "stderr") => ends.map((end) => end[stream]).join("")
    return {
      code: Number(codes.at(-1)),
      stdout: `${codes.join(", ")}\n${told("stdout")}`,
      stderr: told("stderr"),
    }
  }

  /** As `oneNight` and `tellNight` do it, and `accept`. */
  private ended(job: Job, result: NightResult) {
    const { output } = this
    return Effect.gen(function* () {
      const summary = yield* writeSummary(job, output, result)
      yield* reportNight(job, output, result)
      yield* sayPainted(renderSummary(summary, (yield* Output).out))
      yield* tidyAfterNight(job, output, result)
      const { exit_code, recovered, news, nothingToDo } = result
      const ending = nothingToDo ? undefined : { job: job.name, exit_code, summary, recovered, news }
      return { exit_code, ending }
    }).pipe(announced(job, output))
  }

  private night(
    what: RunStep["what"],
    jobs: ReadonlyArray<Job>,
    ended: (job: Job, result: NightResult) => void,
  ) {
    const [job] = jobs
    if (job === undefined) throw new Error("a night without a job")
    const database = openLedger({ path: join(this.output, "ledger.sqlite") })
    const http = faultyClient({
      world: this.world,
      process: () => this.processes,
      tooSoon: [],
      service: this.server.client,
      perform: this.server.perform,
      random: this.random,
      rates: () => {
        this.requests += 1
        return calm
      },
    })
    const opened = Ledger.layerOver(database, join(this.output, "archive"))
    const common = this.common(plantedLedger(opened, this.plant))
    const layers = (of: Common) => this.layers(http, of, job)
    const options = { parent: undefined, only: undefined, toolVersion: "oracle", further: what === "new" }
    const place = { common, layers, late: new Set<string>(), ended }
    const work = Effect.suspend(() => {
      if (what === "run" || what === "new") return runTogether({ jobs, isInARow: false }, options, place)
      const newest = runsOf({ facts: readFacts(database) }).findLast(
        ({ started }) => started.job === job.name,
      )
      if (newest === undefined) throw new Error("no run to go on with")
      const { run_id } = newest.started
      if (what === "accept")
        return Effect.tap(Effect.provide(acceptRun(job, run_id), layers(common)), (result) =>
          Effect.sync(() => ended(job, result)),
        )
      const left = [...newest.tasks.values()].filter((task) => verdictOfTask(task).outcome !== "succeeded")
      const only = new Set(left.map(subjectOf))
      return runTogether(
        { jobs: [job], isInARow: false },
        { ...options, further: true, parent: run_id, only },
        place,
      )
    }).pipe(
      Effect.map(({ exit_code }) => exit_code),
      Effect.provideService(KnownSecrets, makeKnownSecrets()),
      Effect.provideService(FileCalls, calls),
    )
    return { work, close: () => database.close() }
  }

  /** One process; undefined if it was killed. */
  private async live<E>(
    { work, close }: { readonly work: Effect.Effect<number, E>; readonly close: () => void },
    crashAt = Infinity,
  ): Promise<Exit.Exit<number, E> | undefined> {
    const bornAt = this.requests
    const handle = this.world.spawn(`pipeline ${this.processes++}`, work)
    await this.outside.runUntil(() => handle.exit() !== undefined || this.requests - bornAt >= crashAt)
    const exit = handle.exit()
    handle.kill()
    close()
    return exit
  }
}
