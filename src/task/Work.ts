/**
 * The executor's input: tasks with the means to start them, sessions to pull, and the job's rules. Secrets
 * arrive redacted and stay so until a request is written.
 */
import type { Duration, Effect } from "effect"
import type { Access, TaskId } from "../service/Ids.ts"
import type { Away } from "../client/EngineForms.ts"
import type { StartCall } from "../client/Service.ts"
import type { Verdict } from "../service/Ends.ts"
import type { Job } from "../jobs/Job.ts"
import type { LedgerFailed } from "../ledger/Ledger.ts"
import type { Waits } from "../ledger/RunState.ts"
import type { LoginKeys } from "../privacy/Fingerprint.ts"
import type { Limits } from "./SharedSlots.ts"

/** Everything that a start sends, except its external id. */
export type CallParts = Omit<StartCall, "external_execution_id">

/** A stored token, as the store finds it again. */
export interface TokenRef {
  readonly name: string
  readonly token_id: string
}

export type Prepared =
  | {
      readonly _tag: "Ready"
      readonly call: CallParts
      readonly keys: LoginKeys
      /** The stored token that logs in; absent if parameters do. */
      readonly token?: TokenRef
      /** Features that the token does not cover. */
      readonly outside?: ReadonlyArray<string>
      /** The same start with the parameters that the token was made with, if the job has them. */
      readonly withParameters?: CallParts
    }
  /** The engine was checked, and the task must not be started. */
  | { readonly _tag: "Verdict"; readonly verdict: Verdict }
  | ({ readonly _tag: "Unavailable" } & Away)

/** One task of the run. Without `prepare` it is only collected, because its job no longer names it. */
export interface TaskWork extends Access, LoginKeys {
  readonly task_id: TaskId
  readonly prepare: Effect.Effect<Prepared, LedgerFailed> | undefined
  /** How long it takes, as far as is known, and how long it does with those that must follow it. */
  readonly takesMs?: number | undefined
  readonly tailMs?: number
  /** How long before the deadline it must start; without it, it may start until then. */
  readonly needs?: Duration.Duration
  /** What the service asked a start of it to wait in an earlier run. */
  readonly asked?: Waits | undefined
  /** When to look at its execution, as `planLooks` gives it; empty or absent if nothing is known. */
  readonly looks?: ReadonlyArray<number>
}

/** The job's rules. */
export interface Rules extends Pick<Job, "polling" | "retry" | "sources" | "flow_results"> {
  readonly limits: Limits
  readonly max_wait: Duration.Duration
  /** What the service is known by, as `serviceNameOf` names it. */
  readonly service: string
  /** Clock time after which nothing is started and at which open executions are aborted. */
  readonly deadlineAt: number | undefined
}
