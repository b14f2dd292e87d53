/**
 * Proves that landing, ledger, Parquet files and database agree, and names whatever does not: bodies that
 * changed, files of another hash, tables of another count, executions without a row, deletions without a
 * receipt or of which landing holds less than was counted, strays. Reads only.
 */
import { join } from "node:path"
import { Effect } from "effect"
import { identifier } from "../duckdb/SqlText.ts"
import { shortfallOf } from "../execution/DrainProof.ts"
import type { DrainProof } from "../execution/DrainProof.ts"
import { Landing } from "../landing/Landing.ts"
import type { ProofLine } from "../ledger/Fact.ts"
import { Ledger } from "../ledger/Ledger.ts"
import { countDifferences, databaseFailed, databaseVersion, openDatabase } from "./BuildDatabase.ts"
import { strayFiles } from "./Commit.ts"
import type { Store } from "./Store.ts"
import { receiptOf } from "./DeriveRun.ts"
import { proveAgain } from "./ProveAgain.ts"
import { filesOf, nothingPublished, readManifest, sha256Of } from "./Manifest.ts"
import type { Manifest } from "./Manifest.ts"
import { fileStep } from "./OutputFiles.ts"
import { PublishFailed } from "./Publisher.ts"
import { framesOf, loadPicture } from "./RunPicture.ts"
import type { RunPicture } from "./RunPicture.ts"
import { executionsTable } from "./SystemTables.ts"

export interface Problem {
  readonly problem: string
  /** A path below the output folder, a table, or an id. */
  readonly where: string
}

/** All problems, in the order of landing, ledger, files, database; none when everything agrees. */
export const verify = Effect.fn("Publishing.verify")(function* (store: Store) {
  const ledger = yield* Ledger
  const { files, layout } = store
  const problems: Array<Problem> = []
  const manifest = yield* fileStep(() => readManifest(files, layout.manifest) ?? nothingPublished)
  const runs = yield* Effect.mapError(ledger.runs, ({ message }) => new PublishFailed({ message }))
  const accepted = new Map<string, string>()
  for (const { fact } of runs) {
    const loaded = yield* Effect.result(loadPicture(fact.run_id))
    if (loaded._tag === "Failure") {
      problems.push({ problem: loaded.failure.message, where: `landing/${fact.run_id}` })
      continue
    }
    const damaged = yield* bodyProblems(loaded.success)
    problems.push(...damaged, ...deletionProblems(loaded.success))
    // What a damaged body held is not known; that it is damaged has been said.
    if (damaged.length === 0) problems.push(...(yield* proofProblems(loaded.success)))
    // A run that is under way has nothing published yet.
    if (manifest.runs[fact.run_id] === undefined) {
      if (loaded.success.state.published !== undefined) {
        problems.push({ problem: "published, but not in the manifest", where: fact.run_id })
      }
    } else for (const id of acceptedOf(loaded.success)) accepted.set(id, fact.run_id)
  }
  const known = new Set(runs.map(({ fact }) => fact.run_id))
  for (const run_id of Object.keys(manifest.runs)) {
    if (!known.has(run_id)) problems.push({ problem: "published, but not in the ledger", where: run_id })
  }
  problems.push(...(yield* fileProblems(store, manifest)))
  if (manifest.version > 0) problems.push(...(yield* databaseProblems(store, manifest, accepted)))
  return problems as ReadonlyArray<Problem>
})

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
    problems.push({ problem: read.failure.message, where })
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
        return [{ problem: "deleted without a receipt", where: execution_id }]
      return deletion.landed_sha256 === landed
        ? []
        : [{ problem: "the receipt of its deletion is not that of what is landed", where: execution_id }]
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
      if (problem !== undefined) problems.push({ problem, where: execution_id })
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

const fileProblems = ({ files, layout, ...rest }: Store, manifest: Manifest) =>
  fileStep(() => {
    const problems: Array<Problem> = []
    if (files.exists(layout.next)) {
      problems.push({ problem: "a publication was cut off; the next one finishes it", where: "tables" })
    }
    for (const { path, bytes, sha256 } of filesOf(manifest)) {
      const stands = join(layout.root, path)
      if (!files.exists(stands)) problems.push({ problem: "the file is missing", where: path })
      else {
        const found = files.read(stands)
        if (found.length !== bytes || sha256Of(found) !== sha256) {
          problems.push({ problem: "the file is not what was published", where: path })
        }
      }
    }
    for (const where of strayFiles({ files, layout, ...rest }, manifest)) {
      if (where !== "tables/manifest.next.json")
        problems.push({ problem: "no manifest lists the file", where })
    }
    return problems
  })

export const databaseProblems = Effect.fnUntraced(
  function* (store: Store, manifest: Manifest, accepted: ReadonlyMap<string, string>) {
    const version = yield* databaseVersion(store.layout.database)
    const where = "nightjar.duckdb"
    if (version !== manifest.version) {
      const says = version === undefined ? "cannot be read" : `is version ${version}`
      return [{ problem: `the database ${says}, the manifest is ${manifest.version}`, where }]
    }
    const connection = yield* openDatabase(store.layout.database, "read-only")
    const problems: Array<Problem> = []
    for (const { table, run_id, expected, found } of yield* countDifferences(connection, {
      manifest,
      families: store.families,
    })) {
      problems.push({ problem: `${found} rows of run ${run_id}, ${expected} in its files`, where: table })
    }
    const rows = yield* connection.rows(
      `SELECT run_id, execution_id FROM ${identifier(executionsTable.name)} WHERE execution_id IS NOT NULL`,
    )
    const present = new Set(rows.map((row) => JSON.stringify([row["run_id"], row["execution_id"]])))
    for (const [execution_id, run_id] of accepted) {
      if (present.has(JSON.stringify([run_id, execution_id]))) continue
      problems.push({ problem: `not in ${executionsTable.name}`, where: execution_id })
    }
    return problems
  },
  Effect.scoped,
  Effect.catchTag("DuckDbFailed", (failure) => Effect.fail(databaseFailed(failure))),
)
