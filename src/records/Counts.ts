/**
 * What became of the records of one body, in numbers: every record found is counted in exactly one place, so
 * that whoever publishes can compare what was found with what was written.
 */
import type { FamilyCount, MisfitCount, RejectedCount } from "../ledger/TableNotes.ts"
import { tallyOf } from "./Tally.ts"
import type { Tally } from "./Tally.ts"

/** What happened to the records of one body. */
export interface Counts {
  /** Objects with `product` and `sub_family`, nested ones included. */
  readonly records: number
  /** Of those: in the table of their family, in `other_records`, in `rejected_records`. */
  readonly inTables: number
  readonly other: number
  readonly rejected: number
  /** Of those: already in the tables, from another body of the same session. */
  readonly repeated: number
  /** All of them, including repeated ones. */
  readonly tally: Tally
  /** Records that were stored, by product. */
  readonly byProduct: ReadonlyMap<string, number>
  /** Rows of `rejected_records` for values in place of records, or for an unreadable body. */
  readonly strays: number
  /** Rows written to each family's table, by table; children not counted. */
  readonly byTable: Readonly<Record<string, number>>
  /** Values of records in tables that did not fit their columns. */
  readonly misfits: ReadonlyArray<MisfitCount>
  /** Rejected records by the table that they would have gone to, and strays. */
  readonly refusedFor: ReadonlyArray<RejectedCount>
  /** Records in `other_records` by family. */
  readonly otherBy: ReadonlyArray<FamilyCount>
}

export const nothingCounted: Counts = {
  records: 0,
  inTables: 0,
  other: 0,
  rejected: 0,
  repeated: 0,
  strays: 0,
  byTable: {},
  misfits: [],
  refusedFor: [],
  otherBy: [],
  byProduct: new Map(),
  tally: tallyOf([]),
}
