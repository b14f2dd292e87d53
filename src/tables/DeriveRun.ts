/**
 * Derives all rows of one run from its picture: every landed body is read back, which checks its hash; what
 * was read gives the receipts. Memory is bounded: each table is passed to the sink as it fills. Publisher and
 * simulation share this.
 */
import { Cause, Effect, Struct } from "effect"
import { given } from "../base/Schemas.ts"
import type { FeatureLeft } from "../ledger/RunFacts.ts"
import { sha256Hex } from "../base/Hashes.ts"
import { sumOf } from "../base/Text.ts"
import type { ExecutionId, RunId } from "../service/Ids.ts"
import { readProductsCount, type ProductsCount } from "../service/FlowResults.ts"
import { notInTables } from "../service/Ends.ts"
import { lackingProducts, proveDrain } from "../task/DrainProof.ts"
import { executionsOf, isRunId, type AttemptState, type TaskState } from "../ledger/RunState.ts"
import type { Disguise, TableSpec } from "../records/Columns.ts"
import { addUpMisfits, addUpRejected, featuresLeftOf, otherRecordsOf } from "../records/Misfits.ts"
import { parquetBytes, type Flushed } from "../records/Flush.ts"
import type { ParsedBody } from "../records/FindRecords.ts"
import type { RecordFamily } from "../records/RecordSchema.ts"
import { deriveSession, findingsKey, findingsOf as sessionFindings } from "./DeriveSession.ts"
import { parseUsable, readBody, rowsOfSession, largeBytes } from "./DeriveSession.ts"
import type { SessionFindings, SessionTables } from "./DeriveSession.ts"
import { coverageRows, deliveredFeatures, leftFeatures, type TaskFindings } from "./CoverageRows.ts"
import { executionRow, stateRows, taskCells, objectsOf, type TableRow } from "./ExecutionRows.ts"
import { isObject, type Json } from "../records/ExactNumber.ts"
import { RunTables } from "./RunTables.ts"
import { framesOf, loadPicture, onlyOver, type RunPicture, type SessionPicture } from "./RunPicture.ts"
import { engineRows, ledgerRows } from "./RunRows.ts"
import { coverageTable, executionsTable, systemTables } from "./SystemTables.ts"
import { join } from "node:path"
import { collectGarbage } from "../base/Zstd.ts"
import { disguisePicture } from "./Disguise.ts"
import { fileMetadata } from "./FileColumns.ts"
import { fileStep, runPath, makeFoldersOf, temporary, type ManifestFile, type Store } from "./Manifest.ts"
import { PublishFailed, type Brought } from "./Publisher.ts"

export interface DeriveOptions {
  readonly families: ReadonlyArray<RecordFamily>
  /** The system tables to derive; record tables are derived unless `findings` makes it unnecessary. */
  readonly tables: ReadonlyArray<TableSpec>
  /** Receives the rows of tables that are full, one table after another; at the end, all that are left. */
  readonly sink: (flushed: Flushed) => Effect.Effect<void, PublishFailed>
  /** By body hash and session: bodies found here are not read again. */
  readonly findings?: ReadonlyMap<string, SessionFindings>
  /** What the rows become, where the tables have pseudonyms. */
  readonly disguise?: Disguise | undefined
}

/** Bytes of all answers of one task that are derived: their strings become one column. */
const taskBytesMax = 96 * 1024 * 1024

/**
 * Reads every body of a run and passes its rows to the sink; fails if a body is damaged. If a defect of
 * ours affects a task, the whole task is left out and reported.
 */
export const deriveRun = Effect.fn("Publishing.deriveRun")(function* (
  picture: RunPicture,
  options: DeriveOptions,
) {
  const { families, disguise } = options
  const tables = new RunTables(families, options.tables, picture.state.started.run_date, disguise)
  const sessions = Map.groupBy(picture.sessions, ({ task }) => task.planned.task_id)
  const receipts: Array<Brought["receipts"][number]> = []
  const delivered: Array<Brought["delivered"][number]> = []
  const left: Array<FeatureLeft> = []
  tables.add(ledgerRows(picture.state))
  tables.add(engineRows(picture))
  for (const task of picture.state.tasks.values()) {
    if (picture.open?.has(task.planned.task_id) === true) continue
    const own = sessions.get(task.planned.task_id) ?? []
    const takeBack = tables.mark()
    const { task_id } = task.planned
    const derived = Effect.suspend(() => deriveTask({ picture, options, tables }, task, own))
    const found = yield* Effect.catchCause(derived, (cause) => {
      if (!Cause.hasDies(cause) || Cause.hasFails(cause) || Cause.hasInterrupts(cause))
        return Effect.failCause(cause)
      takeBack()
      tables.leftOut.noteAll(picture.framesByTask.get(task_id) ?? [], Cause.squash(cause))
      tables.addIfPossible(barestRows(picture, task))
      return Effect.succeed({ receipts: [], left: [], features: [] })
    })
    receipts.push(...found.receipts)
    left.push(...found.left)
    if (found.features.length > 0) delivered.push({ task_id, features: found.features })
    for (const flushed of tables.flushFull()) yield* options.sink(flushed)
  }
  for (const flushed of tables.flush()) yield* options.sink(flushed)
  const counts = [...tables.found.values()].map((found) => found.counts)
  const garbled = sumOf([...tables.found.values()].map((found) => found.garbled))
  const brought: Brought = {
    receipts,
    left_out: tables.leftOut.bodies,
    delivered,
    engines: picture.engines,
    misfits: addUpMisfits(counts.flatMap(({ misfits }) => misfits)),
    rejected: addUpRejected(counts.flatMap(({ refusedFor }) => refusedFor)),
    other: otherRecordsOf(counts.flatMap(({ otherBy }) => otherBy)),
    ...given({ garbled: garbled === 0 ? undefined : garbled, features_left: featuresLeftOf(left) }),
  }
  return { brought, rows: tables.rows, findings: tables.found }
})
type Derived = Effect.Success<ReturnType<typeof deriveRun>>

/** What is reported about a task that was left out: its executions, and that it is not covered. */
const barestRows = (picture: RunPicture, task: TaskState): ReadonlyArray<TableRow> => {
  const { run_id } = picture.state.started
  const first = taskCells(run_id, task)
  const executions = executionsOf(task).map((attempt): TableRow => {
    const own = Struct.pick(attempt, ["attempt", "execution_id", "session_id", "external_execution_id"])
    return [executionsTable.name, { ...first, ...own }]
  })
  const coverage = Struct.pick(notInTables, ["outcome", "reason", "who_acts"])
  return [...executions, [coverageTable.name, { ...first, ...coverage }]]
}

interface Deriving {
  readonly picture: RunPicture
  readonly options: DeriveOptions
  readonly tables: RunTables
}

/** The rows of one task; returns its receipts, and what a rerun need not ask for again. */
const deriveTask = Effect.fnUntraced(function* (
  deriving: Deriving,
  task: TaskState,
  own: ReadonlyArray<SessionPicture>,
) {
  const { picture, options, tables } = deriving
  const states = new Map<ExecutionId | undefined, Json>()
  for (const attempt of executionsOf(task)) {
    const state = yield* deriveAttempt(deriving, task, attempt, own)
    if (state !== undefined) states.set(attempt.execution_id, state)
  }
  const countOf = (execution_id: ExecutionId | undefined) =>
    readProductsCount(states.get(execution_id)?.["products_count"])
  const room = { left: taskBytesMax }
  for (const session of own) yield* addSession(deriving, session, countOf(session.execution_id), room)
  const isWhole = (attempt: AttemptState): boolean =>
    !tables.leftOut.hasOneOf(framesOf(picture, task, attempt)) &&
    (attempt.proof?.basis === "unwanted" ||
      proveDrain(countOf(attempt.execution_id), foundBy(tables, own, attempt)).isWhole)
  const { run_id } = picture.state.started
  const isLeftOut =
    tables.leftOut.hasOneOf(picture.framesByTask.get(task.planned.task_id) ?? []) ||
    (options.findings !== undefined && wasLeftOut(picture, task))
  const read = own.findLast(({ body }) => body !== undefined)
  const lacking = read
    ? lackingProducts(countOf(read.execution_id), foundBy(tables, own, read))
    : new Set<string>()
  const findings = { ...taskFindings(tables, own, states), lacking, isLeftOut }
  const coverage = coverageRows(run_id, task, options.families, findings)
  tables.add(coverage.map((row) => [coverageTable.name, row]))
  return {
    receipts: receiptsOf(picture, task, isWhole),
    left: leftFeatures(task, coverage),
    features: deliveredFeatures(task, options.families, findings),
  }
})

/** Bodies that are not read again are left out as in the version before. */
const wasLeftOut = ({ state }: RunPicture, { planned }: TaskState): boolean =>
  (state.published?.fact.left_out ?? []).some(({ task_id }) => task_id === planned.task_id)

/** Returns the newest state, if one is landed and readable. */
const deriveAttempt = Effect.fnUntraced(function* (
  { picture, options, tables }: Deriving,
  task: TaskState,
  attempt: AttemptState,
  sessions: ReadonlyArray<SessionPicture>,
) {
  const { run_id } = picture.state.started
  const { execution_id } = attempt
  const newest = execution_id === undefined ? undefined : picture.stateOf.get(execution_id)
  if (options.findings === undefined && execution_id !== undefined) {
    // Read only for the receipt; those that become rows are read there.
    for (const frame of framesOf(picture, task, attempt)) {
      if (frame !== newest && !sessions.some(({ bodies }) => bodies.includes(frame)))
        yield* readBody(run_id, frame)
    }
  }
  const bytes = newest === undefined ? undefined : yield* readBody(run_id, newest)
  const facts = { run_id, task, attempt }
  const rowsOf = (state?: Json) => {
    const more = state === undefined ? [] : stateRows(facts, state)
    const rows: ReadonlyArray<TableRow> = [[executionsTable.name, executionRow(facts, state)], ...more]
    return { state, rows }
  }
  const derived =
    newest === undefined || bytes === undefined
      ? rowsOf()
      : tables.leftOut.unless(
          newest,
          () => rowsOf(objectOf(parseUsable(tables.leftOut, newest, bytes))),
          () => rowsOf(),
        )
  tables.add(derived.rows)
  return derived.state
})

const objectOf = (parsed: ParsedBody): Json | undefined =>
  parsed._tag === "ReadableBody" && isObject(parsed.value) ? parsed.value : undefined

/** What was landed of the session that it names. */
const foundBy = (
  tables: RunTables,
  sessions: ReadonlyArray<SessionPicture>,
  { session_id }: Pick<AttemptState, "session_id">,
): SessionFindings["sources"] => {
  const session = sessions.find((one) => one.session_id === session_id)
  return session === undefined ? [] : (tables.found.get(findingsKey(session))?.sources ?? [])
}

/** The rows of one session; what an earlier derivation found is not read again. */
const addSession = Effect.fnUntraced(function* (
  { picture, options, tables }: Deriving,
  session: SessionPicture,
  count: ProductsCount,
  room: SessionTables["room"],
) {
  const { run_id } = picture.state.started
  const known = options.findings?.get(findingsKey(session))
  if (session.body === undefined || known !== undefined) {
    if (known !== undefined) tables.found.set(findingsKey(session), known)
    return tables.add(rowsOfSession(run_id, session, []))
  }
  const { normaliser, leftOut } = tables
  const added = yield* deriveSession(picture, { normaliser, leftOut, room }, session, count)
  tables.found.set(findingsKey(session), sessionFindings(added))
  const rows = tables.leftOut.unless(
    session.body,
    () => rowsOfSession(run_id, session, added),
    () => rowsOfSession(run_id, session, []),
  )
  tables.add(rows)
})

/**
 * One per execution whose final state is landed: the hash over the sorted hashes of everything landed for
 * it, and whether that alone proves that all of it is here.
 */
const receiptsOf = (
  picture: RunPicture,
  task: TaskState,
  isWhole: (attempt: AttemptState) => boolean,
): Brought["receipts"] =>
  task.attempts.flatMap((attempt) => {
    if (attempt.execution_id === undefined || attempt.closed?.fact.landed === undefined) return []
    const hashes = framesOf(picture, task, attempt).map(({ ref }) => ref.sha256)
    const { execution_id } = attempt
    return [{ execution_id, landed_sha256: receiptOf(hashes), whole: isWhole(attempt) }]
  })

export const receiptOf = (hashes: ReadonlyArray<string>): string => sha256Hex(hashes.toSorted().join("\n"))

// What the session that was read last and the newest state of a task say, as far as its coverage needs it:
// records by table and product, as `main` has them, what their execution counted, and whether there can be
// others. Pure.

export const taskFindings = (
  tables: RunTables,
  sessions: ReadonlyArray<SessionPicture>,
  states: ReadonlyMap<ExecutionId | undefined, Json>,
): Omit<TaskFindings, "isLeftOut" | "lacking"> => {
  const read = sessions.findLast(({ body }) => body !== undefined)
  const found = read && tables.found.get(findingsKey(read))
  const newest = [...states.values()].at(-1)
  const counts = (read === undefined ? newest : states.get(read.execution_id))?.["products_count"]
  return {
    featureReasons: new Map(
      objectsOf(newest?.["features"]).flatMap(([, { code, status_reason }]) =>
        typeof code === "string" && typeof status_reason === "string" ? [[code, status_reason] as const] : [],
      ),
    ),
    byTable: found && new Map(Object.entries(found.counts.byTable)),
    byProduct: found?.byProduct ?? new Map(),
    delivered: found && deliveredBy(found),
    products_count: isObject(counts)
      ? Object.entries(counts).flatMap(([key, count]) =>
          typeof count === "number" && Number.isSafeInteger(count) ? [[key, count] as const] : [],
        )
      : undefined,
    retrieved: found?.retrieved,
    session_id: (read ?? sessions.at(-1))?.session_id,
    as_of: read?.body?.meta.received_at,
  }
}

/** Products of all records; undefined if there may be others. */
const deliveredBy = ({ sources, counts }: SessionFindings): TaskFindings["delivered"] => {
  const isKnown = sources.length > 0 && sources.every(({ isFinal }) => isFinal)
  if (!isKnown || counts.strays > 0) return undefined
  return new Set(sources.flatMap(({ tally }) => [...tally.byProduct.keys()]))
}

// The Parquet files of one run, derived from ledger and landing, written under temporary names, and compared
// with the counts of what was found. Nothing of it is published before the version is committed.

const datePattern = /^\d{4}-\d{2}-\d{2}$/

/** Run id and date become paths; nothing else of a run ever does. */
const checkNames = (run_id: RunId, run_date: string) =>
  isRunId(run_id) && datePattern.test(run_date)
    ? Effect.void
    : Effect.fail(new PublishFailed({ message: "a run's id holds a-z, 0-9, dot and hyphen only" }))

/** Writes full builders as Parquet files under temporary names, and remembers them for the manifest. */
export const fileSink = (store: Store, picture: RunPicture, version: number) => {
  const { run_id, run_date } = picture.state.started
  const written: Array<ManifestFile> = []
  const taken = new Set<string>()
  const sink = ({ spec, rows, table }: Flushed) =>
    fileStep(() => {
      const path = runPath({ table: spec.name, run_id, run_date }, version, taken)
      const bytes = parquetBytes(spec, table, fileMetadata(store, { run_id, version }))
      const place = join(store.layout.root, path)
      makeFoldersOf(store, place)
      store.files.write(temporary(place), bytes, store.modes.file)
      written.push({ table: spec.name, path, rows, bytes: bytes.length, sha256: sha256Hex(bytes) })
      // A run may go on meanwhile: its calls have their turn after each file.
    }).pipe(Effect.andThen(Effect.yieldNow))
  return { written, sink }
}

/** The records found in the bodies must equal the rows that were written, table by table. */
const checkPlaces = (store: Store, { rows, findings }: Derived) => {
  const all = [...findings.values()].map(({ counts }) => counts)
  const sum = (of: (counts: SessionFindings["counts"]) => number) => all.reduce((n, each) => n + of(each), 0)
  const expected: ReadonlyArray<readonly [string, number]> = [
    ...store.families.map(({ table }) => [table, sum(({ byTable }) => byTable[table] ?? 0)] as const),
    ["other_records", sum(({ other }) => other)],
    ["rejected_records", sum(({ rejected, strays }) => rejected + strays)],
  ]
  const wrong = expected.find(([table, count]) => (rows[table] ?? 0) !== count)
  return wrong === undefined
    ? Effect.void
    : Effect.fail(new PublishFailed({ message: `${wrong[0]}: records were found that have no row` }))
}

/**
 * All files of one run under temporary names, for a manifest to list; of a run that goes on, those of the
 * tasks that are `over`.
 */
export const stageRun = Effect.fn("Publishing.stageRun")(function* (
  store: Store,
  run_id: RunId,
  version: number,
  over?: ReadonlySet<string>,
) {
  const whole = yield* loadPicture(run_id)
  const told = over === undefined ? whole : onlyOver(whole, over)
  const { picture, disguise } = yield* disguisePicture(store, told)
  const { state } = picture
  const { run_date } = state.started
  yield* checkNames(run_id, run_date)
  const { written, sink } = fileSink(store, picture, version)
  const { families } = store
  const derived = yield* deriveRun(picture, { families, tables: systemTables, sink, disguise })
  yield* checkPlaces(store, derived)
  // Bodies would stay in memory beside what is derived or built next.
  const bytes = picture.frames.reduce((sum, { ref }) => sum + ref.bytes, 0)
  if (bytes > largeBytes) yield* Effect.sync(collectGarbage)
  return { run_id, state, derived, entry: { run_date, version, files: written } }
})

/** As far as the run can be derived, or why not. A full disk must not look like a run that cannot be read. */
export const stageReadable = (store: Store, run_id: RunId, version: number) =>
  Effect.matchEffect(stageRun(store, run_id, version), {
    onSuccess: (staged) => Effect.succeed({ staged, reason: "" }),
    onFailure: (failure) =>
      failure.damaged === true
        ? Effect.succeed({ staged: undefined, reason: failure.message })
        : Effect.fail(failure),
  })
