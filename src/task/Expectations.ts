/**
 * How long executions are likely to take, learnt from earlier runs, and how long a whole run may: pure
 * folds of runs and tasks. An engine's earlier durations decide whether a start still fits before the
 * deadline; the estimate for a whole run is for people only.
 */
import { Duration } from "effect"
import type { EngineReference, TaskId } from "../service/Ids.ts"
import { subjectOf } from "../ledger/RunState.ts"
import type { RunState } from "../ledger/RunState.ts"

/** What executions of earlier runs took, from acceptance to closed: milliseconds, in ascending order. */
export interface PastDurations {
  readonly byEngine: ReadonlyMap<string, ReadonlyArray<number>>
  /** Over all engines. */
  readonly all: ReadonlyArray<number>
  /** Until their end instead, which is seen a little later; by `<customer_id>/<engine_reference>`, too. */
  readonly ends: ReadonlyMap<string, ReadonlyArray<number>>
  /** From the last execution's end to the run's: reading, publishing, deleting. */
  readonly closing: number
}

/** The medians of these. */
export interface Expectations {
  readonly byEngine: ReadonlyMap<string, Duration.Duration>
  /** Over all engines; undefined before the first run. */
  readonly overall: Duration.Duration | undefined
  readonly past: PastDurations
}

export const noExpectations: Expectations = {
  byEngine: new Map(),
  overall: undefined,
  past: { byEngine: new Map(), all: [], ends: new Map(), closing: 0 },
}

const ascending = (values: ReadonlyArray<number>) => values.toSorted((a, b) => a - b)
const allAscending = (named: ReadonlyMap<string, ReadonlyArray<number>>) =>
  new Map([...named].map(([name, values]) => [name, ascending(values)]))

const addTo = (named: Map<string, Array<number>>, name: string, value: number): void => {
  const known = named.get(name)
  if (known === undefined) named.set(name, [value])
  else known.push(value)
}

/**
 * Of the executions that closed by themselves; aborted ones say nothing. Nor do those that nobody watched:
 * open when a run was resumed, or for longer than a run waits, they may have been over long before somebody
 * looked.
 */
const pastDurations = (runs: ReadonlyArray<RunState>, max_wait: Duration.Duration): PastDurations => {
  const maxWaitMs = Duration.toMillis(max_wait)
  const all: Array<number> = []
  const byEngine = new Map<string, Array<number>>()
  const ends = new Map<string, Array<number>>()
  const closings: Array<number> = []
  for (const run of runs) {
    let lastClosed = 0
    for (const task of run.tasks.values()) {
      const { planned, attempts } = task
      const { engine_reference } = planned
      if (engine_reference === undefined) continue
      for (const { accepted_at, closed, abort } of attempts) {
        lastClosed = Math.max(lastClosed, closed?.at ?? 0)
        if (accepted_at === undefined || closed === undefined || abort !== undefined) continue
        const duration = closed.at - accepted_at
        // A clock that was set back between two runs leaves impossible durations.
        if (duration < 0 || duration > maxWaitMs) continue
        const { resumed } = run.stages
        if (resumed !== undefined && accepted_at < resumed && resumed <= closed.at) continue
        all.push(duration)
        addTo(byEngine, engine_reference, duration)
        // Nobody sees an end before it, whatever the service's clock says.
        const { took = duration } = closed.fact
        for (const name of [engine_reference, subjectOf(task)]) addTo(ends, name, Math.min(took, duration))
      }
    }
    if (run.ended !== undefined && lastClosed > 0) closings.push(Math.max(0, run.ended.at - lastClosed))
  }
  return {
    byEngine: allAscending(byEngine),
    ends: allAscending(ends),
    all: ascending(all),
    closing: middleOf(ascending(closings)) ?? 0,
  }
}

/** Of runs of a job that gives up an execution after `max_wait`. */
export const expectedDurations = (
  runs: ReadonlyArray<RunState>,
  max_wait: Duration.Duration,
): Expectations => {
  const past = pastDurations(runs, max_wait)
  return {
    byEngine: new Map(
      [...past.byEngine].flatMap(([engine, durations]) => {
        const middle = median(durations)
        return middle === undefined ? [] : [[engine, middle] as const]
      }),
    ),
    overall: median(past.all),
    past,
  }
}

/** The value below which this share of the sorted values lies, between its two neighbours. */
export const quantile = (sorted: ReadonlyArray<number>, share: number): number | undefined => {
  const place = share * (sorted.length - 1)
  const below = sorted[Math.floor(place)]
  const above = sorted[Math.ceil(place)]
  return below === undefined || above === undefined ? undefined : below + (above - below) * (place % 1)
}

const middleOf = (sorted: ReadonlyArray<number>): number | undefined => {
  const middle = quantile(sorted, 0.5)
  return middle === undefined ? undefined : Math.round(middle)
}

const median = (sorted: ReadonlyArray<number>): Duration.Duration | undefined => {
  const middle = middleOf(sorted)
  return middle === undefined ? undefined : Duration.millis(middle)
}

/** What one execution will take; an engine that never ran counts as an average one. */
export const expectedDuration = (
  { byEngine, overall }: Expectations,
  engine_reference: EngineReference,
  otherwise: Duration.Duration,
): Duration.Duration => byEngine.get(engine_reference) ?? overall ?? otherwise

/**
 * How long before the deadline an execution must start that is to be over by then: as long as 19 of 20 took.
 * Where those would not fit into a whole night, half of them have to, or nothing would ever be started.
 */
export const neededBefore = (
  sorted: ReadonlyArray<number>,
  windowMs: number,
): Duration.Duration | undefined => {
  const slow = quantile(sorted, 0.95)
  if (slow !== undefined && slow <= windowMs) return Duration.millis(Math.ceil(slow))
  return median(sorted)
}

export interface ExpectedTask {
  readonly task_id: TaskId
  readonly engine_reference: EngineReference
  readonly expected: Duration.Duration
}

/**
 * How long the run takes at least, if no slot is ever empty: limited by all slots together, by the slots of
 * the busiest engine, and by the longest row of tasks that have to wait for each other.
 */
export const estimateNight = (
  tasks: ReadonlyArray<ExpectedTask>,
  limits: { readonly max_in_flight: number; readonly per_engine: number },
  conflicts: ReadonlyArray<{ readonly task_ids: ReadonlyArray<TaskId> }> = [],
): Duration.Duration => {
  const engines = new Map<string, { total: number; longest: number }>()
  let total = 0
  for (const { engine_reference, expected } of tasks) {
    const expectedMs = Duration.toMillis(expected)
    total += expectedMs
    const engine = engines.get(engine_reference) ?? { total: 0, longest: 0 }
    engine.total += expectedMs
    engine.longest = Math.max(engine.longest, expectedMs)
    engines.set(engine_reference, engine)
  }
  let nightMs = total / limits.max_in_flight
  for (const engine of engines.values()) {
    nightMs = Math.max(nightMs, engine.total / limits.per_engine, engine.longest)
  }
  const expectedMs = new Map(tasks.map(({ task_id, expected }) => [task_id, Duration.toMillis(expected)]))
  for (const { task_ids } of conflicts) {
    nightMs = Math.max(
      nightMs,
      task_ids.reduce((sum, task_id) => sum + (expectedMs.get(task_id) ?? 0), 0),
    )
  }
  return Duration.millis(Math.ceil(nightMs))
}
