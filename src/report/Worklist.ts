/**
 * Everything that somebody has to do something about after a run, one row per customer and engine, for the
 * report and as CSV for a ticket system: who acts, why, what to do, and whether it is new. Pure.
 */
import { cutText } from "../service/BodyBounds.ts"
import { actings } from "../service/EndRow.ts"
import type { Acting, Outcome, WhoActs } from "../service/EndRow.ts"
import { actingOf, rowOf } from "../service/Ends.ts"
import { subjectOf, verdictOfTask } from "../ledger/RunState.ts"
import type { RunState } from "../ledger/RunState.ts"
import { changeKinds } from "./Changes.ts"
import type { ChangeKind, Comparison } from "./Changes.ts"
import { csvLine, harmless, oneLine } from "./TextTable.ts"

export interface WorkRow {
  readonly change: ChangeKind
  readonly customer_id: string
  readonly engine_reference: string
  readonly session_id: string
  readonly outcome: Outcome
  readonly reason: string
  readonly who_acts: WhoActs
  /** The same for people. */
  readonly acting: Acting
  readonly message: string
  readonly what_to_do: string
  readonly task_id: string
}

/** As in the summary: the service's own text may be of any length. */
const reasonMax = 200
const messageMax = 1_000

/** New trouble first, then by who acts, then by reason. Mended tasks have the reason that they had before. */
export const worklistOf = (run: RunState, { before, changes }: Comparison): ReadonlyArray<WorkRow> => {
  const kinds = new Map(
    changeKinds.flatMap((kind) => changes[kind].map((subject) => [subject, kind] as const)),
  )
  const rows = [...run.tasks.values()].flatMap((task): ReadonlyArray<WorkRow> => {
    const change = kinds.get(subjectOf(task))
    if (change === undefined) return []
    const verdict = verdictOfTask(task)
    const { reason, who_acts } = change === "mended" ? (before.get(subjectOf(task)) ?? verdict) : verdict
    const { customer_id = "", engine_reference = "", session_id = "", task_id } = task.planned
    return [
      {
        change,
        customer_id,
        engine_reference,
        session_id,
        outcome: verdict.outcome,
        reason: cutText(reason, reasonMax),
        who_acts,
        acting: actingOf({ reason, who_acts }),
        message: change === "mended" ? "" : cutText(verdict.message ?? "", messageMax),
        what_to_do: change === "mended" ? "Nothing to do." : rowOf(reason).next,
        task_id,
      },
    ]
  })
  return rows.toSorted(
    (a, b) =>
      changeKinds.indexOf(a.change) - changeKinds.indexOf(b.change) ||
      actings.indexOf(a.acting) - actings.indexOf(b.acting) ||
      (a.reason < b.reason ? -1 : a.reason > b.reason ? 1 : 0),
  )
}

/** Rows of one change, actor and reason together. */
export interface WorkGroup {
  readonly change: ChangeKind
  readonly acting: Acting
  readonly outcome: Outcome
  readonly reason: string
  readonly count: number
  /** The first few, as `<customer_id> <engine_reference>`. */
  readonly examples: ReadonlyArray<string>
  readonly means: string
  readonly what_to_do: string
}

const examplesMax = 5

export const nameOf = ({ customer_id, engine_reference, session_id }: WorkRow): string =>
  session_id === "" ? `${customer_id} ${engine_reference}` : `session ${session_id}`

export const groupsOf = (rows: ReadonlyArray<WorkRow>): ReadonlyArray<WorkGroup> => {
  const groups = new Map<string, { readonly first: WorkRow; readonly names: Array<string>; count: number }>()
  for (const row of rows) {
    const key = JSON.stringify([row.change, row.acting, row.outcome, row.reason])
    const group = groups.get(key) ?? { first: row, names: [], count: 0 }
    groups.set(key, group)
    group.count += 1
    if (group.names.length < examplesMax) group.names.push(nameOf(row))
  }
  return [...groups.values()].map(({ first, names, count }) => ({
    change: first.change,
    acting: first.acting,
    outcome: first.outcome,
    reason: first.reason,
    count,
    examples: names,
    means: rowOf(first.reason).means,
    what_to_do: first.what_to_do,
  }))
}

const columns = [
  "change",
  "who_acts",
  "customer_id",
  "engine_reference",
  "session_id",
  "outcome",
  "reason",
  "message",
  "what_to_do",
  "task_id",
] as const satisfies ReadonlyArray<keyof WorkRow>

/**
 * The same escaping as `query --format csv --excel-safe`: no spreadsheet takes a cell for a formula. A row is
 * one line, and no character of a value controls what shows it.
 */
export const worklistCsv = (rows: ReadonlyArray<WorkRow>): string =>
  [columns, ...rows.map((row) => columns.map((column) => harmless(oneLine(row[column]))))]
    .map(csvLine)
    .join("")
