/**
 * `npm run hostile-files -- [--count N] [--from K]`: hostile job files and files of customers, each from its own seed.
 * Tells how many of which kind there were, the time and the memory they took, and what is wrong with each one that
 * was not answered; exits 1 if there is one.
 */
import { parseArgs } from "node:util"
import { Effect } from "effect"
import { figuresLine } from "../promises/Figure.ts"
import { judgeFiles } from "./HostileFiles.ts"

const { values } = parseArgs({
  options: {
    count: { type: "string", default: "10000" },
    from: { type: "string", default: "1" },
    json: { type: "boolean", default: false },
  },
})
const started = process.cpuUsage()
const { counts, violations } = await Effect.runPromise(judgeFiles(Number(values.from), Number(values.count)))
for (const { seed, kind, what } of violations) console.log(`seed ${seed} (${kind}): ${what}`)
const { user, system } = process.cpuUsage(started)
const megabytes = Math.round(process.resourceUsage().maxRSS / 1_000)
const told = Object.entries(counts).map(([kind, count]) => `${count} ${kind}`)
console.log(
  `${told.join(", ")}: ${violations.length} violations; ${Math.round((user + system) / 1e6)} s of CPU, ` +
    `${megabytes} MB at most`,
)
const figure = { of: "hostile files", tried: Number(values.count), failed: violations.length }
if (values.json) console.log(figuresLine([figure]))
process.exitCode = violations.length === 0 ? 0 : 1
