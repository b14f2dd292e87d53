/**
 * The running night for people: a screen of any size with one line per engine, and one plain line for logs.
 * Pure; lines never exceed the width, and engines that do not fit are counted.
 */
import { outcomes } from "../service/EndRow.ts"
import type { EnginePicture, NightPicture } from "../task/NightPicture.ts"
import { counted } from "../base/Counted.ts"
import { localTime } from "../task/LocalTime.ts"
import { paint } from "./RenderSummary.ts"
import type { Style } from "./RenderSummary.ts"
import { cut, plain, span, table } from "./TextTable.ts"

export interface Screen extends Style {
  readonly height: number
  /** Where times of day are shown; undefined: where the machine is. */
  readonly timezone: string | undefined
}

export const doneOf = ({ done }: EnginePicture): number =>
  outcomes.reduce((sum, outcome) => sum + done[outcome], 0)

const waitingOf = ({ waiting }: EnginePicture): number => waiting.time + waiting.engine + waiting.conflict

const joined = (parts: ReadonlyArray<string>): string => parts.join(", ")

const outcomesOf = ({ done }: EnginePicture): ReadonlyArray<string> =>
  outcomes.flatMap((outcome) => (done[outcome] > 0 ? [`${done[outcome]} ${outcome}`] : []))

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

const publishedText = ({ published }: NightPicture, at: (ms: number) => string): ReadonlyArray<string> => {
  if (published === undefined) return []
  const tasks = counted(published.tasks, "task")
  return [`${tasks} published at ${at(published.at)}, as version ${published.version}`]
}

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
  const { total, limits, engines } = night
  const waiting = waits(total)
  const { max_in_flight, per_engine } = limits
  const head = [
    `${plain(night.run_id)}: ${stateText(night, at)}`,
    `${at(night.at)}, after ${span(night.at - night.began_at)}`,
    "",
    `${doneOf(total)} of ${counted(total.tasks, "task")} done${joined(["", ...outcomesOf(total)])}`,
    `${total.running} running (at most ${max_in_flight}, and ${per_engine} per engine), ` +
      `${total.queued} queued`,
    `${waitingOf(total)} waiting${waiting === "" ? "" : `: ${waiting}`}`,
    times(night, at),
    ...publishedText(night, at),
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

/** The same in one line, without times that change by themselves. */
export const renderNightLine = (night: NightPicture): string => {
  const { total, state, stage, published } = night
  return joined([
    `${plain(night.run_id)}: ${stage}${stage === "executing" && state !== "running" ? ` (${state})` : ""}`,
    `${doneOf(total)}/${total.tasks} done`,
    ...outcomesOf(total),
    `${total.running} running`,
    `${total.queued} queued`,
    `${waitingOf(total)} waiting`,
    ...(published === undefined ? [] : [`${published.tasks} published`]),
  ])
}
