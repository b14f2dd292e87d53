/**
 * The contract's lists of tables and columns by schema, copied from it word by word and from nowhere else.
 */
const words = (text: string): ReadonlyArray<string> => text.split(/[\s,]+/).filter((word) => word !== "")

/** What the tables of records begin with. */
export const firstColumns = {
  main: words("customer_id, engine_reference, record_id"),
  history: words("customer_id, engine_reference, record_id"),
  nights: words(
    "run_id, run_date, task_id, execution_id, session_id, customer_id, engine_reference, record_id, content_id",
  ),
} as const

/** What a record of `main` ends with, in this order. */
export const lastColumns = words(
  "valid_from, as_of, age_days, content_id, session_id, execution_id, misfits, extra",
)

type Columns = Readonly<Record<string, ReadonlyArray<string>>>

/** The record's own columns, the business key first. */
export const promisedRecords: Columns = {
  customer_profiles: words(
    "type, fetch_date, name, name_extra, alias, birth_date, birth_country, nationality_country, " +
      "residence_country, gender, civil_status, number_of_children, language, member_since",
  ),
  higher_education: words(
    "qualification_name, institution_name, fetch_date, institution_country, completion_status, " +
      "total_credits, grade_average, issue_date, start_date, end_date, official_id, verification_url, " +
      "thesis_title, field_of_study",
  ),
  secondary_education: words(
    "qualification_name, institution_name, fetch_date, institution_country, institution_code, region, " +
      "completion_status, issue_date, start_date, end_date, official_id, verification_url, study_framework, " +
      "national_registry_id",
  ),
  other_records: words("fetch_date, record"),
}

export const promisedLists: Columns = {
  identification_numbers: words("type, value, validated, country, valid_until"),
  addresses: words("title, street, street_extra, municipality, city, state, country, zip_code"),
  emails: ["email"],
  phones: ["phone"],
}

const promisedOps: Columns = {
  runs: words(
    "run_id, job, run_date, started_at, ended_at, status, tasks, succeeded, partial, failed, skipped, unfinished, " +
      "exit_code, tool_version",
  ),
  tasks: words(
    "run_id, task_id, customer_id, engine_reference, features, outcome, reason, who_acts, attempts, execution_id, " +
      "session_id, started_at, closed_at",
  ),
  executions: words(
    "run_id, task_id, attempt, worker, deleted_at, extra, execution_id, session_id, app_id, customer_id, " +
      "external_execution_id, engine_reference, auth_origin, status_code, status_reason, status_message, " +
      "authentication_status, is_closed, end_hook, warnings_count, errors_count, locking_hash, date_created, " +
      "date_started, date_ended, execution_time, running_time, total_elapsed_time, action_required_expires, " +
      "next_kick_date",
  ),
  execution_features: words("execution_id, code, status_reason, status_message"),
  execution_messages: words("execution_id, position, date, type, id, loc, message"),
  execution_errors: words("execution_id, kind, position, loc, msg, type, ctx"),
  products_count: words("execution_id, customer_id, engine_reference, key, family, subtype, product, count"),
  sessions: words(
    "session_id, execution_id, customer_id, status_code, cursor, is_closed, retrieved_features, pulled_at, " +
      "records, extra",
  ),
  consents: words("session_id, accepted_date, accepted_features, user_ip, user_agent, origin"),
  consent_documents: words(
    "session_id, document_id, version, hash, sign_date, signature_provider, signature_metadata",
  ),
  attachments: words("session_id, customer_id, attachment_id, media_type, bytes, sha256, path, status"),
  deletions: words(
    "execution_id, customer_id, engine_reference, asked_at, http_status, outcome, landed_sha256",
  ),
  rejected_records: [...firstColumns.nights, ...words("product, sub_family, reason, path, record")],
  coverage: words(
    "customer_id, engine_reference, feature, outcome, reason, who_acts, records, counted, as_of",
  ),
}

const validity = words("valid_from, valid_to, ended_by, since_sequence")
const within = (
  schema: string,
  tables: Columns,
  columnsOf: (own: ReadonlyArray<string>) => Columns[string],
) => Object.entries(tables).map(([name, own]) => [`${schema}.${name}`, columnsOf(own)] as const)
/** Records without a schema are whole in one column: none is left, none misfits. */
const rest = (own: ReadonlyArray<string>) => (own.includes("record") ? [] : ["misfits", "extra"])
const position = ["position"]

/** By schema and name, as SQL writes it. */
export const promisedTables: Columns = Object.fromEntries([
  ...within("main", promisedRecords, (own) => [
    ...firstColumns.main,
    ...own,
    ...lastColumns.filter((name) => !["misfits", "extra"].includes(name)),
    ...rest(own),
  ]),
  ...within("main", promisedLists, (own) => [...firstColumns.main, ...position, ...own]),
  ...within("history", promisedRecords, (own) => [
    ...firstColumns.history,
    ...own,
    ...validity,
    ...rest(own),
  ]),
  ...within("history", promisedLists, (own) => [...firstColumns.history, ...position, ...own, ...validity]),
  ...within("nights", promisedRecords, (own) => [...firstColumns.nights, ...own, ...rest(own)]),
  ...within("nights", promisedLists, (own) => [...firstColumns.nights, ...position, ...own]),
  ...within("ops", promisedOps, (own) => ["run_id", ...own]),
  [
    "main.coverage",
    words(
      "customer_id, engine_reference, feature, outcome, reason, who_acts, records, counted, as_of, age_days",
    ),
  ],
  ["main.consents", words("session_id, accepted_date, accepted_features, user_ip, user_agent, origin")],
  ...["documents", "customers", "engines", "features"].map((name) => [`main.${name}`, []] as const),
])
