/**
 * Proves that landing, ledger, Parquet files and database agree, and names whatever does not: bodies that
 * changed, files of another hash, tables of another count, executions without a row, deletions without a
 * receipt or of which landing holds less than was counted, strays. Reads only.
 */
import { join } from "node:path"
import { Effect } from "effect"
import type { RunId } from "../contract/Ids.ts"
import { identifier } from "../duckdb/SqlText.ts"
import { shortfallOf } from "../execution/DrainProof.ts"
import type { DrainProof } from "../execution/DrainProof.ts"
import { Landing } from "../landing/Landing.ts"
import type { ProofLine } from "../ledger/Fact.ts"
import { Ledger } from "../ledger/Ledger.ts"
import { countDifferences, databaseVersion, openDatabase } from "./BuildDatabase.ts"
import { strayFiles } from "./Commit.ts"
import { receiptOf } from "./DeriveRun.ts"
import { proveAgain } from "./ProveAgain.ts"
import { filesOf, nothingPublished, readManifest, sha256Of } from "./Manifest.ts"
import type { Manifest } from "./Manifest.ts"
import { fileStep } from "./OutputFiles.ts"
import { framesOf, loadPicture } from "./RunPicture.ts"
import type { RunPicture } from "./RunPicture.ts"
import { gapsIn } from "./Standing.ts"
import type { Store } from "./Store.ts"
import { executionsTable } from "./SystemTables.ts"

export interface Problem {
  readonly problem: string
  /** A path below the output folder, a table, or an id. */
  readonly where: string
  readonly next: string
}

/** What to do about each kind of damage. */
const next = {
  repair: "`nightjar repair` makes it good from what is landed",
  restore: "put a copy of it back: nothing else holds it",
  ledger: "put back the copy of ledger.sqlite that belongs to these tables",
  publication: "the next publication sees to it, and so does `nightjar repair`",
  report: "keep the folder as it is and compare with the service: this must not happen",
} as const

const problemOf = (problem: string, where: string, to: keyof typeof next): Problem => ({
  problem,
  where,
  next: next[to],
})

/** All problems, in the order of ledger, landing, files, database; none when everything agrees. */
export const verify = Effect.fn("Publishing.verify")(function* (store: Store) {
  const ledger = yield* Ledger
  const manifest = yield* fileStep(() => readManifest(store.files, store.layout.manifest))
  const isLost = yield* isManifestLost(store, manifest)
  const looked = yield* Effect.result(Effect.all([ledger.problems, ledger.runs]))
  if (looked._tag === "Failure") return yield* verifyTables(store, looked.failure.message)
  const [damage, runs] = looked.success
  const problems = damage.map((problem) => problemOf(problem, ledgerName, "restore"))
  const accepted = new Map<string, string>()
  for (const { fact } of runs) {
    // That a fact of it is damaged has been said.
    if (damage.length > 0 && (yield* Effect.result(ledger.facts(fact.run_id)))._tag === "Failure") continue
    const found = yield* runProblems(store, fact.run_id)
    problems.push(...found.problems)
    if (found.picture === undefined) continue
    // A run that is under way has nothing published yet.
    if (manifest?.runs[fact.run_id] === undefined) {
      if (!isLost && found.picture.state.published !== undefined)
        problems.push(problemOf("published, but not in the manifest", fact.run_id, "repair"))
    } else for (const id of acceptedOf(found.picture)) accepted.set(id, fact.run_id)
  }
  const known = new Set<string>(runs.map(({ fact }) => fact.run_id))
  for (const run_id of Object.keys(manifest?.runs ?? {}))
    if (!known.has(run_id)) problems.push(problemOf("published, but not in the ledger", run_id, "ledger"))
  problems.push(...(yield* publishedProblems(store, manifest, accepted)))
  return problems as ReadonlyArray<Problem>
})

const ledgerName = "ledger.sqlite"

/** What can be said without the ledger, and what is wrong with that. */
export const verifyTables = Effect.fn("Publishing.verifyTables")(function* (store: Store, message: string) {
  const manifest = yield* fileStep(() => readManifest(store.files, store.layout.manifest))
  return [
    problemOf(message, ledgerName, "restore"),
    ...(yield* publishedProblems(store, manifest, new Map())),
  ] as ReadonlyArray<Problem>
})

/** No manifest, although there are tables: what of them is published is not known. */
const isManifestLost = ({ files, layout }: Store, manifest: Manifest | undefined) =>
  fileStep(() => manifest === undefined && files.walk(layout.tables).length > 0)

const publishedProblems = Effect.fnUntraced(function* (
  store: Store,
  manifest: Manifest | undefined,
  accepted: ReadonlyMap<string, string>,
) {
  if (yield* isManifestLost(store, manifest))
    return [problemOf("the manifest is missing or cannot be read", "tables/manifest.json", "repair")]
  const standing = manifest ?? nothingPublished
  const problems = [...(yield* fileProblems(store, standing))]
  if (standing.version > 0) problems.push(...(yield* databaseProblems(store, standing, accepted)))
  return problems
})

/** Bodies, documents and deletions of one run; without a picture nothing more can be said of it. */
const runProblems = Effect.fnUntraced(function* (store: Store, run_id: RunId) {
  const loaded = yield* Effect.result(loadPicture(run_id))
  if (loaded._tag === "Failure")
    return {
      problems: [problemOf(loaded.failure.message, `landing/${run_id}`, "restore")],
      picture: undefined,
    }
  const picture = loaded.success
  const damaged = yield* bodyProblems(picture)
  const problems = [...damaged, ...(yield* documentProblems(store, picture)), ...deletionProblems(picture)]
  // What a damaged body held is not known; that it is damaged has been said.
  if (damaged.length === 0) problems.push(...(yield* proofProblems(picture)))
  return { problems, picture }
})

/** Every document that was downloaded is there, and is what its name says. */
const documentProblems = ({ files, layout }: Store, { state }: RunPicture) =>
  fileStep(() =>
    [...state.tasks.values()].flatMap(({ attachments }) =>
      attachments.flatMap(({ status, path, sha256 }): ReadonlyArray<Problem> => {
        if (status !== "downloaded" || path === undefined) return []
        const stands = join(layout.root, path)
        if (!files.exists(stands)) return [problemOf("the document is missing", path, "restore")]
        const isWhole = sha256Of(files.read(stands)) === sha256
        return isWhole ? [] : [problemOf("the document is not what was downloaded", path, "restore")]
      }),
    ),
  )

const acceptedOf = ({ state }: RunPicture): ReadonlyArray<string> => {
  const published = state.published?.seq ?? -Infinity
  return [...state.tasks.values()].flatMap(({ attempts }) =>
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
    problems.push(problemOf(read.failure.message, where, "restore"))
  }
  return problems
})

/** Every deletion that was asked for has a receipt, and the receipt is that of what is landed. */
const deletionProblems = (picture: RunPicture): ReadonlyArray<Problem> =>
  [...picture.state.tasks.values()].flatMap((task) =>
    task.attempts.flatMap((attempt): ReadonlyArray<Problem> => {
      const { deletion, execution_id } = attempt
      if (deletion === undefined || execution_id === undefined) return []
      const landed = receiptOf(framesOf(picture, task, attempt).map(({ ref }) => ref.sha256))
      if (deletion.landed_sha256 === "")
        return [problemOf("deleted without a receipt", execution_id, "report")]
      return deletion.landed_sha256 === landed
        ? []
        : [problemOf("the receipt of its deletion is not that of what is landed", execution_id, "report")]
    }),
  )

/** Every execution that was deleted, or asked to be, is proved once more from landing alone. */
const proofProblems = Effect.fnUntraced(function* (picture: RunPicture) {
  const problems: Array<Problem> = []
  for (const task of picture.state.tasks.values())
    for (const { execution_id, deletion, proof, session_id } of task.attempts) {
      if (deletion === undefined || execution_id === undefined || proof?.basis === "unwanted") continue
      const found = yield* proveAgain(picture, execution_id, session_id)
      const problem = !found.isWhole
        ? `deleted although landing does not hold all of it: ${missingText(found)}`
        : isLess(found.families, proof?.families ?? [])
          ? "landing holds fewer of its records than the proof of its deletion says"
          : undefined
      if (problem !== undefined) problems.push(problemOf(problem, execution_id, "report"))
    }
  return problems
})

const missingText = ({ isCounted, families }: DrainProof): string =>
  isCounted ? `${shortfallOf(families)} records are missing` : "its products_count cannot be read"

/** Whether a family of the proof has fewer records now. */
const isLess = (now: ReadonlyArray<ProofLine>, then: ReadonlyArray<ProofLine>): boolean => {
  const landed = new Map(now.map((line) => [line.family, line.landed]))
  return then.some((line) => (landed.get(line.family) ?? 0) < line.landed)
}

const fileProblems = (store: Store, manifest: Manifest) =>
  fileStep(() => {
    const { files, layout } = store
    const cut = files.exists(layout.next)
      ? [problemOf("a publication was cut off; the next one finishes it", "tables", "publication")]
      : []
    const strays = strayFiles(store, manifest).filter((path) => path !== "tables/manifest.next.json")
    return [
      ...cut,
      ...gapsIn(store, filesOf(manifest), true).map(({ path, problem }) =>
        problemOf(problem, path, "repair"),
      ),
      ...strays.map((where) => problemOf("no manifest lists the file", where, "publication")),
    ]
  })

export const databaseProblems = Effect.fnUntraced(
  function* (store: Store, manifest: Manifest, accepted: ReadonlyMap<string, string>) {
    const version = yield* databaseVersion(store.layout.database)
    const where = "nightjar.duckdb"
    if (version !== manifest.version) {
      const says = version === undefined ? "cannot be read" : `is version ${version}`
      return [problemOf(`the database ${says}, the manifest is ${manifest.version}`, where, "repair")]
    }
    const connection = yield* openDatabase(store.layout.database, "read-only")
    const problems: Array<Problem> = []
    for (const { table, run_id, expected, found } of yield* countDifferences(connection, {
      manifest,
      families: store.families,
    })) {
      problems.push(problemOf(`${found} rows of run ${run_id}, ${expected} in its files`, table, "repair"))
    }
    const rows = yield* connection.rows(
      `SELECT run_id, execution_id FROM ${identifier(executionsTable.name)} WHERE execution_id IS NOT NULL`,
    )
    const present = new Set(rows.map((row) => JSON.stringify([row["run_id"], row["execution_id"]])))
    for (const [execution_id, run_id] of accepted) {
      if (present.has(JSON.stringify([run_id, execution_id]))) continue
      problems.push(problemOf(`not in ${executionsTable.name}`, execution_id, "repair"))
    }
    return problems
  },
  Effect.scoped,
  // The version can be read, and something in it cannot.
  Effect.catchTag("DuckDbFailed", ({ message }) =>
    Effect.succeed([problemOf(`the database cannot be read: ${message}`, "nightjar.duckdb", "repair")]),
  ),
)
