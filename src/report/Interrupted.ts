/**
 * A run that was cut off, as `status` tells it: since when nobody works on it, what is in flight, and what
 * the next `nightjar run JOB` does about it. Pure: whether a process works on it is known to whoever asks.
 */
import { endOfAttempt } from "../service/Ends.ts"
import { resumeTask } from "../task/TaskResumption.ts"
import type { TaskResumption } from "../task/TaskResumption.ts"
import { counted, listed } from "../base/Text.ts"
import { isOpenAtService } from "../ledger/RunState.ts"
import type { RunState, TaskState } from "../ledger/RunState.ts"
import { resumeAgeMaxMs } from "../task/ChooseRun.ts"
import { span } from "./TextTable.ts"

interface OpenExecution {
  readonly task_id: string
  readonly customer_id: string | null
  readonly engine_reference: string | null
  readonly execution_id: string
}

export interface Interrupted {
  /** When the last fact of the run was recorded; ISO 8601, in UTC. */
  readonly since: string
  /** Tasks that have begun and are not over, by engine, those with the most first; null: flow sessions. */
  readonly in_flight: ReadonlyArray<{ readonly engine_reference: string | null; readonly tasks: number }>
  /** Executions that are open at the service, as far as is known here. */
  readonly open_executions: ReadonlyArray<OpenExecution>
  /** Starts of which it is not known whether they created an execution. */
  readonly unanswered_starts: number
  /** Tasks that wait for another try, and those that have not begun. */
  readonly waiting: number
  readonly not_begun: number
  /** Whether `nightjar run JOB` goes on with it; otherwise it only collects what is in flight. */
  readonly is_resumed: boolean
}

const places = {
  Nothing: undefined,
  NightOver: undefined,
  NotStarted: "waiting",
  Start: "waiting",
  Follow: "in flight",
  Finish: "in flight",
  Refused: "in flight",
  NotOurs: "in flight",
  StartUnknown: "unanswered",
  Unusable: "unanswered",
} as const satisfies Record<TaskResumption["_tag"], string | undefined>

/** Where the next run finds the task; undefined if it is over. */
const placeOf = (task: TaskState) => {
  const resumption = resumeTask(task, "night")
  if (resumption._tag === "Finish" && endOfAttempt(resumption.closed, resumption.attempt.abort).retry)
    return "waiting"
  if (resumption._tag !== "Start") return places[resumption._tag]
  return resumption.probe ? "unanswered" : task.attempts.length === 0 ? "not begun" : "waiting"
}

/** `superseded`: the job has begun a newer run since. Times are milliseconds. */
export const interruptedOf = (
  { tasks, started_at }: RunState,
  {
    last_at,
    now,
    superseded,
  }: { readonly last_at: number; readonly now: number; readonly superseded: boolean },
): Interrupted => {
  const all = [...tasks.values()]
  const placed = Map.groupBy(all, placeOf)
  const [unanswered, inFlight] = [placed.get("unanswered") ?? [], placed.get("in flight") ?? []]
  const byEngine = Map.groupBy(
    [...inFlight, ...unanswered],
    ({ planned }) => planned.engine_reference ?? null,
  )
  return {
    since: new Date(last_at).toISOString(),
    in_flight: [...byEngine]
      .map(([engine_reference, own]) => ({ engine_reference, tasks: own.length }))
      .toSorted((a, b) => b.tasks - a.tasks),
    open_executions: all.flatMap(({ planned, attempts }) =>
      attempts.filter(isOpenAtService).map(({ execution_id }) => ({
        task_id: planned.task_id,
        customer_id: planned.customer_id ?? null,
        engine_reference: planned.engine_reference ?? null,
        execution_id,
      })),
    ),
    unanswered_starts: unanswered.length,
    waiting: placed.get("waiting")?.length ?? 0,
    not_begun: placed.get("not begun")?.length ?? 0,
    is_resumed: !superseded && Math.abs(now - started_at) < resumeAgeMaxMs,
  }
}

const shownMax = 3

const part = (count: number, noun: string, more = ""): ReadonlyArray<string> =>
  count === 0 ? [] : [`${counted(count, noun)}${more}`]

const whatIsLeft = (interrupted: Interrupted): string => {
  const { in_flight, open_executions, unanswered_starts, waiting, not_begun } = interrupted
  const tasks = in_flight.reduce((sum, one) => sum + one.tasks, 0)
  const engines = in_flight.map((one) => `${one.tasks} on ${one.engine_reference ?? "flow sessions"}`)
  const open = open_executions.map((one) => `${one.execution_id} of ${one.customer_id ?? "?"}`)
  const parts = [
    ...part(tasks, "task", ` (${listed(engines, shownMax)})`),
    ...part(open.length, "execution", ` open at the service (${listed(open, shownMax)})`),
    ...part(unanswered_starts, "start", " without a known answer"),
  ]
  const rest = [...part(waiting, "task", " to be tried again"), ...part(not_begun, "task", " not begun")]
  const left = rest.length === 0 ? "" : ` Also left: ${rest.join(", ")}.`
  return `In flight: ${parts.join(", ") || "nothing"}.${left}`
}

/** Sentences; the command is to follow them. */
export const tellInterrupted = (
  run_id: string,
  interrupted: Interrupted,
  now: number,
): ReadonlyArray<string> => {
  const agoMs = now - Date.parse(interrupted.since)
  // The clock of an embedded service may be ahead of the machine's.
  const ago = agoMs < 0 ? "" : ` (${span(agoMs)} ago)`
  return [
    `${run_id} was interrupted: no process has worked on it since ${interrupted.since}${ago}.`,
    whatIsLeft(interrupted),
    interrupted.is_resumed
      ? "This command resumes it; after the job's deadline, it only collects what is in flight:"
      : "It is too old to be resumed. This command collects what is in flight for the job's next run:",
  ]
}
