/**
 * What others are told of a run: which events it is, and the words and numbers. Pure. A notice leaves this
 * machine, so it contains no customer, no id but the run's, and no word of the service that our own table
 * does not list. Its size is bounded, however much trouble a run has.
 */
import { counted, sumOf } from "../base/Text.ts"
import { sha256Hex } from "../base/Hashes.ts"
import { actionNeeded, exitOf } from "../service/EndTable.ts"
import { actingOf, isReason, rowOfEnd } from "../service/Ends.ts"
import type { NightPicture } from "../task/NightPicture.ts"
import type { NotifyEvent } from "../jobs/Job.ts"
import { catalogue, type MessageId } from "../messages/Catalogue.ts"
import { exitCodes } from "../messages/ExitCodes.ts"
import { adviceForTables, type News, type RunChanges } from "./Changes.ts"
import { exitMeaning, meaningOfExit, tellChanges, tellOutcomes } from "./RenderSummary.ts"
import type { Summary } from "./Summary.ts"
import { plain } from "./TextTable.ts"

interface NoticeTrouble extends News {
  readonly what_to_do: string
}

/** How a run ended; `summary` is undefined if it ended before it could be summarised. */
export interface RunEnding {
  readonly job: string
  readonly exit_code: number
  readonly summary: Summary | undefined
  /** With what its command said was kept, and what to do next. */
  readonly message?: { readonly id: MessageId; readonly afterwards: string } | undefined
  /** The run before had trouble, and now there is none. */
  readonly recovered: boolean
  readonly news: ReadonlyArray<News>
}

/** What a notice says of the place and the night that it comes from. */
export interface Origin {
  readonly host: string
  readonly job: string
  readonly run_date: string
  readonly report?: string | undefined
}

const { defect, usage, leftovers, locked, refused } = exitCodes

/** Whether a night did not happen, or is not complete; 3 is trouble, told as such. */
export const isIncomplete = (exit_code: number): boolean =>
  [defect, usage, leftovers, locked, refused].some((code) => code === exit_code)

/** Customers or an engineer have to act; what is merely unfinished is `failed` already. */
const isTrouble = ({ outcome }: News): boolean => outcome === null || exitOf(outcome) === 3

/** What a run that is over has to tell, whoever listens. */
export const eventsOf = ({ exit_code, summary, recovered, news }: RunEnding): ReadonlyArray<NotifyEvent> => [
  // With its tables held back, nothing of the night is published.
  ...(isIncomplete(exit_code) || summary?.held !== undefined ? ["failed" as const] : []),
  ...(news.some(isTrouble) ? ["new_trouble" as const] : []),
  ...(recovered && exit_code === 0 ? ["recovered" as const] : []),
]

/** A reason that the table does not list is a word of the service, which may be anything. */
const unlisted = "UNLISTED"
const examine = "`nightjar status` and the run's report.html show the rest."

const toldOf = (news: News): Pick<NoticeTrouble, "reason" | "what_to_do"> => {
  const what_to_do = adviceForTables(news.reason)
  if (what_to_do !== undefined) return { reason: news.reason, what_to_do }
  const reason = isReason(news.reason) ? news.reason : unlisted
  return { reason, what_to_do: rowOfEnd({ ...news, reason }).next }
}

/** Reasons without a row become one. */
const merged = (troubles: ReadonlyArray<News>): ReadonlyArray<NoticeTrouble> => {
  const found = new Map<string, NoticeTrouble>()
  for (const news of troubles) {
    const { outcome, who_acts, count } = news
    const { reason, what_to_do } = toldOf(news)
    const key = `${who_acts} ${outcome} ${reason}`
    const before = found.get(key)?.count ?? 0
    found.set(key, { reason, outcome, who_acts, count: before + count, what_to_do })
  }
  return [...found.values()]
}

/** With the command that finishes the rest, unless a word of the service would be in it. */
const toDo = ({ exit_code, summary, message }: RunEnding, troubles: ReadonlyArray<NoticeTrouble>): string => {
  if (exit_code === 0) return "Nothing to do."
  if (message !== undefined) return `${message.afterwards} \`nightjar explain ${message.id}\` says more.`
  if (summary === undefined) return examine
  const { finish } = summary
  if (finish.command === undefined) return `${finish.why} ${examine}`
  const isOurs = troubles.every(({ reason, outcome }) => reason !== unlisted || outcome !== "unfinished")
  return isOurs ? `${finish.why}\n  ${finish.command}\n${examine}` : examine
}

/** As it is sent, in `format: json` and to commands; null where it is not known. */
const blank = (
  events: ReadonlyArray<NotifyEvent | "test">,
  origin: Origin,
  news: ReadonlyArray<NoticeTrouble> = [],
) => ({
  tool: "nightjar" as const,
  events,
  /** The same for the same night, events and new trouble: by it, receivers merge repetitions. */
  key: keyOf(events, origin, news),
  host: origin.host,
  job: origin.job,
  run_id: null as string | null,
  /** Of the night. */
  run_date: origin.run_date,
  exit_code: null as number | null,
  /** The message of a run that ended before it could be summarised, as `nightjar explain` accepts it. */
  message: null as MessageId | null,
  tasks: null as number | null,
  outcomes: null as Summary["outcomes"] | null,
  changes: null as RunChanges | null,
  /** What nobody was told of before. */
  new: news,
  troubles: [] as ReadonlyArray<NoticeTrouble>,
  open: null as OpenTasks | null,
  /** The report's path on `host`. */
  report: origin.report ?? null,
})

type Told = Readonly<ReturnType<typeof blank>> & Readonly<Record<"meaning" | "what_to_do", string>>
export interface Notice extends Told {
  /** Everything in a few lines. */
  readonly text: string
}

/** Without the host: another try of the night may be made by another machine. */
const keyOf = (
  events: ReadonlyArray<string>,
  { job, run_date }: Origin,
  news: ReadonlyArray<NoticeTrouble>,
): string => {
  const told = news.map(({ reason, outcome, who_acts, count }) => [reason, outcome, who_acts, count])
  const hash = told.length === 0 ? "" : `/${sha256Hex(JSON.stringify(told)).slice(0, 12)}`
  return `nightjar/${job}.${run_date}/${events.join("+")}${hash}`
}

const withText = (told: Told): Notice => ({ ...told, text: textOf(told) })

export const noticeOf = (events: ReadonlyArray<NotifyEvent>, ending: RunEnding, origin: Origin): Notice => {
  const { exit_code, summary, message } = ending
  const meaning =
    (message === undefined ? undefined : meaningOfMessage(message.id)) ??
    // The code may be the night's, of which this run is a part.
    (summary?.exit_code === exit_code ? meaningOfExit(summary) : undefined) ??
    exitMeaning[exit_code] ??
    "the run ended before its summary was written"
  const troubles = merged(summary?.troubles ?? [])
  const night = { ...origin, run_date: summary?.run_date ?? origin.run_date }
  return withText({
    ...blank(events, night, merged(ending.news)),
    run_id: summary?.run_id ?? null,
    exit_code,
    message: message?.id ?? null,
    meaning,
    tasks: summary?.tasks ?? null,
    outcomes: summary?.outcomes ?? null,
    changes: summary?.changes ?? null,
    troubles,
    what_to_do: toDo(ending, troubles),
  })
}

/** Values of a message may be words of the service, so only one without any says what happened. */
const meaningOfMessage = (message: MessageId): string | undefined => {
  const { happened } = catalogue[message]
  return happened.includes("{") ? undefined : happened
}

/** Lines for reasons and engines in the text; the document has all of them. */
const linesMax = 10

const listedLines = (lines: ReadonlyArray<string>, what: string): ReadonlyArray<string> => {
  const more = lines.length - linesMax
  return more <= 0 ? lines : [...lines.slice(0, linesMax), `And ${counted(more, what)} more.`]
}

const textOf = (notice: Told): string => {
  const { job, run_id, exit_code, meaning, tasks, outcomes, changes, troubles, open, what_to_do } = notice
  const changed = tellChanges(changes)
  const code = exit_code === null ? "" : `exit code ${exit_code}, `
  const id = notice.message === null ? "" : ` [${notice.message}]`
  const troubleLine = (one: NoticeTrouble) => `${one.count} ${one.reason}: ${actionNeeded[actingOf(one)]}.`
  return [
    `${run_id ?? job} (${notice.events.join(", ")}): ${code}${meaning}${id}.`,
    ...(tasks === null || outcomes === null ? [] : [`${counted(tasks, "task")}: ${tellOutcomes(outcomes)}.`]),
    ...(changed === undefined ? [] : [`${changed}.`]),
    ...listedLines(
      notice.new.map((one) => `New: ${troubleLine(one)}`),
      "new reason",
    ),
    ...listedLines(troubles.map(troubleLine), "reason"),
    ...listedLines(
      (open?.engines ?? []).map(
        (engine) => `${counted(engine.tasks, "task")} open on ${engine.engine_reference}.`,
      ),
      "engine",
    ),
    what_to_do,
    `Host: ${plain(notice.host)}`,
    ...(notice.report === null ? [] : [`Report: ${plain(notice.report)}`]),
    `Key: ${notice.key}`,
  ].join("\n")
}

/** Tasks of a late run that have not ended: most open ones first; the rest of many engines is one row. */
const openIn = ({ engines }: NightPicture) => {
  const rows = engines
    .map(({ engine_reference, queued, waiting, running }) => ({
      engine_reference,
      tasks: queued + waiting.time + waiting.engine + waiting.conflict + running,
    }))
    .filter(({ tasks }) => tasks > 0)
    .toSorted((one, other) => other.tasks - one.tasks)
  return { tasks: sumOf(rows.map(({ tasks }) => tasks)), engines: rows }
}

type OpenTasks = ReturnType<typeof openIn>

/** What a late run is doing; without a picture it has not begun its tasks. */
const doing = (picture: NightPicture | undefined, open: OpenTasks | null): string => {
  if (picture === undefined || open === null) return "no task of it has begun"
  if (open.tasks > 0) return `${counted(open.tasks, "task")} of ${picture.total.tasks} still open`
  return `all of its tasks are over, and it is ${picture.stage === "deleting" ? "deleting" : "publishing"}`
}

/** A run that has not ended when its night is over. */
export const lateNotice = (origin: Origin, untilAt: number, picture?: NightPicture): Notice => {
  const open = picture === undefined ? null : openIn(picture)
  return withText({
    ...blank(["late"], origin),
    run_id: picture?.run_id ?? null,
    tasks: picture?.total.tasks ?? null,
    outcomes: picture?.total.done ?? null,
    meaning: `the run has not ended by ${new Date(untilAt).toISOString()}: ${doing(picture, open)}`,
    open,
    what_to_do: "`nightjar status` shows what it is waiting for. The run ends by itself.",
  })
}

/** Marked, so that nobody takes it for an alarm. */
export const testNotice = (origin: Origin): Notice =>
  withText({
    ...blank(["test"], origin),
    meaning: "this is a test of the job's receivers; nothing has happened",
    what_to_do: "Nothing to do.",
  })

/** Slack reads `<…>` and `&` as markup (its own rules for escaping). */
export const slackOf = ({ text }: Notice): { readonly text: string } => ({
  text: text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;"),
})
