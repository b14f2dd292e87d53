/**
 * What is true now beside the records: customers, engines and features that are asked for, newest outcomes,
 * consents and documents. Views of what is kept as runs are added, so that they take as long after a year.
 */
import { own, required, text, time, type ColumnSpec, type TableSpec } from "../records/Columns.ts"
import type { RecordFamily } from "../records/RecordSchema.ts"
import { otherRecordsTable, rejectedRecordsTable } from "../records/RecordTables.ts"
import { ageSql, orLaterDate, storeColumn, storeTable } from "./RecordStore.ts"
import type { Relation, StoreColumn, StoreTable } from "./RecordStore.ts"
import { literal } from "../base/DuckDbFailed.ts"
import { aloneSql, isAnswered, lookedOn, sameSql, subject, temp } from "./Answers.ts"
import { actor, consentsTable, customer, documentsTable, engine, engineFields } from "./SystemTables.ts"
import { outcome, productsCounted } from "./SystemTables.ts"

/** What a view needs of all runs: one row a key in a table of `store`, which takes in those of each run. */
interface Gathered {
  readonly name: string
  readonly what: string
  readonly key: ReadonlyArray<StoreColumn>
  /** Columns beside the key and `seq`, its newest run, and what several rows become. */
  readonly columns: ReadonlyArray<StoreTable["columns"][number] & { readonly together: string }>
  /** A query for the rows of all runs, by run. */
  readonly rows: string
}

const newestOf = "session_id, outcome, reason, who_acts, records, counted, run_id, run_date"

const ofCoverage: Gathered = {
  name: "store._coverage",
  what: "The newest outcome of each feature.",
  key: [...subject, "feature", "requested"],
  columns: [
    {
      name: "newest",
      type: `STRUCT(session_id VARCHAR, outcome VARCHAR, reason VARCHAR, who_acts VARCHAR, records INTEGER,
          counted BIGINT, run_id VARCHAR, run_date DATE)`,
      comment: "What the newest run says.",
      together: "arg_max(newest, seq)",
    },
    {
      name: "good",
      type: "STRUCT(seq BIGINT, e DATE, as_of TIMESTAMPTZ)",
      comment: "The newest run in which it succeeded and was read.",
      together: "arg_max(good, good.seq)",
    },
  ],
  rows: `SELECT run_id, c.customer_id, c.engine_reference, ${aloneSql("c")} AS _alone, c.feature,
        coalesce(list_contains(t.features, c.feature), true) AS requested, r.seq,
        {${newestOf.replaceAll(/\w+/g, (name) => `${name}: c.${name}`)}} AS newest,
        CASE WHEN ${isAnswered("c")}
          THEN {seq: r.seq, e: ${lookedOn("r.e", "o")}, as_of: c.as_of} END AS good
      FROM ops.coverage AS c JOIN store._runs AS r USING (run_id) JOIN ops.runs AS o USING (run_id)
        JOIN ops.tasks AS t USING (run_id, task_id)`,
}

const gathered: ReadonlyArray<Gathered> = [
  ofCoverage,
  {
    name: "store._sessions",
    what: "The newest session with results.",
    key: subject,
    columns: [
      {
        name: "newest",
        type: `STRUCT(seq BIGINT, pulled_at TIMESTAMPTZ, run_id VARCHAR, run_date DATE, task_id VARCHAR,
          session_id VARCHAR)`,
        comment: "What the newest run says.",
        together: "max(newest)",
      },
    ],
    rows: `SELECT run_id, n.customer_id, n.engine_reference, ${aloneSql("n")} AS _alone, r.seq,
        {seq: r.seq, pulled_at: n.pulled_at, run_id: n.run_id, run_date: n.run_date, task_id: n.task_id,
          session_id: n.session_id} AS newest
      FROM ops.sessions AS n JOIN store._runs AS r USING (run_id) WHERE n.records IS NOT NULL`,
  },
  {
    name: "store._dates",
    what: "When each customer, engine and feature was seen.",
    key: ["kind", "id"],
    columns: [
      { ...storeColumn("first_seen"), together: "min(first_seen)" },
      { ...storeColumn("last_seen"), together: "max(last_seen)" },
    ],
    rows: `SELECT run_id, k.kind, k.id, r.seq, least(k.run_date, r.e) AS first_seen,
        least(k.run_date, r.e) AS last_seen
      FROM (SELECT run_id, run_date, unnest([{kind: 'customer', id: customer_id},
            {kind: 'engine', id: engine_reference}], recursive := true) FROM ops.tasks
        UNION ALL SELECT run_id, run_date, 'feature', feature FROM ops.coverage) AS k
        JOIN store._runs AS r USING (run_id)`,
  },
]

export const gatheredTables: ReadonlyArray<StoreTable> = gathered.map((each) => {
  const { name, what, key, columns } = each
  const comment = `${what} Key: ${key.join(", ")}.`
  return storeTable(name.replace("store.", ""), comment, [...key, "seq", ...columns])
})

const gather = ({ name, key, columns }: Gathered, from: string): string =>
  `INSERT INTO ${name}
    SELECT ${key.join(", ")}, max(seq), ${columns.map((each) => each.together).join(", ")}
    FROM (${from}) GROUP BY ${key.join(", ")} ORDER BY ${key.join(", ")};`

/** Takes in the rows of a run that has just been added. */
export const gatherRun = (run_id: string): string =>
  gathered
    .map((each) => {
      const { name, key, columns, rows } = each
      const own = [...key, "seq", ...columns.map((each) => each.name)].join(", ")
      const ofKeys = (of: string) =>
        `${name} AS g WHERE EXISTS (FROM ${of} AS n WHERE ${sameSql("g", "n", key)})`
      return `${temp("gathered")}
        WITH own AS MATERIALIZED (SELECT ${own} FROM (${rows}) WHERE run_id = ${literal(run_id)})
        FROM own UNION ALL SELECT g.* FROM ${ofKeys("own")};
      DELETE FROM ${ofKeys("step_gathered")};
      ${gather(each, "FROM step_gathered")}`
    })
    .join("\n")

/** Takes out a run that has just been taken away: what it was the newest of is gathered from all others. */
export const gatherWithout = (seq: number): string =>
  gathered
    .map(
      (each) => `${temp("gathered")} SELECT ${each.key.join(", ")} FROM ${each.name} WHERE seq = ${seq};
      DELETE FROM ${each.name} WHERE seq = ${seq};
      ${gather(
        each,
        `SELECT h.* FROM (${each.rows}) AS h SEMI JOIN step_gathered AS n ON ${sameSql("h", "n", each.key)}`,
      )}`,
    )
    .join("\n")

/** Rows of coverage of some runs were replaced by others that decide the same. */
export const gatherOutcomes = (runs: ReadonlyArray<string>): string => {
  const ofRuns = `run_id IN (${runs.map(literal).join(", ")})`
  const isOf = sameSql("_coverage", "n", ofCoverage.key)
  return `${temp("gathered")} FROM (${ofCoverage.rows}) WHERE ${ofRuns};
  UPDATE store._coverage SET newest = n.newest FROM step_gathered AS n
    WHERE ${isOf} AND _coverage.seq = n.seq;
  UPDATE store._coverage SET good = n.good FROM step_gathered AS n
    WHERE ${isOf} AND _coverage.good.seq = n.seq;`
}

const dates = (kind: string, id: string): string => `store._dates AS d ON d.kind = '${kind}' AND d.id = ${id}`

const date = (name: string, comment: string): ColumnSpec => own(name, "DATE", comment)
const datesOf = (runs: string): ReadonlyArray<ColumnSpec> => [
  date("first_seen", `Earliest date of a run ${runs}.`),
  date("last_seen", `Latest date of a run ${runs}.`),
]

const customers: Relation = {
  schema: "main",
  name: "customers",
  key: ["customer_id"],
  comment: "Every customer that a job asks for, one row each. Key: customer_id.",
  columns: [
    required(text("customer_id", "customer_id", "The customer's id in the job.")),
    own("jobs", "VARCHAR[]", "Jobs that ask for the customer, in the order of their names."),
    own("engines", "VARCHAR[]", "Engines that they ask, in the order of their names."),
    ...datesOf("that asked for the customer"),
  ],
  sql: `SELECT a.customer_id, a.jobs, a.engines, d.first_seen, d.last_seen
    FROM (SELECT customer_id, list_sort(list(DISTINCT job)) AS jobs,
        coalesce(list_sort(list(DISTINCT engine_reference)
          FILTER (engine_reference IS NOT NULL)), []) AS engines
      FROM store._asked WHERE customer_id IS NOT NULL GROUP BY customer_id) AS a
      JOIN ${dates("customer", "a.customer_id")}`,
}

const engines: Relation = {
  schema: "main",
  name: "engines",
  key: ["engine_reference"],
  comment:
    "Every engine that a job asks, one row each, with what the catalogue last said. Key: engine_reference.",
  columns: [engine, ...engineFields, ...datesOf("with the engine")],
  sql: `WITH described AS (
      SELECT d.* FROM ops.engine_descriptions AS d JOIN store._runs AS r USING (run_id)
      QUALIFY row_number() OVER (PARTITION BY d.engine_reference ORDER BY r.seq DESC) = 1
    )
    SELECT a.engine_reference, ${engineFields.map(({ name }) => `said.${name}`).join(", ")},
      d.first_seen, d.last_seen
    FROM (SELECT DISTINCT engine_reference FROM store._asked WHERE engine_reference IS NOT NULL) AS a
      JOIN ${dates("engine", "a.engine_reference")} LEFT JOIN described AS said USING (engine_reference)`,
}

const features: Relation = {
  schema: "main",
  name: "features",
  key: ["code"],
  comment: "Every feature that a job asks for, one row each. Key: code.",
  columns: [
    required(text("code", "clear", "Code of the feature.")),
    own("engines", "VARCHAR[]", "Engines that are asked for it, in the order of their names."),
    ...datesOf("with the feature"),
  ],
  sql: `SELECT a.feature AS code, a.engines, d.first_seen, d.last_seen
    FROM (SELECT feature, list_sort(list(DISTINCT engine_reference)) AS engines FROM store._asked
      WHERE feature IS NOT NULL AND engine_reference IS NOT NULL GROUP BY feature) AS a
      LEFT JOIN ${dates("feature", "a.feature")}`,
}

/** Whether somebody still asks for the customer on the engine, and what else is to hold of that. */
const isAsked = (alias: string, feature = ""): string => `(${alias}.engine_reference IS NULL OR EXISTS (
    SELECT 1 FROM store._asked AS a WHERE a.customer_id IS NOT DISTINCT FROM ${alias}.customer_id
      AND a.engine_reference = ${alias}.engine_reference
      ${feature}))`

/** What came without being requested is told until the engine has answered without it. */
const ofFeature = `AND (a.feature IS NULL OR c.feature IS NULL OR a.feature = c.feature
        OR (NOT c.requested AND coalesce(c.seq >= c.answered, true)))`

/** The key of rows that sessions without an engine have each their own of. */
const keyText = (more: ReadonlyArray<string>): string =>
  `Key: ${["customer_id", "engine_reference", ...more].join(", ")}; without an engine, session_id too.`

const coverage: Relation = {
  schema: "main",
  name: "coverage",
  key: [],
  comment:
    "The newest outcome of each feature of each customer and engine that is asked for, also of one that " +
    "came unrequested, and how old its data is: one row each, and one per session for sessions that were " +
    "only read. That of every run is in ops.coverage. " +
    keyText(["feature"]),
  columns: [
    customer,
    engine,
    text("session_id", "session", "The flow session whose results the newest run read."),
    text(
      "feature",
      "clear",
      "Code of the feature; NULL if the newest run does not know what it was asked for, as when it failed.",
    ),
    { ...outcome, nullable: true },
    text("reason", "clear", "Reason for the outcome in that run."),
    { ...actor, nullable: true },
    own("records", "INTEGER", "Number of records published in that run; NULL if it is not known."),
    productsCounted,
    time("as_of", "When the results of the last success arrived; NULL if none ever did."),
    date(
      "fresh_date",
      `Date of the last run in which it succeeded and was read; ${orLaterDate}; NULL if none.`,
    ),
    own("age_days", "INTEGER", "Days from `fresh_date` to today; NULL if there is none."),
    text("run_id", "own", "The newest run with this customer, engine and feature."),
    date("run_date", "The date of that run."),
  ],
  sql: `SELECT customer_id, engine_reference, n.session_id, feature, n.outcome, n.reason, n.who_acts,
      n.records, n.counted, g.as_of, g.e AS fresh_date,
      ${ageSql("g.e")} AS age_days, n.run_id, n.run_date
    FROM (SELECT customer_id, engine_reference, feature, arg_max(newest, seq) AS n,
        arg_max(good, good.seq) AS g
      FROM (SELECT *, max(good.seq) OVER (PARTITION BY customer_id, engine_reference, _alone) AS answered
          FROM store._coverage) AS c WHERE ${isAsked("c", ofFeature)}
      GROUP BY customer_id, engine_reference, _alone, feature
      QUALIFY feature IS NOT NULL
        OR max(seq) = max(max(seq)) OVER (PARTITION BY customer_id, engine_reference, _alone))`,
}

/**
 * The sessions whose results are current: the newest that was read, and those of current records; if a
 * feature did not succeed, also the newest in which all did.
 */
const inUse = `used AS (
    (SELECT r.run_id, r.run_date, r.task_id, r.session_id, r.seq FROM store._scopes AS s
      JOIN store._readings AS r ON r._scope = s._scope AND r._answered
        AND (r._reading = s._reading OR (len(s.lacks) > 0 AND len(r.lacks) = 0)) WHERE ${isAsked("s")}
      QUALIFY row_number() OVER (PARTITION BY s._scope, len(r.lacks) ORDER BY r._reading DESC) = 1)
    UNION
    SELECT n.newest.run_id, n.newest.run_date, n.newest.task_id, n.newest.session_id, n.seq
    FROM store._sessions AS n WHERE ${isAsked("n")}
  )`
/** By date too: rows of other nights need not be read. */
const joinUsed = "JOIN used AS u USING (run_id, run_date, task_id, session_id)"

const ofRun = ["run_id", "run_date", "task_id"]

/** The newest row of each of these in the sessions in use. */
const newestIn = (table: TableSpec, comment: string, of: ReadonlyArray<string>, order: string): Relation => {
  const columns = table.columns.filter(({ name }) => !ofRun.includes(name))
  const each = ["t.customer_id", "t.engine_reference", aloneSql("t"), ...of]
  return {
    schema: "main",
    name: table.name,
    key: [],
    comment,
    columns,
    sql: `WITH ${inUse}
    SELECT ${columns.map(({ name }) => `t.${name}`).join(", ")} FROM ops.${table.name} AS t ${joinUsed}
    QUALIFY row_number() OVER (PARTITION BY ${each.join(", ")} ORDER BY u.seq DESC, ${order}) = 1`,
  }
}

const consents = newestIn(
  consentsTable,
  `The newest consent of each customer and engine. Those of every run are in ops.consents. ${keyText([])}`,
  [],
  "t.accepted_date DESC",
)

const documents = newestIn(
  documentsTable,
  "Every document that current results name, once for each customer and engine. Its link to a record and " +
    "its title are what the results say beside its identifier; the reference shows no more. " +
    keyText(["attachment_id"]),
  ["t.attachment_id"],
  "t.session_id",
)

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
