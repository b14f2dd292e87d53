/**
 * Delta logs beside real files: an independent replay of a log finds the files of the version that is published,
 * whatever became of the writer, and a log that is read every night stays short.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { DuckDb } from "../../src/base/DuckDb.ts"
import { DurableFiles, machineCalls } from "../../src/base/DurableFile.ts"
import { clearStrays, strayFiles } from "../../src/tables/Commit.ts"
import { nextActions } from "../../src/tables/DeltaActions.ts"
import type { DeltaFile } from "../../src/tables/DeltaActions.ts"
import { appendCommit, readLog, shorten } from "../../src/tables/DeltaLog.ts"
import { bringDeltaLogs, differingDeltaLogs } from "../../src/tables/DeltaLogs.ts"
import { forgetRows } from "../../src/tables/ForgetRows.ts"
import { filesOf, layoutOf, modesOf, readManifest } from "../../src/tables/Manifest.ts"
import type { Manifest } from "../../src/tables/Manifest.ts"
import { filesBelow } from "../../src/tables/OutputFiles.ts"
import { Publisher } from "../../src/tables/Publisher.ts"
import { PublisherDuckDb } from "../../src/tables/PublisherDuckDb.ts"
import { repair } from "../../src/tables/Repair.ts"
import { rollback } from "../../src/tables/Rollback.ts"
import type { Store } from "../../src/tables/Store.ts"
import { engineDescriptionsTable } from "../../src/tables/SystemTables.ts"
import { TableBuilder, column } from "../../src/records/Columns.ts"
import type { TableSpec } from "../../src/records/Columns.ts"
import { parquetBytes } from "../../src/records/Parquet.ts"
import { refusingFrom } from "../base/FaultyCalls.ts"
import { anId } from "../harness/Id.ts"
import { snapshotOf } from "./DeltaReplay.ts"
import {
  folder,
  foundation,
  liveNight,
  problemsIn,
  profileOf,
  publisherOptions,
  rowsOf,
  storeOf,
} from "./night.ts"

const spec = engineDescriptionsTable
const snapshot = (root: string, version?: number) =>
  Effect.promise(() => snapshotOf(join(root, "tables", spec.name), version))

const storeIn = (root: string, files = new DurableFiles(machineCalls), delta?: boolean): Store => ({
  layout: layoutOf(root),
  modes: modesOf("none"),
  files,
  families: [],
  schemas: { texts: new Map(), gone: [] },
  toolVersion: "0.1.0",
  delta,
  versionsKept: 2,
})

const bytesOf = (table: TableSpec): Uint8Array => {
  const rows = new TableBuilder(table)
  rows.appendRow({ run_id: "n", run_date: 20_000, engine_reference: "e" })
  return parquetBytes(table, rows.finish(), {})
}
const whole = bytesOf(spec)

/** A version with these files of the table, which are there. */
const versionWith = (
  root: string,
  version: number,
  names: ReadonlyArray<string>,
  bytes = whole,
): Manifest => {
  const files = names.map((name) => {
    const path = `tables/${spec.name}/run_date=2026-11-20/${name}.parquet`
    if (!existsSync(join(root, path))) {
      mkdirSync(dirname(join(root, path)), { recursive: true })
      writeFileSync(join(root, path), bytes)
    }
    return { table: spec.name, path, rows: 1, bytes: statSync(join(root, path)).size, sha256: "aa" }
  })
  return { version, amends: false, runs: { n: { run_date: "2026-11-20", version, files } } }
}
/** One that is not there: whether it is, nobody asks who writes the log alone. */
const fileOf = (name: string): DeltaFile => ({
  table: spec.name,
  path: `tables/${spec.name}/${pathsOf(name)[0]}`,
  bytes: 1,
  rows: 1,
  firstDate: "2026-11-20",
  lastDate: "2026-11-20",
})
const pathsOf = (...names: ReadonlyArray<string>) =>
  names.map((name) => `run_date=2026-11-20/${name}.parquet`)
const logOf = (root: string) => join(root, "tables", spec.name, "_delta_log")
const written = { written: [spec.name], removed: [], notes: [] }

describe("the Delta log of a table", () => {
  it.live("begins only if it was asked for, goes on by itself, and ends if it is not wanted any more", () =>
    Effect.gen(function* () {
      const root = yield* folder
      const bring = (delta: boolean | undefined, manifest: Manifest) =>
        bringDeltaLogs(storeIn(root, undefined, delta), manifest)
      yield* bring(undefined, versionWith(root, 1, ["a"]))
      assert.isFalse(existsSync(logOf(root)))
      assert.deepStrictEqual(yield* bring(true, versionWith(root, 1, ["a"])), written)
      assert.deepStrictEqual(yield* bring(undefined, versionWith(root, 2, ["a", "b"])), written)
      assert.deepInclude(yield* snapshot(root), { version: 1, paths: pathsOf("a", "b") })
      assert.deepInclude(yield* snapshot(root, 0), { version: 0, paths: pathsOf("a") })
      // A file that was lost is nobody's to name.
      const lost = versionWith(root, 3, ["a", "b"])
      rmSync(join(root, "tables", spec.name, pathsOf("b")[0] ?? ""))
      assert.deepStrictEqual(yield* bring(undefined, lost), written)
      assert.deepInclude(yield* snapshot(root), { version: 2, paths: pathsOf("a") })
      assert.deepStrictEqual(yield* bring(undefined, lost), { written: [], removed: [], notes: [] })
      // A log that cannot be read now keeps no other from going on.
      const other = join(root, "tables/runs/_delta_log")
      mkdirSync(join(other, "00000000000000000000.json"), { recursive: true })
      const { notes, ...done } = yield* bring(undefined, versionWith(root, 4, ["a", "c"]))
      assert.deepStrictEqual(
        [done, notes.map(({ table }) => table)],
        [{ written: [spec.name], removed: [] }, ["runs"]],
      )
      rmSync(other, { recursive: true })
      const ended = { written: [], removed: [spec.name], notes: [] }
      assert.deepStrictEqual(yield* bring(false, lost), ended)
      assert.isFalse(existsSync(logOf(root)))
    }).pipe(Effect.provide(DuckDb.layer), Effect.scoped),
  )

  it.live("stays short for ever, and can be asked for each of the last hundred states", () =>
    Effect.gen(function* () {
      const root = yield* folder
      const store = storeIn(root, new DurableFiles({ ...machineCalls, sync: () => undefined }))
      const duckdb = yield* DuckDb
      const opened = yield* Effect.cached(duckdb.open({ path: ":memory:", access: "read-write", threads: 1 }))
      const names: Array<string> = []
      for (let version = 0; version < 145; version += 1) {
        names.push(`f${String(version).padStart(3, "0")}`)
        // Half of what is added is taken out again.
        if (version % 2 === 1) names.shift()
        const state = yield* readLog(logOf(root), opened)
        const files = names.map((name) => fileOf(name))
        const actions = nextActions({ state, spec, files }, { at: version, version, tool: "0.1.0" })
        const after = yield* appendCommit(store, logOf(root), state, actions)
        assert.strictEqual(after?.version, version)
        if (after !== undefined) yield* shorten(store, logOf(root), after, opened)
      }
      assert.deepInclude(yield* snapshot(root), { version: 144, paths: pathsOf(...names) })
      const { paths } = yield* snapshot(root, 44)
      assert.deepStrictEqual([paths[0], paths.at(-1), paths.length], [...pathsOf("f022", "f044"), 23])
      const name = (version: number, ending: string) => `${String(version).padStart(20, "0")}.${ending}`
      assert.deepStrictEqual(readdirSync(logOf(root)).toSorted(), [
        ...Array.from({ length: 105 }, (_, index) => 40 + index).flatMap((version) => [
          ...(version % 20 === 0 ? [name(version, "checkpoint.parquet")] : []),
          name(version, "json"),
        ]),
        "_last_checkpoint",
      ])
      const pointer: unknown = JSON.parse(readFileSync(join(logOf(root), "_last_checkpoint"), "utf8"))
      assert.deepStrictEqual(pointer, { version: 140, size: 2 + 71 })
      assert.deepStrictEqual(strayFiles(store, { version: 1, amends: false, runs: {} }), [])
    }).pipe(Effect.provide(DuckDb.layer), Effect.scoped),
  )

  it.live(
    "says one version or the next wherever its writer is stopped, and the next writer finishes it",
    () =>
      Effect.gen(function* () {
        const ends = new Set<number>()
        for (let failing = 1, isDone = false; !isDone; failing += 1) {
          const root = yield* folder
          yield* bringDeltaLogs(storeIn(root, undefined, true), versionWith(root, 1, ["a"]))
          const next = versionWith(root, 2, ["b"])
          const { notes } = yield* bringDeltaLogs(storeIn(root, refusingFrom(failing).files), next)
          isDone = notes.length === 0
          const { version, paths } = yield* snapshot(root)
          assert.deepStrictEqual(paths, version === 0 ? pathsOf("a") : pathsOf("b"))
          ends.add(version)
          const store = storeIn(root)
          assert.deepStrictEqual(yield* differingDeltaLogs(store, next), version === 0 ? [spec.name] : [])
          // What is left of it is nobody's, but the log is not.
          yield* clearStrays(store, next)
          yield* bringDeltaLogs(store, next)
          assert.deepInclude(yield* snapshot(root), { version: 1, paths: pathsOf("b") })
          assert.deepStrictEqual(yield* differingDeltaLogs(store, next), [])
          assert.deepStrictEqual(readdirSync(logOf(root)).toSorted(), [
            "00000000000000000000.json",
            "00000000000000000001.json",
          ])
        }
        assert.deepStrictEqual([...ends].toSorted(), [0, 1])
      }).pipe(Effect.provide(DuckDb.layer), Effect.scoped),
  )

  it.live("begins anew if it cannot be read, or if somebody else wrote to it", () =>
    Effect.gen(function* () {
      const root = yield* folder
      const store = storeIn(root, undefined, true)
      const spoils: ReadonlyArray<() => void> = [
        () => writeFileSync(join(logOf(root), "00000000000000000001.json"), '{"add":{"pa'),
        () =>
          writeFileSync(
            join(logOf(root), "00000000000000000001.json"),
            '{"txn":{"appId":"x","version":1}}\n',
          ),
        () => writeFileSync(join(logOf(root), "00000000000000000002.json"), ""),
        () => rmSync(join(logOf(root), "00000000000000000000.json")),
        () => writeFileSync(join(logOf(root), "00000000000000000007.checkpoint.parquet"), "PAR1"),
      ]
      for (const spoil of spoils) {
        rmSync(logOf(root), { recursive: true, force: true })
        yield* bringDeltaLogs(store, versionWith(root, 1, ["a"]))
        spoil()
        const next = versionWith(root, 2, ["a", "b"])
        assert.deepStrictEqual(yield* differingDeltaLogs(store, next), [spec.name])
        assert.deepStrictEqual(yield* bringDeltaLogs(store, next), written)
        assert.deepInclude(yield* snapshot(root), { version: 0, paths: pathsOf("a", "b") })
        assert.deepStrictEqual(readdirSync(logOf(root)), ["00000000000000000000.json"])
      }
    }).pipe(Effect.provide(DuckDb.layer), Effect.scoped),
  )

  it.live(
    "is taken away while a file has other types than the table, and none lacks the date of its run",
    () =>
      Effect.gen(function* () {
        const root = yield* folder
        const store = storeIn(root, undefined, true)
        yield* bringDeltaLogs(store, versionWith(root, 1, ["a"]))
        const columns = spec.columns.filter(({ name }) => name !== "website")
        const undated = { ...spec, columns: spec.columns.filter(({ name }) => name !== "run_date") }
        const older = { ...spec, columns }
        const other = { ...spec, columns: [...columns, column("website", "INTEGER", "")] }
        const noteOf = (name: string, why: string) => {
          const path = `tables/${spec.name}/${pathsOf(name)[0]}`
          return {
            written: [],
            removed: [spec.name],
            notes: [{ table: spec.name, why: `${path}: ${why}`, is_left_out: true as const }],
          }
        }
        // A column that was added since is NULL in it.
        assert.deepStrictEqual(
          yield* bringDeltaLogs(store, versionWith(root, 2, ["a", "b"], bytesOf(older))),
          written,
        )
        const changed = versionWith(root, 3, ["a", "c"], bytesOf(other))
        assert.deepStrictEqual(
          yield* bringDeltaLogs(store, changed),
          noteOf("c", "its website is INTEGER, that of the table VARCHAR"),
        )
        assert.isFalse(existsSync(logOf(root)))
        assert.deepStrictEqual(yield* differingDeltaLogs(store, changed), [])
        mkdirSync(logOf(root))
        assert.deepStrictEqual(yield* differingDeltaLogs(store, changed), [spec.name])
        const rows = new TableBuilder(undated)
        rows.appendRow({ run_id: "n", engine_reference: "e" })
        assert.deepStrictEqual(
          yield* bringDeltaLogs(store, versionWith(root, 4, ["d"], parquetBytes(undated, rows.finish(), {}))),
          noteOf("d", "it has no run_date"),
        )
        assert.deepStrictEqual(yield* bringDeltaLogs(store, versionWith(root, 5, ["a"])), written)
      }).pipe(Effect.provide(DuckDb.layer), Effect.scoped),
  )
})

/** Every table as its log says it is, beside what the database says. */
const differing = Effect.fnUntraced(function* (root: string) {
  const manifest = readManifest(layoutOf(root).manifest)
  const tables = readdirSync(join(root, "tables")).filter((name) => !name.endsWith(".json"))
  const found: Array<string> = []
  for (const table of tables) {
    const { paths } = yield* Effect.promise(() => snapshotOf(join(root, "tables", table)))
    const listed = manifest === undefined ? [] : filesOf(manifest).filter((file) => file.table === table)
    const expected = listed.map(({ path }) => path.slice(`tables/${table}/`.length)).toSorted()
    if (paths.join() !== expected.join()) found.push(table)
    const files = paths.map((path) => `'${join(root, "tables", table, path)}'`)
    const source = `read_parquet([${files.join()}], union_by_name = true, hive_partitioning = false)`
    const names = "run_id, run_date"
    if (paths.length > 0)
      found.push(
        ...(yield* rowsOf(
          root,
          `(SELECT ${names} FROM ${table} EXCEPT ALL SELECT ${names} FROM ${source})
            UNION ALL (SELECT ${names} FROM ${source} EXCEPT ALL SELECT ${names} FROM ${table})`,
        )).map(() => table),
      )
  }
  return found
})

describe("a folder whose job asks for Delta logs", () => {
  it.live(
    "has them with every publication, rollback and repair, and without a customer who was removed",
    () =>
      Effect.gen(function* () {
        const root = yield* folder
        const options = { ...publisherOptions(root), delta: true }
        yield* Effect.gen(function* () {
          yield* liveNight("nightly.2026-11-20", "1", profileOf("Ana"))
          yield* liveNight("nightly.2026-11-21", "2", profileOf("Bea"))
          assert.deepStrictEqual([yield* differing(root), yield* problemsIn(root)], [[], []])
          const publisher = yield* Publisher
          yield* publisher.publishOutcome(anId("nightly.2026-11-21"))
          yield* Effect.flatMap(storeOf(root), rollback)
          assert.deepStrictEqual([yield* differing(root), yield* problemsIn(root)], [[], []])
          const profiles = join(root, "tables/customer_profiles")
          const versions = yield* Effect.forEach([0, 1, 2], (version) =>
            Effect.promise(() => snapshotOf(profiles, version)),
          )
          assert.deepStrictEqual(
            versions.map(({ paths }) => paths.length),
            [1, 2, 1],
          )
          rmSync(join(root, "tables/emails/_delta_log"), { recursive: true })
          writeFileSync(join(root, "tables/runs/_delta_log/00000000000000000001.json"), "{}\n")
          const where = (name: string) => `tables/${name}/_delta_log`
          assert.deepStrictEqual(
            (yield* problemsIn(root)).map((problem) => [problem.id, problem.where]),
            [
              ["delta-log-differs", where("runs")],
              ["delta-log-differs", where("emails")],
            ],
          )
          const store = yield* storeOf(root)
          assert.deepStrictEqual(yield* repair(store, "0.1.0"), {
            done: ["runs", "emails"].map((name) => `${where(name)}: brought up to date`),
            left: [],
          })
          const forgotten = {
            customer_id: anId("c-1"),
            executions: new Set<string>(),
            tasks: new Set<string>(),
          }
          yield* forgetRows(yield* storeOf(root), "0.1.0", forgotten)
          assert.deepStrictEqual([yield* differing(root), yield* problemsIn(root)], [[], []])
          // An id of a table is made of hexadecimal digits, any of which may stand before a hyphen.
          const traces = /(?<![A-Za-z0-9_-])c-1(?![A-Za-z0-9_-])|Ana|Bea/
          const texts = filesBelow(root)
            .filter((path) => path.includes("_delta_log"))
            .map((path) => readFileSync(join(root, path), "utf8"))
          assert.isAbove(texts.length, 20)
          assert.deepStrictEqual(
            texts.filter((text) => traces.test(text)),
            [],
          )
        }).pipe(Effect.provide(PublisherDuckDb.layer(options).pipe(Layer.provideMerge(foundation(root)))))
      }).pipe(Effect.scoped),
  )
})
