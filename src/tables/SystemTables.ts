/**
 * Every published table that is not made of records, with a comment for each table and column: runs, tasks,
 * executions and what they said, deletions, coverage, and those about sessions. Names and order are the
 * contract's; columns may be added, never dropped.
 */
import { column, required } from "../records/Columns.ts"
import type { ColumnSpec, TableSpec } from "../records/Columns.ts"
import { actors, outcomes } from "../service/EndTable.ts"

// What the system tables have in common: the columns that name run, task, execution, session, customer and
// engine, and the key that every table declares in its comment.

/** The columns of `key` identify a row; none of them repeats together. */
export interface SystemTable extends TableSpec {
  readonly key: ReadonlyArray<string>
}

const runDate = required("run_date", "DATE", "The date of the run in the job's time zone.")
const task = required("task_id", "VARCHAR", "The task within the run: customer and engine, or session.")
const execution = column("execution_id", "VARCHAR", "The remote execution.")
const session = column("session_id", "VARCHAR", "The flow session that holds the results.")
export const customer = column("customer_id", "VARCHAR", "The customer's id in the job.")
export const engine: ColumnSpec = {
  ...column("engine_reference", "VARCHAR", "The engine; NULL for a session that was only read."),
  repeats: true,
}
const position = required("position", "INTEGER", "Position in the list, from 0.")
const extra = column("extra", "JSON", "Fields that have no column; NULL if there are none.")
/** A column with no other values: they are ours, and a new one is a change of the program. */
const oneOf = (spec: ColumnSpec, values: ReadonlyArray<string>): ColumnSpec => ({ ...spec, values })
export const actor = oneOf(
  required("who_acts", "VARCHAR", "Who has to act: nobody, customer, engineer or service."),
  actors,
)
export const outcome = oneOf(
  required("outcome", "VARCHAR", "succeeded, partial, failed, skipped or unfinished."),
  outcomes,
)

const runStatus = oneOf(
  required("status", "VARCHAR", "running; finished; unfinished: ended with something left at the service."),
  ["running", "finished", "unfinished"],
)
const deletionOutcome = oneOf(
  column("outcome", "VARCHAR", "deleted, gone (the service no longer knew it) or pending."),
  ["deleted", "gone", "pending"],
)

export const time = (name: string, comment: string) => column(name, "TIMESTAMPTZ", comment)
export const text = (name: string, comment: string) => column(name, "VARCHAR", comment)

const run: ColumnSpec = {
  ...required("run_id", "VARCHAR", "The run that the row belongs to."),
  repeats: true,
}

/** Every table begins with its run and its date; `key` is what identifies a row within the run. */
const table = (
  name: string,
  comment: string,
  key: ReadonlyArray<string>,
  columns: ReadonlyArray<ColumnSpec>,
): SystemTable => ({
  name,
  comment,
  key: [run.name, ...key],
  columns: columns.includes(runDate) ? [run, ...columns] : [run, runDate, ...columns],
})

// The tables about flow sessions, with a comment for each table and column: the sessions, their consents,
// and the documents that their results name.

/** The session, and the task and execution behind it. */
const ofSession: ReadonlyArray<ColumnSpec> = [task, session, execution, customer, engine]

export const sessionsTable = table(
  "sessions",
  "One row per flow session whose results were requested.",
  ["task_id", "session_id"],
  [
    ...ofSession,
    text("status_code", "Final status of the session, recognised by its value."),
    text("cursor", "Last screen with user interaction, recognised by its value."),
    column("is_closed", "BOOLEAN", "False: the results were partial when they were last read."),
    column("retrieved_features", "VARCHAR[]", "Features that were retrieved."),
    time("pulled_at", "When the newest body arrived, or was last requested."),
    column("records", "INTEGER", "Number of records in the newest body; NULL if there is none."),
    extra,
  ],
)

/** As the service names them (section 2.7). */
export const consentFields: ReadonlyArray<ColumnSpec> = [
  time("accepted_date", "When the consent was given."),
  column("accepted_features", "VARCHAR[]", "Features that the customer accepted."),
  text("user_ip", "Address of the customer's device."),
  text("user_agent", "Browser of the customer."),
  text("origin", "Site that loaded the widget."),
]

export const consentsTable = table(
  "consents",
  "Consent audit trail of each session.",
  ["task_id", "session_id"],
  [...ofSession, ...consentFields, extra],
)

/** As the service names them (section 2.7). */
export const consentDocumentFields: ReadonlyArray<ColumnSpec> = [
  text("version", "Version of the document."),
  text("hash", "SHA-256 of the accepted content."),
  time("sign_date", "When it was signed."),
  text("signature_provider", "Who provided the signature."),
  column("signature_metadata", "JSON", "Details of the signature."),
]

export const consentDocumentsTable = table(
  "consent_documents",
  "Documents accepted with a consent.",
  ["task_id", "session_id", "document_id"],
  [
    ...ofSession,
    required("document_id", "VARCHAR", "Identifier of the document."),
    ...consentDocumentFields,
    extra,
  ],
)

/** What may become of a download. */
const downloads = ["downloaded", "missing", "refused", "failed"]

export const attachmentsTable = table(
  "attachments",
  "Documents that the results refer to, as they were requested.",
  ["task_id", "session_id", "attachment_id"],
  [
    ...ofSession,
    text("attachment_id", "Identifier of the document at the service."),
    text("media_type", "Media type according to the service."),
    column("bytes", "BIGINT", "Size."),
    text("sha256", "SHA-256 of the content."),
    text("path", "Where the document is, relative to the output folder."),
    oneOf(text("status", "downloaded, missing, refused or failed."), downloads),
  ],
)

export const documentsTable = table(
  "documents",
  "Every document that the results name, one row per session and document. Its link to a record and its " +
    "title are what the results say beside its identifier; the reference shows no more.",
  ["task_id", "session_id", "attachment_id"],
  [
    ...ofSession,
    text("record_id", "The record that names the document; NULL if it is named outside of any record."),
    text("attachment_id", "Identifier of the document at the service."),
    text("title", "The `title`, `name` or `description` of the object that names the document."),
    text("media_type", "Media type according to the download, otherwise to the object that names it."),
    column("bytes", "BIGINT", "Size; NULL if it was not downloaded."),
    text("sha256", "SHA-256 of the content."),
    text("path", "Where the document is, relative to the output folder."),
    oneOf(text("status", "downloaded, missing, refused, failed or not_requested."), [
      ...downloads,
      "not_requested",
    ]),
  ],
)

const counted = (name: string): ColumnSpec =>
  required(name, "INTEGER", `Number of tasks whose outcome is ${name}.`)

export const runsTable = table(
  "runs",
  "One row per run of a job.",
  [],
  [
    required("job", "VARCHAR", "Name of the job."),
    runDate,
    required("started_at", "TIMESTAMPTZ", "When the run began."),
    column(
      "ended_at",
      "TIMESTAMPTZ",
      "When the run ended; NULL while it is running or was interrupted. Only resuming a run moves it.",
    ),
    runStatus,
    required("tasks", "INTEGER", "Number of planned tasks."),
    counted("succeeded"),
    counted("partial"),
    counted("failed"),
    counted("skipped"),
    counted("unfinished"),
    column("exit_code", "INTEGER", "Exit code of the run; NULL until it ends."),
    required("tool_version", "VARCHAR", "Version of the program that began the run."),
    column("parent", "VARCHAR", "The run that this run is a rerun of."),
    column("replaces", "VARCHAR[]", "Jobs that the job takes the place of."),
    column("sequence", "BIGINT", "Increases with every run, even if the clock was set back."),
    time("resumed_at", "When the run was last resumed; NULL if it never was."),
    time("executed_at", "When the last of its tasks was settled before the run ended."),
    time("published_at", "When its tables were last published before the run ended."),
    time(
      "deletions_at",
      "When the service last answered a deletion before the run ended; NULL if there was none.",
    ),
    time("collected_at", "When a later run last published what was still open at the end; NULL if none did."),
  ],
)

export const tasksTable = table(
  "tasks",
  "One row per task: one customer on one engine within a run.",
  ["task_id"],
  [
    task,
    customer,
    engine,
    required("features", "VARCHAR[]", "Features that were requested."),
    outcome,
    column(
      "reason",
      "VARCHAR",
      "The service's status_reason, or ours in the same spelling; NULL while open.",
    ),
    actor,
    required(
      "attempts",
      "INTEGER",
      "Number of remote executions; a start that certainly created nothing does not count.",
    ),
    { ...execution, comment: "The newest execution that was accepted." },
    session,
    column("started_at", "TIMESTAMPTZ", "When the first start was sent."),
    column("closed_at", "TIMESTAMPTZ", "When the newest execution was seen closed."),
  ],
)

/** The scalar fields of an execution state (section 2.4), in its own words. */
export const stateColumns: ReadonlyArray<ColumnSpec> = [
  execution,
  session,
  text("app_id", "The application that started the execution."),
  customer,
  text("external_execution_id", "Our own id for the execution."),
  engine,
  text("auth_origin", "How the start was authorised."),
  text("status_code", "Family of the state."),
  text("status_reason", "Exact reason for the state."),
  text("status_message", "The service's own text; not to be parsed."),
  text("authentication_status", "not-performed, AUTH_OK, or why the login was refused."),
  column("is_closed", "BOOLEAN", "True when the execution is over."),
  text("end_hook", "Delivery state of the webhook for the end."),
  column("warnings_count", "INTEGER", "Number of warnings among the messages."),
  column("errors_count", "INTEGER", "Number of errors among the messages."),
  text("locking_hash", "Versioned fingerprint of the fixed part of the credentials."),
  time("date_created", "When the service accepted the execution."),
  time("date_started", "When the engine began; before that, the execution was queued."),
  time("date_ended", "When the execution ended."),
  column("execution_time", "DOUBLE", "Seconds of active processing."),
  column("running_time", "DOUBLE", "Seconds of processing and of waiting for a person."),
  column("total_elapsed_time", "DOUBLE", "Seconds since acceptance, including the queue."),
  time("action_required_expires", "Until when a pending challenge can be answered."),
  time("next_kick_date", "When the service resumes the execution by itself."),
]

export const executionsTable = table(
  "executions",
  "One row per attempt: one remote execution for a task.",
  ["task_id", "attempt"],
  [
    task,
    required("attempt", "INTEGER", "Number of the attempt within the task, from 1."),
    ...stateColumns,
    time("deleted_at", "When the service said that the execution was deleted or gone."),
    extra,
  ],
)

/** The task that an execution belongs to. */
const ofExecution: ReadonlyArray<ColumnSpec> = [task, execution, customer, engine]

/** As the service names them (section 2.4). */
export const featureFields: ReadonlyArray<ColumnSpec> = [
  text("code", "Code of the feature."),
  text("status_reason", "Outcome of the feature."),
  text("status_message", "The service's own text; not to be parsed."),
]

/** As the service names them (section 2.4); `loc` may also hold numbers. */
export const messageFields: ReadonlyArray<ColumnSpec> = [
  time("date", "When the message was written."),
  text("type", "error, info, warning or notification."),
  text("id", "Stable identifier of the situation; use this for automation."),
  column("loc", "VARCHAR[]", "What the message is about; empty for the whole result."),
  text("message", "Text in the market's language; may be reworded."),
]

export const executionFeaturesTable = table(
  "execution_features",
  "Outcome of each feature of an execution.",
  ["execution_id", "position"],
  [...ofExecution, ...featureFields, position],
)

export const executionMessagesTable = table(
  "execution_messages",
  "Messages of an execution.",
  ["execution_id", "position"],
  [...ofExecution, position, ...messageFields],
)

export const executionErrorsTable = table(
  "execution_errors",
  "What the service refused in a start.",
  ["execution_id", "kind", "position"],
  [
    ...ofExecution,
    oneOf(required("kind", "VARCHAR", "parameters or configurations."), ["parameters", "configurations"]),
    position,
    column("loc", "VARCHAR[]", "Path of the refused field."),
    text("msg", "What is wrong."),
    text("type", "Kind of error."),
    column("ctx", "JSON", "Details of the error."),
  ],
)

export const productsCountTable = table(
  "products_count",
  "Products counted for an execution.",
  ["execution_id", "key"],
  [
    ...ofExecution,
    required("key", "VARCHAR", "Key as the service writes it: <family>:<subtype>@<product>."),
    text("family", "Family of the product; NULL if the key has another form."),
    text("subtype", "Subtype within the family; NULL if the key has another form."),
    text("product", "Product; NULL if the key has another form."),
    column("count", "BIGINT", "How many; NULL if it is not a whole number."),
  ],
)

export const deletionsTable = table(
  "deletions",
  "One row per execution whose deletion was requested.",
  ["execution_id"],
  [
    ...ofExecution,
    time("asked_at", "When the deletion was decided."),
    column("http_status", "INTEGER", "Status of the newest answer; NULL while there is none."),
    deletionOutcome,
    text("landed_sha256", "Receipt: hash over the hashes of all landed bodies of the execution."),
    column(
      "counted",
      "INTEGER",
      "Records that the service counted; NULL if the job wants no records or no count.",
    ),
    column("landed", "INTEGER", "Number of records landed, of the counted families and of all others."),
    column(
      "proof",
      "JSON",
      "What allowed the deletion: its basis, and the records counted and landed per family.",
    ),
  ],
)

export const coverageTable = table(
  "coverage",
  "The outcome of each customer, engine and feature in each run.",
  ["task_id", "feature"],
  [
    task,
    session,
    customer,
    engine,
    text("feature", "Code of the feature; NULL for a task whose features are not known."),
    outcome,
    text("reason", "Reason for the outcome of the feature, or of its task."),
    actor,
    column(
      "records",
      "INTEGER",
      "Number of records published. 0: its tables are known and got none, or every record of the final " +
        "results belongs to another feature. NULL: not known: nothing was read, or a record may be its own.",
    ),
    column(
      "counted",
      "BIGINT",
      "Number of products that the service counted; NULL if it is not known which.",
    ),
    time("as_of", "When the results arrived or the task was settled."),
  ],
)

/** As the service names them (section 2.2). */
export const engineFields: ReadonlyArray<ColumnSpec> = [
  text("name", "Name of the engine."),
  text("engine_version", "Version of the engine."),
  text("engine_alternative", "website, mobile, api or other."),
  text("main_category", "financial, public, commercial, cloud or other."),
  column("sub_categories", "VARCHAR[]", "Values of the form <category>:<name>."),
  column("markets", "VARCHAR[]", "Country codes."),
  text("status", "draft, implementing, published, partial or maintenance."),
  text("action_required_frequency", "How often the source asks for the customer in person."),
  text("website", "Address of the source."),
]

export const engineDescriptionsTable = table(
  "engine_descriptions",
  "What the catalogue says about each engine of a run; none for an engine whose details were never read.",
  ["engine_reference"],
  [engine, ...engineFields, time("read_at", "When the service was last asked before this row was written.")],
)

export const systemTables: ReadonlyArray<SystemTable> = [
  runsTable,
  tasksTable,
  executionsTable,
  executionFeaturesTable,
  executionMessagesTable,
  executionErrorsTable,
  productsCountTable,
  sessionsTable,
  consentsTable,
  consentDocumentsTable,
  attachmentsTable,
  documentsTable,
  deletionsTable,
  coverageTable,
  engineDescriptionsTable,
]

/** Those that deletions and the end of a run change. */
export const outcomeTables: ReadonlyArray<SystemTable> = [
  runsTable,
  tasksTable,
  executionsTable,
  deletionsTable,
  coverageTable,
]
