/**
 * All live layers, wired once. Rooms with heavy dependencies are loaded when a command first needs them, so
 * that a small command answers at once.
 */
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Duration, Effect, Layer, Logger, Redacted } from "effect"
import { Command } from "effect/cli"
import type { HttpClient } from "effect/http"
import { nightjar, NightjarFlags } from "./cli/Nightjar.ts"
import { Output } from "./cli/Output.ts"
import { Presenter } from "./cli/Presenter.ts"
import { runProcess } from "./cli/RunProcess.ts"
import { toolVersion } from "./cli/Version.ts"
import { Wiring } from "./cli/Wiring.ts"
import type { PlanServices, PlanUnwired, RemoteTarget, SandboxServing, Through } from "./cli/Wiring.ts"
import type { Service } from "./client/Service.ts"
import type { Job, ServiceTarget } from "./jobs/Job.ts"
import type { Secrets } from "./jobs/Secrets.ts"
import type { Ledger } from "./ledger/Ledger.ts"
import { EmbeddedClock } from "./cli/EmbeddedClocks.ts"
import { processSecrets } from "./secrets/KnownSecrets.ts"
import { Settings } from "./cli/Settings.ts"

const ledgerPath = (output: string) => `${output}/ledger.sqlite`
/** One level above both `src/main.ts` and the bundle. */
const packageFolder = fileURLToPath(new URL("../", import.meta.url))
const recordSchemas = join(packageFolder, "schemas/records")
const tokensPath = (output: string) => `${output}/tokens.sqlite`
const journalPath = (output: string) => `${output}/sandbox.ndjson`

/** The secret of the embedded service's first application: it protects nothing. */
const sandboxSecret = "sandbox-app-1"

/** A layer whose modules are loaded when it is built. */
const lazily = <A, E, R>(load: () => Promise<Layer.Layer<A, E, R>>): Layer.Layer<A, E, R> =>
  Layer.unwrap(Effect.promise(load))

const secrets = lazily(async () => (await import("./jobs/Secrets.ts")).Secrets.layer).pipe(
  Layer.provide(NodeServices.layer),
)

const receivers = lazily(async () => (await import("./client/NodeClient.ts")).NodeClient.layer()).pipe(
  Layer.merge(secrets),
)

const ledger = (output: string, access: "read-only" | "read-write") =>
  lazily(async () => {
    const { Ledger } = await import("./ledger/Ledger.ts")
    return Ledger.layer({ path: ledgerPath(output), readOnly: access === "read-only" })
  })

/** A plan needs no earlier run: without a ledger it starts from an empty one. */
const ledgerOrEmpty = (output: string) =>
  lazily(async () => {
    const { existsSync } = await import("node:fs")
    const { Ledger } = await import("./ledger/Ledger.ts")
    return Ledger.layer({ path: existsSync(ledgerPath(output)) ? ledgerPath(output) : ":memory:" })
  })

const database = lazily(async () => (await import("./duckdb/DuckDb.ts")).DuckDb.layer)

const landing = (output: string, access: "read-only" | "read-write") =>
  lazily(async () => (await import("./landing/LandingFiles.ts")).LandingFiles.layer({ root: output, access }))

const publisher = (output: string, { share, delta, schemas, gates, freshness, models, retain }: Job) =>
  lazily(async () => {
    const { PublisherDuckDb } = await import("./publishing/PublisherDuckDb.ts")
    const own = schemas === undefined ? {} : { ownSchemas: join(schemas, "records") }
    const asked = { ...(gates && { gates }), ...(freshness && { freshness }), ...(models && { models }) }
    const folders = { root: output, schemasFolder: recordSchemas, ...own, ...asked }
    return PublisherDuckDb.layer({ ...folders, share, delta, versionsKept: retain?.snapshots, toolVersion })
  }).pipe(Layer.provide(Layer.merge(database, NodeServices.layer)))

/** The name under which the tokens of a service are kept: each service has its own. */
const tokenServiceOf = (target: ServiceTarget): string =>
  target._tag === "Embedded" ? "sandbox" : new URL(target.base_url).origin

/** The token store of a job that has a key; a plan does not create the file. */
const tokenStore = (job: Job, output: string, access: "write" | "look") => {
  const key = job.tokens_key
  if (key === undefined) return Layer.empty
  return lazily(async () => {
    const { existsSync } = await import("node:fs")
    const { Secrets } = await import("./jobs/Secrets.ts")
    const { TokenStore } = await import("./tokens/TokenStore.ts")
    const path = tokensPath(output)
    const opened = Effect.gen(function* () {
      const { resolve } = yield* Secrets
      const options = { key: yield* resolve(key), service: tokenServiceOf(job.service) }
      return TokenStore.layer(access === "write" || existsSync(path) ? path : ":memory:", options)
    })
    return Layer.unwrap(opened)
  })
}

/** A client that every call passes through, if calls are to be observed. */
const seenBy = <E, R>(through: Through | undefined, client: Layer.Layer<HttpClient.HttpClient, E, R>) =>
  through === undefined
    ? client
    : lazily(async () => {
        const { HttpClient } = await import("effect/http")
        return Layer.effect(HttpClient.HttpClient, Effect.map(HttpClient.HttpClient, through))
      }).pipe(Layer.provide(client))

const connectionsTo = (target: RemoteTarget) =>
  lazily(async () => {
    const acceptAnyCertificate = target.accept_any_certificate === true
    return (await import("./client/NodeClient.ts")).NodeClient.layer({ acceptAnyCertificate })
  })

/** The service over HTTP: paced, on a clock that never jumps. */
const remote = (target: RemoteTarget, through?: Through) =>
  lazily(async () => {
    const { Secrets } = await import("./jobs/Secrets.ts")
    const { ServiceHttp } = await import("./client/ServiceHttp.ts")
    const { ServicePaced, ServicePause } = await import("./client/ServicePaced.ts")
    const { SteadyClock } = await import("./foundation/SteadyClock.ts")
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
      Layer.provide(ServicePause.layer()),
      Layer.provide(seenBy(through, connectionsTo(target))),
      Layer.provideMerge(SteadyClock.layer),
    )
  })

const subscriptions = (target: RemoteTarget) =>
  lazily(async () => (await import("./client/Subscriptions.ts")).Subscriptions.layer(target)).pipe(
    Layer.provide(Layer.merge(secrets, connectionsTo(target))),
  )

/** The embedded service in this process; without a journal it forgets, which is enough for a plan. */
const embedded = (
  target: Extract<ServiceTarget, { _tag: "Embedded" }>,
  journal: string | undefined,
  hooksUrl: string | undefined,
  through: Through | undefined,
) =>
  lazily(async () => {
    const { ServiceHttp } = await import("./client/ServiceHttp.ts")
    const { Sandbox } = await import("./sandbox/server/Sandbox.ts")
    const { SandboxClient } = await import("./sandbox/server/SandboxClient.ts")
    const { base_url, flows_url } = SandboxClient
    const { readFaults } = await import("./sandbox/faults/FaultsFile.ts")
    const { readReading } = await import("./sandbox/readings/ReadingFile.ts")
    const app_secret = Redacted.make(sandboxSecret)
    const service = ServiceHttp.layer({ base_url, flows_url, attachments_url: flows_url, app_secret })
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
    return service.pipe(
      Layer.provide(seenBy(through, SandboxClient.layer)),
      Layer.merge(hooksUrl === undefined ? Layer.empty : dispatcher(target.speed)),
      Layer.provide(sandbox),
      Layer.provideMerge(EmbeddedClock.layer(target.speed, journal)),
    )
  })

/** Deliveries over real HTTP; a receiver has ten real seconds, however fast the clock runs. */
const dispatcher = (speed: number) =>
  lazily(async () => {
    const { HookDispatcher } = await import("./sandbox/server/HookDispatcher.ts")
    const { NodeClient } = await import("./client/NodeClient.ts")
    const answerWithin = Duration.seconds(10 * speed)
    return HookDispatcher.layer({ answerWithin }).pipe(Layer.provide(NodeClient.layer()))
  })

const catalogue = lazily(async () => {
  const { ServiceCatalogue } = await import("./forms/ServiceCatalogue.ts")
  const { FormThread } = await import("./forms/FormThread.ts")
  const { FormCache } = await import("./forms/EngineForms.ts")
  return FormCache.layer.pipe(Layer.provide(Layer.merge(ServiceCatalogue.layer, FormThread.layer())))
})

const serviceOf = (
  target: ServiceTarget,
  journal: string | undefined,
  hooksUrl?: string,
  through?: Through,
): Layer.Layer<Service, PlanUnwired, Secrets | Ledger> =>
  target._tag === "Remote" ? remote(target, through) : embedded(target, journal, hooksUrl, through)

const plan: Wiring["Service"]["plan"] = (target, output, through) =>
  catalogue.pipe(
    Layer.provideMerge(serviceOf(target, undefined, undefined, through)),
    Layer.provideMerge(Layer.mergeAll(ledgerOrEmpty(output), secrets)),
  )

/** Forms read here are shown and not cached: this process knows none of the logins that a form may repeat. */
const catalogueOnly = (target: ServiceTarget, output: string): Layer.Layer<PlanServices, PlanUnwired> =>
  catalogue.pipe(
    Layer.provideMerge(serviceOf(target, undefined)),
    Layer.provideMerge(keepingNoForms),
    Layer.provideMerge(Layer.mergeAll(ledgerOrEmpty(output), secrets)),
  )

const keepingNoForms = lazily(async () => {
  const { Ledger } = await import("./ledger/Ledger.ts")
  return Layer.effect(
    Ledger,
    Effect.map(Ledger, (ledger) => Ledger.of({ ...ledger, cacheForm: () => Effect.void })),
  )
})

/** Not even loaded for a job that does not ask for it. */
const telemetry = (job: Job, output: string) => {
  const asked = job.telemetry
  if (asked === undefined) return Layer.empty
  return lazily(async () =>
    (await import("./cli/RunTelemetry.ts")).RunTelemetry.layer(job, output, asked),
  ).pipe(Layer.provide(Layer.merge(receivers, NodeServices.layer)))
}

const night = (job: Job, output: string, hooksUrl?: string, through?: Through) =>
  catalogue.pipe(
    Layer.provideMerge(serviceOf(job.service, journalPath(output), hooksUrl, through)),
    Layer.provideMerge(publisher(output, job)),
    Layer.provideMerge(landing(output, "read-write")),
    Layer.provideMerge(telemetry(job, output)),
    Layer.provideMerge(
      lazily(async () => (await import("./cli/NightLog.ts")).NightLog.layer(output, job.share)),
    ),
    Layer.provideMerge(tokenStore(job, output, "write")),
    Layer.provideMerge(Layer.mergeAll(ledger(output, "read-write"), secrets)),
  )

const tokens = (job: Job, output: string) =>
  serviceOf(job.service, journalPath(output)).pipe(
    Layer.provideMerge(tokenStore(job, output, "write")),
    Layer.provideMerge(Layer.mergeAll(ledger(output, "read-write"), secrets)),
  )

const sandboxServer = ({ port, host, speed, ...options }: SandboxServing) =>
  lazily(async () => {
    const { Sandbox } = await import("./sandbox/server/Sandbox.ts")
    const { SandboxServer } = await import("./sandbox/server/SandboxServer.ts")
    const { lockJournal } = await import("./sandbox/state/JournalLock.ts")
    return SandboxServer.layer({ port, host }).pipe(
      Layer.merge(dispatcher(speed)),
      Layer.provideMerge(Sandbox.layer(options)),
      Layer.provideMerge(EmbeddedClock.layerServer(speed, options.journal)),
      Layer.provideMerge(options.journal === undefined ? Layer.empty : lockJournal(options.journal)),
    )
  })

const wiring = Layer.succeed(
  Wiring,
  Wiring.of({
    night,
    plan,
    catalogue: catalogueOnly,
    tokens,
    subscriptions,
    tokenStore: (job, output) => tokenStore(job, output, "look").pipe(Layer.provide(secrets)),
    ledger,
    landing,
    secrets,
    receivers,
    database,
    packageFolder,
    recordSchemas,
    sandboxServer,
  }),
)

const output = Layer.unwrap(Effect.map(Settings, ({ noColor }) => Output.layer(noColor)))

/** Causes are logged with everything they contain. */
const cleanLog = Logger.map(Logger.formatLogFmt, (line) => processSecrets.clean(line, "own"))

const live = Layer.mergeAll(
  wiring,
  Presenter.layer,
  NightjarFlags.layer,
  Logger.layer([Logger.withConsoleError(cleanLog)]),
  output.pipe(Layer.provideMerge(Settings.layer)),
).pipe(Layer.provideMerge(NodeServices.layer))

const program = Command.run(nightjar, { version: toolVersion }).pipe(Effect.provide(live))

runProcess(program)
