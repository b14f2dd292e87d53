/**
 * In which order tasks come, and which of them earlier runs had no time for, so that they come first in the
 * next one: pure. They keep the order in which they were left: a night that is always too short works through
 * all customers in turn, and those at the end of the job file do not wait for ever.
 */
import { accessKey } from "../service/Ids.ts"
import type { RunId } from "../service/Ids.ts"
import type { Job } from "../jobs/Job.ts"
import { subjectOf } from "../ledger/RunState.ts"
import type { RunState, TaskState } from "../ledger/RunState.ts"
import { keyedPlace } from "../privacy/Fingerprint.ts"

const isCarried = ({ settled, attempts }: TaskState): boolean => {
  if (settled?.fact.outcome !== "unfinished") return false
  const { reason } = settled.fact
  return reason === "DEADLINE_REACHED" || reason === "RUN_DRAINED" || attempts.at(-1)?.abort === "deadline"
}

/** The subjects (`subjectOf`) that come first, next one first; `runs` are earlier ones, the oldest first. */
export const carriedOver = (runs: ReadonlyArray<RunState>): ReadonlyArray<string> => {
  const carried = new Set<string>()
  for (const run of runs)
    for (const task of run.tasks.values()) {
      const subject = subjectOf(task)
      carried.delete(subject)
      if (isCarried(task)) carried.add(subject)
    }
  return [...carried]
}

/** Those of the subjects that come first, in their order, then the others in theirs. */
export const inLine = <A>(
  all: ReadonlyArray<A>,
  nameOf: (one: A) => string,
  first: ReadonlyArray<string>,
): ReadonlyArray<A> => {
  const places = new Map(first.map((subject, place) => [subject, place]))
  const placeOf = (one: A) => places.get(nameOf(one)) ?? first.length
  return all.toSorted((a, b) => placeOf(a) - placeOf(b))
}

/** The keyed hash with which nobody but the output folder finds an order again. */
interface OrderedBy {
  readonly key: Uint8Array
  /** Each run has another order, so that nobody is always the last one. */
  readonly run_id: RunId
}

const inKeyedOrder = <A>(all: ReadonlyArray<A>, nameOf: (one: A) => string, { key, run_id }: OrderedBy) =>
  all
    .map((one) => ({ one, place: keyedPlace(key, run_id, nameOf(one)) }))
    .toSorted((a, b) => (a.place < b.place ? -1 : 1))
    .map(({ one }) => one)

/**
 * What a job names, in the order in which it is started, read and deleted: its own, unless the tables have
 * pseudonyms. Their times, and the features that the service repeats, would tell a reader of the job file
 * whose rows they are.
 */
export const namedInOrder = (
  { assignments, sessions, pseudonyms }: Pick<Job, "assignments" | "sessions" | "pseudonyms">,
  by: OrderedBy,
): Pick<Job, "assignments" | "sessions"> => {
  if (pseudonyms === undefined) return { assignments, sessions }
  const alike = assignments.map((one) => ({
    ...one,
    features: one.features.toSorted((a, b) => (a.code < b.code ? -1 : 1)),
  }))
  return {
    assignments: inKeyedOrder(alike, accessKey, by),
    sessions: inKeyedOrder(sessions, ({ session_id }) => `session/${session_id}`, by),
  }
}
