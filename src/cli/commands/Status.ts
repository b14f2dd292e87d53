/**
 * `status` shows a run without disturbing it; `pause`, `resume`, `drain` and `limit` steer the night that
 * runs here.
 */
import { Clock, Effect, Option } from "effect"
import { Command } from "effect/cli"
import { outcomes } from "../../service/EndTable.ts"
import { actingOf } from "../../service/Ends.ts"
import { given } from "../../base/Schemas.ts"
import { counted, listed } from "../../base/Text.ts"
import type { RunHeader } from "../../ledger/FoldRun.ts"
import { executionsOf, type RunBrief, type RunState, type TaskBrief } from "../../ledger/RunState.ts"
import { newestTasks, runsOfNight } from "../../ledger/WholeNight.ts"
import { interruptedOf, renderSummary, tellInterrupted } from "../../report/RenderSummary.ts"
import type { Interrupted } from "../../report/RenderSummary.ts"
import { summarise, type Summary } from "../../report/Summary.ts"
import { table, wrap } from "../../report/TextTable.ts"
import type { Order } from "../../task/NightPicture.ts"
import { command, type Asked, type Help } from "../CommandRow.ts"
import {
  Output,
  jsonFlag,
  namedOutput,
  note,
  outputFolder,
  runArgument,
  say,
  sayJson,
  sayPainted,
  severalArguments,
  severalFlag,
  switchFlag,
  unknownNames,
} from "../Output.ts"
import { refuse, refuseUnknown } from "../Failures.ts"
import { findNight, openedLedger, withLedger } from "../OutputFolder.ts"
import { isCutOff, isRunning, steerNight, steered, watchNight, workIn } from "../NightDesk.ts"
import type { WorkHere } from "../NightDesk.ts"

const taskRow = (task: TaskBrief) => {
  const { planned, settled, attempts } = task
  const last = attempts.at(-1)
  return {
    task_id: planned.task_id,
    customer_id: planned.customer_id ?? null,
    engine_reference: planned.engine_reference ?? null,
    outcome: settled?.fact.outcome ?? "open",
    reason: settled?.fact.reason ?? last?.status_reason ?? null,
    who_acts: settled?.fact.who_acts ?? null,
    acting: settled === undefined ? null : actingOf(settled.fact),
    message: settled?.fact.message ?? null,
    attempts: executionsOf(task).length,
    execution_id: last?.execution_id ?? null,
    session_id: last?.session_id ?? planned.session_id ?? null,
  }
}

const interimText = ({ at, fact }: NonNullable<RunState["interim"]>): string =>
  `${fact.tasks} of ${counted(fact.of, "task")} are in the tables, published as version ${fact.version} at ` +
  `${new Date(at).toISOString()} while the run went on.`

/** Undefined if the run is over, or a process may be working on it. */
const cutOff = Effect.fnUntraced(function* (run: RunBrief, runs: ReadonlyArray<RunHeader>, work: WorkHere) {
  const { run_id, job, part } = run.started
  if (!isCutOff(work, { run_id, ended: run.ended })) return
  const ledger = yield* openedLedger
  const state = yield* ledger.state(run_id)
  if (state === undefined) return
  const facts = yield* ledger.facts(run_id)
  const newest = runs.findLast(({ fact }) => fact.job === job && fact.part === part)?.fact.run_id
  const last_at = facts.at(-1)?.at ?? state.started_at
  const now = yield* Clock.currentTimeMillis
  // As `chooseRun` has it: a rerun is as old as the first run of its date.
  const [first] = run.started.parent === undefined ? [] : runsOfNight(runs, run.started)
  const begun = { ...state, ...given({ started_at: first?.at }) }
  return interruptedOf(begun, { last_at, now, superseded: newest !== run_id })
})

const othersMax = 3

/** The run with its night; `others`: the runs that were cut off too, unless one is named. */
const found = Effect.fnUntraced(function* (named: Option.Option<string>, work: WorkHere) {
  const night = yield* findNight(named, (ledger) => ledger.brief)
  const runs = yield* (yield* openedLedger).runs
  const { run_id } = night.state.started
  const others = runs.flatMap(({ fact, ended }) =>
    fact.run_id !== run_id && isCutOff(work, { run_id: fact.run_id, ended }) ? [fact.run_id] : [],
  )
  return {
    ...night,
    interrupted: yield* cutOff(night.state, runs, work),
    others: Option.isSome(named) ? [] : others.toReversed(),
  }
})

const tellOpenRun = Effect.fnUntraced(function* (
  { run_id, part, finish }: Summary,
  work: WorkHere,
  interrupted: Interrupted | undefined,
) {
  const { out } = yield* Output
  const sayWrapped = (text: string) => say(wrap(text, out.width, "", "  "))
  yield* say("")
  if (isRunning(work, run_id))
    return yield* sayWrapped(`${run_id} is running: \`nightjar status --watch\` follows it.`)
  if (interrupted === undefined)
    return yield* sayWrapped(
      `Another process is working in this output folder, and may be about to resume ${run_id}.`,
    )
  const others = work.nights.map((night) => night.run_id)
  if (others.length > 0)
    yield* sayWrapped(`Another process is working in this output folder, on ${others.join(", ")}.`)
  const now = yield* Clock.currentTimeMillis
  for (const text of tellInterrupted(run_id, interrupted, now, part !== undefined)) yield* sayWrapped(text)
  if (finish.command !== undefined) yield* say(`  ${finish.command}`)
})

const selectionFlags = {
  outcomes: severalFlag("outcome", "O", "Only tasks with this outcome"),
  customers: severalFlag("customer", "ID", "Only this customer"),
  engines: severalFlag("engine", "REF", "Only this engine"),
}
type Selection = Asked<typeof selectionFlags>

const isSelective = ({ outcomes: said, customers, engines }: Selection): boolean =>
  said.length + customers.length + engines.length > 0

const isSelected =
  (selection: Selection) =>
  ({ outcome, customer_id, engine_reference }: ReturnType<typeof taskRow>): boolean =>
    (
      [
        [selection.outcomes, outcome],
        [selection.customers, customer_id],
        [selection.engines, engine_reference],
      ] as const
    ).every(([names, name]) => names.length === 0 || names.some((one) => one === name))

const needsSomebody = ({ outcome }: ReturnType<typeof taskRow>): boolean =>
  outcome !== "succeeded" && outcome !== "open"

/** As many fit on a screen, above the summary. */
const needyMax = 20

const notShown = (needy: number, others: number): string => {
  const counts = [
    ...(needy > 0 ? [`${counted(needy, "more task")} ${needy === 1 ? "needs" : "need"} somebody`] : []),
    ...(others > 0 ? [`${counted(others, "task")} ${others === 1 ? "needs" : "need"} nobody`] : []),
  ]
  return `${counts.join(", and ")}: \`nightjar status --all\` lists them.`
}

export const status = Command.make(
  "status",
  {
    run: runArgument,
    ...selectionFlags,
    every: switchFlag("all", "All tasks, not only those that need somebody"),
    whole: switchFlag("night", "Tasks of the run's night, each as its newest run left it"),
    watch: switchFlag("watch", "Follow the run while it executes, then show the same"),
    json: jsonFlag,
  },
  Effect.fn("Status.handle")(function* ({ run, whole, watch, json, ...selection }) {
    const output = yield* outputFolder
    if (watch) {
      const watched = yield* watchNight(output, json)
      if (watched && json) return
      if (!watched) yield* note(`No run is executing in ${output}.`)
    }
    const work = yield* workIn(output)
    const { state, night, interrupted, others } = yield* withLedger(found(run, work))
    const all = [...(whole ? newestTasks(night) : state.tasks).values()].map(taskRow)
    const unknown = unknownNames(state.started.run_id, {
      outcome: [selection.outcomes, [...outcomes, "open"]],
      customer: [selection.customers, all.map((task) => task.customer_id)],
      engine: [selection.engines, all.map((task) => task.engine_reference)],
    })
    yield* refuseUnknown(unknown)
    const tasks = all.filter(isSelected(selection))
    const summary = summarise(state, night, namedOutput(output))
    const running = isRunning(work, summary.run_id)
    const also = { running, interrupted: interrupted ?? null, also_interrupted: others }
    if (json) return yield* sayJson({ ...summary, ...also, tasks })
    const { out } = yield* Output
    const isChosen = selection.every || isSelective(selection)
    const needy = tasks.filter(needsSomebody)
    const shown = isChosen ? tasks : needy.slice(0, needyMax)
    const rows = shown.map((task) => [
      task.customer_id ?? task.session_id ?? "",
      task.engine_reference ?? "(session)",
      task.outcome,
      task.reason ?? "",
      String(task.attempts),
      task.acting ?? "",
    ])
    const header = ["customer", "engine", "outcome", "reason", "attempts", "who acts"]
    if (rows.length > 0) yield* say(table(header, rows, { width: out.width, right: new Set([4]) }))
    if (shown.length < tasks.length)
      yield* say(wrap(notShown(needy.length - shown.length, tasks.length - needy.length), out.width))
    if (tasks.length > 0) yield* say("")
    yield* sayPainted(renderSummary(summary, out))
    if (state.interim !== undefined) yield* say(interimText(state.interim))
    if (state.ended === undefined) yield* tellOpenRun(summary, work, interrupted)
    if (others.length > 0)
      yield* say(
        `${others.length === 1 ? "One more run was" : `${others.length} more runs were`} interrupted: ` +
          `${listed(others, othersMax)}. \`nightjar status RUN\` shows what is in flight.`,
      )
  }),
)

const steering = <const Name extends string>(name: Name, order: Order, help: Help = {}) =>
  command(name, { ...help, ...steered, flags: {}, run: (_, output) => steerNight(output, order) })

export const pause = steering("pause", { _tag: "Pause" })
export const resume = steering("resume", { _tag: "Resume" })
const drained = "What was executed is published, and what was not started is left for `nightjar run JOB`."
export const drain = steering("drain", { _tag: "Drain" }, { more: drained })

type Names = "max_in_flight" | "per_engine"
const written = /^(?<name>max_in_flight|per_engine)=(?<number>[1-9][0-9]{0,4}|100000)$/

/** Undefined if an argument is not NAME=N, or names a limit twice. */
const readLimits = (values: ReadonlyArray<string>): Partial<Record<Names, number>> | undefined => {
  const limits: Partial<Record<Names, number>> = {}
  for (const value of values) {
    const { name, number } = written.exec(value)?.groups ?? {}
    if (name === undefined || limits[name as Names] !== undefined) return undefined
    limits[name as Names] = Number(number)
  }
  return limits
}

export const limit = command("limit", {
  ...steered,
  more: "The change holds until the night ends, and never exceeds what the job allows.",
  examples: { "nightjar limit max_in_flight=50 per_engine=5": "Both limits" },
  flags: { limits: severalArguments("NAME=N", "max_in_flight=N or per_engine=N", 1) },
  run: function* ({ limits }, output) {
    const read = readLimits(limits)
    if (read === undefined) return yield* refuse("limit-invalid")
    return yield* steerNight(output, { _tag: "Limit", ...read })
  },
})
