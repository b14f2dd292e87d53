/**
 * Keeps the record schemas in force under `schemas/`: one file per table and text, never changed. The
 * manifest names their versions and hashes, so that tables can be read and derived again when a schema is
 * gone, and a lost file is written again only with the text that it had.
 */
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { isDeepStrictEqual } from "node:util"
import { Effect } from "effect"
import { durableFiles, modesOf } from "../base/DurableFile.ts"
import { sha256Hex } from "../base/Hashes.ts"
import type { ReadSchema } from "../records/RecordSchema.ts"
import { keptName, keptOf, schemasOfTables } from "../records/SchemasInForce.ts"
import { newestDerived } from "./KeptVersions.ts"
import { fileStep, filesBelow, layoutOf, readManifest } from "./Manifest.ts"
import type { Layout, Manifest, Store } from "./Manifest.ts"
import { standingIn, type PublisherOptions } from "./OpenStore.ts"

/** Version by table. */
type Versions = Readonly<Record<string, number>>

const hashIn = (folder: string, name: string): string | undefined =>
  existsSync(join(folder, name)) ? sha256Hex(readFileSync(join(folder, name))) : undefined

/** The names of the files that these versions of the tables, and the runs in them, were derived with. */
const namesIn = (manifests: ReadonlyArray<Manifest>): ReadonlyArray<string> => {
  const all = manifests.flatMap(({ schemas, runs }) => [
    schemas,
    ...Object.values(runs).map((run) => run.schemas),
  ])
  const named = all.flatMap((versions = {}) => Object.entries(versions))
  return [...new Set(named.map(([table, version]) => keptName(table, version)))]
}

/** The versions of each table, the one in force first, then the newest. A lost one keeps its number. */
const knownVersions = (folder: string, current: Manifest): ReadonlyMap<string, ReadonlyArray<number>> => {
  const { schemas: inForce = {}, schema_files = {} } = current
  const names = new Set([...filesBelow(folder), ...Object.keys(schema_files), ...namesIn([current])])
  const known = Map.groupBy(
    [...names].flatMap((name) => keptOf(name) ?? []),
    ({ table }) => table,
  )
  return new Map(
    [...known].map(([table, all]) => {
      const isFirst = (version: number) => Number(version === inForce[table])
      const versions = all.map(({ version }) => version)
      return [table, versions.toSorted((a, b) => isFirst(b) - isFirst(a) || b - a)]
    }),
  )
}

/** Writes every text that is not kept yet, or whose file is lost, and returns the versions in force. */
export const keepSchemas = ({ layout, files, modes, schemas }: Store, current: Manifest) =>
  fileStep((): Versions => {
    const folder = layout.schemas
    const known = knownVersions(folder, current)
    files.makeFolder(folder, modes.folder)
    const inForce = [...schemas.texts].map(([table, text]) => {
      const versions = known.get(table) ?? []
      const hash = sha256Hex(text)
      const hashOf = (version: number): string | undefined => {
        const name = keptName(table, version)
        return current.schema_files?.[name] ?? hashIn(folder, name)
      }
      const version = versions.find((version) => hashOf(version) === hash) ?? Math.max(0, ...versions) + 1
      const path = join(folder, keptName(table, version))
      if (hashIn(folder, keptName(table, version)) !== hash) files.replace(path, text, modes.file)
      return [table, version] as const
    })
    return Object.fromEntries(inForce)
  })

/**
 * The store with the schemas that a version names. Those that a job has, or that the current version has, are
 * other ones if a version stays as it is, or comes back, that was made with others.
 */
export const withSchemasOf = Effect.fn("Publishing.withSchemasOf")(function* (
  store: Store,
  { schemas }: Pick<Manifest, "schemas">,
  { schema_files = {} }: Manifest,
) {
  const { layout } = store
  if (schemas === undefined) return store
  const isOwn = yield* fileStep(() => {
    const names = Object.entries(schemas).map(([table, version]) => keptName(table, version))
    const hashes = new Set(names.map((name) => schema_files[name] ?? hashIn(layout.schemas, name)))
    const { texts } = store.schemas
    return texts.size === names.length && [...texts.values()].every((text) => hashes.has(sha256Hex(text)))
  })
  if (isOwn) return store
  const folders = { package: layout.schemas, own: undefined, kept: layout.schemas }
  const inForce = schemasOfTables(folders, { schemas, schema_files })
  // Those that are lost, `repair` writes again.
  return yield* Effect.match(inForce, {
    onSuccess: (found): Store => ({ ...store, families: found.families, schemas: found }),
    onFailure: () => store,
  })
})

/** With the hash of each kept file that it names; one that is known stays, whatever the file is now. */
export const namingSchemaFiles = ({ layout }: Pick<Store, "layout">, next: Manifest) =>
  fileStep((): Manifest => {
    const known = readManifest(layout.manifest)?.schema_files ?? {}
    const added = namesIn([next]).flatMap((name) => {
      const hash = known[name] === undefined ? hashIn(layout.schemas, name) : undefined
      return hash === undefined ? [] : [[name, hash] as const]
    })
    const schema_files = { ...known, ...Object.fromEntries(added) }
    return Object.keys(schema_files).length === 0 ? next : { ...next, schema_files }
  })

export interface LostSchema {
  readonly name: string
  readonly state: "missing" | "changed"
  /** What it has to be; undefined if no version said so. */
  readonly sha256: string | undefined
}

/**
 * The kept files that a version names, or the one that the next publication continues from, and that are not
 * there as they were written.
 */
export const lostSchemas = (
  layout: Layout,
  { current, newest }: { readonly current: Manifest; readonly newest: Manifest },
): ReadonlyArray<LostSchema> =>
  namesIn([current, newest]).flatMap((name): ReadonlyArray<LostSchema> => {
    const [found, sha256] = [hashIn(layout.schemas, name), current.schema_files?.[name]]
    if (found === undefined) return [{ name, state: "missing", sha256 }]
    return sha256 === undefined || found === sha256 ? [] : [{ name, state: "changed", sha256 }]
  })

/** Whether a run was derived with other schemas than those in force; unknown for runs of older versions. */
export const isOfOtherSchemas = (
  { schemas }: { readonly schemas?: Versions },
  inForce: Versions | undefined,
): boolean => schemas !== undefined && inForce !== undefined && !isDeepStrictEqual(schemas, inForce)

// Kept schemas that are lost, written again with the text that they had: the program or a job of this folder
// often still has it. Comes before anything is read.

/** Returns the names of what was written; each source is asked only while something is lost. */
export const repairSchemas = Effect.fn("Publishing.repairSchemas")(function* <E, R>(
  { root, share }: Pick<PublisherOptions, "root" | "share">,
  sources: ReadonlyArray<Effect.Effect<ReadonlyArray<Pick<ReadSchema, "text">>, E, R>>,
) {
  const layout = layoutOf(root)
  const modes = modesOf(share)
  const files = yield* durableFiles
  const current = yield* standingIn(layout)
  if (current === undefined) return []
  const newest = newestDerived({ layout }, current)
  const written: Array<string> = []
  for (const source of sources) {
    const lost = yield* fileStep(() => lostSchemas(layout, { current, newest }))
    if (lost.length === 0) break
    const texts = new Map((yield* source).map(({ text }) => [sha256Hex(text), text]))
    yield* fileStep(() => {
      files.makeFolder(layout.schemas, modes.folder)
      for (const { name, sha256 = "" } of lost) {
        const text = texts.get(sha256)
        if (text === undefined) continue
        const path = join(layout.schemas, name)
        files.replace(path, text, modes.file)
        written.push(name)
      }
    })
  }
  return written as ReadonlyArray<string>
})
