/**
 * Executions that earlier runs left at the service and that may still be open: the ledger knows of no end. A
 * job waits for those of another, and starts none of the same customers and logins.
 */
import { Clock, Duration, Effect } from "effect"
import { resumeAttempt } from "../execution/Attempt.ts"
import type { Job } from "../jobs/Job.ts"
import { Ledger } from "../ledger/Ledger.ts"
import type { RunHeader } from "../ledger/FoldLedger.ts"
import type { AttemptState } from "../ledger/RunState.ts"
import type { Candidate } from "../scheduling/Schedule.ts"

/** It runs, or may run. */
const isOpen = (attempt: AttemptState): boolean => {
  const { _tag } = resumeAttempt(attempt)
  return _tag !== "Closed" && _tag !== "NeverStarted" && _tag !== "Start"
}

interface LeftOpen extends Candidate {
  /** When its start was sent, in milliseconds since the epoch. */
  readonly since: number
}

const openIn = Effect.fnUntraced(function* (isMeant: (run: RunHeader) => boolean) {
  const ledger = yield* Ledger
  const open: Array<LeftOpen> = []
  for (const run of yield* ledger.runs) {
    if (run.ended?.leftovers === false || !isMeant(run)) continue
    for (const { planned, attempts } of (yield* ledger.state(run.fact.run_id))?.tasks.values() ?? []) {
      const { task_id, customer_id, engine_reference } = planned
      if (customer_id === undefined || engine_reference === undefined) continue
      for (const attempt of attempts.filter(isOpen)) {
        const { fingerprint, intended_at: since } = attempt
        open.push({ task_id, customer_id, engine_reference, fingerprint, since })
      }
    }
  }
  return open as ReadonlyArray<LeftOpen>
})

/** What earlier runs of the job may still have open. */
export const leftOpenBy = (job: Job) => openIn(({ fact }) => fact.job === job.name)

/**
 * What runs of other jobs may still have open, as long as an execution of this job would be waited for: until
 * then, nobody else logs in there.
 */
export const leftOpenByOthers = Effect.fn("LeftOpen.byOthers")(function* ({ name, execution }: Job) {
  const now = yield* Clock.currentTimeMillis
  const newest = now - Duration.toMillis(execution.max_wait)
  const open = yield* openIn(
    ({ fact, ended, newest_at }) => fact.job !== name && (ended === undefined || newest_at > newest),
  )
  return open.filter(({ since }) => since > newest)
})
