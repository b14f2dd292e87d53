/**
 * Rows of `documents`: every document that a session's results name, once, with what the results say beside
 * its identifier (sections 2.7 and 4.12) and what became of its download. Pure. The reference shows only
 * that identifiers appear inside results, so nothing is read but the object that holds one.
 */
import { bodyBounds, cutText, idCharactersMax } from "../service/BodyBounds.ts"
import type { RunId } from "../service/Ids.ts"
import { ExactNumber, jsonText } from "../records/ExactNumber.ts"
import { findRecords } from "../records/FindRecords.ts"
import { canonicalText, ownerOf, recordIds } from "../records/RecordIdentity.ts"
import type { TableRow } from "./ExecutionRows.ts"
import type { SessionPicture } from "./RunPicture.ts"
import { sessionCells } from "./SessionRows.ts"
import { documentsTable } from "./SessionTables.ts"
import type { Json } from "./TakeFields.ts"

/** One place where results name a document: the object with its identifier, and the record around that. */
interface Naming {
  readonly attachment_id: string
  readonly holder: Json
  readonly record: Json | undefined
}

const isRecord = ({ product, sub_family }: Json): boolean =>
  typeof product === "string" && typeof sub_family === "string"

/** As `AttachmentIds.ts` recognises them; shorter keys need no look. */
const namesDocument = (key: string): boolean => key.length >= 10 && /attachment/i.test(key)

/** In the order of the body; no more than a body may name. */
const namingsIn = (data: unknown): ReadonlyArray<Naming> => {
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

/** The ids of all records of a body, as the tables of records have them. */
const idsIn = (data: unknown, { task, session_id }: SessionPicture): ReadonlyMap<unknown, string> => {
  const { customer_id = null, engine_reference = null } = task.planned
  const idsOf = recordIds(ownerOf({ customer_id, engine_reference, session_id }))
  return new Map(
    findRecords(data).records.map(({ value, sub_family }) => {
      const whole = canonicalText(value) ?? jsonText(value)
      return [value, idsOf(sub_family, { whole, content: whole }).record_id] as const
    }),
  )
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
const saidIn = (bodies: ReadonlyArray<unknown>, session: SessionPicture): ReadonlyMap<string, Said> => {
  const said = new Map<string, Said>()
  for (const data of bodies) {
    const namings = namingsIn(data)
    if (namings.length === 0) continue
    const ids = idsIn(data, session)
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

/** `bodies`: where the newest body of each endpoint holds its records. */
export const documentRows = (
  run_id: RunId,
  session: SessionPicture,
  bodies: ReadonlyArray<unknown>,
): ReadonlyArray<TableRow> => {
  const said = saidIn(bodies, session)
  const read = session.task.attachments.filter(({ session_id }) => session_id === session.session_id)
  const byId = new Map(read.map((fact) => [fact.attachment_id, fact]))
  return [...new Set([...said.keys(), ...byId.keys()])].map((attachment_id) => {
    const { media_type, bytes, sha256, path, status = "not_requested" } = byId.get(attachment_id) ?? {}
    const { media_type: told, ...rest } = said.get(attachment_id) ?? {}
    const row = { ...sessionCells(run_id, session), ...rest, attachment_id, media_type: media_type ?? told }
    return [documentsTable.name, { ...row, bytes, sha256, path, status }]
  })
}
