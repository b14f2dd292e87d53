/**
 * When a run will end, by what earlier runs took: pure. The plan is executed many times over by the run's own
 * schedule, each time with other durations drawn from those of its engines, so that limits, conflicts and the
 * slowest executions count as they will.
 */
import { Duration } from "effect"
import { DelayQueue } from "../base/Time.ts"
import { sha256Hex } from "../base/Hashes.ts"
import { nextLookInMs, type PollingRules } from "../client/Polling.ts"
import { accessKey } from "../service/Ids.ts"
import { Schedule } from "./Schedule.ts"
import type { Candidate } from "../service/Execution.ts"
import type { Limits } from "./SharedSlots.ts"
import { quantile, type Expectations } from "./Expectations.ts"

export interface ExpectedEnd {
  /** Half of the rehearsals end within this time, and 95 of a hundred. */
  readonly p50: Duration.Duration
  readonly p95: Duration.Duration
  /** Tasks that end after the deadline in most rehearsals, and in more than one of twenty. */
  readonly late: number
  readonly maybeLate: number
}

/** Fewer for a large run: they agree with each other anyway. */
const rehearsalsMax = 41
const rehearsalsMin = 5
const stepsMax = 400_000

const goldenRatio = 0.618_033_988_749_895

/** What a task takes in each rehearsal: the same in every plan, spread evenly over what others took. */
const drawOf = (task_id: string, sorted: ReadonlyArray<number>): ((rehearsal: number) => number) => {
  const first = Number.parseInt(sha256Hex(task_id).slice(0, 12), 16) / 2 ** 48
  return (rehearsal) => quantile(sorted, (first + rehearsal * goldenRatio) % 1) ?? 0
}

/** When the tasks end, one after the other, if they take this long: in milliseconds from now. */
const rehearse = (
  candidates: ReadonlyArray<Candidate>,
  limits: Limits,
  durationOf: (candidate: Candidate) => number,
): ReadonlyArray<number> => {
  const schedule = new Schedule(limits)
  for (const candidate of candidates) schedule.add(candidate)
  const running = new DelayQueue<Candidate>()
  const ends: Array<number> = []
  let now = 0
  for (;;) {
    for (let next = schedule.take(now); next !== undefined; next = schedule.take(now))
      running.add(next, now + durationOf(next))
    if (running.nextAt === undefined) return ends
    now = running.nextAt
    for (let done = running.takeDue(now); done !== undefined; done = running.takeDue(now)) {
      schedule.release(done.task_id)
      ends.push(now)
    }
  }
}

/** Undefined if no earlier run says how long an execution takes. */
export const expectEnd = (
  tasks: ReadonlyArray<Candidate>,
  limits: Limits,
  { byEngine, own, all, closing }: Omit<Expectations, "ends">,
  deadlineIn: number | undefined,
): ExpectedEnd | undefined => {
  if (all.length === 0) return undefined
  const draws = new Map(
    tasks.map((task) => {
      const past = own.get(accessKey(task)) ?? byEngine.get(task.engine_reference) ?? all
      return [task.task_id, drawOf(task.task_id, past)]
    }),
  )
  const rehearsals = Math.max(rehearsalsMin, Math.min(rehearsalsMax, Math.floor(stepsMax / tasks.length)))
  const rehearsed = Array.from({ length: rehearsals }, (_, rehearsal) => {
    const finished = rehearse(tasks, limits, ({ task_id }) => draws.get(task_id)?.(rehearsal) ?? 0)
    return {
      end: (finished.at(-1) ?? 0) + closing,
      late: finished.filter((end) => deadlineIn !== undefined && end > deadlineIn).length,
    }
  })
  const ends = rehearsed.map(({ end }) => end)
  const lates = rehearsed.map(({ late }) => late)
  const at = (values: ReadonlyArray<number>, share: number) => {
    const sorted = values.toSorted((a, b) => a - b)
    return Math.round(quantile(sorted, share) ?? 0)
  }
  return {
    p50: Duration.millis(at(ends, 0.5)),
    p95: Duration.millis(at(ends, 0.95)),
    late: at(lates, 0.5),
    maybeLate: at(lates, 0.95),
  }
}

/** Requests for one execution besides its polls: start, results, deletion. */
const callsBesidePolls = 3

/** About how many requests the service gets if executions take what they usually take. */
export const expectedCalls = <Task extends { readonly expected: Duration.Duration }>(
  tasks: ReadonlyArray<Task>,
  polling: PollingRules,
  looks: (task: Task) => ReadonlyArray<number>,
): number => {
  let calls = 0
  for (const task of tasks) {
    const plan = looks(task)
    const expectedMs = Duration.toMillis(task.expected)
    for (let waited = 0; waited < expectedMs; calls++) waited += nextLookInMs(polling, waited, { plan })
    calls += callsBesidePolls
  }
  return calls
}
