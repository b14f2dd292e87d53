/**
 * What must hold beyond each run where a night has several jobs, or several runs: their executions and requests
 * together stay within the largest limits, a job that follows another waits for its end, every job gets its run and
 * its tables, and in an even night these are the tables of the same jobs one after the other. Pure, like all of it.
 */
import { foldRun } from "../../src/ledger/FoldRun.ts"
import type { RunState } from "../../src/ledger/RunState.ts"
import type { ExecutionSeen } from "../../src/sandbox/admin/Truth.ts"
import type { NightOutcome } from "./SimulatedNight.ts"

export interface Violation {
  readonly promise: number
  readonly what: string
}

export const runsOf = ({ facts }: Pick<NightOutcome, "facts">): ReadonlyArray<RunState> =>
  [...Map.groupBy(facts, ({ fact }) => ("run_id" in fact ? fact.run_id : undefined)).entries()].flatMap(
    ([run_id, ofRun]) => (run_id === undefined ? [] : (foldRun(ofRun) ?? [])),
  )

/** The most of these that were open at the same time. */
const mostAtOnce = (executions: ReadonlyArray<ExecutionSeen>): number => {
  const moves = executions.flatMap(({ started_at, closes_at }) => [
    { at: started_at, by: 1 },
    { at: closes_at, by: -1 },
  ])
  // What closes at a moment makes room for what starts then.
  moves.sort((one, other) => one.at - other.at || one.by - other.by)
  let open = 0
  return moves.reduce((most, { by }) => Math.max(most, (open += by)), 0)
}

/** Executions by the process that started them and saw their end: what nobody sees is in nobody's slot. */
const seenIn = (night: NightOutcome): ReadonlyArray<ReadonlyArray<ExecutionSeen>> => {
  const processOf = (seq: number) => night.bornAt.findLastIndex((bornAt) => bornAt < seq)
  const startedIn = new Map<string, number>()
  const seen = new Map<string, number>()
  for (const { seq, fact } of night.facts) {
    if (fact._tag === "StartAnswered" && fact.execution_id !== undefined)
      startedIn.set(fact.execution_id, processOf(seq))
    if (fact._tag === "AttemptClosed" && startedIn.get(fact.execution_id) === processOf(seq))
      seen.set(fact.execution_id, processOf(seq))
  }
  const executions = night.truth.executions.filter(({ execution_id }) => seen.has(execution_id))
  return [...Map.groupBy(executions, ({ execution_id }) => seen.get(execution_id)).values()]
}

/** 3: however many jobs go on, together they never have more open than the largest limit of one allows. */
const withinSlots = (night: NightOutcome): ReadonlyArray<Violation> => {
  const largest = (which: "max_in_flight" | "per_engine") =>
    Math.max(...night.plan.jobs.map(({ concurrency }) => concurrency[which]))
  const all = largest("max_in_flight")
  const each = largest("per_engine")
  return seenIn(night).flatMap((executions) => [
    ...(mostAtOnce(executions) > all
      ? [{ promise: 3, what: `${mostAtOnce(executions)} executions were open at once, and ${all} may be` }]
      : []),
    ...[...Map.groupBy(executions, (one) => one.engine_reference)].flatMap(([engine, ofEngine]) =>
      mostAtOnce(ofEngine) > each
        ? [{ promise: 3, what: `${mostAtOnce(ofEngine)} were open at once on ${engine}, and ${each} may be` }]
        : [],
    ),
  ])
}

/** 10: the requests of all jobs together are under way within one limit. */
const withinRequests = ({ requestsAtOnce, plan }: NightOutcome): ReadonlyArray<Violation> =>
  requestsAtOnce > plan.requestsAtOnce
    ? [{ promise: 10, what: `${requestsAtOnce} requests at once, and ${plan.requestsAtOnce} may be` }]
    : []

/** What a run may also say of an execution that another job left open and is in its way. */
const sightings: ReadonlySet<string> = new Set(["AttemptObserved", "LoginJudged"])

/** The seqs of a job's own facts, process by process. */
const factsByProcess = ({ facts, bornAt }: NightOutcome, job: string) => {
  const runs = new Set(
    facts.flatMap(({ fact }) => (fact._tag === "RunStarted" && fact.job === job ? [fact.run_id] : [])),
  )
  const seqs = facts.flatMap(({ seq, fact }) =>
    "run_id" in fact && runs.has(fact.run_id) && !sightings.has(fact._tag) ? [seq] : [],
  )
  return bornAt.map((from, process) =>
    seqs.filter((seq) => seq > from && seq <= (bornAt[process + 1] ?? Infinity)),
  )
}

/** 4: what a job follows is over before it begins, in every process. */
const afterHolds = (night: NightOutcome): ReadonlyArray<Violation> =>
  night.plan.jobs.flatMap((later) =>
    (later.after ?? []).flatMap(({ job }) => {
      const earlier = factsByProcess(night, job)
      const isBroken = factsByProcess(night, later.name).some(
        (own, process) => (own[0] ?? Infinity) < (earlier[process]?.at(-1) ?? -Infinity),
      )
      return isBroken ? [{ promise: 4, what: `${later.name} did not wait for the end of ${job}` }] : []
    }),
  )

/** 6: every job has a run, and every run that is over is in the tables with all its tasks. */
const tablesWhole = (night: NightOutcome): ReadonlyArray<Violation> => {
  const runs = runsOf(night)
  const without = night.plan.jobs.filter(
    ({ name }) => !night.late.has(name) && runs.every(({ started }) => started.job !== name),
  )
  return [
    ...without.map(({ name }) => ({ promise: 6, what: `${name} has no run` })),
    ...runs.flatMap(({ started: { run_id }, tasks, ended }) => {
      const rows = night.published.store.runs.get(run_id)?.rows["tasks"]
      return ended === undefined || rows === tasks.size
        ? []
        : [{ promise: 6, what: `${run_id} has ${tasks.size} tasks, and ${rows ?? "no"} rows of them` }]
    }),
  ]
}

/** What the runs of each job brought, without what depends on the hour: ids, and dates in names of runs. */
const tablesOf = (night: NightOutcome) =>
  night.plan.jobs
    .map(({ name }) => ({
      job: name,
      runs: runsOf(night)
        .filter(({ started }) => started.job === name)
        .map(({ started: { run_id }, tasks }) => {
          const published = night.published.store.runs.get(run_id)
          return {
            rows: published?.rows,
            bodies: published?.bodies.map(({ found, placed }) => `${found} ${placed}`).toSorted(),
            verdicts: [...tasks.values()]
              .map(({ planned, settled }) =>
                [planned.customer_id, planned.engine_reference, settled?.fact.reason].join(" "),
              )
              .toSorted(),
          }
        }),
    }))
    .toSorted((one, other) => (one.job < other.job ? -1 : 1))

/** 6: beside each other, jobs bring what they bring one after the other. */
const sameAsInARow = (night: NightOutcome): ReadonlyArray<Violation> => {
  if (night.inARow === undefined) return []
  const [beside, row] = [tablesOf(night), tablesOf(night.inARow)]
  return beside.flatMap((one, index) =>
    JSON.stringify(one) === JSON.stringify(row[index])
      ? []
      : [
          {
            promise: 6,
            what: `${one.job} has other tables than after the others: ${differing(one, row[index])}`,
          },
        ],
  )
}

const differing = (one: unknown, other: unknown): string => {
  const [own = "", theirs = ""] = [one, other].map((value) => JSON.stringify(value))
  let from = 0
  while (own[from] === theirs[from]) from += 1
  return `${own.slice(Math.max(0, from - 80), from + 80)} / ${theirs.slice(Math.max(0, from - 80), from + 80)}`
}

export const violationsBeside = (night: NightOutcome): ReadonlyArray<Violation> => [
  ...withinSlots(night),
  ...withinRequests(night),
  ...afterHolds(night),
  ...tablesWhole(night),
  ...sameAsInARow(night),
]
