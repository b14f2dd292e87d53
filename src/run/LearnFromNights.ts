/**
 * What the last nights of a job say about the next one: how long executions take, and what the deadline kept
 * from being finished. However many nights there are, only the last few are read.
 */
import type { Duration } from "effect"
import { Effect } from "effect"
import type { EngineReference, RunId } from "../service/Ids.ts"
import type { Job } from "../jobs/Job.ts"
import { Ledger } from "../ledger/Ledger.ts"
import { runsLearntFrom } from "../ledger/RunId.ts"
import { statesOf } from "../ledger/WholeNight.ts"
import { carriedOver } from "../task/CarriedOver.ts"
import { expectedDurations, neededBefore } from "../task/Expectations.ts"
import type { Expectations } from "../task/Expectations.ts"

const nightsMax = 3

export interface Learnt {
  /** An engine that never ran gives no estimate, and may still be started. */
  readonly expectations: Expectations
  /** Customers and engines that come first, the next one first. */
  readonly carried: ReadonlyArray<string>
}

export const learn = Effect.fnUntraced(function* (job: Job, run_id: RunId) {
  const ledger = yield* Ledger
  const earlier = (yield* ledger.runs).filter(
    (run) => run.fact.job === job.name && run.fact.run_id !== run_id,
  )
  const dates = [...new Set(earlier.map(({ fact }) => fact.run_date))].slice(-nightsMax)
  const newest = earlier.filter(({ fact }) => dates.includes(fact.run_date)).slice(-runsLearntFrom)
  const runs = yield* statesOf(ledger, newest)
  return {
    expectations: expectedDurations(runs, job.execution.max_wait),
    carried: carriedOver(runs),
  } satisfies Learnt as Learnt
})

/** What the last nights say about an engine; nothing if they never ran it. */
export const timesOf = (
  { expectations: { byEngine, past } }: Learnt,
  engine_reference: EngineReference,
  { job, windowMs }: { readonly job: Pick<Job, "on_deadline">; readonly windowMs: number },
): { readonly expected?: Duration.Duration; readonly needs?: Duration.Duration } => {
  const expected = byEngine.get(engine_reference)
  const needs =
    job.on_deadline === "carry"
      ? neededBefore(past.byEngine.get(engine_reference) ?? [], windowMs)
      : undefined
  return { ...(expected === undefined ? {} : { expected }), ...(needs === undefined ? {} : { needs }) }
}
