/**
 * A published view: its definition, and the columns that dictionary and comments describe. A view costs a
 * statement for itself and one for each column's comment, and nothing that grows with the history.
 */
import { literal } from "../base/DuckDbFailed.ts"
import type { ColumnSpec } from "../records/Columns.ts"

export interface View {
  readonly name: string
  readonly comment: string
  readonly columns: ReadonlyArray<ColumnSpec>
  /** What identifies a row, where the view's own definition makes sure of it. */
  readonly key?: ReadonlyArray<string>
  /** A query with exactly these columns. */
  readonly sql: string
}

/**
 * Runs in the order in which they began, whatever their dates and clocks; the first has number 1. A rerun of
 * an older night reads what is true when it begins, so `read_date` is its own date or that of a newer night
 * before it: it never goes back.
 */
export const runsInOrder =
  "SELECT run_id, run_date, row_number() OVER began AS nth, " +
  "max(run_date) OVER began AS read_date FROM runs " +
  "WINDOW began AS (ORDER BY coalesce(sequence, 0), started_at, run_id ROWS UNBOUNDED PRECEDING)"

/** Sessions that were only read have no engine: each of them is its own newest. */
export const aloneSql = (table: string): string =>
  `CASE WHEN ${table}.engine_reference IS NULL THEN ${table}.session_id END`

/** Equal, or both NULL, in each of these columns. */
export const sameSql = (left: string, right: string, columns: ReadonlyArray<string>): string =>
  columns.map((name) => `${left}.${name} IS NOT DISTINCT FROM ${right}.${name}`).join(" AND ")

export const valuesSql = (rows: ReadonlyArray<ReadonlyArray<string>>): string =>
  `VALUES ${rows.map((row) => `(${row.map(literal).join(", ")})`).join(", ")}`
