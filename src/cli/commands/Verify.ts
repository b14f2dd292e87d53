/**
 * `nightjar verify`: checks that files, ledger and tables agree, and names what does not. Changes nothing,
 * so it may run at any time.
 */
import { Effect } from "effect"
import { Command } from "effect/cli"
import { withId } from "../../messages/Catalogue.ts"
import { exitCodes } from "../../messages/ExitCodes.ts"
import { counted } from "../../base/Text.ts"
import { table } from "../../report/TextTable.ts"
import { jsonFlag, outputFolder } from "../CommonFlags.ts"
import { endWith } from "../Failures.ts"
import { problemsOf, requireLedger } from "../LookAtFolder.ts"
import { Output, say, sayJson } from "../Output.ts"

const publishedIn = Effect.fnUntraced(function* (output: string) {
  const { layoutOf, nothingPublished, readManifest } = yield* Effect.promise(
    () => import("../../tables/Manifest.ts"),
  )
  return readManifest(layoutOf(output).manifest) ?? nothingPublished
})

export const verify = Command.make(
  "verify",
  { json: jsonFlag },
  Effect.fn("Verify.handle")(function* ({ json }) {
    const output = yield* outputFolder
    yield* requireLedger(output)
    const problems = yield* problemsOf(output)
    if (json) yield* sayJson(problems)
    else if (problems.length === 0) {
      yield* say("Files, ledger and tables agree.")
      const { returned } = yield* publishedIn(output)
      if (returned !== undefined)
        yield* say(
          `After a rollback, they are the tables of version ${returned.to}; the next publication continues ` +
            `from version ${returned.from}.`,
        )
    } else {
      const { out } = yield* Output
      yield* say(`${counted(problems.length, "disagreement")} between files, ledger and tables:`)
      const rows = problems.map(({ id, where, problem, next }) => [where, withId(id, problem), next])
      yield* say(table(["where", "problem", "next"], rows, { width: out.width }))
    }
    yield* endWith(problems.length === 0 ? exitCodes.ok : exitCodes.peopleMustAct)
  }),
).pipe(Command.withDescription("Checks that files, ledger and tables agree; exit code 3 if not"))
