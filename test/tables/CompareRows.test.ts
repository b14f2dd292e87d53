/** Two versions of a run's tables, compared row by row: a single row that differs is told. */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { DuckDb } from "../../src/base/DuckDb.ts"
import { compareRows } from "../../src/tables/Rebuild.ts"
import { families } from "../records/families.ts"

const root = mkdtempSync(join(tmpdir(), "nightjar-compared-"))
afterAll(() => rmSync(root, { recursive: true, force: true }))

const side = Effect.fnUntraced(function* (name: string, tables: Readonly<Record<string, string>>) {
  const { open } = yield* DuckDb
  const { run } = yield* open({ path: ":memory:", access: "read-write" })
  const files = yield* Effect.forEach(Object.entries(tables), ([table, rows]) => {
    const path = `${name}-${table}.parquet`
    const ofRun = `SELECT 'r' AS run_id, * FROM (${rows}) UNION ALL SELECT 'other', * FROM (${rows})`
    const copied = run(`COPY (${ofRun}) TO '${join(root, path)}' (FORMAT parquet)`)
    return Effect.map(copied, (count) => ({ table, path, rows: count / 2, bytes: 1, sha256: "" }))
  })
  return { files, standsAt: ({ path }: { readonly path: string }) => path }
}, Effect.scoped)

describe("the tables of a run", () => {
  it.live("differ where a row was added, is gone, or is another one, in the order of the dictionary", () =>
    Effect.gen(function* () {
      const before = yield* side("before", {
        unheard: "SELECT 1 AS a",
        emails: "SELECT unnest(['one', 'two']) AS email",
        phones: "SELECT unnest(['one', 'one']) AS phone",
        tasks: "SELECT 1 AS attempts",
        runs: "SELECT 'same' AS job",
      })
      const after = yield* side("after", {
        emails: "SELECT unnest(['one', 'other']) AS email",
        phones: "SELECT 'one' AS phone",
        tasks: "SELECT 1 AS attempts, NULL::VARCHAR AS reason",
        runs: "SELECT 'same' AS job",
      })
      assert.deepStrictEqual(yield* compareRows(root, families, "r", { before, after }), [
        { table: "emails", before: 2, after: 2, added: 1, gone: 1 },
        { table: "phones", before: 2, after: 1, added: 0, gone: 1 },
        { table: "unheard", before: 1, after: 0, added: 0, gone: 1 },
      ])
    }).pipe(Effect.provide(DuckDb.layer)),
  )
})
