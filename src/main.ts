/**
 * All live layers, wired once. Rooms with heavy dependencies are loaded when a command first needs them, so
 * that a small command answers at once.
 */
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Layer, Logger } from "effect"
import { NightjarFlags, Presenter, runNightjar } from "./cli/Nightjar.ts"
import { Output, Settings, note, wholeStdio } from "./cli/Output.ts"
import { runProcess, toolVersion, type Failure } from "./cli/Failures.ts"
import {
  EmbeddedClock,
  Wiring,
  alone,
  beside,
  connectionsTo,
  dispatcher,
  inCommon,
  lazily,
  serviceOf,
} from "./cli/Wiring.ts"
import type { Common, PlanServices, RemoteTarget, SandboxServing, Through } from "./cli/Wiring.ts"
import type { Job, ServiceTarget } from "./jobs/Job.ts"
import type { Landing, LandingFailed } from "./landing/Landing.ts"
import type { Ledger } from "./ledger/Ledger.ts"
import type { LedgerCopy } from "./ledger/LedgerSchema.ts"
import { forTerminal } from "./report/TextTable.ts"
import { processSecrets } from "./privacy/KnownSecrets.ts"

const ledgerPath = (output: string) => `${output}/ledger.sqlite`
/** One level above both `src/main.ts` and the bundle. */
const packageFolder = fileURLToPath(new URL("../", import.meta.url))
const recordSchemas = join(packageFolder, "schemas/records")
const tokensPath = (output: string) => `${output}/tokens.sqlite`
const journalPath = (output: string) => `${output}/sandbox.ndjson`

const secrets = lazily(async () => (await import("./jobs/Secrets.ts")).Secrets.layer).pipe(
  Layer.provide(NodeServices.layer),
)

const receivers = lazily(async () => (await import("./client/NodeClient.ts")).NodeClient.layer()).pipe(
  Layer.merge(secrets),
)

const ledger = (output: string, access: "read-only" | "read-write") =>
  lazily(async () => {
    const { Ledger } = await import("./ledger/Ledger.ts")
    return Ledger.layer({ path: ledgerPath(output), readOnly: access === "read-only", tell: tellCopy })
  })

/** For whoever starts or deletes anything at the service. */
const ledgerInForce = (output: string) =>
  lazily(async () => (await import("./cli/RunReport.ts")).ledgerInForce(output)).pipe(
    Layer.provide(ledger(output, "read-write")),
  )

/** Before the first run with a new version. */
const tellCopy = ({ format, path }: LedgerCopy) =>
  note(`The ledger had the older format ${format}; a copy of it as it was is in ${path}.`).pipe(
    Effect.provide(NodeServices.layer),
  )

/** A plan needs no earlier run: without a ledger it starts from an empty one. */
const ledgerOrEmpty = (output: string) =>
  lazily(async () => {
    const { existsSync } = await import("node:fs")
    const path = ledgerPath(output)
    return existsSync(path) ? ledger(output, "read-write") : emptyLedger
  })

const emptyLedger = lazily(async () =>
  (await import("./ledger/Ledger.ts")).Ledger.layer({ path: ":memory:" }),
)

const database = lazily(async () => (await import("./base/DuckDb.ts")).DuckDb.layer)

const landing = (output: string, access: "read-only" | "read-write") =>
  lazily(async () => (await import("./landing/LandingFiles.ts")).LandingFiles.layer({ root: output, access }))

const publisher = (output: string, job: Job) =>
  lazily(async () => {
    const { publisherOfJob } = await import("./tables/PublisherDuckDb.ts")
    const { readingsOf } = await import("./cli/ReadingsOfJob.ts")
    const readings = readingsOf(job)
    return publisherOfJob(job, { root: output, schemasFolder: recordSchemas, readings, toolVersion })
  }).pipe(Layer.provide(Layer.merge(database, NodeServices.layer)))

/** The token store of a job that has a key; a plan does not create the file. */
const tokenStore = (job: Job, output: string, access: "write" | "look") => {
  const key = job.tokens_key
  if (key === undefined) return Layer.empty
  return lazily(async () => {
    const { existsSync } = await import("node:fs")
    const { Secrets } = await import("./jobs/Secrets.ts")
    const { serviceNameOf } = await import("./jobs/Job.ts")
    const { TokenStore } = await import("./tokens/TokenStore.ts")
    const path = tokensPath(output)
    const opened = Effect.gen(function* () {
      const { resolve } = yield* Secrets
      const options = { key: yield* resolve(key), service: serviceNameOf(job.service) }
      return TokenStore.layer(access === "write" || existsSync(path) ? path : ":memory:", options)
    })
    return Layer.unwrap(opened)
  })
}

const subscriptions = (target: RemoteTarget) =>
  lazily(async () => (await import("./client/Subscriptions.ts")).Subscriptions.layer(target)).pipe(
    Layer.provide(Layer.merge(secrets, connectionsTo(target))),
  )

const catalogue = lazily(async () => {
  const { FormChecking } = await import("./client/FormProcess.ts")
  const { FormCache } = await import("./client/EngineForms.ts")
  return FormCache.layer.pipe(Layer.provide(Layer.unwrap(FormChecking)))
})

const service: Wiring["Service"]["service"] = (target, through) =>
  serviceOf(target, alone(undefined), through).pipe(Layer.provide(Layer.merge(emptyLedger, secrets)))

const plan: Wiring["Service"]["plan"] = (target, output) =>
  catalogue.pipe(
    Layer.provideMerge(serviceOf(target, alone(undefined))),
    Layer.provideMerge(Layer.mergeAll(ledgerOrEmpty(output), secrets)),
  )

/** Forms read here are shown and not cached: this process knows not every login that a form may repeat. */
const catalogueOnly = (target: ServiceTarget, output: string): Layer.Layer<PlanServices, Failure> =>
  catalogue.pipe(
    Layer.provideMerge(serviceOf(target, alone(undefined))),
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

/** What runs in one output folder share: files that only one may write. */
interface Folder {
  readonly ledger: Layer.Layer<Ledger, Failure>
  readonly landing: Layer.Layer<Landing, LandingFailed>
}

const folderAlone = (output: string): Folder => ({
  ledger: ledgerInForce(output),
  landing: landing(output, "read-write"),
})

const nightWith = (job: Job, output: string, folder: Folder, common: Common, through?: Through) =>
  catalogue.pipe(
    Layer.provideMerge(serviceOf(job.service, common, through)),
    Layer.provideMerge(publisher(output, job)),
    Layer.provideMerge(folder.landing),
    Layer.provideMerge(telemetry(job, output)),
    Layer.provideMerge(
      lazily(async () => (await import("./cli/RunReport.ts")).NightLog.layer(output, job.share)),
    ),
    Layer.provideMerge(tokenStore(job, output, "write")),
    Layer.provideMerge(Layer.mergeAll(folder.ledger, secrets)),
  )

const night: Wiring["Service"]["night"] = (job, output, through) =>
  nightWith(job, output, folderAlone(output), alone(journalPath(output)), through)

const nights: Wiring["Service"]["nights"] = Effect.fnUntraced(function* (jobs, output, hooksUrl) {
  const opened = folderAlone(output)
  const folder = { ledger: yield* inCommon(opened.ledger), landing: yield* inCommon(opened.landing) }
  const targets = jobs.map(({ service }) => service)
  const common = yield* beside(targets, journalPath(output), hooksUrl, folder.ledger)
  return { ledger: folder.ledger, night: (job) => nightWith(job, output, folder, common) }
})

const tokens = (job: Job, output: string) =>
  serviceOf(job.service, alone(journalPath(output))).pipe(
    Layer.provideMerge(tokenStore(job, output, "write")),
    Layer.provideMerge(Layer.mergeAll(ledgerInForce(output), secrets)),
  )

const sandboxServer = ({ port, host, speed, ...options }: SandboxServing) =>
  lazily(async () => {
    const { Sandbox } = await import("./sandbox/server/Sandbox.ts")
    const { SandboxServer } = await import("./sandbox/server/SandboxServer.ts")
    const { lockJournal } = await import("./sandbox/state/Journal.ts")
    return SandboxServer.layer({ port, host }).pipe(
      Layer.merge(dispatcher(speed)),
      Layer.provideMerge(Sandbox.layer(options)),
      Layer.provideMerge(EmbeddedClock.layerServer(speed, options.journal)),
      Layer.provideMerge(options.journal === undefined ? Layer.empty : lockJournal(options.journal)),
    )
  })

export const wiring = Wiring.of({
  night,
  nights,
  plan,
  service,
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
})

const output = Layer.unwrap(Effect.map(Settings, ({ noColor }) => Output.layer(noColor)))

/** Causes are logged with everything they contain. */
const cleanLog = Logger.map(Logger.formatLogFmt, (line) => {
  const cleaned = processSecrets.clean(line, "own")
  return process.stderr.isTTY ? forTerminal(cleaned, false) : cleaned
})

const live = Layer.mergeAll(
  Layer.succeed(Wiring, wiring),
  Presenter.layer,
  NightjarFlags.layer,
  Logger.layer([Logger.withConsoleError(cleanLog)]),
  output.pipe(Layer.provideMerge(Settings.layer)),
).pipe(Layer.provideMerge(wholeStdio), Layer.provideMerge(NodeServices.layer))

/** The launcher calls it; whoever imports the wiring starts nothing. */
export const start = (): void => runProcess(runNightjar(process.argv.slice(2)).pipe(Effect.provide(live)))

if (import.meta.main) start()
