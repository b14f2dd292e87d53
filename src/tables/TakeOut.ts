/**
 * Rows of a run stand in one place. If a run whose rows share a file with those of others is published again,
 * the file is written again without them, in the same version: whoever reads all files reads no row twice.
 */
import { join } from "node:path"
import { Effect } from "effect"
import { placeIn } from "./KeptVersions.ts"
import { fileStep, filesOf } from "./Manifest.ts"
import type { Manifest, ManifestFile } from "./Manifest.ts"
import { monthOf, monthPath } from "./MonthFiles.ts"
import type { RunPart } from "./MonthFiles.ts"
import { databaseFailed } from "./Publisher.ts"
import { inMemory, writeShared } from "./SharedFile.ts"
import { gapsIn } from "./Standing.ts"
import { temporary } from "./Store.ts"
import type { Store } from "./Store.ts"

/** By run and path: the entries that take the place of those with this path. */
export type Instead = ReadonlyMap<string, ReadonlyMap<string, ManifestFile>>

/** A manifest whose runs name other files; several that become one are named once. */
export const withInstead = (manifest: Manifest, instead: Instead): Manifest => ({
  ...manifest,
  runs: Object.fromEntries(
    Object.entries(manifest.runs).map(([run_id, run]) => {
      const own = instead.get(run_id)
      if (own === undefined) return [run_id, run]
      const files = new Map(
        run.files.map((file) => own.get(file.path) ?? file).map((file) => [file.path, file]),
      )
      return [run_id, { ...run, files: [...files.values()] }]
    }),
  ),
})

/** What the runs of a manifest have in a file, in the order of date and run. */
export const partsOf = ({ runs }: Manifest, path: string): ReadonlyArray<RunPart> =>
  Object.entries(runs)
    .flatMap(([run_id, { run_date, files }]) =>
      files.flatMap((file) => (file.path === path ? [{ run_id, run_date, rows: file.rows }] : [])),
    )
    .toSorted((one, other) =>
      `${one.run_date} ${one.run_id}` < `${other.run_date} ${other.run_id}` ? -1 : 1,
    )

/** Files that hold rows of runs that do not name them, or not any more. */
const tooLarge = (manifest: Manifest): ReadonlyArray<ManifestFile> => {
  const named = new Map<string, number>()
  for (const { files } of Object.values(manifest.runs))
    for (const { path, rows } of files) named.set(path, (named.get(path) ?? 0) + rows)
  return filesOf(manifest).filter(
    ({ path, file_rows }) => file_rows !== undefined && named.get(path) !== file_rows,
  )
}

/**
 * The manifest with files that hold the rows of their runs and no other, and its files with temporary names:
 * `fresh` and the new ones. A file that is missing or damaged stays named: it is reported, and its runs are
 * derived again.
 */
export const takeOut = Effect.fn("Publishing.takeOut")(function* (
  store: Store,
  next: Manifest,
  fresh: ReadonlySet<string>,
) {
  const { root } = store.layout
  const due = tooLarge(next)
  if (due.length === 0) return { next, fresh }
  const instead = new Map<string, Map<string, ManifestFile>>()
  const paths = new Set(fresh)
  const connection = yield* Effect.mapError(inMemory, databaseFailed)
  for (const file of due) {
    if ((yield* fileStep(() => gapsIn(store, [file], true, placeIn(store)))).length > 0) continue
    const parts = partsOf(next, file.path)
    const { table } = file
    const month = monthOf(parts[0]?.run_date ?? "")
    const path = monthPath({ table, month }, next.version, paths)
    const written = yield* writeShared(
      store,
      connection,
      { table, month, parts, sources: [file] },
      { path, version: next.version, place: temporary(join(root, path)) },
    )
    for (const [run_id, entry] of written) {
      const own = instead.get(run_id) ?? new Map<string, ManifestFile>()
      instead.set(run_id, own.set(file.path, entry))
    }
  }
  return { next: withInstead(next, instead), fresh: paths as ReadonlySet<string> }
}, Effect.scoped)
