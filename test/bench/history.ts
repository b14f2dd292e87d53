/**
 * What a night costs to publish, by the history that is published already: CPU time and bytes written, by step, beside a
 * full build. 50 nights of 200,000 records are 10 million rows of nights; then 200 and 200,000 records are published onto
 * them, of which 20 and 2,000 are other ones. 400 nights of 25,000 show that what is true now does not slow down.
 */
import { mkdirSync, mkdtempSync, rmSync, statSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import { DuckDb } from "../../src/base/DuckDb.ts"
import { literal } from "../../src/base/DuckDbFailed.ts"
import { recover } from "../../src/tables/Version.ts"
import { layoutOf, readManifest } from "../../src/tables/Manifest.ts"
import { openStore } from "../../src/tables/OpenStore.ts"
import { Publisher } from "../../src/tables/Publisher.ts"
import { opened, publish } from "../tables/night.ts"
import { median, type Benchmark, type Figure } from "./Figure.ts"
import {
  endNight,
  historyLayers,
  historyOptions,
  liveNight,
  liveRerun,
  makeHistory,
  runOf,
} from "./PublishedHistory.ts"
import type { NightSize } from "./PublishedHistory.ts"
import { cpuMs, measureSteps } from "./StepUsage.ts"
import { anId } from "../harness/Id.ts"

const mb = 1_048_576

type Usage = Pick<Effect.Success<ReturnType<typeof measureSteps>>, "steps" | "peakMb">

/** The day before the newest night. */
const computedDay = "SELECT max(e) - 1 AS day FROM store._runs"

/**
 * What is read; a day as the comments of `history` say, with its date. DuckDB skips no version by a date that a query
 * computes itself: it reads each that began before.
 */
const queriesOf = (day: string): Readonly<Record<string, string>> => {
  const ofDay = (date: string) => `valid_from <= ${date} AND (valid_to IS NULL OR ${date} < valid_to)`
  const movements = "SELECT sum(amount), count(description) FROM history.movements"
  return {
    "main, all rows": "SELECT sum(amount), count(description), max(as_of) FROM main.movements",
    "main.coverage": "SELECT count(*), max(as_of), max(age_days) FROM main.coverage",
    "main.customers": "SELECT count(*), min(first_seen), max(last_seen) FROM main.customers",
    "history of a day": `${movements} WHERE ${ofDay(`DATE ${literal(day)}`)}`,
    "history of a computed day": `${movements}, (${computedDay}) WHERE ${ofDay("day")}`,
  }
}

/** Before them, DuckDB reads the blocks and Node compiles. */
const unmeasuredReads = 5
const measuredReads = 25

/** The CPU time of each: the middle of several times. */
const measureReading = Effect.fnUntraced(function* (root: string) {
  const connection = yield* opened(root)
  const [newest] = yield* connection.rows(`SELECT day::VARCHAR AS day FROM (${computedDay})`)
  const took: Record<string, number> = {}
  for (const [name, sql] of Object.entries(queriesOf(String(newest?.["day"])))) {
    const times: Array<number> = []
    for (let n = 0; n < unmeasuredReads + measuredReads; n++) {
      const from = cpuMs()
      yield* connection.rows(sql)
      times.push(cpuMs() - from)
    }
    took[name] = median(times.slice(unmeasuredReads))
  }
  return took
}, Effect.scoped)

/** The size of a database that has every row of every night in full. */
const sizeInFull = Effect.fnUntraced(function* (root: string) {
  const path = join(root, "..", "full.duckdb")
  const { runs = {} } = readManifest(layoutOf(root).manifest) ?? {}
  const files = Object.values(runs).flatMap((run) => run.files)
  const duckdb = yield* DuckDb
  const written = Effect.gen(function* () {
    const connection = yield* duckdb.open({ path, access: "read-write", threads: 1 })
    for (const [table, own] of Map.groupBy(files, (file) => file.table)) {
      const list = own.map((file) => literal(join(root, file.path)))
      yield* connection.run(`CREATE TABLE "${table}" AS FROM read_parquet([${list.join(", ")}], union_by_name = true);
        CHECKPOINT`)
    }
  })
  yield* Effect.scoped(written)
  const { size } = statSync(path)
  rmSync(path)
  return size
})

/** Further nights are published onto those that are there, and what that uses is measured. */
const measureNights = (root: string, nights: number, size: NightSize) =>
  Effect.gen(function* () {
    const rows = yield* makeHistory(root, nights, size)
    const store = yield* openStore(historyOptions(root))
    const built = yield* measureSteps(recover(store))
    const full = yield* sizeInFull(root)
    const database = statSync(layoutOf(root).database).size
    const reading = yield* measureReading(root)
    // The first one after a full build writes all of Parquet, too.
    yield* liveNight(nights, size)
    yield* publish(runOf(nights))
    yield* endNight(nights)
    const night = nights + 1
    yield* liveNight(night, size)
    const whole = yield* measureSteps(publish(runOf(night)))
    yield* endNight(night)
    const outcome = yield* measureSteps(
      Effect.flatMap(Publisher, (publisher) => publisher.publishOutcome(anId(runOf(night)))),
    )
    const few = yield* liveRerun(night, { customers: 4, each: size.each })
    const part = yield* measureSteps(publish(few))
    return { rows, built, whole, outcome, part, database, full, reading }
  }).pipe(Effect.scoped, Effect.provide(historyLayers(root)))

type Nights = Effect.Success<ReturnType<typeof measureNights>>

/** Steps that use less are left out; one that took place several times is counted together. */
const toldFrom = { cpuMs: 20, bytes: mb }

const stepsOf = (what: string, { steps, peakMb }: Usage): ReadonlyArray<Figure> => [
  ...[...Map.groupBy(steps, ({ name }) => name)].flatMap(([step, times]) => {
    const name = `${what}: ${step.replace(/^[A-Za-z]+\./, "")}`
    const cpu = times.reduce((sum, each) => sum + each.cpuMs, 0)
    const bytes = times.reduce((sum, each) => sum + each.writtenBytes, 0)
    return [
      ...(cpu < toldFrom.cpuMs ? [] : [{ name, value: cpu / 1_000, unit: "s CPU" }]),
      ...(bytes < toldFrom.bytes ? [] : [{ name, value: bytes / mb, unit: "MB written" }]),
    ]
  }),
  { name: `${what}: peak memory`, value: peakMb, unit: "MB" },
]

/** What publishing uses beside deriving the rows from bodies and writing the folders of Parquet. */
const besides = ({ steps }: Usage, ...names: ReadonlyArray<string>): number => {
  const of = (name: string) =>
    steps.reduce((sum, step) => sum + (step.name.endsWith(`.${name}`) ? step.cpuMs : 0), 0)
  return (of("change") - names.reduce((sum, name) => sum + of(name), 0)) / 1_000
}

/** Nights of the same size before them, of which there are fewer. */
type Fewer = Pick<Nights, "reading"> & { readonly of: string; readonly customers: number }

/** It should cost at most so many times what it costs with fewer nights. */
const readingAim = "1.5 x"

const readingFigures = ({ reading }: Nights, fewer: Fewer | undefined): ReadonlyArray<Figure> =>
  Object.entries(reading).map(([name, ms]) => {
    const value = fewer?.reading[name]
    const beside = fewer && value !== undefined && { peer: { name: fewer.of, value }, aim: readingAim }
    return { name, value: ms, unit: "ms CPU", ...beside }
  })

const figuresOf = (
  of: string,
  size: NightSize,
  nights: Nights,
  { aims, fewer }: { readonly aims: boolean; readonly fewer: Fewer | undefined },
): ReadonlyArray<Figure> => {
  const { rows, built, whole, outcome, part, database, full } = nights
  const records = (customers: number) => (customers * size.each).toLocaleString("en")
  const publishing = (customers: number, usage: Usage, aim: number): ReadonlyArray<Figure> => [
    {
      name: `${records(customers)} records onto ${of}`,
      value: besides(usage, "stageRun", "parquetOf"),
      unit: "s CPU",
      ...(aims && { aim: `at most ${aim} s` }),
    },
    {
      name: "with Parquet of main and history",
      value: besides(usage, "stageRun"),
      unit: "s CPU",
    },
  ]
  return [
    { name: of, value: rows, unit: "rows" },
    {
      name: "database",
      value: database / mb,
      unit: "MB",
      peer: { name: "all rows in full", value: full / mb },
      ...(aims && { aim: "0.6 x" }),
    },
    ...publishing(4, part, 0.7),
    ...publishing(size.customers, whole, 2.5),
    ...readingFigures(nights, fewer),
    ...stepsOf("of all files", built),
    ...stepsOf("publish", whole),
    ...stepsOf("outcome", outcome),
    ...stepsOf("rerun", part),
  ]
}

const rounds: ReadonlyArray<NightSize & { readonly nights: number }> = [
  { nights: 50, customers: 4_000, each: 50 },
  { nights: 40, customers: 500, each: 50 },
  { nights: 400, customers: 500, each: 50 },
]

export const history: Benchmark = {
  name: "history",
  about: "CPU time and bytes written to publish one more night onto 40 to 400 nights, and to read them",
  run: async ({ sample }) => {
    const figures: Array<Figure> = []
    let before: Fewer | undefined
    for (const { nights, ...size } of sample ? [{ nights: 3, customers: 20, each: 50 }] : rounds) {
      const base = process.env["BENCH_KEEP"] ?? mkdtempSync(join(tmpdir(), "history-"))
      const root = join(base, "output")
      mkdirSync(root, { recursive: true })
      try {
        const measured = await Effect.runPromise(measureNights(root, nights, size))
        const of = `${nights} nights`
        const aims = nights === rounds[0]?.nights
        const fewer = before?.customers === size.customers ? before : undefined
        figures.push(...figuresOf(of, size, measured, { aims, fewer }))
        before = { of, customers: size.customers, reading: measured.reading }
      } finally {
        if (process.env["BENCH_KEEP"] === undefined) rmSync(base, { recursive: true, force: true })
      }
    }
    return { figures, complaints: [] }
  },
}
