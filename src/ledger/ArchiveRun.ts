/**
 * Moves the facts of a run that is over out of the ledger's file: into the file of its month first, where
 * they are synced and read back; then one transaction says where they are and removes them. Whatever is
 * cut off in between leaves every fact in the ledger, and the next try writes over what it finds behind
 * the last frame.
 */
import { Effect } from "effect"
import type { RunId } from "../service/Ids.ts"
import type { DurableFiles } from "../base/DurableFile.ts"
import { packedBytes, placeFor, writeFrames } from "./ArchiveFiles.ts"
import type { StoredFact } from "./ArchiveFiles.ts"
import { rowOf } from "./FactRows.ts"
import { idsIn } from "./LedgerArchive.ts"
import type { ArchivedId } from "./LedgerArchive.ts"
import { attempt } from "./LedgerFailed.ts"
import type { accessLedger } from "./LedgerTables.ts"

export interface ArchivedRun {
  readonly facts: number
  /** Of their text in the ledger, and in the archive. */
  readonly before: number
  readonly after: number
}

interface ArchivePlace {
  readonly tables: ReturnType<typeof accessLedger>
  readonly files: DurableFiles
  readonly folder: string
}

/** Undefined if there is nothing to move. `run_date` is the run's own; `isDry`: nothing is written. */
export const archiveRun = Effect.fnUntraced(function* (
  { tables, files, folder }: ArchivePlace,
  { run_id, run_date }: { readonly run_id: RunId; readonly run_date: string },
  at: number,
  isDry: boolean,
) {
  const archives = yield* attempt(() => tables.archives())
  const isDone = archives.some(({ fact }) => fact.run_id === run_id)
  const first = isDone ? [] : yield* attempt(() => tables.toArchive(run_id, 0))
  if (first.length === 0) return undefined
  const sum = { facts: 0, before: 0 }
  const ids: Array<ArchivedId> = []
  const leaving = function* () {
    for (let facts = first; facts.length > 0; facts = nextOf(facts)) {
      sum.facts += facts.length
      for (const fact of facts) {
        sum.before += Buffer.byteLength(fact.body)
        ids.push(...idsIn(run_id, fact))
      }
      yield facts
    }
  }
  const nextOf = (facts: ReadonlyArray<StoredFact>) => tables.toArchive(run_id, facts.at(-1)?.seq ?? 0)
  if (isDry) {
    const after = [...leaving()].reduce((bytes, facts) => bytes + packedBytes(facts), 0)
    return { ...sum, after } satisfies ArchivedRun as ArchivedRun
  }
  const place = placeFor(archives, run_date)
  const frames = yield* writeFrames(files, folder, place, leaving())
  yield* attempt(() => {
    const row = rowOf({ _tag: "FactsArchived", run_id, file: place.file, frames }, at)
    tables.archived({ ...row, run_id }, { facts: sum.facts, ids })
  })
  const after = frames.reduce((bytes, one) => bytes + one.bytes, 0)
  return { ...sum, after } satisfies ArchivedRun as ArchivedRun
})
