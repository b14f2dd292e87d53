/**
 * Derives the tables of every published run again, with the record schemas of today, as one new version; or
 * only says what that would change. A run whose bodies cannot be read, or that a gate holds back, keeps its
 * tables. No gate is asked: a person asked for it. If the pseudonyms change, no row may stay: runs that
 * cannot be derived are left out, once a person says so, or nothing is published.
 */
import { existsSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { DuckDb, type Connection } from "../base/DuckDb.ts"
import { literal } from "../base/DuckDbFailed.ts"
import { given } from "../base/Schemas.ts"
import { Ledger, LedgerFailed } from "../ledger/Ledger.ts"
import type { RunId } from "../service/Ids.ts"
import { publishedTables } from "./DataDictionary.ts"
import { parquetRows } from "./FileColumns.ts"
import { heldText, removeAllAside } from "./HeldRuns.ts"
import { keepSchemas } from "./KeepSchemas.ts"
import { fileStep, filesOf, gapsOf, placesOf } from "./Manifest.ts"
import type { Manifest, ManifestFile, Store } from "./Manifest.ts"
import { dropKeyPlaces, keepKeyPlace } from "./OpenStore.ts"
import { inDatabase, ledgerFailed } from "./Publisher.ts"
import { stageReadable } from "./DeriveRun.ts"
import { isSamePolicy } from "./Treatments.ts"
import { change, type Standing } from "./Version.ts"

// Which rows of one run differ between two sets of its Parquet files, table by table. Values are compared as
// text, so that a column whose type changed can be compared too; a column that one side lacks is NULL there.

/** `added` and `gone` count rows; one that changed counts in both. */
export interface RowChange {
  readonly table: string
  readonly before: number
  readonly after: number
  readonly added: number
  readonly gone: number
}

const rowsOf = (files: ReadonlyArray<ManifestFile>): number => files.reduce((sum, { rows }) => sum + rows, 0)

/** The tables of one run that differ, in the order of the data dictionary. */
export const compareRows = Effect.fn("Publishing.compareRows")(function* (
  store: Pick<Store, "layout" | "families">,
  run_id: string,
  { before, after }: Readonly<Record<"before" | "after", ReadonlyArray<ManifestFile>>>,
) {
  const duckdb = yield* DuckDb
  const connection = yield* duckdb.open({ path: ":memory:", access: "read-write", threads: 1 })
  // Tables of families that have no schema now come last.
  const known = publishedTables(store.families).map(({ name }) => name)
  const names = new Set([...known, ...before.map(({ table }) => table)])
  const sourceOf = (files: ReadonlyArray<ManifestFile>) =>
    `${parquetRows(placesOf(store, files))} WHERE run_id = ${literal(run_id)}`
  const changes: Array<RowChange> = []
  for (const table of names) {
    const ofTable = (all: ReadonlyArray<ManifestFile>) => all.filter((file) => file.table === table)
    const [old, now] = [ofTable(before), ofTable(after)]
    const rows = { before: rowsOf(old), after: rowsOf(now) }
    const differ =
      rows.before === 0 || rows.after === 0
        ? { added: rows.after, gone: rows.before }
        : yield* differences(connection, sourceOf(old), sourceOf(now))
    if (differ.added + differ.gone > 0) changes.push({ table, ...rows, ...differ })
  }
  return changes as ReadonlyArray<RowChange>
}, inDatabase)

/** One pass over both sides: the difference of two queries reads each of them twice. */
const differences = Effect.fnUntraced(function* (connection: Connection, old: string, now: string) {
  const side = (source: string, times: 1 | -1) =>
    `SELECT COLUMNS(*)::VARCHAR, ${times} AS _times FROM ${source}`
  const [row] = yield* connection.rows(
    `SELECT coalesce(sum(_more) FILTER (_more > 0), 0)::INTEGER AS added,
      coalesce(-sum(_more) FILTER (_more < 0), 0)::INTEGER AS gone
    FROM (SELECT * EXCLUDE (_times), sum(_times) AS _more
      FROM (${side(now, 1)} UNION ALL BY NAME ${side(old, -1)}) GROUP BY ALL)`,
  )
  return { added: Number(row?.["added"]), gone: Number(row?.["gone"]) }
})

/** A run that keeps its tables, or is left out; `pruned`: its bodies are gone by age, nobody has to act. */
interface Underived {
  readonly run_id: string
  readonly reason: string
  readonly pruned: boolean
}

/** `leavesOut`: a version with other pseudonyms may lack runs that cannot be derived with them. */
export const rebuild = Effect.fn("Publishing.rebuild")(function* (
  store: Store,
  publishes: boolean,
  leavesOut = false,
) {
  const ledger = yield* Ledger
  const damage = yield* ledger.problems
  if (damage.length > 0) return yield* new LedgerFailed({ message: damage.join("; "), damaged: true })
  const { told, version, built } = yield* change(
    store,
    Effect.fnUntraced(function* (standing: Standing) {
      // A comparison leaves no trace, not even of schemas.
      const schemas = publishes ? yield* keepSchemas(store, standing.current) : {}
      const { runs, isOther, ...found } = yield* deriveAll(store, schemas, standing)
      const { unknown, left_out } = found
      const changes = yield* changesOf(store, standing, { runs, unknown })
      const derived = derivedIn(runs, standing.version).length
      const told = { runs: derived, changes, ...found }
      const isReady = publishes && derived + unknown.length > 0 && (leavesOut || left_out.length === 0)
      if (!isReady) return { told }
      return {
        told,
        next: { schemas, ...given({ pseudonyms: store.pseudonyms?.policy }), runs },
        isInstead: isOther,
        isAnew: true,
        leaves: true,
        // Copies of earlier tables, which may name the customers; `accept` derives again.
        settled: Effect.andThen(keepKeyPlace(store), isOther ? removeAllAside(store) : Effect.void),
      }
    }),
  )
  if (version !== undefined && store.pseudonyms === undefined) yield* dropKeyPlaces(store)
  return { version, ...told, models: built.models }
})
export type Rebuilt = Effect.Success<ReturnType<typeof rebuild>>

/** All runs that the ledger calls published, oldest first; a run without a readable body stays as it is. */
const deriveAll = Effect.fnUntraced(function* (
  store: Store,
  schemas: NonNullable<Manifest["schemas"]>,
  { current, newest, version }: Standing,
) {
  const { landed, unknown } = yield* unknownRuns(store, newest)
  const base = Object.fromEntries(Object.entries(newest.runs).filter(([run_id]) => !unknown.includes(run_id)))
  const policy = store.pseudonyms?.policy
  const isOther = current.version > 0 && !isSamePolicy(current.pseudonyms, policy)
  const runs: Record<string, Manifest["runs"][string]> = isOther ? {} : { ...base }
  const unheard = "the ledger does not know it, and `nightjar explain ledger-older` says how to go on"
  const kept = landed.map((run_id): Underived => ({ run_id, reason: unheard, pruned: false }))
  const ledger = yield* Ledger
  const { landing: pruned } = yield* Effect.mapError(ledger.pruned, ledgerFailed)
  for (const { run_id, isHeld } of yield* publishedRuns) {
    if (isHeld) {
      kept.push({ run_id, reason: heldText, pruned: false })
      continue
    }
    const { staged, reason } = yield* stageReadable(store, run_id, version)
    if (staged === undefined) kept.push({ run_id, reason, pruned: pruned.has(run_id) })
    else runs[run_id] = { ...staged.entry, schemas }
  }
  // For lack of rows with the pseudonyms of the version; or why there is none.
  const left_out: Array<Omit<Underived, "pruned">> = []
  for (const [run_id, run] of isOther ? Object.entries(base) : []) {
    // What was published of a run that goes on is published again at its end.
    if (runs[run_id] !== undefined || run.interim === true) continue
    left_out.push({ run_id, reason: kept.find((one) => one.run_id === run_id)?.reason ?? unheard })
    runs[run_id] = { run_date: run.run_date, version, left_out: true, schemas, files: [] }
  }
  return { runs, kept: isOther ? [] : kept, left_out, unknown, isOther }
})

/**
 * Published runs that the ledger does not know. Those that are not landed either nobody can derive, and the
 * next run may have their name: they leave the tables.
 */
const unknownRuns = Effect.fnUntraced(function* ({ layout: { root } }: Store, { runs }: Manifest) {
  const ledger = yield* Ledger
  const headers = yield* Effect.mapError(ledger.runs, ledgerFailed)
  const known = new Set<string>(headers.map(({ fact }) => fact.run_id))
  const isLanded = (run_id: string) => existsSync(join(root, "landing", run_id))
  const lost = Object.keys(runs).filter((run_id) => !known.has(run_id))
  return yield* fileStep(() => ({
    landed: lost.filter(isLanded),
    unknown: lost.filter((run_id) => !isLanded(run_id)),
  }))
})

/** All runs that the ledger calls published, oldest first. */
export const publishedRuns = Effect.gen(function* () {
  const ledger = yield* Ledger
  const published: Array<{ readonly run_id: RunId; readonly isHeld: boolean }> = []
  for (const { fact } of yield* Effect.mapError(ledger.runs, ledgerFailed)) {
    const state = yield* Effect.mapError(ledger.state(fact.run_id), ledgerFailed)
    if (state?.published !== undefined)
      published.push({ run_id: fact.run_id, isHeld: state.held !== undefined })
  }
  return published
})

const derivedIn = (runs: Manifest["runs"], own: number) =>
  Object.entries(runs).flatMap(([run_id, { files, version, left_out }]) =>
    version === own && left_out !== true ? [{ run_id, files }] : [],
  )

const changesOf = Effect.fnUntraced(function* (
  store: Store,
  { newest: base, version: own }: Standing,
  { runs, unknown }: { readonly runs: Manifest["runs"]; readonly unknown: ReadonlyArray<string> },
) {
  const gaps = new Set((yield* gapsOf(store, filesOf(base), false)).map(({ path }) => path))
  const changes: Array<RowChange & { readonly run_id: string }> = []
  const gone = unknown.map((run_id) => ({ run_id, files: [] }))
  for (const { run_id, files } of [...gone, ...derivedIn(runs, own)]) {
    const before = (base.runs[run_id]?.files ?? []).filter(({ path }) => !gaps.has(path))
    const differ = yield* compareRows(store, run_id, { before, after: files })
    changes.push(...differ.map((change) => ({ run_id, ...change })))
  }
  return changes
})
