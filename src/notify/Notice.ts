/**
 * What others are told of a run: which events it is, and the words and numbers. Pure. A notice leaves this
 * machine, so it contains no customer, no id but the run's, and no word of the service that our own table
 * does not list.
 */
import { counted } from "../foundation/Counted.ts"
import { outcomes } from "../ends/EndRow.ts"
import type { Outcome, WhoActs } from "../ends/EndRow.ts"
import { isReason, rowOf } from "../ends/Ends.ts"
import type { NotifyEvent } from "../jobs/Job.ts"
import type { RunChanges } from "../report/Changes.ts"
import { exitMeaning, meaningOfExit, tellChanges } from "../report/RenderSummary.ts"
import type { Summary } from "../report/Summary.ts"

/** Tasks with one reason. */
export interface NoticeTrouble {
  readonly reason: string
  readonly outcome: Outcome
  readonly who_acts: WhoActs
  readonly count: number
  readonly what_to_do: string
}

/** As it is sent, in `format: json` and to commands; null where it is not known. */
export interface Notice {
  readonly tool: "nightjar"
  readonly events: ReadonlyArray<NotifyEvent>
  readonly job: string
  readonly run_id: string | null
  readonly run_date: string | null
  readonly exit_code: number | null
  readonly meaning: string
  readonly tasks: number | null
  readonly outcomes: Readonly<Record<Outcome, number>> | null
  readonly changes: RunChanges | null
  readonly troubles: ReadonlyArray<NoticeTrouble>
  readonly what_to_do: string
  /** Everything in one or a few lines. */
  readonly text: string
}

/** How a run ended; `summary` is undefined if it ended before it could be summarised. */
export interface RunEnding {
  readonly job: string
  readonly exit_code: number
  readonly summary: Summary | undefined
  /** The run before had trouble, and now there is none. */
  readonly recovered: boolean
}

/** What a run that is over has to tell, whoever listens. */
export const eventsOf = ({ exit_code, summary, recovered }: RunEnding): ReadonlyArray<NotifyEvent> => {
  const changes = summary?.changes ?? null
  // The first run of a job has no other to be compared with: all its trouble is new.
  const fresh = changes?.new ?? summary?.troubles.length ?? 0
  return [
    ...(exit_code === 0 ? [] : ["failed" as const]),
    ...(fresh > 0 ? ["new_trouble" as const] : []),
    ...(recovered && exit_code === 0 ? ["recovered" as const] : []),
  ]
}

/** A reason that the table does not list is a word of the service, which may be anything. */
const unlisted = "UNLISTED"
const examine = "`nightjar status` and the run's report.html tell the rest."

/** Reasons without a row become one. */
const troublesOf = ({ troubles }: Summary): ReadonlyArray<NoticeTrouble> => {
  const merged = new Map<string, NoticeTrouble>()
  for (const { reason: said, outcome, who_acts, count } of troubles) {
    const reason = isReason(said) ? said : unlisted
    const key = `${who_acts} ${outcome} ${reason}`
    const before = merged.get(key)?.count ?? 0
    merged.set(key, { reason, outcome, who_acts, count: before + count, what_to_do: rowOf(reason).next })
  }
  return [...merged.values()]
}

/** With the command that finishes the rest, unless a word of the service would be in it. */
const toDo = (
  exit_code: number,
  summary: Summary | undefined,
  troubles: ReadonlyArray<NoticeTrouble>,
): string => {
  if (exit_code === 0) return "Nothing to do."
  if (summary === undefined) return examine
  const { finish } = summary
  if (finish.command === undefined) return `${finish.why} ${examine}`
  const isOurs = troubles.every(({ reason, outcome }) => reason !== unlisted || outcome !== "unfinished")
  return isOurs ? `${finish.why}\n  ${finish.command}\n${examine}` : examine
}

export const noticeOf = (events: ReadonlyArray<NotifyEvent>, ending: RunEnding): Notice => {
  const { job, exit_code, summary } = ending
  const meaning =
    (summary === undefined ? undefined : meaningOfExit(summary)) ??
    exitMeaning[exit_code] ??
    "the run ended before its summary was written"
  const troubles = summary === undefined ? [] : troublesOf(summary)
  const told = {
    tool: "nightjar" as const,
    events,
    job,
    run_id: summary?.run_id ?? null,
    run_date: summary?.run_date ?? null,
    exit_code,
    meaning,
    tasks: summary?.tasks ?? null,
    outcomes: summary?.outcomes ?? null,
    changes: summary?.changes ?? null,
    troubles,
    what_to_do: toDo(exit_code, summary, troubles),
  }
  return { ...told, text: textOf(told) }
}

const textOf = (notice: Omit<Notice, "text">): string => {
  const { job, run_id, exit_code, meaning, tasks, changes, troubles, what_to_do } = notice
  const ends = outcomes.flatMap((outcome) => {
    const count = notice.outcomes?.[outcome] ?? 0
    return count === 0 ? [] : [`${count} ${outcome}`]
  })
  const changed = tellChanges(changes)
  return [
    `${run_id ?? job} (${notice.events.join(", ")}): exit code ${exit_code}, ${meaning}.`,
    ...(tasks === null ? [] : [`${counted(tasks, "task")}: ${ends.join(", ") || "none"}.`]),
    ...(changed === undefined ? [] : [`${changed}.`]),
    ...troubles.map(({ count, reason, who_acts }) => `${count} ${reason}, ${who_acts} acts.`),
    what_to_do,
  ].join("\n")
}

/** A run that has not ended when its night is over. */
export const lateNotice = (job: string, untilAt: number): Notice => {
  const meaning = `the run has not ended by ${new Date(untilAt).toISOString()}`
  const what_to_do = "`nightjar status` tells what it is waiting for; it ends by itself."
  return {
    tool: "nightjar",
    events: ["late"],
    job,
    run_id: null,
    run_date: null,
    exit_code: null,
    meaning,
    tasks: null,
    outcomes: null,
    changes: null,
    troubles: [],
    what_to_do,
    text: `${job} (late): ${meaning}.\n${what_to_do}`,
  }
}

/** Slack reads `<…>` and `&` as markup (its own rules for escaping). */
export const slackOf = ({ text }: Notice): { readonly text: string } => ({
  text: text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;"),
})
