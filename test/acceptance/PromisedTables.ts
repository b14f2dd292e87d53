/**
 * The contract's list of tables and columns, copied from it word by word and from nowhere else.
 */
export const recordColumns = [
  "run_id",
  "run_date",
  "task_id",
  "execution_id",
  "session_id",
  "customer_id",
  "engine_reference",
  "record_id",
  "content_id",
]
const words = (text: string): ReadonlyArray<string> => text.split(/[\s,]+/).filter((word) => word !== "")
const record = (text: string) => [...recordColumns, ...words(text)]
const child = (text: string) => record(`position, ${text}`)

export const promisedTables: Readonly<Record<string, ReadonlyArray<string>>> = {
  runs: words(
    "run_id, job, run_date, started_at, ended_at, status, tasks, succeeded, partial, failed, skipped, unfinished, " +
      "exit_code, tool_version",
  ),
  tasks: words(
    "run_id, task_id, customer_id, engine_reference, features, outcome, reason, who_acts, attempts, execution_id, " +
      "session_id, started_at, closed_at",
  ),
  executions: words(
    "run_id, task_id, attempt, deleted_at, extra, execution_id, session_id, app_id, customer_id, " +
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
  customer_profiles: record(
    "fetch_date, type, name, name_extra, alias, birth_date, birth_country, nationality_country, " +
      "residence_country, gender, civil_status, number_of_children, language, member_since, extra",
  ),
  identification_numbers: child("type, value, validated, country, valid_until"),
  addresses: child("title, street, street_extra, municipality, city, state, country, zip_code"),
  emails: child("email"),
  phones: child("phone"),
  higher_education: record(
    "sub_family, fetch_date, qualification_name, institution_name, institution_country, completion_status, " +
      "total_credits, grade_average, issue_date, start_date, end_date, official_id, verification_url, " +
      "thesis_title, field_of_study, extra",
  ),
  secondary_education: record(
    "sub_family, fetch_date, qualification_name, institution_name, institution_country, institution_code, region, " +
      "completion_status, issue_date, start_date, end_date, official_id, verification_url, study_framework, " +
      "national_registry_id, extra",
  ),
  other_records: record("product, sub_family, fetch_date, record"),
  rejected_records: record("product, sub_family, reason, path, record"),
  attachments: words("session_id, customer_id, attachment_id, media_type, bytes, sha256, path, status"),
  deletions: words(
    "execution_id, customer_id, engine_reference, asked_at, http_status, outcome, landed_sha256",
  ),
  coverage: words(
    "customer_id, engine_reference, feature, outcome, reason, who_acts, records, counted, as_of",
  ),
}
