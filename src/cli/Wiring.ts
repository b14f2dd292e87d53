/**
 * What commands request by name: the services of a run, of a plan, of a read of the ledger. `main.ts` builds
 * them, each only when a command needs it.
 */
import { Clock, Context, Duration, Effect, Layer, RcRef, Redacted, type Scope } from "effect"
import type { HttpClient } from "effect/http"
import type { DuckDb } from "../base/DuckDb.ts"
import type { FormCache } from "../client/EngineForms.ts"
import type { Service } from "../client/Service.ts"
import type { ServicePause } from "../client/ServicePaced.ts"
import type { Subscriptions } from "../client/Subscriptions.ts"
import type { Failure } from "./Failures.ts"
import { embeddedKey, type Embedded, type Job, type ServiceTarget } from "../jobs/Job.ts"
import type { Secrets } from "../jobs/Secrets.ts"
import type { Landing, LandingFailed } from "../landing/Landing.ts"
import type { Ledger, LedgerFailed } from "../ledger/Ledger.ts"
import type { Sandbox, SandboxOptions } from "../sandbox/server/Sandbox.ts"
import type { SandboxServer } from "../sandbox/server/SandboxServer.ts"
import type { Publisher } from "../tables/Publisher.ts"

export type PlanServices = Ledger | Service | FormCache | Secrets
type NightServices = PlanServices | Landing | Publisher

export type RemoteTarget = Extract<ServiceTarget, { _tag: "Remote" }>

export type Through = (client: HttpClient.HttpClient) => HttpClient.HttpClient

export class Wiring extends Context.Service<
  Wiring,
  {
    /** The folder is already locked. Every call passes `through`, if given. */
    readonly night: (job: Job, output: string, through?: Through) => Layer.Layer<NightServices, Failure>
    /** Until the scope ends, these runs have ledger, landing, connections and service in common. */
    readonly nights: (
      jobs: ReadonlyArray<Job>,
      output: string,
      hooksUrl: string | undefined,
    ) => Effect.Effect<NightsBeside, never, Scope.Scope>
    /** Only reads; if there is no ledger yet, an empty one in memory. */
    readonly plan: (target: ServiceTarget, output: string) => Layer.Layer<PlanServices, Failure>
    /** The service alone, whatever the state of the folder. Every call passes `through`. */
    readonly service: (target: ServiceTarget, through: Through) => Layer.Layer<Service, Failure>
    /** The same for `engines`: it reads cached forms and stores none. */
    readonly catalogue: (target: ServiceTarget, output: string) => Layer.Layer<PlanServices, Failure>
    /** What the calls about tickets and tokens need; the folder is already locked. */
    readonly tokens: (job: Job, output: string) => Layer.Layer<Ledger | Service, Failure>
    /** The token store of a job that has a key, for reading; nothing if the job has none. */
    readonly tokenStore: (job: Job, output: string) => Layer.Layer<never, Failure>
    /** The application's subscriptions at a remote service, over connections of their own. */
    readonly subscriptions: (target: RemoteTarget) => Layer.Layer<Subscriptions, Failure>
    readonly ledger: (output: string, access: "read-only" | "read-write") => Layer.Layer<Ledger, LedgerFailed>
    readonly landing: (
      output: string,
      access: "read-only" | "read-write",
    ) => Layer.Layer<Landing, LandingFailed>
    readonly secrets: Layer.Layer<Secrets>
    /** What telling the receivers of a job needs, with connections of its own. */
    readonly receivers: Layer.Layer<HttpClient.HttpClient | Secrets>
    readonly database: Layer.Layer<DuckDb>
    /** Where the program's own files are: `jobs/demo.yaml`, `schemas/`. */
    readonly packageFolder: string
    readonly recordSchemas: string
    readonly sandboxServer: (options: SandboxServing) => Layer.Layer<SandboxServer | Sandbox, Failure>
  }
>()("nightjar/cli/Wiring") {}

export interface NightsBeside {
  readonly ledger: Layer.Layer<Ledger, Failure>
  readonly night: (job: Job) => Layer.Layer<NightServices, Failure>
}

export interface SandboxServing extends SandboxOptions {
  readonly port: number
  readonly host: string
  readonly speed: number
}

/** Time continues from the newest event of the embedded service and the ledger, and never goes back. */
const clockFrom = Effect.fnUntraced(function* (speed: number, journal: string | undefined, factAt = 0) {
  const { ScaledClock } = yield* Effect.promise(() => import("../base/Time.ts"))
  const { newestEventAt } = yield* Effect.promise(() => import("../sandbox/state/Journal.ts"))
  const happened = journal === undefined ? undefined : yield* newestEventAt(journal)
  const now = yield* Clock.currentTimeMillis
  const originMs = Math.max(now, happened ?? 0, factAt)
  return { clock: ScaledClock.layer({ speed, originMs }), isAhead: originMs > now }
})

const layer = (speed: number, journal: string | undefined) =>
  Layer.unwrap(
    Effect.flatMap(newestFactAt, (at) => Effect.map(clockFrom(speed, journal, at), ({ clock }) => clock)),
  )

const newestFactAt = Effect.gen(function* () {
  const { Ledger } = yield* Effect.promise(() => import("../ledger/Ledger.ts"))
  const known = yield* Ledger
  const runs = yield* known.runs
  const open = runs.filter((run, index) => run.ended === undefined || index === runs.length - 1)
  const facts = yield* Effect.forEach(open, ({ fact }) => known.facts(fact.run_id))
  const ends = runs.map(({ newest_at }) => newest_at)
  return Math.max(0, ...ends, ...facts.map((ofRun) => ofRun.at(-1)?.at ?? 0))
})

/** A server whose time is the machine's needs no clock of its own. */
const layerServer = (speed: number, journal: string | undefined) =>
  Layer.unwrap(
    Effect.map(clockFrom(speed, journal), ({ clock, isAhead }) =>
      speed === 1 && !isAhead ? Layer.empty : clock,
    ),
  )

export const EmbeddedClock = { layer, layerServer }

/** The secret of the embedded service's first application: it protects nothing. */
const sandboxSecret = "sandbox-app-1"

/** A layer whose modules are loaded when it is built. */
export const lazily = <A, E, R>(load: () => Promise<Layer.Layer<A, E, R>>): Layer.Layer<A, E, R> =>
  Layer.unwrap(Effect.promise(load))

/** Built for the first who needs it and closed after the last. */
export const inCommon = <A, E, R>(layer: Layer.Layer<A, E, R>) =>
  Effect.map(
    RcRef.make({ acquire: Effect.map(Layer.build(layer), Context.omit(Layer.CurrentMemoMap)) }),
    (ref) => Layer.effectContext(RcRef.get(ref)),
  )

/** What runs that go on beside each other must not have twice. */
export interface Common {
  readonly connections: (target: RemoteTarget) => Layer.Layer<HttpClient.HttpClient>
  readonly pause: Layer.Layer<ServicePause>
  /** The embedded service, on the clock that it keeps. */
  readonly sandbox: (target: Embedded) => Layer.Layer<Sandbox, Failure, Ledger>
}

const seenBy = <E, R>(through: Through | undefined, client: Layer.Layer<HttpClient.HttpClient, E, R>) =>
  through === undefined
    ? client
    : lazily(async () => {
        const { HttpClient } = await import("effect/http")
        return Layer.effect(HttpClient.HttpClient, Effect.map(HttpClient.HttpClient, through))
      }).pipe(Layer.provide(client))

export const connectionsTo = (target: Pick<RemoteTarget, "accept_any_certificate">) =>
  lazily(async () => {
    const acceptAnyCertificate = target.accept_any_certificate === true
    return (await import("../client/NodeClient.ts")).NodeClient.layer({ acceptAnyCertificate })
  })

/** The service over HTTP: paced, on a clock that never jumps. */
const remote = (target: RemoteTarget, common: Common, through?: Through) =>
  lazily(async () => {
    const { Secrets } = await import("../jobs/Secrets.ts")
    const { ServiceHttp } = await import("../client/ServiceHttp.ts")
    const { ServicePaced } = await import("../client/ServicePaced.ts")
    const { SteadyClock } = await import("../base/Time.ts")
    const http = Layer.unwrap(
      Effect.gen(function* () {
        const { resolve } = yield* Secrets
        const { base_url, flows_url, attachments_url } = target
        const app_secret = yield* resolve(target.app_secret)
        return ServiceHttp.layer({ base_url, flows_url, attachments_url, app_secret })
      }),
    )
    return ServicePaced.layer(target).pipe(
      Layer.provide(http),
      Layer.provide(common.pause),
      Layer.provide(seenBy(through, common.connections(target))),
      Layer.provideMerge(SteadyClock.layer()),
    )
  })

/** The embedded service in this process; each who calls it has a client of its own. */
const embedded = (target: Embedded, common: Common, through: Through | undefined) =>
  lazily(async () => {
    const { ServiceHttp } = await import("../client/ServiceHttp.ts")
    const { SandboxClient } = await import("../sandbox/server/SandboxServer.ts")
    const { base_url, flows_url } = SandboxClient
    const app_secret = Redacted.make(sandboxSecret)
    return ServiceHttp.layer({ base_url, flows_url, attachments_url: flows_url, app_secret }).pipe(
      Layer.provide(seenBy(through, SandboxClient.layer)),
      Layer.provideMerge(common.sandbox(target)),
    )
  })

/** Without a journal the embedded service forgets, which is enough for a plan. */
const openSandbox = (target: Embedded, journal: string | undefined, hooksUrl: string | undefined) =>
  lazily(async () => {
    const { Sandbox } = await import("../sandbox/server/Sandbox.ts")
    const { readFaults, readReading } = await import("../sandbox/readings/SettingFiles.ts")
    const sandbox = Layer.unwrap(
      Effect.gen(function* () {
        const faults = target.faults === undefined ? undefined : yield* readFaults(target.faults)
        const reading = target.reading === undefined ? undefined : yield* readReading(target.reading)
        return Sandbox.layer({
          seed: target.seed,
          webhooks: hooksUrl === undefined ? [] : [{ url: hooksUrl }],
          journal,
          faults,
          reading,
        })
      }),
    )
    return (hooksUrl === undefined ? Layer.empty : dispatcher(target.speed)).pipe(
      Layer.provideMerge(sandbox),
      Layer.provideMerge(EmbeddedClock.layer(target.speed, journal)),
    )
  })

/** Deliveries over real HTTP; a receiver has ten real seconds, however fast the clock runs. */
export const dispatcher = (speed: number) =>
  lazily(async () => {
    const { HookDispatcher } = await import("../sandbox/server/HookDispatcher.ts")
    const { NodeClient } = await import("../client/NodeClient.ts")
    const answerWithin = Duration.seconds(10 * speed)
    return HookDispatcher.layer({ answerWithin }).pipe(Layer.provide(NodeClient.layer()))
  })

/** Nothing in common with anybody. */
export const alone = (journal: string | undefined, hooksUrl?: string): Common => ({
  connections: connectionsTo,
  pause,
  sandbox: (target) => openSandbox(target, journal, hooksUrl),
})

const pause = lazily(async () => (await import("../client/ServicePaced.ts")).ServicePause.layer())

export const beside = Effect.fnUntraced(function* (
  targets: ReadonlyArray<ServiceTarget>,
  journal: string,
  hooksUrl: string | undefined,
  ledger: Layer.Layer<Ledger, Failure>,
): Effect.fn.Return<Common, never, Scope.Scope> {
  const checked = yield* inCommon(connectionsTo({}))
  const unchecked = yield* inCommon(connectionsTo({ accept_any_certificate: true }))
  const sandboxes = new Map<string, Layer.Layer<Sandbox, Failure>>()
  for (const target of targets)
    if (target._tag === "Embedded" && !sandboxes.has(embeddedKey(target)))
      sandboxes.set(
        embeddedKey(target),
        yield* inCommon(openSandbox(target, journal, hooksUrl).pipe(Layer.provide(ledger))),
      )
  return {
    connections: ({ accept_any_certificate }) => (accept_any_certificate === true ? unchecked : checked),
    pause: yield* inCommon(pause),
    sandbox: (target) => sandboxes.get(embeddedKey(target)) ?? openSandbox(target, journal, hooksUrl),
  }
})

export const serviceOf = (
  target: ServiceTarget,
  common: Common,
  through?: Through,
): Layer.Layer<Service, Failure, Secrets | Ledger> =>
  target._tag === "Remote" ? remote(target, common, through) : embedded(target, common, through)
