/**
 * The only lossless copy of what the service sent: bodies as they arrived, checksummed and synced before they
 * count as landed. This file is the port; `LandingFiles.ts` writes to the disk.
 */
import { Context, Schema, type Effect, type Stream } from "effect"
import { CustomerId, EngineReference, ExecutionId, RunId, SessionId, TaskId } from "../service/Ids.ts"
import { LandedRef } from "../ledger/Fact.ts"

/** What is known about a body besides its bytes. */
export const BodyMeta = Schema.Struct({
  /**
   * `unusable`: what was kept of an answer that its task could not use, for any call. `forgotten`: blanks in
   * the place of a body of a customer who was removed; such a frame is in no list.
   */
  kind: Schema.Literals(["start", "state", "challenge", "results", "profile", "unusable", "forgotten"]),
  run_id: RunId,
  task_id: TaskId,
  attempt: Schema.optionalKey(Schema.Int),
  execution_id: Schema.optionalKey(ExecutionId),
  session_id: Schema.optionalKey(SessionId),
  customer_id: Schema.optionalKey(CustomerId),
  engine_reference: Schema.optionalKey(EngineReference),
  /** For results: the row of the endpoint they came from; absent in bodies from before there were rows. */
  source: Schema.optionalKey(Schema.String),
  http_status: Schema.Int,
  /** Milliseconds since the epoch at which the body was received. */
  received_at: Schema.Int,
})
export type BodyMeta = typeof BodyMeta.Type

/** A frame of a segment, without its bytes. */
export interface LandedBody {
  readonly ref: LandedRef
  readonly meta: BodyMeta
}

/** Bytes of a segment between two offsets. */
export interface LandingDamage {
  readonly segment: string
  readonly from: number
  readonly to: number
}

/** Writing failed: this body does not count as landed; what was landed before is safe. */
export class LandingFailed extends Schema.TaggedError<LandingFailed>()("LandingFailed", {
  path: Schema.String,
  message: Schema.String,
}) {}

/** A body on disk has changed since it was landed: its checksum or its frame is wrong. */
export class LandingDamaged extends Schema.TaggedError<LandingDamaged>()("LandingDamaged", {
  path: Schema.String,
  message: Schema.String,
}) {}

export interface LandedAttachment {
  readonly sha256: string
  readonly bytes: number
  /** Relative to the output folder: `attachments/<sha256>`. */
  readonly path: string
}

export class Landing extends Context.Service<
  Landing,
  {
    /** Resolves once the bytes are written and synced. Concurrent calls share one sync. */
    readonly land: (meta: BodyMeta, bytes: Uint8Array) => Effect.Effect<LandedRef, LandingFailed>
    /**
     * In the order in which they were landed, without what is damaged; a torn tail of a segment ends that
     * segment.
     */
    readonly list: (run_id: RunId) => Effect.Effect<ReadonlyArray<LandedBody>, LandingDamaged>
    /** What the list lacks, because its headers are damaged: nobody can tell which bodies they were of. */
    readonly damage: (run_id: RunId) => Effect.Effect<ReadonlyArray<LandingDamage>, LandingDamaged>
    /** Reads one body back from disk and checks its hash. */
    readonly read: (run_id: RunId, ref: LandedRef) => Effect.Effect<Uint8Array, LandingDamaged>
    /** Streams a document to disk under its own hash, synced; equal documents are stored once. */
    readonly landAttachment: <E>(
      bytes: Stream.Stream<Uint8Array, E>,
    ) => Effect.Effect<LandedAttachment, LandingFailed | E>
    /** Whether a document is still there as it was landed: it is read again from disk, and hashed. */
    readonly hasAttachment: (sha256: string | undefined) => Effect.Effect<boolean>
  }
>()("nightjar/landing/Landing") {}
