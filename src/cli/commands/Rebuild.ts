/**
 * `nightjar rebuild`: derives all tables again from the landed bodies, with the record schemas of today.
 * `repair` derives only what is missing or damaged. Makes no call to the service.
 */
import { Effect, Option } from "effect"
import { Command } from "effect/cli"
import { counted } from "../../base/Text.ts"
import { told } from "../../messages/Catalogue.ts"
import { exitCodes } from "../../messages/ExitCodes.ts"
import type { Rebuilt } from "../../tables/Rebuild.ts"
import { table } from "../../report/TextTable.ts"
import { jsonFlag, optionalFlag, outputFolder, switchFlag } from "../CommonFlags.ts"
import { endWith, refuse, toolVersion } from "../Failures.ts"
import { inHeldStore } from "../RunFolder.ts"
import { loadJobs } from "../Jobs.ts"
import { openedStoreAsked, openedStoreWithKey, requireLedger } from "../LookAtFolder.ts"
import { Output, say, sayJson } from "../Output.ts"
import { rebuild as rebuildStore } from "../../tables/Rebuild.ts"

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
