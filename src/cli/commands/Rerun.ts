/**
 * `nightjar rerun [RUN]`: runs again the tasks that did not succeed in an earlier run, with that run as the
 * parent. The job is loaded again from its file, so that corrections apply.
 */
import { Effect } from "effect"
import { Command, Flag } from "effect/cli"
import { suggestion } from "../../foundation/Nearest.ts"
import { subjectOf, verdictOfTask } from "../../ledger/RunState.ts"
import type { RunState, TaskState } from "../../ledger/RunState.ts"
import { counted } from "../../foundation/Counted.ts"
import { table } from "../../report/TextTable.ts"
import { jsonFlag, outputFolder, runArgument, switchFlag } from "../CommonFlags.ts"
import { endWith, refuse } from "../Failures.ts"
import { loadJobs } from "../Jobs.ts"
import { findRun, withLedger } from "../LedgerOf.ts"
import { Output, say, sayJson } from "../Output.ts"
import { readWebhooksFlag, webhooksFlag } from "../Webhooks.ts"

export interface Selection {
  readonly failed: boolean
  readonly only: ReadonlyArray<string>
  readonly never: ReadonlyArray<string>
  readonly customers: ReadonlyArray<string>
  readonly engines: ReadonlyArray<string>
}

/** Tasks of a run that did not succeed and match the selection, flow sessions included: pure. */
export const selectTasks = (run: RunState, selection: Selection): ReadonlyArray<TaskState> =>
  [...run.tasks.values()].filter((task) => {
    const { customer_id, engine_reference } = task.planned
    const outcome = verdictOfTask(task).outcome
    const reason = task.settled?.fact.reason ?? ""
    return (
      outcome !== "succeeded" &&
      (!selection.failed || outcome === "failed") &&
      (selection.only.length === 0 || selection.only.includes(reason)) &&
      !selection.never.includes(reason) &&
      (selection.customers.length === 0 || selection.customers.includes(customer_id ?? "")) &&
      (selection.engines.length === 0 || selection.engines.includes(engine_reference ?? ""))
    )
  })

/** A misspelt name would silently select nothing. */
export const unknownNames = (run: RunState, selection: Selection): ReadonlyArray<string> => {
  const tasks = [...run.tasks.values()]
  const names = (of: (task: TaskState) => string | undefined) =>
    new Set(tasks.flatMap((task) => of(task) ?? []))
  const check = (flag: string, given: ReadonlyArray<string>, known: ReadonlySet<string>) =>
    given
      .filter((name) => !known.has(name))
      .map((name) => `--${flag} in ${run.started.run_id}${suggestion(name, [...known])}`)
  return [
    ...check(
      "only",
      selection.only,
      names((task) => task.settled?.fact.reason),
    ),
    ...check(
      "customer",
      selection.customers,
      names((task) => task.planned.customer_id),
    ),
    ...check(
      "engine",
      selection.engines,
      names((task) => task.planned.engine_reference),
    ),
  ]
}

const several = (name: string, metavar: string, description: string) =>
  Flag.String(name).pipe(
    Flag.withMetavar(metavar),
    Flag.withDescription(`${description} (repeatable)`),
    Flag.between(0, 1_000),
  )

export const rerun = Command.make(
  "rerun",
  {
    run: runArgument,
    failed: switchFlag("failed", "Only tasks whose outcome is `failed`"),
    only: several("only", "REASON", "Only tasks with this reason"),
    never: several("never", "REASON", "No tasks with this reason"),
    customers: several("customer", "ID", "Only this customer"),
    engines: several("engine", "REF", "Only this engine"),
    dryRun: switchFlag("dry-run", "Show what would run again, without starting it"),
    webhooks: webhooksFlag,
    json: jsonFlag,
  },
  Effect.fn("Rerun.handle")(function* ({ run, dryRun, json, webhooks: listenAt, ...selection }) {
    const webhooks = yield* readWebhooksFlag(listenAt)
    const state = yield* withLedger(findRun(run))
    const unknown = unknownNames(state, selection)
    if (unknown.length > 0) return yield* refuse("name-unknown", { detail: unknown.join("; ") })
    const tasks = selectTasks(state, selection)
    const { run_id, job: name, job_path } = state.started
    if (dryRun) return yield* tellSelection(state, tasks, json)
    if (tasks.length === 0) {
      if (json) return yield* sayJson([])
      return yield* say(`No task of ${run_id} matches: nothing to rerun.`)
    }
    const [job] = yield* loadJobs([job_path])
    if (job === undefined || job.name !== name) return yield* refuse("job-moved", { path: job_path, name })
    const { runNights } = yield* Effect.promise(() => import("../Nights.ts"))
    const only = new Set(tasks.map(subjectOf))
    const output = yield* outputFolder
    const options = { output, json, further: true, webhooks, parent: run_id, only }
    yield* endWith(yield* runNights([job], options))
  }),
).pipe(
  Command.withDescription("Runs again the tasks of a run that did not succeed"),
  Command.withExamples([
    { command: "nightjar rerun --dry-run", description: "What would run again" },
    { command: "nightjar rerun --only TIMEOUT", description: "Only what timed out" },
  ]),
)

const tellSelection = Effect.fnUntraced(function* (
  state: RunState,
  tasks: ReadonlyArray<TaskState>,
  json: boolean,
) {
  const rows = tasks.map((task) => ({
    task_id: task.planned.task_id,
    customer_id: task.planned.customer_id ?? "",
    session_id: task.planned.session_id ?? "",
    engine_reference: task.planned.engine_reference ?? "",
    outcome: verdictOfTask(task).outcome,
    reason: task.settled?.fact.reason ?? "",
  }))
  if (json) return yield* sayJson(rows)
  const { out } = yield* Output
  yield* say(`${counted(rows.length, "task")} of ${state.started.run_id} would run again.`)
  if (rows.length === 0) return
  const cells = rows.map((row) => [
    row.customer_id === "" ? row.session_id : row.customer_id,
    row.engine_reference === "" ? "(session)" : row.engine_reference,
    row.outcome,
    row.reason,
  ])
  yield* say(table(["customer", "engine", "outcome", "reason"], cells, { width: out.width }))
})
