/**
 * `nightjar prune [JOB…]` removes what is older than `retain` of the jobs allows; `nightjar compact`
 * combines the nightly Parquet files of each table by month. Neither calls the service. /
 */
import { Clock, Duration, Effect, Layer, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { bytesText, counted, isDurationWithin, readDuration } from "../../base/Text.ts"
import { jsonFlag, outputFolder, switchFlag } from "../CommonFlags.ts"
import { endWith, refuse } from "../Failures.ts"
import { loadJobs } from "../Jobs.ts"
import { knownJobPaths, openedStore, requireLedger } from "../LookAtFolder.ts"
import { Output, say, sayJson } from "../Output.ts"
import { archivedText, compactJob, compactedText, pruneJobs, sizeOf, warnOfSize } from "../PruneJobs.ts"
import { holdOutput, inHeldStore, shareOf } from "../RunFolder.ts"
import { Wiring } from "../Wiring.ts"
import type { PruneFailed, PruneResult } from "../../folder/Prune.ts"
import type { Job } from "../../jobs/Job.ts"
import { exitCodes } from "../../messages/ExitCodes.ts"
import { table } from "../../report/TextTable.ts"
import { compact as compactStore } from "../../tables/Compact.ts"
import type { Compacted } from "../../tables/Compact.ts"

const prunes = Effect.fnUntraced(function* (output: string, jobs: ReadonlyArray<Job>, isDry: boolean) {
  const wiring = yield* Wiring
  yield* holdOutput(output, [shareOf(output)])
  return yield* Effect.gen(function* () {
    const pruned = yield* pruneJobs(output, jobs, { isDry, runsMax: Number.POSITIVE_INFINITY })
    const compacted: Array<Compacted> = []
    for (const job of jobs) {
      const done = yield* compactJob(output, job, { isDry, monthsMax: Number.POSITIVE_INFINITY })
      if (done !== undefined) compacted.push(done)
    }
    return { ...pruned, compacted }
  }).pipe(
    Effect.provide(Layer.merge(wiring.ledger(output, "read-write"), wiring.database)),
    Effect.catchTag("PruneFailed", ({ message }: PruneFailed) => refuse("prune-stopped", { why: message })),
  )
}, Effect.scoped)

const sumOf = (compressed: PruneResult["compressed"], size: "before" | "after"): string =>
  bytesText(compressed.reduce((sum, one) => sum + one[size], 0))

const tell = Effect.fnUntraced(function* (result: Effect.Success<ReturnType<typeof prunes>>, isDry: boolean) {
  const { removed, kept, compressed, archived, compacted } = result
  const { out } = yield* Output
  if (compressed.length > 0) {
    const [before, after] = [sumOf(compressed, "before"), sumOf(compressed, "after")]
    const what = `the landed bodies of ${counted(compressed.length, "run")}`
    yield* say(
      isDry
        ? `Would compress ${what}: ${before} would become ${after}.`
        : `Compressed ${what}: ${before} to ${after}.`,
    )
  }
  if (archived.length > 0) yield* say(archivedText(result, isDry))
  for (const done of compacted) {
    if (done.tables.length > 0) yield* say(compactedText(done))
    for (const { table: name, month, reason } of done.left)
      yield* say(`${name} of ${month} keeps its files: ${reason}`)
  }
  if (removed.length + archived.length + compressed.length === 0)
    yield* say("Nothing is older than `retain` allows, or it is still needed.")
  if (removed.length > 0) {
    yield* say(isDry ? `This would be removed, ${sizeOf(result)}:` : `Removed, ${sizeOf(result)}:`)
    const rows = removed.map(({ run_id, what, bytes }) => [run_id, what, bytesText(bytes)])
    yield* say(table(["run", "what", "size"], rows, { width: out.width }))
  }
  for (const { run_id, what, reason } of kept) yield* say(`${run_id} keeps its ${what}: ${reason}`)
})

export const prune = Command.make(
  "prune",
  {
    jobs: Argument.String("JOB").pipe(
      Argument.withDescription("Job files (default: all jobs that ran here)"),
      Argument.variadic(),
    ),
    dryRun: switchFlag("dry-run", "Show what would be removed, without removing it"),
    json: jsonFlag,
  },
  Effect.fn("Prune.handle")(function* ({ jobs: paths, dryRun, json }) {
    const output = yield* outputFolder
    yield* requireLedger(output)
    const jobs = yield* loadJobs(paths.length === 0 ? yield* knownJobPaths : paths)
    if (jobs.every(({ retain }) => retain === undefined)) return yield* refuse("retain-unset")
    const result = yield* prunes(output, jobs, dryRun)
    yield* warnOfSize(result)
    if (json) yield* sayJson(result)
    else yield* tell(result, dryRun)
  }),
).pipe(
  Command.withDescription(
    "Removes what is older than `retain` in the job allows\n\n" +
      "Landed bodies, documents and logs of runs that ended long enough ago. A run\n" +
      "that is unfinished, has executions left at the service, or whose tables are not\n" +
      "published and intact keeps its files. Each run of a job does the same at its\n" +
      "end; `snapshots` is applied by each publication. A run without landed bodies\n" +
      "keeps its tables, but they can no longer be derived again. Landed bodies that\n" +
      "stay are compressed a week after their run ended, or as `retain` says; with\n" +
      "`retain.compact`, Parquet files of months that are over are put together; with\n" +
      "`retain.ledger`, what the ledger knows of old runs goes to `ledger-archive/`.",
  ),
  Command.withShortDescription("Removes what is older than `retain` in the job allows"),
  Command.withExamples([
    { command: "nightjar prune --dry-run", description: "What would be removed, and its size" },
  ]),
)

// `nightjar compact`: combines the nightly Parquet files of each table by month, once the month is over.
// The rows stay as they are, and it makes no call to the service.

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
