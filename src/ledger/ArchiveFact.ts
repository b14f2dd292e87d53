/**
 * The fact that the other facts of a run stand in a file of the archive now (`LedgerArchive.ts`): which,
 * and the hashes that prove them. It is one of the run's own facts, so whoever reads the run finds it at
 * once.
 */
import { Schema } from "effect"
import { RunId } from "../service/Ids.ts"

/** Facts that were compressed together: their bytes in the file, and the first and last of their places. */
const ArchivedFrame = Schema.Struct({
  offset: Schema.Int,
  bytes: Schema.Int,
  /** Of these bytes. */
  sha256: Schema.String,
  facts: Schema.Int,
  from: Schema.Int,
  to: Schema.Int,
})
export type ArchivedFrame = typeof ArchivedFrame.Type

export const FactsArchived = Schema.TaggedStruct("FactsArchived", {
  run_id: RunId,
  /** Below `ledger-archive/`. */
  file: Schema.String,
  frames: Schema.Array(ArchivedFrame),
})
export type FactsArchived = typeof FactsArchived.Type

/** As it stands in the ledger. */
export interface Archive {
  readonly seq: number
  readonly at: number
  readonly fact: FactsArchived
}
