/**
 * How records are kept: each content once, in schema `store`, with the time for which it was true. `main`,
 * `history` and `nights` are views of that, so they cannot disagree. A scope is what one answer covers:
 * customer, engine (or session), product and sub_family; a version one content of one record; a reading one
 * scope in one session of one run. What is no content (`extra`, say) is as it was read last.
 */
import { identifier } from "../base/DuckDbFailed.ts"
import { own, required, text, type ColumnSpec, type TableSpec } from "../records/Columns.ts"
import { isColumnName, type RecordFamily } from "../records/RecordSchema.ts"
import { childTable, familyTable, otherRecordsTable, position } from "../records/RecordTables.ts"
import { product, readBy, recordId, recordKey, subFamily } from "../records/RecordTables.ts"
import { customer, engine } from "./SystemTables.ts"

/** A table, or a view, as it can be read: of which schema, with a comment for it and for each column. */
export interface Relation extends TableSpec {
  readonly schema: "main" | "history" | "nights"
  /** A query with exactly these columns. */
  readonly sql: string
}

/** A list of a record, as it is kept. */
export interface KeptChild {
  readonly name: string
  readonly comment: string
  readonly columns: ReadonlyArray<ColumnSpec>
  /** `misfits` and `extra`, where the table has them. */
  readonly rest: ReadonlyArray<ColumnSpec>
}

/** A table of records: its columns are the record's own, the business key first. */
export interface KeptTable extends KeptChild {
  /** The columns that tell the records of one scope apart; none if there is no business key. */
  readonly key: ReadonlyArray<string>
  /** Those among its columns that are times of fetching: they are no content. */
  readonly fetched: ReadonlyArray<string>
  readonly children: ReadonlyArray<KeptChild>
}

/** The record itself, without what every row says about where it comes from. */
const keptOf = ({ name, comment, columns }: TableSpec): KeptChild => ({
  name,
  comment,
  columns: columns.filter((each) => isColumnName(each.name)),
  rest: columns.filter((each) => each.name === "misfits" || each.name === "extra"),
})

const keptFamily = (family: RecordFamily): KeptTable => {
  const { columns, ...kept } = keptOf(familyTable(family))
  const isKey = ({ name }: ColumnSpec) => family.key.includes(name)
  return {
    ...kept,
    key: family.key,
    columns: [...columns.filter(isKey), ...columns.filter((each) => !isKey(each))],
    fetched: family.fetched.filter((each) => !family.key.includes(each)),
    children: family.children.map((child) => keptOf(childTable(child))),
  }
}

/** All tables of records, in the order of the families; records without a schema come last. */
export const keptTables = (families: ReadonlyArray<RecordFamily>): ReadonlyArray<KeptTable> => [
  ...families.map(keptFamily),
  { ...keptOf(otherRecordsTable), key: [], fetched: ["fetch_date"], children: [] },
]

/** What counts when two rows are compared. */
export const contentOf = ({ columns, fetched }: KeptTable): ReadonlyArray<string> =>
  columns.map(({ name }) => name).filter((name) => !fetched.includes(name))

/** A list of a record as a cell: the name of its column. */
export const listName = (index: number): string => `_list_${index}`

/**
 * `misfits` and `extra` of a record and of the items of its lists, where they are not what the first reading
 * of its version had: the version has those.
 */
const restColumn = ({ rest }: KeptTable): StoreTable["columns"] => {
  if (rest.length === 0) return []
  const comment = "misfits and extra, its lists' too, where they are not as when the version was first read."
  return [{ name: "_rest", type: "JSON", comment }]
}

/** What `_rest` holds. It is kept as one text: DuckDB takes a compression only for columns of plain types. */
const restType = ({ rest, children }: Pick<KeptTable, "rest" | "children">): string => {
  const own = rest.map(({ name, type }) => `${name} ${type.replace("JSON", "VARCHAR")}`).join(", ")
  const lists = children.map((_, index) => `, ${listName(index)} STRUCT(${own})[]`)
  return `STRUCT(${own}${lists.join("")})`
}

/** All of `misfits` and `extra`, as `_rest` keeps them. */
export const restText = (table: KeptTable, all: string): string => `to_json(${all}::${restType(table)})`

/** A cell of `misfits` or `extra` as the reading `of` has it; of the item of a list, if it is one. */
const restCell = (table: KeptTable, alias: string, of: string, spec: ColumnSpec, list?: number): string => {
  const place = list === undefined ? "" : `.${listName(list)}[${alias}.position + 1]`
  const cell = identifier(spec.name)
  const asRead = `(${of}._rest::${restType(table)})${place}.${cell}::${spec.type}`
  return `CASE WHEN ${of}._rest IS NULL THEN ${alias}.${cell} ELSE ${asRead} END AS ${cell}`
}

/** All of a version, `misfits` and `extra` as they were read last. */
export const asLastRead = (alias: string, table: KeptTable): string => {
  const cells = table.rest.map((each) => restCell(table, alias, alias, each))
  return cells.length === 0 ? `${alias}.*` : `${alias}.* REPLACE (${cells.join(", ")})`
}

export const stored = (name: string): string => `store.${identifier(name)}`
/** No table of records has a name that begins so. */
export const seenOf = (name: string): string => stored(`_seen_${name}`)

/** What each reading has of its own: the times of fetching, and `_rest`. */
export const ofReading = (table: KeptTable): StoreTable["columns"] => [
  ...table.columns.filter(({ name }) => table.fetched.includes(name)),
  ...restColumn(table),
]

/** What only `store` has. Its own columns begin with an underscore, as no field of a schema does. */
const storeColumns = {
  run_id: ["VARCHAR", "The run."],
  run_date: ["DATE", "Its date."],
  job: ["VARCHAR", "The job."],
  replaces: ["VARCHAR[]", "The jobs that it takes the place of."],
  task_id: ["VARCHAR", "The task."],
  execution_id: ["VARCHAR", "The execution that it came from."],
  session_id: ["VARCHAR", "The session that it came from."],
  seq: ["BIGINT", "The place of the run in the order in which runs began."],
  e: ["DATE", "The run's date, or that of a newer run before it: what it reads is true when it begins."],
  whole: ["BOOLEAN", "The run decides what is asked for."],
  customer_id: ["VARCHAR", "The customer."],
  engine_reference: ["VARCHAR", "The engine; NULL if a session was only read."],
  _alone: ["VARCHAR", "The session, if it was only read: such a session stands alone."],
  feature: ["VARCHAR", "The feature; NULL for all of the engine."],
  product: ["VARCHAR", "The product."],
  sub_family: ["VARCHAR", "The sub-family."],
  as_of: ["DATE", "When it was answered last."],
  loose: ["BOOLEAN", "No requested feature is known to feed it, so any does."],
  short: ["BOOLEAN", "It came from results that are not whole: whole ones take its place, others add to it."],
  lacks: ["VARCHAR[]", "Features that feed it and did not succeed, so that records of them may be missing."],
  _kept: [
    "STRUCT(as_of DATE, lacks VARCHAR[])",
    "The answer that had it last, if it may be missing in the newest; else NULL.",
  ],
  _scope: ["INTEGER", "What one answer covers: customer, engine or session, product and sub-family."],
  _reading: ["INTEGER", "One scope in one session of one run."],
  _answered: ["BOOLEAN", "It decides what is current in its scope."],
  _version: ["INTEGER", "One content of one record."],
  _since_seq: ["BIGINT", "The run with which it began."],
  _until_seq: ["BIGINT", "The run with which it ended; NULL while it is current."],
  record_id: ["VARCHAR", "The record."],
  content_id: ["VARCHAR", "Hash of its content."],
  valid_from: ["DATE", "Since when it was true."],
  valid_to: ["DATE", "Until when, exclusive; NULL while it is current."],
  ended_by: ["VARCHAR", "Why it ended; NULL while it is current."],
  position: ["INTEGER", "Position in the record's list, from 0."],
  requested: ["BOOLEAN", "The task asked for the feature."],
  kind: ["VARCHAR", "customer, engine or feature."],
  id: ["VARCHAR", "Which one."],
  first_seen: ["DATE", "The date of the first run that names it."],
  last_seen: ["DATE", "The date of the newest run that names it."],
} as const satisfies Readonly<Record<string, readonly [type: string, comment: string]>>
export type StoreColumn = keyof typeof storeColumns

/** A table of `store`: its columns with their types, some of which no published column has. */
export interface StoreTable {
  readonly name: string
  readonly comment: string
  readonly columns: ReadonlyArray<{ readonly name: string; readonly type: string; readonly comment: string }>
}

export const storeColumn = (name: StoreColumn): StoreTable["columns"][number] => {
  const [type, comment] = storeColumns[name]
  return { name, type, comment }
}

export const storeTable = (
  name: string,
  what: string,
  columns: ReadonlyArray<StoreColumn | StoreTable["columns"][number]>,
): StoreTable => ({
  name,
  comment: `${what} How main, history and nights are kept; nobody's to read, and changed without notice.`,
  columns: columns.map((each) => (typeof each === "string" ? storeColumn(each) : each)),
})

const scopeKey = ["customer_id", "engine_reference", "_alone", "product", "sub_family"] as const
const ofVersion = ["content_id", "session_id", "execution_id", "valid_from", "valid_to", "ended_by"] as const
const ownTables = [
  storeTable("_runs", "All runs. Key: run_id.", ["run_id", "seq", "e", "job", "whole", "replaces"]),
  storeTable("_scopes", "The newest answer of each scope. Key: _scope.", [
    "_scope",
    ...scopeKey,
    "seq",
    "as_of",
    "_reading",
    "loose",
    "short",
    "lacks",
  ]),
  storeTable("_asked", "What the newest whole run of each job asks for. Key: all columns.", [
    "job",
    "customer_id",
    "engine_reference",
    "feature",
  ]),
  storeTable("_readings", "What was read. Key: _reading.", [
    "_reading",
    "run_id",
    "run_date",
    "seq",
    "e",
    "task_id",
    "execution_id",
    "session_id",
    "_scope",
    "_answered",
    "loose",
    "short",
    "lacks",
  ]),
]

const keptAs = (table: KeptTable): ReadonlyArray<StoreTable> => [
  storeTable(table.name, `The versions of ${table.name}. Key: _version.`, [
    "_version",
    "_scope",
    "record_id",
    ...table.columns,
    ...table.rest,
    ...restColumn(table),
    ...ofVersion,
    "_since_seq",
    "_until_seq",
    "_kept",
  ]),
  storeTable(`_seen_${table.name}`, "Which versions were read. Key: _reading, _version.", [
    "_reading",
    "_version",
    ...ofReading(table),
  ]),
  ...table.children.map((child) =>
    storeTable(child.name, `The lists of ${table.name}. Key: _version, position.`, [
      "_version",
      "position",
      ...child.columns,
      ...child.rest,
    ]),
  ),
]

/** All tables of `store` but those of `Dimensions.ts`. */
export const storeTables = (tables: ReadonlyArray<KeptTable>): ReadonlyArray<StoreTable> => [
  ...ownTables,
  ...tables.flatMap(keptAs),
]

const uniqueRecordId: ColumnSpec = {
  ...recordId,
  comment: `Unique in this table. ${recordId.comment}`,
}
const contentId = required(
  text(
    "content_id",
    "content_id",
    "Hash of the row's and its lists' own columns without times of fetching: equal for equal content.",
  ),
)
/** What a rerun of an older night reads is true when it begins. */
export const orLaterDate =
  "if a run of a later date had begun before, that later date, unless it was in the future"
const validFrom = required(own("valid_from", "DATE", "Since when the record has had this content."))
const asOf = required(own("as_of", "DATE", `Date of the newest run that confirmed it; ${orLaterDate}.`))
const ageDays = own("age_days", "INTEGER", "Days from `as_of` to today.")
const sinceSequence = required(
  own(
    "since_sequence",
    "BIGINT",
    "`sequence` in ops.runs of the run that brought this content; with record_id, the key of the version.",
  ),
)
const validTo = own("valid_to", "DATE", "Until when, exclusive; NULL while it is current.")
const endedBy = text(
  "ended_by",
  "own",
  "changed, gone, or not requested (nobody asks for it any more); NULL while it is current.",
)
const session = text("session_id", "session", "The flow session that brought this content.")
const execution = text(
  "execution_id",
  "clear",
  "The execution that brought this content; NULL if a session was read.",
)

/** A column of a view, and what is in it, in SQL. */
type Cell = readonly [spec: ColumnSpec, sql: string]

const from = (alias: string, ...columns: ReadonlyArray<ColumnSpec>): ReadonlyArray<Cell> =>
  columns.map((each) => [each, `${alias}.${identifier(each.name)}`])

const subject = from("s", customer, engine)
const kind = from("s", product, subFamily)
const origin = from("v", contentId, session, execution)
const validity = from("v", validFrom, validTo, endedBy)
const versions = (name: string): string =>
  `${stored(name)} AS v JOIN store._scopes AS s ON s._scope = v._scope`
const readings = (name: string): string => `${seenOf(name)} AS n JOIN store._readings AS r USING (_reading)`
const ofNight = from("r", ...readBy)
/** Several versions of a record may begin on one day, but not with one run. */
const versionKey = ["record_id", "since_sequence"]
const since: Cell = [sinceSequence, "v._since_seq AS since_sequence"]
/** Days from a date until now; that of a job east of whoever reads may be tomorrow's there. */
export const ageSql = (date: string): string =>
  `CAST(CASE WHEN ${date} > current_date THEN 0 ELSE date_diff('day', ${date}, current_date) END AS INTEGER)`

const keyText = ({ key }: KeptTable): string =>
  key.length === 0
    ? " No business key."
    : ` Business key of a customer, engine and sub_family: ${key.join(", ")}.`

const schemas = ["main", "history", "nights"] as const

/** What a view holds, for its comment, and its cells. */
type View = readonly [what: string, cells: ReadonlyArray<ReadonlyArray<Cell>>]

/** The views of a table, or `of` a list of its records, whose items are `c`. */
const relationsOf = (
  table: KeptTable,
  of: KeptChild,
  views: Readonly<Record<Relation["schema"], View>>,
): ReadonlyArray<Relation> => {
  const isList = of !== table
  const items = isList ? ` JOIN ${stored(of.name)} AS c ON c._version = v._version` : ""
  const kept = versions(table.name)
  const rows = {
    main: [["record_id"], `${kept}${items} WHERE v._until_seq IS NULL`],
    history: [versionKey, `${kept}${items} WHERE v.valid_from IS NOT NULL`],
    nights: [recordKey, `${readings(table.name)} JOIN ${kept} ON v._version = n._version${items}`],
  } as const
  return schemas.map((schema) => {
    const [[what, cells], [ofRecord, source]] = [views[schema], rows[schema]]
    const key = isList ? [...ofRecord, "position"] : ofRecord
    const all = cells.flat()
    return {
      schema,
      name: of.name,
      comment: `${of.comment} ${what} Key: ${key.join(", ")}.${isList ? "" : keyText(table)}`,
      key,
      columns: all.map(([spec]) => spec),
      sql: `SELECT ${all.map(([, cell]) => cell).join(", ")} FROM ${source}`,
    }
  })
}

/** Equal content is stored once, as it was written when it was first read. */
const asFirstRead = (spec: ColumnSpec): ColumnSpec => {
  const told =
    "The text of the first reading of this content: in other nights, order of members, null members and " +
    "times of fetching in it may differ."
  return spec.type === "JSON" ? { ...spec, comment: `${spec.comment} ${told}` } : spec
}

const viewsOf = (table: KeptTable): ReadonlyArray<Relation> => {
  const { name, rest, fetched } = table
  const columns = table.columns.map(asFirstRead)
  const restOf = (of: string) => rest.map((each): Cell => [each, restCell(table, "v", of, each)])
  const night = columns.map((each) => from(fetched.includes(each.name) ? "n" : "v", each))
  const [id, read, place] = [from("v", recordId), from("v", recordId, contentId), from("c", position)]
  const readOn = "coalesce(v._kept.as_of, s.as_of)"
  const age: ReadonlyArray<Cell> = [
    [asOf, `${readOn} AS as_of`],
    [ageDays, `${ageSql(readOn)} AS age_days`],
  ]
  const now = [from("v", uniqueRecordId, ...columns), kind, from("v", validFrom), age]
  const records = relationsOf(table, table, {
    main: ["What is true now.", [subject, ...now, origin, restOf("v")]],
    history: [
      "Every version of every record; content of a day: valid_from <= day and " +
        "(valid_to is NULL or day < valid_to).",
      [subject, from("v", recordId, ...columns), kind, validity, origin, restOf("v"), [since]],
    ],
    nights: ["What each run read.", [ofNight, subject, read, kind, ...night, restOf("n")]],
  })
  const lists = table.children.flatMap((child, index) => {
    const restIn = (of: string) =>
      child.rest.map((each): Cell => [each, restCell(table, "c", of, each, index)])
    const cells = (of: string) => [...from("c", ...child.columns.map(asFirstRead)), ...restIn(of)]
    return relationsOf(table, child, {
      main: [`Of the rows of ${name}.`, [subject, id, place, cells("v")]],
      history: [
        `Of the versions in history.${name}, with the same validity.`,
        [subject, id, place, validity, cells("v"), [since]],
      ],
      nights: [`Of the rows of nights.${name}.`, [ofNight, subject, read, place, cells("n")]],
    })
  })
  return [...records, ...lists]
}

/** In the order of the tables; the lists of a record follow it. */
export const recordRelations = (tables: ReadonlyArray<KeptTable>): ReadonlyArray<Relation> => {
  const all = tables.flatMap(viewsOf)
  return schemas.flatMap((schema) => all.filter((one) => one.schema === schema))
}

// Records beside each other: what is compared of each, as cells of a query.

export const namesOf = (columns: ReadonlyArray<{ readonly name: string }>): ReadonlyArray<string> =>
  columns.map(({ name }) => name)

const packed = (alias: string, columns: ReadonlyArray<string>): ReadonlyArray<string> =>
  columns.map((name) => `${identifier(name)} := ${alias}.${identifier(name)}`)

/** An item of a list as one cell; a struct needs a field, which the items of a schema may not have. */
export const itemSql = (cells: ReadonlyArray<string>): string =>
  cells.length === 0 ? "CAST('{}' AS JSON)" : `struct_pack(${cells.join(", ")})`

export type Compared = "columns" | "rest"

/** Each list of a record as a cell, to be compared with another's: `rows` is where its items are. */
export const listsOf = (
  { children }: KeptTable,
  what: Compared,
  rows: (child: KeptChild) => string,
  key: string,
): string =>
  children
    .map((child, index) => {
      const list = listName(index)
      const item = itemSql(packed("c", namesOf(child[what])))
      return `LEFT JOIN (SELECT c.${key}, list(${item} ORDER BY c.position) AS items
        FROM (${rows(child)}) AS c GROUP BY c.${key}) AS ${list} ON ${list}.${key} = r.${key}`
    })
    .join(" ")

/** Lists of the versions in `of`, a table of the step with a column `_version`. */
export const listsStored = (table: KeptTable, what: Compared, of: string): string =>
  listsOf(
    table,
    what,
    (child) => `SELECT x.* FROM ${stored(child.name)} AS x SEMI JOIN ${of} USING (_version)`,
    "_version",
  )

/** The columns, and lists, that decide whether two rows are equal. */
export const decisive = (table: KeptTable): ReadonlyArray<string> => [
  ...contentOf(table),
  ...table.children.map((_, index) => listName(index)),
]

/** All of them as one cell, so that a statement names two cells and not two of each column. */
export const allOf = (table: KeptTable, what: Compared): string => {
  const own = what === "columns" ? contentOf(table) : namesOf(table.rest)
  const lists = table.children.map(
    (_, index) => `${listName(index)} := coalesce(${listName(index)}.items, [])`,
  )
  return `struct_pack(${["_ := 0", ...packed("r", own), ...lists].join(", ")})`
}
