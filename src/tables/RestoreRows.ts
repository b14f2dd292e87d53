/**
 * Tables of runs whose landed bodies are gone by age, and whose files are lost: their rows are in the
 * database, if that is the one that was published with the files. They are written as files of the run
 * again, in a version with the same rows.
 */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { sha256Hex } from "../base/Hashes.ts"
import type { RunId } from "../service/Ids.ts"
import type { Connection } from "../base/DuckDb.ts"
import { literal } from "../base/DuckDbFailed.ts"
import { openDatabase } from "./BuildDatabase.ts"
import { isUnchanged } from "./ContinueDatabase.ts"
import { parquetCells, writeParquet } from "./FileColumns.ts"
import { keepsItsSchemas } from "./KeepSchemas.ts"
import { placeOf, publishedTables } from "./DataDictionary.ts"
import { fileStep } from "./Manifest.ts"
import type { Manifest, ManifestFile } from "./Manifest.ts"
import { databaseFailed, PublishFailed } from "./Publisher.ts"
import { temporary } from "./Store.ts"
import type { Store } from "./Store.ts"
import { change } from "./Version.ts"
import type { Standing } from "./Version.ts"

/** The runs among these whose files the database has the rows of, as they were published. */
const restorable = (manifest: Manifest, runs: ReadonlyArray<RunId>): ReadonlyArray<RunId> =>
  runs.filter((run_id) => {
    const run = manifest.runs[run_id]
    return run !== undefined && run.interim !== true && keepsItsSchemas(run, manifest.schemas)
  })

/** All rows of a run in a table, in a file of its own. */
const writeRows = Effect.fnUntraced(function* (
  store: Store,
  connection: Connection,
  { table, rows }: ManifestFile,
  {
    run_id,
    run_date,
    version,
  }: { readonly run_id: RunId; readonly run_date: string; readonly version: number },
) {
  const path = `tables/${table}/run_date=${run_date}/${run_id}-v${version}.parquet`
  const place = join(store.layout.root, temporary(path))
  const { columns = [] } = publishedTables(store.families).find(({ name }) => name === table) ?? {}
  // In the order that files have: of customers and tasks, and of a record's list as it is.
  const order = ["customer_id", "task_id", "session_id", "record_id", "position"].filter((each) =>
    columns.some(({ name }) => name === each),
  )
  const sql = `SELECT ${parquetCells(columns)} FROM ${placeOf(table)} WHERE run_id = ${literal(run_id)}
    ${order.length === 0 ? "" : `ORDER BY ${order.join(", ")}`}`
  const written = yield* writeParquet(store, connection, place, { sql, run_id, version })
  if (written !== rows)
    return yield* new PublishFailed({ message: `${path}: the database has ${written} rows, not ${rows}` })
  return yield* fileStep((): ManifestFile => {
    const bytes = readFileSync(place)
    return { table, path, rows, bytes: bytes.length, sha256: sha256Hex(bytes) }
  })
})

/** Rows of a run by table, of those of its tables that lack a file. */
const lostTables = (files: ReadonlyArray<ManifestFile>, broken: ReadonlySet<string>) =>
  [...Map.groupBy(files, ({ table }) => table).values()].flatMap((ofTable): ReadonlyArray<ManifestFile> => {
    const [first] = ofTable
    if (first === undefined || !ofTable.some(({ path }) => broken.has(path))) return []
    return [{ ...first, rows: ofTable.reduce((sum, { rows }) => sum + rows, 0) }]
  })

/** The runs of a version in which these have files of their own for what is lost. */
const writeRuns = Effect.fnUntraced(
  function* (
    store: Store,
    { current, version }: Standing,
    runs: ReadonlyArray<RunId>,
    broken: ReadonlySet<string>,
  ) {
    const connection = yield* openDatabase(store.layout.database, "read-only")
    const restored: Record<string, Manifest["runs"][string]> = { ...current.runs }
    const fresh = new Set<string>()
    for (const run_id of runs) {
      const run = current.runs[run_id]
      if (run === undefined) continue
      const lost = lostTables(run.files, broken)
      const tables = new Set(lost.map(({ table }) => table))
      const files: Array<ManifestFile> = run.files.filter(({ table }) => !tables.has(table))
      for (const one of lost) {
        const file = yield* writeRows(store, connection, one, { run_id, run_date: run.run_date, version })
        files.push(file)
        fresh.add(file.path)
      }
      restored[run_id] = { ...run, files }
    }
    return { told: runs, next: { ...current, runs: restored }, fresh, isInstead: true }
  },
  Effect.scoped,
  Effect.catchTag("DuckDbFailed", (failure) => Effect.fail(databaseFailed(failure))),
)

/** Returns the runs whose files were written again; `broken` are the paths of files that are lost. */
export const restoreRows = Effect.fn("Publishing.restoreRows")(function* (
  store: Store,
  runs: ReadonlyArray<RunId>,
  broken: ReadonlySet<string>,
) {
  const put = Effect.fnUntraced(function* (standing: Standing) {
    const { current } = standing
    const due = restorable(current, runs)
    if (due.length === 0 || !(yield* isUnchanged(store, current)))
      return { told: [] satisfies ReadonlyArray<RunId> as ReadonlyArray<RunId> }
    return yield* writeRuns(store, standing, due, broken)
  })
  return (yield* change(store, put)).told
})
