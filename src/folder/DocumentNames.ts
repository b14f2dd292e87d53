/**
 * Under which name a person finds a document: a folder per customer, and date, engine, title and the first
 * digits of the content's SHA-256 in the name. Pure. Titles come from the service and may be anything: what a
 * file system, a terminal or a reader could misunderstand is taken out. The digits tell two documents with
 * one title apart, the same way every night.
 */
import { sha256Hex } from "../base/Sha256.ts"

/** In UTF-8, for folders and files; every file system in use takes 255. */
const nameBytesMax = 200
const engineBytesMax = 60
const customerBytesMax = 100
export const digitsShown = 12

/** The document as the tables know it: of the first run that downloaded it. */
export interface NamedDocument {
  readonly customer_id: string | null
  readonly engine_reference: string | null
  readonly sha256: string
  readonly title: string | null
  readonly media_type: string | null
  /** `YYYY-MM-DD`. */
  readonly run_date: string
}

/** Separators of paths and what Windows refuses. */
const refused = /[<>:"/\\|?*]/g
/** Control characters and ends of lines. */
const blanks = /[\p{Cc}\p{Zl}\p{Zp}\s]+/gu
/** Marks of direction, other invisible characters, halves of characters, private ones. */
const invisible = /[\p{Cf}\p{Cs}\p{Co}]/gu

/** A part of a name; empty if nothing of the text can be shown. */
const safeText = (text: string): string =>
  text
    .normalize("NFC")
    .replace(invisible, "")
    .replace(blanks, " ")
    .replace(refused, "-")
    .normalize("NFC")
    .replace(/^[.\s-]+|[.\s]+$/g, "")

const segmenter = new Intl.Segmenter("en", { granularity: "grapheme" })

/** Whole characters, as a reader sees them. */
const cutToBytes = (text: string, bytesMax: number): string => {
  if (Buffer.byteLength(text) <= bytesMax) return text
  let [kept, bytes] = ["", 0]
  for (const { segment } of segmenter.segment(text)) {
    bytes += Buffer.byteLength(segment)
    if (bytes > bytesMax) break
    kept += segment
  }
  return kept.replace(/[.\s]+$/, "")
}

/** Windows reads these as devices, whatever follows a first dot. */
const devices = /^(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(?:\.|$)/i

/** Of sessions that were only read, and that no customer is known of. */
const withoutCustomer = "without-customer"
const plainId = /^[a-z0-9](?:[a-z0-9._-]{0,78}[a-z0-9])?$/

/**
 * The id itself if it is safe everywhere, also where `A` and `a` are one name; otherwise what is safe of it
 * and digits of its SHA-256. Two customers never share a folder.
 */
export const customerFolderName = (customer_id: string | null): string => {
  if (customer_id === null) return withoutCustomer
  const isPlain = plainId.test(customer_id) && !devices.test(customer_id)
  if (isPlain && customer_id !== withoutCustomer) return customer_id
  const shown = cutToBytes(safeText(customer_id), customerBytesMax) || "customer"
  const digits = sha256Hex(customer_id).slice(0, digitsShown)
  return `${devices.test(shown) ? "_" : ""}${shown}-${digits}`
}

/** What a document is decides its ending: a title cannot make a program of it. */
const endings: ReadonlyMap<string, string> = new Map([
  ["application/pdf", ".pdf"],
  ["application/xml", ".xml"],
  ["text/xml", ".xml"],
  ["application/json", ".json"],
  ["text/csv", ".csv"],
  ["text/plain", ".txt"],
  ["text/html", ".html"],
  ["image/png", ".png"],
  ["image/jpeg", ".jpg"],
  ["image/tiff", ".tiff"],
  ["application/zip", ".zip"],
  ["application/msword", ".doc"],
  ["application/vnd.ms-excel", ".xls"],
  ["application/vnd.openxmlformats-officedocument.wordprocessingml.document", ".docx"],
  ["application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", ".xlsx"],
])

const endingOf = (media_type: string | null): string =>
  endings.get((media_type ?? "").split(";", 1)[0]!.trim().toLowerCase()) ?? ".bin"

const withoutEnding = (title: string, ending: string): string =>
  title.toLowerCase().endsWith(ending) ? title.slice(0, -ending.length).trimEnd() : title

export const documentFileName = (document: NamedDocument): string => {
  const { run_date, engine_reference, title, media_type, sha256 } = document
  const ending = endingOf(media_type)
  const engine = cutToBytes(safeText(engine_reference ?? ""), engineBytesMax)
  const start = engine === "" ? run_date : `${run_date} ${engine}`
  const end = `${sha256.slice(0, digitsShown)}${ending}`
  const left = nameBytesMax - Buffer.byteLength(`${start}  ${end}`)
  const shown = cutToBytes(withoutEnding(safeText(title ?? ""), ending), left) || "document"
  return `${start} ${shown} ${end}`
}

const ours = /^\d{4}-\d{2}-\d{2} .* (?<digits>[0-9a-f]{12})\.[a-z]{3,4}$/

/** The digits in a name of ours; undefined for a file that somebody else put there. */
export const digitsIn = (name: string): string | undefined => ours.exec(name)?.groups?.["digits"]
