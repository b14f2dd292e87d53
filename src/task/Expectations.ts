/**
 * How long executions are likely to take, learnt from earlier runs, and how long a whole run may: pure
 * folds of runs and tasks. An engine's earlier durations decide whether a start still fits before the
 * deadline; the estimate for a whole run is for people only.
 */
import { Duration } from "effect"
import { planLooks, seenAfterMs, type PollingRules } from "../client/Polling.ts"
import { conflictKeys, type Candidate } from "../service/Execution.ts"
import { accessKey, type Access, type EngineReference, type TaskId } from "../service/Ids.ts"
import { subjectOf, type RunState } from "../ledger/RunState.ts"

/** What executions of earlier runs would take tonight, from acceptance to closed: milliseconds, ascending. */
export interface Expectations {
  readonly byEngine: ReadonlyMap<string, ReadonlyArray<number>>
  /** By `<customer_id>/<engine_reference>`, where that says more than the engine's. */
  readonly own: ReadonlyMap<string, ReadonlyArray<number>>
  /** Over all engines. */
  readonly all: ReadonlyArray<number>
  /** Until their end instead, which is seen a little later: by engine, and as in `own`. */
  readonly ends: ReadonlyMap<string, ReadonlyArray<number>>
  /** From the last execution's end to the run's: reading, publishing, deleting. */
  readonly closing: number
}

const ascending = (values: ReadonlyArray<number>) => values.toSorted((a, b) => a - b)

/** An execution that is over. */
interface Over {
  readonly engine: string
  readonly subject: string
  /** By the service's own dates, if it names them, and until its end was seen: milliseconds. */
  readonly took: number | undefined
  readonly duration: number
}

const endOf = ({ took, duration }: Over): number => took ?? duration

/** Of these, each with two ends at least, nothing is said of one by the others' ends. */
const customersMin = 5

/** Whether the ends of different customers differ more than those of one do, on a scale of ratios. */
const tellsApart = (customers: ReadonlyArray<ReadonlyArray<number>>): boolean => {
  const several = customers
    .filter((ends) => ends.length > 1)
    .map((ends) => ends.map((end) => Math.log(end + 1)))
  const all = several.flat()
  const within = several.reduce((sum, ends) => sum + squares(ends), 0) / (all.length - several.length)
  return several.length >= customersMin && within < squares(all) / (all.length - 1) / 2
}

/** The sum of the squared distances from their mean. */
const squares = (values: ReadonlyArray<number>): number => {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length
  return values.reduce((sum, value) => sum + (value - mean) ** 2, 0)
}

/**
 * Of the executions that closed by themselves; aborted ones say nothing. Nor do those that nobody watched:
 * open when a run was resumed, or for longer than the job's runs wait (`max_wait`), they may have been over
 * long before somebody looked.
 */
export const expectedDurations = (
  runs: ReadonlyArray<RunState>,
  max_wait: Duration.Duration,
  polling: PollingRules,
): Expectations => {
  const maxWaitMs = Duration.toMillis(max_wait)
  const over: Array<Over> = []
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
        // Nobody sees an end before it, whatever the service's clock says.
        const took = closed.fact.took === undefined ? undefined : Math.min(closed.fact.took, duration)
        over.push({ engine: engine_reference, subject: subjectOf(task), took, duration })
      }
    }
    if (run.ended !== undefined && lastClosed > 0) closings.push(Math.max(0, run.ended.at - lastClosed))
  }
  const byEngine = Map.groupBy(over, ({ engine }) => engine)
  const own = [...byEngine.values()].flatMap((all) => {
    const customers = [...Map.groupBy(all, ({ subject }) => subject)]
    return tellsApart(customers.map(([, ofOne]) => ofOne.map(endOf))) ? customers : []
  })
  const sorted = (groups: Iterable<readonly [string, ReadonlyArray<Over>]>, msOf: (one: Over) => number) =>
    new Map(Array.from(groups, ([name, all]) => [name, ascending(all.map(msOf))]))
  const ends = sorted([...byEngine, ...own], endOf)
  const plans = new Map(
    Array.from(byEngine.keys(), (engine) => [engine, planLooks(polling, ends.get(engine) ?? [])]),
  )
  // Looked at otherwise than tonight, an end was seen later or sooner.
  const seen = ({ engine, took, duration }: Over): number =>
    took === undefined ? duration : seenAfterMs(polling, took, plans.get(engine) ?? [])
  return {
    byEngine: sorted(byEngine, seen),
    own: sorted(own, seen),
    ends,
    all: ascending(over.map(seen)),
    closing: middleOf(ascending(closings)) ?? 0,
  }
}

/** The value below which this share of the sorted values lies, between its two neighbours. */
export const quantile = (sorted: ReadonlyArray<number>, share: number): number | undefined => {
  const place = share * (sorted.length - 1)
  const below = sorted[Math.floor(place)]
  const above = sorted[Math.ceil(place)]
  return below === undefined || above === undefined ? undefined : below + (above - below) * (place % 1)
}

export const middleOf = (sorted: ReadonlyArray<number>): number | undefined => {
  const middle = quantile(sorted, 0.5)
  return middle === undefined ? undefined : Math.round(middle)
}

const median = (sorted: ReadonlyArray<number>): Duration.Duration | undefined => {
  const middle = middleOf(sorted)
  return middle === undefined ? undefined : Duration.millis(middle)
}

/** What one execution will take; an engine that never ran counts as an average one. */
export const expectedDuration = (
  { byEngine, all }: Expectations,
  engine_reference: EngineReference,
  otherwise: Duration.Duration,
): Duration.Duration => median(byEngine.get(engine_reference) ?? all) ?? otherwise

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

/** How long a task takes, as the customer's own past says, or else the engine's: milliseconds. */
export const takesOf = ({ byEngine, own }: Expectations, task: Access): number | undefined =>
  middleOf(own.get(accessKey(task)) ?? byEngine.get(task.engine_reference) ?? [])

/**
 * How long each task and those that must follow it take, if the longest of them is the first: milliseconds.
 * `otherwise` is what a task takes of which nothing is known.
 */
export const tailsOf = (tasks: ReadonlyArray<Candidate>, otherwise: number): ReadonlyMap<TaskId, number> => {
  const keyed = tasks.flatMap((task) => conflictKeys(task).map((key) => ({ key, task })))
  const msOf = ({ takesMs = otherwise }: Candidate): number => takesMs
  const tails = new Map<TaskId, number>()
  for (const row of Map.groupBy(keyed, ({ key }) => key).values()) {
    let tail = 0
    for (const { task } of row.toSorted((one, other) => msOf(one.task) - msOf(other.task))) {
      tail += msOf(task)
      tails.set(task.task_id, Math.max(tail, tails.get(task.task_id) ?? 0))
    }
  }
  return tails
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
  const sumOf = (all: ReadonlyArray<ExpectedTask>) =>
    all.reduce((sum, { expected }) => sum + Duration.toMillis(expected), 0)
  let nightMs = sumOf(tasks) / limits.max_in_flight
  for (const own of Map.groupBy(tasks, ({ engine_reference }) => engine_reference).values()) {
    const longest = own.reduce((most, { expected }) => Math.max(most, Duration.toMillis(expected)), 0)
    nightMs = Math.max(nightMs, sumOf(own) / limits.per_engine, longest)
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
