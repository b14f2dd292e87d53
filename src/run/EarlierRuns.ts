/**
 * The runs that a run is compared with, read from the ledger: how everybody stood before it began. The end of
 * a run and its report both need them.
 */
import { Effect } from "effect"
import type { RunId } from "../service/Ids.ts"
import { foldRun } from "../ledger/FoldRun.ts"
import { Ledger } from "../ledger/Ledger.ts"
import type { RunState } from "../ledger/RunState.ts"
import { statesOf } from "../ledger/WholeNight.ts"
import {
  compareRun,
  countChanges,
  doubtfulSubjects,
  hasRecovered,
  newsOf,
  runsBefore,
  standingsAfter,
} from "../report/Changes.ts"
import type { Standing } from "../report/Changes.ts"

/** Oldest first, and the newest run of the job before this one, whatever became of it. */
export const earlierRuns = Effect.fn("EarlierRuns.load")(function* (run_id: RunId) {
  const ledger = yield* Ledger
  const headers = yield* ledger.runs
  const before = yield* statesOf(ledger, runsBefore(headers, run_id))
  const at = headers.findIndex(({ fact }) => fact.run_id === run_id)
  const job = headers[at]?.fact.job
  const previous = headers.slice(0, Math.max(0, at)).findLast(({ fact }) => fact.job === job)
  return { before, previous }
})

/**
 * The run as it was when it last ended, if it was resumed or accepted since: its end was told then. An end
 * that was not published, because the process was killed, was told to nobody.
 */
const lastEnd = Effect.fnUntraced(function* ({ started, stages, ended }: RunState) {
  if (stages.resumed === undefined && ended === undefined) return undefined
  const ledger = yield* Ledger
  const facts = yield* ledger.facts(started.run_id)
  const at = facts.findLastIndex(({ fact }) => fact._tag === "OutcomePublished")
  return at === -1 ? undefined : foldRun(facts.slice(0, at + 1))
})

/** As many as a night of an outage may have before it. */
const olderRunsMax = 8

/** How these subjects stood when they last came to an end before a run, some runs back. */
const standingsBefore = Effect.fnUntraced(function* (run: RunState, subjects: ReadonlySet<string>) {
  const found = new Map<string, Standing>()
  if (subjects.size === 0) return found
  const ledger = yield* Ledger
  const headers = yield* ledger.runs
  const at = headers.findIndex(({ fact }) => fact.run_id === run.started.run_id)
  const older = headers.slice(0, Math.max(0, at)).filter(({ fact }) => fact.job === run.started.job)
  for (const header of older.slice(-olderRunsMax).toReversed()) {
    if (found.size === subjects.size) break
    const standings = standingsAfter(yield* statesOf(ledger, [header]))
    for (const [subject, standing] of standings)
      if (subjects.has(subject) && standing.outcome !== "unfinished" && !found.has(subject))
        found.set(subject, standing)
  }
  return found
})

/**
 * What nobody was told of before this end of a run: compared with the runs before it, with its own end
 * before it was resumed, and, for whom an outage kept from an end, with the nights before that.
 */
const newsSince = Effect.fnUntraced(function* (run: RunState, before: ReadonlyArray<RunState>) {
  const told = yield* lastEnd(run)
  const runs = told === undefined ? before : [...before, told]
  const [first] = runs
  const older = first === undefined ? new Map() : yield* standingsBefore(first, doubtfulSubjects(run, runs))
  return { told, news: newsOf(run, { runs, older }) }
})

/** An older run that cannot be read any more is no reason to leave this one without its end. */
export const changesOf = (state: RunState) =>
  Effect.gen(function* () {
    const { before, previous } = yield* earlierRuns(state.started.run_id)
    const { told, news } = yield* newsSince(state, before)
    return {
      changes: countChanges(compareRun(state, before)),
      recovered: hasRecovered(state, told === undefined ? before : [...before, told], told ?? previous),
      news,
    }
  }).pipe(
    Effect.orElseSucceed(() => ({
      changes: undefined,
      recovered: false,
      news: newsOf(state, { runs: [], older: new Map() }),
    })),
  )
