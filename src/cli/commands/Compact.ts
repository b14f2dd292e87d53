/**
 * `nightjar compact`: combines the nightly Parquet files of each table by month, once the month is over.
 * The rows stay as they are, and it makes no call to the service.
 */
import { Clock, Duration, Effect, Option } from "effect"
import { Command, Flag } from "effect/cli"
import { isDurationWithin, readDuration } from "../../base/Text.ts"
import { jsonFlag, outputFolder, switchFlag } from "../CommonFlags.ts"
import { compactedText } from "../PruneJobs.ts"
import { endWith, refuse } from "../Failures.ts"
import { inHeldStore } from "../RunFolder.ts"
import { openedStore, requireLedger } from "../LookAtFolder.ts"
import { exitCodes } from "../../messages/ExitCodes.ts"
import { say, sayJson } from "../Output.ts"
import { compact as compactStore } from "../../tables/Compact.ts"

const ageDefault = "35 days"

const compacts = Effect.fnUntraced(function* (output: string, age: Duration.Duration, isDry: boolean) {
  const overBy = (yield* Clock.currentTimeMillis) - Duration.toMillis(age)
  const options = { overBy, isDry, monthsMax: Number.POSITIVE_INFINITY }
  return yield* inHeldStore(output, (store) => compactStore(store, options), openedStore)
})

export const compact = Command.make(
  "compact",
  {
    olderThan: Flag.String("older-than").pipe(
      Flag.withMetavar("AGE"),
      Flag.withDescription(`Only months that ended this long ago (default: ${ageDefault})`),
      Flag.filter(
        isDurationWithin({ minimum: 0, maximum: "36500 days" }),
        () => "a number and a unit, such as 35 days",
      ),
      Flag.withDefault(ageDefault),
    ),
    dryRun: switchFlag("dry-run", "Show what would be compacted, without doing it"),
    json: jsonFlag,
  },
  Effect.fn("Compact.handle")(function* ({ olderThan, dryRun, json }) {
    const output = yield* outputFolder
    yield* requireLedger(output)
    const age = Option.getOrElse(readDuration(olderThan), () => Duration.zero)
    const done = yield* compacts(output, age, dryRun)
    if (done.isRolledBack) return yield* refuse("compact-rolled-back")
    if (json) yield* sayJson(done)
    else {
      const isNothing = done.tables.length + done.left.length === 0
      if (isNothing) yield* say("No table has more than one file for a month that ended long enough ago.")
      if (done.tables.length > 0) yield* say(compactedText(done))
      for (const { table, month, reason } of done.left)
        yield* say(`${table} of ${month} keeps its files: ${reason}`)
    }
    yield* endWith(done.left.length === 0 ? exitCodes.ok : exitCodes.peopleMustAct)
  }),
).pipe(
  Command.withDescription(
    "Combines the nightly Parquet files of each table into one per month\n\n" +
      "All files of a table with runs of one calendar month become one, in the folder\n" +
      "`run_date=<first day>=<last day>`. Rows and columns stay as they are, in the\n" +
      "database too, and each run's rows are compared before its old files go. A Hive\n" +
      "reader cannot tell dates of such a file from its path: read the files of a table\n" +
      "without `hive_partitioning = true`, and `run_date` comes from the rows. With\n" +
      "`retain: { compact: 35 days }` in a job, its nights do it at their end.",
  ),
  Command.withShortDescription("Combines nightly Parquet files into one per month"),
  Command.withExamples([
    { command: "nightjar compact --dry-run", description: "How many files would become how many" },
  ]),
)
