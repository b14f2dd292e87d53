/**
 * Versions that did not pass the gates of their job. The finished database is kept under `published/held/`,
 * readable; what is current stays. The next publication of the job derives the run again, together with the
 * new night, and asks the gates of that; `nightjar accept` does the same and asks nothing.
 */
import { join } from "node:path"
import { Effect } from "effect"
import { RunId } from "../service/Ids.ts"
import { DuckDb } from "../base/DuckDb.ts"
import type { RunHeader } from "../ledger/FoldRun.ts"
import { Ledger } from "../ledger/Ledger.ts"
import type { RunState } from "../ledger/RunState.ts"
import { isAsked } from "./AskGates.ts"
import { keptVersions, newestDerived } from "./KeptVersions.ts"
import { fileStep, filesBelow, makeFoldersOf, type Manifest, type Store } from "./Manifest.ts"
import { databaseFailed, ledgerFailed } from "./Publisher.ts"

/** Why `repair` and `rebuild` leave the tables of a held run as they are, for people. */
export const heldText = "a gate of its job holds its newest version back: `nightjar accept` publishes it"

/** Relative to the output folder. */
export const heldDatabase = (run_id: RunId): string => `published/held/${run_id}.duckdb`

/** The runs among these that a gate holds back, or that are accepted and not finished, in their order. */
const heldAmong = Effect.fnUntraced(function* (headers: ReadonlyArray<RunHeader>) {
  const ledger = yield* Ledger
  const held: Array<RunState> = []
  for (const { fact, ended } of headers) {
    // A run that is held back ends with something left at the service; all others need not be read.
    if (ended?.leftovers === false) continue
    const state = yield* ledger.state(fact.run_id)
    if (state !== undefined && isHeldBack(state)) held.push(state)
  }
  return held as ReadonlyArray<RunState>
})

const isHeldBack = ({ held, accepted }: RunState): boolean => held !== undefined || accepted === true

/** All runs that are held back, or whose acceptance was cut off, oldest first. */
export const heldRuns = Effect.flatMap(Ledger, (ledger) => Effect.flatMap(ledger.runs, heldAmong))

/**
 * Those of the same job, of this night or an earlier one, that began before this run: its version contains
 * them too. The rerun of an earlier night says nothing about a later one, a part of the job nothing about its
 * nights, nor does a run of which nothing is asked and that nobody let through.
 */
export const heldBefore = Effect.fn("Publishing.heldBefore")(
  function* (run: RunState) {
    if (run.accepted !== true && !isAsked(run)) return []
    const ledger = yield* Ledger
    const { job, run_date, part } = run.started
    const earlier = (yield* ledger.runs).filter(
      ({ fact, seq }) =>
        fact.job === job &&
        fact.run_date <= run_date &&
        seq < run.sequence &&
        (part === undefined || fact.part === part),
    )
    const held = yield* heldAmong(earlier)
    return held.flatMap((one) => (one.held === undefined ? [] : [one.started.run_id]))
  },
  Effect.catchTag("LedgerFailed", (failure) => Effect.fail(ledgerFailed(failure))),
)

/** The version without what was published of a run while it went on; what it had before is there again. */
export const withoutInterim = (store: Store, manifest: Manifest, run_id: string): Manifest => {
  const { [run_id]: own, ...runs } = manifest.runs
  if (own?.interim !== true) return manifest
  // A run that the service kept from beginning was published before, with no tasks.
  const before = keptVersions(store)
    .flatMap((kept) => kept.runs[run_id] ?? [])
    .findLast(({ interim }) => interim !== true)
  return { ...manifest, runs: before === undefined ? runs : { ...runs, [run_id]: before } }
}

/**
 * What the next publication continues from: the current version, or the one that a rollback replaced. What
 * that has of a run that a gate has held back since stays out.
 */
export const continuedFrom = Effect.fnUntraced(function* (store: Store, current: Manifest) {
  let newest = yield* fileStep(() => newestDerived(store, current))
  if (newest === current) return newest
  const ledger = yield* Ledger
  for (const [run_id, { interim }] of Object.entries(newest.runs)) {
    if (interim !== true) continue
    const state = yield* Effect.mapError(ledger.state(RunId.make(run_id)), ledgerFailed)
    if (state !== undefined && isHeldBack(state))
      newest = yield* fileStep(() => withoutInterim(store, newest, run_id))
  }
  return newest
})

/** Keeps the finished database aside; those of runs that it contains too are removed. */
export const keepAside = Effect.fn("Publishing.keepAside")(function* (
  store: Store,
  run_id: RunId,
  also: ReadonlyArray<RunId>,
) {
  const { layout, modes } = store
  const path = join(layout.root, heldDatabase(run_id))
  yield* fileStep(() => makeFoldersOf(store, path))
  const duckdb = yield* DuckDb
  yield* duckdb.atomicSwap(layout.build, path, modes.file).pipe(Effect.mapError(databaseFailed))
  yield* removeAside(store, also)
})

const heldFolder = ({ layout }: Pick<Store, "layout">): string => join(layout.root, "published/held")

export const countHeld = (store: Pick<Store, "layout">): number =>
  filesBelow(heldFolder(store)).filter((name) => name.endsWith(".duckdb")).length

/** Each is a copy of all tables; what is held back is derived again when it is published. */
export const removeAllAside = (store: Store) =>
  fileStep(() => {
    const folder = heldFolder(store)
    const names = filesBelow(folder)
    for (const name of names) store.files.remove(join(folder, name))
    if (names.length > 0) store.files.syncFolder(folder)
  })

/** What is published needs no copy. */
export const removeAside = ({ layout, files }: Store, runs: ReadonlyArray<RunId>) =>
  fileStep(() => {
    for (const run_id of runs)
      for (const ending of ["", ".wal"]) files.remove(`${join(layout.root, heldDatabase(run_id))}${ending}`)
  })
