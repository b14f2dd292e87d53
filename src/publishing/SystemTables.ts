/**
 * Every published table that is not made of records, with a comment for each table and column: runs, tasks,
 * executions and what they said, sessions and consents, attachments, deletions, coverage. Names and order
 * are the contract's; columns may be added, never dropped.
 */
import { column, required } from "../records/Columns.ts"
import type { ColumnSpec, TableSpec } from "../records/Columns.ts"

const run: ColumnSpec = {
  ...required("run_id", "VARCHAR", "The run that the row belongs to."),
  repeats: true,
}
const task = required("task_id", "VARCHAR", "The task within the run: customer and engine, or session.")
const execution = column("execution_id", "VARCHAR", "The remote execution.")
const session = column("session_id", "VARCHAR", "The flow session that holds the results.")
const customer = column("customer_id", "VARCHAR", "The customer's id in the job.")
const engine: ColumnSpec = {
  ...column("engine_reference", "VARCHAR", "The engine; NULL for a session that was only read."),
  repeats: true,
}
const position = required("position", "INTEGER", "Position in the list, from 0.")
const extra = column("extra", "JSON", "Fields that have no column; NULL if there are none.")
const actor = "Who has to act: nobody, customer, engineer or service."
const outcome = "succeeded, partial, failed, skipped or unfinished."

const table = (name: string, comment: string, columns: ReadonlyArray<ColumnSpec>): TableSpec => ({
  name,
  comment,
  columns: [run, ...columns],
})

const counted = (name: string): ColumnSpec =>
  required(name, "INTEGER", `Number of tasks whose outcome is ${name}.`)

export const runsTable = table("runs", "One row per run of a job.", [
  required("job", "VARCHAR", "Name of the job."),
  required("run_date", "DATE", "The date of the run in the job's time zone."),
  required("started_at", "TIMESTAMPTZ", "When the run began."),
  column("ended_at", "TIMESTAMPTZ", "When the run last ended; NULL while it is running or was interrupted."),
  required("status", "VARCHAR", "running; finished; unfinished: ended with something left at the service."),
  required("tasks", "INTEGER", "Number of planned tasks."),
  counted("succeeded"),
  counted("partial"),
  counted("failed"),
  counted("skipped"),
  counted("unfinished"),
  column("exit_code", "INTEGER", "Exit code of the run; NULL until it ends."),
  required("tool_version", "VARCHAR", "Version of the program that began the run."),
  column("parent", "VARCHAR", "The run that this run is a rerun of."),
  column("sequence", "BIGINT", "Increases with every run, even if the clock was set back."),
])

export const tasksTable = table("tasks", "One row per task: one customer on one engine within a run.", [
  task,
  customer,
  engine,
  required("features", "VARCHAR[]", "Features that were requested."),
  required("outcome", "VARCHAR", outcome),
  column("reason", "VARCHAR", "The service's status_reason, or ours in the same spelling; NULL while open."),
  required("who_acts", "VARCHAR", actor),
  required(
    "attempts",
    "INTEGER",
    "Number of remote executions; a start that certainly created nothing does not count.",
  ),
  { ...execution, comment: "The newest execution that was accepted." },
  session,
  column("started_at", "TIMESTAMPTZ", "When the first start was sent."),
  column("closed_at", "TIMESTAMPTZ", "When the newest execution was seen closed."),
])

const time = (name: string, comment: string) => column(name, "TIMESTAMPTZ", comment)
const text = (name: string, comment: string) => column(name, "VARCHAR", comment)

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

export const executionsTable = table("executions", "One row per attempt: one remote execution for a task.", [
  task,
  required("attempt", "INTEGER", "Number of the attempt within the task, from 1."),
  ...stateColumns,
  time("deleted_at", "When the service said that the execution was deleted or gone."),
  extra,
])

export const executionFeaturesTable = table(
  "execution_features",
  "Outcome of each feature of an execution.",
  [
    execution,
    text("code", "Code of the feature."),
    text("status_reason", "Outcome of the feature."),
    text("status_message", "The service's own text; not to be parsed."),
  ],
)

export const executionMessagesTable = table("execution_messages", "Messages of an execution.", [
  execution,
  position,
  time("date", "When the message was written."),
  text("type", "error, info, warning or notification."),
  text("id", "Stable identifier of the situation; use this for automation."),
  column("loc", "VARCHAR[]", "What the message is about; empty for the whole result."),
  text("message", "Text in the market's language; may be reworded."),
])

export const executionErrorsTable = table("execution_errors", "What the service refused in a start.", [
  execution,
  required("kind", "VARCHAR", "parameters or configurations."),
  position,
  column("loc", "VARCHAR[]", "Path of the refused field."),
  text("msg", "What is wrong."),
  text("type", "Kind of error."),
  column("ctx", "JSON", "Details of the error."),
])

export const productsCountTable = table("products_count", "Products counted for an execution.", [
  execution,
  customer,
  engine,
  required("key", "VARCHAR", "Key as the service writes it: <family>:<subtype>@<product>."),
  text("family", "Family of the product; NULL if the key has another form."),
  text("subtype", "Subtype within the family; NULL if the key has another form."),
  text("product", "Product; NULL if the key has another form."),
  column("count", "BIGINT", "How many; NULL if it is not a whole number."),
])

export const sessionsTable = table("sessions", "One row per flow session whose results were requested.", [
  session,
  execution,
  customer,
  text("status_code", "Final status of the session, recognised by its value."),
  text("cursor", "Last screen with user interaction, recognised by its value."),
  column("is_closed", "BOOLEAN", "False: the results were partial when they were last read."),
  column("retrieved_features", "VARCHAR[]", "Features that were retrieved."),
  time("pulled_at", "When the newest body arrived, or was last requested."),
  column("records", "INTEGER", "Number of records in the newest body; NULL if there is none."),
  extra,
])

export const consentsTable = table("consents", "Consent audit trail of each session.", [
  session,
  time("accepted_date", "When the consent was given."),
  column("accepted_features", "VARCHAR[]", "Features that the customer accepted."),
  text("user_ip", "Address of the customer's device."),
  text("user_agent", "Browser of the customer."),
  text("origin", "Site that loaded the widget."),
  extra,
])

export const consentDocumentsTable = table("consent_documents", "Documents accepted with a consent.", [
  session,
  required("document_id", "VARCHAR", "Identifier of the document."),
  text("version", "Version of the document."),
  text("hash", "SHA-256 of the accepted content."),
  time("sign_date", "When it was signed."),
  text("signature_provider", "Who provided the signature."),
  column("signature_metadata", "JSON", "Details of the signature."),
  extra,
])

export const attachmentsTable = table("attachments", "Documents that the results refer to.", [
  session,
  customer,
  text("attachment_id", "Identifier of the document at the service."),
  text("media_type", "Media type according to the service."),
  column("bytes", "BIGINT", "Size."),
  text("sha256", "SHA-256 of the content."),
  text("path", "Where the document is, relative to the output folder."),
  text("status", "downloaded, missing, refused or failed."),
])

export const deletionsTable = table("deletions", "One row per execution whose deletion was requested.", [
  execution,
  customer,
  engine,
  time("asked_at", "When the deletion was decided."),
  column("http_status", "INTEGER", "Status of the newest answer; NULL while there is none."),
  text("outcome", "deleted, gone (the service no longer knew it) or pending."),
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
])

export const coverageTable = table(
  "coverage",
  "The outcome of each customer, engine and feature in each run.",
  [
    task,
    session,
    customer,
    engine,
    text("feature", "Code of the feature; NULL for a task whose features are not known."),
    required("outcome", "VARCHAR", outcome),
    text("reason", "Reason for the outcome of the feature, or of its task."),
    required("who_acts", "VARCHAR", actor),
    column(
      "records",
      "INTEGER",
      "Number of records published; NULL if it is not known which the feature feeds.",
    ),
    column(
      "counted",
      "BIGINT",
      "Number of products that the service counted; NULL if it is not known which.",
    ),
    time("as_of", "When the results arrived or the task was settled."),
  ],
)

export const systemTables: ReadonlyArray<TableSpec> = [
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
  deletionsTable,
  coverageTable,
]

/** Those that deletions and the end of a run change. */
export const outcomeTables: ReadonlyArray<TableSpec> = [
  runsTable,
  tasksTable,
  executionsTable,
  deletionsTable,
  coverageTable,
]
