/**
 * What becomes of each column of each table when the tables have pseudonyms: the decisions, in one place. A
 * column that is not named here is withheld, so that a new one reveals nothing by being forgotten. Pure.
 */
import { createHmac, createSecretKey } from "node:crypto"
import { isDeepStrictEqual } from "node:util"
import { Redacted, Schema } from "effect"
import type { ColumnSpec, TableSpec } from "../records/Columns.ts"
import type { RecordFamily } from "../records/RecordSchema.ts"
import { otherRecordsTable, rejectedRecordsTable } from "../records/RecordTables.ts"
import { readKey } from "../tokens/StoredToken.ts"

/** What the tables of a version have in place of the customers: kept in its manifest. */
export const PseudonymPolicy = Schema.Struct({
  /** Of the key. */
  check: Schema.String,
  /** The chosen columns, by record table; tables and columns in order. */
  columns: Schema.Record(Schema.String, Schema.Array(Schema.String)),
})
export type PseudonymPolicy = typeof PseudonymPolicy.Type

/** Under this name a Parquet file says it of its rows. */
export const policyInFile = "pseudonyms"

/** One spelling of what a job chose, so that two can be compared. */
export const inOrder = (
  columns: Readonly<Record<string, ReadonlyArray<string>>>,
): PseudonymPolicy["columns"] =>
  Object.fromEntries(
    Object.entries(columns)
      .filter(([, names]) => names.length > 0)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([table, names]) => [table, [...new Set(names)].toSorted()]),
  )

/** Whether rows of the two may stand in one version; undefined has no pseudonyms. */
export const isSamePolicy = (one: PseudonymPolicy | undefined, other: PseudonymPolicy | undefined): boolean =>
  isDeepStrictEqual(one, other)

/**
 * own: our words, and those of the catalogue. clear: words and ids of the service, in which a customer's id
 * is replaced wherever it is, and that of a session that the job names. session: the column for the latter.
 * task: the id of the task, which contains the customer's. withheld: NULL, because a source or the service
 * writes there what it likes. Any other is a pseudonym of this kind.
 */
export type Treatment = "own" | "clear" | "session" | "task" | "withheld" | Exclude<Kind, "session_id">

type Decisions = Readonly<Record<string, Treatment>>

const ofRun: Decisions = { run_id: "own", run_date: "own" }
const ofTask: Decisions = { ...ofRun, task_id: "task", customer_id: "customer_id", engine_reference: "own" }
const ofExecution: Decisions = { ...ofTask, execution_id: "clear" }
const ofSession: Decisions = { ...ofExecution, session_id: "session" }

/** Columns with the same decision, named in one text. */
const each = (treatment: Treatment, names: string): Decisions =>
  Object.fromEntries(names.split(" ").map((name) => [name, treatment]))

const systemDecisions: Readonly<Record<string, Decisions>> = {
  // The job's name is refused if it contains a customer's id.
  runs: {
    ...ofRun,
    ...each("own", "job started_at ended_at status tasks succeeded partial failed skipped unfinished"),
    ...each("own", "exit_code tool_version parent sequence resumed_at executed_at published_at"),
    ...each("own", "deletions_at collected_at replaces"),
  },
  tasks: {
    ...ofSession,
    ...each("clear", "features reason"),
    ...each("own", "outcome who_acts attempts started_at closed_at"),
  },
  executions: {
    ...ofSession,
    // A keyed hash with the folder's own key; the service may echo something else.
    ...each("clear", "external_execution_id app_id auth_origin status_code status_reason"),
    ...each("clear", "authentication_status end_hook"),
    ...each("own", "attempt is_closed warnings_count errors_count date_created date_started date_ended"),
    ...each("own", "execution_time running_time total_elapsed_time action_required_expires"),
    ...each("own", "next_kick_date deleted_at"),
    // A hash of a login that anybody can compute.
    locking_hash: "locking_hash",
    ...each("withheld", "status_message extra"),
  },
  execution_features: {
    ...ofExecution,
    position: "own",
    ...each("clear", "code status_reason"),
    status_message: "withheld",
  },
  execution_messages: {
    ...ofExecution,
    ...each("own", "position date"),
    ...each("clear", "type id"),
    // A message may be about one account, and say which.
    ...each("withheld", "loc message"),
  },
  execution_errors: {
    ...ofExecution,
    ...each("own", "kind position"),
    type: "clear",
    ...each("withheld", "loc msg ctx"),
  },
  products_count: { ...ofExecution, ...each("clear", "key family subtype product"), count: "own" },
  sessions: {
    ...ofSession,
    ...each("clear", "status_code cursor retrieved_features"),
    ...each("own", "is_closed pulled_at records"),
    extra: "withheld",
  },
  consents: {
    ...ofSession,
    accepted_date: "own",
    accepted_features: "clear",
    // An address that loaded the widget may have the customer's id among its parameters.
    ...each("consent", "user_ip user_agent origin"),
    extra: "withheld",
  },
  consent_documents: {
    ...ofSession,
    ...each("clear", "document_id version signature_provider"),
    sign_date: "own",
    // Of a text that may name the customer: a guess could be tested against it.
    hash: "consent",
    ...each("withheld", "signature_metadata extra"),
  },
  attachments: {
    ...ofSession,
    ...each("clear", "attachment_id media_type status"),
    // Of a whole document: it says nothing without the document, which is not published.
    ...each("own", "bytes sha256 path"),
  },
  documents: {
    ...ofSession,
    record_id: "record_id",
    title: "withheld",
    ...each("clear", "attachment_id media_type status"),
    ...each("own", "bytes sha256 path"),
  },
  deletions: {
    ...ofExecution,
    ...each("own", "asked_at http_status outcome counted landed"),
    // Over bodies that could be written again from the other columns, but for the value that is sought.
    landed_sha256: "landed_sha256",
    proof: "clear",
  },
  coverage: {
    ...ofTask,
    session_id: "session",
    ...each("clear", "feature reason"),
    ...each("own", "outcome who_acts records counted as_of fresh_date age_days"),
  },
  engine_descriptions: {
    ...ofRun,
    engine_reference: "own",
    ...each("own", "name engine_version engine_alternative main_category sub_categories markets status"),
    ...each("own", "action_required_frequency website read_at"),
  },
}

/** Of every record table; what its schema declares is as the job chose. */
const recordDecisions: Decisions = {
  ...ofSession,
  // Hashes of whose record it is and of all that it says: a guess could be tested against them.
  record_id: "record_id",
  content_id: "content_id",
  ...each("clear", "product sub_family"),
  // Names of columns and reasons, never values.
  ...each("own", "position misfits"),
  // Of the record's history, not of the record.
  ...each("own", "valid_from valid_to ended_by as_of age_days"),
  // What no column holds: nobody has chosen what may be seen of it.
  extra: "withheld",
}

const looseDecisions: Readonly<Record<string, Decisions>> = {
  [otherRecordsTable.name]: { ...recordDecisions, fetch_date: "own", record: "withheld" },
  // A path has the keys of maps, which may be numbers of accounts.
  [rejectedRecordsTable.name]: { ...recordDecisions, reason: "own", ...each("withheld", "path record") },
}

export const treatmentOf = (policy: PseudonymPolicy, table: string, column: string): Treatment => {
  const decisions = systemDecisions[table] ?? looseDecisions[table]
  if (decisions !== undefined) return decisions[column] ?? "withheld"
  if (policy.columns[table]?.includes(column) === true) return "value"
  return recordDecisions[column] ?? "clear"
}

/** A column as it is published: what was required may be withheld. */
const shownColumn = (spec: ColumnSpec, treatment: Treatment): ColumnSpec => {
  const { comment } = spec
  if (treatment === "withheld")
    return {
      ...spec,
      nullable: true,
      comment: `${comment} Withheld: NULL, because it may name the customer.`,
    }
  if (treatment === "task") return { ...spec, comment: `${comment} With the customer's pseudonym.` }
  if (treatment === "session")
    return { ...spec, comment: `${comment} A pseudonym where the job names the session.` }
  return treatment === "own" || treatment === "clear" ? spec : { ...spec, comment: `${comment} A pseudonym.` }
}

/** A table as it is published. */
export const shownTable = <Table extends TableSpec>(
  policy: PseudonymPolicy | undefined,
  table: Table,
): Table =>
  policy === undefined
    ? table
    : {
        ...table,
        columns: table.columns.map((spec) => shownColumn(spec, treatmentOf(policy, table.name, spec.name))),
      }

/** Why what the job chose cannot be made a pseudonym, each by its name; none if all of it can. */
export const columnTroubles = (
  columns: PseudonymPolicy["columns"],
  families: ReadonlyArray<RecordFamily>,
): ReadonlyArray<{ readonly table: string; readonly column?: string; readonly why: string }> => {
  const tables = new Map(families.flatMap((one) => [one, ...one.children].map((each) => [each.table, each])))
  return Object.entries(columns).flatMap(([table, names]) => {
    const known = tables.get(table)
    if (known === undefined) return [{ table, why: "no record schema has a table of this name" }]
    return names.flatMap((column) => {
      const type = known.columns.find(({ name }) => name === column)?.type
      if (type === undefined) return [{ table, column, why: "its record schema has no column of this name" }]
      return type === "VARCHAR" || type === "VARCHAR[]"
        ? []
        : [
            {
              table,
              column,
              why: `it is ${type}, and a pseudonym is text: only VARCHAR and VARCHAR[] can be`,
            },
          ]
    })
  })
}

// Pseudonyms: a keyed hash of a value and its kind. Whoever lacks the key can neither find the value nor test
// a guess; whoever has it finds the same pseudonym in every run, table and job. Nothing has to be stored for
// that, so there is no list of who is who that could get lost, or that a removal would have to clean.

/**
 * Equal values of one kind have one pseudonym, and values of different kinds never do: `value` is that of
 * every chosen column, so that rows still join by what two columns have in common.
 */
export type Kind =
  | "customer_id"
  | "session_id"
  | "value"
  | "record_id"
  | "content_id"
  | "locking_hash"
  | "landed_sha256"
  | "consent"

export interface PseudonymKey {
  /** Tells keys apart without saying anything about them. */
  readonly check: string
  readonly pseudonymOf: (kind: Kind, value: string) => string
}

/** 128 bits: among ten million values, two share a pseudonym with a chance of 1.5 in 10^25. */
export const pseudonymDigits = 32

/** Fewer different bytes are no random key: of 32 random ones, 30 differ. */
const distinctBytesMin = 16

const keyOver = (bytes: Uint8Array): PseudonymKey => {
  const key = createSecretKey(bytes)
  const digest = (purpose: string, value: string): string =>
    createHmac("sha256", key)
      .update(`nightjar pseudonym 1\n${purpose}\n${value}`)
      .digest("hex")
      .slice(0, pseudonymDigits)
  return {
    check: digest("check", ""),
    pseudonymOf: (kind, value) => digest(`kind ${kind}`, value),
  }
}

/** Undefined if it is not 32 random bytes in hexadecimal or base64. */
export const readPseudonymKey = (text: Redacted.Redacted<string>): PseudonymKey | undefined => {
  const bytes = readKey(text)
  return bytes === undefined || new Set(bytes).size < distinctBytesMin ? undefined : keyOver(bytes)
}
