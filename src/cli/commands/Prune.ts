/**
 * `nightjar prune [JOB…]`: removes what is older than `retain` of the jobs allows. Makes no call to the
 * service.
 */
import { Effect, Layer } from "effect"
import { Argument, Command } from "effect/cli"
import { bytesText, counted } from "../../base/Text.ts"
import type { Job } from "../../jobs/Job.ts"
import type { PruneFailed, PruneResult } from "../../folder/Prune.ts"
import type { Compacted } from "../../tables/Compact.ts"
import { table } from "../../report/TextTable.ts"
import { jsonFlag, outputFolder, switchFlag } from "../CommonFlags.ts"
import { archivedText, compactJob, compactedText, pruneJobs, sizeOf, warnOfSize } from "../PruneJobs.ts"
import { refuse } from "../Failures.ts"
import { loadJobs } from "../Jobs.ts"
import { knownJobPaths, requireLedger } from "../LookAtFolder.ts"
import { Output, say, sayJson } from "../Output.ts"
import { holdOutput, shareOf } from "../RunFolder.ts"
import { Wiring } from "../Wiring.ts"

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
