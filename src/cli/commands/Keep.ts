/**
 * What keeps an output folder: `backup`, `prune`, `compact`, `documents` (downloads with readable names) and
 * `pseudonyms` (who is who). None calls the service.
 */
import { existsSync, readdirSync, statSync } from "node:fs"
import { resolve, sep } from "node:path"
import { Clock, Duration, Effect, Option } from "effect"
import { Flag } from "effect/cli"
import { bytesText, counted, isDurationWithin, readDuration } from "../../base/Text.ts"
import { backup as copy } from "../../folder/Backup.ts"
import type { PruneResult } from "../../folder/Prune.ts"
import type { Style } from "../../report/RenderSummary.ts"
import { table } from "../../report/TextTable.ts"
import { compact as compactStore, type Compacted } from "../../tables/Compact.ts"
import { actUnless, command } from "../CommandRow.ts"
import { Output, argument, only, optionalArgument, optionalFlag, say, sayJson } from "../Output.ts"
import { severalArguments, switchFlag, warn } from "../Output.ts"
import { refuse } from "../Failures.ts"
import { loadJobs } from "../Jobs.ts"
import * as Folder from "../OutputFolder.ts"
import * as Prune from "../PruneJobs.ts"
import { Wiring } from "../Wiring.ts"
import { acquaintName } from "../../jobs/Job.ts"

const refusalOfTarget = (output: string, to: string) => {
  if (`${to}${sep}`.startsWith(`${resolve(output)}${sep}`)) return refuse("backup-inside", { folder: to })
  const isEmptyFolder = !existsSync(to) || (statSync(to).isDirectory() && readdirSync(to).length === 0)
  return isEmptyFolder ? Folder.refusalOf(to) : refuse("backup-not-empty", { folder: to })
}

export const backup = command("backup", {
  more: `
    A run may work in the folder while it is copied to DIR.

    To restore, use the copy as the output folder. It does not know what happened after it was made: bodies
    that landed later and were deleted at the service are not in it, and logins that were rejected later are
    tried once more.`,
  examples: {
    "nightjar backup /backup/monday": "A copy in a new folder",
    "nightjar status --output /backup/monday": "Read the copy",
  },
  flags: { folder: argument("DIR", "A folder that is empty or does not exist yet") },
  needs: "ledger",
  left: {
    kept: "Nothing in the output folder was changed.",
    next: "Run the same command again, with a folder that is empty or does not exist yet.",
  },
  run: function* ({ folder: given }, output) {
    const folder = resolve(given)
    const refusal = refusalOfTarget(output, folder)
    if (refusal !== undefined) return yield* refusal
    const detail = yield* Folder.damageOfTokens(output)
    if (detail !== undefined) return yield* refuse("token-store-damaged", { detail })
    const copied = copy(resolve(output), folder).pipe(
      Effect.mapError(({ message, because }) =>
        because === "unsettled" ? refuse("backup-unsettled") : refuse("backup-failed", { detail: message }),
      ),
    )
    const holds = yield* Effect.scoped(Effect.andThen(Prune.keepUnpruned(output), copied))
    const { ledger } = yield* Wiring
    const runs = yield* Effect.flatMap(Folder.openedLedger, (opened) => opened.runs).pipe(
      Effect.provide(ledger(folder, "read-only")),
    )
    return { folder, runs: runs.length, ...holds, problems: yield* Folder.problemsOf(folder) }
  },
  text: ({ folder, runs, version, problems, ...parts }) => {
    const { ledger, landing, attachments, tables, other } = parts
    const bytes = Object.values(parts).reduce((sum, part) => sum + part.bytes, 0)
    return [
      `${folder} holds ${counted(runs, "run")}, ${bytesText(bytes)}:`,
      `  ledger       ${bytesText(ledger.bytes)}`,
      `  landing      ${counted(landing.files, "segment")}, ${bytesText(landing.bytes)}`,
      `  attachments  ${counted(attachments.files, "document")}, ${bytesText(attachments.bytes)}`,
      `  tables       version ${version}, ${counted(tables.files, "file")}, ${bytesText(tables.bytes)}`,
      `  other        ${counted(other.files, "file")}, ${bytesText(other.bytes)}`,
      ...(problems.length === 0
        ? ["Files, ledger and tables of the copy agree."]
        : Folder.problemLines(problems)),
    ]
  },
  exit: ({ problems }) => actUnless(problems.length === 0),
})

const leftLines = ({ left }: Pick<Compacted, "left">): ReadonlyArray<string> =>
  left.map(({ table: name, month, reason }) => `${name} of ${month} keeps its files: ${reason}`)

interface Pruned extends PruneResult {
  readonly compacted: ReadonlyArray<Compacted>
}

const prunedText = (result: Pruned, out: Style, isDry: boolean): ReadonlyArray<string> => {
  const { removed, kept, compressed, archived, compacted } = result
  const isIdle = removed.length + archived.length + compressed.length === 0
  const what = isDry ? "This would be removed" : "Removed"
  const rows = removed.map((one) => [one.run_id, one.what, bytesText(one.bytes)])
  return [
    ...(compressed.length > 0 ? [Prune.compressedText(result, isDry)] : []),
    ...(archived.length > 0 ? [Prune.archivedText(result, isDry)] : []),
    ...compacted.flatMap((done) => [
      ...(done.tables.length > 0 ? [Prune.compactedText(done)] : []),
      ...leftLines(done),
    ]),
    ...(isIdle ? ["Nothing is older than `retain` allows, or it is still needed."] : []),
    ...(rows.length > 0
      ? [`${what}, ${Prune.sizeOf(result)}:`, table(["run", "what", "size"], rows, out)]
      : []),
    ...kept.map(({ run_id, what, reason }) => `${run_id} keeps its ${what}: ${reason}`),
  ]
}

/** The list of what is gone must not be lost because something after it failed. */
const tellPruned = Effect.fnUntraced(function* (result: Pruned, isDry: boolean, isJson: boolean) {
  if (isJson) return yield* sayJson(result)
  for (const text of prunedText(result, (yield* Output).out, isDry)) yield* say(text)
})

/** Of the jobs that ran here, as far as their files are where they were; the other jobs are named. */
const knownRules = Effect.gen(function* () {
  const known = [...(yield* Folder.knownJobs)]
  const paths = new Set(known.flatMap(([, path]) => (existsSync(path) ? [path] : [])))
  const jobs = yield* loadJobs([...paths], "rules")
  const found = new Set(jobs.flatMap(({ name }) => [name, acquaintName(name)]))
  for (const [job, path] of known) if (!found.has(job)) yield* warn("prune-without-job", { job, path })
  return jobs
})

export const prune = command("prune", {
  more: `
    Landed bodies, documents and logs of runs that ended long enough ago. A run that is unfinished, has
    executions left at the service, or whose tables are not published and intact keeps its files. Each run
    of a job does the same at its end; \`snapshots\` is applied by each publication. A run without landed
    bodies keeps its tables, but they can no longer be derived again. Landed bodies that stay are
    compressed a week after their run ended, or as \`retain\` says;
    with \`retain.compact\`, Parquet files of months that are over are put together; with \`retain.ledger\`,
    what the ledger knows of old runs goes to \`ledger-archive/\`.`,
  examples: { "nightjar prune --dry-run": "What would be removed, and its size" },
  flags: {
    paths: severalArguments("JOB", "Job files (default: all jobs that ran here)"),
    isDry: switchFlag("dry-run", "Show what would be removed, without removing it"),
  },
  needs: "ledger",
  left: {
    kept: "What was removed stays removed, and the ledger records it.",
    next: "Run the same command again.",
  },
  run: ({ paths, isDry }, output, isJson) =>
    Effect.gen(function* () {
      const jobs = yield* paths.length === 0 ? knownRules : loadJobs(paths, "rules")
      if (jobs.every(({ retain }) => retain === undefined)) return yield* refuse("retain-unset")
      yield* Folder.holdOutput(output, [Folder.shareOf(output)])
      const pruning = Effect.gen(function* () {
        const pruned = yield* Prune.pruneJobs(output, jobs, { isDry, runsMax: Infinity })
        const done = yield* Effect.forEach(jobs, (job) =>
          Prune.compactJob(output, job, { isDry, monthsMax: Infinity }),
        ).pipe(Effect.onError(() => tellPruned({ ...pruned, compacted: [] }, isDry, isJson)))
        return { ...pruned, compacted: done.filter((one) => one !== undefined) }
      })
      const result = yield* Folder.inFolder(output, pruning).pipe(
        Effect.catchTag("FolderFailed", ({ message }) => refuse("prune-stopped", { why: message })),
      )
      yield* Prune.warnOfSize(result)
      return result
    }).pipe(Effect.scoped),
  text: (result, out, { isDry }) => prunedText(result, out, isDry),
})

const ageDefault = "35 days"

export const compact = command("compact", {
  more: `
    All files of a table with runs of one calendar month become one, in the folder \`run_date=<first
    day>=<last day>\`. Rows and columns stay as they are, in the database too, and each run's rows are
    compared before its old files go. A Hive reader cannot tell dates of such a file from its path: read the
    files of a table without \`hive_partitioning = true\`, and \`run_date\` comes from the rows. With
    \`retain: { compact: 35 days }\` in a job, its nights do it at their end.`,
  examples: { "nightjar compact --dry-run": "How many files would become how many" },
  flags: {
    olderThan: Flag.String("older-than").pipe(
      Flag.withMetavar("AGE"),
      Flag.withDescription(`Only months that ended this long ago (default: ${ageDefault})`),
      only(
        isDurationWithin({ minimum: 0, maximum: "36500 days" }),
        "a number and a unit in quotes, such as '35 days'",
      ),
      Flag.withDefault(ageDefault),
    ),
    isDry: switchFlag("dry-run", "Show what would be compacted, without doing it"),
  },
  needs: "ledger",
  left: {
    kept: "No row was changed, and a month that was not combined keeps its files.",
    next: "Run the same command again.",
  },
  run: function* ({ olderThan, isDry }, output) {
    const age = Option.getOrElse(readDuration(olderThan), () => Duration.zero)
    const overBy = (yield* Clock.currentTimeMillis) - Duration.toMillis(age)
    const options = { overBy, isDry, monthsMax: Number.POSITIVE_INFINITY }
    const done = yield* Folder.inHeldStore(
      output,
      (store) => compactStore(store, options),
      Folder.openedStore,
    )
    const { isRolledBack, ...told } = done
    return isRolledBack ? yield* refuse("compact-rolled-back") : told
  },
  text: (done) => [
    ...(done.tables.length + done.left.length === 0
      ? ["No table has more than one file for a month that ended long enough ago."]
      : []),
    ...(done.tables.length > 0 ? [Prune.compactedText(done)] : []),
    ...leftLines(done),
  ],
  exit: ({ left }) => actUnless(left.length === 0),
})

export const documents = command("documents", {
  more: `
    A copy is in documents/<customer>/. Its name is the date of the first run that downloaded the document,
    the engine, the title, and digits of the content's SHA-256, which distinguish documents with the same
    title. A document keeps the name it was first given; one that a customer received twice is copied once.
    With \`output: { documents: by_name }\` in a job, each of its runs does this at its end. \`retain\` and
    \`forget\` remove the copies with their documents; a backup leaves them out, and this command makes them
    again.`,
  examples: { "nightjar documents": "New documents of all customers" },
  flags: {},
  needs: "ledger",
  left: {
    kept: "Every document is in `attachments/`, and the copies that were made stay.",
    next: "Run the same command again.",
  },
  run: (_, output) =>
    Effect.gen(function* () {
      const path = resolve(output, "documents")
      yield* Folder.holdOutput(output, [Folder.shareOf(output)])
      const named = yield* Prune.nameDocumentsIn(output).pipe(
        Effect.catchTag("FolderFailed", ({ message, because }) =>
          because === undefined
            ? refuse("documents-stopped", { why: message })
            : refuse("documents-not-ours", { path, entries: message }),
        ),
      )
      return named === undefined ? yield* refuse("nothing-published", { output }) : { path, ...named }
    }).pipe(Effect.scoped),
  text: ({ path, documents: all, customers, added, removed, gone }) => {
    const of = `${counted(all, "document")} of ${counted(customers, "customer")}`
    const lost = gone === 0 ? "" : ` No longer here, by age or loss: ${counted(gone, "document")}.`
    return `${path}: ${of}, ${added} new, ${removed} removed.${lost}`
  },
})

/** Nothing is stored for it: the customers are those of the ledger, and the key is where the job says. */
export const pseudonyms = command("pseudonyms", {
  more: `
    For tables of a job with \`pseudonyms\`. The customers are those of the ledger, and the key is where the
    job says: whoever holds only the tables has neither.`,
  examples: {
    "nightjar pseudonyms c-0001": "What the tables call a customer",
    "nightjar pseudonyms --value ES9121000418450200051332": "A value of a column",
  },
  flags: {
    name: optionalArgument("NAME", "A customer's id or a pseudonym (default: all)"),
    value: optionalFlag("value", "TEXT", "The pseudonym of this value of a chosen column"),
  },
  needs: "ledger",
  run: function* ({ name, value }, output) {
    const key = yield* Folder.publishedKey(output)
    if (key === undefined) return yield* refuse("pseudonyms-none", { output })
    if (Option.isSome(value)) return { pseudonym: key.pseudonymOf("value", value.value) }
    const customers = yield* Folder.withLedger(
      Effect.flatMap(Folder.openedLedger, (ledger) => ledger.customers),
    )
    const chosen = customers
      .map((customer_id) => ({ customer_id, pseudonym: key.pseudonymOf("customer_id", customer_id) }))
      .filter((one) => Option.isNone(name) || [one.customer_id, one.pseudonym].includes(name.value))
    return chosen.length === 0 && Option.isSome(name) ? yield* refuse("pseudonym-unknown") : chosen
  },
  text: (found, out) =>
    "pseudonym" in found
      ? found.pseudonym
      : table(
          ["customer", "pseudonym"],
          found.map((one) => [one.customer_id, one.pseudonym]),
          out,
        ),
})
