/**
 * `documents/<customer>/`: a copy of each downloaded document under a name for people. Copies, because
 * whoever saves a file through a link changes what has landed; a file system that can share blocks gives them
 * for free. A copy keeps its name forever. Every copy can be made again, and none outlives its document in
 * `attachments/`.
 */
import { existsSync, lstatSync, readdirSync } from "node:fs"
import { join } from "node:path"
import { Effect, Schema, Stream } from "effect"
import { listed } from "../base/Counted.ts"
import type { Connection } from "../base/DuckDb.ts"
import type { Store } from "../tables/Store.ts"
import { runsInOrder } from "../tables/View.ts"
import { customerFolderName, digitsIn, digitsShown, documentFileName } from "./DocumentNames.ts"
import type { NamedDocument } from "./DocumentNames.ts"

type Place = Pick<Store, "layout" | "files">

/** What was copied before stays; the next try continues. */
export class NamingFailed extends Schema.TaggedError<NamingFailed>()("NamingFailed", {
  message: Schema.String,
  /** What is in a folder of this name that is not ours; nothing of it was changed. */
  foreign: Schema.optionalKey(Schema.String),
}) {}

export interface NamedDocuments {
  readonly added: number
  /** Of documents that are no longer in `attachments/`. */
  readonly removed: number
  /** Documents with a name, and customers with one. */
  readonly documents: number
  readonly customers: number
  /** In the tables as downloaded, but no longer in `attachments/`. */
  readonly gone: number
}

const folderMode = 0o700
const fileMode = 0o600
const temporaryStart = ".tmp-"
const markerName = ".nightjar-documents"
const markerText =
  "Copies of the files in ../attachments, named by nightjar, which adds new ones and removes old ones.\n"
const entriesTold = 3

const step = <A>(work: () => A) =>
  Effect.try({
    try: work,
    catch: (cause) => new NamingFailed({ message: cause instanceof Error ? cause.message : String(cause) }),
  })

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
  if (foreign !== undefined)
    return yield* new NamingFailed({ message: `documents/ holds ${foreign}`, foreign })
  yield* step(() => {
    place.files.makeFolder(folder, folderMode)
    if (!existsSync(join(folder, markerName)))
      place.files.replace(join(folder, markerName), markerText, fileMode)
  })
})

/** The documents that were downloaded, each once per customer, by customer. */
const documentsSql = `WITH ordered AS (${runsInOrder})
  SELECT d.customer_id, d.engine_reference, d.sha256, d.title, d.media_type, o.run_date::VARCHAR AS run_date
  FROM documents AS d JOIN ordered AS o USING (run_id)
  WHERE d.status = 'downloaded'
  QUALIFY row_number() OVER (PARTITION BY d.customer_id, d.sha256
    ORDER BY o.nth, d.title IS NULL, d.engine_reference, d.session_id, d.attachment_id) = 1
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
 * published database, and `reveal` says whom it calls so.
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
  return counts satisfies NamedDocuments as NamedDocuments
}, Effect.scoped)

/** Under its name only once it is complete. */
const copyOne = Effect.fnUntraced(function* (place: Place, document: NamedDocument) {
  const { files } = place
  const folder = join(folderOf(place), customerFolderName(document.customer_id))
  const building = join(folder, `${temporaryStart}${document.sha256}`)
  yield* step(() => {
    if (existsSync(folder) && !isFolder(folder)) throw new Error(`${folder} is not a folder`)
    files.makeFolder(folder, folderMode)
    files.copy(sourceOf(place, document.sha256), building)
  })
  yield* Effect.mapError(files.settle(building, fileMode), ({ message }) => new NamingFailed({ message }))
  yield* step(() => {
    files.rename(building, join(folder, documentFileName(document)))
    files.syncFolder(folder)
  })
})

/**
 * Removes copies whose document is no longer in `attachments/`, and what a crash left half-copied. Returns
 * how many copies. Does nothing where `documents/` is missing or not ours.
 */
export const sweepDocuments = (place: Place): Effect.Effect<number, NamingFailed> =>
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
