/**
 * What happened, read from the ledger without disturbing a run in progress: all runs, everything about one
 * id, a run's report.
 */
import { statSync } from "node:fs"
import { Effect, Option } from "effect"
import { counted, isoTime, suggestion } from "../../base/Text.ts"
import type { Recorded } from "../../ledger/Fact.ts"
import type { RunHeader } from "../../ledger/FoldRun.ts"
import type { TaskKeys } from "../../ledger/FactKeys.ts"
import { factJson } from "../../ledger/FactRows.ts"
import { entryLines, isMessageId, messageOf } from "../../messages/Catalogue.ts"
import { endJson, renderEnd, type Style } from "../../report/RenderSummary.ts"
import { table, wrap } from "../../report/TextTable.ts"
import { renderRecorded, tasksNamedIn } from "../../report/Timeline.ts"
import { knownEnd, rowOfEnd } from "../../service/Ends.ts"
import { TaskId, type RunId } from "../../service/Ids.ts"
import { command } from "../CommandRow.ts"
import { argument, optionalArgument, runArgument, switchFlag } from "../Output.ts"
import { refuse } from "../Failures.ts"
import * as Folder from "../OutputFolder.ts"
import { isCutOff, isRunning, workIn } from "../NightDesk.ts"
import { writeReport } from "../RunReport.ts"

const rowsOf = Effect.fnUntraced(function* (output: string, headers: ReadonlyArray<RunHeader>) {
  const work = yield* workIn(output)
  return headers.map(({ at, fact, ended }) => ({
    run_id: fact.run_id,
    job: fact.job,
    run_date: fact.run_date,
    parent: fact.parent ?? null,
    part: fact.part ?? null,
    started_at: isoTime(fact.began_at ?? at),
    ended_at: ended === undefined ? null : isoTime(ended.at),
    exit_code: ended?.exit_code ?? null,
    leftovers: ended?.leftovers ?? true,
    running: isRunning(work, fact.run_id),
    interrupted: isCutOff(work, { run_id: fact.run_id, ended }),
  }))
})

export const runs = command("runs", {
  examples: {
    "nightjar runs": "All runs",
    "nightjar runs nightly-spain.2026-11-20": "One run",
  },
  flags: { run: optionalArgument("RUN", "One run (default: all of them)") },
  run: function* ({ run }, output) {
    const known = Folder.withLedger(Effect.flatMap(Folder.openedLedger, (ledger) => ledger.runs))
    const all = (yield* Folder.hasLedger) ? yield* known : []
    const headers = all.filter(({ fact }) => Option.isNone(run) || fact.run_id === run.value)
    if (Option.isSome(run) && headers.length === 0) {
      const ids = all.map(({ fact }) => fact.run_id)
      return yield* refuse("run-unknown", { suggestion: suggestion(run.value, ids) })
    }
    return yield* rowsOf(output, headers)
  },
  text: (rows, out) => {
    if (rows.length === 0) return "No run yet."
    const cells = rows.map((row) => [
      row.run_id,
      row.started_at,
      row.running ? "running" : (row.ended_at ?? (row.interrupted ? "interrupted" : "not ended")),
      row.exit_code === null ? "" : String(row.exit_code),
      row.parent ?? (row.part === null ? "" : "a part of the job"),
    ])
    return table(["run", "started", "ended", "exit code", "rerun of"], cells, { ...out, right: new Set([3]) })
  },
})

interface About {
  readonly run_id: RunId | undefined
  readonly task_id: string
  readonly facts: ReadonlyArray<Recorded>
}

/** Of a customer that is in every night; `--all` shows the others too. */
const runsShownMax = 10

/** The tasks that an id names, newest first: by index, else in every run, for ids that are in no index. */
const tasksAbout = Effect.fnUntraced(function* (id: string) {
  const ledger = yield* Folder.openedLedger
  const runs = (yield* ledger.runs).map(({ fact }) => fact.run_id).toReversed()
  const run_id = runs.find((one) => id.startsWith(`${one}/`))
  const indexed =
    run_id === undefined ? yield* ledger.tasksNaming(id) : [{ run_id, task_id: TaskId.make(id) }]
  if (indexed.length > 0) return indexed.toSorted((a, b) => runs.indexOf(a.run_id) - runs.indexOf(b.run_id))
  const scanned: Array<TaskKeys> = []
  for (const run_id of runs)
    for (const task_id of tasksNamedIn(yield* ledger.facts(run_id), id))
      scanned.push({ run_id, task_id: TaskId.make(task_id) })
  return scanned
})

const gather = Effect.fnUntraced(function* (id: string, all: boolean) {
  const ledger = yield* Folder.openedLedger
  const tasks = yield* tasksAbout(id)
  const runs = [...new Set(tasks.map(({ run_id }) => run_id))]
  const newest = new Set(runs.slice(0, all ? Infinity : runsShownMax))
  const found: Array<About> = []
  for (const task of tasks.filter(({ run_id }) => newest.has(run_id)).toReversed())
    found.push({ ...task, facts: yield* ledger.factsOfTask(task) })
  const byHand = (yield* ledger.byHand).filter(({ fact }) => "customer_id" in fact && fact.customer_id === id)
  found.push({ run_id: undefined, task_id: `by hand: ${id}`, facts: byHand })
  const removal = (yield* ledger.receipts).filter(({ fact }) => "receipt" in fact && fact.receipt === id)
  found.push({ run_id: undefined, task_id: `receipt: ${id}`, facts: removal })
  return { found: found.filter(({ facts }) => facts.length > 0), older: runs.length - newest.size }
})

/** As wide as a time and what stands between it and its event. */
const timeWidth = 21
const narrow = 60

const aboutLines = ({ task_id, facts }: About, { width }: Style): ReadonlyArray<string> => {
  const hanging = (text: string) => wrap(text, width, "", "  ")
  const lines = facts.map((recorded) => {
    const line = renderRecorded(recorded)
    if (width < narrow) return hanging(line)
    const text = wrap(line.slice(timeWidth), width - timeWidth)
    return line.slice(0, timeWidth) + text.replaceAll("\n", `\n${" ".repeat(timeWidth)}`)
  })
  const settled = facts.findLast(({ fact }) => fact._tag === "TaskSettled")?.fact
  const isOff = settled?._tag === "TaskSettled" && settled.outcome !== "succeeded"
  const { means, next } = isOff ? rowOfEnd(settled) : { means: "", next: "" }
  const why = isOff ? [hanging(`${settled.reason}: ${means}`), hanging(`Next: ${next}`)] : []
  return [wrap(task_id, width), ...lines, ...why, ""]
}

const jsonOf = ({ facts, ...task }: About) => ({
  ...task,
  facts: facts.map(({ at, fact }) => factJson(fact, at)),
})

export const explain = command("explain", {
  examples: {
    "nightjar explain c-024": "One customer over all runs",
    "nightjar explain BLOCKED_USER": "What a reason means",
    "nightjar explain ledger-damaged": "The id in brackets at the end of a message",
  },
  flags: {
    id: argument("ID", "A task, customer, execution, session, message, receipt or reason"),
    all: switchFlag("all", "All runs, not only the ten newest that know the id"),
  },
  run: function* ({ id, all }) {
    if (isMessageId(id)) return { _tag: "Message", id } as const
    const end = knownEnd(id)
    // A reason can be explained without any run.
    const isLedgerMeant = end === undefined || (yield* Folder.hasLedger)
    const about = isLedgerMeant ? yield* Folder.withLedger(gather(id, all)) : { found: [], older: 0 }
    if (about.found.length > 0) return { _tag: "Tasks", ...about } as const
    return end === undefined ? yield* refuse("id-unknown") : ({ _tag: "Reason", id, end } as const)
  },
  json: (told) => {
    if (told._tag === "Message") return { id: told.id, ...messageOf(told.id) }
    return told._tag === "Reason" ? endJson(told.id, told.end) : told.found.map(jsonOf)
  },
  text: (told, out) => {
    if (told._tag === "Message") return entryLines(told.id).map((line) => wrap(line, out.width, "", "  "))
    if (told._tag === "Reason") return renderEnd(told.id, told.end, out.width)
    const older = `${counted(told.older, "older run")} not shown: \`--all\` shows all.`
    return [
      ...told.found.flatMap((about) => aboutLines(about, out)),
      ...(told.older > 0 ? [wrap(older, out.width)] : []),
    ]
  },
})

export const report = command("report", {
  flags: { run: runArgument },
  run: ({ run }, output) =>
    Folder.withLedger(
      Effect.gen(function* () {
        const { run_id } = (yield* Folder.findRun(run)).started
        const folder = Folder.runFolder(output, run_id)
        // What the run's job shared is shared again: its folder shows it.
        const isThere = statSync(folder, { throwIfNoEntry: false }) !== undefined
        return yield* writeReport({ output, run_id, share: isThere ? Folder.shareOf(folder) : "none" })
      }),
    ),
  text: ({ report: path, worklist }) => [path, worklist],
})
