/**
 * Nights of jobs: `run`, `rerun`, `demo` and `accept`. Each ends with the exit code of its run; of several
 * jobs, with the one that most needs somebody.
 */
import { existsSync } from "node:fs"
import { join, resolve } from "node:path"
import { Duration, Effect, Layer, Option } from "effect"
import { Command, Flag } from "effect/cli"
import { isDurationWithin, readDuration, shellWord } from "../../base/Text.ts"
import { helped, type Asked } from "../CommandRow.ts"
import {
  NoProgressFlag,
  Output,
  Settings,
  jobArguments,
  jsonFlag,
  namedOutput,
  note,
  only,
  optionalArgument,
  optionalFlag,
  outputFolder,
  runArgument,
  say,
  sayJson,
  sayPainted,
  severalFlag,
  switchFlag,
  unknownNames,
  warn,
} from "../Output.ts"
import { endWith, refuse, refuseUnknown } from "../Failures.ts"
import { checkJobs, isPartial, loadJobs, loadNight, readableJobs, takeJobs } from "../Jobs.ts"
import { partFlags, partsOf, untold, withSql } from "../Jobs.ts"
import { findNight, findRun, holdOutput, withLedger } from "../OutputFolder.ts"
import * as Nights from "../Nights.ts"
import { announced, refuseSilent, toldUnbegun } from "../Notices.ts"
import { renderPreview } from "../PlanText.ts"
import { ProgressDisplay } from "../ProgressDisplay.ts"
import { Wiring } from "../Wiring.ts"
import { previewJob, type Previewed } from "./Plan.ts"
import { subjectsOf, type Job } from "../../jobs/Job.ts"
import { subjectOf, verdictOfTask, type RunState, type TaskState } from "../../ledger/RunState.ts"
import { deliveredInNight, newestTasks, nightExitCode } from "../../ledger/WholeNight.ts"
import { exitCodes } from "../../messages/ExitCodes.ts"
import { exitMeaning, renderSummary } from "../../report/RenderSummary.ts"
import { summarise } from "../../report/Summary.ts"
import { wrap } from "../../report/TextTable.ts"
import { acceptRun } from "../../run/Nightly.ts"
import { notInJob } from "../../run/Preview.ts"
import { outcomes } from "../../service/EndTable.ts"
import { own } from "../../service/Ends.ts"
import { accessKey, sessionKey, type RunId } from "../../service/Ids.ts"
import { heldRuns } from "../../tables/HeldRuns.ts"

export const run = Command.make(
  "run",
  {
    jobs: jobArguments,
    further: switchFlag("new", "Start another run even if the last one is unfinished"),
    wait: Flag.String("wait").pipe(
      Flag.withMetavar("DURATION"),
      Flag.withDescription("How long to wait for another process in the folder"),
      only(
        isDurationWithin({ minimum: "1 second", maximum: "24 hours" }),
        "a number and a unit in quotes, such as '60 seconds' or '8 hours', from 1 second to 24 hours",
      ),
      Flag.optional,
    ),
    ...partFlags,
    webhooks: Nights.webhooksFlag,
    json: jsonFlag,
  },
  Effect.fn("Run.handle")(function* ({ jobs, further, json, ...flags }) {
    const output = yield* outputFolder
    const isPart = isPartial(flags)
    const checked = yield* checkJobs(jobs, isPart ? "part" : undefined)
    const told = isPart ? [] : readableJobs(checked)
    const tried = Effect.flatMap(withSql(checked), takeJobs)
    const whole = yield* tried.pipe(toldUnbegun(told, output))
    const parts = yield* partsOf(whole, flags)
    const loaded = isPart ? whole.map(untold) : whole
    const webhooks = yield* Nights.readWebhooksFlag(flags.webhooks)
    const wait = Option.getOrElse(Option.flatMap(flags.wait, readDuration), () => Duration.zero)
    const options = { output, json, further, wait, webhooks, isPart, parts }
    yield* endWith(yield* Nights.runNights(loaded, options))
  }),
).pipe(
  helped({
    more: `
      The steps of a run: plan, execute, land, normalise, publish, delete.

      With \`--customer\` or \`--first\` it is a run of a part of the job, and not the night: another run in
      any case, of which receivers hear nothing. What it reads comes into the tables, and nothing else in them
      changes. The night takes place all the same, and an unfinished one stays as it is.`,
    examples: {
      "nightjar run jobs/demo.yaml": "The demo job",
      "nightjar run jobs/demo.yaml --first 3": "Its first three customers, before a night of all of them",
      "nightjar run jobs/demo.yaml --webhooks 0": "The same, with webhooks instead of frequent polling",
    },
  }),
)

// `rerun` takes the tasks that did not succeed in an earlier run, its parent, and asks only for the features
// that are not in the tables yet. The job is loaded again, so that corrections apply.

const selection = {
  failed: switchFlag("failed", "Only tasks whose outcome is `failed`"),
  only: severalFlag("only", "REASON", "Only tasks with this reason"),
  never: severalFlag("never", "REASON", "No tasks with this reason"),
  customers: severalFlag("customer", "ID", "Only this customer"),
  engines: severalFlag("engine", "REF", "Only this engine"),
  features: severalFlag("feature", "CODE", "Only tasks that lack this feature"),
}
export type Selection = Asked<typeof selection>

/** The features of a task that are not in the tables yet; empty if the job left them to the engine. */
const featuresLeft = (
  task: TaskState,
  delivered: ReadonlyMap<string, ReadonlySet<string>>,
): ReadonlyArray<string> =>
  task.planned.features.filter((code) => delivered.get(subjectOf(task))?.has(code) !== true)

/** Tasks that did not succeed and match the selection, flow sessions included: pure. */
export const selectTasks = (
  tasks: ReadonlyArray<TaskState>,
  { failed, only, never, customers, engines, features }: Selection,
  delivered: ReadonlyMap<string, ReadonlySet<string>>,
): ReadonlyArray<TaskState> =>
  tasks.filter((task) => {
    const { customer_id = "", engine_reference = "" } = task.planned
    const outcome = verdictOfTask(task).outcome
    const reason = task.settled?.fact.reason ?? ""
    const isAmong = (names: ReadonlyArray<string>, ...those: ReadonlyArray<string>) =>
      names.length === 0 || those.some((one) => names.includes(one))
    return (
      outcome !== "succeeded" &&
      (!failed || outcome === "failed") &&
      isAmong(only, reason) &&
      !never.includes(reason) &&
      isAmong(customers, customer_id) &&
      isAmong(engines, engine_reference) &&
      isAmong(features, ...featuresLeft(task, delivered))
    )
  })

/** Not those that a later run of the night finished: no login is sent without need. */
export const tasksMeant = (
  night: ReadonlyArray<RunState>,
  run: RunState,
  isNamed: boolean,
): ReadonlyArray<TaskState> => {
  const newest = newestTasks(night)
  if (!isNamed) return [...newest.values()]
  return [...run.tasks.values()].filter((task) => {
    const last = newest.get(subjectOf(task))
    return last === undefined || last === task || verdictOfTask(last).outcome !== "succeeded"
  })
}

export const unknownSelected = (
  run_id: string,
  tasks: ReadonlyArray<TaskState>,
  { only, customers, engines, features }: Selection,
): ReadonlyArray<string> =>
  unknownNames(run_id, {
    only: [only, tasks.map(({ settled }) => settled?.fact.reason)],
    customer: [customers, tasks.map(({ planned }) => planned.customer_id)],
    engine: [engines, tasks.map(({ planned }) => planned.engine_reference)],
    feature: [features, tasks.flatMap(({ planned }) => planned.features)],
  })

/** The job of a run; its file, or the output folder, may be elsewhere than when the run was started. */
const jobOf = Effect.fnUntraced(function* (
  { started }: Pick<RunState, "started">,
  moved: Option.Option<string>,
) {
  const { run_id, job: name, job_path, part } = started
  const path = Option.getOrElse(moved, () => job_path)
  if (!existsSync(path)) return yield* refuse("job-file-gone", { path: resolve(path), run_id })
  const isPart = part !== undefined
  const job = yield* loadNight(path, isPart)
  if (job.name !== name) return yield* refuse("job-moved", { path, name })
  return isPart ? untold(job) : job
})

/** Whether a run of it has not ended, or has something at the service that the next look may finish. */
const isLeft = (night: ReadonlyArray<RunState>): boolean => {
  const code = nightExitCode(night)
  if (code !== undefined && code !== exitCodes.leftovers) return false
  return night.some(({ ended }) => ended === undefined || ended.leftovers)
}

const movedFlag = optionalFlag("job", "FILE", "Where the run's job file is now, if it was moved")

export const rerun = Command.make(
  "rerun",
  {
    run: runArgument,
    ...selection,
    moved: movedFlag,
    dryRun: switchFlag("dry-run", "Show what would run again, without starting it"),
    webhooks: Nights.webhooksFlag,
    json: jsonFlag,
  },
  Effect.fn("Rerun.handle")(function* ({ run, dryRun, json, moved, webhooks: listenAt, ...selected }) {
    const webhooks = yield* Nights.readWebhooksFlag(listenAt)
    const { state, night } = yield* withLedger(findNight(run, (ledger) => ledger.state))
    const { run_id } = state.started
    const meant = tasksMeant(night, state, Option.isSome(run))
    // What a run of the night had is no mistake, though a later one mended it.
    const ever = [state, ...night].flatMap(({ tasks: all }) => [...all.values()])
    yield* refuseUnknown(unknownSelected(run_id, ever, selected))
    const delivered = deliveredInNight(night)
    const tasks = selectTasks(meant, selected, delivered)
    const nothing = (why: string) => (json ? sayJson([]) : say(`${why}: nothing to rerun.`))
    if (tasks.length === 0) {
      if (!isLeft(night)) return yield* nothing(`No task of ${run_id} matches`)
      // Not by `run`, which may be due to start the job's next night.
      yield* note(`No task of ${run_id} matches: nothing is started; what its night left open is completed.`)
      if (dryRun) return json ? yield* sayJson([]) : undefined
    }
    const job = yield* jobOf(state, moved)
    const asked = { further: true, parent: run_id, only: new Set(tasks.map(subjectOf)) }
    if (dryRun) {
      yield* refuseSilent([job])
      return yield* tellPreview(tasks, yield* previewJob(job, asked), json)
    }
    const named = subjectsOf(job)
    // A run without a task would be the newest one, which later commands mean.
    if (tasks.length > 0 && !tasks.some((task) => named.has(subjectOf(task))))
      return yield* nothing(`The job no longer names any of the selected tasks of ${run_id}`)
    const output = yield* outputFolder
    const isPart = state.started.part !== undefined
    const options = { output, json, webhooks, isPart, ...asked }
    yield* endWith(yield* Nights.runNights([job], options))
  }),
).pipe(
  helped({
    examples: {
      "nightjar rerun --dry-run": "What would run again",
      "nightjar rerun --only TIMEOUT": "Only what timed out",
    },
  }),
)

const followedFirst = {
  ...own("IN_PROGRESS"),
  message: "what it left at the service is collected first; `nightjar rerun` then starts it if needed",
}
const readFirst = "what is kept at the service is read first; it is started again if that is not all"
const perhaps =
  "an execution with its login is open: it is followed to its end first, and may close the login"

type Split = Pick<Previewed, "plan" | "starting" | "followed" | "notStarted" | "only" | "read">

/** What would run again, at once or on a condition; `others`: whom the plan does not name, and why. Pure. */
export const splitSelection = (
  tasks: ReadonlyArray<TaskState>,
  { plan, starting, followed, notStarted, only, read }: Split,
) => {
  const asked = new Map<string, ReadonlyArray<string>>([
    ...[...starting, ...followed].map(
      (task) => [accessKey(task), task.features.map(({ code }) => code)] as const,
    ),
    ...plan.sessions.map((session) => [sessionKey(session), []] as const),
  ])
  const conditions = new Map(
    followed.map((one) => [accessKey(one), read.has(accessKey(one)) ? readFirst : perhaps]),
  )
  const rows = tasks.flatMap((task) => {
    const features = asked.get(subjectOf(task))
    if (features === undefined) return []
    const { task_id, customer_id = "", session_id = "", engine_reference = "" } = task.planned
    const { outcome } = verdictOfTask(task)
    const reason = task.settled?.fact.reason ?? ""
    const condition = conditions.get(subjectOf(task)) ?? null
    return [{ task_id, customer_id, session_id, engine_reference, outcome, reason, features, condition }]
  })
  const told = new Set([...asked.keys(), ...notStarted.map(accessKey)])
  const others = tasks.flatMap((task) => {
    const { customer_id, session_id = "", engine_reference = "(session)" } = task.planned
    const why = only?.has(subjectOf(task)) === true ? notInJob : followedFirst
    const named = { ...why, customer_id: customer_id ?? session_id, engine_reference }
    return told.has(subjectOf(task)) ? [] : [named]
  })
  return { rows, others }
}

const tellPreview = Effect.fnUntraced(function* (
  tasks: ReadonlyArray<TaskState>,
  preview: Previewed,
  json: boolean,
) {
  const { rows, others } = splitSelection(tasks, preview)
  if (json) return yield* sayJson(rows)
  const conditions = rows.flatMap(({ customer_id, engine_reference, condition }) =>
    condition === null ? [] : [`${customer_id} ${engine_reference}: ${condition}`],
  )
  const removed = [...preview.removed, ...others]
  yield* say(renderPreview({ ...preview, removed, conditions }, (yield* Output).out, false))
})

// The exit code that a cron job would have got is explained; `demo` succeeds if the run ended as designed.

/** How the tasks of `jobs/demo.yaml` end, on the first run and on every later one. */
const designed = { succeeded: 26, partial: 2, failed: 8, skipped: 2, unfinished: 1 } as const

const exampleQuery =
  "SELECT who_acts, reason, count(DISTINCT customer_id) AS customers FROM coverage GROUP BY ALL ORDER BY ALL"

export const demo = Command.make(
  "demo",
  {},
  Effect.fn("Demo.handle")(function* () {
    const { packageFolder } = yield* Wiring
    const path = existsSync("jobs/demo.yaml") ? "jobs/demo.yaml" : join(packageFolder, "jobs/demo.yaml")
    const output = yield* outputFolder
    const jobs = yield* loadJobs([path])
    const exit_code = yield* Nights.runNights(jobs, { output, json: false, further: false })
    if (exit_code !== exitCodes.leftovers && exit_code !== exitCodes.peopleMustAct)
      return yield* endWith(exit_code === exitCodes.ok ? exitCodes.defect : exit_code)
    const summary = summarise(yield* withLedger(findRun(Option.none())))
    const { out } = yield* Output
    const named = namedOutput(output)
    const folder = named === undefined ? "" : ` --output ${shellWord(named)}`
    const meaning =
      `A cron job would have ended with exit code ${exit_code}: ${exitMeaning[exit_code]}. ` +
      "Here, that is the task on the engine in maintenance; the others need a customer or an engineer."
    const { invocation } = yield* Settings
    yield* say(`\n${wrap(meaning, out.width, "", "  ")}`)
    // Commands stay on one line, so that they can be copied.
    yield* say(`To query the tables: ${invocation} query${folder} "${exampleQuery}"`)
    yield* say(`To explain a customer's result: ${invocation} explain${folder} c-024`)
    const asDesigned =
      exit_code === exitCodes.leftovers &&
      outcomes.every((outcome) => summary.outcomes[outcome] === designed[outcome])
    if (!asDesigned) yield* warn("demo-unexpected")
    yield* endWith(asDesigned ? exitCodes.ok : exit_code)
  }),
)

// `accept` publishes a run that a gate holds back, without asking its gates again, deletes at the service
// what is safe now, and ends the run. If it is cut off, the same command goes on.

const accepted = Effect.fnUntraced(function* (job: Job, output: string, run_id: RunId, json: boolean) {
  const wiring = yield* Wiring
  const silent = yield* NoProgressFlag
  const result = yield* acceptRun(job, run_id).pipe(
    Effect.provide(Layer.merge(ProgressDisplay.layer(output, !silent), wiring.night(job, output))),
  )
  const summary = yield* Nights.writeSummary(job, output, result)
  const { out } = yield* Output
  yield* json ? sayJson(summary) : sayPainted(renderSummary(summary, out))
  yield* Nights.reportNight(job, output, result)
  yield* Nights.tidyAfterNight(job, output, result)
  const { exit_code, recovered, news } = result
  return { exit_code, ending: { job: job.name, exit_code, summary, recovered, news } }
})

/** The named run, or the newest one that a gate holds back; undefined if there is none. */
const findHeld = Effect.fnUntraced(function* (named: Option.Option<string>) {
  if (Option.isSome(named)) return yield* findRun(named)
  return (yield* heldRuns).at(-1)
})

export const accept = Command.make(
  "accept",
  {
    run: optionalArgument("RUN", "A run_id (default: the newest one that is held back)"),
    moved: movedFlag,
    json: jsonFlag,
  },
  Effect.fn("Accept.handle")(function* ({ run, moved, json }) {
    const state = yield* withLedger(findHeld(run))
    if (state === undefined)
      return yield* json ? sayJson(null) : say("No gate holds a run back: nothing to accept.")
    const { run_id } = state.started
    if (state.held === undefined && state.accepted !== true) return yield* refuse("run-not-held", { run_id })
    const job = yield* jobOf(state, moved)
    const output = yield* outputFolder
    yield* holdOutput(output, [job.share])
    yield* endWith((yield* accepted(job, output, run_id, json).pipe(announced(job, output))).exit_code)
  }, Effect.scoped),
)
