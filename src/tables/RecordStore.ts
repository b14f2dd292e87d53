/**
 * How records are kept in the database: each content once, in schema `store`, with the time for which it was
 * true. `main` (what is true now), `history` (every version) and `nights` (what each run read) are views of
 * that, so they cannot disagree. `Step.ts` adds a run to it.
 *
 * A scope is what one answer covers: customer, engine (or a session that was only read), product and
 * sub_family. A version is one content of one record. A reading is one scope in one session of one run.
 */
import { identifier, literal } from "../base/DuckDbFailed.ts"
import { column, required } from "../records/Columns.ts"
import type { ColumnSpec, TableSpec } from "../records/Columns.ts"
import { isColumnName } from "../records/RecordSchema.ts"
import type { RecordFamily } from "../records/RecordSchema.ts"
import {
  childTable,
  familyTable,
  otherRecordsTable,
  product,
  readBy,
  subFamily,
} from "../records/RecordTables.ts"
import { customer, engine, text } from "./SystemTables.ts"

/** A table, or a view, as it can be read: of which schema, with a comment for it and for each column. */
export interface Relation extends TableSpec {
  readonly schema: "main" | "history" | "nights"
  /** What identifies a row. */
  readonly key: ReadonlyArray<string>
  /** A query with exactly these columns. */
  readonly sql: string
}

/** A table of records, as it is kept. */
export interface KeptTable {
  readonly name: string
  readonly comment: string
  /** The columns that tell the records of one scope apart; none if there is no business key. */
  readonly key: ReadonlyArray<string>
  /** The record's own columns, the business key first. */
  readonly columns: ReadonlyArray<ColumnSpec>
  /** Those among them that are times of fetching: they are no content. */
  readonly fetched: ReadonlyArray<string>
  /** `misfits` and `extra`, where the table has them. */
  readonly rest: ReadonlyArray<ColumnSpec>
  readonly children: ReadonlyArray<KeptChild>
}

export interface KeptChild {
  readonly name: string
  readonly comment: string
  readonly columns: ReadonlyArray<ColumnSpec>
  readonly rest: ReadonlyArray<ColumnSpec>
}

/** The record itself, without what every row says about where it comes from. */
const partsOf = ({ columns }: TableSpec) => ({
  columns: columns.filter(({ name }) => isColumnName(name)),
  rest: columns.filter(({ name }) => name === "misfits" || name === "extra"),
})

const keptFamily = (family: RecordFamily): KeptTable => {
  const { name, comment, ...spec } = familyTable(family)
  const { columns, rest } = partsOf({ name, comment, ...spec })
  const isKey = (each: ColumnSpec) => family.key.includes(each.name)
  return {
    name,
    comment,
    key: family.key,
    columns: [...columns.filter(isKey), ...columns.filter((each) => !isKey(each))],
    fetched: family.fetched.filter((each) => !family.key.includes(each)),
    rest,
    children: family.children.map((child) => {
      const table = childTable(child)
      return { name: table.name, comment: table.comment, ...partsOf(table) }
    }),
  }
}

/** All tables of records, in the order of the families; records without a schema come last. */
export const keptTables = (families: ReadonlyArray<RecordFamily>): ReadonlyArray<KeptTable> => [
  ...families.map(keptFamily),
  {
    name: otherRecordsTable.name,
    comment: otherRecordsTable.comment,
    key: [],
    ...partsOf(otherRecordsTable),
    fetched: ["fetch_date"],
    children: [],
  },
]

/** What counts when two rows are compared. */
export const contentOf = ({ columns, fetched, rest }: KeptTable): ReadonlyArray<string> =>
  [...columns, ...rest].map(({ name }) => name).filter((name) => !fetched.includes(name))

const declared = (columns: ReadonlyArray<ColumnSpec>): string =>
  columns.map(({ name, type }) => `${identifier(name)} ${type}`).join(", ")
const listed = (...parts: ReadonlyArray<string>): string => parts.filter((part) => part !== "").join(", ")

export const stored = (name: string): string => `store.${identifier(name)}`
/** No table of records has a name that begins so. */
export const seenOf = (name: string): string => stored(`_seen_${name}`)

export const fetchedOf = ({ columns, fetched }: KeptTable): ReadonlyArray<ColumnSpec> =>
  columns.filter(({ name }) => fetched.includes(name))

const ownTables = [
  // Runs in the order in which they began. `e` is the run's date, or that of a newer run before it: a rerun
  // of an older night reads what is true when it begins. `whole`: it decides what is asked for.
  `CREATE TABLE store._runs (run_id VARCHAR, seq BIGINT, e DATE, job VARCHAR, whole BOOLEAN,
    replaces VARCHAR[])`,
  // The newest answer of each scope. `loose`: no requested feature is known to feed it, so any does.
  `CREATE TABLE store._scopes (_scope INTEGER, customer_id VARCHAR, engine_reference VARCHAR, _alone VARCHAR,
    product VARCHAR, sub_family VARCHAR, seq BIGINT, as_of DATE, _reading INTEGER, loose BOOLEAN)`,
  // What the newest whole run of each job asks for; a feature that is NULL stands for all of the engine.
  `CREATE TABLE store._asked (job VARCHAR, customer_id VARCHAR, engine_reference VARCHAR, feature VARCHAR)`,
  `CREATE TABLE store._readings (_reading INTEGER, run_id VARCHAR, run_date DATE, seq BIGINT, e DATE,
    task_id VARCHAR, execution_id VARCHAR, session_id VARCHAR, _scope INTEGER, _answered BOOLEAN,
    loose BOOLEAN)`,
]

const notToRead =
  "How main, history and nights are kept, which are views of it; nobody's to read. Changes without notice."

/**
 * The statements that make everything of `store`, without a row. Beside a record's columns, those that only
 * `store` has begin with an underscore, as no field of a schema does.
 */
export const storeStatements = (tables: ReadonlyArray<KeptTable>): ReadonlyArray<string> => [
  ...ownTables,
  `COMMENT ON TABLE store._runs IS ${literal(notToRead)}`,
  ...tables.flatMap((table) => [
    `CREATE TABLE ${stored(table.name)} (_version INTEGER, _scope INTEGER, record_id VARCHAR, ${listed(
      declared(table.columns),
      declared(table.rest),
    )}, content_id VARCHAR, session_id VARCHAR, execution_id VARCHAR, valid_from DATE, valid_to DATE,
      ended_by VARCHAR, _since_seq BIGINT, _until_seq BIGINT)`,
    `CREATE TABLE ${seenOf(table.name)} (${listed(
      "_reading INTEGER, _version INTEGER",
      declared(fetchedOf(table)),
    )})`,
    ...table.children.map(
      (child) =>
        `CREATE TABLE ${stored(child.name)} (_version INTEGER, position INTEGER, ${listed(
          declared(child.columns),
          declared(child.rest),
        )})`,
    ),
  ]),
]

const recordId = required(
  "record_id",
  "VARCHAR",
  "record_id",
  "The record: the same over nights while its business key is.",
)
const uniqueRecordId: ColumnSpec = {
  ...recordId,
  comment: "The record: unique in this table, and the same over nights while its business key is.",
}
const contentId = required(
  "content_id",
  "VARCHAR",
  "content_id",
  "Hash of the row without its times of fetching: rows with the same content have the same one.",
)
const validFrom = required("valid_from", "DATE", "own", "Since when the record has had this content.")
const asOf = required("as_of", "DATE", "own", "Date of the newest run that confirmed it.")
const ageDays = column("age_days", "INTEGER", "own", "Days from `as_of` to today.")
const validTo = column("valid_to", "DATE", "own", "Until when, exclusive; NULL while it is current.")
const endedBy = column(
  "ended_by",
  "VARCHAR",
  "own",
  "changed, gone, or not requested (nobody asks for it any more); NULL while it is current.",
)
const session = text("session_id", "session", "The flow session that brought this content.")
const execution = text(
  "execution_id",
  "clear",
  "The execution that brought this content; NULL if a session was read.",
)
const position = required("position", "INTEGER", "own", "Position in the record's list, from 0.")
const lastColumns = [contentId, session, execution]

/** `alias.name` for each column, in order. */
const from = (alias: string, columns: ReadonlyArray<ColumnSpec>): string =>
  columns.map(({ name }) => `${alias}.${identifier(name)}`).join(", ")
const scopes = "JOIN store._scopes AS s ON s._scope = v._scope"

/** Days from a date until now; that of a job east of whoever reads may be tomorrow's there. */
export const ageSql = (date: string): string =>
  `CAST(CASE WHEN ${date} > current_date THEN 0 ELSE date_diff('day', ${date}, current_date) END AS INTEGER)`

const keyText = ({ key }: KeptTable): string =>
  key.length === 0
    ? " No business key."
    : ` Business key of a customer, engine and sub_family: ${key.join(", ")}.`

const mainOf = (table: KeptTable): Relation => {
  const { name, columns, rest } = table
  return {
    schema: "main",
    name,
    comment: `${table.comment} What is true now. Key: record_id.${keyText(table)}`,
    key: ["record_id"],
    columns: [
      customer,
      engine,
      uniqueRecordId,
      ...columns,
      product,
      subFamily,
      validFrom,
      asOf,
      ageDays,
      ...lastColumns,
      ...rest,
    ],
    sql: `SELECT ${listed("s.customer_id, s.engine_reference, v.record_id", from("v", columns))},
      s.product, s.sub_family, v.valid_from, s.as_of,
      ${ageSql("s.as_of")} AS age_days,
      ${listed("v.content_id, v.session_id, v.execution_id", from("v", rest))}
      FROM ${stored(name)} AS v ${scopes} WHERE v._until_seq IS NULL`,
  }
}

const historyOf = (table: KeptTable): Relation => {
  const { name, columns, rest } = table
  return {
    schema: "history",
    name,
    comment:
      `${table.comment} Every version of every record; content of a day: valid_from <= day and ` +
      `(valid_to is NULL or day < valid_to).${keyText(table)}`,
    key: [],
    columns: [
      customer,
      engine,
      recordId,
      ...columns,
      product,
      subFamily,
      validFrom,
      validTo,
      endedBy,
      ...lastColumns,
      ...rest,
    ],
    sql: `SELECT ${listed("s.customer_id, s.engine_reference, v.record_id", from("v", columns))},
      s.product, s.sub_family, v.valid_from, v.valid_to, v.ended_by,
      ${listed("v.content_id, v.session_id, v.execution_id", from("v", rest))}
      FROM ${stored(name)} AS v ${scopes} WHERE v.valid_from IS NOT NULL`,
  }
}

const nightsOf = (table: KeptTable): Relation => {
  const { name, columns, rest, fetched } = table
  const cells = columns.map((each) => `${fetched.includes(each.name) ? "n" : "v"}.${identifier(each.name)}`)
  return {
    schema: "nights",
    name,
    comment:
      `${table.comment} What each run read. ` +
      `Key: run_id, task_id, session_id, record_id.${keyText(table)}`,
    key: ["run_id", "task_id", "session_id", "record_id"],
    columns: [...readBy, customer, engine, recordId, contentId, product, subFamily, ...columns, ...rest],
    sql: `SELECT r.run_id, r.run_date, r.task_id, r.execution_id, r.session_id,
      s.customer_id, s.engine_reference, v.record_id, v.content_id,
      ${listed("s.product, s.sub_family", cells.join(", "), from("v", rest))}
      FROM ${seenOf(name)} AS n JOIN store._readings AS r ON r._reading = n._reading
        JOIN ${stored(name)} AS v ON v._version = n._version ${scopes}`,
  }
}

const childrenOf = (table: KeptTable): ReadonlyArray<Relation> =>
  table.children.flatMap(({ name, comment, columns, rest }): ReadonlyArray<Relation> => {
    const cells = listed("c.position", from("c", columns), from("c", rest))
    const own = [position, ...columns, ...rest]
    const version = `${stored(name)} AS c
      JOIN ${stored(table.name)} AS v ON v._version = c._version ${scopes}`
    const record = "s.customer_id, s.engine_reference, v.record_id"
    return [
      {
        schema: "main",
        name,
        comment: `${comment} Of the rows of ${table.name}. Key: record_id, position.`,
        key: ["record_id", "position"],
        columns: [customer, engine, recordId, ...own],
        sql: `SELECT ${record}, ${cells} FROM ${version} WHERE v._until_seq IS NULL`,
      },
      {
        schema: "history",
        name,
        comment: `${comment} Of the versions in history.${table.name}, with the same validity.`,
        key: [],
        columns: [
          customer,
          engine,
          recordId,
          ...own.slice(0, 1),
          validFrom,
          validTo,
          endedBy,
          ...own.slice(1),
        ],
        sql: `SELECT ${record}, c.position, v.valid_from, v.valid_to, v.ended_by,
          ${listed(from("c", columns), from("c", rest))} FROM ${version} WHERE v.valid_from IS NOT NULL`,
      },
      {
        schema: "nights",
        name,
        comment:
          `${comment} Of the rows of nights.${table.name}. ` +
          "Key: run_id, task_id, session_id, record_id, position.",
        key: ["run_id", "task_id", "session_id", "record_id", "position"],
        columns: [...readBy, customer, engine, recordId, contentId, ...own],
        sql: `SELECT r.run_id, r.run_date, r.task_id, r.execution_id, r.session_id,
          s.customer_id, s.engine_reference, v.record_id, v.content_id, ${cells}
          FROM ${seenOf(table.name)} AS n JOIN store._readings AS r ON r._reading = n._reading
            JOIN ${stored(table.name)} AS v ON v._version = n._version ${scopes}
            JOIN ${stored(name)} AS c ON c._version = v._version`,
      },
    ]
  })

/** In the order of the tables; the lists of a record follow it. */
export const recordRelations = (tables: ReadonlyArray<KeptTable>): ReadonlyArray<Relation> =>
  ["main", "history", "nights"].flatMap((schema) =>
    tables.flatMap((table) =>
      [mainOf(table), historyOf(table), nightsOf(table), ...childrenOf(table)].filter(
        (one) => one.schema === schema,
      ),
    ),
  )
