/**
 * Which rows of published Parquet files are about a customer: those of the customer's tasks, and those that
 * name the customer. A file of an older version may lack a column, so each table is asked by the columns
 * that its files have.
 */
import { existsSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import type { Connection } from "../base/DuckDb.ts"
import { identifier, literal } from "../base/DuckDbFailed.ts"
import type { Forgotten } from "../ledger/ForgetCustomer.ts"
import { parquetRows } from "./FileColumns.ts"
import { placeIn } from "./KeptVersions.ts"
import type { ManifestFile } from "./Manifest.ts"
import type { Store } from "./Store.ts"

/** A condition over these columns; undefined if none of them names a customer, directly or by an id. */
export const aboutCustomer = (
  columns: ReadonlySet<string>,
  { customer_id, tasks, executions }: Forgotten,
): string | undefined => {
  const within = (column: string, values: Iterable<string>): ReadonlyArray<string> => {
    const list = [...values].map(literal)
    return columns.has(column) && list.length > 0 ? [`${identifier(column)} IN (${list.join(", ")})`] : []
  }
  const direct = [...within("task_id", tasks), ...within("customer_id", [customer_id])]
  // An id of the service may be given again later, to somebody else: it decides only where nothing else does.
  const parts = direct.length > 0 ? direct : within("execution_id", executions)
  return parts.length === 0 ? undefined : `coalesce(${parts.join(" OR ")}, false)`
}

/** By path and run: how many rows of the file are about the customer; files without one are left out. */
export const rowsOfCustomer = Effect.fnUntraced(function* (
  store: Store,
  connection: Connection,
  files: ReadonlyArray<ManifestFile>,
  forgotten: Forgotten,
) {
  const found = new Map<string, Map<string, number>>()
  const standsAt = placeIn(store)
  for (const [, ofTable] of Map.groupBy(files, ({ table }) => table)) {
    const places = new Map(
      ofTable.map((file) => [join(store.layout.root, standsAt(file)), file.path] as const),
    )
    const paths = [...places.keys()].filter((path) => existsSync(path))
    if (paths.length === 0) continue
    const columns = yield* connection.columnTypes(`SELECT * FROM ${parquetRows(paths)}`)
    const condition = aboutCustomer(new Set(columns.map(({ name }) => name)), forgotten)
    if (condition === undefined) continue
    const rows = yield* connection.rows(
      `SELECT place, run_id, count(*)::INTEGER AS n FROM ${parquetRows(paths, ", filename = 'place'")}
        WHERE ${condition} GROUP BY place, run_id`,
    )
    for (const { place, run_id, n } of rows) {
      const path = places.get(String(place)) ?? ""
      found.set(path, (found.get(path) ?? new Map<string, number>()).set(String(run_id), Number(n)))
    }
  }
  return found as ReadonlyMap<string, ReadonlyMap<string, number>>
})
