/**
 * The tests of a `sources.yml` as statements: what dbt's four own tests ask a database, written by hand after dbt's
 * documentation. Each returns a row for every failure.
 */
import { Predicate } from "effect"
import type { dbtSources } from "../../src/tables/DataContract.ts"

/** Tables of one schema of the database. */
export type DbtSource = ReturnType<typeof dbtSources>["sources"][number]

export interface DbtStatement {
  /** `ops.tasks unique row("run_id", "task_id")` */
  readonly test: string
  readonly sql: string
}

type Given = Readonly<Record<string, unknown>>

const sqlOf = (name: string, from: string, column: string, given: Given): string => {
  if (name === "not_null") return `SELECT ${column} FROM ${from} WHERE ${column} IS NULL`
  if (name === "unique")
    return `SELECT ${column} AS u, count(*) AS n FROM ${from} WHERE ${column} IS NOT NULL GROUP BY u HAVING n > 1`
  if (name === "accepted_values") {
    const values = (given["values"] as ReadonlyArray<string>).map((value) => `'${value}'`).join(", ")
    return `SELECT v FROM (SELECT ${column} AS v FROM ${from} GROUP BY v) WHERE v NOT IN (${values})`
  }
  const [, schema = "main", parent] =
    /^source\('nightjar(?:_(\w+))?', '(\w+)'\)$/.exec(String(given["to"])) ?? []
  if (name !== "relationships" || parent === undefined) throw new Error(`unknown test ${name}`)
  return `WITH child AS (SELECT ${column} AS c FROM ${from} WHERE ${column} IS NOT NULL),
    parent AS (SELECT ${String(given["field"])} AS p FROM nightjar.${schema}.${parent})
    SELECT c FROM child LEFT JOIN parent ON c = p WHERE p IS NULL`
}

const statementOf = (
  schema: string,
  table: string,
  column: string | undefined,
  test: unknown,
): DbtStatement => {
  const [[name, told] = ["", {}]] = Predicate.isString(test) ? [[test, {}]] : Object.entries(test as Given)
  const { arguments: given = {}, config } = told as { arguments?: Given; config?: { where: string } }
  const on = column ?? String(given["column_name"])
  const relation = `nightjar.${schema}.${table}`
  const from = config === undefined ? relation : `(SELECT * FROM ${relation} WHERE ${config.where}) AS r`
  return { test: `${schema}.${table} ${name} ${on}`, sql: sqlOf(name, from, on, given) }
}

export const dbtStatements = (sources: ReadonlyArray<DbtSource>): ReadonlyArray<DbtStatement> =>
  sources.flatMap(({ schema, tables }) =>
    tables.flatMap(({ name, data_tests = [], columns }) => [
      ...data_tests.map((test) => statementOf(schema, name, undefined, test)),
      ...columns.flatMap((column) =>
        (column.data_tests ?? []).map((test) => statementOf(schema, name, column.name, test)),
      ),
    ]),
  )
