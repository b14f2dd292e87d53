/**
 * `nightjar verify`: proves that files, ledger and tables agree, and names what does not. Changes nothing, so
 * that it may run at any time.
 */
import { Effect, Layer } from "effect"
import { Command } from "effect/cli"
import { counted, table } from "../report/TextTable.ts"
import { jsonFlag, outputFolder } from "./CommonFlags.ts"
import { endWith, exitCodes } from "./Failures.ts"
import { withLedger } from "./LedgerOf.ts"
import { Output, say, sayJson } from "./Output.ts"
import { toolVersion } from "./Version.ts"
import { Wiring } from "./Wiring.ts"

const prove = Effect.gen(function* () {
  const output = yield* outputFolder
  const { recordSchemas } = yield* Wiring
  const { openStore } = yield* Effect.promise(() => import("../publishing/PublisherDuckDb.ts"))
  const { verify: verifyStore } = yield* Effect.promise(() => import("../publishing/Verify.ts"))
  const store = yield* openStore({ root: output, schemasFolder: recordSchemas, share: "none", toolVersion })
  return yield* verifyStore(store)
})

export const verify = Command.make(
  "verify",
  { json: jsonFlag },
  Effect.fn("Verify.handle")(function* ({ json }) {
    const output = yield* outputFolder
    const wiring = yield* Wiring
    const services = Layer.merge(wiring.landing(output), wiring.database)
    const problems = yield* withLedger(prove.pipe(Effect.provide(services)))
    if (json) yield* sayJson(problems)
    else if (problems.length === 0) yield* say("Files, ledger and tables agree.")
    else {
      const { out } = yield* Output
      yield* say(`${counted(problems.length, "thing")} that do not agree:`)
      const rows = problems.map(({ where, problem }) => [where, problem])
      yield* say(table(["where", "problem"], rows, { width: out.width }))
    }
    yield* endWith(problems.length === 0 ? exitCodes.ok : exitCodes.peopleMustAct)
  }),
).pipe(
  Command.withDescription(
    "Proves that files, ledger and tables agree; exit code 3 and names when something does not",
  ),
)
