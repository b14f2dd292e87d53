/**
 * Repairs a published folder as far as possible: finishes what was cut off, derives a run again if its files
 * are lost, or takes its rows from a database if its bodies are gone by age, builds the database again. What
 * only a backup can restore is named. Makes no call to the service.
 */
import { existsSync } from "node:fs"
import { Effect } from "effect"
import { RunId } from "../service/Ids.ts"
import { counted, listed } from "../base/Text.ts"
import { Ledger, LedgerFailed } from "../ledger/Ledger.ts"
import { databaseVersion } from "./BuildDatabase.ts"
import { buildInPlace, recover, strayFiles } from "./Version.ts"
import { heldText } from "./HeldRuns.ts"
import { isOfOtherSchemas } from "./KeepSchemas.ts"
import { isKeptDatabaseDamaged, newestDerived } from "./KeptVersions.ts"
import { fileStep, filesOf, gapsOf, nothingPublished, publishedIn, readManifest } from "./Manifest.ts"
import type { Gap, Manifest, Store } from "./Manifest.ts"
import { parquetGaps } from "./ParquetViews.ts"
import { withdrawInterim, publishRun } from "./PublisherDuckDb.ts"
import { ledgerFailed } from "./Publisher.ts"
import { publishedRuns } from "./Rebuild.ts"
import { restoreFiles } from "./RestoreFiles.ts"
import { runsWithout } from "./NextDatabase.ts"
import { databaseProblems, keptDatabase } from "./Verify.ts"
import { change, type Standing } from "./Version.ts"

/** Returns what was done and to what, and what could not be done. */
export const repair = Effect.fn("Publishing.repair")(function* (store: Store) {
  const done: Array<string> = []
  const left: Array<string> = []
  const ledger = yield* Ledger
  const damage = yield* ledger.problems
  // Nothing is derived from facts that were changed.
  if (damage.length > 0) return yield* new LedgerFailed({ message: damage.join("; "), damaged: true })
  done.push(...(yield* recovered(store)))
  const stands = yield* publishedIn(store)
  for (const run_id of yield* restoredRuns(store))
    done.push(`${run_id}: its lost files were written again with their rows in the database`)
  const current = yield* publishedIn(store)
  const interims = Object.entries(current.runs).filter(([, { interim }]) => interim === true)
  // Only its end derives a run again that was published while it went on.
  for (const run_id of yield* brokenRuns(store, { ...current, runs: Object.fromEntries(interims) })) {
    yield* withdrawInterim(store, RunId.make(run_id))
    done.push(`${run_id}: taken out of the tables, since files of it were gone: \`nightjar run\` resumes it`)
  }
  const newest = newestDerived(store, yield* publishedIn(store))
  for (const { run_id, isHeld } of yield* runsToDerive(store, newest)) {
    if (isHeld) {
      left.push(`${run_id}: its tables are not derived again: ${heldText}`)
      continue
    }
    const derived = yield* Effect.result(publishRun(store, run_id))
    if (derived._tag === "Success")
      done.push(`${run_id}: its tables were derived again from landing/${run_id}`)
    else left.push(`${run_id}: its tables cannot be derived again: ${derived.failure.message}`)
  }
  if (stands.returned !== undefined && (yield* publishedIn(store)).returned === undefined)
    done.push("tables: the newest version is published again, which ends the rollback")
  if (yield* buildAgain(store)) done.push(builtAgain)
  done.push(...(yield* parquetAgain(store)))
  if (yield* isKeptDatabaseDamaged(store)) {
    // Without it, a rollback builds one from the files.
    yield* fileStep(() => store.files.remove(store.layout.previousDatabase))
    done.push(`${keptDatabase}: removed, since it was damaged`)
  }
  return { done, left }
})

const parquetAgain = Effect.fnUntraced(function* (store: Store) {
  const manifest = yield* publishedIn(store)
  const gaps = yield* parquetGaps(store, manifest, true)
  if (gaps.length === 0) return []
  const anew = { told: undefined, isInstead: true, isParquetAnew: true }
  yield* change(store, ({ current }) => Effect.succeed({ ...anew, next: current }))
  const paths = gaps.map(({ path }) => path)
  return [
    `${manifest.parquet?.holds.join(", ")}: written again from nightjar.duckdb, ` +
      `because not everything was as published: ${listed(paths, namedMax)}`,
  ]
})

const builtAgain = "nightjar.duckdb: rebuilt from the files of the tables"
const namedMax = 3

/** What every publication does first, and what that changed. */
const recovered = Effect.fnUntraced(function* (store: Store) {
  const { layout } = store
  const wasCut = yield* fileStep(() => existsSync(layout.next))
  const before = yield* fileStep(() => readManifest(layout.manifest))
  const strangers = yield* fileStep(() => strayFiles(store, before ?? nothingPublished))
  const version = yield* databaseVersion(layout.database)
  yield* recover(store)
  if (wasCut) return ["tables: the interrupted publication was finished"]
  if (before === undefined && (yield* fileStep(() => existsSync(layout.manifest))))
    return ["tables/manifest.json: restored from the files of the tables"]
  const removed = `${counted(strangers.length, "file")} that no manifest lists removed`
  return [
    ...(strangers.length === 0 ? [] : [`tables: ${removed}: ${listed(strangers, namedMax)}`]),
    ...(before === undefined || [0, version].includes(before.version) ? [] : [builtAgain]),
  ]
})

/** Before anything is derived: a version built without lost files has a database without their rows. */
const restoredRuns = Effect.fnUntraced(function* (store: Store) {
  const manifest = yield* publishedIn(store)
  if (manifest.returned !== undefined) return []
  const ledger = yield* Ledger
  const { landing: pruned } = yield* Effect.mapError(ledger.pruned, ledgerFailed)
  if (pruned.size === 0) return []
  const files = Object.entries(manifest.runs).flatMap(([run_id, run]) =>
    pruned.has(RunId.make(run_id)) ? run.files : [],
  )
  const paths = new Set(files.map(({ path }) => path))
  const lost = (yield* gapsOf(store, filesOf(manifest))).filter(({ path }) => paths.has(path))
  return lost.length === 0 ? [] : yield* restoreRows(store, lost)
})

/** Runs of a version that lack a file, or have a damaged one. */
const brokenRuns = (store: Store, manifest: Manifest) =>
  Effect.map(gapsOf(store, filesOf(manifest)), (gaps) => runsWithout(manifest, gaps))

/** Runs that were published and are incomplete in the tables, or derived with schemas that have changed. */
const runsToDerive = Effect.fnUntraced(function* (store: Store, manifest: Manifest) {
  const broken = yield* brokenRuns(store, manifest)
  const { landing: pruned } = yield* Effect.mapError((yield* Ledger).pruned, ledgerFailed)
  return (yield* publishedRuns).filter(({ run_id }) => {
    const known = manifest.runs[run_id]
    if (known === undefined || broken.includes(run_id)) return true
    // Whole tables whose bodies are gone by age stay as they are: nobody can do anything about them.
    return isOfOtherSchemas(known, manifest.schemas) && !pruned.has(run_id)
  })
})

/** True if the database did not contain what the files contain. */
const buildAgain = Effect.fnUntraced(function* (store: Store) {
  const manifest = yield* publishedIn(store)
  if (manifest.version === 0) return false
  const gaps = yield* gapsOf(store, filesOf(manifest), false)
  const found = yield* Effect.result(databaseProblems(store, manifest, new Map()))
  const problems = found._tag === "Success" ? found.success : []
  const isBroken = found._tag === "Failure" || problems.some(({ where }) => where === "nightjar.duckdb")
  // What is missing from the files is rightly missing from the database.
  if (!isBroken && (problems.length === 0 || gaps.length > 0)) return false
  yield* buildInPlace(store, manifest)
  return true
})

/**
 * Returns the runs whose lost files were written again from a database that has their rows, in a version with
 * the same rows.
 */
export const restoreRows = Effect.fn("Publishing.restoreRows")(function* (
  store: Store,
  gaps: ReadonlyArray<Gap>,
) {
  const put = Effect.fnUntraced(function* ({ current, version, restored }: Standing) {
    const sought = { next: { ...current, version }, gaps }
    const { next } = yield* restoreFiles(store, current, sought, restored)
    return { told: undefined, ...(!restored.isEmpty && { next, isInstead: true }) }
  })
  return (yield* change(store, put)).restored
})
