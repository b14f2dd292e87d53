/**
 * Every fact of the run as a line of its `log.ndjson`, once the ledger has it. The ledger is authoritative:
 * if a line cannot be written, only that line is lost. Secrets are removed as in the ledger.
 */
import { join } from "node:path"
import { Effect, Layer } from "effect"
import { durableFiles } from "../base/DurableFile.ts"
import type { AppendedFile } from "../base/DurableFile.ts"
import type { RunId } from "../service/Ids.ts"
import type { Fact } from "../ledger/Fact.ts"
import { cleanFact } from "../ledger/CleanFact.ts"
import { Ledger } from "../ledger/Ledger.ts"
import { KnownSecrets } from "../privacy/KnownSecrets.ts"
import { fileMode, folderMode, runFolder } from "./RunFolder.ts"
import type { Share } from "./RunFolder.ts"

/** The ledger that is there, with the log beside it. */
export const NightLog = {
  layer: (output: string, share: Share) =>
    Layer.effect(
      Ledger,
      Effect.gen(function* () {
        const ledger = yield* Ledger
        const known = yield* KnownSecrets
        const files = yield* durableFiles
        const logs = new Map<RunId, AppendedFile>()
        yield* Effect.addFinalizer(() => Effect.sync(() => logs.forEach((log) => log.close())))
        const open = (run_id: RunId): AppendedFile => {
          const known = logs.get(run_id)
          if (known !== undefined) return known
          const folder = runFolder(output, run_id)
          files.makeFolder(folder, folderMode(share))
          const log = files.append(join(folder, "log.ndjson"), "a", fileMode(share))
          logs.set(run_id, log)
          return log
        }
        const write = (facts: ReadonlyArray<Fact>, at: string): void => {
          for (const [run_id, ofRun] of Map.groupBy(facts, (fact) => ("run_id" in fact ? fact.run_id : ""))) {
            if (run_id === "") continue
            open(run_id).append(ofRun.map((fact) => logLine(cleanFact(fact, known), at)).join(""))
          }
        }
        return Ledger.of({
          ...ledger,
          append: (facts) =>
            Effect.andThen(
              ledger.append(facts),
              Effect.clockWith((clock) =>
                Effect.ignore(
                  Effect.try({
                    try: () =>
                      write(facts, new Date(Math.trunc(clock.currentTimeMillisUnsafe())).toISOString()),
                    catch: () => "no log line",
                  }),
                ),
              ),
            ),
        })
      }),
    ),
}

const logLine = (fact: Fact, at: string): string => {
  const { _tag, ...fields } = fact
  return `${JSON.stringify({ at, fact: _tag, ...fields })}\n`
}
