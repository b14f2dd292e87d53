/**
 * `nightjar runs`: all runs of the output folder, with their times and exit codes. Read-only: it does not
 * disturb a run in progress.
 */
import { Effect, Option } from "effect"
import { Command } from "effect/cli"
import { table } from "../../report/TextTable.ts"
import { jsonFlag, outputFolder } from "../CommonFlags.ts"
import { hasLedger, openedLedger, withLedger } from "../LedgerOf.ts"
import { Output, say, sayJson } from "../Output.ts"
import { runningNight } from "../NightDesk.ts"

export const runs = Command.make(
  "runs",
  { json: jsonFlag },
  Effect.fn("Runs.handle")(function* ({ json }) {
    const headers = (yield* hasLedger)
      ? yield* withLedger(Effect.flatMap(openedLedger, (ledger) => ledger.runs))
      : []
    const running = Option.map(yield* runningNight(yield* outputFolder), ({ run_id }) => run_id)
    const rows = headers.map(({ at, fact, ended }) => ({
      run_id: fact.run_id,
      job: fact.job,
      run_date: fact.run_date,
      parent: fact.parent ?? null,
      started_at: new Date(at).toISOString(),
      ended_at: ended === undefined ? null : new Date(ended.at).toISOString(),
      exit_code: ended?.exit_code ?? null,
      leftovers: ended?.leftovers ?? true,
      running: Option.contains(running, fact.run_id),
    }))
    if (json) return yield* sayJson(rows)
    const { out } = yield* Output
    if (rows.length === 0) return yield* say("No run yet.")
    const cells = rows.map((row) => [
      row.run_id,
      row.started_at,
      row.running ? "running" : (row.ended_at ?? "not ended"),
      row.exit_code === null ? "" : String(row.exit_code),
      row.parent ?? "",
    ])
    const header = ["run", "started", "ended", "exit code", "rerun of"]
    yield* say(table(header, cells, { width: out.width, right: new Set([3]) }))
  }),
).pipe(Command.withDescription("Lists all runs of the output folder, oldest first"))
