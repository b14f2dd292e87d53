/**
 * Many nights of jobs that share accounts, over one ledger in virtual time: the whole pipeline against a
 * hostile service, killed between a start and its answer where the plan says so, and run again. It ends with
 * what the sources saw, what left by the door, and what the ledger says.
 */
import { Duration, Effect, Exit, Option, Redacted } from "effect"
import { HttpClient, type HttpClientRequest, type HttpClientResponse } from "effect/http"
import { subjectsOfPart } from "../../src/cli/Jobs.ts"
import { builtInSources } from "../../src/service/FlowResults.ts"
import type { Assignment, Job } from "../../src/jobs/Job.ts"
import { LandingMemory } from "../harness/LandingMemory.ts"
import type { Recorded } from "../../src/ledger/Fact.ts"
import { subjectOf, verdictOfTask } from "../../src/ledger/RunState.ts"
import { runNight, type NightOptions } from "../../src/run/Nightly.ts"
import { KnownSecrets, makeKnownSecrets } from "../../src/privacy/KnownSecrets.ts"
import { anId } from "../harness/Id.ts"
import { jobOf } from "../harness/SmallNights.ts"
import { faultyClient, transportError, type FaultRates } from "./FaultyNetwork.ts"
import { encrypt, HostileService, jsonBody, normalised, toldHeader } from "./HostileService.ts"
import type {
  Channel,
  ExecutionAtSource,
  SourceLogin,
  StartBody,
  StartSeen,
  Storm,
} from "./HostileService.ts"
import { runsOf } from "./InvariantsBeside.ts"
import { commonOf, layersOf, seededLedger, type PlantedServices } from "./NightLayers.ts"
import { seeded } from "./NightPlan.ts"
import { expectExpected, readFacts, wait } from "./SimulatedNight.ts"
import { SimulatedPublisher } from "./SimulatedPublisher.ts"
import { openTokens } from "./SimulatedTokens.ts"
import { runTogether } from "./SimulatedTurns.ts"
import { World } from "./World.ts"

export const hour = 3_600_000
const dayMs = 24 * hour
/** The first night begins; the others a day later each. */
export const firstNightMs = Date.UTC(2026, 10, 20, 22, 0, 0)
export const nightMs = (night: number): number => firstNightMs + night * dayMs
const dateOf = (night: number): string => new Date(nightMs(night)).toISOString().slice(0, 10)

/** A customer's login on one engine, as one job has it. */
export interface Use {
  /** Which job, by its place. */
  readonly job: number
  readonly customer: string
  readonly engine: string
  /** As the job spells it. */
  readonly username: string
  /** What the job sends in this night. */
  readonly password: (night: number) => string
  readonly encrypted?: "password" | "all"
  /** Asks for a token and uses it later. */
  readonly tokenized?: true
  /** Logs in by the token that another job asked for, and has no parameters. */
  readonly isByToken?: true
  /** Is in the job from this night on. */
  readonly fromNight?: number
}

/** One call of the program in a night. */
export interface Command {
  readonly night: number
  /** After the night's beginning; undefined: at once after the command before it. */
  readonly afterMs?: number
  readonly jobs: ReadonlyArray<number>
  /** What did not succeed in the newest run, as `rerun` takes it. */
  readonly isRerun?: true
  /** A part of each job, as `run --customer` takes it. */
  readonly customers?: ReadonlyArray<string>
  /** The wall clock of its process is wrong by so much. */
  readonly offsetMs?: number
}

/** What happens at the so manieth start of a night. */
export interface Accident {
  readonly night: number
  readonly nthStart: number
  readonly what: "killed before it leaves" | "killed before the answer" | "answer lost"
  /** How long nobody starts it again; undefined: until the next night. */
  readonly awayMs?: number
}

export interface AccountsPlan {
  readonly seed: number
  readonly nights: number
  readonly channels: ReadonlyArray<Channel>
  readonly uses: ReadonlyArray<Use>
  /** By account; what the source takes in a night. */
  readonly rightPassword: (account: string, night: number) => string
  readonly storms: ReadonlyArray<Storm>
  readonly commands: ReadonlyArray<Command>
  readonly accidents: ReadonlyArray<Accident>
  /** How bad the network is in a night, for every request. */
  readonly rates: (night: number) => FaultRates
  readonly job: Pick<Job, "concurrency" | "after_export" | "night" | "deadline" | "retry"> & {
    readonly maxWaitMs: number
  }
  /** Milliseconds to the login and from there to the end, from a number in [0, 1). */
  readonly lengths?: (random: () => number) => readonly [number, number]
}

export interface TaskEnd {
  readonly night: number
  readonly job: number
  readonly customer: string
  readonly engine: string
  readonly outcome: string
  readonly reason: string
  readonly at: number
}

export interface AccountsOutcome {
  readonly plan: AccountsPlan
  readonly starts: ReadonlyArray<StartSeen>
  readonly logins: ReadonlyArray<SourceLogin>
  readonly executions: ReadonlyArray<ExecutionAtSource>
  /** When the end of an execution was in the ledger, by its id. */
  readonly closed: ReadonlyMap<string, number>
  /** Starts that a process meant to send. Whether they left, nobody can tell if it was killed then. */
  readonly intended: ReadonlyArray<Pick<StartSeen, "at" | "customer" | "engine" | "external">>
  /** What became of each task of each run, in the order of the runs. */
  readonly ends: ReadonlyArray<TaskEnd>
  /** When each process of the pipeline began and ended, in true time. */
  readonly processes: ReadonlyArray<{
    readonly night: number
    readonly jobs: ReadonlyArray<number>
    readonly fromMs: number
    readonly untilMs: number
  }>
  readonly exitCodes: ReadonlyArray<number | "killed" | "nothing started">
  readonly eventsHash: string
}

const literal = (value: unknown) => ({ _tag: "Literal", value: Redacted.make(value) }) as const

const assignmentOf = (plan: AccountsPlan, night: number, use: Use): Assignment => {
  const channel = plan.channels.find(({ reference }) => reference === use.engine)
  if (channel === undefined) throw new Error(`nobody has ${use.engine}`)
  const salt = `${night}/${use.customer}`
  const last = channel.fields.length - 1
  const parameters = Object.fromEntries(
    channel.fields.map((field, index) => {
      const plain =
        index === last ? use.password(night) : index === 0 ? use.username : `of ${normalised(use.username)}`
      const isEncrypted = use.encrypted === "all" || (use.encrypted === "password" && index === last)
      return [field, literal(isEncrypted ? encrypt(plain, salt) : plain)]
    }),
  )
  return {
    customer_id: anId(use.customer),
    engine_reference: anId(use.engine),
    features: [],
    configurations: {},
    hooks_extra_data: {},
    login:
      use.isByToken === true
        ? { _tag: "Token", name: `${use.customer}/${use.engine}` }
        : { _tag: "Parameters", parameters, tokenized_access: use.tokenized ?? false },
    source: `accounts:${use.customer}`,
  }
}

const usual = jobOf([])
const jobFor = (plan: AccountsPlan, night: number, index: number): Job => ({
  ...usual,
  name: `accounts-${index}`,
  path: `accounts-${index}.yaml`,
  service: { _tag: "Embedded", seed: 1, speed: 1, faults: undefined },
  execution: { ...usual.execution, max_wait: Duration.millis(plan.job.maxWaitMs) },
  concurrency: plan.job.concurrency,
  polling: { min: Duration.seconds(15), max: Duration.minutes(5) },
  retry: plan.job.retry,
  flow_results: { ...usual.flow_results, enabled: false, attachments: false },
  night: plan.job.night,
  deadline: plan.job.deadline,
  after_export: plan.job.after_export,
  assignments: plan.uses
    .filter(({ job, fromNight = 0 }) => job === index && fromNight <= night)
    .map((use) => assignmentOf(plan, night, use)),
  sources: builtInSources.map((source) => ({ ...source, enabled: false })),
  tokens_key: plan.uses.some(({ tokenized }) => tokenized) ? { _tag: "Env", name: "KEY" } : undefined,
})

/** What the ledger says, in the judge's words: all that it is asked for. */
const toldBy = (facts: ReadonlyArray<Recorded>): Pick<AccountsOutcome, "closed" | "ends" | "intended"> => ({
  intended: facts.flatMap(({ at, fact }) => {
    if (fact._tag !== "StartIntended") return []
    const {
      customer_id: customer = "",
      engine_reference: engine = "",
      external_execution_id: external,
    } = fact
    return [{ at, customer, engine, external }]
  }),
  closed: new Map(
    facts.flatMap(({ at, fact }) =>
      // An execution that is gone was closed without an end that anybody read.
      fact._tag === "AttemptClosed" && fact.status_reason !== "EXECUTION_GONE"
        ? [[String(fact.execution_id), at] as const]
        : [],
    ),
  ),
  ends: runsOf({ facts }).flatMap(({ started, tasks }) =>
    [...tasks.values()].map((task): TaskEnd => {
      const { customer_id = "", engine_reference = "" } = task.planned
      const { outcome, reason } = verdictOfTask(task)
      return {
        night: Math.round((Date.parse(started.run_date) - Date.parse(dateOf(0))) / dayMs),
        job: Number(started.job.slice("accounts-".length)),
        customer: customer_id,
        engine: engine_reference,
        outcome,
        reason,
        at: task.settled?.at ?? Infinity,
      }
    }),
  ),
})

/** Who watches the door, and kills the pipeline there. */
class Door {
  readonly starts: Array<StartSeen> = []
  process = 0
  startsOfNight = 0
  kill: () => void = () => {}
  private readonly world: World
  private readonly service: HostileService
  private readonly accidents: () => ReadonlyArray<Accident>

  constructor(world: World, service: HostileService, accidents: () => ReadonlyArray<Accident>) {
    this.world = world
    this.service = service
    this.accidents = accidents
  }

  readonly watched = (client: HttpClient.HttpClient): HttpClient.HttpClient =>
    HttpClient.make((request) => {
      const isStart = /\/init\/v1\/(parametrized|tokenized)$/.test(request.url)
      if (isStart) return this.start(client, request)
      if (request.method !== "GET") return client.execute(request)
      return Effect.tap(client.execute(request), (response) =>
        Effect.sync(() => this.told(request, response)),
      )
    })

  private told(
    request: HttpClientRequest.HttpClientRequest,
    response: HttpClientResponse.HttpClientResponse,
  ) {
    const status = response.headers[toldHeader] ?? "not-performed"
    if (status === "not-performed") return
    const id = request.url.slice(request.url.lastIndexOf("/") + 1)
    const execution = this.service.executions.find(({ execution_id }) => execution_id === id)
    if (execution !== undefined) execution.toldAt ??= this.world.now()
  }

  private start(client: HttpClient.HttpClient, request: HttpClientRequest.HttpClientRequest) {
    const body = jsonBody(request) as StartBody
    const { account, password, isEncrypted } = this.service.loginOf(body)
    const seen: StartSeen = {
      at: this.world.now(),
      account,
      password,
      isEncrypted,
      customer: body.customer_id,
      engine: body.engine_reference,
      external: body.external_execution_id,
      process: this.process,
      answer: undefined,
      answeredAt: undefined,
      execution_id: undefined,
      status_reason: undefined,
      isListed: false,
    }
    this.startsOfNight += 1
    const accident = this.accidents().find(({ nthStart }) => nthStart === this.startsOfNight)
    this.starts.push(seen)
    const dying = Effect.suspend(() => {
      this.kill()
      return Effect.never
    })
    if (accident?.what === "killed before it leaves") return dying
    const befallen = (response: HttpClientResponse.HttpClientResponse) =>
      accident === undefined
        ? Effect.succeed(response)
        : accident.what === "answer lost"
          ? Effect.fail(transportError(request, "ECONNRESET", "read"))
          : dying
    return client.execute(request).pipe(
      Effect.flatMap(befallen),
      Effect.tapError(({ reason }) =>
        Effect.sync(() =>
          this.answered(seen, isRefused(reason) ? "refused connection" : "broken", undefined),
        ),
      ),
      Effect.tap((response) =>
        Effect.map(Effect.option(response.json), (json) => {
          this.answered(seen, response.status, json._tag === "Some" ? json.value : undefined)
        }),
      ),
    )
  }

  private answered(seen: StartSeen, answer: StartSeen["answer"], json: unknown) {
    seen.answer = answer
    seen.answeredAt = this.world.now()
    const field = (name: string): unknown =>
      typeof json === "object" && json !== null ? Reflect.get(json, name) : undefined
    const [id, reason] = [field("execution_id"), field("status_reason")]
    if (typeof id === "string" && id.length <= 512) seen.execution_id = id
    if (typeof reason === "string") seen.status_reason = reason
    const isOfRequest = reason === "CUSTOMER_INTERVENTION_REQUIRED" || reason === "T10N_FORBIDDEN"
    seen.isListed = answer === 422 ? Array.isArray(field("detail")) : answer === 400 && isOfRequest
  }
}

const isRefused = (reason: object): boolean =>
  "description" in reason && reason.description === "ECONNREFUSED"

const lengthsUsual = (random: () => number) =>
  [1_000 + Math.floor(random() ** 3 * 300_000), 1_000 + Math.floor(random() ** 3 * 600_000)] as const

/** How a process of the pipeline ended; as a value, for a failure is an end like others. */
type Ended = Exit.Exit<number, unknown>

class Campaign {
  readonly exitCodes: Array<AccountsOutcome["exitCodes"][number]> = []
  readonly processes: Array<AccountsOutcome["processes"][number]> = []
  private night = 0
  private readonly plan: AccountsPlan
  private readonly plant: PlantedServices
  private readonly world: World
  private readonly service: HostileService
  private readonly door: Door
  private readonly http: HttpClient.HttpClient
  private stores: Parameters<typeof commonOf>[0]

  constructor(plan: AccountsPlan, plant: PlantedServices) {
    this.plan = plan
    this.plant = plant
    this.world = World.make({ startMs: firstNightMs, seed: plan.seed })
    const random = seeded(plan.seed ^ 0x2545f491)
    const lengths = plan.lengths ?? lengthsUsual
    this.service = new HostileService({
      channels: plan.channels,
      storms: plan.storms,
      rightPassword: (account) => plan.rightPassword(account, this.night),
      now: () => this.world.now(),
      random: seeded(plan.seed ^ 0x6c078965),
      lengths: () => lengths(random),
    })
    this.door = new Door(this.world, this.service, () =>
      plan.accidents.filter(({ night }) => night === this.night),
    )
    const { perform } = this.world.spawn("service", Effect.never)
    const network = faultyClient({
      world: this.world,
      process: () => this.door.process,
      tooSoon: [],
      service: this.service.client,
      perform,
      random: seeded(plan.seed ^ 0x5bd1e995),
      rates: () => plan.rates(this.night),
    })
    this.http = this.door.watched(network)
    this.stores = {
      database: seededLedger(plan.seed),
      tokens: plan.uses.some(({ tokenized }) => tokenized) ? openTokens() : undefined,
      landing: LandingMemory.makeStore(),
      published: SimulatedPublisher.makeHistory(),
    }
  }

  run(): AccountsOutcome {
    for (const command of this.plan.commands) {
      if (command.night !== this.night || this.door.process === 0) this.door.startsOfNight = 0
      this.night = command.night
      const dueMs = nightMs(command.night) + (command.afterMs ?? 0)
      if (dueMs > this.world.now()) wait(this.world, dueMs - this.world.now())
      this.command(command)
    }
    // What is open at the service comes to its end.
    wait(this.world, dayMs)
    const { plan, exitCodes, processes, service, door, world } = this
    const { executions } = service
    return {
      plan,
      ...toldBy(readFacts(this.stores.database)),
      executions,
      exitCodes,
      processes,
      starts: door.starts,
      logins: service.logins(),
      eventsHash: world.eventsHash,
    }
  }

  private command(command: Command) {
    let pipeline = this.pipelineOf(command)
    for (let tries = 0; tries < 4; tries += 1) {
      const startsBefore = this.door.startsOfNight
      const exit = this.live(pipeline, command)
      if (exit !== undefined) return this.ended(exit)
      this.exitCodes.push("killed")
      this.stores.landing.crash()
      const last = this.plan.accidents.find(
        ({ night, nthStart, what }) =>
          night === this.night &&
          what !== "answer lost" &&
          nthStart > startsBefore &&
          nthStart <= this.door.startsOfNight,
      )
      if (last?.awayMs === undefined) return
      wait(this.world, last.awayMs)
      const { isRerun: _, customers: __, ...resumed } = command
      pipeline = this.pipelineOf(resumed)
    }
  }

  private pipelineOf(command: Command): Effect.Effect<Ended> {
    if (command.customers !== undefined) return this.parts(command, command.customers)
    return command.isRerun === true ? this.reruns(command) : this.runs(command, false)
  }

  private ended(exit: Ended) {
    if (Exit.isSuccess(exit)) return void this.exitCodes.push(exit.value)
    expectExpected(exit)
    this.exitCodes.push("nothing started")
  }

  /** Undefined if it was killed. */
  private live(pipeline: Effect.Effect<Ended>, { jobs, offsetMs = 0 }: Command): Ended | undefined {
    this.door.process += 1
    const fromMs = this.world.now()
    const handle = this.world.spawn(`pipeline ${this.door.process}`, pipeline, { offsetMs })
    this.door.kill = handle.kill
    const isEndless = () => this.world.now() - fromMs > dayMs
    this.world.runUntil(() => handle.exit() !== undefined || !handle.alive() || isEndless())
    if (isEndless()) throw new Error(`a process of night ${this.night} does not end`)
    const exit = handle.exit()
    handle.kill()
    this.processes.push({ night: this.night, jobs, fromMs, untilMs: this.world.now() })
    if (exit === undefined || Exit.isFailure(exit)) return exit && Exit.failCause(exit.cause)
    return exit.value
  }

  /** A process of the pipeline: what it knew dies with it. */
  private process(work: (place: Parameters<typeof runTogether>[2]) => Effect.Effect<Ended>) {
    const common = commonOf(this.stores, { requestsAtOnce: 64 }, this.plant)
    const layers = (of: typeof common) =>
      layersOf(this.http, of, this.stores, [], () => this.world.now(), this.plant)
    return Effect.provideService(work({ common, layers, late: new Set() }), KnownSecrets, makeKnownSecrets())
  }

  private runs({ jobs: places }: Command, further: boolean, more: Partial<NightOptions> = {}) {
    const options = { parent: undefined, only: undefined, toolVersion: "simulated", ...more, further }
    const jobs = places.map((place) => jobFor(this.plan, this.night, place))
    const [job] = jobs
    return this.process((place) =>
      jobs.length === 1 && job !== undefined
        ? endOf(Effect.provide(runNight(job, options), place.layers(place.common)))
        : endOf(runTogether({ jobs, isInARow: false }, options, place)),
    )
  }

  private parts({ night, jobs }: Command, customers: ReadonlyArray<string>): Effect.Effect<Ended> {
    const each = jobs.flatMap((job) => {
      const only = subjectsOfPart(jobFor(this.plan, night, job), { customers, first: Option.none() })
      return only.size === 0 ? [] : [this.runs({ night, jobs: [job] }, true, { only, isPart: true })]
    })
    return oneByOne(each)
  }

  /** As `rerun` does, one job after the other. */
  private reruns({ night, jobs }: Command): Effect.Effect<Ended> {
    const runs = runsOf({ facts: readFacts(this.stores.database) })
    const each = jobs.flatMap((job) => {
      const newest = runs.findLast(({ started }) => started.job === `accounts-${job}`)
      const left = [...(newest?.tasks.values() ?? [])].filter(
        (task) => verdictOfTask(task).outcome !== "succeeded",
      )
      if (newest === undefined || left.length === 0) return []
      const only = new Set(left.map(subjectOf))
      return [this.runs({ night, jobs: [job] }, true, { parent: newest.started.run_id, only })]
    })
    return oneByOne(each)
  }
}

const oneByOne = (runs: ReadonlyArray<Effect.Effect<Ended>>): Effect.Effect<Ended> =>
  Effect.map(Effect.all(runs), (ends) => ends.find(Exit.isFailure) ?? ends.at(-1) ?? Exit.succeed(0))

const endOf = <E>(night: Effect.Effect<{ readonly exit_code: number }, E>): Effect.Effect<Ended> =>
  Effect.exit(Effect.map(night, ({ exit_code }) => exit_code))

export const runAccountNights = (plan: AccountsPlan, plant: PlantedServices = {}): AccountsOutcome =>
  new Campaign(plan, plant).run()
