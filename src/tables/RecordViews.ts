/**
 * What is current in each record table, and since when: `<table>_latest` and `<table>_history`. A kind of
 * record (its product and sub_family) is answered by a run for a customer and engine if every feature that
 * feeds it succeeded, or if one did and the run has records of that kind: what only failed features feed
 * stays as it was. If nothing requested feeds it, any feature of the task may. A child follows its record.
 */
import { features as featureCodes } from "../service/Vocabulary.ts"
import { identifier } from "../base/DuckDbFailed.ts"
import { column } from "../records/Columns.ts"
import type { ColumnSpec, TableSpec } from "../records/Columns.ts"
import { childTable, familyTable, otherRecordsTable, rejectedRecordsTable } from "../records/RecordTables.ts"
import type { RecordFamily } from "../records/RecordSchema.ts"
import { productsOf } from "./FeatureProducts.ts"
import { aloneSql, runsInOrder, sameSql, valuesSql } from "./View.ts"
import type { View } from "./View.ts"

/** A table whose rows are records; `kinds` is a query for its kinds and the feature that feeds each. */
interface RecordSource {
  readonly spec: TableSpec
  readonly kinds: string
  readonly children: ReadonlyArray<TableSpec>
}

const familySource = (family: RecordFamily): RecordSource => ({
  spec: familyTable(family),
  kinds: valuesSql(
    // A newer run that answers what was the family's shows that its earlier rows are no longer current.
    [...family.subFamilies, ...(family.former ?? [])].flatMap((sub_family) =>
      family.features.map((feature) => [family.product, sub_family, feature]),
    ),
  ),
  children: family.children.map(childTable),
})

/** A product that no feature is known to feed may come from any: its `feature` is NULL. */
const mixedSource = (spec: TableSpec, families: ReadonlyArray<RecordFamily>): RecordSource => {
  const codes = new Set([...featureCodes, ...families.flatMap(({ features }) => features)])
  const feeding = [...codes].flatMap((code) =>
    productsOf(code, families).map((product) => [product, code] as const),
  )
  return {
    spec,
    kinds: `SELECT DISTINCT t.product, t.sub_family, f.feature FROM ${identifier(spec.name)} AS t
      LEFT JOIN (${valuesSql(feeding)}) AS f(product, feature) ON f.product = t.product`,
    children: [],
  }
}

export const recordSources = (families: ReadonlyArray<RecordFamily>): ReadonlyArray<RecordSource> => [
  ...families.map(familySource),
  mixedSource(otherRecordsTable, families),
  mixedSource(rejectedRecordsTable, families),
]

/** What every row of a record says about where it comes from; all else is the record. */
export const recordLineage: ReadonlyArray<string> = [
  "run_id",
  "run_date",
  "task_id",
  "execution_id",
  "session_id",
  "customer_id",
  "engine_reference",
  "record_id",
  "content_id",
  "product",
  "sub_family",
]

const subject = ["customer_id", "engine_reference", "alone"]
const kind = ["product", "sub_family"]

const columnsOf = (alias: string, names: ReadonlyArray<string>): string =>
  names.map((name) => `${alias}.${name}`).join(", ")

/**
 * `answered`: a row per run, customer, engine and kind that the run answered, with the session that did.
 * Most are answered as a whole; the rows of the table itself are asked only about the others.
 */
const answeredSql = ({ spec, kinds }: RecordSource): string => {
  const task = ["run_id", ...subject]
  const rows = `SELECT *, ${aloneSql("t")} AS alone FROM ${identifier(spec.name)} AS t`
  return `
  ordered AS (${runsInOrder}),
  kinds(product, sub_family, feature) AS (${kinds}),
  told AS (
    SELECT c.*, ${aloneSql("c")} AS alone, o.nth, o.read_date, c.outcome = 'succeeded' AS fine
    FROM coverage AS c JOIN ordered AS o USING (run_id)
  ),
  tasks_told AS (
    SELECT ${columnsOf("told", task)}, read_date, nth,
      any_value(session_id) AS session_id, bool_or(fine) AS partly
    FROM told GROUP BY ALL
  ),
  fed AS (
    SELECT t.*, k.product, k.sub_family FROM told AS t JOIN kinds AS k ON k.feature = t.feature
    UNION ALL
    SELECT t.*, k.product, k.sub_family FROM told AS t JOIN kinds AS k ON k.feature IS NULL
    WHERE t.feature IS NOT NULL
  ),
  asked AS (
    SELECT ${columnsOf("fed", [...task, ...kind])}, read_date, nth, any_value(session_id) AS session_id,
      bool_and(fine) AS whole, bool_or(fine) AS partly
    FROM fed GROUP BY ALL
  ),
  present AS (
    SELECT DISTINCT ${columnsOf("r", [...task, ...kind])} FROM (${rows}) AS r
    WHERE NOT EXISTS (SELECT 1 FROM asked AS a WHERE a.whole AND ${sameSql("r", "a", [...task, ...kind])})
  ),
  answered AS (
    SELECT ${columnsOf("asked", [...task, ...kind])}, read_date, nth, session_id FROM asked WHERE whole
    UNION ALL
    SELECT ${columnsOf("p", [...task, ...kind])}, t.read_date, t.nth, t.session_id
    FROM present AS p JOIN tasks_told AS t ON ${sameSql("p", "t", task)}
      LEFT JOIN asked AS a ON ${sameSql("p", "a", [...task, ...kind])}
    WHERE coalesce(a.partly, t.partly)
  )`
}

/** Of a task with several attempts, the session whose results were read last. */
const ofAnswer = (row: string, answer: string): string =>
  `${row}.run_id = ${answer}.run_id AND ${aloneSql(row)} IS NOT DISTINCT FROM ${answer}.alone
    AND ${sameSql(row, answer, ["customer_id", "engine_reference", ...kind])}
    AND (${answer}.session_id IS NULL OR ${row}.session_id = ${answer}.session_id)`

const isCurrent = column(
  "is_current_customer",
  "BOOLEAN",
  "False for a customer whom the newest run of no job asked for; NULL for a session without a customer.",
)

const current = `LEFT JOIN (SELECT customer_id, is_current AS is_current_customer FROM customers) AS c
    ON c.customer_id = r.customer_id`

const latestOf = (source: RecordSource): View => ({
  name: `${source.spec.name}_latest`,
  comment:
    `Rows of ${source.spec.name} that are current: of the newest run in which the feature that feeds them ` +
    "succeeded, for each customer and engine, however often a night was repeated.",
  columns: [...source.spec.columns, isCurrent],
  sql: `WITH ${answeredSql(source)},
    newest AS (
      SELECT * FROM answered
      QUALIFY row_number() OVER (PARTITION BY ${[...subject, ...kind].join(", ")} ORDER BY nth DESC) = 1
    )
    SELECT r.*, c.is_current_customer FROM ${identifier(source.spec.name)} AS r
      JOIN newest AS n ON ${ofAnswer("r", "n")} ${current}`,
})

/** What a child's row shares with its record. */
const recordKey = ["run_id", "task_id", "session_id", "record_id"]

const childLatestOf = (parent: TableSpec, child: TableSpec): View => ({
  name: `${child.name}_latest`,
  comment: `Rows of ${child.name} that belong to the rows of ${parent.name}_latest.`,
  columns: [...child.columns, isCurrent],
  sql: `SELECT r.*, p.is_current_customer FROM ${identifier(child.name)} AS r
    JOIN ${identifier(`${parent.name}_latest`)} AS p ON ${sameSql("r", "p", recordKey)}`,
})

const validity: ReadonlyArray<ColumnSpec> = [
  column(
    "valid_from",
    "DATE",
    "Date of the first run that had the record with this content; " +
      "of a rerun of an older night, that of the " +
      "newest night before it.",
  ),
  column(
    "valid_to",
    "DATE",
    "Date, counted in the same way, of the first run that no longer had it and could have had; NULL while " +
      "current.",
  ),
  column("since_run_id", "VARCHAR", "The run of `valid_from`."),
  column("until_run_id", "VARCHAR", "The run of `valid_to`; NULL while current."),
]

const historyComment = (name: string): string =>
  `Rows of ${name} over time, one for each unbroken time in which a record had the same content; the row ` +
  "is the last that was seen. Content of a day: valid_from <= day and (valid_to is NULL or day < valid_to)."

const historyOf = (source: RecordSource): View => {
  const { spec } = source
  const version = [...subject, ...kind, "content_id"].join(", ")
  const names = spec.columns.map(({ name }) => `h.${identifier(name)}`).join(", ")
  return {
    name: `${spec.name}_history`,
    comment: historyComment(spec.name),
    columns: [...spec.columns, ...validity],
    sql: `WITH ${answeredSql(source)},
      numbered AS (
        SELECT *, row_number() OVER w AS answer,
          lead(read_date) OVER w AS next_date, lead(run_id) OVER w AS next_run
        FROM answered WINDOW w AS (PARTITION BY ${[...subject, ...kind].join(", ")} ORDER BY nth)
      ),
      seen AS (
        SELECT r.*, n.alone, n.answer, n.read_date, n.next_date, n.next_run FROM ${identifier(spec.name)} AS r
        JOIN numbered AS n ON ${ofAnswer("r", "n")}
      ),
      islands AS (
        SELECT *, answer - row_number() OVER (PARTITION BY ${version} ORDER BY answer) AS island FROM seen
      ),
      h AS (
        SELECT *, first_value(read_date) OVER i AS first_date, first_value(run_id) OVER i AS first_run
        FROM islands
        WINDOW i AS (PARTITION BY ${version}, island ORDER BY answer)
        QUALIFY row_number() OVER (PARTITION BY ${version}, island ORDER BY answer DESC) = 1
      )
      SELECT ${names}, h.first_date AS valid_from, h.next_date AS valid_to,
        h.first_run AS since_run_id, h.next_run AS until_run_id
      FROM h`,
  }
}

const childHistoryOf = (parent: TableSpec, child: TableSpec): View => ({
  name: `${child.name}_history`,
  comment: `Rows of ${child.name} that belong to the rows of ${parent.name}_history, with the same validity.`,
  columns: [...child.columns, ...validity],
  sql: `SELECT r.*, p.valid_from, p.valid_to, p.since_run_id, p.until_run_id
    FROM ${identifier(child.name)} AS r
    JOIN ${identifier(`${parent.name}_history`)} AS p ON ${sameSql("r", "p", recordKey)}`,
})

/** In the order of the tables; a child's views follow those of its record, which they refer to. */
export const recordViews = (families: ReadonlyArray<RecordFamily>): ReadonlyArray<View> =>
  recordSources(families).flatMap((source) => {
    const { spec, children } = source
    return [
      latestOf(source),
      ...children.map((child) => childLatestOf(spec, child)),
      historyOf(source),
      ...children.map((child) => childHistoryOf(spec, child)),
    ]
  })
