/**
 * A version that is put back: readers get its tables, and nothing of the newest one is lost. What a rollback leaves
 * that is cut off is in `Version.test.ts`.
 */
import { cpSync, mkdirSync, readFileSync, rmSync, truncateSync } from "node:fs"
import { join } from "node:path"
import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { DuckDb } from "../../src/base/DuckDb.ts"
import { dueDeletions } from "../../src/task/DeleteExecutions.ts"
import { Ledger } from "../../src/ledger/Ledger.ts"
import { filesBelow } from "../../src/tables/Manifest.ts"
import { type Rebuilt } from "../../src/tables/Rebuild.ts"
import { repair } from "../../src/tables/Repair.ts"
import { listVersions, rollback, type RollbackOptions } from "../../src/tables/Rollback.ts"
import { layers, liveNight, namesIn, problemsIn, profileOf, storeOf, liveIn } from "./night.ts"
import { copiesOf } from "../harness/CopiesOf.ts"
import { commandHere } from "../harness/CommandsHere.ts"
import { startHere } from "../harness/ProgramHere.ts"
import { anId } from "../harness/Id.ts"
import { live } from "../harness/Steps.ts"

const runOf = (day: number) => `nightly.2026-11-${day}`
const names = ["Ana", "Bea", "Cleo", "Dora", "Eva"]

const night = (day: number) => liveNight(runOf(day), String(day), profileOf(names[day - 20] ?? ""))

/** The folder after one, two and three nights. */
const lived = copiesOf((root) =>
  Effect.gen(function* () {
    const growing = join(root, "growing")
    mkdirSync(growing)
    for (const count of [1, 2, 3]) {
      yield* Effect.provide(night(19 + count), layers(growing))
      cpSync(growing, join(root, String(count)), { recursive: true })
    }
  }),
)
const after = (nights: 1 | 2 | 3) => Effect.map(lived, (root) => join(root, String(nights)))
/** A version cannot say yet when its own run was published, until the end of that run is published again. */
const publishedLater = (day: number) => ({
  run_id: runOf(day),
  table: "runs",
  before: 1,
  after: 1,
  added: 1,
  gone: 1,
})

const back = (root: string, ...options: [] | [RollbackOptions]) =>
  Effect.flatMap(storeOf(root), (store) => rollback(store, ...options))
const joined = (root: string) => Effect.map(namesIn(root), (names) => names.join(" "))
const rolledBack = { _tag: "RolledBack" as const }

describe("rollback", () => {
  liveIn(after(3))(
    "lists what is kept, shows what any of it would bring, and puts it back [promise 6 rollback]",
    function* (root) {
      const store = yield* storeOf(root)
      const listed = Effect.map(listVersions(store), (all) =>
        all.map(({ version, published, of, newest_run }) => [version, published, of, newest_run]),
      )
      const before = [3, 2, 1].map((version) => [version, version === 3, null, runOf(19 + version)])
      assert.deepStrictEqual(yield* listed, before)
      const shown = yield* back(root, { to: 1, isDry: true })
      const { tables: _, ...told } = { tables: [], ...shown }
      const to = { to: 1, from: 3, without: [runOf(21), runOf(22)] }
      assert.deepStrictEqual(told, { ...rolledBack, version: undefined, ...to })
      const { tables = [] } = shown._tag === "RolledBack" ? shown : {}
      assert.deepInclude(tables, { table: "ops.runs", before: 3, after: 1 })
      assert.deepStrictEqual([yield* listed, yield* joined(root)], [before, "Ana Bea Cleo"])
      assert.deepStrictEqual(yield* back(root, { to: 7, isDry: false }), { _tag: "NotKept", kept: [1, 2] })
      assert.deepStrictEqual(yield* back(root, { to: 1, isDry: false }), {
        ...rolledBack,
        version: 4,
        ...to,
      })
      assert.strictEqual(yield* joined(root), "Ana")
      // What a rollback replaced is kept, too, and may be put back as well.
      yield* back(root, { to: 2, isDry: false })
      assert.strictEqual(yield* joined(root), "Ana Bea")
      const [published] = yield* listed
      assert.deepStrictEqual(published, [5, true, 2, runOf(21)])
      yield* night(23)
      assert.strictEqual(yield* joined(root), "Ana Bea Cleo Dora")
      // As many as are kept, which cost no second copy of a Parquet file.
      const kept = filesBelow(join(root, "published/previous")).toSorted()
      assert.deepStrictEqual(kept, ["1.json", "2.json", "3.json", "nightjar.duckdb"])
      assert.deepStrictEqual(yield* problemsIn(root), [])
    },
  )

  liveIn(after(2))(
    "builds the database from the files if the one that is kept is not, to the byte, what it was",
    function* (root) {
      const kept = join(root, "published/previous/nightjar.duckdb")
      yield* Effect.scoped(
        Effect.flatMap(DuckDb, (duckdb) =>
          Effect.flatMap(duckdb.open({ path: kept, access: "read-write" }), ({ run }) =>
            run("UPDATE store.customer_profiles SET name = 'Zoe'"),
          ),
        ),
      )
      assert.deepInclude(yield* back(root), { ...rolledBack, to: 1 })
      assert.strictEqual(yield* joined(root), "Ana")
      assert.deepStrictEqual(yield* problemsIn(root), [])
    },
  )

  liveIn(after(2))(
    "changes nothing about what may be deleted, and losing the newest version loses no rows",
    function* (root) {
      const ledger = yield* Ledger
      const due = Effect.map(ledger.state(anId(runOf(21))), (state) => state && dueDeletions(state))
      const before = yield* due
      yield* back(root)
      assert.deepStrictEqual(yield* due, before)
      rmSync(join(root, "published"), { recursive: true })
      assert.deepStrictEqual(
        (yield* problemsIn(root)).map(({ id, where }) => [id, where]),
        [
          ["run-not-in-manifest", runOf(21)],
          ["newest-version-lost", "published/previous"],
        ],
      )
      const { left } = yield* repair(yield* storeOf(root))
      assert.deepStrictEqual([left, yield* problemsIn(root), yield* joined(root)], [[], [], "Ana Bea"])
    },
  )
})

describe("the commands `rollback` and `rebuild`", () => {
  live(
    "say what readers get, what is kept and what differs, and show nothing after a crash [preview crash] [doctor interrupted]",
    function* () {
      const output = yield* after(2)
      mkdirSync(join(output, "runs"))
      const nightjar = (...args: ReadonlyArray<string>) =>
        Effect.promise(() => commandHere(...args, "--output", output))
      assert.deepStrictEqual(yield* nightjar("rollback"), {
        code: 0,
        stderr: "",
        stdout:
          "Version 3 is published: it has the tables of version 1.\n" +
          `Runs that are not in it: ${runOf(21)}.\n` +
          "Version 2 is kept: the next publication continues from it and ends the rollback.\n",
      })
      assert.deepStrictEqual(yield* nightjar("verify"), {
        code: 0,
        stderr: "",
        stdout:
          "Files, ledger and tables agree.\n" +
          "After a rollback, they are the tables of version 1; the next publication continues from version 2.\n",
      })
      const none = yield* nightjar("rollback")
      assert.deepStrictEqual(
        [none.code, none.stdout, /\[no-earlier-version\]/.test(none.stderr)],
        [2, "", true],
      )
      const derived =
        "The tables of 2 runs were derived again from landing: these tables differ. Dates in history are worked out again, too."
      assert.deepStrictEqual(yield* nightjar("rebuild", "--dry-run"), {
        code: 0,
        stderr: "",
        stdout:
          `${derived} Nothing was published.\n` +
          "run                 table  rows before  after  added  gone\n" +
          `${runOf(20)}  runs   1            1      1      1\n` +
          `${runOf(21)}  runs   1            1      1      1\n`,
      })
      const tables = join(output, "tables")
      const contents = () => filesBelow(tables).map((path) => [path, readFileSync(join(tables, path))])
      cpSync(join(tables, "manifest.json"), join(tables, "manifest.next.json"))
      const before = contents()
      for (const name of ["rebuild", "rollback"])
        assert.deepStrictEqual(yield* nightjar(name, "--dry-run"), {
          code: 2,
          stdout: "",
          stderr:
            "nightjar: what would change cannot be shown yet: a publication was interrupted and has to be " +
            "finished first [preview-impossible]\nThe tables were not changed. Run `nightjar repair`, which " +
            "corrects it, and then this command again.",
        })
      const { stdout } = yield* Effect.promise(() => startHere(["doctor", "--output", output]).ended)
      assert.match(stdout, /\nwarning +files and tables +a publication was interrupted; the next run/)
      assert.deepStrictEqual(contents(), before)
      rmSync(join(tables, "manifest.next.json"))
      truncateSync(join(output, `landing/${runOf(20)}/segment-000001.njl`), 100)
      const half = yield* nightjar("rebuild", "--json")
      const told = JSON.parse(half.stdout) as Rebuilt
      assert.deepInclude(told, { version: 4, runs: 1, changes: [publishedLater(21)] })
      assert.deepStrictEqual([half.code, told.kept.map(({ run_id }) => run_id)], [3, [runOf(20)]])
    },
    120_000,
  )
})
