/**
 * Which rows of which runs are written again when a customer is forgotten, and what takes their place: by run
 * and file, because a file may hold rows of several runs.
 */
import type { Manifest, ManifestFile } from "./Manifest.ts"

/** What takes the place of a run's rows in a file, or `undefined` if none is left. */
export class Replaced {
  readonly #files = new Map<string, ManifestFile | undefined>()
  readonly #key = (run_id: string, path: string): string => `${run_id} ${path}`

  set(run_id: string, path: string, file: ManifestFile | undefined): void {
    this.#files.set(this.#key(run_id, path), file)
  }

  has(run_id: string, { path }: ManifestFile): boolean {
    return this.#files.has(this.#key(run_id, path))
  }

  get(run_id: string, file: ManifestFile): ManifestFile | undefined {
    return this.has(run_id, file) ? this.#files.get(this.#key(run_id, file.path)) : file
  }

  hasAnyOf({ runs }: Manifest): boolean {
    return Object.entries(runs).some(([run_id, { files }]) => files.some((file) => this.has(run_id, file)))
  }
}

export interface Group {
  readonly run_id: string
  readonly run_date: string
  readonly files: ReadonlyArray<ManifestFile>
}

/** The files of one table of one run in one version; versions that share them share the group. */
export const groupsOf = (manifests: ReadonlyArray<Manifest>): ReadonlyArray<Group> => {
  const groups = new Map<string, Group>()
  for (const { runs } of manifests)
    for (const [run_id, { run_date, files }] of Object.entries(runs))
      for (const [, ofTable] of Map.groupBy(files, ({ table }) => table))
        groups.set([run_id, ...ofTable.map(({ path }) => path)].join(), {
          run_id,
          run_date,
          files: ofTable,
        })
  return [...groups.values()]
}

/** A version without the rows that are gone. */
export const withReplaced = (manifest: Manifest, replaced: Replaced): Manifest => ({
  ...manifest,
  runs: Object.fromEntries(
    Object.entries(manifest.runs).map(([run_id, run]) => [
      run_id,
      {
        ...run,
        files: run.files.flatMap((file) => replaced.get(run_id, file) ?? []),
      },
    ]),
  ),
})
