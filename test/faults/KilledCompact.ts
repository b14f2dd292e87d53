/**
 * `nightjar compact` in a real process that is killed with SIGKILL: the tables are at every moment those of before,
 * and the same command brings the files to what an undisturbed one makes of them. Every second folder was compacted
 * before, and has late nights of the same month.
 */
import { cpSync, rmSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { compact } from "../../src/tables/Compact.ts"
import { filesBelow } from "../../src/tables/Manifest.ts"
import { openStore } from "../../src/tables/OpenStore.ts"
import { publishStage } from "../../src/run/PublishMeanwhile.ts"
import { anId } from "../harness/Id.ts"
import {
  append,
  begin,
  builtInLayers,
  builtInOptions,
  profileOf,
  resultsOf,
  succeed,
} from "../tables/night.ts"
import { judgeFolder, nightjar, tellEnd, type Campaign } from "./Campaign.ts"
import { copyOf, countCalls, killCommand } from "./KilledCommand.ts"
import type { KilledCommand, Place } from "./KilledCommand.ts"
import { readTables, type Tables } from "./PublishedTables.ts"
import { differingDatabases } from "./SameTables.ts"
import type { Verdict } from "./Verdict.ts"

/** What a compaction changes, in its order. */
const watchedFiles = [
  "tables/tasks",
  "nightjar.duckdb.build",
  "tables/manifest.next.json",
  "tables/customer_profiles",
  "nightjar.duckdb",
  "tables/manifest.json",
] as const

const night = Effect.fnUntraced(function* (run_date: string) {
  const run_id = `nightly.${run_date}`
  yield* append([begin(run_id, run_date)])
  yield* succeed(run_id, `one-${run_date}`, "c-1", resultsOf(profileOf(`Ana of ${run_date}`)))
  yield* succeed(run_id, `two-${run_date}`, "c-2", resultsOf(profileOf("Bea"), profileOf("Bo")))
  yield* publishStage(anId(run_id))
})

/** Nights of two months that are over. */
const nights = (root: string, isCompactedBefore: boolean) =>
  Effect.gen(function* () {
    for (const date of ["2025-10-03", "2025-10-04", "2025-11-09", "2025-11-30"]) yield* night(date)
    if (!isCompactedBefore) return
    yield* compact(yield* openStore(builtInOptions(root)), {
      overBy: Date.now(),
      isDry: false,
      monthsMax: Infinity,
    })
    yield* night("2025-10-31")
  }).pipe(Effect.provide(builtInLayers(root)), Effect.scoped, Effect.runPromise)

/** Returns what tries one compaction, by its seed. */
export const openCompactions = (campaign: Campaign): ((seed: number) => Promise<Verdict>) => {
  const undisturbed = new Map<boolean, Promise<KilledCommand>>()
  return (seed) => {
    const isCompactedBefore = seed % 2 === 1
    const known = undisturbed.get(isCompactedBefore) ?? openCompaction(campaign, isCompactedBefore)
    undisturbed.set(isCompactedBefore, known)
    return known.then((compaction) => killCommand(compaction, seed))
  }
}

const openCompaction = async (campaign: Campaign, isCompactedBefore: boolean): Promise<KilledCommand> => {
  const folder = join(campaign.folder, `compactions-${isCompactedBefore ? "again" : "first"}`)
  const template = join(folder, "template")
  cpSync(campaign.template, template, { recursive: true })
  await nights(template, isCompactedBefore)
  return await liveCompaction({ campaign, template, folder })
}

const start =
  ({ campaign }: Place): KilledCommand["start"] =>
  (output, prefix = []) =>
    nightjar(campaign, ["compact", "--older-than", "1 day", "--output", output], {}, prefix)

const liveCompaction = async (place: Place): Promise<KilledCommand> => {
  const output = copyOf(place, "undisturbed")
  const tables = await readTables(output)
  const before = filesIn(output)
  const end = await start(place)(output).ended
  if (end.code !== 0) throw new Error(`the undisturbed compaction failed: ${tellEnd(end)}`)
  const files = filesIn(output)
  if (files.length >= before.length) throw new Error("the undisturbed compaction did nothing")
  // It must leave the tables as they were; that is judged after each kill.
  const judge: KilledCommand["judge"] = (of) => judgeEnd(place, of, tables, files)
  rmSync(output, { recursive: true, force: true })
  return {
    place,
    kind: "compaction",
    about: `${before.length} files to ${files.length}`,
    start: start(place),
    watchedFiles,
    elapsedMs: end.elapsedMs,
    calls: await countCalls(place, "compact", start(place)),
    isFinished: ({ code }) => code === 0,
    judge,
  }
}

/** Every file of the tables, whatever version it is of. */
const filesIn = (output: string): ReadonlyArray<string> =>
  filesBelow(join(output, "tables"))
    .map((path) => path.replace(/-v\d+/, ""))
    .toSorted()

const judgeEnd = async (
  { campaign }: Place,
  output: string,
  tables: Tables,
  files: ReadonlyArray<string>,
): Promise<ReadonlyArray<string>> => {
  const found = filesIn(output)
  return [
    ...(await judgeFolder({ campaign, output })),
    ...differingDatabases(tables, await readTables(output), "unlike before"),
    ...(JSON.stringify(found) === JSON.stringify(files)
      ? []
      : [`the files are ${found.join(", ")}, and should be ${files.join(", ")}`]),
  ]
}
