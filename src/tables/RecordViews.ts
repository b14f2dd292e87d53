/**
 * What is current in each record table, and since when: `<table>_latest` and `<table>_history`. A kind of
 * record (its product and sub_family) is answered by a run for a customer and engine if every feature that
 * feeds it succeeded, or if one did and the run has records of that kind: what only failed features feed
 * stays as it was. If nothing requested feeds it, any feature of the task may. A child follows its record.
 */
import { identifier, literal } from "../base/DuckDbFailed.ts"
import { column } from "../records/Columns.ts"
import type { ColumnSpec, TableSpec } from "../records/Columns.ts"
import type { RecordFamily } from "../records/RecordSchema.ts"
import { childTable, familyTable, otherRecordsTable, rejectedRecordsTable } from "../records/RecordTables.ts"
import { features as featureCodes } from "../service/Vocabulary.ts"
import { productsOf } from "./CoverageRows.ts"
import { customer, engine, text } from "./SystemTables.ts"

// A published view: its definition, and the columns that dictionary and comments describe. A view costs a
// statement for itself and one for each column's comment, and nothing that grows with the history.

export interface View {
  readonly name: string
  readonly comment: string
  readonly columns: ReadonlyArray<ColumnSpec>
  /** What identifies a row, where the view's own definition makes sure of it. */
  readonly key?: ReadonlyArray<string>
  /** A query with exactly these columns. */
  readonly sql: string
}

/**
 * Runs in the order in which they began, whatever their dates and clocks; the first has number 1. A rerun of
 * an older night reads what is true when it begins, so `read_date` is its own date or that of a newer night
 * before it: it never goes back.
 */
export const runsInOrder =
  "SELECT run_id, run_date, row_number() OVER began AS nth, " +
  "max(run_date) OVER began AS read_date FROM runs " +
  "WINDOW began AS (ORDER BY coalesce(sequence, 0), started_at, run_id ROWS UNBOUNDED PRECEDING)"

/** Sessions that were only read have no engine: each of them is its own newest. */
export const aloneSql = (table: string): string =>
  `CASE WHEN ${table}.engine_reference IS NULL THEN ${table}.session_id END`

/** Equal, or both NULL, in each of these columns. */
export const sameSql = (left: string, right: string, columns: ReadonlyArray<string>): string =>
  columns.map((name) => `${left}.${name} IS NOT DISTINCT FROM ${right}.${name}`).join(" AND ")

const valuesSql = (rows: ReadonlyArray<ReadonlyArray<string>>): string =>
  `VALUES ${rows.map((row) => `(${row.map(literal).join(", ")})`).join(", ")}`

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

const recordSources = (families: ReadonlyArray<RecordFamily>): ReadonlyArray<RecordSource> => [
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

// `changes(earlier, later)`: what differs between two runs or dates, record by record, over the histories of
// all record tables. A record that the later run could not read is unchanged, not gone, and one that it may
// have rejected is called so. Two contents are the same record if its family's business key is equal; without
// a key, one is gone and the other is added.

const changeColumns: ReadonlyArray<ColumnSpec> = [
  text("table_name", "The table of the record."),
  text(
    "change",
    "added, changed, gone or rejected: rejected is a record that is missing later, when records were " +
      "rejected that it may be one of (see rejected_records).",
  ),
  customer,
  engine,
  text("product", "Product of the record."),
  text("sub_family", "Family of the record."),
  column("record_key", "JSON", "Business key of the record; NULL if its family has none."),
  column(
    "changed_columns",
    "VARCHAR[]",
    "Columns and lists that differ; NULL unless the record was changed.",
  ),
  column("before", "JSON", "The record at the earlier time, with its lists; NULL if it was added."),
  column("after", "JSON", "The record at the later time, with its lists; NULL if it is gone or rejected."),
  text("run_id", "The run that first had the change."),
]

/** `{'name': alias.name, …}`: a struct of these columns. */
const structOf = (alias: string, names: ReadonlyArray<string>): string =>
  `{${names.map((name) => `${literal(name)}: ${alias}.${identifier(name)}`).join(", ")}}`

const versionsSql = (
  table: string,
  { key, record, join = "" }: { readonly key: string; readonly record: string; readonly join?: string },
): string => `
  SELECT ${literal(table)} AS table_name, h.customer_id, h.engine_reference, ${aloneSql("h")} AS alone,
    h.product, h.sub_family, h.content_id, h.since_run_id, h.until_run_id, s.nth AS since, u.nth AS until,
    ${key} AS record_key, ${record} AS record
  FROM ${identifier(`${table}_history`)} AS h
    JOIN ordered AS s ON s.run_id = h.since_run_id
    LEFT JOIN ordered AS u ON u.run_id = h.until_run_id ${join}`

/** Of tables that have records as they arrived. */
const whole = { key: "CAST(NULL AS JSON)", record: "h.record" }

const namesOf = (columns: ReadonlyArray<ColumnSpec>, except: ReadonlyArray<string>): ReadonlyArray<string> =>
  columns.map(({ name }) => name).filter((name) => !recordLineage.includes(name) && !except.includes(name))

/** Children are part of the record that they change. */
const familyVersions = (family: RecordFamily): string => {
  const { name, columns } = familyTable(family)
  const own = namesOf(columns, family.fetched).map((each) => `${literal(each)}: h.${identifier(each)}`)
  const lists = family.children.map(({ field }, index) => `${literal(field)}: coalesce(c${index}.items, [])`)
  const joins = family.children.map((child, index) => {
    const spec = childTable(child)
    const items = `list(${structOf("r", namesOf(spec.columns, ["position"]))} ORDER BY r.position)`
    const key = ["run_id", "task_id", "session_id", "record_id"]
    return `LEFT JOIN (
      SELECT ${key.map((each) => `r.${each}`).join(", ")}, ${items} AS items
      FROM ${identifier(spec.name)} AS r GROUP BY ALL
    ) AS c${index} ON ${sameSql(`c${index}`, "h", key)}`
  })
  const key = family.key.length === 0 ? "CAST(NULL AS JSON)" : `to_json(${structOf("h", family.key)})`
  const record = `to_json({${[...own, ...lists].join(", ")}})`
  return versionsSql(name, { key, record, join: joins.join(" ") })
}

/** The number of the last run up to a run or a date: a rerun of an older night belongs to when it began. */
const momentSql = (parameter: string): string => `coalesce(
    (SELECT nth FROM ordered WHERE run_id = CAST(${parameter} AS VARCHAR)),
    CASE WHEN try_cast(CAST(${parameter} AS VARCHAR) AS DATE) IS NULL
      THEN CAST(error('changes: ' || CAST(${parameter} AS VARCHAR)
        || ' is neither a run nor a date') AS BIGINT)
      ELSE coalesce((SELECT max(nth) FROM ordered
        WHERE read_date <= try_cast(CAST(${parameter} AS VARCHAR) AS DATE)), 0) END)`

const changeSubject = ["table_name", "customer_id", "engine_reference", "alone", "product", "sub_family"]

/** Contents of one time that the other does not have; equal keys are numbered. */
const onlyIn = (here: string, there: string): string => `
  SELECT *, row_number() OVER (
    PARTITION BY ${[...changeSubject, "pair_key"].join(", ")} ORDER BY content_id) AS number
  FROM (SELECT *, coalesce(CAST(record_key AS VARCHAR), content_id) AS pair_key FROM ${here}) AS l
  WHERE NOT EXISTS (SELECT 1 FROM ${there} AS o WHERE ${sameSql("o", "l", [...changeSubject, "content_id"])})`

/** What was rejected at the later time and not at the earlier one; a name that cannot be read is NULL. */
const refusedSql = `
  SELECT DISTINCT customer_id, engine_reference, alone, product, sub_family
  FROM (${versionsSql(rejectedRecordsTable.name, whole)}) AS v, moments
  WHERE since <= b AND (until IS NULL OR until > b) AND NOT (since <= a AND (until IS NULL OR until > a))`

/** A rejected record may have been any of its customer's whose product and family it does not contradict. */
const isRefused = (lost: string): string => `EXISTS (
    SELECT 1 FROM refused AS r WHERE ${sameSql("r", lost, ["customer_id", "engine_reference", "alone"])}
      AND coalesce(r.product = ${lost}.product, true) AND coalesce(r.sub_family = ${lost}.sub_family, true))`

const changesSql = (families: ReadonlyArray<RecordFamily>): string => `
  WITH ordered AS (${runsInOrder}),
  moments AS (SELECT ${momentSql("earlier")} AS a, ${momentSql("later")} AS b),
  versions AS (${[...families.map(familyVersions), versionsSql(otherRecordsTable.name, whole)].join(
    " UNION ALL ",
  )}),
  early AS (SELECT v.* FROM versions AS v, moments WHERE since <= a AND (until IS NULL OR until > a)),
  late AS (SELECT v.* FROM versions AS v, moments WHERE since <= b AND (until IS NULL OR until > b)),
  refused AS (${refusedSql}),
  lost AS (SELECT *, ${isRefused("l")} AS is_refused FROM (${onlyIn("early", "late")}) AS l),
  found AS (${onlyIn("late", "early")})
  SELECT ${changeSubject
    .filter((name) => name !== "alone")
    .map((name) => `coalesce(l.${name}, f.${name}) AS ${name}`)
    .toSpliced(
      1,
      0,
      "CASE WHEN l.content_id IS NULL THEN 'added' " +
        "WHEN f.content_id IS NOT NULL THEN 'changed' " +
        "WHEN l.is_refused THEN 'rejected' ELSE 'gone' END AS change",
    )
    .join(", ")},
    coalesce(l.record_key, f.record_key) AS record_key,
    CASE WHEN l.content_id IS NOT NULL AND f.content_id IS NOT NULL THEN list_filter(json_keys(f.record),
      lambda name: json_extract(l.record, '$.' || name) IS DISTINCT FROM json_extract(f.record, '$.' || name))
      END AS changed_columns,
    l.record AS before, f.record AS after, coalesce(f.since_run_id, l.until_run_id) AS run_id
  FROM lost AS l FULL JOIN found AS f ON ${sameSql("l", "f", [...changeSubject, "pair_key", "number"])}`

export const changesMacro = (families: ReadonlyArray<RecordFamily>): View => ({
  name: "changes",
  comment:
    "What was added, changed, gone or rejected between two runs or dates: " +
    "SELECT * FROM changes('2026-11-20', '2026-11-21'). A date stands for its last run. " +
    "A record is gone only if the feature that feeds it succeeded later.",
  columns: changeColumns,
  sql: changesSql(families),
})
