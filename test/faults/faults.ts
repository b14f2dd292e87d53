/**
 * `npm run faults -- [--nights N [--in-a-row K]] [--each CALL] [--enospc] [--eio] [--overlap] [--removals N]
 * [--from K]`: real processes under kill -9, full and breaking disks, and each other; what they leave
 * is compared with an undisturbed night. `--sample` is a little of it: breaking calls and removals are cut off at
 * their steps among the tests. Tells what is wrong with each failing case and what repeats it, and exits 1 if
 * there is one.
 */
import { rmSync } from "node:fs"
import { parseArgs } from "node:util"
import pLimit from "p-limit"
import { figuresLine, type Figure } from "../promises/Figure.ts"
import { openCampaign, type Verdict } from "./Campaign.ts"
import { breakDisk, brokenCalls, brokenDiskSkipped, fillDisk, fullDiskSkipped } from "./DiskFaults.ts"
import { roomsFor, sampleRoom } from "./DiskFaults.ts"
import { eachCall, killNight } from "./KilledNight.ts"
import { openRemovals } from "./KilledForget.ts"
import { overlapRuns } from "./OverlappingRuns.ts"

const { values } = parseArgs({
  options: {
    /** Nights under kill -9, from seed `from` on. */
    nights: { type: "string" },
    from: { type: "string", default: "1" },
    /** So many kills in each of those nights; without it one to four. */
    "in-a-row": { type: "string" },
    /** A night for every call of this name (fsync, rename …), killed right there. */
    each: { type: "string" },
    /** Full disks, breaking calls and runs at once. */
    enospc: { type: "boolean", default: false },
    sizes: { type: "string", default: "24" },
    eio: { type: "boolean", default: false },
    points: { type: "string", default: "60" },
    overlap: { type: "boolean", default: false },
    runs: { type: "string", default: "50" },
    /** Removals of a customer under kill -9. */
    removals: { type: "string" },
    sample: { type: "boolean", default: false },
    parallel: { type: "string", default: "4" },
    verbose: { type: "boolean", default: false },
    /** The last line is the figures, for `npm run promises`. */
    json: { type: "boolean", default: false },
  },
})

const { sample } = values
const amounts = sample
  ? { nights: 1, sizes: 1, points: 0, runs: 3, removals: 0 }
  : {
      nights: Number(values.nights ?? 0),
      sizes: values.enospc ? Number(values.sizes) : 0,
      points: values.eio ? Number(values.points) : 0,
      runs: values.overlap ? Number(values.runs) : 0,
      removals: Number(values.removals ?? 0),
    }
if (Object.values(amounts).every((amount) => amount === 0) && values.each === undefined) {
  console.error(
    "nothing to do: --nights N, --each CALL, --enospc, --eio, --overlap, --removals N or --sample",
  )
  process.exit(2)
}

const startedAt = performance.now()
const campaign = await openCampaign({ aimAtCalls: !sample })

/** How many of these can be had here; told where it is none. */
const available = (amount: number, what: string, skipped: string | undefined): number => {
  if (amount > 0 && skipped !== undefined) console.log(`left out: ${what} (${skipped})`)
  return skipped === undefined ? amount : 0
}

const sizes = available(amounts.sizes, "full disks", fullDiskSkipped)
const points = available(amounts.points, "breaking disks", brokenDiskSkipped)
const from = Number(values.from)
const inARow = values["in-a-row"] === undefined ? undefined : Number(values["in-a-row"])
const rooms = sizes === 0 ? [] : sample ? [sampleRoom] : await roomsFor(campaign, sizes)
const calls = points === 0 ? [] : await brokenCalls(campaign, points)
const seeds = (amount: number) => Array.from({ length: amount }, (_, index) => from + index)
type Case = () => Promise<Verdict>
const kill = amounts.removals === 0 ? undefined : await openRemovals(campaign)
/** What is tried, by the name under which it is counted. */
const kinds: Readonly<Record<string, { readonly cases: ReadonlyArray<Case>; readonly skipped?: string }>> = {
  "nights under kill -9": {
    cases: [
      ...seeds(amounts.nights).map((seed) => () => killNight(campaign, seed, inARow)),
      ...(values.each === undefined ? [] : await eachCall(campaign, values.each)),
    ],
  },
  "full disks": {
    ...(fullDiskSkipped === undefined ? {} : { skipped: fullDiskSkipped }),
    cases: rooms.map((room) => () => fillDisk(campaign, room)),
  },
  "breaking calls": {
    ...(brokenDiskSkipped === undefined ? {} : { skipped: brokenDiskSkipped }),
    cases: calls.map((call) => () => breakDisk(campaign, call)),
  },
  "overlapping runs": { cases: amounts.runs === 0 ? [] : [() => overlapRuns(campaign, amounts.runs)] },
  "removals under kill -9": {
    cases: kill === undefined ? [] : seeds(amounts.removals).map((seed) => () => kill(seed)),
  },
}

const stopped = (error: unknown): Verdict => ({
  name: "the campaign",
  story: "stopped",
  complaints: [error instanceof Error ? (error.stack ?? error.message) : "?"],
})

const failures = new Map<string, number>()
const tell = (kind: string, { name, story, complaints }: Verdict): void => {
  if (complaints.length > 0) failures.set(kind, (failures.get(kind) ?? 0) + 1)
  if (values.verbose || complaints.length > 0) console.log(`${name}: ${story}`)
  for (const complaint of complaints) console.log(`  ${complaint}`)
}

const limit = pLimit(Number(values.parallel))
const cases = Object.entries(kinds).flatMap(([kind, of]) => of.cases.map((run) => ({ kind, run })))
await Promise.all(
  cases.map(({ kind, run }) =>
    limit(() =>
      run()
        .catch(stopped)
        .then((verdict) => tell(kind, verdict)),
    ),
  ),
)
const failed = [...failures.values()].reduce((sum, count) => sum + count, 0)

const seconds = (performance.now() - startedAt) / 1_000
console.log(`${cases.length} cases in ${seconds.toFixed(1)} s`)
console.log(`${cases.length - failed} passed, ${failed} failed`)
if (failed === 0) rmSync(campaign.folder, { recursive: true, force: true })
else console.log(`what failed lies in ${campaign.folder}`)
if (values.json) {
  const figures = Object.entries(kinds).map(([of, kind]): Figure => {
    const tried = of === "overlapping runs" && kind.cases.length > 0 ? amounts.runs : kind.cases.length
    const figure = { of, tried, failed: failures.get(of) ?? 0 }
    return kind.skipped === undefined ? figure : { ...figure, leftOut: kind.skipped }
  })
  console.log(figuresLine(figures))
}
process.exit(failed === 0 ? 0 : 1)
