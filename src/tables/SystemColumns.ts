/**
 * What the system tables have in common: the columns that name run, task, execution, session, customer and
 * engine, and the key that every table declares in its comment.
 */
import { actors, outcomes } from "../service/EndTable.ts"
import { column, required } from "../records/Columns.ts"
import type { ColumnSpec, TableSpec } from "../records/Columns.ts"

/** The columns of `key` identify a row; none of them repeats together. */
export interface SystemTable extends TableSpec {
  readonly key: ReadonlyArray<string>
}

export const runDate = required("run_date", "DATE", "The date of the run in the job's time zone.")
export const task = required(
  "task_id",
  "VARCHAR",
  "The task within the run: customer and engine, or session.",
)
export const execution = column("execution_id", "VARCHAR", "The remote execution.")
export const session = column("session_id", "VARCHAR", "The flow session that holds the results.")
export const customer = column("customer_id", "VARCHAR", "The customer's id in the job.")
export const engine: ColumnSpec = {
  ...column("engine_reference", "VARCHAR", "The engine; NULL for a session that was only read."),
  repeats: true,
}
export const position = required("position", "INTEGER", "Position in the list, from 0.")
export const extra = column("extra", "JSON", "Fields that have no column; NULL if there are none.")
/** A column with no other values: they are ours, and a new one is a change of the program. */
export const oneOf = (spec: ColumnSpec, values: ReadonlyArray<string>): ColumnSpec => ({ ...spec, values })
export const actor = oneOf(
  required("who_acts", "VARCHAR", "Who has to act: nobody, customer, engineer or service."),
  actors,
)
export const outcome = oneOf(
  required("outcome", "VARCHAR", "succeeded, partial, failed, skipped or unfinished."),
  outcomes,
)

export const runStatus = oneOf(
  required("status", "VARCHAR", "running; finished; unfinished: ended with something left at the service."),
  ["running", "finished", "unfinished"],
)
export const deletionOutcome = oneOf(
  column("outcome", "VARCHAR", "deleted, gone (the service no longer knew it) or pending."),
  ["deleted", "gone", "pending"],
)

export const time = (name: string, comment: string) => column(name, "TIMESTAMPTZ", comment)
export const text = (name: string, comment: string) => column(name, "VARCHAR", comment)

const run: ColumnSpec = {
  ...required("run_id", "VARCHAR", "The run that the row belongs to."),
  repeats: true,
}

/** Every table begins with its run and its date; `key` is what identifies a row within the run. */
export const table = (
  name: string,
  comment: string,
  key: ReadonlyArray<string>,
  columns: ReadonlyArray<ColumnSpec>,
): SystemTable => ({
  name,
  comment,
  key: [run.name, ...key],
  columns: columns.includes(runDate) ? [run, ...columns] : [run, runDate, ...columns],
})
