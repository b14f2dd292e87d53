/**
 * The services of a simulated night: the product's own, over stores that outlive its processes. What all jobs of a
 * process have in common is apart, so that it can be made once for several of them.
 */
import { Context, Effect, Layer, Redacted } from "effect"
import { HttpClient } from "effect/http"
import { Service } from "../../src/client/Service.ts"
import { ServiceHttp } from "../../src/client/ServiceHttp.ts"
import { ServicePaced, ServicePause } from "../../src/client/ServicePaced.ts"
import { FormCache } from "../../src/client/EngineForms.ts"
import { SteadyClock } from "../../src/base/Time.ts"
import { secretsOf } from "../harness/SecretsMemory.ts"
import type { Landing } from "../../src/landing/Landing.ts"
import { LandingMemory, type LandingStore } from "../harness/LandingMemory.ts"
import { Ledger } from "../../src/ledger/Ledger.ts"
import { writeKey } from "../../src/ledger/LedgerKeys.ts"
import { openLedger } from "../../src/ledger/LedgerSchema.ts"
import { sha256 } from "../../src/base/Hashes.ts"
import type { Publisher } from "../../src/tables/Publisher.ts"
import type { RecordFamily } from "../../src/records/RecordSchema.ts"
import { SandboxClient } from "../../src/sandbox/server/SandboxServer.ts"
import { FormCheckerInProcess } from "../harness/FormCheckerInProcess.ts"
import type { NightPlan } from "./NightPlan.ts"
import { SimulatedPublisher, type PublishedHistory } from "./SimulatedPublisher.ts"
import { ourSecret, tokenStore, type openTokens } from "./SimulatedTokens.ts"

/** Defects put in on purpose, service by service. */
export interface PlantedServices {
  readonly client?: (client: HttpClient.HttpClient) => HttpClient.HttpClient
  readonly service?: (service: Service["Service"]) => Service["Service"]
  readonly ledger?: (ledger: Ledger["Service"]) => Ledger["Service"]
  /** How many rows become of a body's records. */
  readonly place?: (rows: number) => number
  /** Another one than that which only counts. */
  readonly publisher?: Layer.Layer<Publisher, never, Ledger | Landing>
}

export interface Stores {
  readonly database: ReturnType<typeof openLedger>
  readonly tokens: ReturnType<typeof openTokens> | undefined
  readonly landing: LandingStore
  readonly published: PublishedHistory
}

/** The order of the tasks follows from the ledger's key: from the seed, so that a seed can be replayed. */
export const seededLedger = (seed: number) => {
  const database = openLedger({ path: ":memory:" })
  writeKey(database, "fingerprint", sha256(`key ${seed}`))
  return database
}

export const plantedLedger = (ledger: Layer.Layer<Ledger>, plant: PlantedServices): Layer.Layer<Ledger> =>
  Layer.flatMap(ledger, (context) =>
    Layer.succeed(Ledger, (plant.ledger ?? same)(Context.get(context, Ledger))),
  )

/** What all jobs of a process have in common. */
export const commonOf = (
  { database, landing: store }: Stores,
  { requestsAtOnce }: Pick<NightPlan, "requestsAtOnce">,
  plant: PlantedServices,
) => ({
  pause: ServicePause.layer({ requestsAtOnce }),
  ledger: plantedLedger(Ledger.layerOver(database), plant),
  landing: LandingMemory.layer(store),
})
export type Common = ReturnType<typeof commonOf>

const same = <S>(unchanged: S): S => unchanged

export const layersOf = (
  http: HttpClient.HttpClient,
  { pause, ledger, landing }: Common,
  { tokens, published }: Pick<Stores, "tokens" | "published">,
  families: ReadonlyArray<RecordFamily>,
  now: () => number,
  plant: PlantedServices,
) => {
  const addresses = {
    base_url: SandboxClient.base_url,
    flows_url: SandboxClient.flows_url,
    attachments_url: SandboxClient.flows_url,
  }
  const service = ServicePaced.layer(addresses).pipe(
    Layer.provide(ServiceHttp.layer({ ...addresses, app_secret: Redacted.make(ourSecret) })),
    Layer.provide(pause),
    Layer.provide(Layer.succeed(HttpClient.HttpClient, (plant.client ?? same)(http))),
    Layer.flatMap((context) =>
      Layer.succeed(Service, (plant.service ?? same)(Context.get(context, Service))),
    ),
  )
  const forms = FormCache.layer.pipe(
    Layer.provide(FormCheckerInProcess.layer),
    Layer.provide(service),
    Layer.provide(ledger),
  )
  const counting = SimulatedPublisher.layer(published, families, now, plant.place)
  const publisher = (plant.publisher ?? counting).pipe(Layer.provide(ledger), Layer.provide(landing))
  return Layer.mergeAll(service, ledger, landing, forms, publisher, secretsOf(), tokenStore(tokens)).pipe(
    Layer.provideMerge(SteadyClock.layer(() => 0)),
  )
}
export type NightLayers = ReturnType<typeof layersOf>

/** A defect: a login that was refused is told as an error that passes. */
export const refusalsAsTemporary: PlantedServices = {
  service: (service) => ({
    ...service,
    readExecution: (execution_id) =>
      Effect.map(service.readExecution(execution_id), (answer) => {
        if (answer._tag !== "Closed" || answer.view.status_code !== "AUTH_ERROR") return answer
        const { authentication_status: _refusal, ...view } = answer.view
        const temporary = { status_code: "TEMPORARY_ERROR", status_reason: "NETWORK_ERROR" }
        return { ...answer, view: { ...view, ...temporary } }
      }),
  }),
}
