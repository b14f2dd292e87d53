/**
 * The port for publishing: facts and landed bodies in, tables out. A version becomes visible completely or
 * not at all; readers keep theirs. `PublisherDuckDb.ts` writes Parquet and the database.
 */
import { Context, Effect, Schema } from "effect"
import { DuckDbFailed } from "../base/DuckDbFailed.ts"
import { RunId } from "../service/Ids.ts"
import type { RunNews } from "../ledger/Fact.ts"
import { FailedGate, type RunPublished } from "../ledger/RunFacts.ts"
import type { LedgerFailed } from "../ledger/Ledger.ts"

/** Publishing did not happen, or is not finished yet; nothing may be deleted remotely. */
export class PublishFailed extends Schema.TaggedError<PublishFailed>()("PublishFailed", {
  message: Schema.String,
  /** Landing or ledger has changed since it was written: neither waiting nor free space helps. */
  damaged: Schema.optionalKey(Schema.Boolean),
  /** It is the ledger: nothing more may be decided on it. */
  isLedger: Schema.optionalKey(Schema.Boolean),
}) {}

/** The version did not pass the gates of its job and is kept aside. Without receipts, nothing is deleted. */
export class PublicationHeld extends Schema.TaggedError<PublicationHeld>()("PublicationHeld", {
  run_id: RunId,
  /** Relative to the output folder. */
  database: Schema.String,
  gates: Schema.Array(FailedGate),
}) {}

export const databaseFailed = (failure: { readonly message: string }) =>
  new PublishFailed({ message: `the database: ${failure.message}` })

/** Work with databases that are closed after it; what DuckDB refuses is why nothing is published. */
export const inDatabase = <A, E, R>(work: Effect.Effect<A, E, R>) =>
  Effect.mapError(Effect.scoped(work), (failure) =>
    failure instanceof DuckDbFailed ? databaseFailed(failure) : (failure as Exclude<E, DuckDbFailed>),
  )

/** A ledger that cannot be read now may be read later, unless it is damaged. */
export const ledgerFailed = ({ message, damaged = false }: LedgerFailed) =>
  new PublishFailed({ message: `the ledger: ${message}`, damaged, isLedger: true })

type Fact = typeof RunPublished.Type

/** What one run brought into a version: of `receipts`, bodies that were read back from disk and hashed. */
export type Brought = Pick<Fact, "engines" | "garbled" | "features_left"> &
  Required<Pick<Fact, "left_out" | "delivered" | "misfits" | "rejected" | "other">> & {
    readonly receipts: ReadonlyArray<Required<Fact["receipts"][number]>>
  }

export type Released = Brought & Pick<Fact, "run_id">

export type Published = Brought &
  Pick<
    Fact,
    | "version"
    | "without"
    | "restored"
    | "unfit"
    | "gone"
    | "lists"
    | "models"
    | "stale"
    | "shared_sessions"
    | "taken"
  > & {
    /** Earlier runs that a gate had held back, and that this version contains: each with its own receipts. */
    readonly released?: ReadonlyArray<Released>
  }

/** What became of a version of a run that goes on. */
export type Interim = Extract<RunNews, { readonly _tag: "InterimPublished" | "InterimRefused" }>

export class Publisher extends Context.Service<
  Publisher,
  {
    /**
     * Derives all tables of one run again, verifies them, and publishes a version, unless a gate holds it.
     */
    readonly publish: (run_id: RunId) => Effect.Effect<Published, PublishFailed | PublicationHeld>
    /** While the run goes on: a version with those of these tasks that are settled. It gives no receipts. */
    readonly publishInterim: (
      run_id: RunId,
      over: ReadonlySet<string>,
    ) => Effect.Effect<Interim, PublishFailed>
    /** After the deletions: publishes the outcome tables of a run again. */
    readonly publishOutcome: (run_id: RunId) => Effect.Effect<void, PublishFailed>
  }
>()("nightjar/publishing/Publisher") {}
