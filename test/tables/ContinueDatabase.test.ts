/**
 * A database that is continued from night to night has the rows of one that is built of all files, whatever happened
 * before; one that is not the published one, or whose earlier rows change, is not continued.
 */
import { appendFileSync, cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe } from "@effect/vitest"
import { Effect, type Layer } from "effect"
import { DuckDb } from "../../src/base/DuckDb.ts"
import { FileCalls, machineCalls } from "../../src/base/DurableFile.ts"
import {
  amendDatabase,
  buildDatabase,
  databaseVersion,
  memoryLimits,
  renumberDatabase,
} from "../../src/tables/BuildDatabase.ts"
import { recover } from "../../src/tables/Version.ts"
import { isUnchanged, nextDatabase, withDatabase } from "../../src/tables/NextDatabase.ts"
import { layoutOf, markOf, nothingPublished, readManifest, type Manifest } from "../../src/tables/Manifest.ts"
import { Publisher } from "../../src/tables/Publisher.ts"
import { openStore, openStoreAsked } from "../../src/tables/OpenStore.ts"
import {
  append,
  begin,
  engine,
  folder,
  foundation,
  liveNight,
  namesIn,
  profileOf,
  publish,
  publisherOptions,
  resultsOf,
  succeed,
  opened,
  relationsIn,
  rowsOf,
  layers,
  storeOf,
  liveDuckDb,
} from "./night.ts"
import { copiesOf } from "../harness/CopiesOf.ts"
import { Progress } from "../../src/task/Progress.ts"
import { anId } from "../harness/Id.ts"
import { live } from "../harness/Steps.ts"

/** An output folder, its schemas, and how often a database was continued in it. */
const placeIn = (base: string) => {
  const root = join(base, "output")
  const schemas = join(base, "schemas")
  mkdirSync(root, { recursive: true })
  cpSync(publisherOptions(root).schemasFolder, schemas, { recursive: true })
  const options = { ...publisherOptions(root), schemasFolder: schemas }
  const seen = { continued: 0 }
  const calls: FileCalls = {
    ...machineCalls,
    copy: (from, to) => {
      machineCalls.copy(from, to)
      if (to === layoutOf(root).build) seen.continued += 1
    },
  }
  const within = <A, E>(work: Effect.Effect<A, E, Layer.Success<ReturnType<typeof layers>>>) =>
    Effect.provide(work, layers(root, { schemasFolder: schemas }, calls))
  return { base, root, schemas, seen, calls, options, within, store: openStore(options) }
}
type Place = ReturnType<typeof placeIn>
const place = Effect.map(folder, placeIn)
/** Rows that are in one of the two databases only, by table: each has to be as often in both. */
const differences = Effect.fnUntraced(function* ({ base, root, within, options }: Place) {
  const full = join(base, "full")
  rmSync(full, { recursive: true, force: true })
  cpSync(root, full, { recursive: true })
  rmSync(join(full, "nightjar.duckdb"))
  const store = yield* within(openStore({ ...options, root: full }))
  yield* Effect.provide(recover(store), foundation(full))
  const duckdb = yield* DuckDb
  const connection = yield* duckdb.open({ path: ":memory:", access: "read-write" })
  for (const [name, path] of [
    ["one", root],
    ["other", full],
  ] as const)
    yield* connection.run(`ATTACH '${join(path, "nightjar.duckdb")}' AS ${name} (READ_ONLY)`)
  const differ: Array<string> = []
  const told = ["store._runs", "store._asked"]
  for (const name of [...(yield* relationsIn(yield* opened(root))), ...told]) {
    // A view is read once of each, and not once for either direction.
    const rows = yield* connection.rows(`SELECT * EXCLUDE (_n), sum(_n) AS _n FROM (
        SELECT *, 1 AS _n FROM one.${name} UNION ALL SELECT *, -1 FROM other.${name}
      ) GROUP BY ALL HAVING sum(_n) <> 0 LIMIT 1`)
    if (rows.length > 0) differ.push(name)
  }
  return differ
}, Effect.scoped)

const dateOf = (day: number) => `2026-11-${10 + day}`
const names = (root: string) => Effect.map(namesIn(root), (all) => all.join(" "))
const night = (day: number, name: string) => liveNight(`nightly.${dateOf(day)}`, String(day), profileOf(name))

const changeSchema = ({ schemas }: Place, of: (text: string) => readonly [from: string, to: string]) => {
  const file = join(schemas, "customer_profiles.yaml")
  const text = readFileSync(file, "utf8")
  assert.include(text, of(text)[0])
  writeFileSync(file, text.replace(...of(text)))
}

const afterFirst = copiesOf((base) => placeIn(base).within(night(0, "Ana")))
const afterSecond = copiesOf((base) =>
  Effect.gen(function* () {
    cpSync(yield* afterFirst, base, { recursive: true })
    yield* placeIn(base).within(night(1, "Bea"))
  }).pipe(Effect.scoped),
)
const firstNight = Effect.map(afterFirst, placeIn)
const twoNights = Effect.map(afterSecond, placeIn)

/** A task that brought nothing; its id. */
const failed = Effect.fnUntraced(function* (run_id: string, customer_id: string) {
  const task = { run_id: anId(run_id), task_id: anId(`${run_id}/${customer_id}/${engine}`) }
  const asked = { customer_id: anId(customer_id), engine_reference: anId(engine) }
  yield* append([
    { _tag: "TaskPlanned", ...task, ...asked, features: ["customer_information_read"] },
    { _tag: "TaskSettled", ...task, outcome: "failed", reason: "START_UNKNOWN", who_acts: "nobody" },
  ])
  return task.task_id
})

describe("the database of the next version", () => {
  liveDuckDb(
    "is described as it is put into place, also if its log could not be emptied on closing",
    function* () {
      const { root, store, within } = yield* place
      const { build } = layoutOf(root)
      const duckdb = yield* DuckDb
      const left = Effect.gen(function* () {
        const connection = yield* duckdb.open({ path: build, access: "read-write" })
        yield* connection.run(
          "CREATE TABLE t AS SELECT 1 AS a; CHECKPOINT; PRAGMA disable_checkpoint_on_shutdown",
        )
        yield* connection.run("INSERT INTO t SELECT range FROM range(100000)")
      })
      yield* Effect.scoped(left)
      assert.isTrue(existsSync(`${build}.wal`))
      const next = { version: 1, amends: false, runs: {} }
      const built = { gaps: [] }
      const { database } = yield* within(Effect.flatMap(store, (one) => withDatabase(one, next, built)))
      yield* duckdb.atomicSwap(build, layoutOf(root).database)
      const { bytes, mark } = markOf(layoutOf(root).database)
      assert.deepStrictEqual([database?.bytes, database?.mark], [bytes, mark])
    },
  )

  liveDuckDb(
    "is the published one with the night's rows, also of a night that is published again, and of one that brought no record: it ends what it does not ask for, and says what became of what it asks for",
    function* () {
      const at = yield* twoNights
      const { root, seen, within } = at
      const [third, fourth] = [`nightly.${dateOf(2)}`, `nightly.${dateOf(3)}`]
      yield* within(
        Effect.gen(function* () {
          const { publishOutcome } = yield* Publisher
          const run_id = `nightly.${dateOf(0)}`
          yield* succeed(run_id, "more", "c-2", resultsOf(profileOf("Cid")))
          yield* publish(run_id)
          yield* publishOutcome(anId(run_id))
          yield* append([begin(third, dateOf(2))])
          yield* failed(third, "c-2")
          yield* publish(third)
          const ended = `SELECT name, ended_by FROM history.customer_profiles WHERE valid_to = '${dateOf(2)}'`
          assert.deepStrictEqual(yield* rowsOf(root, ended), [{ name: "Bea", ended_by: "not requested" }])
          yield* append([begin(fourth, dateOf(3))])
          const task = { run_id: anId(fourth), task_id: yield* failed(fourth, "c-1") }
          yield* publish(fourth)
          const end = { outcome: "unfinished", reason: "RESULTS_PARTIAL", who_acts: "service" } as const
          yield* append([{ _tag: "TaskSettled", ...task, ...end }])
          yield* publishOutcome(anId(fourth))
          const told = "SELECT outcome, reason, fresh_date::VARCHAR AS fresh_date FROM main.coverage"
          assert.deepStrictEqual(yield* rowsOf(root, told), [
            { outcome: "unfinished", reason: "RESULTS_PARTIAL", fresh_date: dateOf(1) },
          ])
        }),
      )
      assert.strictEqual(seen.continued, 5)
      assert.strictEqual(yield* names(root), "Ana Bea Cid")
      assert.deepStrictEqual(yield* differences(at), [])
    },
  )

  liveDuckDb("that is gone is built of all files, and continued from there", function* () {
    const { root, seen, within } = yield* twoNights
    rmSync(join(root, "nightjar.duckdb"))
    const told: Array<unknown> = []
    const tell = (event: unknown) => Effect.sync(() => void told.push(event))
    yield* Effect.provideService(within(night(2, "Cid")), Progress, { tell })
    const building = (done: number) => ({ _tag: "Building", done, runs: 2 })
    assert.deepStrictEqual(told, [building(0), building(1)])
    assert.strictEqual(seen.continued, 1)
    assert.strictEqual(yield* names(root), "Ana Bea Cid")
  })

  liveDuckDb(
    "is continued only if it is the published one, made by this program with these schemas [promise 6 continued]",
    function* () {
      const at = yield* twoNights
      const { root, options, within } = at
      const current = readManifest(layoutOf(root).manifest) ?? nothingPublished
      const isContinued = (manifest: Manifest = current, more: object = {}) =>
        within(
          Effect.flatMap(openStoreAsked({ ...options, ...more }), (store) => isUnchanged(store, manifest)),
        )
      const { database: _, ...undescribed } = current
      assert.deepStrictEqual(
        [
          yield* isContinued(),
          yield* isContinued(undescribed),
          yield* isContinued({ ...current, returned: { to: 1, from: 2 } }),
          yield* isContinued(current, { toolVersion: "0.2.0" }),
        ],
        [true, false, false, false],
      )
      changeSchema(at, () => ["birth_date:", "born:"])
      assert.isFalse(yield* isContinued())
      changeSchema(at, () => ["born:", "birth_date:"])
      assert.isTrue(yield* isContinued())
      const path = layoutOf(root).database
      const bytes = readFileSync(path)
      const marks = [
        undefined,
        ...Array.from({ length: (bytes.length - 12_288) / 65_536 }, (_, block) => block),
      ].map((block) => {
        const changed = Buffer.from(bytes)
        if (block !== undefined) changed[12_288 + block * 65_536]! ^= 1
        writeFileSync(join(root, "changed"), changed)
        return markOf(join(root, "changed")).mark
      })
      assert.strictEqual(new Set(marks).size, marks.length)
      const changed = Buffer.from(bytes)
      changed[12_288]! ^= 1
      writeFileSync(path, changed)
      assert.isFalse(yield* isContinued())
    },
  )

  liveDuckDb(
    "[decision grown] is built of all files if it has grown too much, or if one of them has another size",
    function* () {
      const { root, seen, calls, store, within } = yield* twoNights
      const current = readManifest(layoutOf(root).manifest) ?? nothingPublished
      const { database } = current
      const run = { run_date: dateOf(2), version: 3, files: [] }
      const next = { ...current, version: 3, runs: { ...current.runs, [`nightly.${dateOf(2)}`]: run } }
      const made = Effect.fnUntraced(function* (now: Manifest) {
        const making = { current: now, next, isAnew: false, restored: undefined }
        const build = Effect.flatMap(store, (one) => nextDatabase(one, making))
        yield* within(Effect.provideService(build, FileCalls, calls))
        return seen.continued
      })
      const grown = (times: number) => {
        const { bytes } = database ?? { bytes: 0 }
        return { ...current, ...(database && { database: { ...database, built_bytes: bytes / times } }) }
      }
      const counts = [yield* made(current), yield* made(grown(3)), yield* made(grown(5))]
      const path = `tables/sessions/run_date=${dateOf(0)}/nightly.${dateOf(0)}-v1.parquet`
      appendFileSync(join(root, path), "x")
      assert.deepStrictEqual([...counts, yield* made(current)], [1, 2, 2, 2])
    },
  )
})

describe("a database of which a bit has flipped", () => {
  liveDuckDb("is built of all files where the night reads that block", function* () {
    const { root, within } = yield* firstNight
    const { database } = layoutOf(root)
    const bytes = readFileSync(database)
    const at = bytes.lastIndexOf("Ana@example.test")
    assert.isAbove(at, 0)
    bytes[at]! ^= 1
    writeFileSync(database, bytes)
    assert.isUndefined(yield* databaseVersion(database, true))
    yield* within(night(1, "Bea"))
    assert.strictEqual(yield* names(root), "Ana Bea")
    assert.isDefined(yield* databaseVersion(database, true))
  })
})

describe("a version that lacks a run of the one before", () => {
  liveDuckDb("is built of all its files: the rows of that run would stay", function* () {
    const { root, store, within } = yield* firstNight
    const current = readManifest(layoutOf(root).manifest) ?? nothingPublished
    const other = { run_date: dateOf(1), version: 2, files: [] }
    const next = { ...current, version: 2, runs: { [`nightly.${dateOf(1)}`]: other } }
    yield* within(
      Effect.flatMap(store, (one) =>
        nextDatabase(one, { current, next, isAnew: false, restored: undefined }),
      ),
    )
    const duckdb = yield* DuckDb
    const { rows } = yield* duckdb.open({ path: layoutOf(root).build, access: "read-only" })
    assert.deepStrictEqual(yield* rows("SELECT count(*)::INTEGER AS n FROM nights.customer_profiles"), [
      { n: 0 },
    ])
  })
})

describe("a database", () => {
  live("that cannot be opened is a publication that failed, whatever was to be done with it", function* () {
    const root = yield* folder
    const standing = yield* Effect.provide(storeOf(root), foundation(root))
    const store = { ...standing, layout: layoutOf(join(root, "missing")) }
    const options = { lost: new Map(), memoryLimit: memoryLimits[0] }
    for (const work of [
      buildDatabase(store, nothingPublished, options),
      amendDatabase(store, nothingPublished, [], []),
      renumberDatabase(store.layout.build, 2),
    ]) {
      const failed = yield* Effect.flip(Effect.provide(work, foundation(root)))
      assert.strictEqual(failed._tag, "PublishFailed")
    }
  })
})
