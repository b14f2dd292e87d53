/**
 * What an id names: its tasks, its attempt, its runs. By index only, so that it costs the same after a
 * thousand nights; of archived runs, the ids stay in the ledger with their tasks.
 */
import type { DatabaseSync } from "node:sqlite"
import { CustomerId, RunId, TaskId, type ExecutionId } from "../service/Ids.ts"
import { kinds } from "./LedgerArchive.ts"
import {
  customerIdOf,
  documentOf,
  downloaded,
  executionIdOf,
  planned,
  sessionIdOf,
  started,
} from "./LedgerSchema.ts"

export interface TaskOfRun {
  readonly run_id: RunId
  readonly task_id: TaskId
}

interface Owner {
  readonly task_id: TaskId
  readonly attempt: number
  /** The service has since deleted its execution, or no longer knows it: the id may come again. */
  readonly isDeleted: boolean
}

type Row = Readonly<Record<string, unknown>>

const taskIn = ({ run_id, task_id }: Row): TaskOfRun => ({
  run_id: RunId.make(String(run_id)),
  task_id: TaskId.make(String(task_id)),
})

const selectArchived = (database: DatabaseSync, what: string, condition: string) => {
  const statement = database.prepare(
    `SELECT DISTINCT ${what} FROM archived_ids JOIN facts ON facts.seq = archive WHERE ${condition}`,
  )
  return (id: string): ReadonlyArray<Row> => statement.all(id)
}

const archivedTask = "facts.run_id, iif(substr(task, 1, 1) = '/', facts.run_id || task, task) AS task_id"

/** `archivedOf` are the archived facts of a task. */
export const ownerIn = (
  database: DatabaseSync,
  archivedOf: (task: TaskOfRun) => ReadonlyArray<{ readonly body: string }>,
) => {
  const owner = database.prepare(
    `SELECT seq, task_id, json_extract(body, '$.attempt') AS attempt FROM facts
      WHERE ${started} AND ${executionIdOf} = ? AND json_extract(body, '$.answer') IN ('accepted', 'adopted')
      ORDER BY seq DESC LIMIT 1`,
  )
  // No index: it is read only if an id appears a second time.
  const deletion = database.prepare(
    `SELECT 1 FROM facts WHERE seq > ? AND tag = 'DeleteAnswered' AND ${executionIdOf} = ?
      AND json_extract(body, '$.outcome') IN ('deleted', 'gone') LIMIT 1`,
  )
  const archived = selectArchived(database, archivedTask, `kind = ${kinds.remote} AND id = ?`)
  return (execution_id: ExecutionId): Owner | undefined => {
    const row = owner.get(execution_id)
    if (row === undefined)
      return archived(execution_id)
        .map(taskIn)
        .flatMap((task) => ownerAmong(execution_id, task.task_id, archivedOf(task)) ?? [])
        .at(-1)
    const isDeleted = deletion.get(Number(row["seq"]), execution_id) !== undefined
    return { task_id: TaskId.make(String(row["task_id"])), attempt: Number(row["attempt"]), isDeleted }
  }
}

/** Of the facts of one task, in order. */
const ownerAmong = (
  execution_id: ExecutionId,
  task_id: TaskId,
  facts: ReadonlyArray<{ readonly body: string }>,
): Owner | undefined => {
  let owner: Owner | undefined
  for (const { body } of facts) {
    const fact: Row = JSON.parse(body)
    if (fact["execution_id"] !== execution_id) continue
    const { _tag, answer, attempt, outcome } = fact
    if (_tag === "StartAnswered" && (answer === "accepted" || answer === "adopted"))
      owner = { task_id, attempt: Number(attempt), isDeleted: false }
    else if (owner && _tag === "DeleteAnswered" && (outcome === "deleted" || outcome === "gone"))
      owner = { ...owner, isDeleted: true }
  }
  return owner
}

export const tasksIn = (database: DatabaseSync) => {
  const where = [
    `${planned} AND ${customerIdOf} = ?1`,
    `${planned} AND ${sessionIdOf} = ?1`,
    `${started} AND ${executionIdOf} = ?1`,
    `${started} AND ${sessionIdOf} = ?1`,
  ]
  const named = database.prepare(
    where.map((condition) => `SELECT run_id, task_id FROM facts WHERE ${condition}`).join(" UNION "),
  )
  const among = `kind IN (${kinds.customer}, ${kinds.remote}) AND id = ?`
  const archived = selectArchived(database, archivedTask, among)
  return (id: string): ReadonlyArray<TaskOfRun> => [...named.all(id), ...archived(id)].map(taskIn)
}

/** From one id to the next in the index: it has an entry for every task of every run. */
export const customersIn = (database: DatabaseSync) => {
  const next = (after: string) => `(SELECT min(${customerIdOf}) FROM facts WHERE ${planned}${after})`
  const all = database.prepare(`
    WITH RECURSIVE ids(id) AS (
      SELECT ${next("")} UNION ALL
      SELECT ${next(` AND ${customerIdOf} > ids.id`)} FROM ids WHERE ids.id IS NOT NULL
    ) SELECT id FROM ids WHERE id IS NOT NULL`)
  const archived = database.prepare(`SELECT DISTINCT id FROM archived_ids WHERE kind = ${kinds.customer}`)
  return (): ReadonlyArray<CustomerId> => {
    const live = all.all().map((row) => String(row["id"]))
    const old = archived.all().map((row) => String(row["id"]))
    if (old.length === 0) return live.map((id) => CustomerId.make(id))
    return [...new Set([...live, ...old])].toSorted().map((id) => CustomerId.make(id))
  }
}

/** The runs that have downloaded the document with this hash. */
export const documentsIn = (database: DatabaseSync) => {
  const live = database.prepare(
    `SELECT DISTINCT run_id FROM facts WHERE ${downloaded} AND ${documentOf} = ? ORDER BY run_id`,
  )
  const archived = selectArchived(database, "facts.run_id", `kind = ${kinds.document} AND id = ?`)
  return (sha256: string): ReadonlyArray<string> => [
    ...new Set([...live.all(sha256), ...archived(sha256)].map((row) => String(row["run_id"]))),
  ]
}
