/**
 * Derives the rows of one session from the newest body of each endpoint: all records of the first, and from
 * the others those that are not in the tables already.
 */
import { isUtf8 } from "node:buffer"
import { Effect } from "effect"
import type { RunId } from "../service/Ids.ts"
import { BoundBroken, bodyBounds, cutText, idCharactersMax } from "../service/BodyBounds.ts"
import { collectGarbage } from "../base/Zstd.ts"
import { proveDrain, type SourceFinding } from "../task/DrainProof.ts"
import { builtInSources, isFinal, recordsIn, sourceNameOf } from "../service/FlowResults.ts"
import type { ProductsCount, ResultsSource } from "../service/FlowResults.ts"
import { Landing, type LandedBody } from "../landing/Landing.ts"
import type { Lineage } from "../records/CompileFamily.ts"
import { parseBody, tallyOf, type Counts, type ParsedBody } from "../records/FindRecords.ts"
import { addUpFamilies, addUpMisfits, addUpRejected } from "../records/Misfits.ts"
import { nothingBeside, type Beside, type Normaliser } from "../records/Normalise.ts"
import type { TableRow, Row } from "./ExecutionRows.ts"
import type { LeftOut } from "./LeftOut.ts"
import { PublishFailed } from "./Publisher.ts"
import type { RunPicture, SessionPicture } from "./RunPicture.ts"
import { extraOf, takeFields, taskCells } from "./ExecutionRows.ts"
import { eachNaming, isObject, type Json } from "../records/ExactNumber.ts"
import { sessionCursors, sessionStatusCodes } from "../service/Vocabulary.ts"
import { consentDocumentFields, consentDocumentsTable, consentFields, consentsTable } from "./SystemTables.ts"
import { documentsTable, sessionsTable } from "./SystemTables.ts"

/** What the bodies of a session said, besides their rows; enough to derive coverage again without reading. */
export interface SessionFindings {
  readonly counts: Omit<Counts, "repeated" | "tally" | "byProduct">
  readonly byProduct: ReadonlyMap<string, number>
  /** Undefined if no body names what was retrieved. */
  readonly retrieved: ReadonlyArray<string> | undefined
  /** What each endpoint's newest body holds, and whether it is final. */
  readonly sources: ReadonlyArray<SourceFinding>
  /** How many of them have bytes that are no UTF-8: what they stood for is not known. */
  readonly garbled: number
}

export const findingsKey = ({ session_id, bodies, task }: SessionPicture): string =>
  `${bodies.map(({ ref }) => ref.sha256).join()}/${task.planned.task_id}/${session_id}`

export const readBody = Effect.fnUntraced(function* (run_id: RunId, { ref }: LandedBody) {
  const landing = yield* Landing
  return yield* landing
    .read(run_id, ref)
    .pipe(
      Effect.mapError(
        ({ path, message }) => new PublishFailed({ message: `${path}: ${message}`, damaged: true }),
      ),
    )
})

export const sourceOf = (sources: ReadonlyArray<ResultsSource>, { meta }: LandedBody): ResultsSource => {
  const name = sourceNameOf(meta)
  return sources.find((source) => source.name === name) ?? builtInSources[0]!
}

/** A body that is not an object can only be its own list of records. */
const dataOf = (source: ResultsSource, value: unknown): unknown =>
  isObject(value) ? recordsIn(source, value) : value

interface AddedBody extends NamingBody {
  readonly isGarbled: boolean
  readonly counts: Counts
  readonly value: unknown
  readonly finding: SourceFinding
}

const lineageOf = (
  { run_id, run_date }: RunPicture["state"]["started"],
  { task, session_id, execution_id }: SessionPicture,
): Lineage => ({
  run_id,
  run_date,
  task_id: task.planned.task_id,
  execution_id: execution_id ?? null,
  session_id,
  customer_id: task.planned.customer_id ?? null,
  engine_reference: task.planned.engine_reference ?? null,
})

export interface SessionTables {
  readonly normaliser: Normaliser
  readonly leftOut: LeftOut
  /** How many more bytes of bodies the task's tables accept. */
  readonly room: { left: number }
}

/** A body that exceeds a limit has no value, and is noted. */
export const parseUsable = (leftOut: LeftOut, body: LandedBody, bytes: Uint8Array): ParsedBody => {
  const parsed = parseBody(bytes)
  if (parsed._tag === "UnreadableBody" && parsed.breaksBound) leftOut.note(body, parsed.reason)
  return parsed
}

/** From this size on, what parsing bodies leaves behind is collected at once. */
export const largeBytes = 16 * 1024 * 1024

const addBody = Effect.fnUntraced(function* (
  { state }: RunPicture,
  { normaliser, leftOut, room }: SessionTables,
  session: SessionPicture,
  body: LandedBody,
  beside: Beside | undefined,
) {
  const { run_id } = state.started
  const source = sourceOf(state.sources, body)
  let bytes = yield* readBody(run_id, body)
  const collect = bytes.length > largeBytes ? collectGarbage : () => undefined
  const lineage = lineageOf(state.started, session)
  const takeBack = normaliser.mark(beside)
  return leftOut.unless(
    body,
    (): AddedBody => {
      room.left -= bytes.length
      if (room.left < 0) throw new BoundBroken("it and the other answers of its task are too large together")
      const isGarbled = !isUtf8(bytes)
      const parsed = parseUsable(leftOut, body, bytes)
      // They would stay in memory beside the rows made from them.
      bytes = new Uint8Array()
      collect()
      if (parsed._tag === "UnreadableBody")
        return { counts: normaliser.refuse(lineage, parsed.reason), ...nothingFound(source), isGarbled }
      const { value } = parsed
      const data = dataOf(source, value)
      const namings = namingsIn(data)
      const ids = new Map<unknown, string>()
      const counts = normaliser.add(lineage, data, beside, namings.length === 0 ? undefined : ids)
      collect()
      const finding = { source, isFinal: isFinal(source, value), tally: counts.tally }
      return { counts, value, namings, ids, finding, isGarbled }
    },
    (reason) => {
      takeBack()
      return { counts: normaliser.refuse(lineage, reason), ...nothingFound(source) }
    },
  )
})

/** A body about which nothing is known says nothing: not even that it is final. */
const nothingFound = (source: ResultsSource) => ({
  value: undefined,
  isGarbled: false,
  namings: [],
  ids: new Map<unknown, string>(),
  finding: { source, isFinal: isFinal(source, undefined), tally: tallyOf([]) },
})

/** `count` is what the session's execution counted. */
export const deriveSession = Effect.fnUntraced(function* (
  picture: RunPicture,
  tables: SessionTables,
  session: SessionPicture,
  count: ProductsCount,
) {
  const added: Array<AddedBody> = []
  const before = nothingBeside()
  for (const body of session.bodies) {
    // What one endpoint has complete is repeated in another; if it is incomplete, every record counts.
    const held = proveDrain(
      count,
      added.map(({ finding }) => finding),
    ).families.filter(({ counted, landed }) => counted !== undefined && counted > 0 && landed >= counted)
    const families = new Set(held.map(({ family }) => family))
    const beside = session.bodies.length === 1 ? undefined : { ...before, isHeld: heldBy(families) }
    added.push(yield* addBody(picture, tables, session, body, beside))
  }
  return added satisfies ReadonlyArray<AddedBody> as ReadonlyArray<AddedBody>
})

const heldBy = (families: ReadonlySet<string>) => (sub_family: string) => families.has(sub_family)

const sum = (added: ReadonlyArray<AddedBody>, of: (counts: Counts) => number): number =>
  added.reduce((total, { counts }) => total + of(counts), 0)

/** The sums of the numbers with the same name. */
export const addUp = (maps: Iterable<Iterable<readonly [string, number]>>): Map<string, number> => {
  const totals = new Map<string, number>()
  for (const entries of maps)
    for (const [name, count] of entries) totals.set(name, (totals.get(name) ?? 0) + count)
  return totals
}

/** All of the lists that there are; undefined if there is none. */
const listed = <A>(lists: ReadonlyArray<ReadonlyArray<A> | undefined>): ReadonlyArray<A> | undefined =>
  lists.every((list) => list === undefined) ? undefined : lists.flatMap((list) => list ?? [])

const noProducts: ReadonlyMap<string, number> = new Map()

export const findingsOf = (added: ReadonlyArray<AddedBody>): SessionFindings => {
  const other = sum(added, (counts) => counts.other)
  return {
    counts: {
      records: sum(added, (counts) => counts.records - counts.repeated),
      inTables: sum(added, (counts) => counts.inTables),
      other,
      rejected: sum(added, (counts) => counts.rejected),
      strays: sum(added, (counts) => counts.strays),
      misfits: addUpMisfits(added.flatMap(({ counts }) => counts.misfits)),
      refusedFor: addUpRejected(added.flatMap(({ counts }) => counts.refusedFor)),
      otherBy: addUpFamilies(added.flatMap(({ counts }) => counts.otherBy)),
      byTable: Object.fromEntries(addUp(added.map(({ counts }) => Object.entries(counts.byTable)))),
    },
    // Needed only if some records have no table of their own: a night keeps this of each session.
    byProduct: other === 0 ? noProducts : addUp(added.map(({ counts }) => counts.byProduct)),
    retrieved: listed(added.map(({ value }) => retrievedFeatures(value))),
    sources: added.map(({ finding }) => finding),
    garbled: added.filter(({ isGarbled }) => isGarbled).length,
  }
}

export const rowsOfSession = (
  run_id: RunId,
  session: SessionPicture,
  added: ReadonlyArray<AddedBody>,
): ReadonlyArray<TableRow> => [
  ...sessionRows(
    run_id,
    session,
    added[0]?.value,
    added.length === 0 ? undefined : sum(added, (counts) => counts.records - counts.repeated),
  ),
  ...documentRows(run_id, session, added),
]

// Rows of one flow session, its consent and the documents accepted with it (section 2.7). Status code and
// cursor have no documented names: they are recognised by their values among the unknown fields.

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
    // Results that do not say whether they are final count as partial, and say nothing here.
    is_closed: session.is_closed === true ? true : undefined,
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

// Rows of `documents`: every document that a session's results name, once (sections 2.7 and 4.12). The
// reference shows only that identifiers appear inside results: nothing is read but the object that holds one.

/** One place where results name a document: the object with its identifier, and the record around that. */
interface Naming {
  readonly attachment_id: string
  readonly holder: Json
  readonly record: Json | undefined
}

/** In the order of the body; no more than a body may name. */
export const namingsIn = (data: unknown): ReadonlyArray<Naming> => {
  const namings: Array<Naming> = []
  eachNaming(data, ({ id, holder, record }) => {
    if (typeof id !== "string" || namings.length === bodyBounds.documentsMax) return
    namings.push({ attachment_id: cutText(id, idCharactersMax), holder, record })
  })
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
