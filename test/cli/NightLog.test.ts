/** The log of a run: whole lines, whatever the disk takes at once, and nothing but itself lost where it refuses. */
import { anId } from "../harness/Id.ts"
import { sharedFolder } from "../harness/Folder.ts"
import { effect } from "../harness/Steps.ts"
import { mkdtempSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { NightLog } from "../../src/cli/RunReport.ts"
import { FileCalls } from "../../src/base/DurableFile.ts"
import { Ledger } from "../../src/ledger/Ledger.ts"
import { openLedger } from "../../src/ledger/LedgerSchema.ts"
import { faultyCalls, refusal } from "../base/FaultyCalls.ts"
import { aFact } from "../harness/Facts.ts"

const base = sharedFolder()
const run_id = anId("nightly.2026-11-21")
const fact = (task_id: string) =>
  aFact("TaskSettled", { run_id, task_id, reason: "ENGINE_UNKNOWN", message: "m".repeat(500) })

const logged = (output: string, calls: FileCalls) =>
  NightLog.layer(output, "none").pipe(
    Layer.provide(Ledger.layerOver(openLedger({ path: ":memory:" }))),
    Layer.provide(Layer.succeed(FileCalls, calls)),
  )
const tasksIn = (output: string) =>
  readFileSync(join(output, "runs", run_id, "log.ndjson"), "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => (JSON.parse(line) as { task_id: string }).task_id)

describe("the log of a run", () => {
  effect("contains every line if the disk accepts it in pieces, and what was decided too", function* () {
    const output = mkdtempSync(join(base, "o-"))
    const written = Effect.flatMap(Ledger, ({ append, decide }) =>
      Effect.andThen(
        append([fact("t-1"), fact("t-2")]),
        decide(() => ({ facts: [fact("t-3")], answer: undefined })),
      ),
    )
    yield* Effect.provide(written, logged(output, faultyCalls({ writeBytesMax: 100 }).calls))
    assert.deepStrictEqual(tasksIn(output), ["t-1", "t-2", "t-3"])
  })

  effect("loses only the lines that the disk refuses, and the ledger loses none", function* () {
    const output = mkdtempSync(join(base, "o-"))
    const disk = { isFull: false }
    const { calls } = faultyCalls({
      writeBytesMax: 100,
      refuse: (name, nth) =>
        disk.isFull && name === "write" && nth % 3 === 0 ? refusal("ENOSPC", name) : undefined,
    })
    yield* Effect.gen(function* () {
      const ledger = yield* Ledger
      yield* ledger.append([fact("t-1")])
      disk.isFull = true
      yield* ledger.append([fact("t-2")])
      disk.isFull = false
      assert.deepStrictEqual(tasksIn(output), ["t-1"])
      yield* ledger.append([fact("t-3")])
      assert.lengthOf(yield* ledger.facts(run_id), 3)
    }).pipe(Effect.provide(logged(output, calls)))
    assert.deepStrictEqual(tasksIn(output), ["t-1", "t-3"])
  })
})
