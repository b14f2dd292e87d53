/**
 * Rows of one flow session (section 2.7): the session itself, its consent and the documents accepted with
 * it. Pure. Status code and cursor have no documented field names: they are recognised by their values,
 * once each, anywhere among the unknown fields at the top of the body.
 */
import { ExactNumber } from "../records/ExactNumber.ts"
import { bodyBounds, cutText, idCharactersMax } from "../service/BodyBounds.ts"
import type { RunId } from "../service/Ids.ts"
import { sessionCursors, sessionStatusCodes } from "../service/Vocabulary.ts"
import { taskCells } from "./ExecutionRows.ts"
import type { TableRow } from "./ExecutionRows.ts"
import type { SessionPicture } from "./RunPicture.ts"
import {
  consentDocumentFields,
  consentDocumentsTable,
  consentFields,
  consentsTable,
  documentsTable,
  sessionsTable,
} from "./SystemTables.ts"
import { extraOf, isObject, takeFields } from "./TakeFields.ts"
import type { Json, Row } from "./TakeFields.ts"

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
const sessionCells = (run_id: RunId, { task, session_id, execution_id }: SessionPicture): Row => ({
  ...taskCells(run_id, task),
  session_id,
  execution_id,
})

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

// Rows of `documents`: every document that a session's results name, once, with what the results say beside
// its identifier (sections 2.7 and 4.12) and what became of its download. Pure. The reference shows only
// that identifiers appear inside results, so nothing is read but the object that holds one.

/** One place where results name a document: the object with its identifier, and the record around that. */
export interface Naming {
  readonly attachment_id: string
  readonly holder: Json
  readonly record: Json | undefined
}

const isRecord = ({ product, sub_family }: Json): boolean =>
  typeof product === "string" && typeof sub_family === "string"

/** As `ExactNumber.ts` recognises them; shorter keys need no look. */
const namesDocument = (key: string): boolean => key.length >= 10 && /attachment/i.test(key)

/** In the order of the body; no more than a body may name. */
export const namingsIn = (data: unknown): ReadonlyArray<Naming> => {
  const namings: Array<Naming> = []
  const pending: Array<readonly [value: unknown, record: Json | undefined]> = [[data, undefined]]
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const [value, around] = next
    if (typeof value !== "object" || value === null || value instanceof ExactNumber) continue
    if (Array.isArray(value)) {
      for (let i = value.length - 1; i >= 0; i--) pending.push([value[i], around])
      continue
    }
    const holder = value as Json
    const record = isRecord(holder) ? holder : around
    const keys = Object.keys(holder)
    for (const key of keys.filter(namesDocument)) {
      for (const id of [holder[key]].flat()) {
        if (typeof id !== "string" || namings.length === bodyBounds.documentsMax) continue
        namings.push({ attachment_id: cutText(id, idCharactersMax), holder, record })
      }
    }
    for (let i = keys.length - 1; i >= 0; i--) pending.push([holder[keys[i]!], record])
  }
  return namings
}

const textOf = (holder: Json, names: ReadonlyArray<string>): string | undefined => {
  const name = names.find((each) => typeof holder[each] === "string")
  return name === undefined ? undefined : cutText(String(holder[name]))
}

interface Said {
  readonly record_id: string | undefined
  readonly title: string | undefined
  readonly media_type: string | undefined
}

/** A document may be named several times: the first title, and the first record, count. */
const saidIn = (bodies: ReadonlyArray<NamingBody>): ReadonlyMap<string, Said> => {
  const said = new Map<string, Said>()
  for (const { namings, ids } of bodies) {
    for (const { attachment_id, holder, record } of namings) {
      const known = said.get(attachment_id)
      said.set(attachment_id, {
        record_id: known?.record_id ?? ids.get(record),
        title: known?.title ?? textOf(holder, ["title", "name", "description"]),
        media_type: known?.media_type ?? textOf(holder, ["media_type"]),
      })
    }
  }
  return said
}

/** What the newest body of an endpoint names, and the ids of its records as their tables have them. */
export interface NamingBody {
  readonly namings: ReadonlyArray<Naming>
  readonly ids: ReadonlyMap<unknown, string>
}

export const documentRows = (
  run_id: RunId,
  session: SessionPicture,
  bodies: ReadonlyArray<NamingBody>,
): ReadonlyArray<TableRow> => {
  const said = saidIn(bodies)
  const read = session.task.attachments.filter(({ session_id }) => session_id === session.session_id)
  const byId = new Map(read.map((fact) => [fact.attachment_id, fact]))
  return [...new Set([...said.keys(), ...byId.keys()])].map((attachment_id) => {
    const { media_type, bytes, sha256, path, status = "not_requested" } = byId.get(attachment_id) ?? {}
    const { media_type: told, ...rest } = said.get(attachment_id) ?? {}
    const row = { ...sessionCells(run_id, session), ...rest, attachment_id, media_type: media_type ?? told }
    return [documentsTable.name, { ...row, bytes, sha256, path, status }]
  })
}
