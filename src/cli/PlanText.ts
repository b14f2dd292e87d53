/**
 * A plan for people: what would start, when it will end, what will not start and why. A large plan is shown
 * by engine, reason and count, unless everything is asked for.
 */
import { Duration, Effect } from "effect"
import { counted, isoTime, listed } from "../base/Text.ts"
import { note } from "./Output.ts"
import type { Job } from "../jobs/Job.ts"
import type { LeftElsewhere } from "../ledger/RunFacts.ts"
import type { Style } from "../report/RenderSummary.ts"
import { span, table, wrap } from "../report/TextTable.ts"
import type { Unasked } from "../run/PlanJob.ts"
import type { NotStarted, Starts } from "../run/Preview.ts"
import type { Task } from "../task/Assignment.ts"
import type { ExpectedEnd } from "../task/ExpectedEnd.ts"
import type { Conflict, Plan } from "../task/Plan.ts"
import { localTime } from "../task/ChooseRun.ts"
import type { Turn, Wait } from "../task/SideBySide.ts"

export interface Preview extends Starts {
  readonly job: Job
  readonly how: "new" | "resume" | "nothing"
  /** Nothing starts by itself, but `rerun` can finish something. */
  readonly isLeft: boolean
  readonly collect: ReadonlyArray<string>
  /** What the runs that are collected or resumed have at another service than the job names now. */
  readonly elsewhere: ReadonlyArray<LeftElsewhere>
  readonly plan: Plan
  /** Tasks of the run that the job no longer names: not started any more, and how many are followed. */
  readonly removed: ReadonlyArray<NamedVerdict>
  readonly leaving: number
  /** How many tasks and sessions were added to the job after its run, which is finished. */
  readonly added: number
  /** Engines that could not be asked whether they can be used: their cached forms are planned with. */
  readonly unasked: ReadonlyArray<Unasked>
  /** Tasks to start that earlier runs had no time for: they come first. */
  readonly carried: ReadonlySet<string>
  /** How long the run takes at least, if every slot is used; told only with an end. */
  readonly expected: Duration.Duration
  /** Undefined before the first run of the job. */
  readonly end: ExpectedEnd | undefined
  readonly calls: number
  /** Of a rerun: what starts only under a condition. */
  readonly conditions?: ReadonlyArray<string>
  /** Milliseconds since the epoch. */
  readonly now: number
  readonly deadlineAt: number | undefined
  /** How the job's results sources differ from the built-in ones, one line each. */
  readonly sources: ReadonlyArray<string>
}

/** Up to here each task has a line. */
const tasksShownMax = 50
const groupsShownMax = 10
const examplesMax = 3

const headlines = {
  new: "would start",
  resume: "would be resumed",
  nothing: "is finished: `run` would do nothing (`--new` starts another run)",
  left: "starts nothing more: `nightjar rerun` starts what is left of its night",
} as const

/** The stored token that logs in; undefined if parameters do. */
export const tokenName = ({ login }: Task["start"]): string | undefined =>
  login._tag === "Token" ? login.token.name : undefined

const shortened = (lines: ReadonlyArray<string>, max: number): ReadonlyArray<string> =>
  lines.length <= max ? lines : [...lines.slice(0, max), `and ${lines.length - max} more (\`--all\`)`]

const titled = (title: string, lines: ReadonlyArray<string>, width: number): ReadonlyArray<string> =>
  lines.length === 0 ? [] : ["", title, ...lines.map((line) => wrap(`  ${line}`, width, "", "    "))]

/** The forms are cached for hours; whether their engines can be used now is not known. */
const unaskedLines = (unasked: ReadonlyArray<Unasked>): ReadonlyArray<string> =>
  [...Map.groupBy(unasked, ({ why }) => why)].map(([why, own]) => {
    const names = own.map(({ engine_reference }) => engine_reference)
    const since = isoTime(Math.min(...own.map(({ fetched_at }) => fetched_at)))
    const of =
      own.length === 1 ? `its form is that of ${since}` : `their forms are those of ${since} or later`
    return `Not known whether ${listed(names, examplesMax)} can be used now, ${of}: ${why}`
  })

/** What is known about the engines of tasks that would start. */
const engineStates = ({ unasked }: Preview): ((task: Task) => string) => {
  const silent = new Set(unasked.map(({ engine_reference }) => engine_reference))
  return ({ engine_reference, availability }) => (silent.has(engine_reference) ? "not known" : availability)
}

const taskRows = (tasks: ReadonlyArray<Task>, stateOf: (task: Task) => string, width: number): string => {
  const withTokens = tasks.some((task) => tokenName(task.start) !== undefined)
  const rows = tasks.map((task) => [
    task.customer_id,
    task.engine_reference,
    task.features.map(({ code }) => code).join(" ") || "(the engine's defaults)",
    stateOf(task),
    span(Duration.toMillis(task.expected)),
    ...(withTokens ? [tokenName(task.start) === undefined ? "parameters" : "token"] : []),
  ])
  const header = ["customer", "engine", "features", "engine is", "expected"]
  return table(withTokens ? [...header, "login"] : header, rows, { width })
}

const engineRows = (tasks: ReadonlyArray<Task>, stateOf: (task: Task) => string, width: number): string => {
  const byEngine = Map.groupBy(tasks, ({ engine_reference }) => engine_reference)
  const rows = [...byEngine].map(([engine, own]) => [
    engine,
    String(own.length),
    ...own.slice(0, 1).map(stateOf),
    span(Duration.toMillis(own[0]?.expected ?? Duration.zero)),
  ])
  return table(["engine", "tasks", "engine is", "expected each"], rows, { width, right: new Set([1]) })
}

type NamedVerdict = Pick<NotStarted, "outcome" | "reason" | "who_acts" | "message"> & {
  readonly customer_id: string
  readonly engine_reference: string
}

const nameOf = ({ customer_id, engine_reference }: Pick<NamedVerdict, "customer_id" | "engine_reference">) =>
  `${customer_id} ${engine_reference}`

const waitingTitle = "Wait until what earlier runs left open with their customer or login is over:"

/** Why tasks are not started: each, or by reason if there are many. */
const notStartedLines = (settled: ReadonlyArray<NamedVerdict>, all: boolean): ReadonlyArray<string> => {
  const whatOf = ({ outcome, reason, who_acts }: NamedVerdict) => `${outcome}, ${reason} (${who_acts})`
  if (all || settled.length <= tasksShownMax)
    return settled.map((verdict) => `${nameOf(verdict)}: ${whatOf(verdict)}: ${verdict.message}`)
  const groups = Map.groupBy(settled, whatOf)
  return [...groups].map(
    ([what, own]) => `${counted(own.length, "task")} ${what}: ${listed(own.map(nameOf), examplesMax)}`,
  )
}

/** The longest chains come first: they decide when their customers are done. */
const conflictLines = ({ tasks, conflicts }: Plan, all: boolean): ReadonlyArray<string> => {
  const expected = new Map(tasks.map(({ task_id, expected: each }) => [task_id, Duration.toMillis(each)]))
  const lengthOf = ({ task_ids }: Conflict) => task_ids.reduce((sum, id) => sum + (expected.get(id) ?? 0), 0)
  const lines = conflicts
    .map((conflict) => ({ conflict, length: lengthOf(conflict) }))
    .toSorted((a, b) => b.length - a.length)
    .map(({ conflict: { why, task_ids }, length }) => {
      const names = all ? task_ids.join(", ") : listed(task_ids, examplesMax)
      return `${why.replaceAll("_", " ")}, ${span(length)}: ${names}`
    })
  return all ? lines : shortened(lines, groupsShownMax)
}

const endLines = ({ how, end, calls, now, deadlineAt, job }: Preview): ReadonlyArray<string> => {
  const { timezone } = job
  const deadline = deadlineAt === undefined ? undefined : `Deadline: ${localTime(deadlineAt, timezone)}.`
  if (end === undefined) return deadline === undefined || how === "nothing" ? [] : [deadline]
  const at = (after: Duration.Duration) => localTime(now + Duration.toMillis(after), timezone)
  const { p50, p95, late, maybeLate } = end
  const when =
    `Expected end: ${at(p50)}, in ${span(Duration.toMillis(p50))}; 19 times out of 20 before ${at(p95)}. ` +
    `About ${counted(calls, "request")} to the service.`
  if (deadline === undefined) return [when]
  const after =
    maybeLate === 0
      ? "Everything should be finished by then."
      : `${counted(late, "task")} will probably not finish by then, ${maybeLate} in a bad night.`
  return [when, `${deadline} ${after}`]
}

/** Before the first run, what a task is expected to take is the longest that it may. */
const durationText = ({ end, expected, starting }: Preview): string => {
  if (end !== undefined) return `takes at least ${span(Duration.toMillis(expected))}`
  const longest = Math.max(...starting.map((task) => Duration.toMillis(task.expected)))
  return `${starting.length === 1 ? "takes" : "each takes"} up to ${span(longest)}`
}

/** Of a night that is finished; a line if there are any. */
export const addedLines = (added: number): ReadonlyArray<string> =>
  added === 0
    ? []
    : [
        `${counted(added, "task")} of the job ${added === 1 ? "is" : "are"} not in this night: ` +
          `\`nightjar run JOB --customer ID…\` starts ${added === 1 ? "it" : "them"}.`,
      ]

export const renderPreview = (preview: Preview, { width }: Style, all: boolean): string => {
  const { how, isLeft, collect, plan, starting, over, waiting, carried, sources } = preview
  const followed = preview.followed.length - waiting.length + preview.leaving
  const notStarted = [...preview.notStarted, ...preview.removed]
  const headline =
    `${plan.run_id} ${headlines[isLeft ? "left" : how]}: ${counted(starting.length, "task")} to start, ` +
    `${over.length} already finished, ` +
    (followed === 0 ? "" : `${followed} in progress, `) +
    (waiting.length === 0 ? "" : `${waiting.length} waiting for a login that is in use, `) +
    `${notStarted.length} that will not start, ` +
    `${counted(plan.sessions.length, "session")} to read` +
    (starting.length === 0 ? "" : `; ${durationText(preview)}`)
  const first = collect.map((run_id) => `First, what ${run_id} left at the service is collected.`)
  const moved = preview.elsewhere.map(
    ({ run_id, service, executions }) =>
      `${counted(executions, "execution")} of ${run_id} started at ${service}: what the job's present ` +
      "service does not show stays as it is.",
  )
  const come = carried.size === 1 ? "comes" : "come"
  const left = `${counted(carried.size, "task")} left over from the last run ${come} first.`
  const carriedLine = carried.size === 0 ? [] : [left]
  const warnings = plan.warnings.map(
    ({ engine_reference, message, source, count }) =>
      `${source}: ${engine_reference}: ${message}${count > 1 ? ` (${count} times)` : ""}`,
  )
  const waits = waiting.map(nameOf)
  const isLong = !all && starting.length > tasksShownMax
  const rows = (isLong ? engineRows : taskRows)(starting, engineStates(preview), width)
  return [
    ...[
      headline,
      ...addedLines(preview.added),
      ...endLines(preview),
      ...unaskedLines(preview.unasked),
      ...first,
      ...moved,
      ...carriedLine,
    ].map((line) => wrap(line, width)),
    ...(starting.length === 0 ? [] : ["", rows]),
    ...(isLong ? ["", wrap("`--all` shows every task.", width)] : []),
    ...titled(waitingTitle, all ? waits : shortened(waits, tasksShownMax), width),
    ...titled("May start:", preview.conditions ?? [], width),
    ...titled("Will not start:", notStartedLines(notStarted, all), width),
    ...titled("Results sources that differ from the built-in ones:", sources, width),
    ...titled("Will run one after the other:", conflictLines(plan, all), width),
    ...titled("Warnings:", all ? warnings : shortened(warnings, tasksShownMax), width),
  ].join("\n")
}

const reasonText = (wait: Wait): string => {
  switch (wait.why) {
    case "after":
      return "as `after` asks"
    case "time":
      return "they do not run on the same clock"
    case "replaces":
      return `both collect what runs of ${wait.replaced} left`
    case "customer": {
      const { customer_id, engine_reference } = wait.example
      const others = wait.shared > 1 ? ` and ${wait.shared - 1} more` : ""
      return `both name ${customer_id} on ${engine_reference}${others}`
    }
    case "session":
      return `both read ${wait.shared > 1 ? counted(wait.shared, "session") : `the session ${wait.example}`}`
  }
}

/** For people: a line for the jobs that start at once, and one for each that waits, for whom and why. */
export const turnLines = (turns: ReadonlyArray<Turn>): ReadonlyArray<string> => {
  const first = turns.flatMap(({ job, waits }) => (waits.length === 0 ? [job] : []))
  return [
    ...(first.length > 1 ? [`Side by side: ${first.join(", ")}.`] : []),
    ...turns.flatMap(({ job, waits }) => {
      const whom = waits.map((wait) => `${wait.job} (${reasonText(wait)})`)
      return whom.length === 0 ? [] : [`${job} starts after ${whom.join(", ")}.`]
    }),
  ]
}

/** Told only if there is more than one. */
export const tellTurns = (turns: ReadonlyArray<Turn>) =>
  Effect.forEach(turnLines(turns), note, { discard: true })
