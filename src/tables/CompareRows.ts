/**
 * Which rows of one run differ between two sets of its Parquet files, table by table. Values are compared as
 * text, so that a column whose type changed can be compared too; a column that one side lacks is NULL there.
 */
import { join } from "node:path"
import { Effect } from "effect"
import { DuckDb } from "../base/DuckDb.ts"
import type { Connection } from "../base/DuckDb.ts"
import { identifier, literal } from "../base/DuckDbFailed.ts"
import type { RecordFamily } from "../records/RecordSchema.ts"
import { publishedTables } from "./DataDictionary.ts"
import type { ManifestFile } from "./Manifest.ts"
import { databaseFailed } from "./Publisher.ts"

/** `added` and `gone` count rows; one that changed counts in both. */
export interface RowChange {
  readonly table: string
  readonly before: number
  readonly after: number
  readonly added: number
  readonly gone: number
}

interface Side {
  readonly files: ReadonlyArray<ManifestFile>
  /** Where a file is now, below `root`. */
  readonly standsAt: (file: ManifestFile) => string
}

const rowsOf = (files: ReadonlyArray<ManifestFile>): number => files.reduce((sum, { rows }) => sum + rows, 0)

const columnsIn = Effect.fnUntraced(function* (connection: Connection, source: string) {
  return new Set((yield* connection.columnTypes(`SELECT * FROM ${source}`)).map(({ name }) => name))
})

const sourceOf = (root: string, { files, standsAt }: Side, run_id: string): string =>
  `read_parquet([${files.map((file) => literal(join(root, standsAt(file)))).join(", ")}],
    union_by_name = true, hive_partitioning = false) WHERE run_id = ${literal(run_id)}`

/** The tables of one run that differ, in the order of the data dictionary. */
export const compareRows = Effect.fn("Publishing.compareRows")(
  function* (
    root: string,
    families: ReadonlyArray<RecordFamily>,
    run_id: string,
    { before, after }: { readonly before: Side; readonly after: Side },
  ) {
    const duckdb = yield* DuckDb
    const connection = yield* duckdb.open({ path: ":memory:", access: "read-write", threads: 1 })
    // Tables of families that have no schema now come last.
    const known = publishedTables(families).map(({ name }) => name)
    const names = new Set([...known, ...before.files.map(({ table }) => table)])
    const changes: Array<RowChange> = []
    for (const table of names) {
      const ofTable = ({ files, standsAt }: Side): Side => ({
        standsAt,
        files: files.filter((file) => file.table === table),
      })
      const [old, now] = [ofTable(before), ofTable(after)]
      const rows = { before: rowsOf(old.files), after: rowsOf(now.files) }
      const differ =
        rows.before === 0 || rows.after === 0
          ? { added: rows.after, gone: rows.before }
          : yield* differences(connection, sourceOf(root, old, run_id), sourceOf(root, now, run_id))
      if (differ.added + differ.gone > 0) changes.push({ table, ...rows, ...differ })
    }
    return changes as ReadonlyArray<RowChange>
  },
  Effect.scoped,
  Effect.catchTag("DuckDbFailed", (failure) => Effect.fail(databaseFailed(failure))),
)

const differences = Effect.fnUntraced(function* (connection: Connection, old: string, now: string) {
  const [inOld, inNow] = [yield* columnsIn(connection, old), yield* columnsIn(connection, now)]
  const columns = [...new Set([...inOld, ...inNow])]
  const select = (source: string, present: ReadonlySet<string>) =>
    `SELECT ${columns
      .map((name) => (present.has(name) ? `CAST(${identifier(name)} AS VARCHAR)` : "NULL::VARCHAR"))
      .join(", ")} FROM ${source}`
  const [before, after] = [select(old, inOld), select(now, inNow)]
  const [row] = yield* connection.rows(
    `SELECT (SELECT count(*) FROM (${after} EXCEPT ALL ${before}))::INTEGER AS added,
      (SELECT count(*) FROM (${before} EXCEPT ALL ${after}))::INTEGER AS gone`,
  )
  return { added: Number(row?.["added"]), gone: Number(row?.["gone"]) }
})
