/**
 * Publication in a simulated night: no file and no Promise, but the same gate. Every newest body is read back from
 * landing and normalised; a version holds what each execution had landed when it was published.
 */
import { createHash } from "node:crypto"
import { Effect, Layer } from "effect"
import { Landing } from "../../src/landing/Landing.ts"
import type { LandedBody } from "../../src/landing/Landing.ts"
import { Ledger } from "../../src/ledger/Ledger.ts"
import { foldRun } from "../../src/ledger/RunState.ts"
import { PublishFailed, Publisher } from "../../src/publishing/Publisher.ts"
import { Normaliser } from "../../src/records/Normalise.ts"
import type { RecordFamily } from "../../src/records/RecordSchema.ts"

export interface PublishedSession {
  readonly session_id: string
  readonly sha256: string
  readonly kind: "results" | "profile"
  /** Records of the body, and rows that they became in all tables of records. */
  readonly records: number
  readonly placed: number
}

export interface PublishedVersion {
  readonly run_id: string
  readonly at: number
  /** Executions with a receipt, and the hashes of all their landed bodies. */
  readonly executions: ReadonlyMap<string, ReadonlyArray<string>>
  readonly sessions: ReadonlyArray<PublishedSession>
}

export interface PublishedStore {
  readonly versions: Array<PublishedVersion>
}

/** How long publishing takes, in virtual time: long enough to be killed in the middle. */
const publishing = Effect.sleep("3 seconds")

export const SimulatedPublisher = {
  makeStore: (): PublishedStore => ({ versions: [] }),
  layer: (
    store: PublishedStore,
    families: ReadonlyArray<RecordFamily>,
    now: () => number,
    place: (rows: number) => number = (rows) => rows,
  ) =>
    Layer.effect(
      Publisher,
      Effect.gen(function* () {
        const ledger = yield* Ledger
        const landing = yield* Landing
        const publish = Effect.fnUntraced(function* (run_id: string) {
          const state = foldRun(yield* ledger.facts(run_id))
          const frames = yield* landing.list(run_id)
          const hashes = new Map<string, Array<string>>()
          const newest = new Map<string, LandedBody>()
          for (const frame of frames) {
            const { execution_id, session_id, kind } = frame.meta
            yield* landing.read(run_id, frame.ref)
            if (execution_id !== undefined)
              hashes.set(execution_id, [...(hashes.get(execution_id) ?? []), frame.ref.sha256])
            if (session_id === undefined || (kind !== "results" && kind !== "profile")) continue
            if (kind === "results" || newest.get(session_id)?.meta.kind !== "results")
              newest.set(session_id, frame)
          }
          const sessions = []
          for (const [session_id, { meta, ref }] of newest) {
            const bytes = yield* landing.read(run_id, ref)
            const kind = meta.kind === "profile" ? "profile" : "results"
            const { customer_id = null, engine_reference = null, execution_id = null, task_id } = meta
            const lineage = { run_id, task_id, execution_id, session_id, customer_id, engine_reference }
            const counts = new Normaliser(families).addBody(lineage, kind, bytes)
            const placed = place(counts.inTables + counts.other + counts.rejected)
            sessions.push({ session_id, sha256: ref.sha256, kind, records: counts.records, placed } as const)
          }
          yield* publishing
          const closed = [...(state?.tasks.values() ?? [])]
            .flatMap((task) => task.attempts)
            .flatMap(({ closed: end }) => (end?.fact.landed === undefined ? [] : [end.fact.execution_id]))
          const executions = new Map(
            closed.map((execution_id) => [execution_id, hashes.get(execution_id) ?? []]),
          )
          store.versions.push({ run_id, at: now(), executions, sessions })
          const receipts = [...executions].map(([execution_id, sha256s]) => ({
            execution_id,
            landed_sha256: createHash("sha256").update(sha256s.toSorted().join("\n")).digest("hex"),
          }))
          return { version: store.versions.length, rows: {}, receipts }
        })
        const failed = (cause: { readonly message: string }) => new PublishFailed({ message: cause.message })
        return Publisher.of({
          publish: (run_id) => Effect.mapError(publish(run_id), failed),
          publishOutcome: () => publishing,
        })
      }),
    ),
}
