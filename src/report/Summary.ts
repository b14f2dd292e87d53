/**
 * The result of a run, for people and programs: a pure fold of its state. Counts, then what did not succeed
 * by who must act, then what is left at the service. Contains ids and reasons, never a value of a parameter.
 */
import { Struct } from "effect"
import { given } from "../base/Schemas.ts"
import { andMore, counted, isoDay, isoTime, listed, sumOf } from "../base/Text.ts"
import type { MisfitCount, OtherRecords, RejectedCount, StaleData } from "../ledger/RunFacts.ts"
import { isOpenAtService, keptOf, remainsAny, verdictOfTask } from "../ledger/RunState.ts"
import type { RunBrief, TaskBrief } from "../ledger/RunState.ts"
import { newestTasks, nightExitCode } from "../ledger/WholeNight.ts"
import { messageOf, told, type MessageId } from "../messages/Catalogue.ts"
import { alikeIn, messageMax, reasonMax } from "./Changes.ts"
import { finishOf, nothingLeft } from "./Finish.ts"
import { cutText } from "../service/BodyBounds.ts"
import { actings } from "../service/EndTable.ts"
import { actingOf, rowOfEnd } from "../service/Ends.ts"
import { shortfallOf, surplusOf } from "../task/DrainProof.ts"

// What a publication says about the tables, for people: gates that held it back, runs whose files are
// missing, answers that are not in the tables, columns whose values did not fit, records that were rejected.
// All of it comes from the fact of the newest publication.

/** Of many names, those that are shown. */
const namedMax = 3

/** The warnings that there are. */
const present = (...warnings: ReadonlyArray<string | undefined | ReadonlyArray<string>>) =>
  warnings.flat().flatMap((text) => text || [])

/** A warning about these, if there are any. */
const ifAny = <A>(found: ReadonlyArray<A>, text: (found: ReadonlyArray<A>) => string): string | undefined =>
  found.length === 0 ? undefined : text(found)

/** A warning that counts one kind of thing. */
const ifSome = (count: number | undefined, noun: string, text: (counts: string) => string) =>
  (count ?? 0) > 0 ? text(counted(count ?? 0, noun)) : undefined

const countOf = (counts: ReadonlyArray<{ readonly count: number }>): number =>
  sumOf(counts.map(({ count }) => count))

const mostFirst = <A extends { readonly count: number }>(counts: ReadonlyArray<A>): ReadonlyArray<A> =>
  counts.toSorted((one, other) => other.count - one.count)

/** One line per table, the columns with the most misfits first. */
const misfitWarnings = (
  id: "values-misfit" | "values-unfit",
  misfits: ReadonlyArray<MisfitCount>,
): ReadonlyArray<string> =>
  [...Map.groupBy(misfits, ({ table }) => table)].map(([table, own]) => {
    const columns = mostFirst(own).map(({ column, count }) => `${table}.${column} (${count})`)
    return told(id, { values: counted(countOf(own), "value"), columns: listed(columns, namedMax) })
  })

const rejectedWarnings = (rejected: ReadonlyArray<RejectedCount>): ReadonlyArray<string> => {
  const { true: strays = [], false: records = [] } = Object.groupBy(rejected, ({ table }) =>
    String(table === null),
  )
  return present(
    ifAny(records, () => {
      const tables = mostFirst(records).map(({ table, count }) => `${table ?? ""} (${count})`)
      const values = { records: counted(countOf(records), "record"), tables: listed(tables, namedMax) }
      return told("records-rejected", values)
    }),
    ifAny(strays, () => told("values-stray", { values: counted(countOf(strays), "value") })),
  )
}

/** The values of `records-without-schema`: the same words in the summary of a run and in `doctor`. */
export const otherRecordsTold = ({ records, families, most }: OtherRecords) => ({
  records: counted(records, "record"),
  families: counted(families, "family", "families"),
  names: andMore(
    most.slice(0, namedMax).map((one) => `${one.product} of ${one.sub_family} (${one.records})`),
    families,
  ),
})

const tellStale = ({ days, count, examples }: NonNullable<StaleData["warned"]>) => ({
  features: counted(count, "feature"),
  age: counted(days, "day"),
  examples: andMore(examples, count),
})

const tableWarnings = ({ started, held, published }: RunBrief): ReadonlyArray<string> => {
  const { without = [], misfits = [], rejected = [], other, unfit = [], gone = [] } = published?.fact ?? {}
  const { lists = [], models = [], stale, left_out = [], restored = [], taken = [] } = published?.fact ?? {}
  const { shared_sessions, garbled, features_left } = published?.fact ?? {}
  return present(
    held?.fact.gates.map(({ gate, expected, found }) => told("gate-failed", { gate, expected, found })),
    held && told("version-held", { database: held.fact.database }),
    stale?.failed && told("data-too-old", tellStale(stale.failed)),
    stale?.warned && told("data-old", tellStale(stale.warned)),
    stale?.unknown && told("freshness-unknown", { why: stale.unknown }),
    // Tables of earlier runs that could not be published again completely.
    ifAny(without, () => told("tables-incomplete", { runs: listed(without, namedMax) })),
    ifAny(restored, () => told("tables-restored", { runs: listed(restored, namedMax) })),
    left_out.slice(0, 1).map(({ where, reason }) => {
      const answers = counted(left_out.length, "answer")
      return told("answers-left-out", { answers, where: `landing/${started.run_id}/${where}`, reason })
    }),
    ifSome(garbled, "answer", (answers) => told("answers-garbled", { answers })),
    misfitWarnings("values-misfit", misfits),
    rejectedWarnings(rejected),
    other && other.records > 0 ? told("records-without-schema", otherRecordsTold(other)) : undefined,
    features_left &&
      told("features-left", {
        features: counted(features_left.count, "feature"),
        names: andMore(
          features_left.most
            .map(({ feature, reason, count }) => `${feature} ${reason} (${count})`)
            .slice(0, namedMax),
          features_left.most.length,
        ),
      }),
    misfitWarnings("values-unfit", unfit),
    ifSome(shared_sessions, "session", (sessions) => told("sessions-shared", { sessions })),
    models.map(({ name, why }) => told("model-failed", { name, why })),
    ifAny(gone, () => told("schemas-gone", { tables: listed(gone, namedMax) })),
    ifAny(lists, () => told("lists-gone", { tables: listed(lists, namedMax) })),
    taken.map((name) => told("parquet-taken", { name })),
  )
}

// What the summary says of stored tokens: those that expire soon, were dropped, or were refused by the
// service. Pure; no token is named.

const tokenWarnings = (tasks: ReadonlyArray<TaskBrief>): ReadonlyArray<string> => {
  const notes = tasks.flatMap(({ tokens }) => tokens ?? [])
  const ending = notes
    .filter((note) => note._tag === "TokenExpiring")
    .toSorted((a, b) => a.expires_at - b.expires_at)
  const dropped = notes.filter((note) => note._tag === "TokenDropped" || note._tag === "TicketDropped")
  // A login that did not succeed has its own verdict.
  const groups = Map.groupBy(
    dropped.filter(({ reason }) => reason !== "NO_AUTH_OK"),
    ({ _tag, reason }) => JSON.stringify([_tag, reason]),
  )
  // The parameters behind such a token were sent instead.
  const refused = tasks.filter(({ attempts }) =>
    attempts.some(
      ({ token_id, answer }, index) =>
        token_id !== undefined && answer?.answer === "refused" && attempts[index + 1]?.token_id === undefined,
    ),
  )
  const narrow = tasks.filter(({ attempts }) => attempts.at(-1)?.outside !== undefined)
  const missing = [...new Set(narrow.flatMap(({ attempts }) => attempts.at(-1)?.outside ?? []))]
  return present(
    ifAny(narrow, () => {
      const features = listed(missing.toSorted(), namedMax)
      return told("token-outside", { tasks: counted(narrow.length, "task"), features })
    }),
    ending.slice(0, 1).map((first) => {
      const tokens = counted(ending.length, "stored token")
      return told("tokens-expiring", { tokens, day: isoDay(first.expires_at) })
    }),
    [...groups.values()].flatMap(([first, ...more]) => {
      if (first === undefined) return []
      const { _tag, reason } = first
      const count = 1 + more.length
      if (reason === "EXPIRED") return [told("tokens-expired", { tokens: counted(count, "stored token") })]
      return _tag === "TokenDropped"
        ? [told("token-dropped", { tokens: counted(count, "stored token"), reason })]
        : [told("ticket-dropped", { tickets: counted(count, "ticket"), reason })]
    }),
    ifSome(refused.length, "start", (starts) => told("token-start-refused", { starts })),
  )
}

/** Of a run; with the other runs of its night, of these too. `output`: the folder, if it has to be named. */
export const summarise = (run: RunBrief, night: ReadonlyArray<RunBrief> = [run], output?: string) => {
  const tasks = [...run.tasks.values()]
  const attempts = tasks.flatMap((task) => task.attempts.map((attempt) => ({ task, attempt })))
  const orphans = attempts.filter(({ attempt }) => attempt.orphanSuspected)
  const attachments = countBy(
    tasks.flatMap((task) => task.attachments.map(({ status }) => status)),
    { downloaded: 0, missing: 0, refused: 0, not_delivered: 0, failed: 0 },
  )
  const { started, started_at, ended, held, published } = run
  return {
    /** `part`: with which run this part of the job began; none if the run is of a night. */
    ...Struct.pick(started, ["run_id", "job", "job_path", "run_date", "parent", "part"]),
    started_at: isoTime(started_at),
    ended_at: ended === undefined ? undefined : isoTime(ended.at),
    elapsed_ms: ended === undefined ? undefined : Math.max(0, ended.at - started_at),
    exit_code: ended?.exit_code,
    /** Null for a first run. */
    changes: ended?.changes ?? null,
    tasks: tasks.length,
    outcomes: outcomesOf(tasks),
    executions: attempts.filter(({ attempt }) => attempt.execution_id !== undefined).length,
    records_counted: sumOf(tasks.map(countedBy)),
    attachments,
    troubles: troublesOf(tasks),
    deletions: deletionsOf(tasks, ended?.after_export === "keep"),
    orphans_suspected: orphans.map(({ task }) => task.planned.task_id),
    published_version: published?.fact.version,
    /** Values of the run that did not fit their columns: NULL there, and kept in `extra`. */
    misfits: published?.fact.misfits ?? [],
    /** Records of the run that are in `rejected_records`; `table` is where they would have gone. */
    rejected: published?.fact.rejected ?? [],
    /** Records of the run that are in `other_records`; null if it is not published, or nobody recorded it. */
    other_records: published?.fact.other ?? null,
    /** The gates that held the tables back, and data that is older than the job allows, if any. */
    ...given({ held: held && Struct.pick(held.fact, ["database", "gates"]), stale: published?.fact.stale }),
    warnings: [...warningsOf(run, tasks, attachments, orphans.length), ...tableWarnings(run)],
    /** The one command that finishes what is left, if a command can. */
    finish: finishOf(run, night, output),
    /** Absent if the run is the only one of its night. */
    ...given({ night: night.length < 2 ? undefined : summariseNight(night) }),
  }
}
export type Summary = ReturnType<typeof summarise>

/** With what a run could not publish of older ones: then something is left, whatever it did itself. */
export const withUnpublished = (
  summary: Summary,
  unpublished: ReadonlyArray<{ readonly run_id: string; readonly why: string }>,
): Summary => {
  if (unpublished.length === 0) return summary
  const { finish, warnings } = summary
  const why = finish.why === nothingLeft ? messageOf("run-unpublished").next : finish.why
  const left = unpublished.slice(0, namedMax).map((one) => told("run-unpublished", one))
  return { ...summary, warnings: [...left, ...warnings], finish: { ...finish, why } }
}

/** All runs of a night together, oldest first: each task as the newest run that had it left it. */
const summariseNight = (night: ReadonlyArray<RunBrief>) => {
  const tasks = [...newestTasks(night).values()]
  return {
    runs: night.map(({ started }) => started.run_id),
    tasks: tasks.length,
    outcomes: outcomesOf(tasks),
    /** Undefined while one of the runs has not ended. */
    exit_code: nightExitCode(night),
  }
}
export type NightSummary = ReturnType<typeof summariseNight>

const outcomesOf = (tasks: ReadonlyArray<TaskBrief>) =>
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
const countedBy = ({ attempts }: TaskBrief): number => {
  const closed = attempts.findLast((attempt) => attempt.closed !== undefined)?.closed
  return sumOf(Object.values(closed?.fact.products_count ?? {}).map((count) => Math.max(0, count)))
}

/** By reason, what did not succeed. */
const troublesOf = (tasks: ReadonlyArray<TaskBrief>) => {
  const failed = tasks.flatMap(({ planned, settled }) => {
    const { outcome, reason, who_acts, message } = verdictOfTask({ settled })
    if (outcome === "succeeded") return []
    const told = {
      who_acts,
      acting: actingOf({ outcome, reason, who_acts }),
      outcome,
      reason: cutText(reason, reasonMax),
    }
    return [
      { ...planned, ...told, message: message === undefined ? undefined : cutText(message, messageMax) },
    ]
  })
  // `acting` says for people who acts, also for what this program itself stopped or has not finished.
  const alike = ["who_acts", "acting", "outcome", "reason"] as const
  const troubles = alikeIn(failed, alike, namedMax).map(({ first, rows, group }) => {
    const { means, next: advice } = rowOfEnd(group)
    /** What all of the tasks say beyond their reason, if anything. */
    const message = rows.every((row) => row.message === first.message) ? first.message : undefined
    /** `means`, `advice`: what the reason means, and what to do next: one or two sentences each. */
    return { ...group, message, means, advice }
  })
  return troubles.toSorted(
    (a, b) =>
      actings.indexOf(a.acting) - actings.indexOf(b.acting) ||
      b.count - a.count ||
      (a.reason < b.reason ? -1 : 1),
  )
}
export type Trouble = ReturnType<typeof troublesOf>[number]

const deletionsOf = (tasks: ReadonlyArray<TaskBrief>, isKeeping: boolean) => {
  let [done, pending, kept_by_setting] = [0, 0, 0]
  for (const { attempts } of tasks)
    for (const attempt of attempts) {
      if (attempt.deletion?.deleted_at !== undefined) done += 1
      else if (isKeeping && remainsAny(attempt, "due", "asked")) kept_by_setting += 1
      else if (remainsAny(attempt, "unread", "kept", "due", "asked")) pending += 1
    }
  const unproven = sumOf(tasks.map((task) => keptOf(task).length))
  return { done, pending: pending - unproven, kept: unproven + kept_by_setting, kept_by_setting }
}

/** What executions are kept for, and differences between counts and records of those that are not. */
const recordWarnings = (tasks: ReadonlyArray<TaskBrief>): ReadonlyArray<string> => {
  const kept = tasks.flatMap(keptOf)
  const missing = sumOf(kept.map((one) => shortfallOf(one.kept?.families ?? [])))
  const short = missing > 0 ? `; ${counted(missing, "counted record")} not returned` : ""
  const attempts = tasks.flatMap((task) => task.attempts)
  const whole = attempts.filter(({ proof }) => proof?.basis === "counted" && surplusOf(proof.families) > 0)
  const surplus = sumOf(whole.map(({ proof }) => surplusOf(proof?.families ?? [])))
  return present(
    ifAny(kept, () => {
      const documents = kept.filter((one) => one.kept?.reason === "DOCUMENTS_SHORT").length
      const what =
        documents === 0 ? "records" : documents < kept.length ? "records or documents" : "documents"
      const executions = counted(kept.length, "execution")
      return told("executions-kept", { executions, what, missing: short })
    }),
    ifSome(whole.length, "execution", (executions) =>
      told("records-surplus", { executions, records: counted(surplus, "record") }),
    ),
  )
}

const warningsOf = (
  { started: { missed = [], ahead }, ended }: RunBrief,
  tasks: ReadonlyArray<TaskBrief>,
  documents: Readonly<Record<"missing" | "refused" | "not_delivered" | "failed", number>>,
  orphans: number,
): ReadonlyArray<string> => {
  const { kept_before: before, stuck_before: stuck, unread, elsewhere = [] } = ended ?? {}
  const attempts = tasks.flatMap((task) => task.attempts)
  const open = attempts.filter(isOpenAtService).length
  const { missing, refused, not_delivered, failed } = documents
  const files = (id: Extract<MessageId, `attachments-${string}`>, count: number) =>
    ifSome(count, "attachment", (attachments) => told(id, { attachments }))
  return present(
    // Nights before this one that had no run.
    ifSome(missed.length, "night", (nights) =>
      told("nights-missed", { nights, dates: listed(missed, namedMax) }),
    ),
    ahead && told("run-ahead", { run: ahead }),
    ifSome(open, "execution", (executions) => told("executions-in-flight", { executions })),
    ifSome(orphans, "start", (starts) => told("start-repeated", { starts })),
    tokenWarnings(tasks),
    recordWarnings(tasks),
    // Executions that earlier nights keep: they stay, also where nothing more can come.
    before &&
      told("executions-kept-before", { ...before, executions: counted(before.executions, "execution") }),
    ifSome(unread, "execution", (executions) => told("executions-unread", { executions })),
    [...Map.groupBy(elsewhere, (one) => one.service)].map(([service, left]) => {
      const executions = counted(sumOf(left.map((one) => one.executions)), "execution")
      const run_ids = left.map((one) => one.run_id)
      return told("executions-elsewhere", { executions, runs: listed(run_ids, namedMax), service })
    }),
    stuck && told("runs-stuck", { ...stuck, runs: counted(stuck.runs, "run") }),
    files("attachments-missing", missing),
    files("attachments-refused", refused),
    files("attachments-not-delivered", not_delivered),
    files("attachments-failed", failed),
  )
}
