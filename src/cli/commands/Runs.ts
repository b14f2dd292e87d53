/**
 * `nightjar runs [RUN]`: all runs of the output folder, with their times and exit codes, or the same as
 * OpenLineage events. Read-only: it does not disturb a run in progress.
 */
import { resolve } from "node:path"
import { Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { suggestion } from "../../base/Text.ts"
import type { RunHeader } from "../../ledger/FoldRun.ts"
import { table } from "../../report/TextTable.ts"
import { jsonFlag, outputFolder } from "../CommonFlags.ts"
import { refuse, toolVersion } from "../Failures.ts"
import { familiesOf, hasLedger, openedLedger, policyOf, withLedger } from "../LookAtFolder.ts"
import { Output, say, sayJson } from "../Output.ts"
import { isCutOff, isRunning, workIn } from "../NightDesk.ts"

/** What the published tables have of each run, by its id; none before anything is published. */
const publishedRuns = Effect.fnUntraced(function* (output: string) {
  const { layoutOf, readManifest } = yield* Effect.promise(() => import("../../tables/Manifest.ts"))
  const { newestDerived } = yield* Effect.promise(() => import("../../tables/KeptVersions.ts"))
  return yield* Effect.sync(() => {
    const layout = layoutOf(output)
    const current = readManifest(layout.manifest)
    return current === undefined ? {} : newestDerived({ layout }, current).runs
  })
})

/** The events of the chosen runs, oldest first; `all` says which of them were followed by another. */
const eventsOf = Effect.fnUntraced(function* (
  all: ReadonlyArray<RunHeader>,
  chosen: ReadonlyArray<RunHeader>,
) {
  const output = resolve(yield* outputFolder)
  const { lineageEvents } = yield* Effect.promise(() => import("../../report/OpenLineage.ts"))
  const { publishedTables } = yield* Effect.promise(() => import("../../tables/DataDictionary.ts"))
  const tables = publishedTables(yield* familiesOf(output), yield* policyOf(output))
  const source = { output, toolVersion, tables }
  const files = yield* publishedRuns(output)
  const newest = new Map(all.map(({ fact }) => [fact.job, fact.run_id]))
  const states = Effect.gen(function* () {
    const ledger = yield* openedLedger
    return yield* Effect.forEach(chosen, ({ fact, newest_at }) =>
      Effect.map(ledger.state(fact.run_id), (state) => {
        if (state === undefined) return []
        const isSuperseded = newest.get(fact.job) !== fact.run_id
        return lineageEvents(source, {
          state,
          files: files[fact.run_id]?.files ?? [],
          isSuperseded,
          newest_at,
        })
      }),
    )
  })
  return chosen.length === 0 ? [] : (yield* withLedger(states)).flat()
})

const rowsOf = Effect.fnUntraced(function* (headers: ReadonlyArray<RunHeader>) {
  const work = yield* workIn(yield* outputFolder)
  return headers.map(({ at, fact, ended }) => ({
    run_id: fact.run_id,
    job: fact.job,
    run_date: fact.run_date,
    parent: fact.parent ?? null,
    started_at: new Date(at).toISOString(),
    ended_at: ended === undefined ? null : new Date(ended.at).toISOString(),
    exit_code: ended?.exit_code ?? null,
    leftovers: ended?.leftovers ?? true,
    running: isRunning(work, fact.run_id),
    interrupted: isCutOff(work, { run_id: fact.run_id, ended }),
  }))
})

export const runs = Command.make(
  "runs",
  {
    run: Argument.String("RUN").pipe(
      Argument.withDescription("One run (default: all of them)"),
      Argument.optional,
    ),
    format: Flag.Literals("format", ["text", "openlineage"]).pipe(
      Flag.withDescription("Events, as JSON lines"),
      Flag.withDefault("text" as const),
    ),
    json: jsonFlag,
  },
  Effect.fn("Runs.handle")(function* ({ run, format, json }) {
    const all = (yield* hasLedger)
      ? yield* withLedger(Effect.flatMap(openedLedger, (ledger) => ledger.runs))
      : []
    const headers = all.filter(({ fact }) => Option.isNone(run) || fact.run_id === run.value)
    if (Option.isSome(run) && headers.length === 0) {
      const ids = all.map(({ fact }) => fact.run_id)
      return yield* refuse("run-unknown", { suggestion: suggestion(run.value, ids) })
    }
    if (format === "openlineage") {
      const events = yield* eventsOf(all, headers)
      if (json) return yield* sayJson(events)
      for (const event of events) yield* say(JSON.stringify(event))
      return
    }
    const rows = yield* rowsOf(headers)
    if (json) return yield* sayJson(rows)
    const { out } = yield* Output
    if (rows.length === 0) return yield* say("No run yet.")
    const cells = rows.map((row) => [
      row.run_id,
      row.started_at,
      row.running ? "running" : (row.ended_at ?? (row.interrupted ? "interrupted" : "not ended")),
      row.exit_code === null ? "" : String(row.exit_code),
      row.parent ?? "",
    ])
    const header = ["run", "started", "ended", "exit code", "rerun of"]
    yield* say(table(header, cells, { width: out.width, right: new Set([3]) }))
  }),
).pipe(
  Command.withDescription(
    "Lists all runs of the output folder, oldest first\n\n" +
      "`--format openlineage` is for a lineage service (Marquez, DataHub, OpenMetadata\n" +
      "and others): when each run began and how it ended, the engines that it read, and\n" +
      "the tables that it wrote with their columns and numbers of rows. There is no\n" +
      "customer in it. Nothing is sent: post the lines yourself. A run has the same id\n" +
      "each time, so its events may be posted again.",
  ),
  Command.withShortDescription("Lists all runs of the output folder, oldest first"),
  Command.withExamples([
    { command: "nightjar runs", description: "All runs" },
    {
      command: "nightjar runs nightly-spain.2026-11-20 --format openlineage",
      description: "The events of one run",
    },
  ]),
)
