/**
 * `changes(earlier, later)`: what differs between two runs or dates, record by record. What began since and
 * is current at the later one is set beside what was current at the earlier one and ended since. A record
 * that a run could not read is unchanged; one that may have been rejected is called so.
 */
import { identifier, literal } from "../base/DuckDbFailed.ts"
import { column, text, type ColumnSpec } from "../records/Columns.ts"
import { aloneSql, names, sameSql } from "./Answers.ts"
import { asLastRead, contentOf, itemSql, listName, stored, type KeptTable } from "./RecordStore.ts"
import { customer, engine } from "./SystemTables.ts"

export const changeColumns: ReadonlyArray<ColumnSpec> = [
  text("table_name", "own", "The table of the record."),
  text(
    "change",
    "own",
    "added, changed, gone or rejected: rejected is a record that is missing later, when records were " +
      "rejected that it may be one of (see ops.rejected_records).",
  ),
  customer,
  engine,
  column("record_key", "JSON", "clear", "Business key of the record; NULL if its family has none."),
  column(
    "changed_columns",
    "VARCHAR[]",
    "own",
    "Columns and lists that differ; NULL unless the record was changed.",
  ),
  column("before", "JSON", "clear", "The record at the earlier time, with its lists; NULL if it was added."),
  column(
    "after",
    "JSON",
    "clear",
    "The record at the later time, with its lists; NULL if it is gone or rejected.",
  ),
  text("product", "clear", "Product of the record."),
  text("sub_family", "clear", "Family of the record."),
  text("run_id", "own", "The run that brought the later content, or the first one without the record."),
]

/** A decimal is a text in JSON: a number there would lose digits. */
const cell = (alias: string, { name, type }: ColumnSpec): string =>
  type.startsWith("DECIMAL")
    ? `CAST(${alias}.${identifier(name)} AS VARCHAR)`
    : `${alias}.${identifier(name)}`

const cellsOf = (alias: string, columns: ReadonlyArray<ColumnSpec>): ReadonlyArray<string> =>
  columns.map((each) => `${identifier(each.name)} := ${cell(alias, each)}`)

/** The number of the last run up to a run or a date: a rerun of an older night belongs to when it began. */
const momentSql = (parameter: string): string => `coalesce(
    (SELECT seq FROM store._runs WHERE run_id = CAST(${parameter} AS VARCHAR)),
    CASE WHEN try_cast(CAST(${parameter} AS VARCHAR) AS DATE) IS NULL
      THEN CAST(error('changes: ' || CAST(${parameter} AS VARCHAR)
        || ' is neither a run nor a date') AS BIGINT)
      ELSE coalesce((SELECT max(seq) FROM store._runs
        WHERE e <= try_cast(CAST(${parameter} AS VARCHAR) AS DATE)), 0) END)`

/** The versions that one moment has and the other has not; with each list of the record as a cell. */
const sideOf = (table: KeptTable, where: string): string => {
  const lists = table.children.map((child, index) => {
    const items = `list(${itemSql(cellsOf("c", child.columns))} ORDER BY c.position)`
    return `, (SELECT coalesce(${items}, []) FROM ${stored(child.name)} AS c
      WHERE c._version = v._version) AS ${listName(index)}`
  })
  return `SELECT ${asLastRead("v", table)}${lists.join("")} FROM ${stored(table.name)} AS v, moments AS m
    WHERE v.valid_from IS NOT NULL AND ${where}`
}

/** What of one side the other has not: what is equal in these columns counts as often as it is there. */
const onlyIn = (columns: ReadonlyArray<string>, one: string, other: string): string => {
  const counted = (side: string) =>
    `(SELECT *, row_number() OVER (PARTITION BY ${names(columns)} ORDER BY _version) AS _nth FROM ${side})`
  return `SELECT o.* EXCLUDE (_nth) FROM ${counted(one)} AS o ANTI JOIN ${counted(other)} AS x
    ON ${sameSql("o", "x", ["_nth", ...columns])}`
}

/** `lost` and `found`: of one scope, equal contents are no change, whichever record of a key has them. */
const differing = (table: KeptTable, ended: string, begun: string): string => {
  const place = ["_scope"]
  const content = [...place, ...contentOf(table), ...table.children.map((_, index) => listName(index))]
  const hash = [...place, "content_id"]
  return `ended AS MATERIALIZED (${sideOf(table, ended)}), begun AS MATERIALIZED (${sideOf(table, begun)}),
    ended_anew AS MATERIALIZED (${onlyIn(hash, "ended", "begun")}),
    begun_anew AS MATERIALIZED (${onlyIn(hash, "begun", "ended")}),
    lost AS MATERIALIZED (${onlyIn(content, "ended_anew", "begun_anew")}),
    found AS MATERIALIZED (${onlyIn(content, "begun_anew", "ended_anew")})`
}

/**
 * `_match`: what each is set beside, which is the same record; or any that is left of the key, if the same
 * record has taken the content of another one of its key.
 */
const matched = (table: KeptTable, one: string, other: string): string => {
  const isSame = `EXISTS (FROM ${other} AS x WHERE x._scope = o._scope AND x.record_id = o.record_id)`
  if (table.key.length === 0) return `SELECT *, record_id AS _match FROM ${one}`
  return `SELECT * EXCLUDE (_same), CASE WHEN _same THEN record_id
      ELSE CAST(row_number() OVER (PARTITION BY ${names(["_scope", ...table.key])}, _same
        ORDER BY _version) AS VARCHAR) END AS _match
    FROM (SELECT *, ${isSame} AS _same FROM ${one} AS o)`
}

/**
 * `before`: the run before it that rejected the same; -1 if none did. What was rejected while a record was
 * there is another one. One row of those that may be the same: very many may be rejected in one night.
 */
const rejectedSql = `SELECT seq, customer_id, engine_reference, _alone, product, sub_family,
    min(before) AS before
  FROM (SELECT x.*, ${aloneSql("x")} AS _alone, r.seq, lag(r.seq, 1, -1) OVER (
      PARTITION BY x.customer_id, x.engine_reference, ${aloneSql("x")}, x.content_id
        ORDER BY r.seq) AS before
    FROM ops.rejected_records AS x JOIN store._runs AS r USING (run_id))
  GROUP BY ALL`

const changesOf = (table: KeptTable): string => {
  const own = [...table.columns, ...table.rest].filter(({ name }) => !table.fetched.includes(name))
  const lists = table.children.map(({ name }, index) => ({ name, cell: listName(index) }))
  const sides = [
    ...contentOf(table).map((name) => [`l.${identifier(name)}`, `f.${identifier(name)}`, name]),
    ...lists.map((each) => [`l.${each.cell}`, `f.${each.cell}`, each.name]),
  ]
  const differs = [
    // Of a table whose only column is a time of fetching nothing differs.
    "CAST(NULL AS VARCHAR)",
    ...sides.map(
      ([before, after, name = ""]) =>
        `CASE WHEN ${before} IS DISTINCT FROM ${after} THEN ${literal(name)} END`,
    ),
  ]
  const record = (alias: string) =>
    `CASE WHEN ${alias}._version IS NOT NULL THEN to_json(struct_pack(${[
      ...cellsOf(alias, own),
      ...lists.map((each) => `${identifier(each.name)} := ${alias}.${each.cell}`),
    ].join(", ")})) END`
  const keys = table.columns.filter(({ name }) => table.key.includes(name))
  const key = (alias: string) => `to_json(struct_pack(${cellsOf(alias, keys).join(", ")}))`
  const keyOfEither =
    keys.length === 0
      ? "CAST(NULL AS JSON)"
      : `CASE WHEN f._version IS NULL THEN ${key("l")} ELSE ${key("f")} END`
  const ended = "v._since_seq <= m.a AND v._until_seq > m.a AND v._until_seq <= m.b"
  const begun = `v._since_seq > m.a AND v._since_seq <= m.b
        AND (v._until_seq IS NULL OR v._until_seq > m.b)`
  return `WITH ${differing(table, ended, begun)}
    SELECT ${literal(table.name)} AS table_name,
      CASE WHEN l._version IS NULL THEN 'added' WHEN f._version IS NOT NULL THEN 'changed'
        WHEN EXISTS (SELECT 1 FROM (${rejectedSql}) AS x
          WHERE x.seq = l._until_seq AND x.before < l._since_seq
            AND x.customer_id IS NOT DISTINCT FROM s.customer_id
            AND x.engine_reference IS NOT DISTINCT FROM s.engine_reference
            AND x._alone IS NOT DISTINCT FROM s._alone
            AND coalesce(x.product = s.product, true)
            AND coalesce(x.sub_family = s.sub_family, true)) THEN 'rejected'
        ELSE 'gone' END AS change,
      s.customer_id, s.engine_reference,
      ${keyOfEither} AS record_key,
      CASE WHEN l._version IS NOT NULL AND f._version IS NOT NULL
        THEN list_filter([${differs.join(", ")}], lambda name: name IS NOT NULL) END AS changed_columns,
      ${record("l")} AS before, ${record("f")} AS after, s.product, s.sub_family, u.run_id
    FROM (${matched(table, "lost", "found")}) AS l FULL JOIN (${matched(table, "found", "lost")}) AS f
        ON l._match = f._match AND ${sameSql("l", "f", ["_scope", ...table.key])}
      JOIN store._scopes AS s ON s._scope = coalesce(l._scope, f._scope)
      JOIN store._runs AS u ON u.seq = coalesce(f._since_seq, l._until_seq)`
}

export const changesSql = (tables: ReadonlyArray<KeptTable>): string => `
  WITH given AS MATERIALIZED (SELECT ${momentSql("earlier")} AS a, ${momentSql("later")} AS b),
  moments AS MATERIALIZED (SELECT CASE WHEN a > b THEN CAST(error('changes: the first run or date is later '
    || 'than the second; the order is changes(from, to)') AS BIGINT) ELSE a END AS a, b FROM given)
  ${tables.map((table) => `FROM (${changesOf(table)})`).join(" UNION ALL ")}`
