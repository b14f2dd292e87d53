/**
 * `changes(earlier, later)`: what differs between two runs or dates, record by record, over the histories of
 * all record tables. A record that the later run could not read is unchanged, not gone, and one that it may
 * have rejected is called so. Two contents are the same record if its family's business key is equal; without
 * a key, one is gone and the other is added.
 */
import { identifier, literal } from "../base/DuckDbFailed.ts"
import { column } from "../records/Columns.ts"
import type { ColumnSpec } from "../records/Columns.ts"
import { childTable, familyTable, otherRecordsTable, rejectedRecordsTable } from "../records/RecordTables.ts"
import type { RecordFamily } from "../records/RecordSchema.ts"
import { recordLineage } from "./RecordViews.ts"
import { customer, engine, text } from "./SystemColumns.ts"
import { aloneSql, runsInOrder, sameSql } from "./View.ts"
import type { View } from "./View.ts"

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

const subject = ["table_name", "customer_id", "engine_reference", "alone", "product", "sub_family"]

/** Contents of one time that the other does not have; equal keys are numbered. */
const onlyIn = (here: string, there: string): string => `
  SELECT *, row_number() OVER (
    PARTITION BY ${[...subject, "pair_key"].join(", ")} ORDER BY content_id) AS number
  FROM (SELECT *, coalesce(CAST(record_key AS VARCHAR), content_id) AS pair_key FROM ${here}) AS l
  WHERE NOT EXISTS (SELECT 1 FROM ${there} AS o WHERE ${sameSql("o", "l", [...subject, "content_id"])})`

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
  SELECT ${subject
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
  FROM lost AS l FULL JOIN found AS f ON ${sameSql("l", "f", [...subject, "pair_key", "number"])}`

export const changesMacro = (families: ReadonlyArray<RecordFamily>): View => ({
  name: "changes",
  comment:
    "What was added, changed, gone or rejected between two runs or dates: " +
    "SELECT * FROM changes('2026-11-20', '2026-11-21'). A date stands for its last run. " +
    "A record is gone only if the feature that feeds it succeeded later.",
  columns: changeColumns,
  sql: changesSql(families),
})
