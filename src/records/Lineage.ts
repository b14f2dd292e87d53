/**
 * Where a body comes from: the first columns of every row that is made of it, so that each row of each table
 * names its run, the date of the run, task, execution, session, customer and engine.
 */
import type { CustomerId, EngineReference, ExecutionId, RunId, SessionId, TaskId } from "../service/Ids.ts"
import { dateCell } from "./Cells.ts"
import type { Cell } from "./ColumnData.ts"
import type { RecordIds } from "./RecordIdentity.ts"

export interface Lineage {
  readonly run_id: RunId
  /** `YYYY-MM-DD`. */
  readonly run_date: string
  readonly task_id: TaskId
  readonly execution_id: ExecutionId | null
  readonly session_id: SessionId | null
  readonly customer_id: CustomerId | null
  readonly engine_reference: EngineReference | null
}

/** The first cells of a record's rows, in the order of the tables' columns. */
export const lineageCells = (lineage: Lineage, ids: RecordIds): ReadonlyArray<Cell> => [
  lineage.run_id,
  dateCell(lineage.run_date) ?? null,
  lineage.task_id,
  lineage.execution_id,
  lineage.session_id,
  lineage.customer_id,
  lineage.engine_reference,
  ids.record_id,
  ids.content_id,
]
