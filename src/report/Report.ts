/**
 * Everything that the report of a run says, as a value: a pure fold of the run's facts, of the runs before it
 * and of what the published tables know. `ReportPage.ts` turns it into a page. Like the summary, it
 * contains ids, reasons and messages, never a value of a parameter or of a record.
 */
import { Schema } from "effect"
import type { Fact, Recorded } from "../ledger/Fact.ts"
import { foldRun } from "../ledger/FoldRun.ts"
import { keptOf, type RunState } from "../ledger/RunState.ts"
import { compareRun, groupsOf, worklistOf } from "./Changes.ts"
import { summarise, type Summary } from "./Summary.ts"
import { outcomes } from "../service/EndTable.ts"
import { rowOf } from "../service/Ends.ts"

// What happened at the service, folded from a run's facts for its report: each execution with the times at
// which it was asked for, accepted, seen running and closed, and how often the service was asked for what.
// Pure.

/** Section 3.1: accepted, and not at work yet. */
const queued: ReadonlySet<string> = new Set(["ACCEPTED", "WAITING"])

interface Open {
  readonly task_id: string
  readonly attempt: number
  /** When its wait began: for a further attempt, when the one before it was over. */
  readonly waiting_at: number
  readonly asked_at: number
  accepted_at?: number
  queued_at?: number
  running_at?: number
  closed_at?: number
}

/** Executions that the service accepted, in the order in which they were asked for. */
export const executionSpans = (
  facts: ReadonlyArray<Recorded>,
  untilAt: number,
): ReadonlyArray<ExecutionSpan> => {
  const attempts = new Map<string, Open>()
  const overAt = new Map<string, number>()
  for (const { at, fact } of facts) {
    if (!("attempt" in fact) || fact._tag === "LoginJudged") continue
    const key = `${fact.task_id}#${fact.attempt}`
    const open = attempts.get(key)
    if (fact._tag === "StartIntended") {
      const { task_id, attempt } = fact
      if (open === undefined)
        attempts.set(key, { task_id, attempt, asked_at: at, waiting_at: overAt.get(task_id) ?? at })
    } else if (open !== undefined) observe(open, fact, at, overAt)
  }
  return [...attempts.values()].flatMap((open) =>
    open.accepted_at === undefined ? [] : [spanOf(open, untilAt)],
  )
}

const observe = (
  open: Open,
  fact: Extract<Fact, { attempt: number }>,
  at: number,
  overAt: Map<string, number>,
) => {
  if (fact._tag === "StartAnswered") {
    if (fact.answer === "accepted" || fact.answer === "adopted") open.accepted_at ??= at
    else overAt.set(open.task_id, at)
  } else if (fact._tag === "AttemptObserved") {
    if (queued.has(fact.status_reason)) open.queued_at = at
    else open.running_at ??= at
  } else if (fact._tag === "AttemptClosed") {
    open.closed_at = at
    overAt.set(open.task_id, at)
  }
}

/**
 * All times in milliseconds since the epoch, in order: a clock that was set back moves none before another.
 * An execution that was never seen in the queue was at work from the start, as far as anybody knows, and one
 * that is open goes on until the end of the report's time.
 */
const spanOf = (open: Open, untilAt: number) => {
  const { task_id, attempt, accepted_at = open.asked_at, queued_at } = open
  const asked_at = Math.max(open.waiting_at, open.asked_at)
  const closed_at = Math.max(asked_at, open.closed_at ?? untilAt)
  const seen = queued_at === undefined ? accepted_at : (open.running_at ?? closed_at)
  const running_at = Math.min(closed_at, Math.max(asked_at, seen))
  return { task_id, attempt, waiting_at: open.waiting_at, asked_at, running_at, closed_at }
}
type ExecutionSpan = ReturnType<typeof spanOf>

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

/**
 * What the ledger knows of calls: those that decided something. Reads that showed nothing new leave no fact.
 */
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

const timelineOf = (run: RunState, facts: ReadonlyArray<Recorded>) => {
  const lastAt = facts.reduce((last, { at }) => Math.max(last, at), run.started_at)
  const spans = executionSpans(facts, lastAt)
  const rows = spans.map((span) => {
    const task = run.tasks.get(span.task_id)
    const isLast = task?.attempts.at(-1)?.attempt === span.attempt
    return {
      ...span,
      customer: task?.planned.customer_id ?? "",
      engine_reference: task?.planned.engine_reference ?? "",
      // An attempt that was followed by another one did not bring the task to its end.
      outcome: isLast ? (task.settled?.fact.outcome ?? "open") : ("unfinished" as const),
    }
  })
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
