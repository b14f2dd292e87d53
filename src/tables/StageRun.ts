/**
 * The Parquet files of one run, derived from ledger and landing, written under temporary names, and compared
 * with the counts of what was found. Nothing of it is published before the version is committed.
 */
import { join } from "node:path"
import { Effect } from "effect"
import { collectGarbage } from "../base/Zstd.ts"
import { sha256Hex } from "../base/Hashes.ts"
import type { RunId } from "../service/Ids.ts"
import { isRunId } from "../ledger/RunState.ts"
import type { Flushed } from "../records/Flush.ts"
import { parquetBytes } from "../records/Parquet.ts"
import { disguisePicture } from "./Disguise.ts"
import { deriveRun } from "./DeriveRun.ts"
import type { Derived } from "./DeriveRun.ts"
import { largeBytes } from "./DeriveSession.ts"
import type { SessionFindings } from "./DeriveSession.ts"
import { fileMetadata } from "./FileColumns.ts"
import { fileStep, runPath } from "./Manifest.ts"
import type { ManifestFile } from "./Manifest.ts"
import { PublishFailed } from "./Publisher.ts"
import { loadPicture, onlyOver } from "./RunPicture.ts"
import type { RunPicture } from "./RunPicture.ts"
import { makeFoldersOf, temporary } from "./Store.ts"
import type { Store } from "./Store.ts"
import { systemTables } from "./SystemTables.ts"

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

/** Runs that were held back. One that cannot be derived any more stays so, and the version lacks it. */
export const stageHeld = Effect.fnUntraced(function* (
  store: Store,
  runs: ReadonlyArray<RunId>,
  version: number,
) {
  const staged: Array<Effect.Success<ReturnType<typeof stageRun>>> = []
  for (const run_id of runs) {
    const one = yield* Effect.result(stageRun(store, run_id, version))
    if (one._tag === "Success") staged.push(one.success)
    // A full disk must not look like a run that cannot be read.
    else if (one.failure.damaged !== true) return yield* one.failure
  }
  return staged
})
