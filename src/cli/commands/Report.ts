/**
 * `nightjar report [RUN]`: writes a run's HTML report and its worklist again and names them. Reads only the
 * ledger and the published tables, so that it does not disturb a run in progress.
 */
import { statSync } from "node:fs"
import { Effect } from "effect"
import { Command } from "effect/cli"
import { jsonFlag, outputFolder, runArgument } from "../CommonFlags.ts"
import { findRun, withLedger } from "../LookAtFolder.ts"
import { say, sayJson } from "../Output.ts"
import { runFolder } from "../RunFolder.ts"
import { writeReport } from "../RunReport.ts"

/** What the run's job shared is shared again: its folder shows it. */
const shareOf = (folder: string): "none" | "group" => {
  const found = statSync(folder, { throwIfNoEntry: false })
  return found !== undefined && (found.mode & 0o050) === 0o050 ? "group" : "none"
}

export const report = Command.make(
  "report",
  { run: runArgument, json: jsonFlag },
  Effect.fn("Report.handle")(function* ({ run, json }) {
    const output = yield* outputFolder
    const written = yield* withLedger(
      Effect.gen(function* () {
        const { run_id } = (yield* findRun(run)).started
        return yield* writeReport({ output, run_id, share: shareOf(runFolder(output, run_id)) })
      }),
    )
    if (json) return yield* sayJson(written)
    yield* say(written.report)
    yield* say(written.worklist)
  }),
).pipe(Command.withDescription("Writes a run's HTML report and worklist"))
