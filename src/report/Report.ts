/**
 * Everything that the report of a run says, as a value: a pure fold of the run's facts, of the runs before it
 * and of what the published tables know. `RenderReport.ts` turns it into a page. Like the summary, it
 * contains ids, reasons and messages, never a value of a parameter.
 */
import type { Outcome } from "../service/EndRow.ts"
import { rowOf } from "../service/Ends.ts"
import { foldRun } from "../ledger/FoldRun.ts"
import type { Recorded } from "../ledger/Fact.ts"
import type { RunState } from "../ledger/RunState.ts"
import { compareRun } from "./Changes.ts"
import { keptExecutions } from "./ExitCode.ts"
import { callCounts, executionSpans } from "./Executions.ts"
import type { CallCount, ExecutionSpan } from "./Executions.ts"
import type { Finish } from "./Finish.ts"
import { summarise } from "./Summary.ts"
import type { Summary } from "./Summary.ts"
import { groupsOf, worklistOf } from "./Worklist.ts"
import type { WorkGroup, WorkRow } from "./Worklist.ts"

/**
 * One engine in one run, from the published tables; times from the first start of a task to its last close.
 */
export interface EngineNight {
  readonly run_id: string
  readonly engine_reference: string
  readonly tasks: number
  readonly not_succeeded: number
  /** Undefined if no task of the engine closed. */
  readonly p50_ms: number | undefined
  readonly p95_ms: number | undefined
}

/** How many customers a feature of an engine ended with this outcome for, in this run. */
export interface CoverageCount {
  readonly engine_reference: string
  /** Empty for a task without features of its own. */
  readonly feature: string
  readonly outcome: Outcome
  readonly customers: number
}

/** What the published tables know; undefined if they cannot be read. */
export interface PublishedFacts {
  /** Oldest run first. */
  readonly engines: ReadonlyArray<EngineNight>
  readonly coverage: ReadonlyArray<CoverageCount>
}

export interface TimelineRow extends ExecutionSpan {
  readonly customer: string
  readonly engine_reference: string
  readonly outcome: Outcome | "open"
}

export interface KeptGroup {
  readonly reason: string
  readonly count: number
  readonly means: string
}

export interface Report {
  readonly summary: Summary
  readonly since: string | undefined
  readonly groups: ReadonlyArray<WorkGroup>
  readonly worklist: ReadonlyArray<WorkRow>
  readonly timeline: {
    readonly beginAt: number
    readonly endAt: number
    readonly rows: ReadonlyArray<TimelineRow>
  }
  readonly calls: ReadonlyArray<CallCount>
  readonly deletions: {
    readonly deleted: number
    readonly gone: number
    readonly pending: number
    readonly kept: ReadonlyArray<KeptGroup>
  }
  readonly published: PublishedFacts | undefined
  readonly finish: Finish
  /** The zone that times are shown in. */
  readonly timezone: string
  /** The place of the newest fact that it was made of. */
  readonly newest: number
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
}): Report | undefined => {
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
    finish: summary.finish,
    timezone,
    newest: run.newest,
  }
}

const timelineOf = (run: RunState, facts: ReadonlyArray<Recorded>): Report["timeline"] => {
  const lastAt = facts.reduce((last, { at }) => Math.max(last, at), run.started_at)
  const spans = executionSpans(facts, lastAt)
  const rows = spans.map((span): TimelineRow => {
    const task = run.tasks.get(span.task_id)
    const isLast = task?.attempts.at(-1)?.attempt === span.attempt
    return {
      ...span,
      customer: task?.planned.customer_id ?? "",
      engine_reference: task?.planned.engine_reference ?? "",
      // An attempt that was followed by another one did not bring the task to its end.
      outcome: isLast ? (task.settled?.fact.outcome ?? "open") : "unfinished",
    }
  })
  const beginAt = rows.reduce((first, row) => Math.min(first, row.waiting_at), run.started_at)
  const endAt = rows.reduce((last, row) => Math.max(last, row.closed_at), beginAt)
  return { beginAt, endAt, rows }
}

const deletionsOf = (run: RunState, { deletions }: Summary): Report["deletions"] => {
  const attempts = [...run.tasks.values()].flatMap((task) => task.attempts)
  const answered = (outcome: "deleted" | "gone") =>
    attempts.filter(({ deletion }) => deletion?.outcome === outcome).length
  const kept = new Map<string, number>()
  for (const attempt of keptExecutions(run)) {
    const reason = attempt.kept?.reason ?? "RECORDS_UNREACHABLE"
    kept.set(reason, (kept.get(reason) ?? 0) + 1)
  }
  return {
    deleted: answered("deleted"),
    gone: answered("gone"),
    pending: deletions.pending,
    kept: [...kept].map(([reason, count]) => ({ reason, count, means: rowOf(reason).means })),
  }
}
