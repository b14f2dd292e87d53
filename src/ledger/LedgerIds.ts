/**
 * What an id names: its tasks, its attempt, its runs. By index only, so that it costs the same after a
 * thousand nights; of archived runs, the ids stay in the ledger with their tasks.
 */
import type { DatabaseSync } from "node:sqlite"
import { CustomerId, RunId, TaskId, type ExecutionId } from "../service/Ids.ts"
import type { AttemptKeys, TaskKeys } from "./FactKeys.ts"
import { idFields, kinds, valueOf } from "./LedgerSchema.ts"

/** The tasks that an id of such a kind names, wherever their facts are. */
const naming = (database: DatabaseSync, ...among: ReadonlyArray<number>) => {
  const live = idFields
    .filter(({ kind }) => among.includes(kind))
    .map(
      ({ tag, field }) => `SELECT run_id, task_id FROM facts WHERE tag = '${tag}' AND ${valueOf(field)} = ?1`,
    )
  const archived = `SELECT facts.run_id, iif(substr(task, 1, 1) = '/', facts.run_id || task, task)
    FROM archived_ids JOIN facts ON facts.seq = archive WHERE kind IN (${among.join(", ")}) AND id = ?1`
  const named = database.prepare([...live, archived].join(" UNION "))
  return (id: string): ReadonlyArray<TaskKeys> =>
    named.all(id).map(({ run_id, task_id }) => ({
      run_id: RunId.make(String(run_id)),
      task_id: TaskId.make(String(task_id)),
    }))
}

export const tasksIn = (database: DatabaseSync) => naming(database, kinds.customer, kinds.remote)

interface Owner extends Omit<AttemptKeys, "run_id"> {
  /** The service has since deleted its execution, or no longer knows it: the id may come again. */
  readonly isDeleted: boolean
}

/** `factsOf` reads a whole run: only if an id appears a second time. */
export const ownerIn = (
  database: DatabaseSync,
  factsOf: (task: TaskKeys) => ReadonlyArray<{ readonly seq: number; readonly body: string }>,
) => {
  const tasksOf = naming(database, kinds.remote)
  return (execution_id: ExecutionId): Owner | undefined => {
    const told = tasksOf(execution_id).flatMap((task) => factsOf(task))
    let owner: Owner | undefined
    for (const { body } of told.toSorted((one, other) => one.seq - other.seq)) {
      const fact: Readonly<Record<string, unknown>> = JSON.parse(body)
      if (fact["execution_id"] !== execution_id) continue
      const { _tag, answer, task_id, attempt, outcome } = fact
      if (_tag === "StartAnswered" && (answer === "accepted" || answer === "adopted"))
        owner = { task_id: TaskId.make(String(task_id)), attempt: Number(attempt), isDeleted: false }
      else if (owner && _tag === "DeleteAnswered" && (outcome === "deleted" || outcome === "gone"))
        owner = { ...owner, isDeleted: true }
    }
    return owner
  }
}

/** From one id to the next in the index: it has an entry for every task of every run. */
export const customersIn = (database: DatabaseSync) => {
  const id = valueOf("customer_id")
  const next = (after: string) => `(SELECT min(${id}) FROM facts WHERE tag = 'TaskPlanned'${after})`
  const all = database.prepare(`
    WITH RECURSIVE ids(id) AS (
      SELECT ${next("")} UNION ALL
      SELECT ${next(` AND ${id} > ids.id`)} FROM ids WHERE ids.id IS NOT NULL
    ) SELECT id FROM ids WHERE id IS NOT NULL
      UNION SELECT id FROM archived_ids WHERE kind = ${kinds.customer} ORDER BY id`)
  return (): ReadonlyArray<CustomerId> => all.all().map((row) => CustomerId.make(String(row["id"])))
}

/** The runs that have downloaded the document with this hash. */
export const documentsIn = (database: DatabaseSync) => {
  const tasksOf = naming(database, kinds.document)
  return (sha256: string): ReadonlyArray<RunId> => [...new Set(tasksOf(sha256).map(({ run_id }) => run_id))]
}
