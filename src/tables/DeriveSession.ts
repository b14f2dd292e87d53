/**
 * Derives the rows of one session from its landed bodies, and what they prove: from the newest body of each
 * endpoint that was read, all records of the first endpoint, and from the others those that are not in the
 * tables already.
 */
import { Effect } from "effect"
import type { RunId } from "../service/Ids.ts"
import { BoundBroken } from "../service/BodyBounds.ts"
import { collectGarbage } from "../base/Zstd.ts"
import { proveDrain } from "../task/DrainProof.ts"
import type { SourceFinding } from "../task/DrainProof.ts"
import { builtInSources, isFinal, recordsIn, sourceNameOf } from "../service/FlowResults.ts"
import type { ProductsCount, ResultsSource } from "../service/FlowResults.ts"
import { Landing } from "../landing/Landing.ts"
import type { LandedBody } from "../landing/Landing.ts"
import type { Lineage } from "../records/CompileFamily.ts"
import { parseBody, tallyOf } from "../records/FindRecords.ts"
import type { Counts, ParsedBody } from "../records/FindRecords.ts"
import { addUpFamilies, addUpMisfits, addUpRejected } from "../records/Misfits.ts"
import type { Beside, Normaliser } from "../records/Normalise.ts"
import { documentRows, namingsIn, retrievedFeatures, sessionRows } from "./SessionRows.ts"
import type { NamingBody } from "./SessionRows.ts"
import type { TableRow } from "./ExecutionRows.ts"
import type { LeftOut } from "./LeftOut.ts"
import { PublishFailed } from "./Publisher.ts"
import type { RunPicture, SessionPicture } from "./RunPicture.ts"
import { isObject } from "./TakeFields.ts"

/** What the bodies of a session said, besides their rows; enough to derive coverage again without reading. */
export interface SessionFindings {
  readonly counts: Omit<Counts, "repeated" | "tally" | "byProduct">
  readonly byProduct: ReadonlyMap<string, number>
  /** Undefined if no body names what was retrieved. */
  readonly retrieved: ReadonlyArray<string> | undefined
  /** What each endpoint's newest body holds, and whether it is final. */
  readonly sources: ReadonlyArray<SourceFinding>
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

/** The row of the endpoint that a body came from. */
export const sourceOf = (sources: ReadonlyArray<ResultsSource>, { meta }: LandedBody): ResultsSource => {
  const name = sourceNameOf(meta)
  return sources.find((source) => source.name === name) ?? builtInSources[0]!
}

/** A body that is not an object can only be its own list of records. */
const dataOf = (source: ResultsSource, value: unknown): unknown =>
  isObject(value) ? recordsIn(source, value) : value

interface AddedBody extends NamingBody {
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

/** Where the rows of a session go. */
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
  const added = leftOut.unless(
    body,
    (): AddedBody => {
      room.left -= bytes.length
      if (room.left < 0) throw new BoundBroken("it and the other answers of its task are too large together")
      const parsed = parseUsable(leftOut, body, bytes)
      // They would stay in memory beside the rows made from them.
      bytes = new Uint8Array()
      collect()
      if (parsed._tag === "UnreadableBody")
        return { counts: normaliser.refuse(lineage, parsed.reason), ...nothingFound(source) }
      const { value } = parsed
      const data = dataOf(source, value)
      const namings = namingsIn(data)
      const ids = new Map<unknown, string>()
      const counts = normaliser.add(lineage, data, beside, namings.length === 0 ? undefined : ids)
      collect()
      const finding = { source, isFinal: isFinal(source, value), tally: counts.tally }
      return { counts, value, namings, ids, finding }
    },
    (reason) => {
      takeBack()
      return { counts: normaliser.refuse(lineage, reason), ...nothingFound(source) }
    },
  )
  const { records, inTables, other, rejected, repeated } = added.counts
  if (records !== inTables + other + rejected + repeated) {
    return yield* new PublishFailed({ message: `${session.session_id}: a record has no row` })
  }
  return added
})

/** A body about which nothing is known says nothing: not even that it is final. */
const nothingFound = (source: ResultsSource) => ({
  value: undefined,
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
  const seen = new Set<string>()
  for (const body of session.bodies) {
    // What one endpoint has complete is repeated in another; if it is incomplete, every record counts.
    const held = proveDrain(
      count,
      added.map(({ finding }) => finding),
    ).families.filter(({ counted, landed }) => counted !== undefined && counted > 0 && landed >= counted)
    const families = new Set(held.map(({ family }) => family))
    const beside = session.bodies.length === 1 ? undefined : { seen, isHeld: heldBy(families) }
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
export const listed = <A>(lists: ReadonlyArray<ReadonlyArray<A> | undefined>): ReadonlyArray<A> | undefined =>
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
