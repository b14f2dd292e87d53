/**
 * What is known across all runs, folded from the few facts that are read for it: the headers of the runs and
 * what was removed by age. Pure.
 */
import type { Fact, Recorded } from "./Fact.ts"
import { endedBy } from "./FoldRun.ts"
import type { Pruned } from "./PruneFacts.ts"
import type { RunStarted } from "./RunFacts.ts"
import type { RunState } from "./RunState.ts"

export type RecordedAs<F extends Fact> = Omit<Recorded, "fact"> & { readonly fact: F }

/**
 * A run from outside; `ended` is undefined while it runs, or if it was cut off before its end was published.
 */
export interface RunHeader extends RecordedAs<typeof RunStarted.Type> {
  readonly ended: RunState["ended"]
  /** When something was last added to it: its end, or what was collected after that. */
  readonly newest_at: number
}

export const foldHeaders = (rows: ReadonlyArray<Recorded>): ReadonlyArray<RunHeader> => {
  const headers = new Map<string, RunHeader>()
  const ends = new Map<string, RunHeader["ended"]>()
  for (const { seq, at, fact } of rows) {
    if (fact._tag === "RunStarted")
      headers.set(fact.run_id, { seq, at, fact, ended: undefined, newest_at: at })
    else if (fact._tag === "RunEnded") ends.set(fact.run_id, endedBy(ends.get(fact.run_id), { at, fact }))
    else if (fact._tag === "RunResumed" || fact._tag === "OutcomePublished") {
      const header = headers.get(fact.run_id)
      if (header === undefined) continue
      if (fact._tag === "RunResumed") ends.delete(fact.run_id)
      headers.set(fact.run_id, { ...header, ended: ends.get(fact.run_id), newest_at: at })
    }
  }
  return [...headers.values()]
}

export const foldPruned = (rows: ReadonlyArray<Recorded>): Pruned => {
  const [landing, attachments] = [new Map<string, number>(), new Map<string, number>()]
  for (const { at, fact } of rows)
    if (fact._tag === "LandingPruned") landing.set(fact.run_id, at)
    else if (fact._tag === "AttachmentsPruned") attachments.set(fact.run_id, at)
  return { landing, attachments }
}
