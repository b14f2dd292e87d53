/**
 * Rows that follow from the ledger alone: the run, its tasks, attachments and deletions. Pure. A task that
 * is not settled is unfinished.
 */
import { Struct } from "effect"
import type { RunId } from "../service/Ids.ts"
import type { Cell } from "../records/Columns.ts"
import { dateCell } from "../records/ColumnData.ts"
import { outcomes } from "../service/EndTable.ts"
import { executionsOf, verdictOfTask } from "../ledger/RunState.ts"
import type { AttemptState, RunState, TaskState } from "../ledger/RunState.ts"
import { isObject } from "../records/ExactNumber.ts"
import { taskCells, takeFields, type TableRow, type Row } from "./ExecutionRows.ts"
import { attachmentsTable, deletionsTable, engineDescriptionsTable, engineFields } from "./SystemTables.ts"
import { runsTable, tasksTable } from "./SystemTables.ts"
import { executionBehind, type RunPicture } from "./RunPicture.ts"

/** As shown in tables: a task that is not settled has no reason yet. */
export const settlementOf = (task: TaskState) => {
  const { outcome, who_acts } = verdictOfTask(task)
  return { outcome, reason: task.settled?.fact.reason, who_acts }
}

const statusOf = ({ ended, tasks }: RunState): string => {
  if (ended === undefined) return "running"
  const isLeft = [...tasks.values()].some((task) => verdictOfTask(task).outcome === "unfinished")
  return isLeft || ended.leftovers ? "unfinished" : "finished"
}

const runRow = (run: RunState): Row => {
  const { started, started_at, ended, stages } = run
  const tasks = [...run.tasks.values()].map((task) => verdictOfTask(task).outcome)
  const counts = outcomes.map((outcome): readonly [string, Cell] => [
    outcome,
    tasks.filter((each) => each === outcome).length,
  ])
  return {
    run_id: started.run_id,
    job: started.job,
    run_date: dateCell(started.run_date) ?? null,
    started_at: started_at,
    ended_at: ended?.at,
    status: statusOf(run),
    tasks: tasks.length,
    ...Object.fromEntries(counts),
    exit_code: ended?.exit_code,
    tool_version: started.tool_version,
    parent: started.parent,
    part: started.part,
    // Whoever was forgotten was asked for: the run said so of all others too.
    whole:
      started.parent === undefined &&
      started.part === undefined &&
      (tasks.length > 0 || run.forgotten === true),
    replaces: started.replaces,
    sequence: run.sequence,
    resumed_at: stages.resumed,
    executed_at: stages.executed,
    published_at: stages.published,
    deletions_at: stages.deleted,
    collected_at: stages.collected,
  }
}

const taskRow = (run_id: RunId, task: TaskState): Row => {
  const { planned, attempts, results } = task
  const newest = attempts.findLast(({ execution_id }) => execution_id !== undefined)
  const { outcome, reason, who_acts } = settlementOf(task)
  return {
    ...taskCells(run_id, task),
    features: planned.features,
    outcome,
    reason,
    who_acts,
    attempts: executionsOf(task).length,
    execution_id: newest?.execution_id,
    session_id: newest?.session_id ?? planned.session_id ?? results.at(-1)?.fact.session_id,
    started_at: attempts[0]?.intended_at,
    closed_at: newest?.closed?.at,
  }
}

const attachmentRows = (run_id: RunId, task: TaskState): ReadonlyArray<TableRow> =>
  task.attachments.map(({ session_id, ...read }) => {
    const own = Struct.pick(read, ["attachment_id", "media_type", "bytes", "sha256", "path", "status"])
    const of = { session_id, execution_id: executionBehind(task, session_id) }
    return [attachmentsTable.name, { ...taskCells(run_id, task), ...of, ...own }]
  })

const proofCells = (proof: AttemptState["proof"]): Row => {
  if (proof === undefined) return {}
  const { basis, families } = proof
  const isCounted = families.some(({ counted }) => counted !== undefined)
  return {
    counted:
      isCounted || basis === "counted"
        ? families.reduce((sum, { counted = 0 }) => sum + counted, 0)
        : undefined,
    landed: basis === "unwanted" ? undefined : families.reduce((sum, { landed }) => sum + landed, 0),
    proof: JSON.stringify({
      basis,
      families: Object.fromEntries(families.map(({ family, ...counts }) => [family, counts])),
    }),
  }
}

const deletionRows = (run_id: RunId, task: TaskState): ReadonlyArray<TableRow> =>
  task.attempts.flatMap(({ execution_id, deletion, proof }): ReadonlyArray<TableRow> => {
    if (deletion === undefined) return []
    const { asked_at, outcome, landed_sha256 } = deletion
    // 0 stands for a request that got no answer.
    const http_status = deletion.http_status === 0 ? null : deletion.http_status
    const own = { execution_id, asked_at, http_status, outcome, landed_sha256 }
    return [[deletionsTable.name, { ...taskCells(run_id, task), ...own, ...proofCells(proof) }]]
  })

/** The details were checked before they were kept; only the fields that have a column are taken. */
export const engineRows = ({
  state,
  engines,
}: Pick<RunPicture, "state" | "engines">): ReadonlyArray<TableRow> =>
  engines.map(({ engine_reference, fetched_at, body }) => {
    const details: unknown = JSON.parse(body)
    const { cells } = takeFields(engineFields, isObject(details) ? details : {})
    const first = { run_id: state.started.run_id, engine_reference, read_at: fetched_at }
    return [engineDescriptionsTable.name, { ...cells, ...first }]
  })

export const ledgerRows = (run: RunState): ReadonlyArray<TableRow> => {
  const { run_id } = run.started
  return [
    [runsTable.name, runRow(run)],
    ...[...run.tasks.values()].flatMap((task): ReadonlyArray<TableRow> => [
      [tasksTable.name, taskRow(run_id, task)],
      ...attachmentRows(run_id, task),
      ...deletionRows(run_id, task),
    ]),
  ]
}
