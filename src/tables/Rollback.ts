/**
 * Puts the tables of the previous version back, as a new version that says so. The version that it replaces
 * is kept and nothing is derived or deleted: the next publication continues from that one. No deletion at
 * the service depends on what is published here, because every deletion follows a publication of its run.
 */
import { Effect } from "effect"
import { keptVersions, placeIn } from "./KeptVersions.ts"
import { fileStep, filesOf, withPolicy } from "./Manifest.ts"
import { gapsIn } from "./Standing.ts"
import type { Gap } from "./Standing.ts"
import type { Store } from "./Store.ts"
import { change } from "./Version.ts"
import type { Standing } from "./Version.ts"

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
  const put = Effect.fnUntraced(function* ({ current, newest, version }: Standing) {
    const shown = current.returned?.to ?? current.version
    const target = (yield* fileStep(() => keptVersions(store))).findLast((kept) => kept.version < shown)
    if (target === undefined) return { told: { _tag: "NoEarlierVersion" } satisfies RolledBack as RolledBack }
    const [gap] = yield* fileStep(() => gapsIn(store, filesOf(target), true, placeIn(store)))
    const to = target.version
    if (gap !== undefined)
      return { told: { _tag: "Incomplete", version: to, gap } satisfies RolledBack as RolledBack }
    const { runs, schemas, pseudonyms } = target
    // A version of a run that was not over is not kept: the run is published again when it is.
    const from = newest.interim === true ? to : newest.version
    const without = Object.keys(newest.runs).filter((run_id) => runs[run_id] === undefined)
    return {
      told: { _tag: "RolledBack", version, to, from, without } satisfies RolledBack as RolledBack,
      next: { ...(schemas && { schemas }), ...withPolicy(pseudonyms), runs, returned: { to, from } },
    }
  })
  return (yield* change(store, put)).told
})
