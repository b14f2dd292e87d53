/** A ledger of an older version: copied before it is changed, read as it is, and never lost on the way. */
import { describe, expect } from "@effect/vitest"
import { Effect, Exit, Layer } from "effect"
import { TestClock } from "effect/testing"
import { readdirSync, statSync } from "node:fs"
import { DatabaseSync } from "node:sqlite"
import { join } from "node:path"
import { FileCalls } from "../../src/base/DurableFile.ts"
import { Ledger } from "../../src/ledger/Ledger.ts"
import { openLedger, type LedgerCopy } from "../../src/ledger/LedgerSchema.ts"
import { faultyCalls, refusal, refusingFrom } from "../base/FaultyCalls.ts"
import { anId } from "../harness/Id.ts"
import { effect } from "../harness/Steps.ts"
import { folder } from "../harness/Folder.ts"

const run_id = anId("job.2026-11-21")
const about = Effect.flatMap(Ledger, (ledger) =>
  Effect.all({ facts: ledger.facts(run_id), problems: ledger.problems, customers: ledger.customers }),
)
const at = (path: string, told: Array<LedgerCopy>, readOnly = false) =>
  Layer.fresh(Ledger.layer({ path, readOnly, tell: (copy) => Effect.sync(() => void told.push(copy)) }))

/** As versions before archives wrote it, or those before the chain. */
const older = Effect.fnUntraced(function* (root: string, format: 0 | 1) {
  const path = join(root, "ledger.sqlite")
  const database = openLedger({ path })
  yield* Effect.provide(
    Effect.flatMap(Ledger, (ledger) =>
      ledger.append([
        { _tag: "RunStarted", run_id, job: "job", job_path: "j", run_date: "2026-11-21", tool_version: "0" },
        { _tag: "TaskPlanned", run_id, task_id: anId("t"), customer_id: anId("c-1"), features: [] },
      ]),
    ),
    Ledger.layerOver(database),
  )
  database.exec("DROP TABLE archived_ids; DROP TABLE archived_links; DROP INDEX facts_of_archives")
  if (format === 0) database.exec("ALTER TABLE facts DROP COLUMN chain")
  database.exec(`PRAGMA user_version = ${format}`)
  database.close()
  return path
})
const copiesIn = (root: string) => readdirSync(root).filter((name) => name.includes(".format-"))
const formatOf = (path: string) => {
  const database = new DatabaseSync(path, { readOnly: true })
  const format = database.prepare("PRAGMA user_version").get()?.["user_version"]
  database.close()
  return format
}

describe("a ledger of an older format", () => {
  effect.each([0, 1] as const)(
    "%i is copied beside itself before it is changed, and told once",
    function* (format) {
      yield* TestClock.setTime(Date.UTC(2026, 10, 23, 12))
      const root = yield* folder
      const path = yield* older(root, format)
      const told: Array<LedgerCopy> = []
      const before = yield* Effect.provide(about, at(path, told, true))
      // Who only reads leaves it as it is.
      expect([told, copiesIn(root), formatOf(path)]).toEqual([[], [], format])
      expect(yield* Effect.provide(about, at(path, told))).toEqual(before)
      const copy = join(root, `ledger.format-${format}.2026-11-23.sqlite`)
      expect([told, formatOf(path), formatOf(copy)]).toEqual([[{ format, path: copy }], 3, format])
      expect(statSync(copy).mode & 0o777).toBe(0o600)
      expect(yield* Effect.provide(about, at(copy, told, true))).toEqual(before)
      yield* Effect.provide(about, at(path, told))
      expect([told.length, copiesIn(root).length]).toEqual([1, 1])
    },
  )

  effect(
    "is as it was, or has its copy, wherever the change is cut off; the next try starts over",
    function* () {
      for (let cut = 1; ; cut += 1) {
        const root = yield* folder
        const path = yield* older(root, 1)
        // Left by a try on another day.
        openLedger({ path: join(root, "ledger.format-1.2026-11-20.sqlite") }).close()
        const told: Array<LedgerCopy> = []
        const opened = Effect.provide(about, at(path, told))
        const exit = yield* Effect.exit(Effect.provideService(opened, FileCalls, refusingFrom(cut).calls))
        expect([told.length, formatOf(path)]).toEqual(Exit.isSuccess(exit) ? [1, 3] : [0, 1])
        if (Exit.isFailure(exit)) expect(String(exit.cause)).toContain("; it is as it was")
        expect((yield* opened).problems).toEqual([])
        expect(copiesIn(root)).toEqual(["ledger.format-1.1970-01-01.sqlite"])
        if (Exit.isSuccess(exit)) return expect(cut).toBeGreaterThan(4)
      }
    },
  )

  effect("leaves nothing of a copy for which there is no room", function* () {
    const root = yield* folder
    const path = yield* older(root, 1)
    const { calls } = faultyCalls({
      refuse: (name) => (name === "syncData" ? refusal("ENOSPC", name) : undefined),
    })
    const opened = Effect.provide(about, at(path, []))
    const failed = yield* Effect.flip(Effect.provideService(opened, FileCalls, calls))
    expect(failed.message).toContain("no space left on device")
    expect([copiesIn(root), formatOf(path)]).toEqual([[], 1])
  })

  effect("needs no copy while nothing is in it", function* () {
    const root = yield* folder
    const path = join(root, "ledger.sqlite")
    const database = openLedger({ path })
    database.exec("PRAGMA user_version = 1")
    database.close()
    yield* Effect.provide(about, at(path, []))
    expect(copiesIn(root)).toEqual([])
  })
})
