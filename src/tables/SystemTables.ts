/**
 * Every published table that is not made of records, with a comment for each table and column: runs, tasks,
 * executions and what they said, deletions, coverage, and those about sessions. Names and order are the
 * contract's; columns may be added, never dropped.
 */
import { column, own, repeating, required, text, time } from "../records/Columns.ts"
import type { ColumnSpec, TableSpec } from "../records/Columns.ts"
import { actors, outcomes } from "../service/EndTable.ts"

const runDate = required(own("run_date", "DATE", "The date of the run in the job's time zone."))
const task = required(text("task_id", "task", "The task within the run: customer and engine, or session."))
const execution = text("execution_id", "clear", "The remote execution.")
const session = text("session_id", "session", "The flow session that holds the results.")
export const customer = text("customer_id", "customer_id", "The customer's id in the job.")
export const engine: ColumnSpec = repeating(
  text("engine_reference", "own", "The engine; NULL for a session that was only read."),
)
const position = required(own("position", "INTEGER", "Position in the list, from 0."))
const extra = column("extra", "JSON", "withheld", "Fields that have no column; NULL if there are none.")

/** A column with no other values: they are ours, and a new one is a change of the program. */
const oneOf = (spec: ColumnSpec, values: ReadonlyArray<string>): ColumnSpec => ({ ...spec, values })
export const actor = oneOf(
  required(text("who_acts", "own", "Who has to act: nobody, customer, engineer or service.")),
  actors,
)
export const outcome = oneOf(
  required(text("outcome", "own", "succeeded, partial, failed, skipped or unfinished.")),
  outcomes,
)

const runStatus = oneOf(
  required(
    text(
      "status",
      "own",
      "running; finished; unfinished: ended with unfinished tasks, or something left at the service.",
    ),
  ),
  ["running", "finished", "unfinished"],
)
const deletionOutcome = oneOf(
  text("outcome", "own", "deleted, gone (the service no longer knew it) or pending."),
  ["deleted", "gone", "pending"],
)

const run: ColumnSpec = repeating(required(text("run_id", "own", "The run that the row belongs to.")))

/** Every table begins with its run and its date; `key` is what identifies a row within the run. */
const table = (
  name: string,
  comment: string,
  key: ReadonlyArray<string>,
  columns: ReadonlyArray<ColumnSpec>,
): TableSpec => ({
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
  "One row per flow session whose results a run requested.",
  ["task_id", "session_id"],
  [
    ...ofSession,
    text("status_code", "clear", "Final status of the session, recognised by its value."),
    text("cursor", "clear", "Last screen with user interaction, recognised by its value."),
    own(
      "is_closed",
      "BOOLEAN",
      "False: the results were partial when they were last read. NULL if none came, or if they did not say.",
    ),
    column("retrieved_features", "VARCHAR[]", "clear", "Features that were retrieved."),
    time("pulled_at", "When the newest body arrived, or was last requested."),
    own("records", "INTEGER", "Number of records in the newest body; NULL if there is none."),
    extra,
  ],
)

/** As the service names them (section 2.7). */
export const consentFields: ReadonlyArray<ColumnSpec> = [
  time("accepted_date", "When the consent was given."),
  column("accepted_features", "VARCHAR[]", "clear", "Features that the customer accepted."),
  // An address that loaded the widget may have the customer's id among its parameters.
  text("user_ip", "consent", "Address of the customer's device."),
  text("user_agent", "consent", "Browser of the customer."),
  text("origin", "consent", "Site that loaded the widget."),
]

export const consentsTable = table(
  "consents",
  "Consent audit trail of each session.",
  ["task_id", "session_id"],
  [...ofSession, ...consentFields, extra],
)

/** As the service names them (section 2.7). */
export const consentDocumentFields: ReadonlyArray<ColumnSpec> = [
  text("version", "clear", "Version of the document."),
  // Of a text that may name the customer: a guess could be tested against it.
  text("hash", "consent", "SHA-256 of the accepted content."),
  time("sign_date", "When it was signed."),
  text("signature_provider", "clear", "Who provided the signature."),
  column("signature_metadata", "JSON", "withheld", "Details of the signature."),
]

export const consentDocumentsTable = table(
  "consent_documents",
  "Documents accepted with a consent.",
  ["task_id", "session_id", "document_id"],
  [
    ...ofSession,
    required(text("document_id", "clear", "Identifier of the document.")),
    ...consentDocumentFields,
    extra,
  ],
)

/** What may become of a download. */
const downloads = ["downloaded", "missing", "refused", "not_delivered", "failed"]

export const attachmentsTable = table(
  "attachments",
  "Documents that the results refer to, as they were requested.",
  ["task_id", "session_id", "attachment_id"],
  [
    ...ofSession,
    text("attachment_id", "clear", "Identifier of the document at the service."),
    text("media_type", "clear", "Media type according to the service."),
    own("bytes", "BIGINT", "Size."),
    text("sha256", "own", "SHA-256 of the content."),
    text("path", "own", "Where the document is, relative to the output folder."),
    oneOf(
      text(
        "status",
        "clear",
        "downloaded, missing (404), refused (not an identifier that may be requested), not_delivered (the " +
          "service answers, but not with the document) or failed (the next request may bring it).",
      ),
      downloads,
    ),
  ],
)

export const documentsTable = table(
  "documents",
  "Every document that the results name, one row per run, session and document. Its link to a record and " +
    "its title are what the results say beside its identifier; the reference shows no more.",
  ["task_id", "session_id", "attachment_id"],
  [
    ...ofSession,
    text(
      "record_id",
      "record_id",
      "The record that names the document; NULL if it is named outside of any record.",
    ),
    text("attachment_id", "clear", "Identifier of the document at the service."),
    text("title", "withheld", "The `title`, `name` or `description` of the object that names the document."),
    text(
      "media_type",
      "clear",
      "Media type according to the download, otherwise to the object that names it.",
    ),
    own("bytes", "BIGINT", "Size; NULL if it was not downloaded."),
    text("sha256", "own", "SHA-256 of the content."),
    text("path", "own", "Where the document is, relative to the output folder."),
    oneOf(text("status", "clear", "downloaded, missing, refused, not_delivered, failed or not_requested."), [
      ...downloads,
      "not_requested",
    ]),
  ],
)

const counted = (name: string): ColumnSpec =>
  required(own(name, "INTEGER", `Number of tasks whose outcome is ${name}.`))

export const runsTable = table(
  "runs",
  "One row per run of a job.",
  [],
  [
    required(text("job", "own", "Name of the job.")),
    runDate,
    required(time("started_at", "When the run began.")),
    time(
      "ended_at",
      "When the run ended; NULL while it is running or was interrupted. Only resuming a run moves it.",
    ),
    runStatus,
    required(own("tasks", "INTEGER", "Number of planned tasks.")),
    ...outcomes.map(counted),
    own("exit_code", "INTEGER", "Exit code of the run; NULL until it ends."),
    required(text("tool_version", "own", "Version of the program that began the run.")),
    text("parent", "own", "The run that this run is a rerun of."),
    text("part", "own", "With which run a part of the job began; NULL for runs of its nights."),
    own("whole", "BOOLEAN", "Whether the run decides what its job asks for, once it is over."),
    own("replaces", "VARCHAR[]", "Jobs that the job takes the place of."),
    own("sequence", "BIGINT", "Increases with every run, even if the clock was set back."),
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
    required(column("features", "VARCHAR[]", "clear", "Features that were requested.")),
    outcome,
    text("reason", "clear", "The service's status_reason, or ours in the same spelling; NULL while open."),
    actor,
    required(
      own(
        "attempts",
        "INTEGER",
        "Number of remote executions; a start that certainly created nothing does not count.",
      ),
    ),
    { ...execution, comment: "The newest execution that was accepted." },
    session,
    time("started_at", "When the first start was sent."),
    time("closed_at", "When the newest execution was seen closed."),
  ],
)

/** The scalar fields of an execution state (section 2.4), in its own words. */
export const stateColumns: ReadonlyArray<ColumnSpec> = [
  execution,
  session,
  text("app_id", "clear", "The application that started the execution."),
  customer,
  // A keyed hash with the folder's own key; the service may echo something else.
  text("external_execution_id", "clear", "Our own id for the execution."),
  engine,
  text("auth_origin", "clear", "How the start was authorised."),
  text("status_code", "clear", "Family of the state."),
  text("status_reason", "clear", "Exact reason for the state."),
  text("status_message", "withheld", "The service's own text; not to be parsed."),
  text("authentication_status", "clear", "not-performed, AUTH_OK, or why the login was refused."),
  own("is_closed", "BOOLEAN", "True when the execution is over."),
  text("end_hook", "clear", "Delivery state of the webhook for the end."),
  own("warnings_count", "INTEGER", "Number of warnings among the messages."),
  own("errors_count", "INTEGER", "Number of errors among the messages."),
  // A hash of a login that anybody can compute.
  text("locking_hash", "locking_hash", "Versioned fingerprint of the fixed part of the credentials."),
  time("date_created", "When the service accepted the execution."),
  time("date_started", "When the engine began; before that, the execution was queued."),
  time("date_ended", "When the execution ended."),
  own("execution_time", "DOUBLE", "Seconds of active processing."),
  own("running_time", "DOUBLE", "Seconds of processing and of waiting for a person."),
  own("total_elapsed_time", "DOUBLE", "Seconds since acceptance, including the queue."),
  time("action_required_expires", "Until when a pending challenge can be answered."),
  time("next_kick_date", "When the service resumes the execution by itself."),
]

export const executionsTable = table(
  "executions",
  "One row per attempt: one remote execution for a task.",
  ["task_id", "attempt"],
  [
    task,
    required(own("attempt", "INTEGER", "Number of the attempt within the task, from 1.")),
    text("worker", "own", "Host name and process id of who sent its start; NULL if an earlier version did."),
    ...stateColumns,
    time("deleted_at", "When the service said that the execution was deleted or gone."),
    extra,
  ],
)

/** The task that an execution belongs to. */
const ofExecution: ReadonlyArray<ColumnSpec> = [task, execution, customer, engine]

/** As the service names them (section 2.4). */
export const featureFields: ReadonlyArray<ColumnSpec> = [
  text("code", "clear", "Code of the feature."),
  text("status_reason", "clear", "Outcome of the feature."),
  text("status_message", "withheld", "The service's own text; not to be parsed."),
]

/** As the service names them (section 2.4); `loc` may also hold numbers. */
export const messageFields: ReadonlyArray<ColumnSpec> = [
  time("date", "When the message was written."),
  text("type", "clear", "error, info, warning or notification."),
  text("id", "clear", "Stable identifier of the situation; use this for automation."),
  // A message may be about one account, and say which.
  column("loc", "VARCHAR[]", "withheld", "What the message is about; empty for the whole result."),
  text("message", "withheld", "Text in the market's language; may be reworded."),
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
    oneOf(required(text("kind", "own", "parameters or configurations.")), ["parameters", "configurations"]),
    position,
    column("loc", "VARCHAR[]", "withheld", "Path of the refused field."),
    text("msg", "withheld", "What is wrong."),
    text("type", "clear", "Kind of error."),
    column("ctx", "JSON", "withheld", "Details of the error."),
  ],
)

export const productsCountTable = table(
  "products_count",
  "Products counted for an execution.",
  ["execution_id", "key"],
  [
    ...ofExecution,
    required(text("key", "clear", "Key as the service writes it: <family>:<subtype>@<product>.")),
    text("family", "clear", "Family of the product; NULL if the key has another form."),
    text("subtype", "clear", "Subtype within the family; NULL if the key has another form."),
    text("product", "clear", "Product; NULL if the key has another form."),
    own("count", "BIGINT", "How many; NULL if it is not a whole number."),
  ],
)

export const deletionsTable = table(
  "deletions",
  "One row per execution whose deletion was requested.",
  ["execution_id"],
  [
    ...ofExecution,
    time("asked_at", "When the deletion was decided."),
    own("http_status", "INTEGER", "Status of the newest answer; NULL while there is none."),
    deletionOutcome,
    // Over bodies that could be written again from the other columns, but for the value that is sought.
    text(
      "landed_sha256",
      "landed_sha256",
      "Receipt: hash over the hashes of all landed bodies of the execution.",
    ),
    own(
      "counted",
      "INTEGER",
      "Records that the service counted; NULL if the job wants no records or no count.",
    ),
    own("landed", "INTEGER", "Number of records landed, of the counted families and of all others."),
    column(
      "proof",
      "JSON",
      "clear",
      "What allowed the deletion: its basis, and the records counted and landed per family.",
    ),
  ],
)

export const productsCounted = own(
  "counted",
  "BIGINT",
  "Number of products that the service counted; NULL if it is not known which.",
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
    text("feature", "clear", "Code of the feature; NULL for a task whose features are not known."),
    outcome,
    text("reason", "clear", "Reason for the outcome of the feature, or of its task."),
    actor,
    own(
      "records",
      "INTEGER",
      "Number of records published. 0: its tables are known and got none, or every record of the final " +
        "results belongs to another feature. NULL: not known: nothing was read, or a record may be its own.",
    ),
    productsCounted,
    time(
      "as_of",
      "When the results arrived or the task was settled; NULL if its job wanted no results: nobody looked.",
    ),
  ],
)

/** As the service names them (section 2.2). */
export const engineFields: ReadonlyArray<ColumnSpec> = [
  text("name", "own", "Name of the engine."),
  text("engine_version", "own", "Version of the engine."),
  text("engine_alternative", "own", "website, mobile, api or other."),
  text("main_category", "own", "financial, public, commercial, cloud or other."),
  own("sub_categories", "VARCHAR[]", "Values of the form <category>:<name>."),
  own("markets", "VARCHAR[]", "Country codes."),
  text("status", "own", "draft, implementing, published, partial or maintenance."),
  text("action_required_frequency", "own", "How often the source asks for the customer in person."),
  text("website", "own", "Address of the source."),
]

export const engineDescriptionsTable = table(
  "engine_descriptions",
  "What the catalogue says about each engine of a run; none for an engine whose details were never read.",
  ["engine_reference"],
  [engine, ...engineFields, time("read_at", "When the service was last asked before this row was written.")],
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
  documentsTable,
  deletionsTable,
  coverageTable,
  engineDescriptionsTable,
]

/** Those that deletions and the end of a run change. */
export const outcomeTables: ReadonlyArray<TableSpec> = [
  runsTable,
  tasksTable,
  executionsTable,
  deletionsTable,
  coverageTable,
]
