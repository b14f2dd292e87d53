/**
 * The data dictionary: every published table and view, every column with its type and comment, as data. The
 * database's comments and `nightjar tables` both come from here.
 */
import type { ColumnSpec, TableSpec } from "../records/Columns.ts"
import { recordTables, rejectedRecordsTable } from "../records/RecordTables.ts"
import type { RecordFamily } from "../records/RecordSchema.ts"
import { changesMacro, recordViews } from "./RecordViews.ts"
import type { View } from "./RecordViews.ts"
import { dimensions } from "./Dimensions.ts"
import { systemTables } from "./SystemTables.ts"
import type { SystemTable } from "./SystemTables.ts"
import { shownTable, shownView } from "./Treatments.ts"
import type { PseudonymPolicy } from "./Treatments.ts"

/** `type` is DuckDB's name of it. */
type DictionaryColumn = Pick<ColumnSpec, "name" | "type" | "comment">

export interface DictionaryTable {
  readonly name: string
  readonly kind: "table" | "view" | "macro"
  readonly comment: string
  readonly columns: ReadonlyArray<DictionaryColumn>
}

/**
 * A record is identified within its session, because two attempts may read the same one. Values in place of
 * records may repeat between the endpoints of a session, so `rejected_records` has no key.
 */
const recordKey = ["run_id", "task_id", "session_id", "record_id"]

const keyOf = ({ name, columns }: TableSpec): ReadonlyArray<string> =>
  name === rejectedRecordsTable.name
    ? []
    : [...recordKey, ...columns.flatMap((each) => (each.name === "position" ? [each.name] : []))]

/** All tables: those of the system, then those of records; where they have pseudonyms, as they are then. */
export const publishedTables = (
  families: ReadonlyArray<RecordFamily>,
  policy?: PseudonymPolicy,
): ReadonlyArray<SystemTable> =>
  [
    ...systemTables,
    ...recordTables(families).map(({ spec }) => ({ ...spec, comment: withAdvice(spec), key: keyOf(spec) })),
  ].map((one) => shownTable(policy, one))

/** All views, each after those that it refers to. */
export const publishedViews = (
  families: ReadonlyArray<RecordFamily>,
  policy?: PseudonymPolicy,
): ReadonlyArray<View> => [...dimensions, ...recordViews(families)].map((one) => shownView(policy, one))

const columnsOf = (columns: ReadonlyArray<ColumnSpec>): ReadonlyArray<DictionaryColumn> =>
  columns.map(({ name, type, comment }) => ({ name, type, comment }))

const withKey = ({ comment, key }: SystemTable): string =>
  key.length === 0 ? comment : `${comment} Key: ${key.join(", ")}.`

/** Which rows to count: those of a table itself are of every run. */
const withAdvice = ({ name, comment }: TableSpec): string =>
  `${comment} Has the rows of every run, reruns of a date included; what is current is in ${name}_latest.`

export const dataDictionary = (
  families: ReadonlyArray<RecordFamily>,
  policy?: PseudonymPolicy,
): ReadonlyArray<DictionaryTable> => [
  ...publishedTables(families, policy).map((spec): DictionaryTable => ({
    name: spec.name,
    kind: "table",
    comment: withKey(spec),
    columns: columnsOf(spec.columns),
  })),
  ...publishedViews(families, policy).map((view) => viewEntry("view", view)),
  viewEntry("macro", shownView(policy, changesMacro(families))),
]

const viewEntry = (kind: "view" | "macro", { name, comment, columns }: View): DictionaryTable => ({
  name,
  kind,
  comment,
  columns: columnsOf(columns),
})
