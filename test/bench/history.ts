/**
 * What a night costs to publish, by the history that is published already: 5,000 records of 1,000 customers onto 30,
 * 100, 365 and 460 nights of the same size, which are 10 million rows. CPU time of all threads and bytes written, by step, beside a full build.
 */
import { mkdirSync, mkdtempSync, rmSync, statSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import { recover } from "../../src/tables/Commit.ts"
import { layoutOf, readManifest } from "../../src/tables/Manifest.ts"
import { openStore } from "../../src/tables/OpenStore.ts"
import { Publisher } from "../../src/tables/Publisher.ts"
import { layers, publish, publisherOptions } from "../tables/night.ts"
import type { Benchmark, Figure } from "./Figure.ts"
import { endNight, liveNight, makeHistory, runOf } from "./PublishedHistory.ts"
import { measureSteps } from "./StepUsage.ts"
import { anId } from "../harness/Id.ts"

const mb = 1_048_576

/** One further night is landed, and what publishing it and its outcome uses is measured. */
const measureNight = (root: string, nights: number, customers: number) =>
  Effect.gen(function* () {
    const rows = yield* makeHistory(root, nights, customers)
    const store = yield* openStore(publisherOptions(root))
    yield* recover(store)
    // Made by hand, the history has a database that no manifest names: this night builds it of all files.
    const night = 1_000 + nights
    yield* liveNight(night - 1, customers)
    const built = yield* measureSteps(publish(runOf(night - 1)))
    yield* endNight(night - 1)
    yield* liveNight(night, customers)
    const run_id = anId(runOf(night))
    const published = yield* measureSteps(publish(run_id))
    const database = statSync(layoutOf(root).database).size
    yield* endNight(night)
    const publisher = yield* Publisher
    const outcome = yield* measureSteps(publisher.publishOutcome(run_id))
    const own = readManifest(layoutOf(root).manifest)?.runs[run_id]?.files ?? []
    const ownBytes = own.reduce((sum, { bytes }) => sum + bytes, 0)
    return { rows, built, published, outcome, database, ownBytes }
  }).pipe(Effect.provide(layers(root)))

type Night = Effect.Success<ReturnType<typeof measureNight>>

/** Steps that use less are left out; one that took place several times is counted together. */
const toldFrom = { cpuMs: 20, bytes: mb }

const stepsOf = (what: string, { steps }: Pick<Night["built"], "steps">): ReadonlyArray<Figure> =>
  [...Map.groupBy(steps, ({ name }) => name)].flatMap(([step, times]) => {
    const name = `${what}: ${step.replace(/^[A-Za-z]+\./, "")}`
    const cpuMs = times.reduce((sum, each) => sum + each.cpuMs, 0)
    const bytes = times.reduce((sum, each) => sum + each.writtenBytes, 0)
    return [
      ...(cpuMs < toldFrom.cpuMs ? [] : [{ name, value: cpuMs / 1_000, unit: "s CPU" }]),
      ...(bytes < toldFrom.bytes ? [] : [{ name, value: bytes / mb, unit: "MB written" }]),
    ]
  })

const figuresOf = (nights: number, night: Night): ReadonlyArray<Figure> => {
  const { rows, built, published, outcome, database, ownBytes } = night
  return [
    { name: `${nights} nights`, value: rows, unit: "rows" },
    { name: "database", value: database / mb, unit: "MB" },
    { name: "Parquet of the night", value: ownBytes / mb, unit: "MB" },
    ...stepsOf("of all files", built),
    ...stepsOf("publish", published),
    { name: "publish: peak memory", value: published.peakMb, unit: "MB" },
    ...stepsOf("outcome", outcome),
    { name: "outcome: peak memory", value: outcome.peakMb, unit: "MB" },
  ]
}

export const history: Benchmark = {
  name: "history",
  about: "CPU time and bytes written to publish one more night onto 30 to 460 nights",
  run: async ({ sample }) => {
    const kept = process.env["BENCH_KEEP"]
    const root = kept ?? mkdtempSync(join(tmpdir(), "history-"))
    mkdirSync(root, { recursive: true })
    const figures: Array<Figure> = []
    try {
      for (const nights of sample ? [3] : [30, 100, 365, 460])
        figures.push(
          ...figuresOf(nights, await Effect.runPromise(measureNight(root, nights, sample ? 20 : 1_000))),
        )
      return { figures, complaints: [] }
    } finally {
      if (kept === undefined) rmSync(root, { recursive: true, force: true })
    }
  },
}
