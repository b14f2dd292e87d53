/**
 * `npm run canaries -- [--every N] [--from K] [--only OPERATION]`: a service that repeats secrets, in every spelling, in each N-th
 * place of every answer of the contract (default: in every one), and a search of everything that the commands wrote
 * and showed. Exits 1 where a secret was found, or where the search cannot find what it must.
 */
import { parseArgs } from "node:util"
import { figuresLine } from "../promises/Figure.ts"
import { tryEchoes } from "./EchoCampaign.ts"

const { values } = parseArgs({
  options: {
    every: { type: "string", default: "1" },
    from: { type: "string", default: "0" },
    /** One operation of the contract, such as readExecution. */
    only: { type: "string" },
    json: { type: "boolean", default: false },
  },
})

const startedAt = performance.now()
const result = await tryEchoes(Number(values.every), Number(values.from), values.only)
const seconds = Math.round((performance.now() - startedAt) / 1_000)
for (const { where, secret, around } of result.leaks.slice(0, 40))
  console.log(`leak: ${where}: ${secret}: …${JSON.stringify(around)}`)
for (const place of result.unreached) console.log(`not answered with: ${place}`)
const odd = Object.entries(result.exitCodes).filter(([, code]) => code === 1 || code === null)
for (const [command, code] of odd) console.log(`exit code ${code}: ${command}`)
const isControlled = ["landing/", '"store".', "read_parquet"].every((where) =>
  result.controlIn.some((found) => found.includes(where)),
)
console.log(
  `${result.echoed} of ${result.places} places, ${result.secrets} secrets, ${result.searchedBytes} bytes searched, ` +
    `${result.leaks.length} leaks, control ${isControlled ? "found" : "NOT FOUND"}, ${seconds} s`,
)
const failed = result.leaks.length + odd.length + (isControlled ? 0 : 1)
if (values.json) console.log(figuresLine([{ of: "echoed secrets", tried: result.echoed, failed }]))
process.exit(failed === 0 ? 0 : 1)
