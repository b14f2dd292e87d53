/**
 * Publishing for simulated runs: the same reading of ledger, landing and records, without files or Promises. What is
 * published outlives the layer as a disk outlives a process; a version takes a little virtual time, so that kills can
 * interrupt it, and becomes visible all at once. It has a history, so that an observer can compare every deletion with what
 * had been published by then.
 */
import { Effect, Layer } from "effect"
import type { ExecutionId, RunId, SessionId } from "../../src/service/Ids.ts"
import type { SourceFinding } from "../../src/task/DrainProof.ts"
import { Landing } from "../../src/landing/Landing.ts"
import { Ledger } from "../../src/ledger/Ledger.ts"
import type { RecordFamily } from "../../src/records/RecordSchema.ts"
import { publishedTables } from "../../src/tables/DataDictionary.ts"
import { deriveRun } from "../../src/tables/DeriveRun.ts"
import { findingsKey } from "../../src/tables/DeriveSession.ts"
import { Publisher, type Interim, type Published } from "../../src/tables/Publisher.ts"
import { loadPicture, onlyOver } from "../../src/tables/RunPicture.ts"
import { outcomeTables, systemTables } from "../../src/tables/SystemTables.ts"

/** A session's newest body as published: its hash, the records found in it, and the rows they became. */
export interface PublishedBody {
  readonly session_id: SessionId
  readonly execution_id: ExecutionId | undefined
  readonly sha256: string
  readonly found: number
  readonly placed: number
  /** Records by `sub_family`, the most that one endpoint's body has. */
  readonly held: ReadonlyMap<string, number>
}

interface PublishedRun {
  readonly version: number
  readonly rows: Readonly<Record<string, number>>
  readonly receipts: Published["receipts"]
  readonly bodies: ReadonlyArray<PublishedBody>
}

interface PublishedVersion {
  readonly run_id: string
  /** When it was answered, in true time. */
  readonly at: number
  /** Executions with a receipt. */
  readonly executions: ReadonlySet<string>
  readonly bodies: ReadonlyArray<PublishedBody>
}

export interface PublishedHistory {
  readonly store: {
    version: number
    readonly runs: Map<string, PublishedRun>
    /** Runs published again after their deletions, by the version that did. */
    readonly outcomes: Map<string, number>
    /** What was published of runs while they went on, in order: the tasks that were whole. */
    readonly interims: Array<{
      readonly run_id: RunId
      readonly version: number
      readonly tasks: ReadonlyArray<string>
    }>
  }
  readonly versions: Array<PublishedVersion>
}

/** How long writing takes, in virtual time: before the version is visible, and before the call returns. */
const writing = Effect.sleep("500 millis")
const answering = Effect.sleep("50 millis")

const heldBy = (sources: ReadonlyArray<SourceFinding>): ReadonlyMap<string, number> => {
  const held = new Map<string, number>()
  for (const { tally } of sources)
    for (const [family, count] of tally.bySubFamily) held.set(family, Math.max(count, held.get(family) ?? 0))
  return held
}

const publishIn = (
  { store, versions }: PublishedHistory,
  families: ReadonlyArray<RecordFamily>,
  now: () => number,
  place: (rows: number) => number,
) =>
  Effect.fn("Publisher.publish")(function* (run_id: RunId) {
    const picture = yield* loadPicture(run_id)
    const derived = yield* deriveRun(picture, { families, tables: systemTables, sink: () => Effect.void })
    const bodies = picture.sessions.flatMap((session): ReadonlyArray<PublishedBody> => {
      const { body, session_id, execution_id } = session
      if (body === undefined) return []
      const { sha256 } = body.ref
      const findings = derived.findings.get(findingsKey(session))
      const counts = findings?.counts
      const held = heldBy(findings?.sources ?? [])
      const placed = (counts?.inTables ?? 0) + (counts?.other ?? 0) + (counts?.rejected ?? 0)
      return [{ session_id, execution_id, sha256, found: counts?.records ?? 0, placed, held }]
    })
    const rows = Object.fromEntries(
      publishedTables(families).map(({ name }) => [name, derived.rows[name] ?? 0]),
    )
    yield* writing
    store.version += 1
    const { version } = store
    store.runs.set(run_id, { version, rows, receipts: derived.brought.receipts, bodies })
    yield* answering
    const { receipts } = derived.brought
    const executions = new Set(receipts.map(({ execution_id }) => String(execution_id)))
    const told = bodies.map((body) => ({ ...body, placed: place(body.placed) }))
    versions.push({ run_id, at: now(), executions, bodies: told })
    return { version, ...derived.brought } satisfies Published as Published
  })

/** Readers get the finished tasks; there are no receipts, so nothing can be deleted because of it. */
const publishInterimIn = ({ store }: PublishedHistory, families: ReadonlyArray<RecordFamily>) =>
  Effect.fn("Publisher.publishInterim")(function* (run_id: RunId, over: ReadonlySet<string>) {
    const { state, ...picture } = onlyOver(yield* loadPicture(run_id), over)
    const options = { families, tables: systemTables, sink: () => Effect.void }
    yield* deriveRun({ ...picture, state }, options)
    yield* writing
    store.version += 1
    const { version } = store
    const tasks = [...state.tasks.values()].flatMap(({ settled, planned }) =>
      settled === undefined ? [] : [planned.task_id],
    )
    store.interims.push({ run_id, version, tasks })
    yield* answering
    return {
      _tag: "InterimPublished",
      run_id,
      version,
      tasks: tasks.length,
      of: state.tasks.size,
    } satisfies Interim as Interim
  })

const publishOutcomeIn = ({ store }: PublishedHistory, families: ReadonlyArray<RecordFamily>) =>
  Effect.fn("Publisher.publishOutcome")(function* (run_id: RunId) {
    const picture = yield* loadPicture(run_id)
    const derived = yield* deriveRun(picture, { families, tables: outcomeTables, sink: () => Effect.void })
    const names = new Set(outcomeTables.map(({ name }) => name))
    const changed = Object.entries(derived.rows).filter(([name]) => names.has(name))
    yield* writing
    store.version += 1
    const known = store.runs.get(run_id)
    if (known !== undefined) {
      const rows = { ...known.rows, ...Object.fromEntries(changed) }
      store.runs.set(run_id, { ...known, version: store.version, rows })
    }
    store.outcomes.set(run_id, store.version)
    yield* answering
  })

export const SimulatedPublisher = {
  makeHistory: (): PublishedHistory => ({
    store: { version: 0, runs: new Map(), outcomes: new Map(), interims: [] },
    versions: [],
  }),
  layer: (
    history: PublishedHistory,
    families: ReadonlyArray<RecordFamily>,
    now: () => number,
    place: (rows: number) => number = (rows) => rows,
  ): Layer.Layer<Publisher, never, Ledger | Landing> =>
    Layer.effect(
      Publisher,
      Effect.gen(function* () {
        const context = yield* Effect.context<Ledger | Landing>()
        const publish = publishIn(history, families, now, place)
        const publishInterim = publishInterimIn(history, families)
        const publishOutcome = publishOutcomeIn(history, families)
        return Publisher.of({
          publish: (run_id) => Effect.provide(publish(run_id), context),
          publishInterim: (run_id, over) => Effect.provide(publishInterim(run_id, over), context),
          publishOutcome: (run_id) => Effect.provide(publishOutcome(run_id), context),
        })
      }),
    ),
}
