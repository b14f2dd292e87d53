/**
 * Which tasks earlier runs had no time for, so that they come first in the next one: pure. They keep the
 * order in which they were left: a night that is always too short works through all customers in turn, and
 * those at the end of the job file do not wait for ever.
 */
import type { RunState, TaskState } from "../ledger/RunState.ts"
import { subjectOf } from "../ledger/RunState.ts"

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
