/**
 * What is still intact of what was published: later runs must be published even if a file of an earlier one
 * is lost, which is restored (`RestoreFiles.ts`) or left out. A lost manifest is read off the files.
 */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { Effect, Schema } from "effect"
import { given } from "../base/Schemas.ts"
import { sha256Hex } from "../base/Hashes.ts"
import { RunId } from "../service/Ids.ts"
import { literal } from "../base/DuckDbFailed.ts"
import { buildDatabase, inMemory, isOutOfMemory, memoryLimits, type MemoryLimit } from "./BuildDatabase.ts"
import { makeEmptyDatabase } from "./EmptyDatabase.ts"
import { fileStep, filesBelow, filesOf, gapsOf, placeIn, readPath } from "./Manifest.ts"
import { temporary, withFiles } from "./Manifest.ts"
import type { Gap, Manifest, ManifestFile, Store } from "./Manifest.ts"
import { makeModels } from "./Models.ts"
import { familyTables } from "./FileColumns.ts"
import type { PublishFailed } from "./Publisher.ts"
import { runsTable } from "./SystemTables.ts"
import { PseudonymPolicy, isSamePolicy, policyInFile } from "./Treatments.ts"

/** By run: the tables that cannot be told any more. A record is nothing without its lists, or its run. */
export const lostTables = (
  { runs }: Manifest,
  gaps: ReadonlyArray<Gap>,
  families: Store["families"],
): ReadonlyMap<string, ReadonlySet<string>> => {
  const paths = new Set(gaps.map(({ path }) => path))
  return new Map(
    Object.entries(runs).map(([run_id, { files }]) => {
      const missing = files.filter(({ path }) => paths.has(path))
      const tables = missing.some(({ table }) => table === runsTable.name) ? files : missing
      const related = tables.flatMap(({ table }) => familyTables(families, table))
      return [run_id, new Set([...tables.map(({ table }) => table), ...related])]
    }),
  )
}

/** The manifest of everything that can be built. */
export const withoutTables = (manifest: Manifest, lost: ReturnType<typeof lostTables>): Manifest =>
  withFiles(manifest, (run_id, files) => files.filter(({ table }) => lost.get(run_id)?.has(table) !== true))

/** The runs that lack a file. */
export const runsWithout = (manifest: Manifest, gaps: ReadonlyArray<Gap>): ReadonlyArray<string> => {
  const paths = new Set(gaps.map(({ path }) => path))
  return Object.entries(manifest.runs).flatMap(([run_id, { files }]) =>
    files.some(({ path }) => paths.has(path)) ? [run_id] : [],
  )
}

interface Placed {
  readonly run_id: RunId
  readonly run_date: string
  readonly version: number
  readonly file: ManifestFile
  readonly policy: PseudonymPolicy | undefined
}

/** A manifest of the existing Parquet files, if the one that listed them is lost. */
export const readOffFiles = Effect.fnUntraced(function* ({ layout }: Store) {
  const placed: Array<Placed> = []
  for (const path of filesBelow(layout.tables).map((name) => `tables/${name}`)) {
    const place = readPath(path)
    const found = place && (yield* readOffFile(join(layout.root, path), place))
    if (place === undefined || found === undefined) continue
    const { table, version } = place
    const { runs, policy } = found
    const bytes = yield* fileStep(() => readFileSync(join(layout.root, path)))
    const all = runs.reduce((sum, { rows }) => sum + rows, 0)
    const file = { table, path, bytes: bytes.length, sha256: sha256Hex(bytes) }
    for (const { run_id, run_date, rows } of runs) {
      const common = place.own === undefined ? { file_rows: all } : {}
      const named = { ...file, rows, ...common }
      placed.push({ run_id: RunId.make(run_id), run_date, version, file: named, policy })
    }
  }
  const newest = placed.toSorted((a, b) => a.version - b.version).at(-1)
  // Rows that name the customers never stand beside others: `repair` derives what is left out so.
  const alike = placed.filter(({ policy }) => isSamePolicy(policy, newest?.policy))
  const runs = Map.groupBy(alike, ({ run_id }) => run_id)
  return {
    version: newest?.version ?? 0,
    amends: false,
    ...given({ pseudonyms: newest?.policy }),
    runs: Object.fromEntries([...runs].map(([run_id, own]) => [run_id, newestOf(own)])),
  } satisfies Manifest as Manifest
})

/** Files that a crash left beside the current version are older than it. */
const newestOf = (own: ReadonlyArray<Placed>): Manifest["runs"][string] => {
  const newest = new Map<string, number>()
  for (const { file, version } of own) newest.set(file.table, Math.max(version, newest.get(file.table) ?? 0))
  const files = own.filter(({ file, version }) => newest.get(file.table) === version).map(({ file }) => file)
  return { run_date: own[0]?.run_date ?? "", version: Math.max(...newest.values()), files }
}

const decodePolicy = Schema.decodeUnknownSync(Schema.fromJsonString(PseudonymPolicy))

/** Its rows by run, and what they have in place of the customers; undefined if the file cannot be read. */
const readOffFile = Effect.fnUntraced(
  function* (path: string, { own }: NonNullable<ReturnType<typeof readPath>>) {
    const connection = yield* inMemory
    const [what, end] =
      own === undefined
        ? ["run_id, any_value(run_date)::VARCHAR AS run_date", "GROUP BY run_id ORDER BY run_id"]
        : [`${literal(own.run_id)} AS run_id, ${literal(own.run_date)} AS run_date`, ""]
    const rows = yield* connection.rows(
      `SELECT ${what}, count(*)::INTEGER AS n FROM read_parquet(?, hive_partitioning = false) ${end}`,
      [path],
    )
    const [said] = yield* connection.rows(
      "SELECT decode(value) AS policy FROM parquet_kv_metadata($1) WHERE decode(key) = $2",
      [path, policyInFile],
    )
    const policy = said?.["policy"]
    return {
      policy: typeof policy === "string" ? decodePolicy(policy) : undefined,
      runs: rows.map(({ run_id, run_date, n }) => ({
        run_id: String(run_id),
        run_date: String(run_date),
        rows: Number(n),
      })),
    }
  },
  Effect.scoped,
  Effect.orElseSucceed(() => undefined),
)

/** No build may start from what an earlier one left; up to version 0.17, an empty database was kept, too. */
export const clearBuild = ({ layout, files }: Store): void => {
  files.remove(join(layout.root, "published/empty"))
  for (const ending of ["", ".wal", ".tmp", ".rows"]) files.remove(`${layout.build}${ending}`)
}

/** A version that is to be built. */
export interface Sought {
  readonly next: Manifest
  /** Its files that are lost. */
  readonly gaps: ReadonlyArray<Gap>
}

/**
 * Builds the database from all intact files of a version, and returns what had to be left out: files, and
 * values that do not fit a type that has changed. What is lost is restored first, as far as `restore` can.
 */
export const buildStanding = Effect.fnUntraced(function* <R>(
  store: Store,
  sought: Manifest,
  restore: (lost: Sought) => Effect.Effect<Sought, PublishFailed, R>,
) {
  const buildWithin = Effect.fnUntraced(function* ({ next, gaps }: Sought, memoryLimit: MemoryLimit) {
    yield* fileStep(() => clearBuild(store))
    yield* makeEmptyDatabase(store)
    const lost = lostTables(next, gaps, store.families)
    return yield* buildDatabase(store, withoutTables(next, lost), { lost, memoryLimit })
  })
  const build = (whole: Sought) =>
    memoryLimits
      .slice(1)
      .reduce(
        (building, more) => Effect.catchIf(building, isOutOfMemory, () => buildWithin(whole, more)),
        buildWithin(whole, memoryLimits[0]),
      )
  const restoredIn = Effect.fnUntraced(function* (next: Manifest, thoroughly: boolean) {
    // Without those that have just been written there is nothing to publish.
    const earlier = filesOf(next).filter((file) => placeIn(store)(file) !== temporary(file.path))
    return yield* restore({ next, gaps: yield* gapsOf(store, earlier, thoroughly) })
  })
  const there = yield* restoredIn(sought, false)
  const built = yield* Effect.result(build(there))
  if (built._tag === "Success") return { ...there, unfit: built.success, models: yield* makeModels(store) }
  // An existing file may contain something other than what was published.
  const intact = yield* restoredIn(there.next, true)
  return { ...intact, unfit: yield* build(intact), models: yield* makeModels(store) }
})
