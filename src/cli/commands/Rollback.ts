/**
 * `nightjar rollback`: puts the tables of the previous published version back, for readers, until the next
 * publication. It deletes nothing and makes no call to the service.
 */
import { Effect } from "effect"
import { Command } from "effect/cli"
import { listed } from "../../base/Text.ts"
import { jsonFlag, outputFolder } from "../CommonFlags.ts"
import { refuse } from "../Failures.ts"
import { inHeldStore } from "../RunFolder.ts"
import { openedStore, requireLedger } from "../LookAtFolder.ts"
import { say, sayJson } from "../Output.ts"
import { rollback as rollBack } from "../../tables/Rollback.ts"

const runsTold = 5

export const rollback = Command.make(
  "rollback",
  { json: jsonFlag },
  Effect.fn("Rollback.handle")(function* ({ json }) {
    const output = yield* outputFolder
    yield* requireLedger(output)
    const result = yield* inHeldStore(output, rollBack, openedStore)
    if (result._tag === "NoEarlierVersion") return yield* refuse("no-earlier-version", { output })
    if (result._tag === "Incomplete") {
      const { version, gap } = result
      return yield* refuse("earlier-version-incomplete", { version, ...gap })
    }
    const { _tag, ...told } = result
    if (json) return yield* sayJson(told)
    const { version, to, from, without } = told
    yield* say(`Version ${version} is published: it has the tables of version ${to}.`)
    if (without.length > 0) yield* say(`Runs that are not in it: ${listed(without, runsTold)}.`)
    yield* say(`Version ${from} is kept: the next publication continues from it and ends the rollback.`)
  }),
).pipe(
  Command.withDescription(
    "Publishes the tables of the previous version again\n\n" +
      "A second time, it goes one version further back. Nothing is lost: the newest\n" +
      "version is kept, and the next publication, by `nightjar run JOB` or `nightjar\n" +
      "rebuild`, continues from it. The ledger, landing and the executions at the\n" +
      "service are not changed. Three earlier versions are kept, or as many as\n" +
      "`retain.snapshots` in the job says.",
  ),
  Command.withShortDescription("Publishes the tables of the previous version again"),
)
