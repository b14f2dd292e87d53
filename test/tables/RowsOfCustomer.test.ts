/** Which rows are a customer's, asked of every kind of columns that a table may have. */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { DuckDb } from "../../src/base/DuckDb.ts"
import { aboutCustomer, rowsOfCustomer } from "../../src/tables/ForgetRows.ts"
import { anId } from "../harness/Id.ts"
import { foundation, storeOf } from "./night.ts"

const root = mkdtempSync(join(tmpdir(), "nightjar-theirs-"))
afterAll(() => rmSync(root, { recursive: true, force: true }))
const theirs = { customer_id: anId("c-1"), tasks: new Set(["t-1", "t-2"]), executions: new Set(["e-1"]) }
const none = { ...theirs, tasks: new Set<string>(), executions: new Set<string>() }

describe("a row is a customer's", () => {
  it("by its task or its customer, and by an execution only where neither is said", () => {
    const about = (of: typeof theirs, ...columns: ReadonlyArray<string>) =>
      aboutCustomer(new Set(columns), of)
    const [byTask, byCustomer] = [`"task_id" IN ('t-1', 't-2')`, `"customer_id" IN ('c-1')`]
    assert.deepStrictEqual(
      [
        about(theirs, "task_id", "customer_id", "execution_id"),
        about(theirs, "task_id", "other"),
        about(theirs, "customer_id", "execution_id"),
        about(theirs, "execution_id"),
        about(theirs, "other"),
        about(none, "task_id", "customer_id"),
        about(none, "task_id", "execution_id"),
      ],
      [
        `coalesce(${byTask} OR ${byCustomer}, false)`,
        `coalesce(${byTask}, false)`,
        `coalesce(${byCustomer}, false)`,
        `coalesce("execution_id" IN ('e-1'), false)`,
        undefined,
        `coalesce(${byCustomer}, false)`,
        undefined,
      ],
    )
  })

  it.live("table by table, in the files that are there", () =>
    Effect.gen(function* () {
      const duckdb = yield* DuckDb
      const connection = yield* duckdb.open({ path: ":memory:", access: "read-write" })
      const files = yield* Effect.forEach(
        [
          ["tasks", "SELECT unnest(['t-1', 't-2', 't-3']) AS task_id"],
          ["tasks", "SELECT 't-3' AS task_id, 'c-1' AS customer_id"],
          ["tasks", undefined],
          ["older", "SELECT unnest(['e-1', 'e-2', NULL]) AS execution_id"],
          ["others", "SELECT 'c-1' AS name"],
          ["gone", undefined],
        ] as const,
        ([table, rows], index) => {
          const path = `${table}-${index}.parquet`
          const file = { table, path, rows: 1, bytes: 1, sha256: "" }
          return rows === undefined
            ? Effect.succeed(file)
            : Effect.as(
                connection.run(
                  `COPY (SELECT 'r' AS run_id, * FROM (${rows})) TO '${join(root, path)}' (FORMAT parquet)`,
                ),
                file,
              )
        },
      )
      const found = yield* rowsOfCustomer(yield* storeOf(root), connection, files, theirs)
      assert.deepStrictEqual([...found].map(([path, byRun]) => [path, ...byRun].flat()).toSorted(), [
        ["older-3.parquet", "r", 1],
        ["tasks-0.parquet", "r", 2],
        ["tasks-1.parquet", "r", 1],
      ])
    }).pipe(Effect.scoped, Effect.provide(foundation(root))),
  )
})
