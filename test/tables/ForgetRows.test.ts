/**
 * The rows of a customer are taken out of the files of every version, and nothing else: which files are written
 * again, which stay as they are, which versions stay, and what is said where a file holds other rows than counted.
 */
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { afterAll, assert, describe, it } from "@effect/vitest"
import { Effect, type Layer } from "effect"
import { DuckDb } from "../../src/base/DuckDb.ts"
import { FileCalls, machineCalls } from "../../src/base/DurableFile.ts"
import { sha256Hex } from "../../src/base/Hashes.ts"
import { Ledger, LedgerFailed } from "../../src/ledger/Ledger.ts"
import {
  aboutCustomer,
  countRowsOfCustomer,
  forgetRows,
  rowsOfCustomer,
  unreadableFiles,
} from "../../src/tables/ForgetRows.ts"
import { keptVersions } from "../../src/tables/KeptVersions.ts"
import { filesBelow, filesOf, readManifest, type Manifest } from "../../src/tables/Manifest.ts"
import { rollback } from "../../src/tables/Rollback.ts"
import { faultyCalls, refusal } from "../base/FaultyCalls.ts"
import { copiesOf } from "../harness/CopiesOf.ts"
import { anId } from "../harness/Id.ts"
import {
  append,
  begin,
  engine,
  folder,
  foundation,
  layers,
  namesIn,
  problemsIn,
  profileOf,
  publish,
  resultsOf,
  rowsOf,
  storeOf,
  succeed,
} from "./night.ts"
import { live } from "../harness/Steps.ts"

const [first, second] = ["nightly.2026-11-20", "nightly.2026-11-21"] as const
const night = Effect.fnUntraced(function* (run: string, customers: Readonly<Record<string, string>>) {
  for (const [customer, name] of Object.entries(customers))
    yield* succeed(run, `${run.slice(-2)}-${customer}`, customer, resultsOf(profileOf(name)))
  return yield* publish(run)
})
const begins = (run: string) => append([begin(run, run.slice("nightly.".length))])

/** One version, with a night of `c-1` and `c-2`. */
const one = copiesOf((root) =>
  Effect.provide(Effect.andThen(begins(first), night(first, { "c-1": "Ann", "c-2": "Bea" })), layers(root)),
)
/** The same night published again, with `c-3`, and another of `c-2` alone: the first version is kept, with its files. */
const three = copiesOf((root) =>
  Effect.gen(function* () {
    cpSync(yield* one, root, { recursive: true })
    const later = Effect.all([night(first, { "c-3": "Cy" }), begins(second), night(second, { "c-2": "Bea" })])
    yield* Effect.provide(later, layers(root))
  }).pipe(Effect.scoped),
)

const inFolder = <A, E>(
  root: string,
  work: Effect.Effect<A, E, Layer.Success<ReturnType<typeof foundation>>>,
  calls: FileCalls = machineCalls,
) => Effect.scoped(Effect.provideService(Effect.provide(work, foundation(root)), FileCalls, calls))

const forgottenOf = (customer: string) => ({
  customer_id: anId(customer),
  tasks: new Set([first, second].map((run) => `${run}/${customer}/${engine}`)),
  executions: new Set([first, second].map((run) => `e-${run.slice(-2)}-${customer}`)),
})

const counts = {
  runs: 0,
  facts: 0,
  bodies: 0,
  documents: 0,
  held: 0,
  rows: 0,
  tokens: 0,
  recordings: 0,
  deleted: 0,
  given_up: 0,
  left_at_service: 0,
  logins_kept: 0,
}

/** As `forget` does it: the facts first. Returns the version that is current then. */
const forgetIn = (root: string, customer: string, calls?: FileCalls) =>
  inFolder(
    root,
    Effect.gen(function* () {
      const { forget } = yield* Ledger
      const [forgotten, receipt] = [forgottenOf(customer), `forgotten-${customer}`]
      yield* forget(forgotten, { receipt, ...counts })
      const version = yield* forgetRows({ ...(yield* storeOf(root)), toolVersion: "9.9.9" }, forgotten)
      yield* append([{ _tag: "ForgetFinished", receipt }])
      return version
    }),
    calls,
  )

const manifestOf = (root: string): Manifest => readManifest(join(root, "tables/manifest.json")) as Manifest
const keptIn = (root: string) => inFolder(root, Effect.map(storeOf(root), keptVersions))
const parquetIn = (root: string) => filesBelow(root).filter((path) => path.endsWith(".parquet"))
const pathsOf = (manifest: Manifest) => filesOf(manifest).map(({ path }) => path)
const fileOf = (manifest: Manifest, table: string, run: string = first) =>
  manifest.runs[run]?.files.find((file) => file.table === table)?.path ?? ""

/** What a manifest has to say of its files once some are written again under another version's number. */
const told = (manifest: Manifest) => filesOf(manifest).map(({ path, rows }) => [path, rows] as const)
const rewritten = (manifest: Manifest, ending: string, rowsLess: (table: string) => number) =>
  filesOf(manifest).map(({ table, path, rows }) => {
    const less = rowsLess(table)
    return [less === 0 ? path : path.replace(/v\d+\.parquet/, `${ending}.parquet`), rows - less] as const
  })

const damage = (path: string) => writeFileSync(path, readFileSync(path).fill(0, 4, 5))

/** Every Parquet file as it is: its rows, and what is written into it beside them. */
const contentsIn = Effect.fnUntraced(function* (root: string) {
  const duckdb = yield* DuckDb
  const { rows } = yield* duckdb.open({ path: ":memory:", access: "read-write" })
  return yield* Effect.forEach(parquetIn(root), (path) =>
    Effect.gen(function* () {
      const [place] = [join(root, path)]
      const found = yield* rows("SELECT * FROM read_parquet(?, hive_partitioning = false)", [place])
      const pairs = yield* rows(
        "SELECT decode(key) AS key, decode(value) AS value FROM parquet_kv_metadata(?)",
        [place],
      )
      const about = Object.fromEntries(pairs.map(({ key, value }) => [String(key), value]))
      return { path, rows: found.length, text: JSON.stringify(found), about }
    }),
  )
}, Effect.scoped)

describe("the rows of a customer who is removed", () => {
  live(
    "leave every file that has some, of the current version and of those that are kept; what ended has ended still [decision 10 forgotten night]",
    function* () {
      const root = yield* three
      const [before, kept] = [manifestOf(root), yield* keptIn(root)]
      const held = join(root, "published/held/nightly.2026-11-22.duckdb")
      mkdirSync(dirname(held), { recursive: true })
      writeFileSync(held, "names them too")
      assert.deepStrictEqual([before.version, kept.map(({ version }) => version)], [3, [1, 2]])
      assert.strictEqual(yield* forgetIn(root, "c-1"), 4)
      const [after, [oldest, newest]] = [manifestOf(root), yield* keptIn(root)]
      const less = (table: string) => (table === "runs" ? 0 : table === "products_count" ? 2 : 1)
      const isOfFirst = ([path]: readonly [string, number]) => path.includes(first)
      // The row of the run counts its tasks, so that its file is written again too; nothing of the second night is.
      const runs = [fileOf(before, "runs").replace("v2", "v4"), 1] as const
      const ofFirst = [runs, ...rewritten(before, "v4", less).filter(isOfFirst).slice(1)]
      const others = told(before).filter((file) => !isOfFirst(file))
      assert.deepStrictEqual(told(after), [...ofFirst, ...others])
      assert.deepStrictEqual(newest && told(newest), ofFirst)
      // What only the oldest version has is told apart by its name.
      assert.deepStrictEqual(oldest && told(oldest), kept[0] && rewritten(kept[0], "v4-2", less))
      const contents = yield* inFolder(root, contentsIn(root))
      const below = "published/previous/"
      const old = (oldest === undefined ? [] : pathsOf(oldest)).map((path) => `${below}${path}`)
      assert.sameMembers(parquetIn(root), [...pathsOf(after), ...old])
      const rowsBy = new Map([...told(after), ...(oldest === undefined ? [] : told(oldest))])
      for (const { path, rows, text, about } of contents) {
        const name = path.replace(below, "")
        assert.strictEqual(rows, rowsBy.get(name), path)
        assert.notMatch(text, /c-1(?!\d)/, path)
        if (name.includes("-v4"))
          assert.deepInclude(about, { run_id: first, version: "4", tool: "9.9.9" }, path)
        assert.strictEqual(statSync(join(root, path)).mode & 0o777, 0o600, path)
      }
      assert.deepInclude(after, { version: 4, amends: true })
      assert.deepStrictEqual(yield* inFolder(root, namesIn(root)), ["Bea", "Bea", "Cy"])
      assert.deepStrictEqual(
        yield* inFolder(root, rowsOf(root, "SELECT tasks FROM ops.runs ORDER BY run_id")),
        [{ tasks: 2 }, { tasks: 1 }],
      )
      assert.deepStrictEqual(yield* inFolder(root, problemsIn(root)), [])
      assert.deepStrictEqual(
        filesBelow(root).filter((path) => /tmp$|build$|previous.nightjar|held/.test(path)),
        [],
      )
      // Of the night that no longer has anybody there is still what it asked for: nobody else.
      yield* forgetIn(root, "c-2")
      const history = rowsOf(root, "SELECT name, ended_by FROM history.customer_profiles")
      assert.deepStrictEqual(yield* inFolder(root, history), [{ name: "Cy", ended_by: "not requested" }])
    },
  )

  live("take the file with them that has no other, also where no version was kept before", function* () {
    const root = yield* one
    rmSync(join(root, "published"), { recursive: true, force: true })
    assert.strictEqual(yield* forgetIn(root, "c-1"), 2)
    assert.deepStrictEqual(yield* inFolder(root, namesIn(root)), ["Bea"])
    assert.strictEqual(yield* forgetIn(root, "c-2"), 3)
    assert.deepStrictEqual(told(manifestOf(root)), [
      [`tables/runs/run_date=2026-11-20/${first}-v3.parquet`, 1],
    ])
    assert.deepStrictEqual(parquetIn(root), pathsOf(manifestOf(root)))
    assert.deepStrictEqual(yield* inFolder(root, problemsIn(root)), [])
  })

  live(
    "are none: every version and file stays, but for what a crash left, and a version with a damaged file",
    function* () {
      const root = yield* three
      const before = [manifestOf(root), yield* keptIn(root), parquetIn(root)]
      const stray = join(root, dirname(fileOf(manifestOf(root), "tasks")), "stray.parquet")
      const old = join(
        root,
        "published/previous",
        dirname(fileOf(manifestOf(root), "tasks")),
        "stray.parquet",
      )
      for (const path of [stray, old]) writeFileSync(path, "half")
      assert.strictEqual(yield* forgetIn(root, "c-9"), 3)
      assert.deepStrictEqual([manifestOf(root), yield* keptIn(root), parquetIn(root)], before)
      const [oldest] = yield* keptIn(root)
      damage(join(root, "published/previous", fileOf(oldest as Manifest, "emails")))
      assert.strictEqual(yield* forgetIn(root, "c-8"), 3)
      const left = (yield* keptIn(root)).map(({ version }) => version)
      assert.deepStrictEqual(left, [2])
      assert.deepStrictEqual(parquetIn(root).toSorted(), pathsOf(manifestOf(root)).toSorted())
    },
  )

  live(
    "of versions alone that were rolled back are gone from these, which a later rollback puts back [promise 15 rolled back]",
    function* () {
      const root = yield* three
      const back = Effect.flatMap(storeOf(root), rollback)
      yield* inFolder(root, Effect.andThen(back, back))
      assert.deepStrictEqual(yield* inFolder(root, namesIn(root)), ["Ann", "Bea"])
      assert.strictEqual(yield* forgetIn(root, "c-3"), 6)
      assert.deepStrictEqual(yield* inFolder(root, namesIn(root)), ["Ann", "Bea"])
      const again = Effect.flatMap(storeOf(root), (store) => rollback(store, { to: 3, isDry: false }))
      assert.deepInclude(yield* inFolder(root, again), { _tag: "RolledBack", version: 7, to: 3, without: [] })
      assert.deepStrictEqual(yield* inFolder(root, namesIn(root)), ["Ann", "Bea", "Bea"])
      assert.deepStrictEqual(yield* inFolder(root, problemsIn(root)), [])
    },
  )

  live(
    "are counted, and damage is found, in what the next night continues, also after a rollback",
    function* () {
      const root = yield* three
      const found = inFolder(
        root,
        Effect.flatMap(storeOf(root), (store) =>
          Effect.all([countRowsOfCustomer(store, forgottenOf("c-2")), unreadableFiles(store)]),
        ),
      )
      assert.deepStrictEqual(yield* found, [26, []])
      for (const _ of [2, 1]) yield* inFolder(root, Effect.flatMap(storeOf(root), rollback))
      assert.deepStrictEqual(yield* found, [26, []])
      const ofSecond = fileOf((yield* keptIn(root)).at(-1) as Manifest, "emails", second)
      for (const path of [fileOf(manifestOf(root), "emails"), `published/previous/${ofSecond}`])
        damage(join(root, path))
      const unreadable = yield* inFolder(root, Effect.flatMap(storeOf(root), unreadableFiles))
      assert.sameMembers([...new Set(unreadable)], [fileOf(manifestOf(root), "emails"), ofSecond])
    },
  )

  live(
    "are not removed where a file has other rows than its version says, or the ledger lacks the run",
    function* () {
      const root = yield* one
      const manifest = readFileSync(join(root, "tables/manifest.json"), "utf8")
      const path = fileOf(manifestOf(root), "tasks")
      writeFileSync(join(root, "tables/manifest.json"), manifest.replace(/"rows": 2/, '"rows": 3'))
      const changed = manifestOf(root)
      const wrong = filesOf(changed).find(({ rows }) => rows === 3)?.path ?? ""
      const refusal = Effect.map(Effect.flip(forgetIn(root, "c-1")), ({ message }) => message)
      const written = wrong.replace("-v1.", "-v2.")
      const told = `${written}: its sources have 1 rows of run ${first}, not 2`
      assert.strictEqual(yield* refusal, told)
      assert.deepStrictEqual([manifestOf(root), wrong], [changed, path])
      writeFileSync(join(root, "tables/manifest.json"), manifest)
      rmSync(join(root, "ledger.sqlite"))
      assert.strictEqual(yield* refusal, `the ledger has no run ${first}`)
      assert.strictEqual(readFileSync(join(root, "tables/manifest.json"), "utf8"), manifest)
    },
  )

  live(
    "do not come back from the database where a file of theirs is lost [promise 15 restored]",
    function* () {
      const root = yield* three
      rmSync(join(root, fileOf(manifestOf(root), "customer_profiles", second)))
      yield* forgetIn(root, "c-2")
      assert.deepStrictEqual(yield* inFolder(root, namesIn(root)), ["Ann", "Cy"])
    },
  )

  live("are none where nothing was published yet", function* () {
    const root = yield* folder
    const store = yield* inFolder(root, storeOf(root))
    const work = Effect.all([
      countRowsOfCustomer(store, forgottenOf("c-1")),
      unreadableFiles(store),
      forgetRows(store, forgottenOf("c-1")),
    ])
    assert.deepStrictEqual(yield* inFolder(root, work), [0, [], 0])
  })

  live(
    "leave every part of a table under one version's number, and whatever columns a part has",
    function* () {
      const root = yield* one
      const manifest = manifestOf(root)
      const path = fileOf(manifest, "emails")
      const part = path.replace(".parquet", "-2.parquet")
      yield* inFolder(
        root,
        Effect.gen(function* () {
          const duckdb = yield* DuckDb
          const { run } = yield* duckdb.open({ path: ":memory:", access: "read-write" })
          const [from, to] = [path, part].map((file) => `'${join(root, file)}'`)
          // As an older version may have written it.
          const older = `SELECT * EXCLUDE (customer_id, task_id, execution_id) FROM read_parquet(${from}) WHERE customer_id = 'c-2'`
          yield* run(`COPY (${older}) TO ${to} (FORMAT parquet)`)
        }).pipe(Effect.scoped),
      )
      const bytes = readFileSync(join(root, part))
      const entry = { table: "emails", path: part, rows: 1, bytes: bytes.length, sha256: sha256Hex(bytes) }
      const ofRun = manifest.runs[first]
      assert.isDefined(ofRun)
      const { database: _, ...rest } = manifest
      const files = [...(ofRun?.files ?? []), entry]
      const next = { ...rest, runs: { [first]: { ...ofRun, files } } }
      writeFileSync(join(root, "tables/manifest.json"), JSON.stringify(next))
      assert.strictEqual(yield* forgetIn(root, "c-1"), 2)
      assert.deepStrictEqual(
        told(manifestOf(root)).filter(([name]) => name.includes("/emails/")),
        ["", "-2"].map((ending) => [path.replace("v1", `v2${ending}`), 1] as const),
      )
      assert.deepStrictEqual(
        yield* inFolder(root, rowsOf(root, "SELECT count(*)::INTEGER AS n FROM nights.emails")),
        [{ n: 2 }],
      )
    },
  )

  live("are still there if anything fails, and that is a publication that failed", function* () {
    const failsAs = <A, E extends { readonly _tag: string; readonly message: string }>(
      work: Effect.Effect<A, E>,
    ) => Effect.map(Effect.flip(work), ({ _tag, message }) => `${_tag}: ${message.split("\n")[0]}`)
    const root = yield* one
    const before = manifestOf(root)
    const { calls } = faultyCalls({
      refuse: (name) => (name === "syncData" ? refusal("EIO", name) : undefined),
    })
    assert.match(yield* failsAs(forgetIn(root, "c-1", calls)), /^PublishFailed: .*EIO/)
    const broken = Effect.gen(function* () {
      const real = yield* Ledger
      const state = () => Effect.fail(new LedgerFailed({ message: "disk gone" }))
      return yield* Effect.provideService(forgetRows(yield* storeOf(root), forgottenOf("c-1")), Ledger, {
        ...real,
        state,
      })
    })
    assert.strictEqual(yield* failsAs(inFolder(root, broken)), "PublishFailed: the ledger: disk gone")
    writeFileSync(join(root, fileOf(before, "emails")), "no Parquet")
    const counted = Effect.flatMap(storeOf(root), (store) => countRowsOfCustomer(store, forgottenOf("c-1")))
    assert.match(yield* failsAs(inFolder(root, counted)), /^PublishFailed: /)
    assert.match(yield* failsAs(forgetIn(root, "c-1")), /^PublishFailed: /)
    assert.deepStrictEqual(manifestOf(root), before)
  })
})

const place = mkdtempSync(join(tmpdir(), "nightjar-theirs-"))
afterAll(() => rmSync(place, { recursive: true, force: true }))
const theirs = { customer_id: anId("c-1"), tasks: new Set(["t-1", "t-2"]), executions: new Set(["e-1"]) }
const none = { ...theirs, tasks: new Set<string>(), executions: new Set<string>() }

describe("a row is a customer's", () => {
  it("by its task or its customer, and by an execution only where neither is said", () => {
    const about = (of: typeof theirs, ...columns: ReadonlyArray<string>) =>
      aboutCustomer(new Set(columns), of)
    const [byTask, byCustomer] = [`"task_id" IN ('t-1', 't-2')`, `"customer_id" IN ('c-1')`]
    assert.deepStrictEqual(
      [
        about(theirs, "task_id", "customer_id", "execution_id"),
        about(theirs, "task_id", "other"),
        about(theirs, "customer_id", "execution_id"),
        about(theirs, "execution_id"),
        about(theirs, "other"),
        about(none, "task_id", "customer_id"),
        about(none, "task_id", "execution_id"),
      ],
      [
        `coalesce(${byTask} OR ${byCustomer}, false)`,
        `coalesce(${byTask}, false)`,
        `coalesce(${byCustomer}, false)`,
        `coalesce("execution_id" IN ('e-1'), false)`,
        undefined,
        `coalesce(${byCustomer}, false)`,
        undefined,
      ],
    )
  })

  it.live("table by table, in the files that are there", () =>
    Effect.gen(function* () {
      const duckdb = yield* DuckDb
      const connection = yield* duckdb.open({ path: ":memory:", access: "read-write" })
      const files = yield* Effect.forEach(
        [
          ["tasks", "SELECT unnest(['t-1', 't-2', 't-3']) AS task_id"],
          ["tasks", "SELECT 't-3' AS task_id, 'c-1' AS customer_id"],
          ["tasks", undefined],
          ["older", "SELECT unnest(['e-1', 'e-2', NULL]) AS execution_id"],
          ["others", "SELECT 'c-1' AS name"],
          ["gone", undefined],
        ] as const,
        ([table, rows], index) => {
          const path = `${table}-${index}.parquet`
          const file = { table, path, rows: 1, bytes: 1, sha256: "" }
          return rows === undefined
            ? Effect.succeed(file)
            : Effect.as(
                connection.run(
                  `COPY (SELECT 'r' AS run_id, * FROM (${rows})) TO '${join(place, path)}' (FORMAT parquet)`,
                ),
                file,
              )
        },
      )
      const found = yield* rowsOfCustomer(yield* storeOf(place), connection, files, theirs)
      assert.deepStrictEqual([...found].map(([path, byRun]) => [path, ...byRun].flat()).toSorted(), [
        ["older-3.parquet", "r", 1],
        ["tasks-0.parquet", "r", 2],
        ["tasks-1.parquet", "r", 1],
      ])
    }).pipe(Effect.scoped, Effect.provide(foundation(place))),
  )
})
