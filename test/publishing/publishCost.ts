/** What a publication costs: `node test/publishing/publishCost.ts [EXECUTIONS]`, three records each. */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import { Publisher } from "../../src/publishing/Publisher.ts"
import { account, append, begin, layers, profileOf, resultsOf, succeed } from "./night.ts"

const executions = Number(process.argv[2] ?? 2_000)
const root = mkdtempSync(join(tmpdir(), "nightjar-cost-"))
const run_id = "nightly.2026-11-20"

const measured = <A, E, R>(name: string, work: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const before = process.cpuUsage()
    const result = yield* work
    const { user, system } = process.cpuUsage(before)
    const rss = Math.round(process.resourceUsage().maxRSS / 1024)
    process.stdout.write(`${name}: ${((user + system) / 1e6).toFixed(2)} CPU s, peak ${rss} MB\n`)
    return result
  })

await Effect.gen(function* () {
  const publisher = yield* Publisher
  yield* append([begin(run_id, "2026-11-20")])
  const ids = Array.from({ length: executions }, (_, index) => `${index}`)
  yield* measured(
    "landing and ledger",
    Effect.forEach(
      ids,
      (id) => succeed(run_id, id, `c-${id}`, resultsOf(profileOf(`a${id}`), profileOf(`b${id}`), account)),
      { concurrency: 64, discard: true },
    ),
  )
  yield* measured("publish", publisher.publish(run_id))
  yield* measured("publishOutcome", publisher.publishOutcome(run_id))
}).pipe(Effect.provide(layers(root)), Effect.runPromise)
rmSync(root, { recursive: true, force: true })
