/**
 * Why the ledger could not be read or written, and how what SQLite and the files throw becomes that: a defect
 * of the disk and one of the content ask for different things of whoever reads the message.
 */
import { Effect, Schema } from "effect"
import { isDamage } from "./LedgerKeys.ts"
import { NewerLedger } from "./LedgerVersion.ts"

/** The ledger could not be read or written; nothing may be started or deleted without it. */
export class LedgerFailed extends Schema.TaggedError<LedgerFailed>()("LedgerFailed", {
  message: Schema.String,
  /** The content of the file has changed since it was written: neither waiting nor free space helps. */
  damaged: Schema.optionalKey(Schema.Boolean),
  /** A newer version of the program wrote it: this one, or `unknown`. */
  written_by: Schema.optionalKey(Schema.String),
}) {}

export const ledgerFailed = (cause: unknown): LedgerFailed => {
  const message = cause instanceof Error ? cause.message : String(cause)
  if (cause instanceof NewerLedger) return new LedgerFailed({ message, written_by: cause.written_by })
  return new LedgerFailed(isDamage(cause) ? { message, damaged: true } : { message })
}

export const attempt = <A>(read: () => A) => Effect.try({ try: read, catch: ledgerFailed })
