/**
 * What commands request from the wiring, by name: the services of a run, of a plan, of a read of the
 * ledger. `main.ts` builds them, each only when a command needs it, so that `--help` loads no database and
 * no network client.
 */
import { Context } from "effect"
import type { Effect, Layer, Scope } from "effect"
import type { HttpClient, HttpServerError } from "effect/http"
import type { Service, ServiceSettingsRefused } from "../client/Service.ts"
import type { Subscriptions } from "../client/Subscriptions.ts"
import type { DuckDb } from "../base/DuckDb.ts"
import type { Job, ServiceTarget } from "../jobs/Job.ts"
import type { Secrets, SecretUnavailable } from "../jobs/Secrets.ts"
import type { Landing, LandingFailed } from "../landing/Landing.ts"
import type { Ledger, LedgerFailed } from "../ledger/Ledger.ts"
import type { TokenStoreRefused } from "../tokens/StoredToken.ts"
import type { FormCache } from "../client/EngineForms.ts"
import type { PseudonymsRefused } from "../tables/PseudonymsOfJob.ts"
import type { Publisher, PublishFailed } from "../tables/Publisher.ts"
import type { RecordSchemaInvalid } from "../records/RecordSchema.ts"
import type { FaultsInvalid, ReadingInvalid } from "../sandbox/readings/SettingFiles.ts"
import type { JournalFailed, JournalInUse } from "../sandbox/state/Journal.ts"
import type { Sandbox, SandboxOptions } from "../sandbox/server/Sandbox.ts"
import type { SandboxServer } from "../sandbox/server/SandboxServer.ts"

export type PlanServices = Ledger | Service | FormCache | Secrets
export type NightServices = PlanServices | Landing | Publisher
/** Why a plan's or a run's services are not available; nothing was started. */
export type PlanUnwired =
  | LedgerFailed
  | ServiceSettingsRefused
  | SecretUnavailable
  | JournalFailed
  | FaultsInvalid
  | ReadingInvalid
export type TokensUnwired = PlanUnwired | TokenStoreRefused
export type NightUnwired =
  | TokensUnwired
  | LandingFailed
  | PublishFailed
  | PseudonymsRefused
  | RecordSchemaInvalid

export type RemoteTarget = Extract<ServiceTarget, { _tag: "Remote" }>

export type Through = (client: HttpClient.HttpClient) => HttpClient.HttpClient

export class Wiring extends Context.Service<
  Wiring,
  {
    /**
     * Everything that a run needs, on the clock that the job's service uses; the folder is already locked.
     * Every call to the service goes through `through`, if given.
     */
    readonly night: (job: Job, output: string, through?: Through) => Layer.Layer<NightServices, NightUnwired>
    /**
     * The same for jobs whose runs may go on beside each other in one folder: until the scope ends they have
     * the ledger, the landing, the connections and the pace of a host, and an embedded service in common.
     * `hooksUrl` is where an embedded service delivers its events, if anywhere.
     */
    readonly nights: (
      jobs: ReadonlyArray<Job>,
      output: string,
      hooksUrl: string | undefined,
    ) => Effect.Effect<NightsBeside, never, Scope.Scope>
    /** Only reads; if there is no ledger yet, an empty one in memory. */
    readonly plan: (
      target: ServiceTarget,
      output: string,
      through?: Through,
    ) => Layer.Layer<PlanServices, PlanUnwired>
    /** The same for `engines`: it reads cached forms and stores none. */
    readonly catalogue: (target: ServiceTarget, output: string) => Layer.Layer<PlanServices, PlanUnwired>
    /** What the calls about tickets and tokens need; the folder is already locked. */
    readonly tokens: (job: Job, output: string) => Layer.Layer<Ledger | Service, TokensUnwired>
    /** The token store of a job that has a key, for reading; nothing if the job has none. */
    readonly tokenStore: (
      job: Job,
      output: string,
    ) => Layer.Layer<never, TokenStoreRefused | SecretUnavailable | LedgerFailed>
    /** The application's subscriptions at a remote service, over connections of their own. */
    readonly subscriptions: (
      target: RemoteTarget,
    ) => Layer.Layer<Subscriptions, ServiceSettingsRefused | SecretUnavailable>
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
    readonly sandboxServer: (
      options: SandboxServing,
    ) => Layer.Layer<SandboxServer | Sandbox, JournalFailed | JournalInUse | HttpServerError.ServeError>
  }
>()("nightjar/cli/Wiring") {}

export interface NightsBeside {
  readonly ledger: Layer.Layer<Ledger, LedgerFailed>
  readonly night: (job: Job) => Layer.Layer<NightServices, NightUnwired>
}

export interface SandboxServing extends SandboxOptions {
  readonly port: number
  readonly host: string
  readonly speed: number
}
