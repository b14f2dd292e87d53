/**
 * What is true now beside the records: customers, engines and features that are asked for, the newest outcome
 * of each with how old its data is, and the consents and documents of the sessions in use. Views.
 */
import { column, required } from "../records/Columns.ts"
import type { ColumnSpec } from "../records/Columns.ts"
import type { RecordFamily } from "../records/RecordSchema.ts"
import { otherRecordsTable, rejectedRecordsTable } from "../records/RecordTables.ts"
import type { Relation } from "./RecordStore.ts"
import { aloneSql, sameSql, subject } from "./Answers.ts"
import {
  actor,
  consentsTable,
  customer,
  documentsTable,
  engine,
  engineFields,
  outcome,
  text,
  time,
} from "./SystemTables.ts"

const date = (name: string, comment: string): ColumnSpec => column(name, "DATE", "own", comment)

const customers: Relation = {
  schema: "main",
  name: "customers",
  key: ["customer_id"],
  comment: "Every customer that a job asks for, one row each. Key: customer_id.",
  columns: [
    required("customer_id", "VARCHAR", "customer_id", "The customer's id in the job."),
    column("jobs", "VARCHAR[]", "own", "Jobs that ask for the customer, in the order of their names."),
    column("engines", "VARCHAR[]", "own", "Engines that they ask, in the order of their names."),
    date("first_seen", "Date of the first run that asked for the customer."),
    date("last_seen", "Date of the last run that asked for the customer."),
  ],
  sql: `SELECT a.customer_id, a.jobs, a.engines, min(t.run_date) AS first_seen, max(t.run_date) AS last_seen
    FROM (SELECT customer_id, list_sort(list(DISTINCT job)) AS jobs,
        coalesce(list_sort(list(DISTINCT engine_reference)
          FILTER (engine_reference IS NOT NULL)), []) AS engines
      FROM store._asked WHERE customer_id IS NOT NULL GROUP BY customer_id) AS a
      JOIN ops.tasks AS t USING (customer_id)
    GROUP BY ALL`,
}

const engines: Relation = {
  schema: "main",
  name: "engines",
  key: ["engine_reference"],
  comment:
    "Every engine that a job asks, one row each, with what the catalogue last said. Key: engine_reference.",
  columns: [
    engine,
    ...engineFields,
    date("first_seen", "Date of the first run with the engine."),
    date("last_seen", "Date of the last run with the engine."),
  ],
  sql: `WITH described AS (
      SELECT d.* FROM ops.engine_descriptions AS d JOIN store._runs AS r USING (run_id)
      QUALIFY row_number() OVER (PARTITION BY d.engine_reference ORDER BY r.seq DESC) = 1
    )
    SELECT a.engine_reference, ${engineFields.map(({ name }) => `d.${name}`).join(", ")},
      min(t.run_date) AS first_seen, max(t.run_date) AS last_seen
    FROM (SELECT DISTINCT engine_reference FROM store._asked WHERE engine_reference IS NOT NULL) AS a
      JOIN ops.tasks AS t USING (engine_reference) LEFT JOIN described AS d USING (engine_reference)
    GROUP BY ALL`,
}

const features: Relation = {
  schema: "main",
  name: "features",
  key: ["code"],
  comment: "Every feature that a job asks for, one row each. Key: code.",
  columns: [
    required("code", "VARCHAR", "clear", "Code of the feature."),
    column("engines", "VARCHAR[]", "own", "Engines that are asked for it, in the order of their names."),
    date("first_seen", "Date of the first run with the feature."),
    date("last_seen", "Date of the last run with the feature."),
  ],
  sql: `SELECT a.feature AS code, a.engines, min(c.run_date) AS first_seen, max(c.run_date) AS last_seen
    FROM (SELECT feature, list_sort(list(DISTINCT engine_reference)) AS engines FROM store._asked
      WHERE feature IS NOT NULL AND engine_reference IS NOT NULL GROUP BY feature) AS a
      LEFT JOIN ops.coverage AS c USING (feature)
    GROUP BY ALL`,
}

/** Whether somebody still asks for the customer on the engine, and what else is to hold of that. */
const isAsked = (alias: string, feature = ""): string => `(${alias}.engine_reference IS NULL OR EXISTS (
    SELECT 1 FROM store._asked AS a WHERE a.customer_id IS NOT DISTINCT FROM ${alias}.customer_id
      AND a.engine_reference = ${alias}.engine_reference
      ${feature}))`

/** What came without being requested is told as long as the engine is asked. */
const ofFeature =
  "AND (a.feature IS NULL OR c.feature IS NULL OR a.feature = c.feature " +
  "OR NOT list_contains(t.features, c.feature))"

const coverage: Relation = {
  schema: "main",
  name: "coverage",
  key: [],
  comment:
    "The newest outcome of each customer, engine and feature that is asked for, and how old its data is: " +
    "one row each, and one per session for sessions that were only read. That of every run is in " +
    "ops.coverage.",
  columns: [
    customer,
    engine,
    text("session_id", "session", "The flow session whose results the newest run read."),
    text("feature", "clear", "Code of the feature; NULL for a task whose features are not known."),
    { ...outcome, nullable: true },
    text("reason", "own", "Reason for the outcome in that run."),
    { ...actor, nullable: true },
    column("records", "INTEGER", "own", "Number of records published in that run; NULL if it is not known."),
    column(
      "counted",
      "BIGINT",
      "own",
      "Number of products that the service counted; NULL if it is not known which.",
    ),
    time("as_of", "own", "When the results of the last success arrived; NULL if it never succeeded."),
    date(
      "fresh_date",
      "Date of the last run in which it succeeded, or of the newest night before that one; " +
        "NULL if it never did.",
    ),
    column("age_days", "INTEGER", "own", "Days from `fresh_date` to today; NULL if it never succeeded."),
    text("run_id", "own", "The newest run with this customer, engine and feature."),
    date("run_date", "The date of that run."),
  ],
  sql: `WITH told AS (SELECT c.*, ${aloneSql("c")} AS _alone, r.seq, r.e
      FROM ops.coverage AS c JOIN store._runs AS r USING (run_id) JOIN ops.tasks AS t USING (run_id, task_id)
      WHERE ${isAsked("c", ofFeature)}),
    good AS (SELECT customer_id, engine_reference, _alone, feature,
        max(e) AS fresh_date, arg_max(as_of, seq) AS as_of
      FROM told WHERE outcome = 'succeeded' GROUP BY ALL)
    SELECT t.customer_id, t.engine_reference, t.session_id, t.feature, t.outcome, t.reason, t.who_acts,
      t.records, t.counted, g.as_of, g.fresh_date,
      CAST(date_diff('day', g.fresh_date, current_date) AS INTEGER) AS age_days, t.run_id, t.run_date
    FROM told AS t LEFT JOIN good AS g ON ${sameSql("t", "g", [...subject, "feature"])}
    QUALIFY row_number() OVER (
      PARTITION BY t.customer_id, t.engine_reference, t._alone, t.feature ORDER BY t.seq DESC) = 1`,
}

/** The sessions whose results are current: the newest that was read, and those of current records. */
const inUse = `used AS (
    SELECT r.run_id, r.task_id, r.session_id, r.seq FROM store._scopes AS s JOIN store._readings AS r
      ON r._reading = s._reading WHERE ${isAsked("s")}
    UNION
    SELECT n.run_id, n.task_id, n.session_id, r.seq
    FROM ops.sessions AS n JOIN store._runs AS r USING (run_id)
    WHERE n.records IS NOT NULL AND ${isAsked("n")}
    QUALIFY row_number() OVER (PARTITION BY n.customer_id, n.engine_reference, ${aloneSql("n")}
      ORDER BY r.seq DESC, n.pulled_at DESC) = 1
  )`

const ofRun = ["run_id", "run_date", "task_id"]

const consentColumns = consentsTable.columns.filter(({ name }) => !ofRun.includes(name))
const consents: Relation = {
  schema: "main",
  name: consentsTable.name,
  key: [],
  comment: "The newest consent of each customer and engine. Those of every run are in ops.consents.",
  columns: consentColumns,
  sql: `WITH ${inUse}
    SELECT ${consentColumns.map(({ name }) => `c.${name}`).join(", ")}
    FROM ops.consents AS c JOIN used AS u USING (run_id, task_id, session_id)
    QUALIFY row_number() OVER (PARTITION BY c.customer_id, c.engine_reference, ${aloneSql("c")}
      ORDER BY u.seq DESC, c.accepted_date DESC) = 1`,
}

const documentColumns = documentsTable.columns.filter(({ name }) => !ofRun.includes(name))
const documents: Relation = {
  schema: "main",
  name: documentsTable.name,
  key: [],
  comment:
    "Every document that current results name, once for each customer and engine. Its link to a record and " +
    "its title are what the results say beside its identifier; the reference shows no more.",
  columns: documentColumns,
  sql: `WITH ${inUse}
    SELECT ${documentColumns.map(({ name }) => `d.${name}`).join(", ")}
    FROM ops.documents AS d JOIN used AS u USING (run_id, task_id, session_id)
    QUALIFY row_number() OVER (PARTITION BY d.customer_id, d.engine_reference, ${aloneSql("d")},
      d.attachment_id ORDER BY u.seq DESC, d.session_id) = 1`,
}

export const dimensions: ReadonlyArray<Relation> = [
  consents,
  documents,
  coverage,
  customers,
  engines,
  features,
]

// Which table belongs to which, and by which columns: from a run down to the lists of a record. The page of
// tables draws it. Pure.

/** Every row of `table` whose `columns` are not NULL has its row in `of`; names of tables of one night. */
export interface Reference {
  readonly table: string
  readonly of: string
  readonly columns: ReadonlyArray<string>
}

const task = ["run_id", "task_id"]
const execution = [...task, "execution_id"]
const session = [...task, "session_id"]
const record = [...session, "record_id"]

const systemReferences: ReadonlyArray<readonly [string, string, ReadonlyArray<string>]> = [
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
export const referencesOf = (families: ReadonlyArray<RecordFamily>): ReadonlyArray<Reference> => [
  ...systemReferences.map(([table, of, columns]) => ({ table, of, columns })),
  ...families.flatMap(({ table, children }) => [
    { table, of: "sessions", columns: session },
    ...children.map((child) => ({ table: child.table, of: table, columns: record })),
  ]),
]

/** The same of what is true now: a record's lists belong to it. */
export const mainReferences = (families: ReadonlyArray<RecordFamily>): ReadonlyArray<Reference> =>
  families.flatMap(({ table, children }) =>
    children.map((child) => ({ table: child.table, of: table, columns: ["record_id"] })),
  )

/**
 * How tables of `main` are joined: the lists of a record with it, and everything with its customer and
 * engine. The latter is no reference: what a session that was only read brought stays, whoever is asked for.
 */
export const mainJoins = (
  families: ReadonlyArray<RecordFamily>,
  views: ReadonlyArray<Pick<Relation, "schema" | "name" | "columns">>,
): ReadonlyArray<Reference> => [
  ...mainReferences(families),
  ...[customers, engines].flatMap(({ name: of, key: columns }) =>
    views
      .filter(({ schema, name }) => schema === "main" && name !== of)
      .filter((view) => columns.every((key) => view.columns.some(({ name }) => name === key)))
      .map(({ name: table }) => ({ table, of, columns })),
  ),
]
