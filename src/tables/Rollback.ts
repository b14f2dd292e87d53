/**
 * Puts the tables of an earlier version back, as a new version that says so. The one that it replaces is
 * kept: the next publication continues from it. No deletion depends on what is published here, because every
 * deletion follows a publication of its run.
 */
import { Effect } from "effect"
import { given } from "../base/Schemas.ts"
import { placeOf } from "./DataDictionary.ts"
import { addUp } from "./DeriveSession.ts"
import { keptVersions } from "./KeptVersions.ts"
import { fileStep, filesOf, gapsOf, readManifest } from "./Manifest.ts"
import type { Gap, Manifest, Store } from "./Manifest.ts"
import { restoreFiles } from "./RestoreFiles.ts"
import { change, type Standing } from "./Version.ts"

/**
 * Rows of a table in `tables/`, of all runs: as published, and as they would be. What `main` would show of
 * them is known only once the version is built.
 */
interface TableRows {
  /** With its schema, `nights` or `ops`. */
  readonly table: string
  readonly before: number
  readonly after: number
}

export type RolledBack =
  | {
      readonly _tag: "RolledBack"
      /** Undefined if it is only shown what would be. */
      readonly version: number | undefined
      /** Whose tables are published again. */
      readonly to: number
      /** What the next publication continues from. */
      readonly from: number
      /** Runs that are in the newest version and not in this one. */
      readonly without: ReadonlyArray<string>
      /** Only where nothing is published: the tables that would have other rows than now. */
      readonly tables?: ReadonlyArray<TableRows>
    }
  | { readonly _tag: "NoEarlierVersion" }
  /** The version that was asked for; these are kept. */
  | { readonly _tag: "NotKept"; readonly kept: ReadonlyArray<number> }
  | { readonly _tag: "Incomplete"; readonly version: number; readonly gap: Gap }

const rowsByTable = ({ runs }: Manifest): ReadonlyMap<string, number> =>
  addUp(Object.values(runs).map(({ files }) => files.map(({ table, rows }) => [table, rows] as const)))

const differing = (before: Manifest, after: Manifest): ReadonlyArray<TableRows> => {
  const [one, other] = [rowsByTable(before), rowsByTable(after)]
  return [...new Set([...one.keys(), ...other.keys()])]
    .toSorted()
    .map((table) => ({ table: placeOf(table), before: one.get(table) ?? 0, after: other.get(table) ?? 0 }))
    .filter((each) => each.before !== each.after)
}

export interface KeptVersion {
  readonly version: number
  readonly published: boolean
  /** The version whose tables it has, if a rollback put it into place. */
  readonly of: number | null
  readonly runs: number
  readonly newest_run: string | null
  readonly rows: number
}

const described = (manifest: Manifest, published: boolean): KeptVersion => ({
  version: manifest.version,
  published,
  of: manifest.returned?.to ?? null,
  runs: Object.keys(manifest.runs).length,
  newest_run:
    Object.entries(manifest.runs)
      .toSorted(([, one], [, other]) => one.version - other.version)
      .at(-1)?.[0] ?? null,
  rows: [...rowsByTable(manifest).values()].reduce((sum, rows) => sum + rows, 0),
})

/** The published version, and those that can be put back; newest first. */
export const listVersions = ({ layout }: Pick<Store, "layout">) =>
  fileStep((): ReadonlyArray<KeptVersion> => {
    const current = readManifest(layout.manifest)
    const kept = keptVersions({ layout }).map((manifest) => described(manifest, false))
    return [...kept, ...(current === undefined ? [] : [described(current, true)])].toReversed()
  })

export interface RollbackOptions {
  /** One of the kept versions; the one before what is published, if it is not said. */
  readonly to?: number | undefined
  /** Nothing is published. */
  readonly isDry: boolean
}

export const rollback = Effect.fn("Publishing.rollback")(function* (
  store: Store,
  options: RollbackOptions = { isDry: false },
) {
  const put = Effect.fnUntraced(function* ({ current, newest, version, restored }: Standing) {
    const shown = current.returned?.to ?? current.version
    const kept = yield* fileStep(() => keptVersions(store))
    const target = kept.findLast((one) =>
      options.to === undefined ? one.version < shown : one.version === options.to,
    )
    const only = (told: RolledBack) => ({ told })
    if (target === undefined && options.to === undefined) return only({ _tag: "NoEarlierVersion" })
    if (target === undefined) return only({ _tag: "NotKept", kept: kept.map((one) => one.version) })
    const to = target.version
    const sought = { next: { ...target, version }, gaps: yield* gapsOf(store, filesOf(target)) }
    const found = yield* restoreFiles(store, current, sought, restored)
    const [gap] = found.gaps
    if (gap !== undefined) return only({ _tag: "Incomplete", version: to, gap })
    const { runs, schemas, pseudonyms } = found.next
    // A version of a run that was not over is not kept: the run is published again when it is.
    const from = newest.interim === true ? to : newest.version
    const without = Object.keys(newest.runs).filter((run_id) => runs[run_id] === undefined)
    const published = options.isDry ? undefined : version
    const told = { _tag: "RolledBack" as const, version: published, to, from, without }
    if (options.isDry) return only({ ...told, tables: differing(current, target) })
    const next = { ...given({ schemas, pseudonyms }), runs, returned: { to, from } }
    return { ...only(told), next }
  })
  return (yield* change(store, put)).told
})
