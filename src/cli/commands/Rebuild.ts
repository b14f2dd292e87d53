/**
 * `nightjar rebuild` derives all tables again from the landed bodies, with the record schemas of today
 * (`repair` derives only what is missing or damaged); `nightjar rollback` publishes the tables of the
 * version before. Neither calls the service. /
 */
import { Effect, Option } from "effect"
import { Command } from "effect/cli"
import { counted, listed } from "../../base/Text.ts"
import { jsonFlag, optionalFlag, outputFolder, switchFlag } from "../CommonFlags.ts"
import { endWith, refuse, toolVersion } from "../Failures.ts"
import { loadJobs } from "../Jobs.ts"
import { openedStore, openedStoreAsked, openedStoreWithKey, requireLedger } from "../LookAtFolder.ts"
import { Output, say, sayJson } from "../Output.ts"
import { inHeldStore } from "../RunFolder.ts"
import { told } from "../../messages/Catalogue.ts"
import { exitCodes } from "../../messages/ExitCodes.ts"
import { table } from "../../report/TextTable.ts"
import { rebuild as rebuildStore } from "../../tables/Rebuild.ts"
import type { Rebuilt } from "../../tables/Rebuild.ts"
import { rollback as rollBack } from "../../tables/Rollback.ts"

interface Asked {
  readonly publishes: boolean
  readonly leavesOut: boolean
  /** Its file: what it asks for in place of the customers comes into force. */
  readonly job: string | undefined
}

const rebuilds = Effect.fnUntraced(function* (output: string, { publishes, leavesOut, job }: Asked) {
  const [loaded] = job === undefined ? [] : yield* loadJobs([job])
  return yield* inHeldStore(
    output,
    (store) => rebuildStore(store, toolVersion, publishes, leavesOut),
    loaded === undefined ? openedStoreWithKey : openedStoreAsked(loaded),
  )
})

const headOf = ({ version, runs, changes }: Rebuilt): string => {
  const derived = `The tables of ${counted(runs, "run")} were derived again from landing`
  const differ = changes.length === 0 ? "every row is as before" : "these tables differ"
  return version === undefined
    ? `${derived}: ${differ}. Nothing was published.`
    : `${derived}: ${differ}. Version ${version} is published.`
}

const tell = Effect.fnUntraced(function* (rebuilt: Rebuilt) {
  const { out } = yield* Output
  yield* say(headOf(rebuilt))
  const rows = rebuilt.changes.map(({ run_id, table: name, ...counts }) => [
    run_id,
    name,
    ...[counts.before, counts.after, counts.added, counts.gone].map(String),
  ])
  const columns = ["run", "table", "rows before", "after", "added", "gone"]
  if (rows.length > 0) yield* say(table(columns, rows, { width: out.width }))
  for (const { run_id, reason } of rebuilt.kept) yield* say(`${run_id} keeps its tables: ${reason}`)
  const notIn = rebuilt.version === undefined ? "cannot be in the new version" : "is not in the version"
  for (const { run_id, reason } of rebuilt.left_out) yield* say(`${run_id} ${notIn}: ${reason}`)
  for (const { name, why } of rebuilt.models) yield* say(told("model-failed", { name, why }))
})

export const rebuild = Command.make(
  "rebuild",
  {
    dryRun: switchFlag("dry-run", "Show which rows would differ, without publishing"),
    job: optionalFlag("job", "FILE", "With the pseudonyms that this job asks for, or without any"),
    leaveOut: switchFlag("leave-out", "With --job: publish without runs that cannot be derived"),
    json: jsonFlag,
  },
  Effect.fn("Rebuild.handle")(function* ({ dryRun, job, leaveOut, json }) {
    const output = yield* outputFolder
    yield* requireLedger(output)
    const asked = { publishes: !dryRun, leavesOut: leaveOut, job: Option.getOrUndefined(job) }
    const rebuilt = yield* rebuilds(output, asked)
    if (json) yield* sayJson({ ...rebuilt, version: rebuilt.version ?? null })
    else yield* tell(rebuilt)
    const isBlocked = rebuilt.left_out.length > 0 && !leaveOut
    if (isBlocked && !dryRun)
      return yield* refuse("runs-not-derivable", { runs: counted(rebuilt.left_out.length, "run") })
    const isOk = !isBlocked && rebuilt.kept.every(({ pruned }) => pruned)
    yield* endWith(isOk ? exitCodes.ok : exitCodes.peopleMustAct)
  }),
).pipe(
  Command.withDescription(
    "Derives all tables again from landing and publishes them as a new version\n\n" +
      "For tables that are complete but no longer as the record schemas describe them,\n" +
      "such as after a schema was added or changed. `nightjar repair` is for tables\n" +
      "that are missing or damaged, and derives only those. A run whose landed bodies\n" +
      "were pruned or cannot be read keeps its tables as they are, and so does one that\n" +
      "a gate holds back; unless bodies were pruned, the exit code is 3. No gate is\n" +
      "asked: --dry-run shows what would change.\n\n" +
      "--job brings `pseudonyms` of a job into force, or ends them: no row and no kept\n" +
      "version of before stays. If the landed bodies of a run are gone, nothing is\n" +
      "published, unless --leave-out gives up its rows: back up the folder first.",
  ),
  Command.withShortDescription("Derives all tables again from landed data"),
  Command.withExamples([{ command: "nightjar rebuild --dry-run", description: "Which rows would differ" }]),
)

// `nightjar rollback`: puts the tables of the previous published version back, for readers, until the next
// publication. It deletes nothing and makes no call to the service.

const runsTold = 5

export const rollback = Command.make(
  "rollback",
  { json: jsonFlag },
  Effect.fn("Rollback.handle")(function* ({ json }) {
    const output = yield* outputFolder
    yield* requireLedger(output)
    const result = yield* inHeldStore(output, rollBack, openedStore)
    if (result._tag === "NoEarlierVersion") return yield* refuse("no-earlier-version", { output })
    if (result._tag === "Incomplete") {
      const { version, gap } = result
      return yield* refuse("earlier-version-incomplete", { version, ...gap })
    }
    const { _tag, ...told } = result
    if (json) return yield* sayJson(told)
    const { version, to, from, without } = told
    yield* say(`Version ${version} is published: it has the tables of version ${to}.`)
    if (without.length > 0) yield* say(`Runs that are not in it: ${listed(without, runsTold)}.`)
    yield* say(`Version ${from} is kept: the next publication continues from it and ends the rollback.`)
  }),
).pipe(
  Command.withDescription(
    "Publishes the tables of the previous version again\n\n" +
      "A second time, it goes one version further back. Nothing is lost: the newest\n" +
      "version is kept, and the next publication, by `nightjar run JOB` or `nightjar\n" +
      "rebuild`, continues from it. The ledger, landing and the executions at the\n" +
      "service are not changed. Three earlier versions are kept, or as many as\n" +
      "`retain.snapshots` in the job says.",
  ),
  Command.withShortDescription("Publishes the tables of the previous version again"),
)
