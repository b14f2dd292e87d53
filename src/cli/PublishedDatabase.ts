/**
 * The published database, opened for reading by every command that looks into the tables. No statement can
 * open a file, not even this one or its log.
 */
import { existsSync } from "node:fs"
import { Duration, Effect, Schema } from "effect"
import type { Connection } from "../base/DuckDb.ts"
import { identifier, type DuckDbFailed } from "../base/DuckDbFailed.ts"
import { withinMachineTime } from "../base/Time.ts"
import { Wiring } from "./Wiring.ts"
import { CoverageCount, EngineNight, TableChanges, dataChanges } from "../report/Report.ts"
import type { PublishedFacts } from "../report/Report.ts"
import type { TableRows } from "../report/TablesPage.ts"
import { cutMark } from "../service/BodyBounds.ts"

/** Undefined, without `use`, if nothing is published in the folder yet. */
export const withPublished = Effect.fnUntraced(function* <A, E, R>(
  output: string,
  use: (connection: Connection) => Effect.Effect<A, E, R>,
) {
  const path = `${output}/nightjar.duckdb`
  if (!existsSync(path)) return undefined
  const { database } = yield* Wiring
  const { DuckDb } = yield* Effect.promise(() => import("../base/DuckDb.ts"))
  const opened = Effect.flatMap(DuckDb, ({ open }) => open({ path, access: "read-only", files: "none" }))
  return yield* Effect.flatMap(opened, use).pipe(Effect.scoped, Effect.provide(database))
})

/** An expression as text, or its beginning and how long it is: a cell may hold megabytes. */
const shortSql = (expression: string, charactersMax: number): string => {
  const text = `CAST(${expression} AS VARCHAR)`
  const length = `length(${text})`
  const mark = `'${cutMark(`' || ${length} || '`)}'`
  return `CASE WHEN ${length} > ${charactersMax}
    THEN left(${text}, ${charactersMax}) || ${mark} ELSE ${text} END`
}

/** The runs that the engines' lines cover. */
const runsMax = 30
/** Far more engines and features than any job has. */
const rowsMax = 50_000

const enginesSql = `
  WITH chosen AS (
    SELECT run_id, started_at FROM ops.runs
    WHERE job = $1 AND started_at <= (SELECT started_at FROM ops.runs WHERE run_id = $2)
    ORDER BY started_at DESC, run_id DESC LIMIT ${runsMax}
  ), timed AS (
    SELECT run_id, chosen.started_at AS night, engine_reference, outcome,
      CASE WHEN closed_at >= tasks.started_at
        THEN epoch_ms(closed_at) - epoch_ms(tasks.started_at) END AS took
    FROM ops.tasks JOIN chosen USING (run_id) WHERE engine_reference IS NOT NULL
  )
  SELECT run_id, engine_reference, count(*)::INTEGER AS tasks,
    count(*) FILTER (outcome <> 'succeeded')::INTEGER AS not_succeeded,
    quantile_cont(took, 0.5)::DOUBLE AS p50_ms, quantile_cont(took, 0.95)::DOUBLE AS p95_ms
  FROM timed GROUP BY run_id, night, engine_reference
  ORDER BY night, run_id, engine_reference LIMIT ${rowsMax}`

const coverageSql = `
  SELECT engine_reference, coalesce(feature, '') AS feature, outcome, count(*)::INTEGER AS customers
  FROM ops.coverage WHERE run_id = $1 AND engine_reference IS NOT NULL
  GROUP BY ALL ORDER BY ALL LIMIT ${rowsMax}`

/** The night before, as of the run; a rerun of an older night is compared with the newest one. */
const sinceSql = `
  SELECT earlier.run_id AS since FROM ops.runs AS own LEFT JOIN ops.runs AS earlier
    ON earlier.job = own.job AND coalesce(earlier.sequence, 0) < coalesce(own.sequence, 0)
  WHERE own.run_id = $1
  ORDER BY earlier.run_date <> own.run_date DESC NULLS LAST, earlier.sequence DESC NULLS LAST LIMIT 1`

/** Without them, the report has everything else. */
const changesWithin = Duration.seconds(30)
const changedRecordsMax = 10

const countsOfChanges = dataChanges
  .map((change) => `count(*) FILTER (change = '${change}')::INTEGER AS ${change}`)
  .join(", ")

/** One look at all tables; only the records that are shown are kept, and no value of any. */
const changesSql = `
  SELECT table_name AS "table", ${countsOfChanges},
    min_by(
      struct_pack(change, customer_id, engine_reference, columns := coalesce(changed_columns, [])),
      struct_pack(
        kind := list_position([${dataChanges.map((change) => `'${change}'`).join(", ")}], change),
        customer_id, engine_reference, record_key := CAST(record_key AS VARCHAR)),
      ${changedRecordsMax}) AS records
  FROM changes($1, $2) WHERE starts_with(run_id, $3 || '.')
  GROUP BY table_name ORDER BY table_name LIMIT ${rowsMax}`

const Since = Schema.Struct({ since: Schema.NullOr(Schema.String) })

const rowsAs = <A>(row: Schema.ConstraintDecoder<A>, rows: Effect.Effect<unknown, DuckDbFailed>) =>
  Effect.flatMap(rows, Schema.decodeUnknownEffect(Schema.Array(row)))

const nightChanges = Effect.fnUntraced(function* (
  { rows }: Connection,
  { job, run_id, hasPseudonyms }: ReportedRun,
) {
  const [found] = yield* rowsAs(Since, rows(sinceSql, [run_id]))
  if (found === undefined) return undefined
  const since = found.since ?? undefined
  const all = since === undefined ? [] : yield* rowsAs(TableChanges, rows(changesSql, [since, run_id, job]))
  const tables = hasPseudonyms ? all.map((one) => ({ ...one, records: [] })) : all
  return { since, tables, hasPseudonyms }
})

interface ReportedRun {
  readonly job: string
  readonly run_id: string
  readonly hasPseudonyms: boolean
}

/** Fails if the database cannot be read; undefined if nothing is published yet. */
export const publishedFacts = Effect.fn("PublishedFacts.read")(function* (output: string, run: ReportedRun) {
  const { job, run_id } = run
  return yield* withPublished(
    output,
    Effect.fnUntraced(function* (connection) {
      const { rows } = connection
      const engines = yield* rowsAs(EngineNight, rows(enginesSql, [job, run_id]))
      const coverage = yield* rowsAs(CoverageCount, rows(coverageSql, [run_id]))
      const changes = yield* nightChanges(connection, run).pipe(
        withinMachineTime(changesWithin),
        Effect.orElseSucceed(() => undefined),
      )
      return { changes, engines, coverage } satisfies PublishedFacts
    }),
  )
})

const Column = Schema.Struct({ table_name: Schema.String, column_name: Schema.String })

const columnsOfMain = Effect.fnUntraced(function* ({ rows }: Connection) {
  const sql = `SELECT table_name, column_name FROM duckdb_columns()
    WHERE schema_name = 'main' ORDER BY table_name, column_index`
  const byTable = Map.groupBy(yield* ourRows(Column, rows(sql)), ({ table_name }) => table_name)
  return (table: string) => (byTable.get(table) ?? []).map(({ column_name }) => column_name)
})

/** Our own statements return these rows: others are a defect. */
export const ourRows = <A>(row: Schema.ConstraintDecoder<A>, rows: Effect.Effect<unknown, DuckDbFailed>) =>
  Effect.flatMap(rows, (found) => Effect.orDie(Schema.decodeUnknownEffect(Schema.Array(row))(found)))

const firstRowsMax = 10
const cellMax = 200
/** A model may be any query. */
const readWithin = Duration.seconds(10)

/** `isModel`: its rows stay in the order that its query has given them. */
export interface Looked {
  readonly name: string
  readonly isModel: boolean
}

const rowsOfTable = Effect.fnUntraced(function* (
  connection: Connection,
  { name, isModel }: Looked,
  columns: ReadonlyArray<string>,
) {
  const table = `main.${identifier(name)}`
  const [all] = yield* connection.rows(`SELECT count(*)::BIGINT AS count FROM ${table}`)
  const count = Number(all?.["count"] ?? 0)
  const cells = columns.map((column, index) => `${shortSql(identifier(column), cellMax)} AS c${index}`)
  const order = isModel ? "" : "ORDER BY 1, 2, 3, 4"
  const found = yield* connection.rows(
    `SELECT ${cells.join(", ")} FROM (SELECT * FROM ${table} ${order} LIMIT ${firstRowsMax})`,
  )
  const text = (cell: unknown) => (typeof cell === "string" ? cell : null)
  const rows = found.map((row) => columns.map((_, index) => text(row[`c${index}`])))
  return { count, columns, rows } satisfies TableRows as TableRows
})

/** Few rows, parts of cells. Undefined before anything is published; an unreadable table has no entry. */
export const firstRows = Effect.fn("FirstRows.read")(function* (
  output: string,
  tables: ReadonlyArray<Looked>,
) {
  return yield* withPublished(
    output,
    Effect.fnUntraced(function* (connection) {
      const columnsOf = yield* columnsOfMain(connection)
      const found = new Map<string, TableRows>()
      for (const table of tables) {
        const columns = columnsOf(table.name)
        const rows = yield* rowsOfTable(connection, table, columns).pipe(
          withinMachineTime(readWithin),
          Effect.orElseSucceed(() => undefined),
        )
        if (rows !== undefined) found.set(table.name, rows)
      }
      return found
    }),
  )
})
