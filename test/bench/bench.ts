/**
 * `npm run bench [-- NAME…] [--sample] [--customers N] [--pairs N]`: every figure beside its peer and
 * its limit, measured in this one run. Ends with exit code 1 where a limit is broken or the measured work went wrong;
 * figures without a limit only inform.
 */
import { parseArgs } from "node:util"
import { figureLine, isBroken, type Benchmark } from "./Figure.ts"
import { client } from "./client.ts"
import { data } from "./data.ts"
import { history } from "./history.ts"
import { night } from "./night.ts"
import { sandbox } from "./sandbox.ts"
import { telemetry } from "./telemetry.ts"

const benchmarks: ReadonlyArray<Benchmark> = [client, sandbox, data, history, night, telemetry]

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    sample: { type: "boolean", default: false },
    customers: { type: "string" },
    pairs: { type: "string" },
  },
})
const unknown = positionals.filter((name) => benchmarks.every((each) => each.name !== name))
if (unknown.length > 0) {
  console.error(`there is no benchmark ${unknown.join(", ")}; there are:`)
  for (const { name, about } of benchmarks) console.error(`  ${name.padEnd(10)}${about}`)
  process.exit(2)
}

let failures = 0
for (const benchmark of benchmarks) {
  if (positionals.length > 0 && !positionals.includes(benchmark.name)) continue
  console.log(`# ${benchmark.name}: ${benchmark.about}${values.sample ? " (a small sample of it)" : ""}`)
  const { figures, complaints } = await benchmark.run({
    ...values,
    customers: values.customers,
    pairs: values.pairs,
  })
  for (const figure of figures) console.log(figureLine(figure))
  for (const complaint of complaints) console.log(`FAIL ${complaint}`)
  failures += complaints.length + figures.filter(isBroken).length
}
process.exitCode = failures === 0 ? 0 : 1
