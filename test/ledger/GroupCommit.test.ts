import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { DatabaseSync } from "node:sqlite"
import { Ledger } from "../../src/ledger/Ledger.ts"
import { within } from "../../src/ledger/LedgerKeys.ts"
import { openLedger } from "../../src/ledger/LedgerSchema.ts"
import type { Fact } from "../../src/ledger/Fact.ts"
import { anId } from "../harness/Id.ts"
import { effect } from "../harness/Steps.ts"

const resumed = (n: number): Fact => ({ _tag: "RunResumed", run_id: anId(`night.${n}`) })

/** Counts commits, and refuses those that `refuse` says. */
const watched = (refuse: (commit: number) => boolean = () => false) => {
  const database = openLedger({ path: ":memory:" })
  const exec = DatabaseSync.prototype.exec.bind(database)
  let commits = 0
  database.exec = (sql) => {
    if (sql === "COMMIT" && refuse(++commits)) throw new Error("disk full")
    exec(sql)
  }
  const rows = () =>
    database
      .prepare("SELECT run_id FROM facts ORDER BY seq")
      .all()
      .map((row) => row["run_id"])
  const ledger = Effect.provide(Ledger, Ledger.layerOver(database))
  return Effect.map(ledger, ({ append }) => ({ append, commits: () => commits, rows }))
}

const written = (count: number) => Array.from({ length: count }, (_, n) => `night.${n}`)

describe("append", () => {
  effect("writes concurrent facts in one transaction, in the order of the calls", function* () {
    const { append, commits, rows } = yield* watched()
    yield* append([])
    assert.strictEqual(commits(), 0)
    const all = Array.from({ length: 100 }, (_, n) => append([resumed(n)]))
    yield* Effect.all(all, { concurrency: "unbounded", discard: true })
    assert.deepStrictEqual(rows(), written(100))
    assert.strictEqual(commits(), 1)
  })

  effect("fails for everyone whose facts were not written, and continues with the next", function* () {
    const { append, rows } = yield* watched((commit) => commit === 1)
    const fail = Effect.flip(append([resumed(7)]))
    const failures = yield* Effect.all([fail, fail], { concurrency: "unbounded" })
    assert.deepStrictEqual(
      failures.map(({ message }) => message),
      ["disk full", "disk full"],
    )
    yield* append([resumed(0)])
    assert.deepStrictEqual(rows(), written(1))
  })

  effect("leaves nobody waiting when the caller that would have written is interrupted", function* () {
    const { append, rows } = yield* watched()
    const first = yield* Effect.forkChild(append([resumed(0)]), { startImmediately: true })
    const second = yield* Effect.forkChild(append([resumed(1)]), { startImmediately: true })
    yield* Fiber.interrupt(first)
    yield* Fiber.join(second)
    assert.deepStrictEqual(rows(), written(2))
  })
})

it("a transaction keeps all of its work, or nothing and reports what failed", () => {
  const database = new DatabaseSync(":memory:")
  database.exec("CREATE TABLE t (n INTEGER)")
  const rows = () => database.prepare("SELECT n FROM t").all().length
  within(database, () => database.exec("INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)"))
  assert.deepStrictEqual([rows(), database.isTransaction], [2, false])
  const fails = (sql: string) => () =>
    within(database, () => {
      database.exec(sql)
      throw new Error("disk full")
    })
  assert.throws(fails("INSERT INTO t VALUES (3)"), "disk full")
  // SQLite may have ended it by itself, as it does on a full disk: what failed is told all the same.
  assert.throws(fails("INSERT INTO t VALUES (3); ROLLBACK"), "disk full")
  assert.deepStrictEqual([rows(), database.isTransaction], [2, false])
})
