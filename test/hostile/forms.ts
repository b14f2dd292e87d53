/**
 * `node test/hostile/forms.ts --count N [--from K]`: hostile engine forms through everything that a plan does
 * with them: the client's reading, the checker's thread, the cache. Each must be answered within the bounds
 * that the thread has, and an ordinary form right after it as if nothing had been. Prints the answers by kind,
 * the longest time and the highest memory, and exits 1 if a form broke one of these.
 */
import { parseArgs } from "node:util"
import { Effect } from "effect"
import { FormProcess } from "../../src/client/FormProcess.ts"
import { figuresLine } from "../promises/Figure.ts"
import { runCampaign } from "./FormCampaign.ts"

const { values } = parseArgs({
  options: { count: { type: "string" }, from: { type: "string" }, json: { type: "boolean", default: false } },
})
const count = Number(values.count ?? 1_000)
const from = Number(values.from ?? 1)
const started = performance.now()
const report = await Effect.runPromise(runCampaign({ count, from }).pipe(Effect.provide(FormProcess.layer())))
const seconds = ((performance.now() - started) / 1_000).toFixed(1)
const { answers, slowest, peakMb, complaints } = report
for (const [answer, { times, ms }] of [...answers].toSorted(([, one], [, other]) => other.ms - one.ms))
  process.stdout.write(`${String(times).padStart(7)}  ${(ms / 1_000).toFixed(1).padStart(8)} s  ${answer}\n`)
process.stdout.write(
  `${count} forms in ${seconds} s; the slowest, seed ${slowest.seed}, took ${slowest.ms.toFixed(0)} ms; ` +
    `peak memory ${peakMb} MB; ${complaints.length} complaints\n`,
)
for (const complaint of complaints) process.stdout.write(`${complaint}\n`)
const figure = { of: "hostile forms", tried: count, failed: complaints.length }
if (values.json) process.stdout.write(`${figuresLine([figure])}\n`)
process.exitCode = complaints.length === 0 ? 0 : 1
