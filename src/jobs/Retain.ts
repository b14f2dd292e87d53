/**
 * How long the files of a job's runs are kept (`retain` in a job file), when landed bodies and the facts
 * of a run are compressed, and when many small Parquet files become few. What is not named is kept;
 * nothing that is still needed is ever removed, however old it is (`folder/Prune.ts`).
 */
import { Duration, Schema } from "effect"
import { count, optional, optionalDuration } from "./ShapeKeys.ts"
import { duration } from "./Scalars.ts"

const age = duration("1 day", "36500 days")
/** Longer than any run is still collected. */
const ledgerAge = duration("35 days", "36500 days")

/** How long landed bodies of an ended run stay as they were written, unless the job says otherwise. */
const compressDefault = "7 days"
export const compressAfter = Duration.fromInputUnsafe(compressDefault)

export const Retain = Schema.Struct({
  landing: optionalDuration(age, "Landed bodies of a run, once all of it is published and deleted there."),
  attachments: optionalDuration(age, "Downloaded documents that no newer run has downloaded again."),
  logs: optionalDuration(age, "The log of a run; the ledger keeps the same facts."),
  ledger: optionalDuration(
    ledgerAge,
    "What the ledger knows of a run is moved to compressed files of its own; commands read it as before.",
  ),
  compress: optionalDuration(
    age,
    "Landed bodies are compressed once their run ended so long ago.",
    compressDefault,
  ),
  compact: optionalDuration(
    age,
    "The Parquet files of a month become one per table once the month ended so long ago; else never.",
  ),
  snapshots: optional(count(1, 1_000), "Earlier versions of the tables, for `nightjar rollback`.", 3),
})
