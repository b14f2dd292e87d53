/**
 * Which published table belongs to which, and by which columns: from a run down to the lists of a record. The
 * catalogue page draws it. Pure.
 */
import { otherRecordsTable, rejectedRecordsTable } from "../records/RecordTables.ts"
import type { RecordFamily } from "../records/RecordSchema.ts"

/** Every row of `table` whose `columns` are not NULL has its row in `of`. */
export interface Relation {
  readonly table: string
  readonly of: string
  readonly columns: ReadonlyArray<string>
}

const task = ["run_id", "task_id"]
const execution = [...task, "execution_id"]
const session = [...task, "session_id"]
const record = [...session, "record_id"]

const systemRelations: ReadonlyArray<readonly [string, string, ReadonlyArray<string>]> = [
  ["tasks", "runs", ["run_id"]],
  ["engine_descriptions", "runs", ["run_id"]],
  ["executions", "tasks", task],
  ["coverage", "tasks", task],
  ["execution_features", "executions", execution],
  ["execution_messages", "executions", execution],
  ["execution_errors", "executions", execution],
  ["products_count", "executions", execution],
  ["deletions", "executions", execution],
  ["sessions", "tasks", task],
  ["consents", "sessions", session],
  ["consent_documents", "consents", session],
  ["attachments", "sessions", session],
  ["documents", "sessions", session],
  [otherRecordsTable.name, "sessions", session],
  [rejectedRecordsTable.name, "sessions", session],
]

/** Each table after the one that it belongs to. */
export const relationsOf = (families: ReadonlyArray<RecordFamily>): ReadonlyArray<Relation> => [
  ...systemRelations.map(([table, of, columns]) => ({ table, of, columns })),
  ...families.flatMap(({ table, children }) => [
    { table, of: "sessions", columns: session },
    ...children.map((child) => ({ table: child.table, of: table, columns: record })),
  ]),
]
