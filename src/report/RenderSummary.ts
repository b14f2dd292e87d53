/**
 * The summary as a person reads it in the morning: what succeeded, who has to act on the rest, and what is
 * left. Fits any terminal; without one, there are no colours and no line breaks inside sentences.
 */
import { Struct } from "effect"
import { andMore, counted, listed, sumOf } from "../base/Text.ts"
import { isOpenAtService, type RunState, type TaskState } from "../ledger/RunState.ts"
import { changeTitles, changeKinds } from "./Changes.ts"
import { nothingLeft, type Finish } from "./Finish.ts"
import { cut, oneLine, plain, span, table, wrap } from "./TextTable.ts"
import type { NightSummary, Summary, Trouble } from "./Summary.ts"
import { actings, actionNeeded, exitOf, outcomes, type EndRow } from "../service/EndTable.ts"
import { endOfAttempt, isReason } from "../service/Ends.ts"
import { localTime, resumeAgeMaxMs } from "../task/ChooseRun.ts"
import type { EnginePicture, NightPicture } from "../task/NightPicture.ts"
import { next } from "../task/Next.ts"

export interface Style {
  /** Infinity if the output is not a terminal. */
  readonly width: number
  readonly colour: boolean
}

const codes = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33 } as const
export const paint = (style: Style, colour: keyof typeof codes, text: string): string =>
  style.colour ? `\u001b[${codes[colour]}m${text}\u001b[0m` : text

/** What an exit code tells the caller. */
export const exitMeaning: Readonly<Record<number, string>> = {
  0: "every task succeeded, or there was nothing to do",
  1: "a defect in the program",
  2: "wrong usage, job file or settings; nothing was started",
  3: "the run has ended; some tasks need the customer or an engineer, and would fail again until then",
  4: "something is left that a rerun can finish",
  5: "another process is working in this output folder; nothing was started",
  6: "the service refuses the secret or cannot be reached; nothing was started",
}

/** What this run's exit code means; undefined while it has none. */
export const meaningOfExit = ({ exit_code, troubles, changes, held, stale }: Summary): string | undefined => {
  if (exit_code === undefined) return undefined
  if (exit_code === 3 && held !== undefined)
    return "the run has ended; a gate holds back its tables, and `nightjar accept` publishes them"
  if (exit_code === 3 && troubles.length === 0 && stale?.failed !== undefined)
    return "the run has ended; some data is older than `freshness` in the job allows"
  // Only `exit_on: new` ends with 0 in spite of trouble.
  if (exit_code === 0 && troubles.length > 0) {
    const since = changes?.since ?? "the run before"
    return `no new problems: all of them were there after ${since} (\`exit_on: new\`)`
  }
  return exitMeaning[exit_code]
}

/** `Problems compared with demo.2026-11-21: 2 new, 1 resolved`; undefined if there is nothing to say. */
export const tellChanges = (changes: Summary["changes"]): string | undefined => {
  if (changes === null) return undefined
  const told = changeKinds.flatMap((kind) =>
    changes[kind] > 0 ? [`${changes[kind]} ${changeTitles[kind].toLowerCase()}`] : [],
  )
  return told.length === 0 ? undefined : `Problems compared with ${changes.since}: ${told.join(", ")}`
}

export const capital = (text: string): string => text.replace(/^./, (letter) => letter.toUpperCase())

export const renderSummary = (summary: Summary, style: Style): string => {
  const lines = [headline(summary, style), ...counts(summary, style)]
  for (const acting of actings) {
    const troubles = summary.troubles.filter((trouble) => trouble.acting === acting)
    if (troubles.length === 0) continue
    const tasks = sumOf(troubles.map(({ count }) => count))
    lines.push(
      "",
      paint(style, "bold", wrap(`${capital(actionNeeded[acting])} (${counted(tasks, "task")})`, style.width)),
    )
    for (const trouble of troubles) lines.push(...troubleLines(trouble, style))
  }
  const rest = [...deletionLines(summary), ...summary.warnings.map((text) => `Warning: ${text}`)]
  if (rest.length > 0) lines.push("", ...rest.map((text) => wrap(text, style.width, "", "  ")))
  if (summary.night !== undefined)
    lines.push("", wrap(nightText(summary.night, summary.part), style.width, "", "  "))
  // Of a run that has not ended, `status` knows whether a process works on it.
  if (summary.exit_code !== undefined) lines.push(...finishLines(summary.finish, style))
  return lines.join("\n")
}

/** The command stays on one line, so that it can be copied. */
const finishLines = ({ command, why }: Finish, { width }: Pick<Style, "width">): ReadonlyArray<string> => {
  if (command === undefined && why === nothingLeft) return []
  return ["", wrap(why, width), ...(command === undefined ? [] : [`  ${oneLine(command)}`])]
}

/** The whole night, if it had several runs. */
const nightText = (
  { runs, tasks, outcomes: all, exit_code }: NightSummary,
  part: Summary["part"],
): string => {
  const what = part === undefined ? "night" : "part of the job"
  const told = `${counted(tasks, "task")} in ${counted(runs.length, "run")}: ${tellOutcomes(all)}.`
  if (exit_code === undefined) return `The whole ${what}: ${told} One of its runs has not ended.`
  // A part that is asked for again is a run of its own, and answers for itself.
  const code = part === undefined ? "`nightjar run` answers with exit code" : "Exit code"
  const meaning = exitMeaning[exit_code]
  return `The whole ${what}: ${told} ${code} ${exit_code}${meaning === undefined ? "" : `: ${meaning}`}.`
}

/** `2 failed`, in the order of the table of outcomes. */
export const outcomesOf = (counts: Summary["outcomes"]): ReadonlyArray<string> =>
  outcomes.flatMap((outcome) => (counts[outcome] > 0 ? [`${counts[outcome]} ${outcome}`] : []))

export const tellOutcomes = (counts: Summary["outcomes"]): string => outcomesOf(counts).join(", ") || "none"

const headline = ({ run_id, part, elapsed_ms, exit_code }: Summary, style: Style): string => {
  const took = elapsed_ms === undefined ? "not ended" : `took ${span(elapsed_ms)}`
  const code = exit_code === undefined ? "" : `, exit code ${exit_code}`
  const what = part === undefined ? "" : "a part of the job, "
  return paint(style, "bold", wrap(`${run_id}: ${what}${took}${code}`, style.width, "", "  "))
}

/** How well it is, where there are colours. */
export const outcomeLooks = {
  succeeded: "good",
  partial: "warn",
  failed: "trouble",
  skipped: "warn",
  unfinished: "warn",
} as const
const colours = { good: "green", warn: "yellow", trouble: "red" } as const

const counts = (summary: Summary, style: Style): ReadonlyArray<string> => {
  const lines = wrap(
    `${counted(summary.tasks, "task")}: ${tellOutcomes(summary.outcomes)}`,
    style.width,
    "",
    "  ",
  )
  const painted = outcomes.reduce(
    (text, outcome) =>
      text.replace(` ${outcome}`, ` ${paint(style, colours[outcomeLooks[outcome]], outcome)}`),
    lines,
  )
  const { downloaded } = summary.attachments
  const brought = [
    counted(summary.executions, "execution"),
    `${counted(summary.records_counted, "product")} counted`,
    ...(downloaded > 0 ? [counted(downloaded, "attachment")] : []),
  ]
  const changes = tellChanges(summary.changes)
  return [
    painted,
    ...(changes === undefined ? [] : [wrap(changes, style.width, "", "  ")]),
    wrap(brought.join(", "), style.width, "", "  "),
  ]
}

const troubleLines = (trouble: Trouble, style: Style): ReadonlyArray<string> => {
  const { count, reason, outcome, examples, message, means, advice } = trouble
  return [
    wrap(`${String(count).padStart(4)}  ${reason} (${outcome})`, style.width, "", "      "),
    paint(style, "dim", wrap(andMore(examples.map(plain), count), style.width, "      ")),
    ...(message === undefined ? [] : [wrap(`“${message}”`, style.width, "      ")]),
    wrap(`${means} ${advice}`, style.width, "      "),
  ]
}

const deletionLines = (summary: Summary): ReadonlyArray<string> => {
  const { exit_code } = summary
  const { done, pending, kept, kept_by_setting } = summary.deletions
  const parts = [
    ...(done > 0 ? [`${done} deleted at the service`] : []),
    ...(pending > 0 ? [`${pending} not deleted yet`] : []),
    ...(kept > kept_by_setting ? [`${kept - kept_by_setting} kept there on purpose`] : []),
    ...(kept_by_setting > 0 ? [`${kept_by_setting} kept at the service (\`after_export: keep\`)`] : []),
  ]
  const code = meaningOfExit(summary)
  return [
    ...(parts.length > 0 ? [`Executions: ${parts.join(", ")}.`] : []),
    ...(code === undefined ? [] : [`Exit code ${exit_code}: ${code}.`]),
  ]
}

// The running night for people: a screen of any size with one line per engine, and one plain line for logs.
// Pure; lines never exceed the width, and engines that do not fit are counted.

interface Screen extends Style {
  readonly height: number
  /** Where times of day are shown; undefined: where the machine is. */
  readonly timezone: string | undefined
}

const doneOf = ({ done }: EnginePicture): number => sumOf(Object.values(done))

const waitingOf = ({ waiting }: EnginePicture): number => waiting.time + waiting.engine + waiting.conflict

const joined = (parts: ReadonlyArray<string>): string => parts.join(", ")

const waits = ({ waiting }: EnginePicture): string =>
  joined([
    ...(waiting.time > 0 ? [`${waiting.time} to be tried again`] : []),
    ...(waiting.engine > 0 ? [`${waiting.engine} for an engine`] : []),
    ...(waiting.conflict > 0 ? [`${waiting.conflict} for another task`] : []),
  ])

const stateText = ({ stage, state, paused_until }: NightPicture, at: (ms: number) => string): string => {
  if (stage !== "executing") return stage
  if (state === "draining") return "executing, draining: nothing more is started"
  if (state === "running") return "executing"
  return `executing, paused${paused_until === undefined ? "" : ` until ${at(paused_until)} at the latest`}`
}

const times = (night: NightPicture, at: (ms: number) => string): string => {
  const { total, expected_end_at, deadline_at } = night
  return joined([
    `${total.per_hour} tasks per hour`,
    ...(expected_end_at === undefined ? [] : [`expected end ${at(expected_end_at)}`]),
    ...(deadline_at === undefined ? [] : [`deadline ${at(deadline_at)}`]),
  ])
}

const publishedText = (
  { tasks, at: publishedAt, version }: NonNullable<NightPicture["published"]>,
  at: (ms: number) => string,
): string => `${counted(tasks, "task")} published at ${at(publishedAt)}, as version ${version}`

const serviceText = ({ service, at: now }: NightPicture, at: (ms: number) => string): string => {
  const { last_answer_at, silent_since, throttled_since } = service
  if (silent_since !== undefined)
    return `the service has given no usable answer since ${at(silent_since)} (${span(now - silent_since)})`
  if (throttled_since !== undefined)
    return `the service has asked for fewer calls since ${at(throttled_since)}`
  if (last_answer_at === undefined) return "the service has not been called yet"
  return `the service answers; last ${span(now - last_answer_at)} ago`
}

/** From this width on there is room for the rate; from the next one on, for the name of the slowest task. */
const rateMin = 100
const nameMin = 120

const slowestOf = (
  { slowest, closed_until }: EnginePicture,
  { run_id }: NightPicture,
  { width, timezone }: Screen,
): string => {
  const isNarrow = width < nameMin
  if (closed_until !== undefined)
    return isNarrow ? "offline" : `offline until ${localTime(closed_until, timezone)}`
  if (slowest === undefined) return ""
  const { task_id, running_ms } = slowest
  const task = task_id.startsWith(`${run_id}/`) ? task_id.slice(run_id.length + 1) : task_id
  return `${span(running_ms)}${isNarrow ? "" : `  ${task}`}`
}

const engineTable = (
  engines: ReadonlyArray<EnginePicture>,
  night: NightPicture,
  screen: Screen,
): ReadonlyArray<string> => {
  const rates = screen.width < rateMin ? [] : ["per hour"]
  const header = ["engine", "tasks", "queued", "waiting", "running", "done", "not ok", ...rates, "slowest"]
  const rows = engines.map((engine) => [
    engine.engine_reference,
    String(engine.tasks),
    String(engine.queued),
    String(waitingOf(engine)),
    String(engine.running),
    String(doneOf(engine)),
    String(doneOf(engine) - engine.done.succeeded),
    ...rates.map(() => String(engine.per_hour)),
    slowestOf(engine, night, screen),
  ])
  const right = new Set(header.slice(1, -1).map((_, index) => index + 1))
  return table(header, rows, { width: screen.width, right }).split("\n")
}

/** At most `height` lines of at most `width` characters. */
export const renderNight = (night: NightPicture, screen: Screen): ReadonlyArray<string> => {
  const { width, height, timezone } = screen
  const at = (ms: number) => localTime(ms, timezone)
  const { total, limits, engines, published } = night
  const waiting = waits(total)
  const { max_in_flight, per_engine } = limits
  const head = [
    `${plain(night.run_id)}: ${stateText(night, at)}`,
    `${at(night.at)}, after ${span(night.at - night.began_at)}`,
    "",
    `${doneOf(total)} of ${counted(total.tasks, "task")} done${joined(["", ...outcomesOf(total.done)])}`,
    `${total.running} running (at most ${max_in_flight}, and ${per_engine} per engine), ` +
      `${total.queued} queued`,
    `${waitingOf(total)} waiting${waiting === "" ? "" : `: ${waiting}`}`,
    times(night, at),
    ...(published === undefined ? [] : [publishedText(published, at)]),
    serviceText(night, at),
    "",
  ].map((line) => cut(line, width))
  const room = Math.max(1, height - head.length - 1)
  const shown = engines.length <= room ? engines : engines.slice(0, Math.max(0, room - 1))
  const hidden = engines.length - shown.length
  const lines = [
    ...head,
    ...engineTable(shown, night, screen),
    ...(hidden > 0 ? [`and ${counted(hidden, "more engine")}`] : []),
  ].map((line) => cut(line, width))
  const [first = "", ...rest] = lines.slice(0, Math.max(1, height))
  return [paint(screen, "bold", first), ...rest]
}

/** The same in one line, without times that change by themselves; short beside other nights. */
export const renderNightLine = (night: NightPicture, isShort = false): string => {
  const { total, state, stage, service, published, built } = night
  const { silent_since, throttled_since } = service
  const at = (ms: number) => localTime(ms, undefined)
  const head = [
    `${plain(night.run_id)}: ${stage}${stage === "executing" && state !== "running" ? ` (${state})` : ""}`,
    `${doneOf(total)}/${total.tasks} done`,
    ...(built === undefined ? [] : [`${built.done} of ${built.runs} runs in the tables`]),
  ]
  if (isShort) return joined(head)
  const open = { running: total.running, queued: total.queued, waiting: waitingOf(total) }
  return joined([
    ...head,
    ...Object.entries(open).flatMap(([what, count]) => (count > 0 ? [`${count} ${what}`] : [])),
    ...outcomesOf(total.done),
    ...(published === undefined ? [] : [`${published.tasks} published`]),
    ...(silent_since === undefined ? [] : [`no usable answer since ${at(silent_since)}`]),
    ...(throttled_since === undefined ? [] : [`throttled since ${at(throttled_since)}`]),
  ])
}

// One row of the table of ends, for people and for programs: what the reason means, what follows from it,
// and what to do next. Pure. A feature changes no exit code and is not retried by itself: its task is.

/** Whether the same run tries it again. */
export const triedAgain = ({ retry, opensBreaker }: Pick<EndRow, "retry" | "opensBreaker">): string =>
  retry ? "yes, with growing waits" : opensBreaker ? "never with the same credentials" : "no"

export const renderEnd = (reason: string, row: EndRow, width: number): string => {
  const { means, next, unstarted } = row
  const isOfTask = isReason(reason)
  const follows = (end: Pick<EndRow, "outcome" | "who_acts" | "acting">) => {
    const code = isOfTask ? `, exit code ${exitOf(end.outcome)}` : ""
    return `${end.outcome}, ${actionNeeded[end.acting ?? end.who_acts]}${code}`
  }
  return [
    `${reason}: ${means}`,
    `Outcome: ${follows(row)}`,
    ...(unstarted === undefined ? [] : [`If it was never started: ${follows(unstarted)}`]),
    ...(isOfTask ? [`Tried again in the same run: ${triedAgain(row)}`] : []),
    `Next: ${next}`,
  ]
    .map((line) => wrap(line, width, "", "  "))
    .join("\n")
}

export const endJson = (reason: string, row: EndRow) => ({
  reason,
  ...Struct.pick(row, ["outcome", "who_acts", "acting", "means", "next", "unstarted"]),
  ...(isReason(reason)
    ? { retry: row.retry, opens_breaker: row.opensBreaker, exit_code: exitOf(row.outcome) }
    : {}),
})

// A run that was cut off, as `status` tells it: since when nobody works on it, what is in flight, and what
// the next `nightjar run JOB` does about it. Pure: whether a process works on it is known to whoever asks.

/** Where the next run finds the task; undefined if it is over. */
const placeOf = (task: TaskState) => {
  const act = next(task, "night")
  switch (act._tag) {
    case "Done":
      return undefined
    case "Settle":
      // Its start was answered, with an execution of somebody else.
      return act.verdict.reason === "NOT_OURS" ? "in flight" : "unanswered"
    case "Unusable":
      return "unanswered"
    case "Start":
      return act.probe ? "unanswered" : task.attempts.length === 0 ? "not begun" : "waiting"
    case "Read":
      return endOfAttempt(act.last.closed.fact, act.last.abort).retry ? "waiting" : "in flight"
    case "Follow":
    case "Refuse":
      return "in flight"
  }
}

/** `superseded`: the job has begun a newer run since. Times are milliseconds. */
export const interruptedOf = (
  { tasks, started, started_at }: RunState,
  when: { readonly last_at: number; readonly now: number; readonly superseded: boolean },
) => {
  const all = [...tasks.values()]
  const placed = Map.groupBy(all, placeOf)
  const [unanswered, inFlight] = [placed.get("unanswered") ?? [], placed.get("in flight") ?? []]
  const byEngine = Map.groupBy(
    [...inFlight, ...unanswered],
    ({ planned }) => planned.engine_reference ?? null,
  )
  return {
    /** When the last fact of the run was recorded. */
    since: new Date(when.last_at).toISOString(),
    /** Tasks that have begun and are not over, by engine, those with the most first; null: flow sessions. */
    in_flight: [...byEngine]
      .map(([engine_reference, own]) => ({ engine_reference, tasks: own.length }))
      .toSorted((a, b) => b.tasks - a.tasks),
    /** Executions that are open at the service, as far as is known here. */
    open_executions: all.flatMap(({ planned, attempts }) =>
      attempts.filter(isOpenAtService).map(({ execution_id }) => ({
        task_id: planned.task_id,
        customer_id: planned.customer_id ?? null,
        engine_reference: planned.engine_reference ?? null,
        execution_id,
      })),
    ),
    /** Starts of which it is not known whether they created an execution. */
    unanswered_starts: unanswered.length,
    /** Tasks that wait for another try, and those that have not begun. */
    waiting: placed.get("waiting")?.length ?? 0,
    not_begun: placed.get("not begun")?.length ?? 0,
    /** Whether `nightjar run JOB` goes on with it; otherwise it only collects what is in flight. */
    is_resumed:
      !when.superseded && started.part === undefined && Math.abs(when.now - started_at) < resumeAgeMaxMs,
  }
}
export type Interrupted = ReturnType<typeof interruptedOf>

const shownMax = 3

const part = (count: number, noun: string, more = ""): ReadonlyArray<string> =>
  count === 0 ? [] : [`${counted(count, noun)}${more}`]

const whatIsLeft = (interrupted: Interrupted): string => {
  const { in_flight, open_executions, unanswered_starts, waiting, not_begun } = interrupted
  const tasks = sumOf(in_flight.map((one) => one.tasks))
  const engines = in_flight.map((one) => `${one.tasks} on ${one.engine_reference ?? "flow sessions"}`)
  const open = open_executions.map((one) => `${one.execution_id} of ${one.customer_id ?? "?"}`)
  const parts = [
    ...part(tasks, "task", ` (${listed(engines, shownMax)})`),
    ...part(open.length, "execution", ` open at the service (${listed(open, shownMax)})`),
    ...part(unanswered_starts, "start", " without a known answer"),
  ]
  const rest = [...part(waiting, "task", " to be tried again"), ...part(not_begun, "task", " not begun")]
  const left = rest.length === 0 ? "" : ` Also left: ${rest.join(", ")}.`
  return `In flight: ${parts.join(", ") || "nothing"}.${left}`
}

const partNotResumed =
  "The run of a part of a job is not resumed: the job's next run collects what is in flight."

/** Sentences; the command is to follow them, but for a part, which none takes up. */
export const tellInterrupted = (
  run_id: string,
  interrupted: Interrupted,
  now: number,
  isPart = false,
): ReadonlyArray<string> => {
  const agoMs = now - Date.parse(interrupted.since)
  // The clock of an embedded service may be ahead of the machine's.
  const ago = agoMs < 0 ? "" : ` (${span(agoMs)} ago)`
  return [
    `${run_id} was interrupted: no process has worked on it since ${interrupted.since}${ago}.`,
    whatIsLeft(interrupted),
    isPart
      ? partNotResumed
      : interrupted.is_resumed
        ? "This command resumes it; after the job's deadline, it only collects what is in flight:"
        : "It is too old to be resumed. This command collects what is in flight for the job's next run:",
  ]
}
