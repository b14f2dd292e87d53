/**
 * `npm run faults -- --nights N [--from K]`: nights of real processes under kill -9, compared with an undisturbed one.
 * `--sample` is a little of everything. Tells what is wrong with each failing case and the seed that repeats it, and
 * exits 1 if there is one.
 */
import { readdirSync, rmSync } from "node:fs"
import { join } from "node:path"
import { parseArgs } from "node:util"
import pLimit from "p-limit"
import { openCampaign } from "./Campaign.ts"
import { killNight } from "./KilledNight.ts"
import type { Verdict } from "./KilledNight.ts"

const { values } = parseArgs({
  options: {
    nights: { type: "string", default: "0" },
    from: { type: "string", default: "1" },
    parallel: { type: "string", default: "3" },
    sample: { type: "boolean", default: false },
    verbose: { type: "boolean", default: false },
  },
})

type Case = () => Promise<Verdict>

const startedAt = performance.now()
const campaign = await openCampaign({ aimAtCalls: !values.sample })
const from = Number(values.from)
const nights = values.sample ? 3 : Number(values.nights)
const cases: ReadonlyArray<Case> = Array.from(
  { length: nights },
  (_, index) => () => killNight(campaign, from + index),
)

const failure = (error: unknown): Verdict => ({
  name: "the campaign",
  story: "stopped",
  complaints: [error instanceof Error ? (error.stack ?? error.message) : "?"],
})

let failed = 0
const tell = ({ name, story, complaints }: Verdict): void => {
  if (complaints.length > 0) failed += 1
  if (values.verbose || complaints.length > 0) console.log(`${name}: ${story}`)
  for (const complaint of complaints) console.log(`  ${complaint}`)
}

const limit = pLimit(Number(values.parallel))
await Promise.all(cases.map((run) => limit(() => run().catch(failure).then(tell))))

const seconds = (performance.now() - startedAt) / 1_000
console.log(`${cases.length} cases in ${seconds.toFixed(1)} s`)
console.log(`${cases.length - failed} passed, ${failed} failed`)
if (failed === 0) rmSync(campaign.folder, { recursive: true, force: true })
else console.log(`what failed: ${readdirSync(campaign.folder).map((each) => join(campaign.folder, each)).join(" ")}`)
process.exit(failed === 0 ? 0 : 1)
