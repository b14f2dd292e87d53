/**
 * Puts the tables of the previous version back, as a new version that says so. The version that it replaces
 * is kept and nothing is derived or deleted: the next publication continues from that one. No deletion at
 * the service depends on what is published here, because every deletion follows a publication of its run.
 */
import { existsSync } from "node:fs"
import { Effect } from "effect"
import { databaseVersion, renumberDatabase } from "./BuildDatabase.ts"
import { commit, discarding, recover } from "./Commit.ts"
import { isKeptDatabaseDamaged, keptVersions, newestDerived, placeIn } from "./KeptVersions.ts"
import { fileStep, filesOf, withPolicy } from "./Manifest.ts"
import type { Manifest } from "./Manifest.ts"
import { buildStanding, gapsIn } from "./Standing.ts"
import type { Gap } from "./Standing.ts"
import type { Store } from "./Store.ts"

export type RolledBack =
  | {
      readonly _tag: "RolledBack"
      readonly version: number
      /** Whose tables are published again. */
      readonly to: number
      /** What the next publication continues from. */
      readonly from: number
      /** Runs that are in the newest version and not in this one. */
      readonly without: ReadonlyArray<string>
    }
  | { readonly _tag: "NoEarlierVersion" }
  | { readonly _tag: "Incomplete"; readonly version: number; readonly gap: Gap }

export const rollback = Effect.fn("Publishing.rollback")(function* (store: Store) {
  const current = yield* recover(store)
  const newest = yield* fileStep(() => newestDerived(store, current))
  const shown = current.returned?.to ?? current.version
  const target = (yield* fileStep(() => keptVersions(store))).findLast(({ version }) => version < shown)
  if (target === undefined) return { _tag: "NoEarlierVersion" } satisfies RolledBack as RolledBack
  const [gap] = yield* fileStep(() => gapsIn(store, filesOf(target), true, placeIn(store)))
  const to = target.version
  if (gap !== undefined) return { _tag: "Incomplete", version: to, gap } satisfies RolledBack as RolledBack
  const version = current.version + 1
  const { runs, schemas, pseudonyms } = target
  const ofVersion = { ...(schemas === undefined ? {} : { schemas }), ...withPolicy(pseudonyms) }
  // A version of a run that was not over is not kept: the run is published again when it is.
  const from = newest.interim === true ? to : newest.version
  const returned = { to, from }
  const next: Manifest = { version, amends: false, ...ofVersion, runs, returned }
  yield* discarding(store, current)(placeDatabase(store, next, to))
  yield* commit(store, next)
  const without = Object.keys(newest.runs).filter((run_id) => target.runs[run_id] === undefined)
  const rolledBack: RolledBack = {
    _tag: "RolledBack",
    version,
    to,
    from,
    without,
  }
  return rolledBack
})

/** The database as it was, if it is kept; else one with the same rows. */
const placeDatabase = Effect.fnUntraced(function* (store: Store, next: Manifest, to: number) {
  const { layout, files } = store
  const isKept = existsSync(layout.previousDatabase) && !(yield* isKeptDatabaseDamaged(store))
  if (!isKept || (yield* databaseVersion(layout.previousDatabase)) !== to) {
    yield* buildStanding(store, next, new Set())
    return
  }
  yield* fileStep(() => files.copy(layout.previousDatabase, layout.build))
  yield* renumberDatabase(layout.build, next.version)
})
