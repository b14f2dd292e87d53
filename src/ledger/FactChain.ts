/**
 * Each fact of the ledger carries a hash over itself and the hash of the fact before: a bit that flips in one
 * of them, or a fact that is taken out between two others, shows. Facts cut off at the end do not: nothing
 * after them knows of them.
 */
import { sha256 } from "../foundation/Sha256.ts"

export interface ChainedRow {
  readonly seq: number
  readonly at: number
  readonly tag: string
  readonly run_id: string | null
  readonly task_id: string | null
  readonly body: string
}

/** The hash of the first fact follows nothing. */
export const beginning = ""

/** `before` is the hash of the fact whose `seq` is one less. */
export const linkOf = (before: string, { seq, at, tag, run_id, task_id, body }: ChainedRow): string =>
  sha256(JSON.stringify([before, seq, at, tag, run_id, task_id, body])).toString("base64url")
