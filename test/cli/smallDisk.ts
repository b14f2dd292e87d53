/** Run on a disk of 80 KiB by the test beside it: a summary and a log that do not fit; one line of JSON. */
import { anId } from "../harness/Id.ts"
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Console, Effect, Layer } from "effect"
import { NightLog } from "../../src/cli/RunReport.ts"
import { writeRunFile } from "../../src/cli/OutputFolder.ts"
import type { Fact } from "../../src/ledger/Fact.ts"
import { Ledger } from "../../src/ledger/Ledger.ts"
import { openLedger } from "../../src/ledger/LedgerSchema.ts"

const output = process.argv[2] ?? ""
const run_id = anId("nightly.2026-11-21")
const folder = join(output, "runs", run_id)
const ballast = join(output, "ballast")

const write = (text: string) =>
  writeRunFile({ output, run_id, share: "none" }, "summary.json", text).pipe(
    Effect.match({ onFailure: ({ message }) => message.replace(folder, ""), onSuccess: () => "written" }),
  )

/** Seven facts, whose lines do not end where a page of the disk does. */
const factsOf = (batch: number): ReadonlyArray<Fact> =>
  Array.from({ length: 7 }, (_, n) => ({
    _tag: "TaskSettled",
    run_id,
    task_id: anId(`t-${batch}-${n}`),
    outcome: "failed",
    reason: "ENGINE_UNKNOWN",
    who_acts: "engineer",
    message: "m".repeat(1_500),
  }))

const linesOf = (): ReadonlyArray<string> =>
  readFileSync(join(folder, "log.ndjson"), "utf8")
    .split("\n")
    .map((line) => {
      if (line === "") return "end"
      try {
        JSON.parse(line)
        return "whole"
      } catch {
        return "torn"
      }
    })

const program = Effect.gen(function* () {
  const ledger = yield* Ledger
  const first = yield* write("the first one")
  writeFileSync(ballast, Buffer.alloc(36_000))
  const second = yield* write("x".repeat(60_008))
  const stands = readFileSync(join(folder, "summary.json"), "utf8")
  const left = readdirSync(folder).filter((name) => name !== "log.ndjson")
  for (let batch = 0; batch < 10; batch++) yield* ledger.append(factsOf(batch))
  const full = linesOf()
  rmSync(ballast)
  yield* ledger.append(factsOf(10))
  const after = linesOf()
  const log = {
    kinds: [...new Set(full)],
    isShort: full.length < 70,
    goesOn: after.length === full.length + 7 && !after.includes("torn"),
  }
  yield* Console.log(JSON.stringify({ first, second, stands, left, log }))
})

await Effect.runPromise(
  program.pipe(
    Effect.provide(
      NightLog.layer(output, "none").pipe(Layer.provide(Ledger.layerOver(openLedger({ path: ":memory:" })))),
    ),
    Effect.scoped,
  ),
)
