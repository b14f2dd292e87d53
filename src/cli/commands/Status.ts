/**
 * `nightjar status [RUN]`: a run's tasks and its summary. Read-only, so that it does not disturb a run in
 * progress.
 */
import { Effect } from "effect"
import { Command } from "effect/cli"
import { counted } from "../../foundation/Counted.ts"
import { executionsOf } from "../../ledger/RunState.ts"
import type { RunState, TaskState } from "../../ledger/RunState.ts"
import { newestTasks } from "../../ledger/WholeNight.ts"
import { finishLines, renderSummary } from "../../report/RenderSummary.ts"
import { summarise } from "../../report/Summary.ts"
import { table } from "../../report/TextTable.ts"
import { jsonFlag, namedOutput, outputFolder, runArgument, switchFlag } from "../CommonFlags.ts"
import { findNight, withLedger } from "../LedgerOf.ts"
import { runningNights } from "../NightDesk.ts"
import { note, Output, say, sayJson } from "../Output.ts"

const taskRow = (task: TaskState) => {
  const { planned, settled, attempts } = task
  const last = attempts.at(-1)
  return {
    task_id: planned.task_id,
    customer_id: planned.customer_id ?? null,
    engine_reference: planned.engine_reference ?? null,
    outcome: settled?.fact.outcome ?? "open",
    reason: settled?.fact.reason ?? last?.status_reason ?? null,
    who_acts: settled?.fact.who_acts ?? null,
    message: settled?.fact.message ?? null,
    attempts: executionsOf(task).length,
    execution_id: last?.execution_id ?? null,
    session_id: last?.session_id ?? planned.session_id ?? null,
  }
}

const interimText = ({ at, fact }: NonNullable<RunState["interim"]>): string =>
  `${fact.tasks} of ${counted(fact.of, "task")} are in the tables, published as version ${fact.version} at ` +
  `${new Date(at).toISOString()} while the run went on.`

export const status = Command.make(
  "status",
  {
    run: runArgument,
    whole: switchFlag("night", "All tasks of the run's night, each as its newest run left it"),
    watch: switchFlag("watch", "Follow the run while it executes, then show the same"),
    json: jsonFlag,
  },
  Effect.fn("Status.handle")(function* ({ run, whole, watch, json }) {
    if (watch) {
      const output = yield* outputFolder
      const { watchNight } = yield* Effect.promise(() => import("../WatchNight.ts"))
      const watched = yield* watchNight(output, json)
      if (watched && json) return
      if (!watched) yield* note(`No run is executing in ${output}.`)
    }
    const { state, night } = yield* withLedger(findNight(run))
    const tasks = [...(whole ? newestTasks(night) : state.tasks).values()].map(taskRow)
    const output = yield* outputFolder
    const summary = summarise(state, night, namedOutput(output))
    const { run_id } = state.started
    const running = (yield* runningNights(output)).some((one) => one.run_id === run_id)
    if (json) return yield* sayJson({ ...summary, running, tasks })
    const { out } = yield* Output
    const rows = tasks.map((task) => [
      task.customer_id ?? task.session_id ?? "",
      task.engine_reference ?? "(session)",
      task.outcome,
      task.reason ?? "",
      String(task.attempts),
      task.who_acts ?? "",
    ])
    const header = ["customer", "engine", "outcome", "reason", "attempts", "who acts"]
    yield* say(table(header, rows, { width: out.width, right: new Set([4]) }))
    yield* say("")
    yield* say(renderSummary(summary, out))
    if (state.interim !== undefined) yield* say(interimText(state.interim))
    if (running) yield* say(`${run_id} is running: \`nightjar status --watch\` follows it.`)
    else if (state.ended === undefined) {
      yield* say(`No process is working on ${run_id}.`)
      for (const line of finishLines(summary.finish, out)) yield* say(line)
    }
  }),
).pipe(Command.withDescription("Lists a run's tasks with outcome and reason"))
