/**
 * Everything that the report of a run says, as a value: a pure fold of the run's facts, of the runs before it
 * and of what the published tables know. `ReportPage.ts` turns it into a page. Like the summary, it
 * contains ids, reasons and messages, never a value of a parameter or of a record.
 */
import { Schema } from "effect"
import type { Fact, Recorded } from "../ledger/Fact.ts"
import { foldRun } from "../ledger/FoldRun.ts"
import { keptOf, type RunState, type TaskState } from "../ledger/RunState.ts"
import { compareRun, groupsOf, worklistOf } from "./Changes.ts"
import { summarise, type Summary } from "./Summary.ts"
import { outcomes } from "../service/EndTable.ts"
import { rowOf } from "../service/Ends.ts"

// What the ledger knows of calls: those that decided something. Reads that showed nothing new leave no fact.

const abortCauses = {
  challenge: "a person was asked for",
  max_wait: "max_wait",
  deadline: "the deadline",
} as const

const throttled = 429
const refusedStart = (answer: string, http_status: number | undefined): string => {
  if (http_status === throttled) return "starts throttled (429)"
  const status = http_status === undefined ? "" : ` (${http_status})`
  return `starts ${answer === "not_created" ? "not accepted" : answer}${status}`
}

const calls: {
  readonly [Tag in Fact["_tag"]]?: (fact: Extract<Fact, { _tag: Tag }>) => string | undefined
} = {
  StartIntended: ({ probe, attempt }) =>
    probe
      ? "starts sent again, because the answer was lost"
      : `starts of a ${attempt > 1 ? "further" : "first"} attempt`,
  StartAnswered: ({ answer, http_status }) =>
    answer === "accepted" ? undefined : refusedStart(answer, http_status),
  AttemptObserved: () => "new states seen while executions ran",
  AbortIntended: ({ why }) => `executions aborted (${abortCauses[why]})`,
  ResultsRead: ({ http_status, is_closed }) =>
    http_status !== 200
      ? `results answered with ${http_status}`
      : is_closed
        ? "final results read"
        : "results read before they were final",
  AttachmentRead: ({ status }) => `documents ${status}`,
  AnswerRefused: () => "answers that could not be used",
  DeleteAnswered: ({ http_status }) =>
    `deletions answered with ${http_status === 0 ? "nothing" : http_status}`,
}

/** In the order in which they first happened. */
const callCounts = (
  facts: ReadonlyArray<Recorded>,
): ReadonlyArray<readonly [what: string, count: number]> => {
  const told = facts.flatMap(
    ({ fact }) => (calls[fact._tag] as ((fact: Fact) => string | undefined) | undefined)?.(fact) ?? [],
  )
  return [...Map.groupBy(told, (what) => what)].map(([what, all]) => [what, all.length])
}

// What the published tables say, as their rows are decoded.

const text = Schema.NullOr(Schema.String)
const milliseconds = Schema.NullOr(Schema.Finite)

/** An engine in a run; times from a task's first start to its last close, null if none closed. */
export const EngineNight = Schema.Struct({
  run_id: Schema.String,
  engine_reference: Schema.String,
  tasks: Schema.Int,
  not_succeeded: Schema.Int,
  p50_ms: milliseconds,
  p95_ms: milliseconds,
})

/** How many customers a feature of an engine ended with this outcome for, in this run. */
export const CoverageCount = Schema.Struct({
  engine_reference: Schema.String,
  /** Empty for a task without features of its own. */
  feature: Schema.String,
  outcome: Schema.Literals(outcomes),
  customers: Schema.Int,
})

/** As `changes()` calls them, those first of which there are usually fewest. */
export const dataChanges = ["rejected", "gone", "changed", "added"] as const

/** What became of the records of a table; a list counts with its record. */
export const TableChanges = Schema.Struct({
  table: Schema.String,
  ...(Object.fromEntries(dataChanges.map((change) => [change, Schema.Int])) as Record<
    (typeof dataChanges)[number],
    typeof Schema.Int
  >),
  /** The first few of them; none if the tables have pseudonyms, as a report names customers. */
  records: Schema.Array(
    Schema.Struct({
      change: Schema.Literals(dataChanges),
      customer_id: text,
      engine_reference: text,
      /** Those that differ in a record that changed. */
      columns: Schema.Array(Schema.String),
    }),
  ),
})

/** What the runs of a job changed in the tables since the night before. */
interface NightChanges {
  /** The last published run of that night; undefined if there is none. */
  readonly since: string | undefined
  /** Those in which something changed. */
  readonly tables: ReadonlyArray<typeof TableChanges.Type>
  readonly hasPseudonyms: boolean
}

/** What the published tables know; undefined if they cannot be read. */
export interface PublishedFacts {
  /** Oldest run first. */
  readonly engines: ReadonlyArray<typeof EngineNight.Type>
  readonly coverage: ReadonlyArray<typeof CoverageCount.Type>
  /** Undefined if the run is not in the tables, or the changes cannot be read. */
  readonly changes: NightChanges | undefined
}

/** Undefined if the facts contain no beginning of a run. */
export const reportOf = (input: {
  readonly facts: ReadonlyArray<Recorded>
  /** The runs that it is compared with, oldest first. */
  readonly before: ReadonlyArray<RunState>
  readonly published: PublishedFacts | undefined
  readonly timezone: string
  /** The whole night of the run, if it had several. */
  readonly night?: ReadonlyArray<RunState>
  /** The output folder, if commands have to name it. */
  readonly output?: string | undefined
}) => {
  const { facts, before, published, timezone, night, output } = input
  const run = foldRun(facts)
  if (run === undefined) return undefined
  const comparison = compareRun(run, before)
  const worklist = worklistOf(run, comparison)
  const summary = summarise(run, night, output)
  return {
    summary,
    since: comparison.since,
    groups: groupsOf(worklist),
    worklist,
    timeline: timelineOf(run, facts),
    calls: callCounts(facts),
    deletions: deletionsOf(run, summary),
    published,
    output,
    /** The zone that times are shown in. */
    timezone,
    /** The place of the newest fact that it was made of. */
    newest: run.newest,
  }
}
export type Report = NonNullable<ReturnType<typeof reportOf>>

/**
 * Executions that the service accepted: when the wait for a further attempt began, when it was asked for, and
 * when it was over; one that is open lasts until the end of the report's time. In milliseconds, in order: a
 * clock that was set back moves none before another.
 */
const barsOf = ({ attempts, planned, settled }: TaskState, untilAt: number) => {
  let overAt: number | undefined
  return attempts.flatMap(({ intended_at, accepted_at, closed }, index) => {
    const waiting_at = overAt ?? intended_at
    const asked_at = Math.max(waiting_at, intended_at)
    overAt = closed?.at ?? intended_at
    if (accepted_at === undefined) return []
    // An attempt that was followed by another one did not bring the task to its end.
    const isLast = index === attempts.length - 1
    return [
      {
        customer: planned.customer_id ?? "",
        engine_reference: planned.engine_reference ?? "",
        outcome: isLast ? (settled?.fact.outcome ?? "open") : ("unfinished" as const),
        waiting_at,
        asked_at,
        closed_at: Math.max(asked_at, closed?.at ?? untilAt),
      },
    ]
  })
}

const timelineOf = (run: RunState, facts: ReadonlyArray<Recorded>) => {
  const lastAt = facts.reduce((last, { at }) => Math.max(last, at), run.started_at)
  const bars = [...run.tasks.values()].flatMap((task) => barsOf(task, lastAt))
  const rows = bars.toSorted((one, other) => one.asked_at - other.asked_at)
  const beginAt = rows.reduce((first, row) => Math.min(first, row.waiting_at), run.started_at)
  const endAt = rows.reduce((last, row) => Math.max(last, row.closed_at), beginAt)
  return { beginAt, endAt, rows }
}

const deletionsOf = (run: RunState, { deletions }: Summary) => {
  const attempts = [...run.tasks.values()].flatMap((task) => task.attempts)
  const answered = (outcome: "deleted" | "gone") =>
    attempts.filter(({ deletion }) => deletion?.outcome === outcome).length
  const kept = Map.groupBy(
    [...run.tasks.values()].flatMap(keptOf),
    (attempt) => attempt.kept?.reason ?? "RESULTS_PARTIAL",
  )
  return {
    deleted: answered("deleted"),
    gone: answered("gone"),
    pending: deletions.pending,
    kept: [...kept].map(([reason, all]) => ({ reason, count: all.length, means: rowOf(reason).means })),
  }
}
