/**
 * `npm run hostile-bodies -- --count 100000 [--seed S]`: so many hostile bodies through measuring, blanking, counting and
 * normalising. Nothing may throw, every record is somewhere exactly once. Tells time, memory and loss; a failing
 * body is shown with the seed that makes it again.
 */
import { parseArgs } from "node:util"
import * as fc from "fast-check"
import { measureBody } from "../../src/service/BodyBounds.ts"
import { flowResultsSource } from "../../src/service/FlowResults.ts"
import { findingOf } from "../../src/task/DrainProof.ts"
import { flushFull } from "../../src/records/Flush.ts"
import { Normaliser } from "../../src/records/Normalise.ts"
import { cleanBody } from "../../src/privacy/CleanBody.ts"
import { makeKnownSecrets } from "../../src/privacy/KnownSecrets.ts"
import { parseBody } from "../../src/records/FindRecords.ts"
import { figuresLine } from "../promises/Figure.ts"
import { families, flushOf } from "./families.ts"
import { hostileBody, lossOf } from "./HostileBody.ts"

const { values } = parseArgs({
  options: {
    count: { type: "string", default: "100000" },
    seed: { type: "string", default: "1" },
    json: { type: "boolean", default: false },
  },
})

const known = makeKnownSecrets()
known.hold("hunter2!", "password")
const normaliser = new Normaliser(families)
let records = 0
let bytes = 0
const goesThrough = (text: string): boolean => {
  const body = Buffer.from(text)
  bytes += body.length
  if (measureBody(body).broken !== undefined) return false
  cleanBody(body, known, { records: "data" })
  const parsed = parseBody(body)
  if (parsed._tag === "ReadableBody") findingOf(flowResultsSource, parsed.value)
  if (lossOf(normaliser, body) !== undefined) return false
  for (const { rows } of flushFull(normaliser.tables().values())) records += rows
  return true
}

const startedAt = performance.now()
const result = fc.check(fc.property(hostileBody, goesThrough), {
  numRuns: Number(values.count),
  seed: Number(values.seed),
})
for (const { rows } of flushOf(normaliser)) records += rows
const seconds = ((performance.now() - startedAt) / 1000).toFixed(0)
const memory = (process.resourceUsage().maxRSS / 1024).toFixed(0)
console.log(
  `${result.numRuns} bodies of ${(bytes / 1e6).toFixed(0)} MB became ${records} rows in ${seconds} s, ${memory} MB; ` +
    (result.failed ? `one was lost:\n${fc.defaultReportMessage(result)}` : "nothing was lost"),
)
if (values.json)
  console.log(figuresLine([{ of: "hostile bodies", tried: result.numRuns, failed: result.failed ? 1 : 0 }]))
process.exit(result.failed ? 1 : 0)
