/**
 * Lost Parquet files of earlier runs, written again from a database that has their rows: the published or the
 * kept one, if it is the file that was put into place with its version. Landing may be gone by age. Rows that
 * were brought to another schema since are not those of the file, which stays lost then.
 */
import { join } from "node:path"
import { Effect } from "effect"
import { sumOf } from "../base/Text.ts"
import type { DuckDb } from "../base/DuckDb.ts"
import { literal } from "../base/DuckDbFailed.ts"
import { databaseVersion, openDatabase } from "./BuildDatabase.ts"
import { placeOf, publishedTables } from "./DataDictionary.ts"
import { parquetCells, schemaVersionOf, writeParquet } from "./FileColumns.ts"
import { filesNeededBy, keptVersions, replaceKept, sweepKept } from "./KeptVersions.ts"
import { fileStep, fingerprintAt, isThatDatabase, runPath, temporary } from "./Manifest.ts"
import type { Gap, Manifest, ManifestFile, Store } from "./Manifest.ts"
import { inDatabase, PublishFailed } from "./Publisher.ts"
import type { Instead } from "./SharedFile.ts"

/** A version that is to be built. */
export interface Sought {
  readonly next: Manifest
  /** Its files that are lost. */
  readonly gaps: ReadonlyArray<Gap>
}

/** A database, and the version that it was put into place with. */
interface Source {
  readonly path: string
  readonly of: Manifest
}

const sourcesOf = Effect.fnUntraced(function* (store: Store, current: Manifest) {
  const { database, previousDatabase } = store.layout
  const version = yield* databaseVersion(previousDatabase)
  return yield* fileStep((): ReadonlyArray<Source> => {
    const kept = keptVersions(store).filter((one) => one.version === version)
    const all = [{ path: database, of: current }, ...kept.map((of) => ({ path: previousDatabase, of }))]
    return all.filter(({ path, of }) => isThatDatabase(path, of.database))
  })
})

/** All rows of a run in a table that lacks a file. */
interface LostTable {
  readonly run_id: string
  readonly run_date: string
  readonly table: string
  readonly files: ReadonlyArray<ManifestFile>
}

/** Those whose rows a version has from the very files that are lost, in the schema that they had then. */
export const restorable = (
  families: Store["families"],
  { next, gaps }: Pick<Sought, "next" | "gaps">,
  of: Manifest,
  restored: Instead,
): ReadonlyArray<LostTable> => {
  const lost = new Set(gaps.map(({ path }) => path))
  const known = new Set(publishedTables(families).map(({ name }) => name))
  return Object.entries(next.runs).flatMap(([run_id, run]) => {
    const had = new Set(of.runs[run_id]?.files.map(({ path }) => path))
    const tables = [...Map.groupBy(run.files, ({ table }) => table)]
    return tables.flatMap(([table, files]): ReadonlyArray<LostTable> => {
      const isLost = files.some(({ path }) => lost.has(path) && !restored.has(run_id, path))
      if (!isLost || !known.has(table) || !files.every(({ path }) => had.has(path))) return []
      const schema = schemaVersionOf(run, families, table)
      const inForce = of.schemas && schemaVersionOf(of, families, table)
      const isOwn = schema === undefined || of.schemas === undefined || schema === inForce
      return isOwn ? [{ run_id, run_date: run.run_date, table, files }] : []
    })
  })
}

/** The query for these rows; undefined if the database cannot be read, or has another number of them. */
const readableRows = Effect.fnUntraced(
  function* ({ families }: Store, { path }: Source, { run_id, table, files }: LostTable) {
    const connection = yield* openDatabase(path, "read-only")
    const place = placeOf(table)
    const found = new Map(
      (yield* connection.columnTypes(`SELECT * FROM ${place}`)).map((each) => [each.name, each]),
    )
    // All that it has, though another version of the program may have made it, in the order of the files.
    const { columns: spec = [] } = publishedTables(families).find(({ name }) => name === table) ?? {}
    const names = new Set([...spec.map(({ name }) => name), ...found.keys()])
    const columns = [...names].flatMap((name) => found.get(name) ?? [])
    // The rows too: of customers and tasks, and of a record's list as it is.
    const order = ["customer_id", "task_id", "session_id", "record_id", "position"].filter((each) =>
      found.has(each),
    )
    const rows = `SELECT ${parquetCells(columns)} FROM ${place} WHERE run_id = ${literal(run_id)}`
    const [read] = yield* connection.rows(
      `SELECT count(*)::INTEGER AS n, bit_xor(hash(one)) AS h FROM (${rows}) AS one`,
    )
    if (Number(read?.["n"]) !== sumOf(files.map((file) => file.rows))) return undefined
    return order.length === 0 ? rows : `${rows} ORDER BY ${order.join(", ")}`
  },
  Effect.scoped,
  Effect.orElseSucceed(() => undefined),
)

/** The rows in a file of their own, under a temporary name. */
const writeRows = Effect.fnUntraced(function* (
  store: Store,
  source: Source,
  { run_id, run_date, table }: LostTable,
  { version, sql }: { readonly version: number; readonly sql: string },
) {
  const connection = yield* openDatabase(source.path, "read-only")
  const path = runPath({ table, run_id, run_date }, version, new Set())
  const place = join(store.layout.root, temporary(path))
  const rows = yield* writeParquet(store, connection, place, { sql, run_id, version })
  const file: ManifestFile = { table, path, rows, ...(yield* fingerprintAt(place)) }
  return file
}, inDatabase)

/**
 * What is sought with new files, under temporary names, for what is lost and can be restored: `restored` says
 * which. `gaps` are the files that stay lost. Fails only if a file cannot be written.
 */
export const restoreFiles = Effect.fn("Publishing.restoreFiles")(function* (
  store: Store,
  current: Manifest,
  sought: Sought,
  restored: Instead,
): Effect.fn.Return<Sought, PublishFailed, DuckDb> {
  if (sought.gaps.length === 0) return sought
  const { version } = sought.next
  for (const source of yield* sourcesOf(store, current))
    for (const lost of restorable(store.families, sought, source.of, restored)) {
      const sql = yield* readableRows(store, source, lost)
      if (sql === undefined) continue
      const file = yield* writeRows(store, source, lost, { version, sql })
      for (const { path } of lost.files) restored.set(lost.run_id, path, file)
    }
  const next = restored.in(sought.next)
  const named = filesNeededBy([next])
  return { next, gaps: sought.gaps.filter(({ path }) => named.has(path)) }
})

/** The versions that `rollback` can put back name the new files too. */
export const restoreKept = Effect.fnUntraced(function* (store: Store, restored: Instead) {
  if (restored.isEmpty) return
  const all = (yield* fileStep(() => keptVersions(store))).map((one) => restored.in(one))
  for (const one of all) yield* replaceKept(store, one)
  yield* sweepKept(store, filesNeededBy(all))
})
