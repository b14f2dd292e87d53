/**
 * `npm run unusable -- [--from K] [--count N]`: throws in every function that handles what the service says of
 * one customer, one function a night. Everybody else's tables must equal an undisturbed night's, the customer's
 * execution must stay and must not be started again. Which functions there are, the undisturbed night tells.
 */
import { parseArgs } from "node:util"
import { figuresLine } from "../promises/Figure.ts"
import { throwingNight } from "./ThrowingNight.ts"

const { values } = parseArgs({
  options: {
    from: { type: "string", default: "0" },
    /** So many functions, spread over all of them; all by default. */
    count: { type: "string" },
    only: { type: "string" },
    verbose: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
  },
})

const startedAt = performance.now()
const undisturbed = await throwingNight(undefined)
if (undisturbed.complaints.length > 0 || undisturbed.rows.length === 0) {
  console.error(`the undisturbed night went wrong: ${undisturbed.complaints.join("; ") || "no rows"}`)
  process.exit(1)
}
const all = [...undisturbed.called]
  .toSorted()
  .filter((id) => values.only === undefined || id.includes(values.only))
const step = values.count === undefined ? 1 : Math.max(1, all.length / Number(values.count))
const chosen = all.filter(
  (_, at) => at >= Number(values.from) && Math.floor(at / step) !== Math.floor((at - 1) / step),
)
let failed = 0
for (const [at, id] of chosen.entries()) {
  const night = await throwingNight(id)
  const complaints = [...night.complaints]
  if (!night.threw) complaints.push("it was not reached")
  if (complaints.length === 0 && night.rows.join("\n") !== undisturbed.rows.join("\n"))
    complaints.push("the others' tables differ")
  if (complaints.length > 0) failed += 1
  if (complaints.length > 0 || values.verbose)
    console.log(`${at + 1}/${chosen.length} ${id}: ${complaints.join("; ") || "its own task only"}`)
}
const seconds = ((performance.now() - startedAt) / 1000).toFixed(0)
const memory = (process.resourceUsage().maxRSS / 1024).toFixed(0)
console.log(
  `${chosen.length} of ${all.length} functions threw, ${failed} cost more than their task; ${seconds} s, ${memory} MB`,
)
if (values.json) console.log(figuresLine([{ of: "functions that throw", tried: chosen.length, failed }]))
process.exit(failed === 0 ? 0 : 1)
