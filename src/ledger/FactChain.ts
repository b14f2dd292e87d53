/**
 * Each fact of the ledger carries a hash of itself and the hash of the fact before: a flipped bit, or a fact
 * removed between two others, is noticed. Facts cut off at the end are not: no later fact refers to them.
 */
import { sha256 } from "../base/Sha256.ts"

export interface ChainedRow {
  readonly seq: number
  readonly at: number
  readonly tag: string
  readonly run_id: string | null
  readonly task_id: string | null
  readonly body: string
}

/** A row whose place is not known yet. */
export type NewFact = Omit<ChainedRow, "seq">

/** The hash before the first fact. */
export const beginning = ""

/** `before` is the hash of the fact whose `seq` is one less. */
export const linkOf = (before: string, { seq, at, tag, run_id, task_id, body }: ChainedRow): string =>
  sha256(JSON.stringify([before, seq, at, tag, run_id, task_id, body])).toString("base64url")
