/**
 * What a year of nights costs before and after its months are compacted: files and bytes of the tables, a full build
 * of the database, one more publication, and the compaction itself.
 */
import { mkdirSync, mkdtempSync, rmSync, statSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import { buildInPlace, recover } from "../../src/tables/Commit.ts"
import { compact } from "../../src/tables/Compact.ts"
import { filesBelow } from "../../src/tables/Manifest.ts"
import { openStore } from "../../src/tables/OpenStore.ts"
import { publish } from "../tables/night.ts"
import type { Benchmark, Figure } from "./Figure.ts"
import { endNight, historyLayers, historyOptions, liveNight, makeHistory, runOf } from "./PublishedHistory.ts"
import type { NightSize } from "./PublishedHistory.ts"
import { measureSteps } from "./StepUsage.ts"

const mb = 1_048_576

const tablesIn = (root: string): ReadonlyArray<Figure> => {
  const folder = join(root, "tables")
  const paths = filesBelow(folder).filter((path) => path.endsWith(".parquet"))
  const bytes = paths.reduce((sum, path) => sum + statSync(join(folder, path)).size, 0)
  return [
    { name: "files of tables", value: paths.length, unit: "" },
    { name: "their size", value: bytes / mb, unit: "MB" },
  ]
}

/** CPU time of all threads and peak memory of a step. */
const spent = <A, E, R>(name: string, work: Effect.Effect<A, E, R>) =>
  Effect.map(measureSteps(Effect.withSpan(work, name)), ({ steps, peakMb }): ReadonlyArray<Figure> => [
    { name, value: (steps.find((step) => step.name === name)?.cpuMs ?? 0) / 1_000, unit: "s CPU" },
    { name: `${name}: peak memory`, value: peakMb, unit: "MB" },
  ])

const measured = (root: string, nights: number, size: NightSize) =>
  Effect.gen(function* () {
    yield* makeHistory(root, nights, size)
    const store = yield* openStore(historyOptions(root))
    const look = Effect.fnUntraced(function* (when: string, night: number) {
      const current = yield* recover(store)
      const built = yield* spent("full build", buildInPlace(store, current))
      yield* liveNight(night, size)
      const published = yield* spent("one more night", publish(runOf(night)))
      yield* endNight(night)
      const figures = [...tablesIn(root), ...built, ...published]
      return figures.map((figure): Figure => ({ ...figure, name: `${when}: ${figure.name}` }))
    })
    const before = yield* look("before", nights)
    const options = { overBy: Date.parse("2027-01-01"), isDry: false, monthsMax: Number.POSITIVE_INFINITY }
    const done = yield* spent("compaction", compact(store, options))
    return [...before, ...done, ...(yield* look("after", nights + 1))]
  }).pipe(Effect.scoped, Effect.provide(historyLayers(root)))

export const compaction: Benchmark = {
  name: "compaction",
  about: "files, a full build and one more night, before and after a year of nights is compacted",
  run: async ({ sample }) => {
    const kept = process.env["BENCH_KEEP"]
    const base = kept ?? mkdtempSync(join(tmpdir(), "compaction-"))
    const root = join(base, "output")
    mkdirSync(root, { recursive: true })
    try {
      const customers = Number(process.env["BENCH_CUSTOMERS"] ?? 100)
      const size = { customers: sample ? 5 : customers, each: 5 }
      const figures = await Effect.runPromise(measured(root, sample ? 3 : 365, size))
      return { figures, complaints: [] }
    } finally {
      if (kept === undefined) rmSync(base, { recursive: true, force: true })
    }
  },
}
