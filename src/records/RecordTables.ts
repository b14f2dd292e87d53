/**
 * The tables that records go to: one per family, one per list, and two for records without a family or with
 * errors. Their columns: lineage, `position` (lists), the record's own fields, `misfits`, `extra`.
 */
import { column, own, repeating, required, text, time } from "./Columns.ts"
import type { ColumnSpec, TableSpec } from "./Columns.ts"
import type { RecordChild, RecordColumn, RecordFamily } from "./RecordSchema.ts"

/** Which run read a record, and where. */
export const readBy: ReadonlyArray<ColumnSpec> = [
  repeating(required(text("run_id", "own", "The run that read the record."))),
  required(own("run_date", "DATE", "The date of that run.")),
  required(text("task_id", "task", "The task that read the record.")),
  text("execution_id", "clear", "The remote execution; NULL for a session that was only read."),
  text("session_id", "session", "The flow session whose results contained the record."),
]

export const recordId = required(
  text(
    "record_id",
    "record_id",
    "The record: the same over nights while its business key is, or its content if it has no key.",
  ),
)
export const position = required(own("position", "INTEGER", "Position in the record's list, from 0."))

/** A record is identified within its session, because two attempts may read the same one. */
export const recordKey = ["run_id", "task_id", "session_id", "record_id"]

/** What every row of records begins with. */
const lineage: ReadonlyArray<ColumnSpec> = [
  ...readBy,
  text("customer_id", "customer_id", "The customer that the record belongs to."),
  repeating(text("engine_reference", "own", "The engine that retrieved it.")),
  // Hashes of whose record it is and of all that it says: a guess could be tested against them.
  recordId,
  required(
    text(
      "content_id",
      "content_id",
      "Hash of its content without times of fetching: equal for equal content.",
    ),
  ),
]

export const product = required(text("product", "clear", "Product of the record, as the service names it."))
export const subFamily = required(
  text("sub_family", "clear", "Family of the record, as the service names it."),
)
const misfits = own(
  "misfits",
  "VARCHAR[]",
  "What did not fit its column, as column: reason. Those columns are NULL, and extra has the values.",
)
/** What no column holds: nobody has chosen what may be seen of it. */
const extra = column(
  "extra",
  "JSON",
  "withheld",
  "Fields without a column, and under a column's name the value that did not fit; NULL if there are none.",
)

/** Even a required column is NULL where a value did not fit, unless the record is refused for it. */
const specOf = ({ name, type, comment, required: isRequired, identifies }: RecordColumn): ColumnSpec => {
  const spec = column(name, type, "clear", comment)
  return isRequired && identifies ? required(spec) : spec
}

/** Whoever reads a table is told if nobody has promised that records look like that. */
const commentOf = ({ comment, assumed }: Pick<RecordFamily, "comment" | "assumed">): string =>
  assumed === true ? `${comment} Our own reading: the reference does not show this shape.` : comment

export const familyTable = (family: RecordFamily): TableSpec => ({
  name: family.table,
  comment: commentOf(family),
  key: recordKey,
  columns: [
    ...lineage,
    repeating(product),
    repeating(subFamily),
    ...family.columns.map(specOf),
    misfits,
    extra,
  ],
})

export const childTable = (child: RecordChild): TableSpec => ({
  name: child.table,
  comment: commentOf(child),
  key: [...recordKey, position.name],
  columns: [...lineage, position, ...child.columns.map(specOf), misfits, extra],
})

export const otherRecordsTable: TableSpec = {
  name: "other_records",
  comment: "Whole records of families that have no schema file.",
  key: recordKey,
  columns: [
    ...lineage,
    repeating(product),
    repeating(subFamily),
    time("fetch_date", "When the source was read; NULL if the record has no readable date."),
    required(column("record", "JSON", "withheld", "The whole record.")),
  ],
}

export const rejectedRecordsTable: TableSpec = {
  name: "rejected_records",
  comment:
    "Whole values found in place of records that break their schema, with the reason. No key: " +
    "the endpoints of a session may repeat them.",
  key: [],
  columns: [
    ...lineage,
    text("product", "clear", "Product of the record; NULL if it is not a string."),
    text("sub_family", "clear", "Family of the record; NULL if it is not a string."),
    required(text("reason", "own", "What is wrong; never the value itself.")),
    // A path has the keys of maps, which may be numbers of accounts.
    required(text("path", "withheld", "Where the problem is in the body.")),
    column("record", "JSON", "withheld", "The whole record; NULL for a body that could not be read."),
  ],
}

/** Its own table, and those of its lists. */
export const tableSpecs = (family: RecordFamily): ReadonlyArray<TableSpec> => [
  familyTable(family),
  ...family.children.map(childTable),
]

/** All record tables, in the order of their families; each child follows its parent. */
export const recordTables = (families: ReadonlyArray<RecordFamily>): ReadonlyArray<TableSpec> => [
  ...families.flatMap(tableSpecs),
  otherRecordsTable,
  rejectedRecordsTable,
]
