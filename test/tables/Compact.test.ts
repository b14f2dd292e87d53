/**
 * Many small files become one a month: every way of reading them gives the same rows, a run that is published again
 * or lost afterwards is whole again, and whatever stops it, the folder is as before or compacted.
 */
import { cpSync, readdirSync, readFileSync, rmSync, truncateSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { readParquet } from "parquet-wasm"
import { DuckDb, type Connection } from "../../src/base/DuckDb.ts"
import { FileCalls, machineCalls } from "../../src/base/DurableFile.ts"
import { compact, type CompactedTable } from "../../src/tables/Compact.ts"
import {
  filesBelow,
  filesOf,
  layoutOf,
  nothingPublished,
  readManifest,
  monthPath,
  readPath,
} from "../../src/tables/Manifest.ts"
import { repair } from "../../src/tables/Repair.ts"
import { rollback } from "../../src/tables/Rollback.ts"
import {
  account,
  append,
  layers,
  liveNight,
  namesIn,
  problemsIn,
  profileOf,
  storeOf,
  liveIn,
} from "./night.ts"
import { copiesOf } from "../harness/CopiesOf.ts"
import { anId } from "../harness/Id.ts"
import type { Manifest, ManifestFile } from "../../src/tables/Manifest.ts"
import { monthFiles } from "../../src/tables/SharedFile.ts"

/** The first and the last two share a month, and only the first month is over. */
const dates = ["2025-10-30", "2025-10-31", "2025-11-20"] as const
const runOf = (date: string) => `nightly.${date}`
const nameOf = (date: string) => `of ${date}`
const names = dates.map(nameOf)

const profilesPath = "tables/customer_profiles/run_date=2025-10-01=2025-10-31/2025-10-v4.parquet"

const choice = { overBy: Date.parse("2025-11-01"), isDry: false, monthsMax: 12 }
const compactIn = (root: string, more: Partial<typeof choice> = {}) =>
  Effect.flatMap(storeOf(root), (store) => compact(store, { ...choice, ...more }))

const manifestIn = (root: string) => readManifest(layoutOf(root).manifest) ?? nothingPublished
const parquetIn = (root: string) =>
  filesBelow(join(root, "tables")).flatMap((path) => (path.endsWith(".parquet") ? [`tables/${path}`] : []))
const tablesIn = (root: string) => new Set(filesOf(manifestIn(root)).map(({ table }) => table))

/** Every way in which people read Parquet files. */
const ways = {
  simply: { glob: "**", options: "" },
  byDate: { glob: "run_date=*", options: "" },
  asFiles: { glob: "*", options: ", hive_partitioning = false" },
}
/** All rows of all tables, as files, and of two in the other ways, in the order of their text. */
const readingIn = Effect.fnUntraced(function* ({ query }: Connection, root: string, way: keyof typeof ways) {
  const { glob, options } = ways[way]
  const texts: Array<string> = []
  const tables = way === "asFiles" ? [...tablesIn(root)].toSorted() : ["customer_profiles", "runs"]
  for (const table of tables) {
    const place = `${root}/tables/${table}/${glob}/*.parquet`
    const { columns, rows } = yield* query(`SELECT * FROM read_parquet('${place}'${options}) ORDER BY ALL`)
    texts.push(JSON.stringify([table, columns, rows]))
  }
  return texts
})
const reader = Effect.flatMap(DuckDb, ({ open }) => open({ path: ":memory:", access: "read-write" }))
const readingOf = (root: string, way: keyof typeof ways) =>
  Effect.scoped(Effect.flatMap(reader, (connection) => readingIn(connection, root, way)))
const readingsOf = (root: string) =>
  Effect.flatMap(reader, (connection) =>
    Effect.all({
      simply: readingIn(connection, root, "simply"),
      byDate: readingIn(connection, root, "byDate"),
      asFiles: readingIn(connection, root, "asFiles"),
    }),
  ).pipe(Effect.scoped)

const base = copiesOf((root) =>
  Effect.provide(
    Effect.forEach(dates, (date) => liveNight(runOf(date), date, profileOf(nameOf(date)), account)),
    layers(root),
  ),
)
const compacted = copiesOf((root) =>
  Effect.gen(function* () {
    cpSync(yield* base, root, { recursive: true })
    yield* Effect.provide(compactIn(root), layers(root))
  }).pipe(Effect.scoped),
)
/** Those of the nights before anything is done to them. */
const readings = Effect.runSync(
  Effect.cached(
    Effect.scoped(Effect.flatMap(base, (root) => Effect.provide(readingsOf(root), layers(root)))),
  ),
)

describe("compact", () => {
  liveIn(base)("changes nothing for readers but the number of files, and is done once", function* (root) {
    const before = yield* readings
    const tables = tablesIn(root).size
    const planned = yield* compactIn(root, { isDry: true })
    assert.strictEqual(parquetIn(root).length, tables * 3)
    // What is not read back as it was written is not published.
    const wrong = yield* Effect.provideService(compactIn(root), FileCalls, yield* swapping(root))
    assert.deepStrictEqual(
      wrong.left.map(({ reason }) => reason),
      [`${profilesPath}: the rows of run ${runOf(dates[0])} read back differently`],
    )
    const done = yield* compactIn(root)
    assert.deepStrictEqual(
      [planned.tables.length, wrong.tables.length, done.tables.map(({ table }) => table)],
      [tables, tables - 1, ["customer_profiles"]],
    )
    assert.deepStrictEqual([done.version, done.left, done.isRolledBack], [5, [], false])
    assert.deepStrictEqual([yield* readingsOf(root), yield* problemsIn(root)], [before, []])
    assert.strictEqual(parquetIn(root).length, tables * 2)
    assert.deepStrictEqual(readdirSync(join(root, "tables/runs")), [
      "run_date=2025-10-01=2025-10-31",
      `run_date=${dates[2]}`,
    ])
    // Another reader of Parquet finds as many rows.
    for (const { path, rows } of filesOf(manifestIn(root))) {
      const batches = readParquet(readFileSync(join(root, path))).recordBatches()
      assert.strictEqual(
        batches.reduce((sum, { numRows }) => sum + numRows, 0),
        rows,
      )
    }
    assert.deepInclude(yield* compactIn(root), { version: undefined, tables: [] })
  })

  liveIn(base)(
    "is foretold: the same tables, files and sizes, and what keeps its files because one is damaged",
    function* (root) {
      const [damaged] = filesOf(manifestIn(root)).filter(({ table }) => table === "other_records")
      rmSync(join(root, damaged?.path ?? ""))
      const said = yield* compactIn(root, { isDry: true })
      const done = yield* compactIn(root)
      const before = ({ after: _after, ...one }: CompactedTable) => one
      assert.deepStrictEqual(
        { left: said.left, tables: said.tables.map(before) },
        { left: done.left, tables: done.tables.map(before) },
      )
      assert.deepStrictEqual(done.left, [
        { table: "other_records", month: "2025-10", reason: `${damaged?.path} is missing` },
      ])
      assert.isAbove(done.tables.length, 5)
    },
  )

  liveIn(compacted)(
    "is undone by `rollback` to earlier rows, and is not done while they are published",
    function* (root) {
      const back = yield* Effect.flatMap(storeOf(root), rollback)
      assert.deepInclude(back, { to: 2, from: 4, without: [runOf(dates[2])] })
      assert.deepStrictEqual(yield* namesIn(root), names.slice(0, 2))
      assert.deepInclude(yield* compactIn(root), { version: undefined, isRolledBack: true })
    },
  )

  liveIn(compacted)("leaves a folder that can be read off its files and repaired", function* (root) {
    const before = yield* readings
    const { runs } = manifestIn(root)
    rmSync(layoutOf(root).manifest)
    const repaired = yield* Effect.flatMap(storeOf(root), (store) => repair(store))
    assert.deepStrictEqual(repaired.left, [])
    const filesIn = (of: typeof runs) =>
      dates.map((date) => (of[runOf(date)]?.files ?? []).toSorted((a, b) => (a.path < b.path ? -1 : 1)))
    assert.deepStrictEqual(filesIn(manifestIn(root).runs), filesIn(runs))
    truncateSync(join(root, profilesPath), 9)
    const again = yield* Effect.flatMap(storeOf(root), (store) => repair(store))
    assert.deepStrictEqual([again.done.length, again.left, yield* problemsIn(root)], [2, [], []])
    assert.deepStrictEqual((yield* readingOf(root, "asFiles")).slice(1, 3), before.asFiles.slice(1, 3))
  })

  liveIn(compacted)(
    "is put together again from the database where landed bodies are gone by age",
    function* (root) {
      const before = yield* readings
      const run_id = anId(runOf(dates[0]))
      yield* append([{ _tag: "LandingPruned", run_id, bytes: 1 }])
      rmSync(join(root, "landing", run_id), { recursive: true })
      truncateSync(join(root, profilesPath), 9)
      const repaired = yield* Effect.flatMap(storeOf(root), (store) => repair(store))
      assert.deepStrictEqual(
        [repaired.done.map((text) => text.replace(/[:;].*/, "")), repaired.left],
        [[runOf(dates[0]), runOf(dates[1])], []],
      )
      assert.match(repaired.done[0] ?? "", /with their rows in the database/)
      const after = yield* readingOf(root, "asFiles")
      const profiles = (all: ReadonlyArray<string>) => all.filter((text) => text.includes("of 2025-10-30"))
      assert.deepStrictEqual([profiles(after), yield* problemsIn(root)], [profiles(before.asFiles), []])
    },
  )
})

/** While the new file of profiles is synced, one with another name in it takes its place. */
const swapping = Effect.fnUntraced(function* (root: string) {
  const duckdb = yield* DuckDb
  const { run } = yield* duckdb.open({ path: ":memory:", access: "read-write" })
  const sources = `read_parquet('${root}/tables/customer_profiles/run_date=2025-10-3*/*.parquet')`
  const wrong = join(root, "wrong.parquet")
  yield* run(
    `COPY (SELECT * REPLACE (replace(name, '10-30', '10-29') AS name) FROM ${sources}) TO '${wrong}'`,
  )
  const calls: FileCalls = {
    ...machineCalls,
    setMode: (path, mode) => {
      if (path === join(root, `${profilesPath}.tmp`)) cpSync(wrong, path)
      machineCalls.setMode(path, mode)
    },
  }
  return calls
}, Effect.scoped)

const mb = 1_048_576

const file = (run: string, more: Partial<ManifestFile> = {}): ManifestFile => ({
  table: "runs",
  path: `tables/runs/run_date=${run.slice(-10)}/${run}-v1.parquet`,
  rows: 1,
  bytes: 1_000,
  sha256: "",
  ...more,
})

const aRun = (run: string, more: Partial<Manifest["runs"][string]> = {}): Manifest["runs"] => ({
  [run]: { run_date: run.slice(-10), version: 1, files: [file(run)], ...more },
})

const manifestOf = (...runs: ReadonlyArray<Manifest["runs"]>): Manifest => ({
  version: 1,
  amends: false,
  runs: Object.assign({}, ...runs) as Manifest["runs"],
})

/** The runs of each file, in a month that is over unless it is said otherwise. */
const chosenFiles = (manifest: Manifest, overBy = "2026-11-01", runs?: ReadonlyArray<string>) =>
  monthFiles(manifest, [], {
    overBy: Date.parse(overBy),
    ...(runs === undefined ? {} : { runs: new Set(runs) }),
  }).map(({ month, parts }) => [month, ...parts.map(({ run_id }) => run_id)].join(" "))

const [early, late, next] = ["a.2026-10-01", "a.2026-10-31", "a.2026-11-01"] as const
const shared = { path: "tables/runs/run_date=2026-10-01=2026-10-31/2026-10-v2.parquet", file_rows: 2 }

describe("the files of a month", () => {
  it("become one once the whole month is over, in the order of date and run", () => {
    const manifest = manifestOf(aRun(next), aRun(late), aRun("b.2026-10-01"), aRun(early))
    assert.deepStrictEqual(chosenFiles(manifest), [`2026-10 ${early} b.2026-10-01 ${late}`])
    assert.deepStrictEqual(chosenFiles(manifest, "2026-10-31T23:59:59Z"), [])
    assert.deepStrictEqual(chosenFiles(manifest, "2027-01-01", [early, late]), [`2026-10 ${early} ${late}`])
  })

  it("stay as they are if there is one, or if they are large, of a run that goes on, or of another schema", () => {
    assert.deepStrictEqual(chosenFiles(manifestOf(aRun(early))), [])
    const large = aRun(late, { files: [file(late, { bytes: 32 * mb })] })
    assert.deepStrictEqual(chosenFiles(manifestOf(aRun(early), large)), [])
    assert.deepStrictEqual(chosenFiles(manifestOf(aRun(early), aRun(late, { interim: true }))), [])
  })

  it("of a run that are several become one, and a file that is full is followed by another", () => {
    const parts = [file(early), file(early, { path: "tables/runs/run_date=2026-10-01/x-v1-2.parquet" })]
    assert.deepStrictEqual(chosenFiles(manifestOf(aRun(early, { files: parts }))), [`2026-10 ${early}`])
    const runs = ["01", "02", "03", "04", "05"].map((day) => `a.2026-10-${day}`)
    const big = runs.map((run) => aRun(run, { files: [file(run, { bytes: 31 * mb })] }))
    assert.deepStrictEqual(chosenFiles(manifestOf(...big)), [
      `2026-10 ${runs[0]} ${runs[1]}`,
      `2026-10 ${runs[2]} ${runs[3]}`,
    ])
  })

  it("that several runs share are taken with all of these runs or not at all", () => {
    const [one, other] = [early, late].map((run) => aRun(run, { files: [file(run, shared)] }))
    const again = aRun("a.2026-10-15")
    const manifest = manifestOf(one ?? {}, other ?? {}, again)
    assert.deepStrictEqual(chosenFiles(manifestOf(one ?? {}, other ?? {})), [])
    assert.deepStrictEqual(chosenFiles(manifest), [`2026-10 ${early} ${late} a.2026-10-15`])
    assert.deepStrictEqual(chosenFiles(manifest, "2026-11-01", [early, "a.2026-10-15"]), [])
  })

  it("have a path that a glob for dates finds, and that is told from a night's", () => {
    const taken = new Set<string>()
    const path = () => monthPath({ table: "runs", month: "2028-02" }, 7, taken)
    assert.deepStrictEqual(
      [path(), path()],
      [
        "tables/runs/run_date=2028-02-01=2028-02-29/2028-02-v7.parquet",
        "tables/runs/run_date=2028-02-01=2028-02-29/2028-02-v7-2.parquet",
      ],
    )
    assert.deepStrictEqual(readPath(path()), { table: "runs", version: 7, own: undefined })
    const own = { run_id: early, run_date: "2026-10-01" }
    assert.deepStrictEqual(readPath(file(early).path), { table: "runs", version: 1, own })
  })
})
