/** What a transaction leaves behind, and which failure is told, whatever went wrong in it. */
import { describe, expect, it } from "vitest"
import { DatabaseSync } from "node:sqlite"
import { within } from "../../src/ledger/LedgerKeys.ts"

const opened = () => {
  const database = new DatabaseSync(":memory:")
  database.exec("CREATE TABLE t (n INTEGER)")
  const rows = () => database.prepare("SELECT n FROM t").all().length
  return { database, rows }
}

describe("a transaction", () => {
  it("keeps all of its work, or nothing and reports what failed", () => {
    const { database, rows } = opened()
    within(database, () => database.exec("INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)"))
    expect([rows(), database.isTransaction]).toEqual([2, false])
    const fails = (sql: string) => () =>
      within(database, () => {
        database.exec(sql)
        throw new Error("disk full")
      })
    expect(fails("INSERT INTO t VALUES (3)")).toThrow("disk full")
    // SQLite may have ended it by itself, as it does on a full disk: what failed is told all the same.
    expect(fails("INSERT INTO t VALUES (3); ROLLBACK")).toThrow("disk full")
    expect([rows(), database.isTransaction]).toEqual([2, false])
  })
})
