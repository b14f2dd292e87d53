/**
 * Rows of one flow session (section 2.7): the session itself, its consent and the documents accepted with
 * it. Pure. Status code and cursor have no documented field names: they are recognised by their values,
 * once each, anywhere among the unknown fields at the top of the body.
 */
import type { RunId } from "../service/Ids.ts"
import { sessionCursors, sessionStatusCodes } from "../service/Vocabulary.ts"
import type { SessionPicture } from "./RunPicture.ts"
import {
  consentDocumentFields,
  consentDocumentsTable,
  consentFields,
  consentsTable,
  sessionsTable,
} from "./SessionTables.ts"
import { extraOf, isObject, takeFields } from "./TakeFields.ts"
import type { Json, Row } from "./TakeFields.ts"
import type { TableRow } from "./ExecutionRows.ts"

const known = ["data", "retrieved_features", "consent", "is_closed"]

/** The one unknown field whose value is in the list; undefined if none is, or if several are. */
const fieldWith = (body: Json, values: ReadonlyArray<string>): readonly [string, string] | undefined => {
  const found = Object.entries(body).flatMap(([name, value]) =>
    !known.includes(name) && typeof value === "string" && values.includes(value)
      ? [[name, value] as const]
      : [],
  )
  return found.length === 1 ? found[0] : undefined
}

/** Features of a results body; undefined if it names none. */
export const retrievedFeatures = (body: unknown): ReadonlyArray<string> | undefined => {
  const features = isObject(body) ? body["retrieved_features"] : undefined
  return Array.isArray(features) && features.every((code) => typeof code === "string") ? features : undefined
}

/** What every row about a session begins with. */
export const sessionCells = (run_id: RunId, { task, session_id, execution_id }: SessionPicture): Row => {
  const { task_id, customer_id, engine_reference } = task.planned
  return { run_id, task_id, session_id, execution_id, customer_id, engine_reference }
}

/** `body` is the newest body's value; `records` is how many were found in it. */
export const sessionRows = (
  run_id: RunId,
  session: SessionPicture,
  body: unknown,
  records: number | undefined,
): ReadonlyArray<TableRow> => {
  const first = sessionCells(run_id, session)
  // A profile body without `data` is the record itself.
  const results =
    isObject(body) && (session.body?.meta.kind === "results" || "data" in body) ? body : undefined
  const row: Row = {
    ...first,
    is_closed: session.is_closed,
    pulled_at: session.body?.meta.received_at ?? session.read_at,
    records,
    ...(results === undefined ? {} : resultsCells(results)),
  }
  return [[sessionsTable.name, row], ...(results === undefined ? [] : consentRows(first, results["consent"]))]
}

const resultsCells = (body: Json): Row => {
  const status = fieldWith(body, sessionStatusCodes)
  const cursor = fieldWith(body, sessionCursors)
  const retrieved_features = retrievedFeatures(body)
  const isClosed = body["is_closed"]
  const held = new Set(["data", ...(status?.slice(0, 1) ?? []), ...(cursor?.slice(0, 1) ?? [])])
  for (const name of known) if (body[name] === null) held.add(name)
  if (retrieved_features !== undefined) held.add("retrieved_features")
  if (isObject(body["consent"])) held.add("consent")
  if (typeof isClosed === "boolean") held.add("is_closed")
  return {
    status_code: status?.[1],
    cursor: cursor?.[1],
    retrieved_features,
    ...(typeof isClosed === "boolean" ? { is_closed: isClosed } : {}),
    extra: extraOf(body, held),
  }
}

const consentRows = (first: Row, consent: unknown): ReadonlyArray<TableRow> => {
  if (!isObject(consent)) return []
  const documents = consent["accepted_documents"]
  const isMap = isObject(documents)
  const elsewhere = new Set(isMap || documents === null ? ["accepted_documents"] : [])
  const taken = takeFields(consentFields, consent, elsewhere)
  const rows: Array<TableRow> = [[consentsTable.name, { ...first, ...taken.cells, extra: taken.extra }]]
  if (!isMap) return rows
  for (const [document_id, document] of Object.entries(documents)) {
    const one = takeFields(consentDocumentFields, isObject(document) ? document : { value: document })
    rows.push([consentDocumentsTable.name, { ...first, document_id, ...one.cells, extra: one.extra }])
  }
  return rows
}
