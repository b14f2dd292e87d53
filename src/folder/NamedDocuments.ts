/**
 * `documents/<customer>/`: a copy of each downloaded document under a name for people. Copies, because
 * whoever saves a file through a link changes what has landed; a file system that can share blocks gives them
 * for free. A copy keeps its name forever. Every copy can be made again, and none outlives its document in
 * `attachments/`.
 */
import { existsSync, lstatSync, readdirSync } from "node:fs"
import { join } from "node:path"
import { Effect, Schema, Stream } from "effect"
import { ownModes } from "../base/DurableFile.ts"
import type { Connection } from "../base/DuckDb.ts"
import { sha256Hex } from "../base/Hashes.ts"
import { listed } from "../base/Text.ts"
import { FolderFailed, folderFailed, step } from "./FolderFailed.ts"
import type { Store } from "../tables/Manifest.ts"

// Under which name a person finds a document: a folder per customer, and date, engine, title and the first
// digits of the content's SHA-256 in the name. Pure. Titles come from the service and may be anything: what a
// file system, a terminal or a reader could misunderstand is taken out. The digits tell two documents with
// one title apart, the same way every night.

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

type Place = Pick<Store, "layout" | "files">

const temporaryStart = ".tmp-"
const markerName = ".nightjar-documents"
const markerText =
  "Copies of the files in ../attachments, named by nightjar, which adds new ones and removes old ones.\n"
const entriesTold = 3

const folderOf = ({ layout }: Place): string => join(layout.root, "documents")
const sourceOf = ({ layout }: Place, sha256: string): string => join(layout.root, "attachments", sha256)

const isFolder = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true

/** With our marker, and no link to somewhere else. */
const isOurs = (folder: string): boolean =>
  isFolder(folder) && lstatSync(join(folder, markerName), { throwIfNoEntry: false })?.isFile() === true

/** What is there although we did not make it; undefined if the folder is ours, empty or missing. */
const foreignIn = (folder: string): string | undefined => {
  const found = lstatSync(folder, { throwIfNoEntry: false })
  if (found === undefined || isOurs(folder)) return undefined
  if (!found.isDirectory()) return "something that is not a folder"
  const names = readdirSync(folder)
  return names.length === 0 ? undefined : listed(names.toSorted(), entriesTold)
}

const claim = Effect.fnUntraced(function* (place: Place) {
  const folder = folderOf(place)
  const foreign = yield* step(() => foreignIn(folder))
  if (foreign !== undefined) return yield* new FolderFailed({ message: foreign, because: "foreign" })
  yield* step(() => {
    place.files.makeFolder(folder, ownModes.folder)
    if (!existsSync(join(folder, markerName)))
      place.files.replace(join(folder, markerName), markerText, ownModes.file)
  })
})

/** The documents that were downloaded, each once per customer, by customer. */
const documentsSql = `SELECT d.customer_id, d.engine_reference, d.sha256, d.title, d.media_type,
    d.run_date::VARCHAR AS run_date
  FROM ops.documents AS d JOIN store._runs AS r USING (run_id)
  WHERE d.status = 'downloaded'
  QUALIFY row_number() OVER (PARTITION BY d.customer_id, d.sha256
    ORDER BY r.seq, d.title IS NULL, d.engine_reference, d.session_id, d.attachment_id) = 1
  ORDER BY d.customer_id NULLS FIRST, d.sha256`

const text = Schema.NullOr(Schema.String)
/** Only a hash becomes part of a path. */
const hash = Schema.String.check(Schema.isPattern(/^[0-9a-f]{64}$/))
const Rows = Schema.Array(Schema.Tuple([text, text, hash, text, text, Schema.String]))
const decodeRows = (rows: unknown) => Effect.orDie(Schema.decodeUnknownEffect(Rows)(rows))

/** The digits of the copies that a customer has; what else is in the folder is not ours. */
const copiesIn = (folder: string): Set<string> =>
  new Set(isFolder(folder) ? readdirSync(folder).flatMap((name) => digitsIn(name) ?? []) : [])

/**
 * Gives every document of the published tables its name. The caller holds the folder; `connection` reads the
 * published database, and `reveal` says whom it calls so. Counts new copies, those of documents that are no
 * longer in `attachments/`, documents and customers with a name, and documents that are gone although the
 * tables have them.
 */
export const nameDocuments = Effect.fn("Keeping.nameDocuments")(function* (
  place: Place,
  connection: Connection,
  reveal: (customer_id: string) => string = (customer_id) => customer_id,
) {
  yield* claim(place)
  const removed = yield* sweepDocuments(place)
  const counts = { added: 0, removed, documents: 0, customers: 0, gone: 0 }
  const { chunks } = yield* connection.stream(documentsSql)
  let [customer, copies]: [string | undefined, Set<string>] = [undefined, new Set()]
  yield* Stream.runForEach(
    chunks,
    Effect.fnUntraced(function* (chunk) {
      for (const row of yield* decodeRows(chunk)) {
        const [called, engine_reference, sha256, title, media_type, run_date] = row
        const customer_id = called === null ? null : reveal(called)
        const document = { customer_id, engine_reference, sha256, title, media_type, run_date }
        if (!(yield* step(() => existsSync(sourceOf(place, sha256))))) {
          counts.gone += 1
          continue
        }
        const name = customerFolderName(customer_id)
        if (name !== customer) {
          ;[customer, copies] = [name, yield* step(() => copiesIn(join(folderOf(place), name)))]
          counts.customers += 1
        }
        counts.documents += 1
        const digits = sha256.slice(0, digitsShown)
        if (copies.has(digits)) continue
        yield* copyOne(place, document)
        copies.add(digits)
        counts.added += 1
      }
    }),
  )
  return counts
}, Effect.scoped)

/** Under its name only once it is complete. */
const copyOne = Effect.fnUntraced(function* (place: Place, document: NamedDocument) {
  const { files } = place
  const folder = join(folderOf(place), customerFolderName(document.customer_id))
  const building = join(folder, `${temporaryStart}${document.sha256}`)
  yield* step(() => {
    if (existsSync(folder) && !isFolder(folder)) throw new Error(`${folder} is not a folder`)
    files.makeFolder(folder, ownModes.folder)
    files.copy(sourceOf(place, document.sha256), building)
  })
  yield* Effect.mapError(files.settle(building, ownModes.file), folderFailed)
  yield* step(() => {
    files.rename(building, join(folder, documentFileName(document)))
    files.syncFolder(folder)
  })
})

/**
 * Removes copies whose document is no longer in `attachments/`, and what a crash left half-copied. Returns
 * how many copies. Does nothing where `documents/` is missing or not ours.
 */
export const sweepDocuments = (place: Place): Effect.Effect<number, FolderFailed> =>
  step(() => {
    const folder = folderOf(place)
    if (!isOurs(folder)) return 0
    const attachments = join(place.layout.root, "attachments")
    const names = existsSync(attachments) ? readdirSync(attachments) : []
    const kept = new Set(names.map((name) => name.slice(0, digitsShown)))
    const customers = readdirSync(folder).map((name) => join(folder, name))
    return customers.filter(isFolder).reduce((sum, path) => sum + sweepCustomer(place, path, kept), 0)
  })

const sweepCustomer = ({ files }: Place, folder: string, kept: ReadonlySet<string>): number => {
  const names = readdirSync(folder)
  const copies = names.filter((name) => {
    const digits = digitsIn(name)
    return digits !== undefined && !kept.has(digits)
  })
  const halves = names.filter((name) => name.startsWith(temporaryStart))
  const removed = [...copies, ...halves]
  for (const name of removed) files.remove(join(folder, name))
  if (removed.length === names.length) files.remove(folder)
  else if (removed.length > 0) files.syncFolder(folder)
  return copies.length
}

/**
 * Removes everything under the customer's name; throws if it is there and `documents/` is not ours, because
 * the customer would stay in it.
 */
export const forgetNamed = (place: Place, customer_id: string): void => {
  const folder = folderOf(place)
  const theirs = join(folder, customerFolderName(customer_id))
  if (lstatSync(theirs, { throwIfNoEntry: false }) === undefined) return
  if (!isOurs(folder))
    throw new Error(`documents/ has no ${markerName}, but a folder named for the customer: remove it`)
  place.files.remove(theirs)
  place.files.syncFolder(folder)
}
