/**
 * Executions that runs left at the service and that may still be open: the ledger knows of no end. No other
 * run starts the same customers and logins meanwhile.
 */
import { Clock, Duration, Effect } from "effect"
import type { RunId } from "../service/Ids.ts"
import { resumeAttempt } from "../task/Attempt.ts"
import { SlotsBeside } from "../task/SlotsBeside.ts"
import type { Job } from "../jobs/Job.ts"
import { Ledger } from "../ledger/Ledger.ts"
import type { RunHeader } from "../ledger/FoldLedger.ts"
import type { Candidate } from "../service/Candidate.ts"

interface LeftOpen extends Candidate {
  readonly job: string
  /** When its start was sent, in milliseconds since the epoch. */
  readonly since: number
  /** Whoever collects its run learns how it ends, and what the source says to its login. */
  readonly isFollowed: boolean
}

const openIn = Effect.fnUntraced(function* (isMeant: (run: RunHeader) => boolean) {
  const ledger = yield* Ledger
  const open: Array<LeftOpen> = []
  for (const run of yield* ledger.runs) {
    if (run.ended?.leftovers === false || !isMeant(run)) continue
    const { job, run_id } = run.fact
    for (const { planned, attempts } of (yield* ledger.state(run_id))?.tasks.values() ?? []) {
      const { task_id, customer_id, engine_reference } = planned
      if (customer_id === undefined || engine_reference === undefined) continue
      for (const attempt of attempts) {
        const { _tag } = resumeAttempt(attempt)
        if (_tag === "Closed" || _tag === "NeverStarted" || _tag === "Start") continue
        const { fingerprint, account, intended_at: since } = attempt
        const login = { fingerprint, account: account?.account }
        const isFollowed = _tag === "Follow"
        open.push({ job, task_id, customer_id, engine_reference, ...login, since, isFollowed })
      }
    }
  }
  return open as ReadonlyArray<LeftOpen>
})

/** What earlier runs of the job may still have open. */
export const leftOpenBy = (job: Job) => openIn(({ fact }) => fact.job === job.name)

/** What is followed to its end when these runs are collected. */
export const followedIn = (collect: ReadonlyArray<RunId>) =>
  Effect.map(
    openIn(({ fact }) => collect.includes(fact.run_id)),
    (open) => open.filter(({ isFollowed }) => isFollowed),
  )

/**
 * What other runs have open, as long as an execution of this job would be waited for: until then, nobody else
 * logs in there: neither beside what is known to run, nor beside what may run unseen. The logins of runs
 * that go on beside this one are waited for instead (`HeldLogin.ts`).
 */
export const leftOpenBeside = Effect.fn("LeftOpen.beside")(function* (
  run_id: RunId,
  job: Job,
  /** Runs that will be followed to their end before. */
  collect: ReadonlyArray<RunId> = [],
) {
  const now = yield* Clock.currentTimeMillis
  const newest = now - Duration.toMillis(job.execution.max_wait)
  const live = (yield* SlotsBeside)?.jobs()
  const open = yield* openIn(
    ({ fact, ended, newest_at }) =>
      fact.run_id !== run_id && !collect.includes(fact.run_id) && (ended === undefined || newest_at > newest),
  )
  return open
    .filter(({ since }) => since > newest)
    .map((one) =>
      live?.has(one.job) === true ? { ...one, fingerprint: undefined, account: undefined } : one,
    )
})
