/**
 * `verify` shows where files, ledger and tables disagree; `repair` mends what landed and published data
 * allow; `rebuild` derives all tables again; `rollback` publishes an earlier version. None calls the service.
 */
import { join } from "node:path"
import { Effect, Option } from "effect"
import { Flag } from "effect/cli"
import { counted, listed } from "../../base/Text.ts"
import type { Share } from "../../base/DurableFile.ts"
import { told, withId } from "../../messages/Catalogue.ts"
import { readOwnSchemas, readShipped } from "../../records/SchemasInForce.ts"
import type { Style } from "../../report/RenderSummary.ts"
import { table } from "../../report/TextTable.ts"
import type { Store } from "../../tables/Manifest.ts"
import type { KeptVersion, RolledBack } from "../../tables/Rollback.ts"
import { actUnless, command } from "../CommandRow.ts"
import { optionalFlag, switchFlag } from "../Output.ts"
import { refuse } from "../Failures.ts"
import { checkJobs, loadOne } from "../Jobs.ts"
import * as Folder from "../OutputFolder.ts"
import { Wiring } from "../Wiring.ts"

export const verify = command("verify", {
  flags: {},
  needs: "ledger",
  run: (_, output) =>
    Effect.all({
      problems: Folder.problemsOf(output),
      returned: Effect.map(Folder.publishedIn(output), ({ manifest }) => manifest?.returned),
    }),
  json: ({ problems }) => problems,
  text: ({ problems, returned }, out) => {
    if (problems.length > 0) {
      const rows = problems.map(({ id, where, problem, next }) => [where, withId(id, problem), next])
      return [
        `${counted(problems.length, "disagreement")} between files, ledger and tables:`,
        table(["where", "problem", "next"], rows, out),
      ]
    }
    const agree = "Files, ledger and tables agree."
    if (returned === undefined) return agree
    const { to, from } = returned
    const after = `After a rollback, they are the tables of version ${to}; the next publication `
    return [agree, `${after}continues from version ${from}.`]
  },
  exit: ({ problems }) => actUnless(problems.length === 0),
})

/** The record schemas of the jobs that ran here, as far as their files can still be read. */
const schemasOfJobs = Effect.gen(function* () {
  const paths = new Set((yield* Folder.knownJobs).values())
  const checked = yield* checkJobs([...paths], "rules")
  const folders = checked.flatMap(({ job }) => (job?.schemas === undefined ? [] : [job.schemas]))
  return (yield* Effect.forEach(folders, (folder) => readOwnSchemas(join(folder, "records")))).flat()
})

export const repair = command("repair", {
  flags: {},
  needs: "ledger",
  left: {
    kept: "Everything landed and recorded is kept, and what was repaired stays repaired.",
    next: "Run the same command again.",
  },
  run: function* (_, output) {
    const { recordSchemas } = yield* Wiring
    const { repairSchemas } = yield* Effect.promise(() => import("../../tables/KeepSchemas.ts"))
    const { repair: repairStore } = yield* Effect.promise(() => import("../../tables/Repair.ts"))
    // Whoever holds the folder to write in it marks it.
    const marked = Folder.markerState(output) === "damaged" ? [`${Folder.markerName}: written again`] : []
    const schemas: Array<string> = []
    const opens = Effect.fnUntraced(function* (root: string, share: Share) {
      schemas.push(...(yield* repairSchemas({ root, share }, [readShipped(recordSchemas), schemasOfJobs])))
      return yield* Folder.openedStoreWithKey(root, share)
    })
    const { done, left } = yield* Folder.inHeldStore(output, repairStore, opens)
    const rewritten = schemas.map((name) => `schemas/${name}: written again with the same text`)
    return { done: [...marked, ...rewritten, ...done], left, problems: yield* Folder.problemsOf(output) }
  },
  text: ({ done, left, problems }) => [
    ...done,
    ...left,
    ...Folder.problemLines(problems),
    ...(done.length === 0 && problems.length === 0 ? ["There is nothing to repair."] : []),
  ],
  exit: ({ left, problems }) => actUnless(left.length + problems.length === 0),
})

const wholeTables =
  "The published tables are whole: those of the version before, or of the new one if it was complete."

/** What a crash left is finished by a publication; a preview is none. */
const previewed = <A, E, R>(preview: (store: Store) => Effect.Effect<A, E, R>) =>
  Effect.fnUntraced(function* (store: Store) {
    const { unfinished } = yield* Effect.promise(() => import("../../tables/Version.ts"))
    const why = yield* unfinished(store)
    return yield* why === undefined ? preview(store) : refuse("preview-impossible", { why })
  })

export const rebuild = command("rebuild", {
  more: `
    They are published as a new version. This is for tables that are complete but no longer as the record
    schemas describe them, such as after a schema was added or changed; \`nightjar repair\` is for tables
    that are missing or damaged, and derives only those. A run whose landed bodies were pruned or cannot be
    read keeps its tables as they are, and so does one that a gate holds back; unless bodies were pruned,
    the exit code is 3. A run that the ledger does not know and of which nothing is landed is taken out of
    the tables. No gate is asked: --dry-run shows what would change.

    --job brings \`pseudonyms\` of a job into force, or ends them: no row and no kept version of before
    stays. If the landed bodies of a run are gone, nothing is published, unless --leave-out gives up its
    rows: back up the folder first.`,
  examples: { "nightjar rebuild --dry-run": "Which rows would differ" },
  flags: {
    isDry: switchFlag("dry-run", "Show which rows would differ, without publishing"),
    job: optionalFlag("job", "FILE", "With the pseudonyms that this job asks for, or without any"),
    leavesOut: switchFlag("leave-out", "With --job: publish without runs that cannot be derived"),
  },
  needs: "ledger",
  left: { kept: wholeTables, next: "Run the same command again." },
  run: function* ({ isDry, job, leavesOut }, output) {
    const { rebuild: rebuildStore } = yield* Effect.promise(() => import("../../tables/Rebuild.ts"))
    const opens = Option.isNone(job)
      ? Folder.openedStoreWithKey
      : Folder.openedStoreAsked(yield* loadOne(job.value))
    const work = (store: Store) => rebuildStore(store, !isDry, leavesOut)
    return yield* Folder.inHeldStore(output, isDry ? previewed(work) : work, opens)
  },
  json: (rebuilt) => ({ ...rebuilt, version: rebuilt.version ?? null }),
  text: ({ version, runs, changes, kept, left_out, unknown, models }, out) => {
    const differ = changes.length === 0 ? "every row that they read is as before" : "these tables differ"
    const published = version === undefined ? "Nothing was published" : `Version ${version} is published`
    const rows = changes.map(({ run_id, table: name, ...counts }) => [
      run_id,
      name,
      ...[counts.before, counts.after, counts.added, counts.gone].map(String),
    ])
    const columns = ["run", "table", "rows before", "after", "added", "gone"]
    const takenOut = version === undefined ? "would be taken out of the tables" : "is taken out of the tables"
    const unknownWhy = "the ledger does not know it, and nothing of it is landed"
    const notIn = version === undefined ? "cannot be in the new version" : "is not in the version"
    return [
      `The tables of ${counted(runs, "run")} were derived again from landing: ${differ}. Dates in history ` +
        `are worked out again, too. ${published}.`,
      ...(rows.length > 0 ? [table(columns, rows, out)] : []),
      ...kept.map(({ run_id, reason }) => `${run_id} keeps its tables: ${reason}`),
      ...left_out.map(({ run_id, reason }) => `${run_id} ${notIn}: ${reason}`),
      ...unknown.map((run_id) => `${run_id} ${takenOut}: ${unknownWhy}`),
      ...models.map(({ name, why }) => told("model-failed", { name, why })),
    ]
  },
  exit: ({ kept, left_out }, { isDry, leavesOut }) => {
    const isBlocked = left_out.length > 0 && !leavesOut
    return isBlocked && !isDry
      ? refuse("runs-not-derivable", { runs: counted(left_out.length, "run") })
      : actUnless(!isBlocked && kept.every(({ pruned }) => pruned))
  },
})

const runsTold = 5

const versionRow = ({ version, published, of, runs, newest_run, rows }: KeptVersion) => [
  String(version),
  published ? (of === null ? "published" : `published: the tables of ${of}`) : "kept",
  String(runs),
  newest_run ?? "",
  String(rows),
]

const tellRolledBack = (
  { version, to, from, without, tables = [] }: Omit<Extract<RolledBack, { _tag: "RolledBack" }>, "_tag">,
  out: Style,
): ReadonlyArray<string> => {
  const isDry = version === undefined
  const kept = isDry ? "would be kept" : "is kept"
  const rows = tables.map((one) => [one.table, String(one.before), String(one.after)])
  return [
    isDry
      ? `Version ${to} would be published again; nothing was changed.`
      : `Version ${version} is published: it has the tables of version ${to}.`,
    ...(without.length > 0 ? [`Runs that are not in it: ${listed(without, runsTold)}.`] : []),
    ...(isDry && rows.length > 0
      ? [table(["table", "rows of all runs now", "then"], rows, { width: out.width, right: new Set([1, 2]) })]
      : []),
    `Version ${from} ${kept}: the next publication continues from it and ends the rollback.`,
  ]
}

export const rollback = command("rollback", {
  more: `
    A second time, it goes one version further back; --to names any version that --list shows. Nothing is
    lost: the newest version is kept, and the next publication, by \`nightjar run JOB\` or \`nightjar
    rebuild\`, continues from it. The ledger, landing and the executions at the service are not changed.
    Three earlier versions are kept, or as many as \`retain.snapshots\` in the job says.`,
  examples: {
    "nightjar rollback --list": "Which versions there are",
    "nightjar rollback --to 12 --dry-run": "What would be published again",
  },
  flags: {
    list: switchFlag("list", "List the versions, and put none back"),
    to: Flag.Int("to").pipe(
      Flag.withMetavar("VERSION"),
      Flag.withDescription("The version to put back (default: the one before)"),
      Flag.optional,
    ),
    isDry: switchFlag("dry-run", "Show what would be published again, without publishing"),
  },
  needs: "ledger",
  left: {
    kept: wholeTables,
    next:
      "`nightjar rollback --list` shows which one is published; `nightjar rollback --to VERSION` publishes " +
      "another.",
  },
  run: function* ({ list, to: asked, isDry }, output) {
    const { listVersions, rollback: rollBack } = yield* Effect.promise(
      () => import("../../tables/Rollback.ts"),
    )
    if (list) return { versions: yield* listVersions(yield* Folder.publishedIn(output)) }
    const to = Option.getOrUndefined(asked)
    const work = (store: Store) => rollBack(store, { to, isDry })
    const result = yield* Folder.inHeldStore(output, isDry ? previewed(work) : work, Folder.openedStore)
    if (result._tag === "Incomplete")
      return yield* refuse("earlier-version-incomplete", { version: result.version, ...result.gap })
    if (result._tag === "NoEarlierVersion") return yield* refuse("no-earlier-version", { output })
    if (result._tag === "NotKept") {
      const kept = result.kept.length === 0 ? "no earlier one is" : `kept: ${result.kept.join(", ")}`
      return yield* refuse("version-not-kept", { version: String(to), output, kept })
    }
    const { _tag, ...done } = result
    return done
  },
  json: (done) => ("versions" in done ? done.versions : { ...done, version: done.version ?? null }),
  text: (done, out) => {
    if (!("versions" in done)) return tellRolledBack(done, out)
    const header = ["version", "state", "runs", "newest run", "rows of all runs"]
    return table(header, done.versions.map(versionRow), { width: out.width, right: new Set([0, 2, 4]) })
  },
})
