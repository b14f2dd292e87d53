/**
 * `nightjar verify`: proves that files, ledger and tables agree, and names what does not. Changes nothing, so
 * that it may run at any time.
 */
import { Effect } from "effect"
import { Command } from "effect/cli"
import { counted, table } from "../../report/TextTable.ts"
import { jsonFlag, outputFolder } from "../CommonFlags.ts"
import { endWith, exitCodes } from "../Failures.ts"
import { requireLedger } from "../LedgerOf.ts"
import { problemsOf } from "../LookAtFolder.ts"
import { Output, say, sayJson } from "../Output.ts"

export const verify = Command.make(
  "verify",
  { json: jsonFlag },
  Effect.fn("Verify.handle")(function* ({ json }) {
    const output = yield* outputFolder
    yield* requireLedger(output)
    const problems = yield* problemsOf(output)
    if (json) yield* sayJson(problems)
    else if (problems.length === 0) yield* say("Files, ledger and tables agree.")
    else {
      const { out } = yield* Output
      yield* say(`${counted(problems.length, "thing")} that do not agree:`)
      const rows = problems.map(({ where, problem, next }) => [where, problem, next])
      yield* say(table(["where", "problem", "next"], rows, { width: out.width }))
    }
    yield* endWith(problems.length === 0 ? exitCodes.ok : exitCodes.peopleMustAct)
  }),
).pipe(
  Command.withDescription(
    "Proves that files, ledger and tables agree; exit code 3 and names when something does not",
  ),
)
