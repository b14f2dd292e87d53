/**
 * `current/` and `history/` have what `main` and `history` show, after every edit that makes a whole version; a reader
 * who resolved the folder before keeps it, unless a customer was taken out.
 */
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs"
import { join } from "node:path"
import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { DuckDb } from "../../src/base/DuckDb.ts"
import { sha256Hex } from "../../src/base/Hashes.ts"
import { backup } from "../../src/folder/Backup.ts"
import { forgetRows } from "../../src/tables/ForgetRows.ts"
import { filesBelow, layoutOf, readManifest } from "../../src/tables/Manifest.ts"
import { Publisher } from "../../src/tables/Publisher.ts"
import { repair } from "../../src/tables/Repair.ts"
import { rollback } from "../../src/tables/Rollback.ts"
import { copiesOf } from "../harness/CopiesOf.ts"
import { anId } from "../harness/Id.ts"
import {
  account,
  append,
  begin,
  engine,
  folder,
  foundation,
  layers,
  problemsIn,
  profileOf,
  publish,
  resultsOf,
  storeOf,
  succeed,
  liveIn,
} from "./night.ts"
import { live } from "../harness/Steps.ts"

type Folders = ReadonlyArray<"current" | "history">
const inFolder = (root: string, parquet: Folders = ["current", "history"]) => layers(root, { parquet })

const runOf = (day: number) => `nightly.2026-11-${day}`
/** A night of these customers and their names, with what else each of them has. */
const night = Effect.fnUntraced(function* (
  day: number,
  people: Readonly<Record<string, string>>,
  ...more: ReadonlyArray<object>
) {
  const run = runOf(day)
  yield* append([begin(run, run.slice("nightly.".length))])
  for (const [customer, name] of Object.entries(people))
    yield* succeed(run, `${day}-${customer}`, customer, resultsOf(profileOf(name), ...more))
  return yield* publish(run)
})

const firstNight = copiesOf((root) =>
  Effect.provide(night(20, { "c-1": "Ana", "c-2": "Bea" }, account), inFolder(root)),
)

const texts = (rows: ReadonlyArray<Readonly<Record<string, unknown>>>) =>
  rows.map((row) =>
    JSON.stringify(row, (_, value: unknown) => (typeof value === "bigint" ? `${value}` : value)),
  )

/** Whether a table's files are those that the version before has, too. */
const isLinked = (root: string, table: string) =>
  [`current/${table}.parquet`, `history/${table}/open.parquet`].map(
    (path) => statSync(join(root, path)).nlink > 1,
  )

/** Every view beside its files; what differs. */
const differences = Effect.fnUntraced(function* (root: string) {
  const { open } = yield* DuckDb
  const { rows } = yield* open({ path: join(root, "nightjar.duckdb"), access: "read-only" })
  const memory = yield* open({ path: ":memory:", access: "read-write" })
  const found = yield* rows(`SELECT v.schema_name, v.view_name, c.column_name, c.data_type
    FROM duckdb_views() AS v JOIN duckdb_columns() AS c
      ON c.schema_name = v.schema_name AND c.table_name = v.view_name
    WHERE NOT v.internal AND v.schema_name IN ('main', 'history') AND c.column_name <> 'age_days'
    ORDER BY v.schema_name, v.view_name, c.column_index`)
  const views = Map.groupBy(found, ({ schema_name, view_name }) => `${schema_name}.${view_name}`)
  assert.isAbove(views.size, 4)
  const wrong: Array<string> = []
  for (const [view, all] of views) {
    const [schema, name] = view.split(".")
    const place = schema === "main" ? `current/${name}.parquet` : `history/${name}/*.parquet`
    const columns = all.map(
      ({ column_name, data_type }) => `"${column_name}"${data_type === "JSON" ? "::VARCHAR" : ""}`,
    )
    const select = `SELECT ${columns.join(", ")} FROM`
    const shown = yield* rows(`${select} ${view} ORDER BY ALL`)
    const filed = yield* memory.rows(`${select} read_parquet('${root}/${place}') ORDER BY ALL`)
    if (texts(shown).join("\n") !== texts(filed).join("\n")) wrong.push(place)
  }
  return wrong
}, Effect.scoped)

const versionIn = (root: string): string =>
  /parquet-(v\d+)/.exec(realpathSync(join(root, "current")))?.[1] ?? ""
const foldersIn = (root: string) =>
  readdirSync(join(root, "published"))
    .filter((name) => name.startsWith("parquet-"))
    .toSorted()
const endedIn = (root: string, table = "customer_profiles") =>
  filesBelow(join(realpathSync(join(root, "history")), table)).filter((name) => name.startsWith("ended-"))

const forgetBea = (root: string) => {
  const [tasks, executions] = [
    [20, 21, 22].map((day) => `${runOf(day)}/c-2/${engine}`),
    ["e-20-c-2", "e-21-c-2"],
  ]
  const forgotten = { customer_id: anId("c-2"), tasks: new Set(tasks), executions: new Set(executions) }
  return Effect.flatMap(storeOf(root), (store) => forgetRows(store, forgotten))
}

describe("a rollback", () => {
  liveIn(firstNight, inFolder)(
    "to a database of a version that had no current rows has no such files",
    function* (root) {
      yield* night(21, { "c-1": "Bea" })
      const { previousDatabase } = layoutOf(root)
      const { open } = yield* DuckDb
      yield* Effect.scoped(
        Effect.gen(function* () {
          rmSync(previousDatabase)
          const old = yield* open({ path: previousDatabase, access: "read-write" })
          yield* old.run(
            `CREATE TABLE customer_profiles AS SELECT 'Ana' AS name; CREATE MACRO published_version() AS 1;
                CREATE SCHEMA history; CREATE VIEW history.customer_profiles AS FROM customer_profiles`,
          )
        }),
      )
      const kept = join(root, "published/previous/1.json")
      writeFileSync(kept, readFileSync(kept, "utf8").replace('"database"', '"another"'))
      const { _tag } = yield* Effect.flatMap(storeOf(root), rollback)
      assert.strictEqual(_tag, "RolledBack")
      assert.isFalse(existsSync(join(root, "current")))
      yield* night(22, { "c-1": "Cid" })
      assert.deepStrictEqual(yield* differences(root), [])
    },
  )
})

describe("current/ and history/", () => {
  liveIn(firstNight, inFolder)(
    "have what the views show, night after night and after a repair; those of tables without news are the files before",
    function* (root) {
      const seen: Array<unknown> = []
      const linked = () => ["customer_profiles", "other_records"].map((table) => isLinked(root, table))
      const [own, asBefore] = [
        [false, false],
        [true, true],
      ]
      const look = (what: string) =>
        seen.push([what, versionIn(root), foldersIn(root).join(), endedIn(root).join()])
      look("first")
      assert.deepStrictEqual(linked(), [own, own])
      yield* night(21, { "c-1": "Anna", "c-2": "Bea" })
      assert.deepStrictEqual(linked(), [own, asBefore])
      look("changed")
      const resolved = realpathSync(join(root, "current"))
      const before = readFileSync(join(resolved, "customer_profiles.parquet"))
      yield* night(22, { "c-1": "Anne" })
      look("changed, and one left")
      assert.deepStrictEqual(yield* differences(root), [])
      // Rows that only ended are news.
      assert.deepStrictEqual(linked(), [own, own])
      assert.deepStrictEqual(readFileSync(join(resolved, "customer_profiles.parquet")), before)
      const publisher = yield* Publisher
      yield* publisher.publishOutcome(anId(runOf(22)))
      look("outcome")
      rmSync(join(root, "published", `parquet-${versionIn(root)}`), { recursive: true })
      assert.deepStrictEqual(
        (yield* problemsIn(root)).map(({ where }) => where),
        ["published/parquet-v3", "current", "history"],
      )
      yield* Effect.flatMap(storeOf(root), (store) => repair(store))
      look("repair")
      assert.deepStrictEqual(yield* differences(root), [])
      assert.deepStrictEqual(seen, [
        ["first", "v1", "parquet-v1", ""],
        ["changed", "v2", "parquet-v1,parquet-v2", "ended-v2.parquet"],
        ["changed, and one left", "v3", "parquet-v2,parquet-v3", "ended-v2.parquet,ended-v3.parquet"],
        ["outcome", "v3", "parquet-v2,parquet-v3", "ended-v2.parquet,ended-v3.parquet"],
        ["repair", "v5", "parquet-v5", "ended-v5.parquet"],
      ])
      assert.strictEqual(statSync(join(root, "current/customer_profiles.parquet")).mode & 0o777, 0o600)
    },
  )

  liveIn(folder, inFolder)(
    "of a list are the files before, unless a record that has items in it was read, or ended [files lists]",
    function* (root) {
      const look = Effect.fnUntraced(function* (
        day: number,
        name: string,
        ...emails: ReadonlyArray<unknown>
      ) {
        const run = runOf(day)
        yield* append([begin(run, run.slice("nightly.".length))])
        yield* succeed(run, String(day), "c-1", resultsOf({ ...profileOf(name), emails }))
        yield* publish(run)
        assert.deepStrictEqual(yield* differences(root), [])
        return [isLinked(root, "emails"), endedIn(root, "emails")]
      })
      const [own, asBefore] = [
        [false, false],
        [true, true],
      ]
      assert.deepStrictEqual(yield* look(20, "Ana"), [own, []])
      assert.deepStrictEqual(yield* look(21, "Anna"), [asBefore, []])
      assert.deepStrictEqual(yield* look(22, "Anna", { odd: 1 }), [own, []])
      // The same content, with another item that is no text beside it.
      assert.deepStrictEqual(yield* look(23, "Anna", { odd: 2 }), [own, []])
      assert.deepStrictEqual(yield* look(24, "Anna"), [own, ["ended-v5.parquet"]])
      assert.deepStrictEqual(yield* look(25, "Anne"), [asBefore, ["ended-v5.parquet"]])
    },
  )

  const twoNights = copiesOf((root) =>
    Effect.gen(function* () {
      cpSync(yield* firstNight, root, { recursive: true, verbatimSymlinks: true })
      yield* Effect.provide(night(21, { "c-1": "Anna", "c-2": "Bea" }), inFolder(root))
    }).pipe(Effect.scoped),
  )
  /** What `verify` names then, and which ended versions have files of their own after the next night. */
  const afterBreaking = (wrong: (root: string) => void) =>
    Effect.gen(function* () {
      const root = yield* twoNights
      return yield* Effect.gen(function* () {
        wrong(root)
        const named = (yield* problemsIn(root)).map(({ where }) => where)
        yield* night(22, { "c-1": "Anni", "c-2": "Bea" })
        assert.deepStrictEqual([yield* problemsIn(root), yield* differences(root)], [[], []])
        return { named, ended: endedIn(root) }
      }).pipe(Effect.provide(inFolder(root)))
    }).pipe(Effect.scoped)
  const ended = "history/customer_profiles/ended-v2.parquet"
  const allAnew = ["ended-v3.parquet"]

  live("are written anew by the next night if a file is missing, or another one [files next]", function* () {
    const other = ended.replace("customer_profiles", "emails")
    const wrong = (root: string) => {
      rmSync(join(root, ended))
      writeFileSync(join(root, other), readFileSync(join(root, other)).fill(0, 100, 200))
    }
    assert.deepStrictEqual(yield* afterBreaking(wrong), { named: [ended, other], ended: allAnew })
  })

  live(
    "are links again once a copy of the folder had folders in their place; a person's file stays [files copied]",
    function* () {
      yield* Effect.gen(function* () {
        const root = yield* folder
        cpSync(yield* twoNights, root, { recursive: true, verbatimSymlinks: true })
        for (const link of ["current", "history", "published/parquet"]) {
          const copied = realpathSync(join(root, link))
          rmSync(join(root, link))
          cpSync(copied, join(root, link), { recursive: true })
        }
        writeFileSync(join(root, "history/notes.txt"), "mine")
        yield* Effect.gen(function* () {
          yield* forgetBea(root)
          yield* night(22, { "c-1": "Anni" })
        }).pipe(Effect.provide(inFolder(root)))
        assert.deepStrictEqual(
          [readlinkSync(join(root, "current")), readlinkSync(join(root, "published/parquet"))],
          ["published/parquet/current", "parquet-v4"],
        )
        assert.deepStrictEqual(filesBelow(join(root, "history")), ["notes.txt"])
        // Nothing is published yet, and no Parquet is asked for.
        const first = yield* folder
        mkdirSync(join(first, "current"))
        writeFileSync(join(first, "current/notes.txt"), "mine")
        yield* Effect.provide(night(20, { "c-1": "Ana" }), inFolder(first, []))
        assert.deepStrictEqual(filesBelow(join(first, "current")), ["notes.txt"])
      }).pipe(Effect.scoped)
    },
  )

  live("are told to be elsewhere while something else has their name [files taken]", function* () {
    yield* Effect.gen(function* () {
      const root = yield* folder
      const found = Effect.map(problemsIn(root), (all) => all.map(({ id, where }) => [id, where]))
      const current = join(root, "current")
      yield* Effect.gen(function* () {
        mkdirSync(current)
        writeFileSync(join(current, "customer_profiles.parquet"), "mine")
        const { taken } = yield* night(20, { "c-1": "Ana" })
        assert.deepStrictEqual([taken, yield* found], [["current"], [["parquet-elsewhere", "current"]]])
        rmSync(current, { recursive: true })
        yield* Effect.flatMap(storeOf(root), repair)
        assert.deepStrictEqual([yield* found, readlinkSync(current)], [[], "published/parquet/current"])
        // In place of a link, a copy of the folder has what the version wrote.
        const copied = realpathSync(current)
        rmSync(current)
        cpSync(copied, current, { recursive: true })
        assert.deepStrictEqual(yield* found, [])
      }).pipe(Effect.provide(inFolder(root)))
    }).pipe(Effect.scoped)
  })

  live(
    "of an earlier version, which has no list, are not judged, and written anew once [files earlier]",
    function* () {
      const earlier = (root: string) => {
        const { manifest: path } = layoutOf(root)
        rmSync(join(root, "published", `parquet-${versionIn(root)}`, "files.json"))
        writeFileSync(path, readFileSync(path, "utf8").replace(/,\s+"files": "\w+"/, ""))
      }
      assert.deepStrictEqual(yield* afterBreaking(earlier), { named: [], ended: allAnew })
    },
  )

  live(
    "are written again by a repair if a bit flipped, which a copy has too [files hash][files repair][files copy]",
    function* () {
      const [root, copy] = [yield* folder, yield* folder]
      yield* Effect.gen(function* () {
        // So long that it is not read whole by a night.
        const long = Array.from({ length: 600 }, (_, index) => sha256Hex(`${index}`)).join("")
        yield* night(20, { "c-1": long })
        const path = "current/customer_profiles.parquet"
        const bytes = readFileSync(join(root, path))
        bytes[12_500]! ^= 1
        writeFileSync(join(root, path), bytes)
        yield* backup(root, copy)
        const wrong = [{ where: path, problem: "a published file is damaged" }]
        const found = (of: string) =>
          Effect.map(problemsIn(of), (all) => all.map(({ where, problem }) => ({ where, problem })))
        assert.deepStrictEqual(
          [yield* found(root), yield* Effect.provide(found(copy), foundation(copy))],
          [wrong, wrong],
        )
        yield* Effect.flatMap(storeOf(root), (store) => repair(store))
        assert.deepStrictEqual([yield* problemsIn(root), yield* differences(root)], [[], []])
      }).pipe(Effect.provide(inFolder(root)))
    },
  )

  live(
    "have nothing of a run that goes on, nor of a customer who is forgotten meanwhile, and go if no job asks [decision 10 forgotten files]",
    function* () {
      const root = yield* firstNight
      yield* Effect.gen(function* () {
        yield* append([begin(runOf(22), "2026-11-22")])
        yield* succeed(runOf(22), "22", "c-1", resultsOf(profileOf("Eve")))
        const publisher = yield* Publisher
        const over = new Set([`${runOf(22)}/c-1/${engine}`])
        yield* publisher.publishInterim(anId(runOf(22)), over)
        assert.strictEqual(versionIn(root), "v1")
        yield* forgetBea(root)
        assert.deepStrictEqual([yield* differences(root), foldersIn(root)], [[], ["parquet-v3"]])
        yield* publish(runOf(22))
        assert.strictEqual(versionIn(root), "v4")
      }).pipe(Effect.provide(inFolder(root)))
      yield* Effect.provide(Effect.asVoid(night(23, { "c-1": "Ana" })), inFolder(root, ["current"]))
      assert.deepStrictEqual(
        [existsSync(join(root, "current")), existsSync(join(root, "history"))],
        [true, false],
      )
      mkdirSync(join(root, "history"))
      yield* Effect.provide(Effect.asVoid(night(24, { "c-1": "Ana" })), inFolder(root, []))
      assert.deepStrictEqual(
        [existsSync(join(root, "current")), existsSync(join(root, "history")), foldersIn(root)],
        [false, true, ["parquet-v5"]],
      )
      assert.isUndefined(readManifest(layoutOf(root).manifest)?.parquet)
    },
  )
})
