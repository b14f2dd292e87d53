/**
 * The tables about flow sessions, with a comment for each table and column: the sessions, their consents,
 * and the documents that their results name.
 */
import { column, required } from "../records/Columns.ts"
import type { ColumnSpec } from "../records/Columns.ts"
import { customer, engine, execution, extra, oneOf } from "./SystemColumns.ts"
import { session, table, task, text, time } from "./SystemColumns.ts"

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
