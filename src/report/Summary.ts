/**
 * The result of a run, for people and programs: a pure fold of its state. Counts, then what did not succeed
 * by who must act, then what is left at the service. Contains ids and reasons, never a value of a parameter.
 */
import { counted, listed } from "../base/Text.ts"
import type { MisfitCount, OtherRecords, RejectedCount, RunHeld, StaleData } from "../ledger/RunFacts.ts"
import { isOpenAtService, verdictOfTask } from "../ledger/RunState.ts"
import type { AttemptState, RunState, TaskState, TokenNote } from "../ledger/RunState.ts"
import { newestTasks, nightExitCode } from "../ledger/WholeNight.ts"
import { told } from "../messages/Catalogue.ts"
import type { RunChanges } from "./Changes.ts"
import { finishOf } from "./Finish.ts"
import type { Finish } from "./Finish.ts"
import { cutText } from "../service/BodyBounds.ts"
import { actings } from "../service/EndTable.ts"
import type { Acting, Outcome, WhoActs } from "../service/EndTable.ts"
import { actingOf, rowOf } from "../service/Ends.ts"
import type { RunId } from "../service/Ids.ts"
import { shortfallOf, surplusOf } from "../task/DrainProof.ts"
import { dayOf } from "../tokens/TokenLogin.ts"

// What a publication says about the tables, for people: gates that held it back, runs whose files are
// missing, answers that are not in the tables, columns whose values did not fit, records that were rejected.
// All of it comes from the fact of the newest publication.

const namedMax = 3

/** Tables of earlier runs that could not be published again completely. */
const gapWarnings = (without: ReadonlyArray<string>): ReadonlyArray<string> =>
  without.length === 0 ? [] : [told("tables-incomplete", { runs: listed(without, namedMax) })]

/** Bodies that are landed but not in the tables; the first is named. */
const leftOutWarnings = ({ started, published }: RunState): ReadonlyArray<string> => {
  const { left_out = [] } = published?.fact ?? {}
  const [first] = left_out
  if (first === undefined) return []
  const where = `landing/${started.run_id}/${first.where}`
  const answers = counted(left_out.length, "answer")
  return [told("answers-left-out", { answers, where, reason: first.reason })]
}

const sum = (counts: ReadonlyArray<{ readonly count: number }>): number =>
  counts.reduce((total, { count }) => total + count, 0)

/** One line per table, the columns with the most misfits first. */
const misfitWarnings = (
  id: "values-misfit" | "values-unfit",
  misfits: ReadonlyArray<MisfitCount>,
): ReadonlyArray<string> =>
  [...Map.groupBy(misfits, ({ table }) => table)].map(([table, own]) => {
    const columns = own
      .toSorted((a, b) => b.count - a.count)
      .map(({ column, count }) => `${table}.${column} (${count})`)
    return told(id, { values: counted(sum(own), "value"), columns: listed(columns, namedMax) })
  })

const rejectedWarnings = (rejected: ReadonlyArray<RejectedCount>): ReadonlyArray<string> => {
  const records = rejected.filter(({ table }) => table !== null)
  const strays = rejected.filter(({ table }) => table === null)
  const tables = records
    .toSorted((a, b) => b.count - a.count)
    .map(({ table, count }) => `${table ?? ""} (${count})`)
  return [
    ...(records.length === 0
      ? []
      : [
          told("records-rejected", {
            records: counted(sum(records), "record"),
            tables: listed(tables, namedMax),
          }),
        ]),
    ...(strays.length === 0 ? [] : [told("values-stray", { values: counted(sum(strays), "value") })]),
  ]
}

/** The values of `records-without-schema`: the same words in the summary of a run and in `doctor`. */
export const otherRecordsTold = ({ records, families, most }: OtherRecords) => {
  const names = most.slice(0, namedMax).map((one) => `${one.product} of ${one.sub_family} (${one.records})`)
  return {
    records: counted(records, "record"),
    families: counted(families, "family", "families"),
    names: `${names.join(", ")}${families > names.length ? ` and ${families - names.length} more` : ""}`,
  }
}

const otherWarnings = (other: OtherRecords | undefined): ReadonlyArray<string> =>
  other === undefined || other.records === 0 ? [] : [told("records-without-schema", otherRecordsTold(other))]

interface FromTables {
  /** The gates that held the tables of the run back, and where they are kept; absent if none did. */
  readonly held?: Pick<typeof RunHeld.Type, "database" | "gates">
  /** Data that is older than the job allows; absent if there is none. */
  readonly stale?: StaleData
}

const fromTables = ({ held, published }: RunState): FromTables => ({
  ...(held === undefined ? {} : { held: { database: held.fact.database, gates: held.fact.gates } }),
  ...(published?.fact.stale === undefined ? {} : { stale: published.fact.stale }),
})

const staleWarnings = (stale: StaleData | undefined): ReadonlyArray<string> => [
  ...(stale?.failed === undefined ? [] : [told("data-too-old", tellStale(stale.failed))]),
  ...(stale?.warned === undefined ? [] : [told("data-old", tellStale(stale.warned))]),
  ...(stale?.unknown === undefined ? [] : [told("freshness-unknown", { why: stale.unknown })]),
]

const tellStale = ({ days, count, examples }: NonNullable<StaleData["warned"]>) => ({
  features: counted(count, "feature"),
  age: counted(days, "day"),
  examples: `${examples.join(", ")}${count > examples.length ? ` and ${count - examples.length} more` : ""}`,
})

/** One line per gate, then where the version is. */
const gateWarnings = ({ held }: RunState): ReadonlyArray<string> =>
  held === undefined
    ? []
    : [
        ...held.fact.gates.map(({ gate, expected, found }) => told("gate-failed", { gate, expected, found })),
        told("version-held", { database: held.fact.database }),
      ]

const tableWarnings = (run: RunState): ReadonlyArray<string> => {
  const {
    without = [],
    misfits = [],
    rejected = [],
    other,
    unfit = [],
    gone = [],
    models = [],
    stale,
  } = run.published?.fact ?? {}
  return [
    ...gateWarnings(run),
    ...staleWarnings(stale),
    ...gapWarnings(without),
    ...leftOutWarnings(run),
    ...misfitWarnings("values-misfit", misfits),
    ...rejectedWarnings(rejected),
    ...otherWarnings(other),
    ...misfitWarnings("values-unfit", unfit),
    ...models.map(({ name, why }) => told("model-failed", { name, why })),
    ...(gone.length === 0 ? [] : [told("schemas-gone", { tables: listed(gone, namedMax) })]),
  ]
}

// What the summary says of stored tokens: those that expire soon, were dropped, or were refused by the
// service. Pure; no token is named.

/** Tokens that expire soon, were dropped, or were requested without success. */
const tokenWarnings = (notes: ReadonlyArray<TokenNote>): ReadonlyArray<string> => {
  const ending = notes.filter((note) => note._tag === "TokenExpiring")
  const groups = new Map<string, { readonly tag: string; readonly reason: string; readonly count: number }>()
  for (const note of notes) {
    if (note._tag !== "TokenDropped" && note._tag !== "TicketDropped") continue
    // A login that did not succeed has its own verdict.
    if (note.reason === "NO_AUTH_OK") continue
    const key = JSON.stringify([note._tag, note.reason])
    const group = groups.get(key)
    groups.set(key, { tag: note._tag, reason: note.reason, count: (group?.count ?? 0) + 1 })
  }
  const first = ending.toSorted((a, b) => a.expires_at - b.expires_at)[0]
  return [
    ...(first === undefined
      ? []
      : [
          told("tokens-expiring", {
            tokens: counted(ending.length, "stored token"),
            day: dayOf(first.expires_at),
          }),
        ]),
    ...[...groups.values()].map(({ tag, reason, count }) =>
      tag === "TokenDropped"
        ? told("token-dropped", { tokens: counted(count, "stored token"), reason })
        : told("ticket-dropped", { tickets: counted(count, "ticket"), reason }),
    ),
  ]
}

/** Starts with a token that the service refused; the parameters behind it were sent instead. */
const refusedTokens = (tasks: ReadonlyArray<TaskState>): ReadonlyArray<string> => {
  const refused = tasks.filter(({ attempts }) =>
    attempts.some(
      ({ token_id, answer }, index) =>
        token_id !== undefined && answer?.answer === "refused" && attempts[index + 1]?.token_id === undefined,
    ),
  )
  return refused.length === 0
    ? []
    : [told("token-start-refused", { starts: counted(refused.length, "start") })]
}

/** Tasks with one reason that did not succeed. */
export interface Trouble {
  readonly who_acts: WhoActs
  /** The same for people: also for what this program itself stopped or has not finished. */
  readonly acting: Acting
  readonly outcome: Outcome
  readonly reason: string
  readonly count: number
  /** The first few, as `<customer_id> <engine_reference>`. */
  readonly examples: ReadonlyArray<string>
  /** What the first task says beyond its reason, if anything. */
  readonly message: string | undefined
  /** What the reason means, and what to do next: one or two sentences each. */
  readonly means: string
  readonly advice: string
}

/** All runs of a night together: each task as the newest run that had it left it. */
export interface NightSummary {
  /** Oldest first. */
  readonly runs: ReadonlyArray<RunId>
  readonly tasks: number
  readonly outcomes: Readonly<Record<Outcome, number>>
  /** Undefined while one of the runs has not ended. */
  readonly exit_code: number | undefined
}

export interface Summary extends FromTables {
  readonly run_id: RunId
  readonly job: string
  readonly job_path: string
  readonly run_date: string
  readonly parent: string | undefined
  /** ISO 8601, in UTC. */
  readonly started_at: string
  readonly ended_at: string | undefined
  readonly elapsed_ms: number | undefined
  readonly exit_code: number | undefined
  /**
   * Tasks with new trouble, with the same as before, and mended, since the run before; null for a first run.
   */
  readonly changes: RunChanges | null
  readonly tasks: number
  readonly outcomes: Readonly<Record<Outcome, number>>
  readonly executions: number
  readonly records_counted: number
  readonly attachments: Readonly<Record<"downloaded" | "missing" | "refused" | "failed", number>>
  readonly troubles: ReadonlyArray<Trouble>
  readonly deletions: { readonly done: number; readonly pending: number; readonly kept: number }
  readonly orphans_suspected: ReadonlyArray<string>
  readonly published_version: number | undefined
  /** Values of the run that did not fit their columns: NULL there, and kept in `extra`. */
  readonly misfits: ReadonlyArray<MisfitCount>
  /** Records of the run that are in `rejected_records`; `table` is where they would have gone. */
  readonly rejected: ReadonlyArray<RejectedCount>
  /** Records of the run that are in `other_records`; null if it is not published, or it was not recorded. */
  readonly other_records: OtherRecords | null
  readonly warnings: ReadonlyArray<string>
  /** The one command that finishes what is left, if a command can. */
  readonly finish: Finish
  /** Absent if the run is the only one of its night. */
  readonly night?: NightSummary
}

const examplesMax = 3

/** Of a run; with the other runs of its night, of these too. `output`: the folder, if it has to be named. */
export const summarise = (
  run: RunState,
  night: ReadonlyArray<RunState> = [run],
  output?: string,
): Summary => {
  const tasks = [...run.tasks.values()]
  const attempts = tasks.flatMap((task) => task.attempts.map((attempt) => ({ task, attempt })))
  const orphans = attempts.filter(({ attempt }) => attempt.orphanSuspected)
  const attachments = countBy(
    tasks.flatMap((task) => task.attachments.map(({ status }) => status)),
    { downloaded: 0, missing: 0, refused: 0, failed: 0 },
  )
  return {
    run_id: run.started.run_id,
    job: run.started.job,
    job_path: run.started.job_path,
    run_date: run.started.run_date,
    parent: run.started.parent,
    started_at: new Date(run.started_at).toISOString(),
    ended_at: run.ended === undefined ? undefined : new Date(run.ended.at).toISOString(),
    elapsed_ms: run.ended === undefined ? undefined : Math.max(0, run.ended.at - run.started_at),
    exit_code: run.ended?.exit_code,
    changes: run.ended?.changes ?? null,
    tasks: tasks.length,
    outcomes: outcomesOf(tasks),
    executions: attempts.filter(({ attempt }) => attempt.execution_id !== undefined).length,
    records_counted: tasks.reduce((sum, task) => sum + countedBy(task), 0),
    attachments,
    troubles: troublesOf(tasks),
    deletions: deletionsOf(tasks),
    orphans_suspected: orphans.map(({ task }) => task.planned.task_id),
    published_version: run.published?.fact.version,
    misfits: run.published?.fact.misfits ?? [],
    rejected: run.published?.fact.rejected ?? [],
    other_records: run.published?.fact.other ?? null,
    ...fromTables(run),
    warnings: [
      ...missedWarnings(run.started.missed ?? []),
      ...warningsOf(tasks, attachments, orphans.length),
      ...tableWarnings(run),
    ],
    finish: finishOf(run, night, output),
    ...(night.length < 2 ? {} : { night: summariseNight(night) }),
  }
}

const summariseNight = (night: ReadonlyArray<RunState>): NightSummary => {
  const tasks = [...newestTasks(night).values()]
  return {
    runs: night.map(({ started }) => started.run_id),
    tasks: tasks.length,
    outcomes: outcomesOf(tasks),
    exit_code: nightExitCode(night),
  }
}

const outcomesOf = (tasks: ReadonlyArray<TaskState>): Summary["outcomes"] =>
  countBy(
    tasks.map((task) => verdictOfTask(task).outcome),
    { succeeded: 0, partial: 0, failed: 0, skipped: 0, unfinished: 0 },
  )

const countBy = <K extends string>(values: ReadonlyArray<K>, zeros: Readonly<Record<K, number>>) => {
  const counts: Record<K, number> = { ...zeros }
  for (const value of values) counts[value] += 1
  return counts
}

/** What the newest closed execution of a task counted (section 2.4). */
const countedBy = ({ attempts }: TaskState): number => {
  const closed = attempts.findLast((attempt) => attempt.closed !== undefined)?.closed
  return Object.values(closed?.fact.products_count ?? {}).reduce((sum, count) => sum + Math.max(0, count), 0)
}

/** The service's own text may be of any length; `explain` and the landed bodies show more of it. */
const reasonMax = 200
const messageMax = 1_000

const troublesOf = (tasks: ReadonlyArray<TaskState>): ReadonlyArray<Trouble> => {
  const groups = new Map<string, { trouble: Trouble; examples: Array<string>; count: number }>()
  for (const task of tasks) {
    const { outcome, who_acts, message, ...rest } = verdictOfTask(task)
    if (outcome === "succeeded") continue
    const reason = cutText(rest.reason, reasonMax)
    const key = JSON.stringify([who_acts, outcome, reason])
    const group = groups.get(key)
    if (group === undefined) {
      const { means, next } = rowOf(rest.reason)
      const trouble = {
        who_acts,
        acting: actingOf({ reason: rest.reason, who_acts }),
        outcome,
        reason,
        count: 0,
        examples: [],
        message: message === undefined ? undefined : cutText(message, messageMax),
        means,
        advice: next,
      }
      groups.set(key, { trouble, examples: [subjectOf(task)], count: 1 })
      continue
    }
    group.count += 1
    if (group.examples.length < examplesMax) group.examples.push(subjectOf(task))
  }
  return [...groups.values()]
    .map(({ trouble, examples, count }) => ({ ...trouble, examples, count }))
    .toSorted(
      (a, b) =>
        actings.indexOf(a.acting) - actings.indexOf(b.acting) ||
        b.count - a.count ||
        (a.reason < b.reason ? -1 : 1),
    )
}

const subjectOf = ({ planned }: TaskState): string =>
  planned.session_id === undefined
    ? `${planned.customer_id ?? "?"} ${planned.engine_reference ?? "?"}`
    : `session ${planned.session_id}`

const deletionsOf = (tasks: ReadonlyArray<TaskState>): Summary["deletions"] => {
  let [done, pending, kept] = [0, 0, 0]
  for (const { attempts, settled } of tasks)
    for (const { closed, deletion, execution_id, drained } of attempts) {
      if (execution_id === undefined || closed === undefined) continue
      if (deletion !== undefined && deletion.outcome !== "pending") done += 1
      else if (closed.fact.landed === undefined) continue
      else if (settled !== undefined && !drained) kept += 1
      else pending += 1
    }
  return { done, pending, kept }
}

/** Differences between counts and records, for executions that are kept and for those that are not. */
const recordWarnings = (attempts: ReadonlyArray<AttemptState>): ReadonlyArray<string> => {
  const kept = attempts.filter((one) => one.kept !== undefined && !one.drained)
  const missing = kept.reduce((sum, one) => sum + shortfallOf(one.kept?.families ?? []), 0)
  const whole = attempts.filter(({ proof }) => proof?.basis === "counted" && surplusOf(proof.families) > 0)
  const surplus = whole.reduce((sum, { proof }) => sum + surplusOf(proof?.families ?? []), 0)
  const short = missing > 0 ? `; ${counted(missing, "counted record")} not returned` : ""
  return [
    ...(kept.length > 0
      ? [told("executions-kept", { executions: counted(kept.length, "execution"), missing: short })]
      : []),
    ...(surplus > 0
      ? [
          told("records-surplus", {
            executions: counted(whole.length, "execution"),
            records: counted(surplus, "record"),
          }),
        ]
      : []),
  ]
}

/** Nights before this one that had no run. */
const missedWarnings = (dates: ReadonlyArray<string>): ReadonlyArray<string> =>
  dates.length === 0
    ? []
    : [told("nights-missed", { nights: counted(dates.length, "night"), dates: listed(dates, examplesMax) })]

const warningsOf = (
  tasks: ReadonlyArray<TaskState>,
  attachments: Summary["attachments"],
  orphans: number,
): ReadonlyArray<string> => {
  const warnings: Array<string> = []
  const open = tasks.flatMap((task) => task.attempts).filter(isOpenAtService)
  if (open.length > 0)
    warnings.push(told("executions-in-flight", { executions: counted(open.length, "execution") }))
  if (orphans > 0) warnings.push(told("start-repeated", { starts: counted(orphans, "start") }))
  warnings.push(...tokenWarnings(tasks.flatMap(({ tokens }) => tokens ?? [])), ...refusedTokens(tasks))
  warnings.push(...recordWarnings(tasks.flatMap(({ attempts }) => attempts)))
  const { missing, refused, failed } = attachments
  const files = (count: number) => ({ attachments: counted(count, "attachment") })
  if (missing > 0) warnings.push(told("attachments-missing", files(missing)))
  if (refused > 0) warnings.push(told("attachments-refused", files(refused)))
  if (failed > 0) warnings.push(told("attachments-failed", files(failed)))
  return warnings
}
