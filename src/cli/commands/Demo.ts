/**
 * `nightjar demo`: the demo job on the embedded service, and what its result means. The exit code that a
 * cron job would have got is explained; the command itself succeeds if the run ended as designed.
 */
import { existsSync } from "node:fs"
import { join } from "node:path"
import { Effect, Option } from "effect"
import { Command } from "effect/cli"
import { outcomes } from "../../service/EndTable.ts"
import { shellWord } from "../../base/Text.ts"
import { exitMeaning } from "../../report/RenderSummary.ts"
import { summarise } from "../../report/Summary.ts"
import { wrap } from "../../report/TextTable.ts"
import { Settings, namedOutput, outputFolder } from "../CommonFlags.ts"
import { exitCodes } from "../../messages/ExitCodes.ts"
import { endWith } from "../Failures.ts"
import { loadJobs } from "../Jobs.ts"
import { findRun, withLedger } from "../LookAtFolder.ts"
import { Output, say, warn } from "../Output.ts"
import { Wiring } from "../Wiring.ts"
import { runNights } from "../Nights.ts"

/** How the tasks of `jobs/demo.yaml` end, on the first run and on every later one. */
const designed = { succeeded: 26, partial: 2, failed: 8, skipped: 2, unfinished: 1 } as const

const exampleQuery = "SELECT who_acts, reason, count(*) AS tasks FROM tasks GROUP BY ALL ORDER BY ALL"

export const demo = Command.make(
  "demo",
  {},
  Effect.fn("Demo.handle")(function* () {
    const { packageFolder } = yield* Wiring
    const path = existsSync("jobs/demo.yaml") ? "jobs/demo.yaml" : join(packageFolder, "jobs/demo.yaml")
    const output = yield* outputFolder
    const jobs = yield* loadJobs([path])
    const exit_code = yield* runNights(jobs, {
      output,
      json: false,
      further: false,
      webhooks: undefined,
      parent: undefined,
      only: undefined,
    })
    if (exit_code !== exitCodes.leftovers && exit_code !== exitCodes.peopleMustAct)
      return yield* endWith(exit_code === exitCodes.ok ? exitCodes.defect : exit_code)
    const summary = summarise(yield* withLedger(findRun(Option.none())))
    const { out } = yield* Output
    const named = namedOutput(output)
    const folder = named === undefined ? "" : ` --output ${shellWord(named)}`
    const lines = [
      `A cron job would have ended with exit code ${exit_code}: ${exitMeaning[exit_code]}. ` +
        "Here, that is the task on the engine in maintenance; the others need a customer or an engineer.",
    ]
    const { invocation } = yield* Settings
    // Commands stay on one line, so that they can be copied.
    const commands = [
      `To query the tables: ${invocation} query${folder} "${exampleQuery}"`,
      `To explain a customer's result: ${invocation} explain${folder} c-024`,
    ]
    yield* say(`\n${[...lines.map((line) => wrap(line, out.width, "", "  ")), ...commands].join("\n")}`)
    const asDesigned =
      exit_code === exitCodes.leftovers &&
      outcomes.every((outcome) => summary.outcomes[outcome] === designed[outcome])
    if (!asDesigned) yield* warn("demo-unexpected")
    yield* endWith(asDesigned ? exitCodes.ok : exit_code)
  }),
).pipe(Command.withDescription("Runs the demo job and explains how it ended"))
