/**
 * How one version of the tables becomes the next: the only way that they change. An edit says whose runs it
 * starts from, what takes their place and what becomes of the version before; all else is the same for all
 * edits.
 */
import { Effect, Struct } from "effect"
import type { DuckDb } from "../base/DuckDb.ts"
import type { Ledger } from "../ledger/Ledger.ts"
import type { FailedGate } from "../ledger/RunFacts.ts"
import { clearStrays, commit, recover } from "./Commit.ts"
import { nextDatabase, withDatabase, type Built } from "./ContinueDatabase.ts"
import { continuedFrom } from "./HeldRuns.ts"
import { withSchemasOf } from "./KeepSchemas.ts"
import { filesNeededBy, keptVersions, newestNamed, replaceKept, sweepKept } from "./KeptVersions.ts"
import { fileStep, type Manifest, type Store } from "./Manifest.ts"
import { parquetOf, sweepParquet } from "./ParquetViews.ts"
import type { PublishFailed } from "./Publisher.ts"
import { restoreKept } from "./RestoreFiles.ts"
import { Instead, takeOut } from "./SharedFile.ts"

export interface Standing {
  readonly current: Manifest
  /** What the next publication continues from: the current version, or the one that a rollback replaced. */
  readonly newest: Manifest
  /** The number of the version that the edit makes. */
  readonly version: number
  /** Files that take the place of lost ones, also in kept versions. */
  readonly restored: Instead
}

/** What takes the place of the current version. */
export interface Edit<Told, Settled> {
  readonly told: Told
  /** The runs of the version and what else its manifest says; absent if there is nothing to publish. */
  readonly next?: Omit<Manifest, "version" | "amends" | "database">
  /** The version before is not kept: this one stands instead of it. */
  readonly isInstead?: boolean
  /** The database is built of files alone, and does not continue the published one. */
  readonly isAnew?: boolean
  /** No file of the published `current/` and `history/` may be in the next ones. */
  readonly isParquetAnew?: boolean
  /**
   * The same edit of each kept version, whose new files are in place. Nothing that is lost is restored then:
   * a database still has the rows that are being removed.
   */
  readonly every?: (kept: Manifest) => Manifest
  /** Asked of the finished database. If one fails, nothing is published. */
  readonly gates?: Effect.Effect<ReadonlyArray<FailedGate>, PublishFailed, Ledger | DuckDb>
  /** What becomes of a database that failed; it is removed otherwise. */
  readonly aside?: Effect.Effect<void, PublishFailed, Ledger | DuckDb>
  /** Done or asked once the version is finished, before it takes its place. */
  readonly settled?: Effect.Effect<Settled, PublishFailed, Ledger | DuckDb>
  /** Files may have been written that the version does not name. */
  readonly leaves?: boolean
}

const nothingBuilt: Built = { gaps: [], unfit: [], models: [] }

/** Finishes what a crash left, and applies the edit; if it fails, what was current still is. */
export const change = Effect.fn("Version.change")(function* <Told, Settled, E, R>(
  store: Store,
  edit: (standing: Standing) => Effect.Effect<Edit<Told, Settled>, E, R>,
) {
  const current = yield* recover(store)
  const newest = yield* continuedFrom(store, current)
  const version = 1 + Math.max(current.version, yield* fileStep(() => newestNamed(store)))
  const restored = new Instead()
  const staging = Effect.gen(function* () {
    const asked = yield* edit({ current, newest, version, restored })
    const { told, next, every, gates, aside } = asked
    if (every !== undefined)
      for (const kept of yield* fileStep(() => keptVersions(store))) yield* replaceKept(store, every(kept))
    const nothing = { next: undefined, settled: undefined, built: nothingBuilt, failed: [] }
    const unchanged = { told, asked, ...nothing }
    if (next === undefined) return unchanged
    const of = { ...next, version, amends: asked.isInstead ?? false }
    const whole = yield* takeOut(store, of)
    const own = yield* withSchemasOf(store, next, current)
    const isAnew = asked.isAnew ?? false
    const restores = every === undefined
    const making = { current, next: whole, isAnew, restored: restores ? restored : undefined }
    const built = yield* nextDatabase(own, making)
    const failed = gates === undefined ? [] : yield* gates
    if (failed.length > 0 && aside !== undefined) yield* aside
    if (failed.length > 0) return { ...unchanged, failed }
    const settled = asked.settled === undefined ? undefined : yield* asked.settled
    const complete = built.next ?? whole
    const mayLink = !isAnew && asked.isParquetAnew !== true
    const parquet = yield* parquetOf(own, { current, next: complete }, built, !mayLink)
    const named = { ...Struct.omit(complete, ["parquet"]), ...(parquet && { parquet }) }
    return { told, asked, built, failed, settled, next: yield* withDatabase(own, named, built) }
  })
  // A failure before the commit leaves nothing behind; what cannot be removed now is removed next time.
  const discarding = Effect.onError(staging, () => Effect.ignore(clearStrays(store, current)))
  const { told, asked, next, built, failed, settled } = yield* discarding
  if (next !== undefined) {
    yield* commit(store, next)
    yield* restoreKept(store, restored)
  }
  if (next === undefined || asked.leaves === true) yield* clearStrays(store, next ?? current)
  if (asked.every !== undefined) {
    yield* sweepKept(store, filesNeededBy(yield* fileStep(() => keptVersions(store))))
    yield* fileStep(() => sweepParquet(store, (one) => one === (next ?? current).parquet?.version))
  }
  const mended = next === undefined ? [] : restored.runsIn(current)
  // No version, if nothing was published.
  return { told, settled, version: next?.version, next, built, failedGates: failed, restored: mended }
})
