/**
 * `npm run attack -- [--attackers N] [--megabytes M] [--seed S]`: a night in which so many sessions answer with
 * bodies of so many megabytes made to fill a memory, beside ten innocents. Tells time, peak memory, how the attacked
 * tasks ended and who was published; exits 1 where the attack cost anybody else anything, or more than its memory.
 */
import { parseArgs } from "node:util"
import { figuresLine } from "../promises/Figure.ts"
import { attackNight } from "./AttackedNight.ts"

const { values } = parseArgs({
  options: {
    attackers: { type: "string", default: "100" },
    megabytes: { type: "string", default: "200" },
    seed: { type: "string", default: "1" },
    json: { type: "boolean", default: false },
  },
})

// The night that was started ends with this process, however that ends.
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => process.exit(130))

const attackers = Number(values.attackers)
const megabytes = Number(values.megabytes)
const end = await attackNight({ attackers, megabytes, seed: Number(values.seed) })
for (const [reason, tasks] of Object.entries(end.reasons))
  console.log(`${String(tasks).padStart(7)}  ${reason}`)
console.log(
  `${attackers} bodies of ${megabytes} MB: ${(end.elapsedMs / 1_000).toFixed(0)} s, a peak of ${end.peakMb} MB, ` +
    `${end.innocentsWhole} of 10 innocents published whole, ${end.attackersDeleted} of the attacked executions deleted`,
)
for (const complaint of end.complaints) console.log(complaint)
const failed = end.complaints.length
if (values.json) console.log(figuresLine([{ of: "bodies of an attack", tried: attackers, failed }]))
process.exit(failed === 0 ? 0 : 1)
