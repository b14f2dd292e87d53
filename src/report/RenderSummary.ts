/**
 * The summary as a person reads it in the morning: what succeeded, who has to act on the rest, and what is
 * left. Fits any terminal; without one, there are no colours and no line breaks inside sentences.
 */
import { actings, actionNeeded, outcomes } from "../service/EndRow.ts"
import { changeKinds } from "./Changes.ts"
import { changeTitles } from "./ReportText.ts"
import { nothingLeft } from "./Finish.ts"
import type { Finish } from "./Finish.ts"
import type { NightSummary, Summary, Trouble } from "./Summary.ts"
import { counted } from "../base/Counted.ts"
import { oneLine } from "./TerminalText.ts"
import { plain, span, wrap } from "./TextTable.ts"

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
  1: "a defect of the program",
  2: "wrong usage, job file or settings; nothing was started",
  3: "the run is over; some tasks need the customer or an engineer and would fail again as they are",
  4: "something is left that a rerun can finish",
  5: "another process is working in this output folder; nothing was started",
  6: "the service refuses the secret or cannot be reached; nothing was started",
}

/** What this run's exit code means; undefined while it has none. */
export const meaningOfExit = ({ exit_code, troubles, changes, held, stale }: Summary): string | undefined => {
  if (exit_code === undefined) return undefined
  if (exit_code === 3 && held !== undefined)
    return "the run is over; a gate holds its tables back, and `nightjar accept` publishes them"
  if (exit_code === 3 && troubles.length === 0 && stale?.failed !== undefined)
    return "the run is over; some data is older than `freshness` of the job allows"
  // Only `exit_on: new` ends with 0 in spite of trouble.
  if (exit_code === 0 && troubles.length > 0) {
    const since = changes?.since ?? "the run before"
    return `nothing is new: all trouble was there after ${since} (\`exit_on: new\`)`
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

export const renderSummary = (summary: Summary, style: Style): string => {
  const lines = [headline(summary, style), ...counts(summary, style)]
  for (const acting of actings) {
    const troubles = summary.troubles.filter((trouble) => trouble.acting === acting)
    if (troubles.length === 0) continue
    const tasks = troubles.reduce((sum, { count }) => sum + count, 0)
    const needed = actionNeeded[acting].replace(/^./, (letter) => letter.toUpperCase())
    lines.push("", paint(style, "bold", wrap(`${needed} (${counted(tasks, "task")})`, style.width)))
    for (const trouble of troubles) lines.push(...troubleLines(trouble, style))
  }
  const rest = [...deletionLines(summary), ...summary.warnings.map((text) => `Warning: ${text}`)]
  if (rest.length > 0) lines.push("", ...rest.map((text) => wrap(text, style.width, "", "  ")))
  if (summary.night !== undefined) lines.push("", ...nightLines(summary.night, style))
  // Of a run that has not ended, `status` knows whether a process works on it.
  if (summary.exit_code !== undefined) lines.push(...finishLines(summary.finish, style))
  return lines.join("\n")
}

/** The command stays on one line, so that it can be copied. */
export const finishLines = (
  { command, why }: Finish,
  { width }: Pick<Style, "width">,
): ReadonlyArray<string> => {
  if (command === undefined && why === nothingLeft) return []
  return ["", wrap(why, width), ...(command === undefined ? [] : [`  ${oneLine(command)}`])]
}

/** The whole night, if it had several runs. */
const nightLines = (night: NightSummary, style: Style): ReadonlyArray<string> => {
  const { runs, tasks, exit_code } = night
  const told = `${counted(tasks, "task")} in ${counted(runs.length, "run")}: ${toldOutcomes(night)}.`
  const code = exit_code === undefined ? "One of its runs has not ended." : meaningOf(exit_code)
  return [wrap(`The whole night: ${told} ${code}`, style.width, "", "  ")]
}

const meaningOf = (exit_code: number): string => {
  const meaning = exitMeaning[exit_code]
  return `Exit code ${exit_code}${meaning === undefined ? "" : `: ${meaning}`}.`
}

const toldOutcomes = ({ outcomes: counts }: Pick<Summary, "outcomes">): string =>
  outcomes
    .filter((outcome) => counts[outcome] > 0)
    .map((outcome) => `${counts[outcome]} ${outcome}`)
    .join(", ") || "none"

const headline = ({ run_id, elapsed_ms, exit_code }: Summary, style: Style): string => {
  const took = elapsed_ms === undefined ? "not ended" : `took ${span(elapsed_ms)}`
  const code = exit_code === undefined ? "" : `, exit code ${exit_code}`
  return paint(style, "bold", wrap(`${run_id}: ${took}${code}`, style.width, "", "  "))
}

const outcomeColours = {
  succeeded: "green",
  partial: "yellow",
  failed: "red",
  skipped: "yellow",
  unfinished: "yellow",
} as const

const counts = (summary: Summary, style: Style): ReadonlyArray<string> => {
  const lines = wrap(`${counted(summary.tasks, "task")}: ${toldOutcomes(summary)}`, style.width, "", "  ")
  const painted = outcomes.reduce(
    (text, outcome) => text.replace(` ${outcome}`, ` ${paint(style, outcomeColours[outcome], outcome)}`),
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
  const more = count > examples.length ? ` and ${count - examples.length} more` : ""
  return [
    wrap(`${String(count).padStart(4)}  ${reason} (${outcome})`, style.width, "", "      "),
    paint(style, "dim", wrap(`${examples.map(plain).join(", ")}${more}`, style.width, "      ")),
    ...(message === undefined ? [] : [wrap(`“${message}”`, style.width, "      ")]),
    wrap(`${means} ${advice}`, style.width, "      "),
  ]
}

const deletionLines = (summary: Summary): ReadonlyArray<string> => {
  const { exit_code } = summary
  const { done, pending, kept } = summary.deletions
  const parts = [
    ...(done > 0 ? [`${done} deleted at the service`] : []),
    ...(pending > 0 ? [`${pending} not deleted yet`] : []),
    ...(kept > 0 ? [`${kept} kept there on purpose`] : []),
  ]
  const code = meaningOfExit(summary)
  return [
    ...(parts.length > 0 ? [`Executions: ${parts.join(", ")}.`] : []),
    ...(code === undefined ? [] : [`Exit code ${exit_code}: ${code}.`]),
  ]
}
