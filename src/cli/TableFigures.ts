/**
 * How full and how fresh each published table is: counts only, never a value. Two looks at each table; the
 * second one reads its newest night only, whatever the history holds.
 */
import { Effect, Schema } from "effect"
import { identifier } from "../base/SqlText.ts"
import type { TableFigures } from "../report/TablesPage.ts"
import { withPublished } from "./PublishedDatabase.ts"

/** Nights that a table's bars show. */
const nightsMax = 14

const Nights = Schema.Array(Schema.Struct({ run_date: Schema.String, rows: Schema.Int, of_all: Schema.Int }))
const Columns = Schema.Array(Schema.Struct({ table_name: Schema.String, column_name: Schema.String }))
const Counts = Schema.Array(Schema.Record(Schema.String, Schema.NullOr(Schema.Int)))

const nightsSql = (table: string) => `
  SELECT run_date::VARCHAR AS run_date, count(*)::BIGINT AS rows,
    (sum(count(*)) OVER ())::BIGINT AS of_all
  FROM ${identifier(table)} GROUP BY run_date ORDER BY run_date DESC LIMIT ${nightsMax}`

const countsSql = (table: string, columns: ReadonlyArray<string>) => {
  const counts = columns.map((name, index) => {
    const column = identifier(name)
    return `count(${column}) AS f${index}, approx_count_distinct(${column}::VARCHAR) AS d${index}`
  })
  return `SELECT ${counts.join(", ")} FROM ${identifier(table)} WHERE run_date = $1::DATE`
}

/** Our own statements return these rows: others are a defect. */
const decoded = <A, I>(schema: Schema.Codec<A, I>, rows: unknown) =>
  Effect.orDie(Schema.decodeUnknownEffect(schema)(rows))

/** By table; undefined before anything is published. A table that is not published has no entry. */
export const tableFigures = Effect.fn("TableFigures.read")(function* (
  output: string,
  tables: ReadonlyArray<string>,
) {
  return yield* withPublished(output, ({ rows }) =>
    Effect.gen(function* () {
      const there = yield* decoded(
        Columns,
        yield* rows("SELECT table_name, column_name FROM duckdb_columns() WHERE schema_name = 'main'"),
      )
      const columnsOf = Map.groupBy(there, ({ table_name }) => table_name)
      const figures = new Map<string, TableFigures>()
      for (const table of tables) {
        const columns = (columnsOf.get(table) ?? []).map(({ column_name }) => column_name)
        if (!columns.includes("run_date")) continue
        const nights = yield* decoded(Nights, yield* rows(nightsSql(table)))
        const [newest] = nights
        const counted =
          newest === undefined
            ? undefined
            : (yield* decoded(Counts, yield* rows(countsSql(table, columns), [newest.run_date])))[0]
        figures.set(table, {
          rows: newest?.of_all ?? 0,
          nights,
          columns: new Map(
            columns.map((name, index) => [
              name,
              { filled: counted?.[`f${index}`] ?? 0, distinct: counted?.[`d${index}`] ?? 0 },
            ]),
          ),
        })
      }
      return figures
    }),
  )
})
