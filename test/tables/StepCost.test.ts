/**
 * Very many records of one business key, or of one content, in one body: nothing of a step, of taking it back
 * or of the views is a product of them. What is counted are the rows between the operators of each statement,
 * as DuckDB tells them, so that it is the same on a busy machine.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { DuckDb } from "../../src/base/DuckDb.ts"
import type { Connection } from "../../src/base/DuckDb.ts"
import { dimensions } from "../../src/tables/Dimensions.ts"
import { recordRelations } from "../../src/tables/RecordStore.ts"
import { stepRun, unstepNewest } from "../../src/tables/Step.ts"
import { begin, families, tables } from "./papers.ts"

/** Of each of four customers. */
const each = 1_000
const records = 4 * each
/** Of each record there are two lines and two versions; a product of one customer's alone is a million. */
const rowsMax = 12 * records
/** A statement that names each record is as slow as a product, and so is one for each of them. */
const lengthMax = 20_000
const statementsMax = 600

interface Operator {
  readonly operator_cardinality?: number
  readonly operator_type?: string
  readonly children?: ReadonlyArray<Operator>
}

const largest = (one: Operator): number =>
  Math.max(one.operator_cardinality ?? 0, ...(one.children ?? []).map(largest))

interface Statement {
  readonly sql: string
  readonly rows: number
}

/** Runs each statement of its own under the eyes of DuckDB, and remembers what passed through it. */
const watched = (connection: Connection, seen: Array<Statement>): Connection => {
  const watch: Connection["run"] = Effect.fnUntraced(function* (sql, parameters) {
    const [row] = yield* connection.rows(`EXPLAIN (ANALYZE, FORMAT JSON) ${sql}`, parameters)
    seen.push({ sql, rows: largest(JSON.parse(String(row?.["explain_value"]))) })
    return 0
  })
  return {
    ...connection,
    run: (sql, parameters) =>
      Effect.as(
        Effect.forEach(
          sql.split(/;\s*(?:\n|$)/).filter((one) => one.trim() !== ""),
          (one) => watch(one, parameters),
        ),
        0,
      ),
    rows: (sql, parameters) => Effect.andThen(watch(sql, parameters), connection.rows(sql, parameters)),
  }
}

/** The business key and the name of the record `i` of a customer in a night. */
const customers: ReadonlyArray<readonly [key: string, name: (night: number) => string]> = [
  ["'k'", (night) => `'n${night} ' || i`],
  ["'k' || i % 40", (night) => `'n${night} ' || i`],
  ["'k'", (night) => `'n${night}'`],
  ["NULL", (night) => `'n${night} ' || i % 100`],
]

/** A night whose records are, by name, those of the night `content`. */
const put = (connection: Connection, night: number, content: number) => {
  const run = `'r-${night}' AS run_id, DATE '2026-01-0${night}' AS run_date`
  const bodies = customers.map(([key, nameOf], customer) => {
    const task = `${run}, 't-${customer}' AS task_id, 'c-${customer}' AS customer_id, 'e' AS engine_reference`
    const session = `'s-${night}-${customer}' AS session_id`
    const name = nameOf(content)
    const row = `${task}, 'x' AS execution_id, ${session}, md5('r' || i) AS record_id`
    const hash = `md5(${name}) AS content_id`
    const kept = `${row}, ${hash}, TIMESTAMPTZ '2026-01-0${night} 00:00:00+00' AS fetch_date`
    const all = `FROM range(${each}) AS r(i)`
    return `
    INSERT INTO ops.tasks BY NAME SELECT ${task}, ['paper_a', 'paper_b']::VARCHAR[] AS features;
    INSERT INTO ops.coverage BY NAME SELECT ${task}, ${session}, 'succeeded' AS outcome, feature
      FROM (VALUES ('paper_a'), ('paper_b')) AS f(feature);
    INSERT INTO ops.sessions BY NAME SELECT ${task}, ${session}, ${each} AS records;
    INSERT INTO ops.documents BY NAME SELECT ${row}, 'd' || i AS attachment_id ${all};
    INSERT INTO ops.rejected_records BY NAME SELECT ${row}, ${hash} ${all};
    INSERT INTO files.papers BY NAME SELECT ${kept}, 'paper' AS product, 'paper:id' AS sub_family,
      ${key} AS type, ${name} AS name ${all};
    INSERT INTO files.lines BY NAME SELECT ${row}, ${hash}, position, 'l' || i AS line
      ${all}, range(2) AS p(position);
    INSERT INTO files.other_records BY NAME SELECT ${kept}, 'p' AS product, 'p:s' AS sub_family,
      json_object('a', ${name}) AS record ${all}`
  })
  return connection.run(`INSERT INTO ops.runs BY NAME
    SELECT ${run}, 'a' AS job, 1 AS tasks, ${night} AS sequence, []::VARCHAR[] AS replaces;
    ${bodies.join(";")}`)
}

const step = (connection: Connection, night: number, names: ReadonlyArray<string>) =>
  stepRun(connection, tables, families, {
    run_id: `r-${night}`,
    sequence: night,
    interim: false,
    lost: new Set(),
    sources: new Map(
      names.map((name) => [name, `SELECT * FROM files.${name} WHERE run_id = 'r-${night}'`] as const),
    ),
  })

const all = ["papers", "lines", "other_records"]
const relations = [...recordRelations(tables), ...dimensions].map(({ schema, name }) => `${schema}.${name}`)
const questions = [
  ...relations,
  ...[1, 2, 3].map((night) => `changes('r-${night}', 'r-4')`),
  "changes('r-1', 'r-3')",
]

const nights = Effect.gen(function* () {
  const duckdb = yield* DuckDb
  const connection = yield* duckdb.open({ path: ":memory:", access: "read-write", threads: 1 })
  yield* begin(connection)
  // The second night has what the first had, the third has all changed, the last has none of it.
  const contents = [1, 1, 3, 4]
  for (const [index, content] of contents.entries()) yield* put(connection, index + 1, content)
  const seen: Array<Statement> = []
  const eyes = watched(connection, seen)
  for (const night of [1, 2, 3]) yield* step(eyes, night, all)
  yield* unstepNewest(eyes, tables, 3)
  yield* step(eyes, 3, all)
  yield* step(eyes, 4, [])
  for (const question of questions) yield* eyes.rows(`SELECT * FROM ${question}`)
  return seen
})

describe("very many records of one business key in one body", () => {
  it.effect("cost as much as there are of them: no statement is a product or names each", () =>
    Effect.gen(function* () {
      const seen = yield* nights
      assert.isAbove(Math.max(...seen.map(({ rows }) => rows)), records)
      assert.isBelow(seen.length, statementsMax)
      assert.deepStrictEqual(
        seen.filter(({ sql, rows }) => rows > rowsMax || sql.length > lengthMax),
        [],
      )
    }).pipe(Effect.scoped, Effect.provide(DuckDb.layer)),
  )
})
