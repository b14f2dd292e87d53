/**
 * Views about customers, features and engines over the published tables: who is asked for, what is asked,
 * when it was first and last seen, and how fresh the data of each customer, engine and feature is.
 */
import { column } from "../records/Columns.ts"
import type { ColumnSpec } from "../records/Columns.ts"
import type { RecordFamily } from "../records/RecordSchema.ts"
import { otherRecordsTable, rejectedRecordsTable } from "../records/RecordTables.ts"
import { aloneSql, runsInOrder } from "./RecordViews.ts"
import type { View } from "./RecordViews.ts"
import { actor, customer, engine, engineFields, outcome, text, time } from "./SystemTables.ts"

const date = (name: string, comment: string): ColumnSpec => column(name, "DATE", comment)

/**
 * The newest whole run of a job: a rerun names only a part of its customers, and a run that the service
 * kept from beginning names none.
 */
const customers: View = {
  name: "customers",
  key: ["customer_id"],
  comment: "Every customer of any run, one row each. Former customers stay, marked. Key: customer_id.",
  columns: [
    customer,
    date("first_seen", "Date of the first run that asked for the customer."),
    date("last_seen", "Date of the last run that asked for the customer."),
    column("is_current", "BOOLEAN", "The newest run of one of the customer's jobs asked for the customer."),
    column("jobs", "VARCHAR[]", "Jobs that asked for the customer, in the order of their names."),
    text("run_id", "The last run that asked for the customer."),
  ],
  sql: `WITH ordered AS (SELECT r.*, o.nth FROM runs AS r JOIN (${runsInOrder}) AS o USING (run_id)),
    newest AS (
      SELECT arg_max(run_id, (parent IS NULL, nth)) AS run_id FROM ordered WHERE tasks > 0 GROUP BY job
    )
    SELECT t.customer_id, min(o.run_date) AS first_seen, max(o.run_date) AS last_seen,
      bool_or(t.run_id IN (SELECT run_id FROM newest)) AS is_current,
      list_sort(list(DISTINCT o.job)) AS jobs, arg_max(t.run_id, o.nth) AS run_id
    FROM tasks AS t JOIN ordered AS o USING (run_id)
    WHERE t.customer_id IS NOT NULL GROUP BY t.customer_id`,
}

const engines: View = {
  name: "engines",
  key: ["engine_reference"],
  comment: "Every engine of any run, one row each, with what the catalogue last said. Key: engine_reference.",
  columns: [
    engine,
    ...engineFields,
    date("first_seen", "Date of the first run with the engine."),
    date("last_seen", "Date of the last run with the engine."),
    text("run_id", "The last run with the engine."),
  ],
  sql: `WITH ordered AS (${runsInOrder}),
    described AS (
      SELECT d.* FROM engine_descriptions AS d JOIN ordered AS o USING (run_id)
      QUALIFY row_number() OVER (PARTITION BY d.engine_reference ORDER BY o.nth DESC) = 1
    ),
    seen AS (
      SELECT t.engine_reference, min(o.run_date) AS first_seen, max(o.run_date) AS last_seen,
        arg_max(t.run_id, o.nth) AS run_id
      FROM tasks AS t JOIN ordered AS o USING (run_id)
      WHERE engine_reference IS NOT NULL GROUP BY engine_reference
    )
    SELECT s.engine_reference, ${engineFields.map(({ name }) => `d.${name}`).join(", ")},
      s.first_seen, s.last_seen, s.run_id
    FROM seen AS s LEFT JOIN described AS d USING (engine_reference)`,
}

const features: View = {
  name: "features",
  key: ["code"],
  comment: "Every feature that was requested or delivered, one row each. Key: code.",
  columns: [
    text("code", "Code of the feature."),
    column("engines", "VARCHAR[]", "Engines that it was requested of, in the order of their names."),
    date("first_seen", "Date of the first run with the feature."),
    date("last_seen", "Date of the last run with the feature."),
    text("run_id", "The last run with the feature."),
  ],
  sql: `SELECT feature AS code,
      coalesce(
        list_sort(list(DISTINCT engine_reference) FILTER (engine_reference IS NOT NULL)), []
      ) AS engines,
      min(o.run_date) AS first_seen, max(o.run_date) AS last_seen, arg_max(c.run_id, o.nth) AS run_id
    FROM coverage AS c JOIN (${runsInOrder}) AS o USING (run_id) WHERE feature IS NOT NULL GROUP BY feature`,
}

const coverageCurrent: View = {
  name: "coverage_current",
  comment:
    "The newest outcome of each customer, engine and feature, and how fresh its data is: one row each, " +
    "and one per session for sessions that were only read. Age counts to the date of the newest run of all.",
  columns: [
    customer,
    engine,
    text("session_id", "The flow session whose results the newest run read."),
    text("feature", "Code of the feature; NULL for a task whose features are not known."),
    text("run_id", "The newest run with this customer, engine and feature."),
    date("run_date", "The date of that run."),
    { ...outcome, nullable: true },
    text("reason", "Reason for the outcome in that run."),
    { ...actor, nullable: true },
    column("records", "INTEGER", "Number of records published in that run; NULL if it is not known."),
    column(
      "counted",
      "BIGINT",
      "Number of products that the service counted; NULL if it is not known which.",
    ),
    date(
      "fresh_date",
      "Date of the last run in which it succeeded, or of the newest night before that one; " +
        "NULL if it never did.",
    ),
    time("fresh_as_of", "When the results of that success arrived; NULL if it never succeeded."),
    column(
      "age_days",
      "INTEGER",
      "Days from `fresh_date` to the date of the newest run; NULL if it never succeeded.",
    ),
    column(
      "is_current_customer",
      "BOOLEAN",
      "The newest run of one of the customer's jobs asked for the customer.",
    ),
  ],
  sql: `WITH ordered AS (${runsInOrder}),
    told AS (SELECT c.*, ${aloneSql("c")} AS alone, o.nth, o.read_date
      FROM coverage AS c JOIN ordered AS o USING (run_id)),
    good AS (SELECT customer_id, engine_reference, alone, feature,
        max(read_date) AS fresh_date, arg_max(as_of, nth) AS fresh_as_of
      FROM told WHERE outcome = 'succeeded' GROUP BY ALL)
    SELECT t.customer_id, t.engine_reference, t.session_id, t.feature, t.run_id, t.run_date, t.outcome,
      t.reason, t.who_acts, t.records, t.counted, g.fresh_date, g.fresh_as_of,
      CAST(date_diff('day', g.fresh_date, (SELECT max(run_date) FROM runs)) AS INTEGER) AS age_days,
      c.is_current AS is_current_customer
    FROM told AS t
      LEFT JOIN good AS g ON t.customer_id IS NOT DISTINCT FROM g.customer_id
        AND t.engine_reference IS NOT DISTINCT FROM g.engine_reference
        AND t.alone IS NOT DISTINCT FROM g.alone AND t.feature IS NOT DISTINCT FROM g.feature
      LEFT JOIN customers AS c ON c.customer_id = t.customer_id
    QUALIFY row_number() OVER (
      PARTITION BY t.customer_id, t.engine_reference, t.alone, t.feature ORDER BY t.nth DESC) = 1`,
}

/** In this order: later ones refer to earlier ones. */
export const dimensions: ReadonlyArray<View> = [customers, engines, features, coverageCurrent]

// Which published table belongs to which, and by which columns: from a run down to the lists of a record. The
// catalogue page draws it. Pure.

/** Every row of `table` whose `columns` are not NULL has its row in `of`. */
export interface Relation {
  readonly table: string
  readonly of: string
  readonly columns: ReadonlyArray<string>
}

const task = ["run_id", "task_id"]
const execution = [...task, "execution_id"]
const session = [...task, "session_id"]
const record = [...session, "record_id"]

const systemRelations: ReadonlyArray<readonly [string, string, ReadonlyArray<string>]> = [
  ["tasks", "runs", ["run_id"]],
  ["engine_descriptions", "runs", ["run_id"]],
  ["executions", "tasks", task],
  ["coverage", "tasks", task],
  ["execution_features", "executions", execution],
  ["execution_messages", "executions", execution],
  ["execution_errors", "executions", execution],
  ["products_count", "executions", execution],
  ["deletions", "executions", execution],
  ["sessions", "tasks", task],
  ["consents", "sessions", session],
  ["consent_documents", "consents", session],
  ["attachments", "sessions", session],
  ["documents", "sessions", session],
  [otherRecordsTable.name, "sessions", session],
  [rejectedRecordsTable.name, "sessions", session],
]

/** Each table after the one that it belongs to. */
export const relationsOf = (families: ReadonlyArray<RecordFamily>): ReadonlyArray<Relation> => [
  ...systemRelations.map(([table, of, columns]) => ({ table, of, columns })),
  ...families.flatMap(({ table, children }) => [
    { table, of: "sessions", columns: session },
    ...children.map((child) => ({ table: child.table, of: table, columns: record })),
  ]),
]
