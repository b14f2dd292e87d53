/**
 * Rows of one attempt: `executions`, and what its newest landed state says (section 2.4). Pure. `input` of a
 * refused field is never read.
 */
import type { RunId } from "../service/Ids.ts"
import { cutText } from "../service/BodyBounds.ts"
import type { Cell, ColumnSpec } from "../records/Columns.ts"
import { isObject, jsonText, type Json } from "../records/ExactNumber.ts"
import type { AttemptState, TaskState } from "../ledger/RunState.ts"
import { executionErrorsTable, executionFeaturesTable, executionMessagesTable } from "./SystemTables.ts"
import { featureFields, messageFields, productsCountTable, stateColumns } from "./SystemTables.ts"
import { converter } from "../records/ColumnData.ts"

// Reads the fields of an object from the service into cells, tolerantly: a value that does not fit its column
// becomes NULL and is kept in `extra`, as is every field without a column. A string that is too long is cut
// and marked. One odd value never affects its neighbours.

/** A row by column name; a column that is absent is NULL. */
export type Row = Readonly<Record<string, Cell | undefined>>

/** The items of a list that are objects, with their positions; empty for anything but a list. */
export const objectsOf = (value: unknown): ReadonlyArray<readonly [position: number, item: Json]> =>
  Array.isArray(value)
    ? value.flatMap((item: unknown, position) => (isObject(item) ? [[position, item] as const] : []))
    : []

const isEmpty = (value: unknown): boolean => value === undefined || value === null

/** `elsewhere`: fields that are in other tables, and therefore not in `extra`. */
export const takeFields = (
  columns: ReadonlyArray<ColumnSpec>,
  object: Json,
  elsewhere: ReadonlySet<string> = new Set(),
) => {
  const cells: Record<string, Cell> = {}
  const held = new Set(elsewhere)
  for (const { name, type } of columns) {
    if (!Object.hasOwn(object, name) || isEmpty(object[name])) {
      held.add(name)
      continue
    }
    const cell = converter(type)(object[name])
    if (cell === undefined) continue
    cells[name] = typeof cell === "string" && type === "VARCHAR" ? cutText(cell) : cell
    held.add(name)
  }
  return { cells, extra: extraOf(object, held) }
}

/** The fields of an object that are not in other tables, as JSON; null if there are none. */
export const extraOf = (object: Json, held: ReadonlySet<string>): string | null => {
  const rest = Object.entries(object).filter(([name]) => !held.has(name))
  return rest.length === 0 ? null : jsonText(Object.fromEntries(rest))
}

/** A list of strings and numbers as strings (`loc` of section 2.4); null for anything else. */
export const textsOf = (value: unknown): ReadonlyArray<string> | null =>
  Array.isArray(value) && value.every((item) => typeof item === "string" || typeof item === "number")
    ? value.map((item) => cutText(String(item)))
    : null

export type TableRow = readonly [table: string, row: Row]

/** What every row about a task begins with. */
export const taskCells = (run_id: RunId, { planned }: TaskState) => {
  const { task_id, customer_id, engine_reference } = planned
  return { run_id, task_id, customer_id, engine_reference }
}

const lists = ["features", "messages", "parameters_errors", "configurations_errors"]

/** Fields of a state whose content is fully in other tables; a malformed one stays in `extra`. */
const heldElsewhere = (body: Json): ReadonlySet<string> =>
  new Set([
    ...lists.filter((name) => body[name] === null || isObjectList(body[name])),
    ...(body["products_count"] === null || isObject(body["products_count"]) ? ["products_count"] : []),
  ])

const isObjectList = (value: unknown): boolean => Array.isArray(value) && value.every(isObject)

export interface AttemptFacts {
  readonly run_id: RunId
  readonly task: TaskState
  readonly attempt: AttemptState
}

/** `body` is the newest landed state, if it could be read as an object. */
export const executionRow = ({ run_id, task, attempt }: AttemptFacts, body: Json | undefined): Row => {
  const own = {
    run_id,
    task_id: task.planned.task_id,
    attempt: attempt.attempt,
    worker: attempt.worker,
    external_execution_id: attempt.external_execution_id,
  }
  if (attempt.execution_id === undefined) return own
  const { cells, extra } = takeFields(stateColumns, body ?? {}, heldElsewhere(body ?? {}))
  return {
    ...own,
    session_id: attempt.session_id,
    customer_id: task.planned.customer_id,
    engine_reference: task.planned.engine_reference,
    status_code: attempt.status_code,
    status_reason: attempt.status_reason,
    authentication_status: attempt.authentication_status,
    ...cells,
    // Whatever a body says, the ledger knows which execution the request was about.
    execution_id: attempt.execution_id,
    deleted_at: attempt.deletion?.deleted_at,
    extra,
  }
}

/** `<family>:<subtype>@<product>`; undefined for a key of another form. */
export const productKey = (
  key: string,
): { readonly family: string; readonly subtype: string; readonly product: string } | undefined => {
  const match = /^([^:@]+):([^@]+)@(.+)$/s.exec(key)
  return match === null ? undefined : { family: match[1]!, subtype: match[2]!, product: match[3]! }
}

const wholeNumber = (value: unknown): Cell =>
  typeof value === "number" && Number.isSafeInteger(value) ? value : null

/** Rows of the tables beside `executions`. */
export const stateRows = (facts: AttemptFacts, body: Json): ReadonlyArray<TableRow> => {
  const { run_id, task, attempt } = facts
  const first = { ...taskCells(run_id, task), execution_id: attempt.execution_id }
  const rows: Array<TableRow> = []
  for (const [position, feature] of objectsOf(body["features"])) {
    const { cells } = takeFields(featureFields, feature)
    rows.push([executionFeaturesTable.name, { ...first, ...cells, position }])
  }
  for (const [position, message] of objectsOf(body["messages"])) {
    const { cells } = takeFields(messageFields, message)
    const loc = textsOf(message["loc"])
    rows.push([executionMessagesTable.name, { ...first, ...cells, position, loc }])
  }
  for (const kind of ["parameters", "configurations"] as const) {
    for (const [position, item] of objectsOf(body[`${kind}_errors`])) {
      rows.push([executionErrorsTable.name, { ...first, kind, position, ...refusedField(item) }])
    }
  }
  if (isObject(body["products_count"])) {
    for (const [key, value] of Object.entries(body["products_count"])) {
      const cut = cutText(key)
      const row = { ...first, key: cut, ...productKey(cut), count: wholeNumber(value) }
      rows.push([productsCountTable.name, row])
    }
  }
  return rows
}

const refusedField = ({ loc, msg, type, ctx }: Json): Row => ({
  loc: textsOf(loc),
  msg: typeof msg === "string" ? cutText(msg) : null,
  type: typeof type === "string" ? cutText(type) : null,
  ctx: ctx === undefined || ctx === null ? null : jsonText(ctx),
})
