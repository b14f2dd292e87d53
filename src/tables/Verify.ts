/**
 * Checks that landing, ledger, Parquet files and database agree, also while a run publishes, and names
 * whatever does not. Only reads.
 */
import { existsSync, readFileSync } from "node:fs"
import { basename, join } from "node:path"
import { Effect } from "effect"
import { counted } from "../base/Text.ts"
import type { RunId, ExecutionId, SessionId } from "../service/Ids.ts"
import { identifier } from "../base/DuckDbFailed.ts"
import { shortfallOf, findingOf, proveDrain } from "../task/DrainProof.ts"
import type { DrainProof, SourceFinding } from "../task/DrainProof.ts"
import { Landing, type LandedBody } from "../landing/Landing.ts"
import { problemOf, type Problem } from "../messages/Catalogue.ts"
import type { ProofLine } from "../ledger/Fact.ts"
import { Ledger } from "../ledger/Ledger.ts"
import type { RunState } from "../ledger/RunState.ts"
import { readProductsCount, type ResultsSource } from "../service/FlowResults.ts"
import { parseBody, tallyOf } from "../records/FindRecords.ts"
import { countDifferences, openDatabase, readAll, versionIn } from "./BuildDatabase.ts"
import { inForce, strayFiles, type InForce } from "./Version.ts"
import { receiptOf } from "./DeriveRun.ts"
import { parquetGaps, takenNames } from "./ParquetViews.ts"
import { publishedTables } from "./DataDictionary.ts"
import { familyTables } from "./FileColumns.ts"
import { lostSchemas } from "./KeepSchemas.ts"
import { isKeptDatabaseDamaged } from "./KeptVersions.ts"
import { fileStep, filesOf, gapsOf, isOtherDatabase, placeIn, runsHere } from "./Manifest.ts"
import type { Manifest, Layout, Store } from "./Manifest.ts"
import { framesOf, loadPicture, type RunPicture } from "./RunPicture.ts"
import { executionsTable } from "./SystemTables.ts"
import { readBody, sourceOf } from "./DeriveSession.ts"
import { isObject } from "../records/ExactNumber.ts"
import { isFolderLocked } from "../base/FolderLock.ts"

/** All problems, in the order of ledger, landing, files, database; none if everything agrees. */
export const verify = Effect.fn("Publishing.verify")(function* (store: Store) {
  const ledger = yield* Ledger
  const standing = yield* inForce(store)
  const { manifest, newest, isLost } = standing
  const here = yield* fileStep(() => runsHere(store.layout, manifest))
  const looked = yield* Effect.result(Effect.all([ledger.problems, ledger.runs]))
  if (looked._tag === "Failure") return yield* verifyTables(store, looked.failure.message)
  const [damage, runs] = looked.success
  const problems = damage.map((detail) => problemOf(ledgerName, "facts-damaged", { detail }))
  const accepted = new Map<string, string>()
  const documents = new Set<string>()
  const pruned = yield* ledger.pruned
  for (const { fact } of runs) {
    // A damaged fact in it was already reported.
    if (damage.length > 0 && (yield* Effect.result(ledger.facts(fact.run_id)))._tag === "Failure") continue
    const found = pruned.landing.has(fact.run_id)
      ? { problems: [], state: yield* ledger.state(fact.run_id) }
      : yield* runProblems(fact.run_id)
    problems.push(...found.problems)
    if (found.state === undefined) continue
    if (!pruned.attachments.has(fact.run_id))
      problems.push(...(yield* documentProblems(store, found.state, documents)))
    // A run in progress has nothing published yet.
    if (newest.runs[fact.run_id] === undefined) {
      if (!isLost && found.state.published !== undefined)
        problems.push(problemOf(fact.run_id, "run-not-in-manifest"))
      // After a rollback, the database rightly has the executions of an earlier version.
    } else if (manifest.returned === undefined && newest.runs[fact.run_id]?.left_out !== true)
      for (const id of acceptedOf(found.state)) accepted.set(id, fact.run_id)
  }
  const known = new Set<string>(runs.map(({ fact }) => fact.run_id))
  for (const run_id of here) if (!known.has(run_id)) problems.push(problemOf(run_id, "run-not-in-ledger"))
  problems.push(...(yield* publishedProblems(store, standing, accepted)))
  problems.push(...(yield* removalProblems(store)))
  return problems as ReadonlyArray<Problem>
})

const ledgerName = "ledger.sqlite"

/** A removal of a customer that was cut off: whatever is left of the customer is found by its file. */
const removalProblems = Effect.fnUntraced(function* ({ layout }: Store) {
  const ledger = yield* Ledger
  const facts = (yield* ledger.receipts).map(({ fact }) => fact)
  const finished = new Set(facts.flatMap((fact) => (fact._tag === "ForgetFinished" ? [fact.receipt] : [])))
  const isOpen = facts.some((fact) => fact._tag === "CustomerForgotten" && !finished.has(fact.receipt))
  return isOpen || existsSync(layout.forgetting)
    ? [problemOf(basename(layout.forgetting), "forget-unfinished")]
    : []
})

/** What can be checked without the ledger, and what is wrong with it. */
export const verifyTables = Effect.fn("Publishing.verifyTables")(function* (store: Store, detail: string) {
  const standing = yield* inForce(store)
  return [
    problemOf(ledgerName, "facts-damaged", { detail }),
    ...(yield* publishedProblems(store, standing, new Map())),
  ] as ReadonlyArray<Problem>
})

const publishedProblems = Effect.fnUntraced(function* (
  store: Store,
  standing: InForce,
  accepted: ReadonlyMap<string, string>,
) {
  const { manifest, isLost, isMoving, database } = standing
  if (isLost) return [problemOf("tables/manifest.json", "manifest-lost")]
  const problems = [...(yield* fileProblems(store, standing))]
  for (const { path, state } of yield* parquetGaps(store, manifest, true)) {
    // A name that is yet to lead there.
    if (isMoving && manifest.parquet?.holds.some((name) => name === path) === true) continue
    problems.push(
      state === "missing" || state === "damaged"
        ? problemOf(path, "parquet-differs", { state })
        : problemOf(path, state === "lost" ? "parquet-lost" : "file-unlisted"),
    )
  }
  for (const name of isMoving ? [] : yield* takenNames(store, manifest))
    problems.push(problemOf(name, "parquet-elsewhere"))
  if (yield* isKeptDatabaseDamaged(store)) problems.push(problemOf(keptDatabase, "helper-damaged"))
  const built = { ...store, layout: { ...store.layout, database } }
  if (manifest.version > 0) problems.push(...(yield* databaseProblems(built, manifest, accepted)))
  return problems
})

/** Bodies and deletions of one run; without a state, nothing more can be checked. */
const runProblems = Effect.fnUntraced(function* (run_id: RunId) {
  const loaded = yield* Effect.result(loadPicture(run_id))
  if (loaded._tag === "Failure")
    return {
      problems: [problemOf(`landing/${run_id}`, "landing-unreadable", { detail: loaded.failure.message })],
      state: undefined,
    }
  const picture = loaded.success
  const headers = yield* headerProblems(picture)
  const damaged = [...headers, ...(yield* bodyProblems(picture))]
  const problems = [...damaged, ...(headers.length === 0 ? deletionProblems(picture) : [])]
  // What a damaged body contained is not known; the damage was already reported.
  if (damaged.length === 0) problems.push(...(yield* proofProblems(picture)))
  return { problems, state: picture.state }
})

/** Every document that was downloaded exists and matches its name; checked once, whichever runs have it. */
const documentProblems = Effect.fnUntraced(function* (
  { layout }: Store,
  { tasks }: RunState,
  checked: Set<string>,
) {
  const landing = yield* Landing
  const problems: Array<Problem> = []
  for (const { attachments } of tasks.values())
    for (const { status, path, sha256 } of attachments) {
      if (status !== "downloaded" || path === undefined || checked.has(path)) continue
      checked.add(path)
      if (yield* landing.hasAttachment(sha256)) continue
      const isThere = existsSync(join(layout.root, path))
      problems.push(problemOf(path, isThere ? "document-changed" : "document-missing"))
    }
  return problems
})

const acceptedOf = ({ tasks, ...state }: RunState): ReadonlyArray<string> => {
  const published = state.published?.seq ?? -Infinity
  return [...tasks.values()].flatMap(({ attempts }) =>
    attempts.flatMap(({ execution_id, closed }) =>
      execution_id !== undefined && closed !== undefined && closed.seq < published ? [execution_id] : [],
    ),
  )
}

const bodyProblems = Effect.fnUntraced(function* ({ state, frames }: RunPicture) {
  const landing = yield* Landing
  const problems: Array<Problem> = []
  for (const { ref } of frames) {
    const read = yield* Effect.result(landing.read(state.started.run_id, ref))
    if (read._tag === "Success") continue
    const where = `landing/${state.started.run_id}/${ref.segment}:${ref.offset}`
    problems.push(problemOf(where, "landing-unreadable", { detail: read.failure.message }))
  }
  return problems
})

/** Of bodies that no fact refers to; those that were read again from the service have their copies. */
const headerProblems = Effect.fnUntraced(function* ({ state: { started, tasks } }: RunPicture) {
  const { run_id } = started
  const lost = [...tasks.values()].flatMap((task) => task.lost ?? [])
  const landing = yield* Landing
  return (yield* landing.damage(run_id)).flatMap(({ segment, from, to }): ReadonlyArray<Problem> => {
    const where = `landing/${run_id}/${segment}:${from}`
    return lost.every((ref) => ref.segment !== segment || ref.offset < from || ref.offset >= to)
      ? [problemOf(where, "landing-unreadable", { detail: "the header of a body is damaged" })]
      : []
  })
})

/** Every requested deletion has a receipt, and the receipt matches what is landed. */
const deletionProblems = (picture: RunPicture): ReadonlyArray<Problem> =>
  [...picture.state.tasks.values()].flatMap((task) =>
    task.attempts.flatMap((attempt): ReadonlyArray<Problem> => {
      const { deletion, execution_id } = attempt
      if (deletion === undefined || execution_id === undefined) return []
      const landed = receiptOf(framesOf(picture, task, attempt).map(({ ref }) => ref.sha256))
      if (deletion.landed_sha256 === "") return [problemOf(execution_id, "receipt-missing")]
      return deletion.landed_sha256 === landed ? [] : [problemOf(execution_id, "receipt-mismatch")]
    }),
  )

/** Every execution that was deleted, or should be, is proved again from landing alone. */
const proofProblems = Effect.fnUntraced(function* (picture: RunPicture) {
  const problems: Array<Problem> = []
  for (const task of picture.state.tasks.values())
    for (const { execution_id, deletion, proof, session_id } of task.attempts) {
      if (deletion === undefined || execution_id === undefined || proof?.basis === "unwanted") continue
      const found = yield* proveAgain(picture, execution_id, session_id)
      if (!found.isWhole)
        problems.push(problemOf(execution_id, "deleted-unproved", { missing: missingText(found) }))
      else if (isLess(found.families, proof?.families ?? []))
        problems.push(problemOf(execution_id, "proof-mismatch"))
    }
  return problems
})

// The proof of an execution's deletion, derived again from landing alone: the count in its last landed state
// compared with the newest landed body of each endpoint. The ledger's own record of the proof is not used.

const valueOf = Effect.fnUntraced(function* (run_id: RunId, body: LandedBody | undefined) {
  if (body === undefined) return undefined
  const parsed = parseBody(yield* readBody(run_id, body))
  return parsed._tag === "ReadableBody" ? parsed.value : undefined
})

/** What cannot be counted proves nothing. */
const findingOrNothing = (source: ResultsSource, value: unknown): SourceFinding => {
  try {
    return findingOf(source, value)
  } catch {
    return { source, isFinal: false, tally: tallyOf([]) }
  }
}

/** Fails if one of its bodies is damaged. */
export const proveAgain = Effect.fn("Publishing.proveAgain")(function* (
  picture: RunPicture,
  execution_id: ExecutionId,
  session_id: SessionId | undefined,
) {
  const { run_id } = picture.state.started
  const state = yield* valueOf(run_id, picture.stateOf.get(execution_id))
  const count = readProductsCount(isObject(state) ? state["products_count"] : undefined)
  const session = picture.sessions.find((one) => one.session_id === session_id)
  const findings: Array<SourceFinding> = []
  for (const body of session?.bodies ?? []) {
    const source = sourceOf(picture.state.sources, body)
    findings.push(findingOrNothing(source, yield* valueOf(run_id, body)))
  }
  return proveDrain(count, findings)
})

const missingText = ({ isCounted, families }: DrainProof): string =>
  isCounted ? `${counted(shortfallOf(families), "record")} missing` : "its products_count cannot be read"

/** Whether a family of the proof has fewer records now. */
const isLess = (now: ReadonlyArray<ProofLine>, then: ReadonlyArray<ProofLine>): boolean => {
  const landed = new Map(now.map((line) => [line.family, line.landed]))
  return then.some((line) => (landed.get(line.family) ?? 0) < line.landed)
}

/**
 * Every published table has a schema, or was that of a list of one: its items are in `extra` then. Those that
 * the manifest names are kept as they were written.
 */
const schemaProblems = (
  { layout, families }: Store,
  versions: { readonly current: Manifest; readonly newest: Manifest },
): ReadonlyArray<Problem> => {
  const known = new Set(publishedTables(families).map(({ name }) => name))
  const tables = new Set(filesOf(versions.current).map(({ table }) => table))
  return [
    ...[...tables]
      .filter((table) => !known.has(table) && familyTables(families, table).length === 0)
      .map((table) => problemOf(`tables/${table}`, "table-without-schema")),
    ...lostSchemas(layout, versions).map(({ name, state }) =>
      problemOf(`schemas/${name}`, state === "missing" ? "schema-missing" : "schema-changed"),
    ),
  ]
}

export const keptDatabase = "published/previous/nightjar.duckdb"

const fileProblems = Effect.fnUntraced(function* (
  store: Store,
  { manifest, newest, isInterrupted, isMoving, passing }: InForce,
) {
  const listed = new Set(filesOf(manifest).map(({ path }) => path))
  // Of the version that a rollback replaced: the next publication continues from it.
  const further = filesOf(newest).filter(({ path }) => !listed.has(path))
  const standsAt = isMoving ? placeIn(store) : ({ path }: { readonly path: string }) => path
  const gaps = [
    ...(yield* gapsOf(store, filesOf(manifest), true, standsAt)),
    ...(yield* gapsOf(store, further)),
  ]
  return yield* fileStep(() => {
    const cut = isInterrupted ? [problemOf("tables", "publication-interrupted")] : []
    const strays = strayFiles(store, manifest).filter((path) => !passing.has(path))
    const { returned } = manifest
    return [
      ...cut,
      ...schemaProblems(store, { current: manifest, newest }),
      ...(returned !== undefined && newest === manifest
        ? [problemOf("published/previous", "newest-version-lost", { version: returned.from })]
        : []),
      ...gaps.map(({ path, state }) => problemOf(path, "file-differs", { state })),
      ...strays.map((where) => problemOf(where, "file-unlisted")),
    ]
  })
})

/** The database is the published one, but a schema that it was made with is lost: its tables may differ. */
const hasOtherTables = ({ layout }: Store, current: Manifest, isOther: boolean) =>
  fileStep(() => {
    const isPublished = current.database !== undefined && !isOther
    return isPublished && lostSchemas(layout, { current, newest: current }).length > 0
  })

export const databaseProblems = Effect.fnUntraced(
  function* (store: Store, manifest: Manifest, accepted: ReadonlyMap<string, string>) {
    const where = "nightjar.duckdb"
    const opened = yield* Effect.result(openDatabase(store.layout.database, "read-only"))
    const version = opened._tag === "Failure" ? undefined : yield* versionIn(opened.success)
    if (opened._tag === "Failure" || version !== manifest.version) {
      const state = version === undefined ? "cannot be read" : `is version ${version}`
      return [problemOf(where, "database-version", { state, version: manifest.version })]
    }
    const isOther = yield* fileStep(() => isOtherDatabase(store.layout.database, manifest.database))
    const problems: Array<Problem> = isOther ? [problemOf(where, "database-changed")] : []
    const connection = opened.success
    yield* readAll(connection)
    const { families } = store
    for (const { table, run_id, expected, found } of (yield* hasOtherTables(store, manifest, isOther))
      ? []
      : yield* countDifferences(connection, { manifest, families }))
      problems.push(problemOf(table, "rows-differ", { rows: counted(found, "row"), run_id, expected }))
    const rows = yield* connection.rows(`SELECT run_id, execution_id
      FROM ops.${identifier(executionsTable.name)} WHERE execution_id IS NOT NULL`)
    const present = new Set(rows.map((row) => JSON.stringify([row["run_id"], row["execution_id"]])))
    for (const [execution_id, run_id] of accepted) {
      if (present.has(JSON.stringify([run_id, execution_id]))) continue
      problems.push(problemOf(execution_id, "execution-not-in-tables", { table: executionsTable.name }))
    }
    return problems
  },
  Effect.scoped,
  // The version can be read, but something in it cannot.
  Effect.catchTag("DuckDbFailed", ({ message }) =>
    Effect.succeed([problemOf("nightjar.duckdb", "database-unreadable", { detail: message })]),
  ),
)

// A check of a folder in which a run may publish meanwhile: a finding counts if nothing was published in
// between, or if every look has it. So a version that takes the place of another is no finding, and damage is
// one.

/** Publications follow each other after at least four times as long as one takes. */
const looksMax = 5

const publishedIn = ({ manifest, next }: Layout) =>
  fileStep(() => ({
    isPublishing: existsSync(next),
    manifest: existsSync(manifest) ? readFileSync(manifest, "utf8") : "",
  }))

/** What somebody who works in the folder is about to finish. */
const isUnderWay = ({ id }: Problem): boolean => id === "publication-interrupted"

const isSame = (one: Problem) => (other: Problem) =>
  one.id === other.id && one.where === other.where && one.problem === other.problem

/** `look` opens the folder anew each time: a new version may have further tables. */
export const verifyBeside = Effect.fn("Publishing.verifyBeside")(function* <E, R>(
  layout: Layout,
  look: Effect.Effect<ReadonlyArray<Problem>, E, R>,
) {
  let lasting: ReadonlyArray<Problem> | undefined
  for (let looks = 1; ; looks++) {
    const before = yield* publishedIn(layout)
    const found = yield* look
    if (found.length === 0) return found
    const isBusy = isFolderLocked(`${layout.root}/run.lock`)
    const told = isBusy ? found.filter((one) => !isUnderWay(one)) : found
    lasting = lasting === undefined ? told : lasting.filter((one) => told.some(isSame(one)))
    const after = yield* publishedIn(layout)
    const isStill =
      before.manifest === after.manifest && !(isBusy && (before.isPublishing || after.isPublishing))
    if (lasting.length === 0 || isStill || looks === looksMax) return lasting
    yield* Effect.sleep("1 second")
  }
})
