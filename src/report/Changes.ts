/**
 * What a run changed: trouble that is new, trouble that was there before, and what is mended. Pure. A run is
 * compared with how each customer and engine stood before it: the last complete run of the job, and the
 * reruns after it.
 */
import { Struct } from "effect"
import type { RunHeader } from "../ledger/FoldRun.ts"
import type { ChangeCounts } from "../ledger/RunFacts.ts"
import { subjectOf, verdictOfTask, type RunState, type TaskState } from "../ledger/RunState.ts"
import { isOfWholeJob } from "../ledger/WholeNight.ts"
import { exitCodes } from "../messages/ExitCodes.ts"
import { csvLine, harmless, oneLine } from "./TextTable.ts"
import { cutText } from "../service/BodyBounds.ts"
import { actings, type Outcome, type WhoActs } from "../service/EndTable.ts"
import { actingOf, rowOfEnd, type Verdict } from "../service/Ends.ts"

/** How each customer stands on each engine, or each flow session, by what `subjectOf` names it. */
export type Standings = ReadonlyMap<string, Standing>
export type Standing = Pick<Verdict, "outcome" | "reason" | "who_acts">

export const changeKinds = ["new", "still", "mended"] as const
export type ChangeKind = (typeof changeKinds)[number]

export const changeTitles: Readonly<Record<ChangeKind, string>> = {
  new: "New",
  still: "Unchanged",
  mended: "Resolved",
}

/**
 * `new`: trouble, and before there was none, or another reason. `still`: the same reason as before. `mended`:
 * trouble before, success now. Subjects that only one side knows count as having had no trouble before, and
 * are not mended by being absent.
 */
export const changesBetween = (before: Standings, now: Standings): ReadonlyMap<string, ChangeKind> => {
  const changes = new Map<string, ChangeKind>()
  for (const [subject, { outcome, reason }] of now) {
    const earlier = before.get(subject)
    const hadTrouble = earlier !== undefined && earlier.outcome !== "succeeded"
    if (outcome !== "succeeded")
      changes.set(subject, hadTrouble && earlier.reason === reason ? "still" : "new")
    else if (hadTrouble) changes.set(subject, "mended")
  }
  return changes
}

/** How everybody stood after these runs, oldest first, as far as the tasks that are meant say. */
const standings = (
  runs: ReadonlyArray<RunState>,
  isMeant: (task: TaskState) => boolean = () => true,
): Standings =>
  new Map(
    runs.flatMap(({ tasks }) =>
      [...tasks.values()].filter(isMeant).map((task) => [subjectOf(task), verdictOfTask(task)] as const),
    ),
  )

/** A task that was never settled says nothing. */
export const standingsAfter = (runs: ReadonlyArray<RunState>): Standings =>
  standings(runs, ({ settled }) => settled !== undefined)

/**
 * Nor does an unfinished one: what kept it from its end says nothing about whom it was for, and the trouble
 * before it is no news after it.
 */
const decidedAfter = (runs: ReadonlyArray<RunState>): Standings =>
  standings(runs, ({ settled }) => settled !== undefined && settled.fact.outcome !== "unfinished")

/** A job that is rerun more often than this between two nights is compared with its last few reruns only. */
const runsMax = 8

/**
 * The runs of its job before a run, oldest first, whatever became of them. Parts of the job are left out, but
 * for the run's own: they are not its nights.
 */
export const comparedBefore = (headers: ReadonlyArray<RunHeader>, run_id: string) => {
  const at = headers.findIndex(({ fact }) => fact.run_id === run_id)
  const { job, part } = headers[at]?.fact ?? {}
  const isOf = ({ fact }: RunHeader) => fact.job === job && (fact.part === undefined || fact.part === part)
  return headers.slice(0, Math.max(0, at)).filter(isOf)
}

/**
 * The runs that a run is compared with, oldest first: back to the last one that was meant to be complete and
 * has ended. A night that the service kept from beginning says nothing about anybody.
 */
export const runsBefore = (headers: ReadonlyArray<RunHeader>, run_id: string): ReadonlyArray<RunHeader> => {
  const found: Array<RunHeader> = []
  for (const header of comparedBefore(headers, run_id).toReversed()) {
    const { fact, ended } = header
    if (ended?.exit_code === exitCodes.refused) continue
    found.push(header)
    const isComplete = isOfWholeJob(fact) && ended !== undefined
    if (isComplete || found.length === runsMax) break
  }
  return found.toReversed()
}

/**
 * Whether no problems remain after this run: there was a problem with somebody or with the run before, or a
 * gate held this run back until it was accepted. After a rerun, or a part of the job, those whom it did not
 * run count too.
 */
export const hasRecovered = (
  run: RunState,
  before: ReadonlyArray<RunState>,
  previous: Pick<RunHeader, "ended"> | undefined,
): boolean => {
  const isWell = (one: Standings) => [...one.values()].every(({ outcome }) => outcome === "succeeded")
  const earlier = standingsAfter(before)
  const own = standings([run])
  const now = isOfWholeJob(run.started) ? own : new Map([...earlier, ...own])
  if (!isWell(now)) return false
  if (run.accepted === true) return true
  return previous !== undefined && !(previous.ended?.exit_code === exitCodes.ok && isWell(earlier))
}

export type RunChanges = typeof ChangeCounts.Type

/** A run compared with the runs before it. */
export const compareRun = (run: RunState, before: ReadonlyArray<RunState>) => {
  const earlier = standingsAfter(before)
  return {
    /** The newest run before it; undefined for the first run of a job. */
    since: before.at(-1)?.started.run_id,
    before: earlier,
    changes: changesBetween(earlier, standings([run])),
  }
}
type Comparison = ReturnType<typeof compareRun>

/**
 * The counts, as the run's end records them. Undefined for the first run of a job: there is nothing to
 * compare it with.
 */
export const countChanges = ({ since, changes }: Comparison): RunChanges | undefined => {
  if (since === undefined) return undefined
  const counts = { since, new: 0, still: 0, mended: 0 }
  for (const change of changes.values()) counts[change] += 1
  return counts
}

/** Trouble that nobody was told of before; `outcome` is null for what concerns the tables, not tasks. */
export interface News {
  readonly reason: string
  readonly outcome: Outcome | null
  readonly who_acts: WhoActs
  readonly count: number
}

/** Of the tables; each of these ends a run with exit code 3 too. `count`: how many of each a run has. */
const tableTroubles: Readonly<
  Record<string, { readonly what_to_do: string; readonly count: (run: RunState) => number | undefined }>
> = {
  TABLES_HELD: {
    what_to_do: "`nightjar accept` publishes the tables that a gate holds back.",
    count: ({ held }) => held?.fact.gates.length,
  },
  DATA_TOO_OLD: {
    what_to_do: "`nightjar status` names the customers whose data is older than `freshness` allows.",
    count: ({ published }) => published?.fact.stale?.failed?.count,
  },
  ANSWERS_LEFT_OUT: {
    what_to_do: "`nightjar status` names the answers that are not in the tables.",
    count: ({ published }) => published?.fact.left_out?.length,
  },
}

/** What to do about trouble of the tables; undefined if the reason is none of theirs. */
export const adviceForTables = (reason: string): string | undefined =>
  Object.hasOwn(tableTroubles, reason) ? tableTroubles[reason]?.what_to_do : undefined

/** What the runs before were told of, oldest first; `older` stands for runs that were not read whole. */
interface Known {
  readonly runs: ReadonlyArray<RunState>
  readonly older: Standings
}

/** Subjects whose trouble is new. */
const newSubjects = (run: RunState, { runs, older }: Known): Standings => {
  const [now, before] = [standings([run]), standingsAfter(runs)]
  const decided = new Map([...older, ...decidedAfter(runs)])
  const changes = changesBetween(before, now)
  const isNews = (subject: string, reason: string) =>
    changes.get(subject) === "new" && decided.get(subject)?.reason !== reason
  return new Map([...now].filter(([subject, { reason }]) => isNews(subject, reason)))
}

/** Those of them for whom `older` has to be known: unfinished before, and over now. */
export const doubtfulSubjects = (run: RunState, runs: ReadonlyArray<RunState>): ReadonlySet<string> => {
  const decided = decidedAfter(runs)
  const before = standingsAfter(runs)
  const over = [...newSubjects(run, { runs, older: new Map() })].filter(
    ([subject, { outcome }]) => outcome !== "unfinished" && before.has(subject) && !decided.has(subject),
  )
  return new Set(over.map(([subject]) => subject))
}

/** By reason, the most frequent first. */
export const newsOf = (run: RunState, known: Known): ReadonlyArray<News> => {
  const counts = new Map<string, News>()
  for (const { reason, outcome, who_acts } of newSubjects(run, known).values()) {
    const key = JSON.stringify([reason, outcome, who_acts])
    counts.set(key, { reason, outcome, who_acts, count: (counts.get(key)?.count ?? 0) + 1 })
  }
  const last = known.runs.at(-1)
  const ofTables = Object.entries(tableTroubles).map(([reason, { count: countIn }]): News => {
    const before = (last && countIn(last)) ?? 0
    return { reason, outcome: null, who_acts: "engineer", count: (countIn(run) ?? 0) - before }
  })
  return [...counts.values(), ...ofTables.filter(({ count }) => count > 0)].toSorted(
    (one, other) => other.count - one.count || (one.reason < other.reason ? -1 : 1),
  )
}

// Everything that somebody has to do something about after a run, one row per customer and engine, for the
// report and as CSV for a ticket system: who acts, why, what to do, and whether it is new. Pure.

/** The service's own text may be of any length; `explain` and the landed bodies show more of it. */
export const reasonMax = 200
export const messageMax = 1_000

/** New trouble first, then by who acts, then by reason. Mended tasks have the reason that they had before. */
export const worklistOf = (run: RunState, { before, changes }: Comparison) => {
  const rows = [...run.tasks.values()].flatMap((task) => {
    const change = changes.get(subjectOf(task))
    if (change === undefined) return []
    const verdict = verdictOfTask(task)
    const told = change === "mended" ? (before.get(subjectOf(task)) ?? verdict) : verdict
    const { customer_id = "", engine_reference = "", session_id = "", task_id } = task.planned
    return [
      {
        change,
        customer_id,
        engine_reference,
        session_id,
        outcome: verdict.outcome,
        reason: cutText(told.reason, reasonMax),
        who_acts: told.who_acts,
        /** The same for people. */
        acting: actingOf(told),
        message: change === "mended" ? "" : cutText(verdict.message ?? "", messageMax),
        what_to_do: change === "mended" ? "Nothing to do." : rowOfEnd(told).next,
        task_id,
      },
    ]
  })
  return rows.toSorted(
    (a, b) =>
      changeKinds.indexOf(a.change) - changeKinds.indexOf(b.change) ||
      actings.indexOf(a.acting) - actings.indexOf(b.acting) ||
      (a.reason < b.reason ? -1 : a.reason > b.reason ? 1 : 0),
  )
}

export type WorkRow = ReturnType<typeof worklistOf>[number]

const examplesMax = 5

type Named = Partial<Readonly<Record<"customer_id" | "engine_reference" | "session_id", string>>>

/** A task as people call it. */
export const nameOf = ({ customer_id = "?", engine_reference = "?", session_id = "" }: Named): string =>
  session_id === "" ? `${customer_id} ${engine_reference}` : `session ${session_id}`

/** Rows that are alike in these columns, as one: how many they are, and the first few names. */
export const alikeIn = <Row extends Named, Column extends keyof Row>(
  rows: ReadonlyArray<Row>,
  columns: ReadonlyArray<Column>,
  max: number,
) => {
  const groups = Map.groupBy(rows, (row) => JSON.stringify(columns.map((column) => row[column])))
  return [...groups.values()].flatMap((group) =>
    group.slice(0, 1).map((first) => ({
      first,
      rows: group,
      group: {
        ...Struct.pick(first, columns),
        count: group.length,
        examples: group.slice(0, max).map(nameOf),
      },
    })),
  )
}

/** Rows of one change, actor and reason together. */
export const groupsOf = (rows: ReadonlyArray<WorkRow>) =>
  alikeIn(rows, ["change", "acting", "outcome", "reason"], examplesMax).map(({ first, group }) => ({
    ...group,
    means: rowOfEnd(first).means,
    what_to_do: first.what_to_do,
  }))
export type WorkGroup = ReturnType<typeof groupsOf>[number]

const columns = [
  "change",
  "who_acts",
  "customer_id",
  "engine_reference",
  "session_id",
  "outcome",
  "reason",
  "message",
  "what_to_do",
  "task_id",
] as const satisfies ReadonlyArray<keyof WorkRow>

/**
 * The same escaping as `query --format csv --excel-safe`: no spreadsheet takes a cell for a formula. A row is
 * one line, and no character of a value controls what shows it.
 */
export const worklistCsv = (rows: ReadonlyArray<WorkRow>): string =>
  [columns, ...rows.map((row) => columns.map((column) => harmless(oneLine(row[column]))))]
    .map(csvLine)
    .join("")
