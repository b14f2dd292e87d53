/**
 * Whether the night that was measured was a whole one: what the service saw (its journal), and what an analyst finds
 * in the published database, against what the job must come to.
 */
import { join } from "node:path"
import { Effect } from "effect"
import { DuckDb, type Connection } from "../../src/base/DuckDb.ts"
import { identifier, literal } from "../../src/base/DuckDbFailed.ts"
import type { ExecutionSeen } from "../../src/sandbox/admin/Truth.ts"
import { readTruth } from "../faults/ServiceProcess.ts"
import type { ExpectedNight } from "./NightJob.ts"

export interface ServiceSaw {
  readonly executions: number
  /** Not closed yet, at once, at the service. */
  readonly inFlightMost: number
  readonly notDeleted: number
  readonly rulesBroken: number
}

export const readServiceSaw = (journal: string): ServiceSaw => {
  const { executions, ruleBreaks } = readTruth(journal)
  return {
    executions: executions.length,
    inFlightMost: mostAtOnce(executions),
    notDeleted: executions.filter(({ deleted_at }) => deleted_at === undefined).length,
    rulesBroken: ruleBreaks.length,
  }
}

const mostAtOnce = (executions: ReadonlyArray<ExecutionSeen>): number => {
  const changes = executions
    .flatMap(({ started_at, closes_at }) => [
      { at: started_at, by: 1 },
      { at: closes_at, by: -1 },
    ])
    .toSorted((a, b) => a.at - b.at || a.by - b.by)
  let open = 0
  return changes.reduce((most, { by }) => Math.max(most, (open += by)), 0)
}

export interface Published {
  readonly outcomes: Readonly<Record<string, number>>
  readonly executions: number
  readonly records: number
  readonly deleted: number
}

const numberOf = (connection: Connection, sql: string) =>
  Effect.map(connection.rows(`SELECT (${sql})::INTEGER AS n`), ([row]) => Number(row?.["n"]))

/** Records are in `nights` in the tables without a position; those that were refused, in one of `ops`. */
const countRecords = Effect.fnUntraced(function* (connection: Connection) {
  const tables = yield* connection.rows(
    "SELECT schema_name, table_name FROM duckdb_columns() WHERE schema_name IN ('nights', 'ops') " +
      "GROUP BY ALL HAVING bool_or(column_name = 'content_id') AND NOT bool_or(column_name = 'position')",
  )
  const counts = yield* Effect.forEach(tables, ({ schema_name, table_name }) =>
    numberOf(
      connection,
      `SELECT count(*) FROM ${identifier(String(schema_name))}.${identifier(String(table_name))}`,
    ),
  )
  return counts.reduce((sum, n) => sum + n, 0)
})

export const readPublished = (output: string): Promise<Published> =>
  Effect.gen(function* () {
    const duckdb = yield* DuckDb
    const connection = yield* duckdb.open({ path: join(output, "nightjar.duckdb"), access: "read-only" })
    const outcomes = yield* connection.rows(
      "SELECT concat_ws(' ', outcome, reason) AS ending, count(*)::INTEGER AS n FROM ops.tasks GROUP BY 1 ORDER BY 1",
    )
    return {
      outcomes: Object.fromEntries(outcomes.map(({ ending, n }) => [String(ending), Number(n)])),
      executions: yield* numberOf(connection, "SELECT count(*) FROM ops.executions"),
      records: yield* countRecords(connection),
      deleted: yield* numberOf(
        connection,
        `SELECT count(*) FROM ops.deletions WHERE outcome = ${literal("deleted")}`,
      ),
    }
  }).pipe(Effect.scoped, Effect.provide(DuckDb.layer), Effect.runPromise)

const differs = (what: string, found: unknown, expected: unknown): ReadonlyArray<string> => {
  const [is, should] = [JSON.stringify(found), JSON.stringify(expected)]
  return is === should ? [] : [`${what}: ${is} instead of ${should}`]
}

const sorted = (counts: Readonly<Record<string, number>>) =>
  Object.entries(counts).toSorted(([a], [b]) => (a < b ? -1 : 1))

export const complaintsAbout = (
  expected: ExpectedNight,
  code: number | null,
  saw: ServiceSaw,
  published: Published,
): ReadonlyArray<string> => [
  ...differs("exit code", code, expected.exit_code),
  ...differs("tasks by end", sorted(published.outcomes), sorted(expected.outcomes)),
  ...differs("published executions", published.executions, saw.executions),
  ...differs("published records", published.records, expected.records),
  ...differs("deletions of executions that were there", published.deleted, saw.executions),
  ...differs("executions not deleted at the service", saw.notDeleted, 0),
  ...differs("rules of the service broken", saw.rulesBroken, 0),
]
