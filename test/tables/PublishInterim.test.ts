/**
 * Versions of a run that goes on: what readers find in them, what they leave as it was, and what becomes of them when
 * the run is over, held back, cut off, or when people look after the folder meanwhile.
 */
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import type { Scope } from "effect"
import { DuckDb } from "../../src/base/DuckDb.ts"
import { dueDeletions } from "../../src/task/DeleteExecutions.ts"
import { FileCalls, machineCalls } from "../../src/base/DurableFile.ts"
import { lockFolder } from "../../src/base/FolderLock.ts"
import type { Gates } from "../../src/jobs/Job.ts"
import { backup } from "../../src/folder/Backup.ts"
import { checkWhole, forget, planForget } from "../../src/folder/Forget.ts"
import type { Fact } from "../../src/ledger/Fact.ts"
import { Ledger } from "../../src/ledger/Ledger.ts"
import { publishStage } from "../../src/run/PublishMeanwhile.ts"
import { placeOf } from "../../src/tables/DataDictionary.ts"
import { keptVersions } from "../../src/tables/KeptVersions.ts"
import { filesOf, layoutOf, nothingPublished, readManifest } from "../../src/tables/Manifest.ts"
import { leavesRoom } from "../../src/tables/PublishInterim.ts"
import { Publisher } from "../../src/tables/Publisher.ts"
import { PublisherDuckDb } from "../../src/tables/PublisherDuckDb.ts"
import { rebuild } from "../../src/tables/Rebuild.ts"
import { repair } from "../../src/tables/Repair.ts"
import { verifyBeside } from "../../src/tables/VerifyBeside.ts"
import { rollback } from "../../src/tables/Rollback.ts"
import { copiesOf } from "../harness/CopiesOf.ts"
import { anId } from "../harness/Id.ts"
import {
  append,
  begin,
  drained,
  engine,
  folder,
  foundation,
  problemsIn,
  profileOf,
  publisherOptions,
  resultsOf,
  rowsOf,
  stateOf,
  storeOf,
  succeed,
} from "./night.ts"

const runOf = (day: number) => anId(`nightly.2026-11-${day}`)
const taskOf = (day: number, customer: string) => anId(`${runOf(day)}/${customer}/${engine}`)
const nothing: Gates = { keys: false, tests: [] }

const asking = (root: string, gates?: Gates, calls: FileCalls = machineCalls) =>
  PublisherDuckDb.layer({ ...publisherOptions(root), ...(gates === undefined ? {} : { gates }) }).pipe(
    Layer.provideMerge(foundation(root)),
    Layer.provide(Layer.succeed(FileCalls, calls)),
  )

/** A customer whose task is over, with a profile that names day and customer. */
const arrive = Effect.fnUntraced(function* (day: number, customer: string) {
  const id = `${day}-${customer}`
  yield* succeed(runOf(day), id, customer, resultsOf(profileOf(`${customer} ${day}`)), stateOf(id, customer))
  yield* drained(runOf(day), id, customer)
})

/** The same, without its verdict: its records have landed, and nobody knows yet whether all of them have. */
const halfway = Effect.fnUntraced(function* (day: number, customer: string) {
  const ledger = yield* Ledger
  const withhold: Ledger["Service"] = {
    ...ledger,
    append: (facts) => ledger.append(facts.filter(({ _tag }) => _tag !== "TaskSettled")),
  }
  yield* Effect.provideService(arrive(day, customer), Ledger, withhold)
})

const settled = (day: number, customer: string): Fact => {
  const verdict = { outcome: "succeeded", reason: "COMPLETED", who_acts: "nobody" } as const
  return { _tag: "TaskSettled", run_id: runOf(day), task_id: taskOf(day, customer), ...verdict }
}

/** A whole night of these customers. */
const night = Effect.fnUntraced(function* (day: number, ...customers: ReadonlyArray<string>) {
  yield* append([begin(runOf(day), `2026-11-${day}`)])
  for (const customer of customers) yield* arrive(day, customer)
  yield* publishStage(runOf(day))
})

const interim = (day: number, ...customers: ReadonlyArray<string>) =>
  Effect.flatMap(Publisher, (publisher) =>
    publisher.publishInterim(runOf(day), new Set(customers.map((customer) => taskOf(day, customer)))),
  )

const three = ["c-1", "c-2", "c-3"]

/** A night before, and one that goes on: two tasks are over, the records of the third have landed. */
const goingOn = Effect.gen(function* () {
  yield* night(20, ...three)
  yield* append([begin(runOf(21), "2026-11-21")])
  yield* arrive(21, "c-1")
  yield* arrive(21, "c-2")
  yield* halfway(21, "c-3")
})

const whileGoingOn = copiesOf((root) => Effect.provide(goingOn, asking(root)))

const over = ["c-1", "c-2"]
const withPart = copiesOf((root) =>
  Effect.provide(Effect.andThen(goingOn, interim(21, ...over)), asking(root)),
)

const finish = Effect.gen(function* () {
  yield* append([settled(21, "c-3")])
  return yield* publishStage(runOf(21))
})

const column = (root: string, sql: string) =>
  Effect.map(rowsOf(root, sql), (rows) => rows.map((row) => Object.values(row).join(" ")))
const latest = (root: string) => column(root, "SELECT name FROM customer_profiles ORDER BY name")
const old = ["c-1 20", "c-2 20", "c-3 20"]
const part = ["c-1 21", "c-2 21", "c-3 20"]
const whole = ["c-1 21", "c-2 21", "c-3 21"]

const stateOfRun = (day: number) =>
  Effect.flatMap(Ledger, (ledger) => ledger.state(runOf(day))).pipe(
    Effect.flatMap((state) => (state === undefined ? Effect.die("no such run") : Effect.succeed(state))),
  )
const due = Effect.map(stateOfRun(21), (state) => dueDeletions(state).length)
const kept = (root: string) =>
  Effect.map(storeOf(root), (store) => keptVersions(store).map(({ version }) => version))
const manifestOf = (root: string) => readManifest(layoutOf(root).manifest)

/** In a folder of its own, which is empty unless it is said what has been lived in it. */
const inFolder = <A, E>(
  work: (root: string) => Effect.Effect<A, E, Layer.Success<ReturnType<typeof asking>> | Scope.Scope>,
  gates?: Gates,
  begun = folder,
) =>
  Effect.gen(function* () {
    const root = yield* begun
    yield* Effect.provide(work(root), asking(root, gates))
  })

const onTheWay = <A, E>(work: Parameters<typeof inFolder<A, E>>[0], gates?: Gates) =>
  inFolder(work, gates, whileGoingOn)
/** As above, with a version that has the tasks that are over. */
const afterPart = <A, E>(work: Parameters<typeof inFolder<A, E>>[0]) => inFolder(work, undefined, withPart)

/** A run works in the folder, and publishes when `verify` first gets to this point. */
const verifyWhile = Effect.fnUntraced(function* (
  root: string,
  point: "ledger" | "database",
  work: Effect.Effect<void>,
) {
  yield* lockFolder(join(root, "run.lock"))
  const ledger = yield* Ledger
  const duckdb = yield* DuckDb
  let isDue = true
  const now = Effect.suspend(() => {
    const due = isDue
    isDue = false
    return due ? work : Effect.void
  })
  const pruned = Effect.andThen(now, ledger.pruned)
  const open: DuckDb["Service"]["open"] = (options) => Effect.andThen(now, duckdb.open(options))
  return yield* verifyBeside(layoutOf(root), problemsIn(root)).pipe(
    Effect.provideService(Ledger, point === "ledger" ? { ...ledger, pruned } : ledger),
    Effect.provideService(DuckDb, point === "database" ? { ...duckdb, open } : duckdb),
  )
}, Effect.scoped)

describe("`verify` beside a run that publishes", () => {
  for (const point of ["ledger", "database"] as const)
    it.live(`takes no new version for damage, and finds what is damaged: at the ${point}`, () =>
      onTheWay((root) =>
        Effect.gen(function* () {
          const context = yield* Effect.context<Publisher>()
          const publishes = (...customers: ReadonlyArray<string>) =>
            Effect.orDie(Effect.asVoid(interim(21, ...customers))).pipe(Effect.provide(context))
          assert.deepStrictEqual(yield* verifyWhile(root, point, publishes("c-1")), [])
          assert.deepStrictEqual(yield* latest(root), ["c-1 21", "c-2 20", "c-3 20"])
          const broken = filesOf(manifestOf(root) ?? nothingPublished).find(({ table }) => table === "emails")
          rmSync(join(root, broken?.path ?? ""))
          const found = yield* verifyWhile(root, point, publishes("c-1", "c-2"))
          assert.deepStrictEqual(
            found.map(({ id, where }) => [id, where]),
            [["file-differs", broken?.path]],
          )
        }),
      ),
    )

  it.live("leaves out what a run is writing, and names what a killed one left", () =>
    onTheWay((root) =>
      Effect.gen(function* () {
        writeFileSync(join(root, "tables/emails/new.parquet.tmp"), "half")
        assert.deepStrictEqual(yield* verifyWhile(root, "ledger", Effect.void), [])
        const left = yield* verifyBeside(layoutOf(root), problemsIn(root))
        assert.deepStrictEqual(
          left.map(({ id, where }) => [id, where]),
          [["file-unlisted", "tables/emails/new.parquet.tmp"]],
        )
      }),
    ),
  )
})

describe("a version of a run that goes on", () => {
  it.live(
    "has whole tasks only and everybody else's records of the night before, gives no receipts, and disturbs no reader",
    () =>
      onTheWay((root) =>
        Effect.gen(function* () {
          const duckdb = yield* DuckDb
          const reader = yield* duckdb.open({ path: join(root, "nightjar.duckdb"), access: "read-only" })
          const read = Effect.map(reader.rows("SELECT name FROM customer_profiles ORDER BY name"), (rows) =>
            rows.map(({ name }) => String(name)),
          )
          assert.deepStrictEqual(yield* read, old)
          const done = yield* interim(21, ...over)
          assert.deepStrictEqual(done, { _tag: "Interim", version: 2, tasks: 2, of: 3 })
          assert.deepStrictEqual([yield* read, yield* latest(root)], [old, part])
          const ofTonight = (columns: string, table: string) =>
            column(
              root,
              `SELECT ${columns} FROM ${placeOf(table)} WHERE run_id = '${runOf(21)}' ORDER BY ALL`,
            )
          assert.deepStrictEqual(yield* ofTonight("status, tasks, succeeded, unfinished", "runs"), [
            "running 3 2 1",
          ])
          assert.deepStrictEqual(yield* ofTonight("customer_id, outcome, reason, attempts", "tasks"), [
            "c-1 succeeded COMPLETED 1",
            "c-2 succeeded COMPLETED 1",
            "c-3 unfinished  0",
          ])
          for (const table of ["executions", "sessions", "coverage", "customer_profiles"])
            assert.deepStrictEqual(yield* ofTonight("DISTINCT customer_id", table), over)
          const current = "SELECT customer_id, run_date, outcome FROM coverage ORDER BY 1"
          assert.deepStrictEqual(yield* column(root, current), [
            "c-1 2026-11-21 succeeded",
            "c-2 2026-11-21 succeeded",
            "c-3 2026-11-20 succeeded",
          ])
          assert.deepStrictEqual(yield* problemsIn(root), [])
          // Until the run itself is published, nothing may be deleted.
          const { published, interim: told } = yield* stateOfRun(21)
          assert.deepStrictEqual([published, told, yield* due], [undefined, undefined, 0])
          yield* finish
          assert.deepStrictEqual([yield* due, yield* latest(root), yield* read], [3, whole, old])
        }).pipe(Effect.scoped),
      ),
  )

  it.live(
    "leaves out a task without a verdict, whatever is said, and one that may still change [interim whole]",
    () =>
      onTheWay((root) =>
        Effect.gen(function* () {
          yield* interim(21, "c-1", "c-3")
          assert.deepStrictEqual(yield* latest(root), ["c-1 21", "c-2 20", "c-3 20"])
          const tonight = `SELECT name FROM nights.customer_profiles WHERE run_id = '${runOf(21)}'`
          assert.deepStrictEqual(yield* column(root, tonight), ["c-1 21"])
        }),
      ),
  )

  it.live("takes no place among the versions that are kept, however many there are [interim kept]", () =>
    afterPart((root) =>
      Effect.gen(function* () {
        for (const version of [3, 4]) {
          assert.deepStrictEqual(yield* kept(root), [1])
          const done = yield* interim(21, ...over)
          assert.deepStrictEqual(done, { _tag: "Interim", version, tasks: 2, of: 3 })
        }
        yield* finish
        assert.deepStrictEqual([yield* kept(root), yield* problemsIn(root)], [[1], []])
        const { files = [] } = manifestOf(root)?.runs[runOf(21)] ?? {}
        const left = readdirSync(join(root, "tables/customer_profiles/run_date=2026-11-21"))
        assert.deepStrictEqual([left.length, files.every(({ path }) => path.includes("-v5"))], [1, true])
      }),
    ),
  )

  it.live("ends in the same tables and files as a run that had none", () =>
    Effect.gen(function* () {
      const found = yield* Effect.forEach([whileGoingOn, withPart], (begun) =>
        Effect.gen(function* () {
          const root = yield* begun
          return yield* Effect.gen(function* () {
            yield* finish
            const files = filesOf(manifestOf(root) ?? { version: 0, amends: false, runs: {} })
            const ofTonight = files.filter(({ path }) => path.includes("2026-11-21"))
            const tables = yield* Effect.forEach(ofTonight, ({ table }) =>
              column(root, `SELECT * EXCLUDE (${timesOf(table)}) FROM ${placeOf(table)} ORDER BY ALL`),
            )
            return [ofTonight.map(({ table, rows }) => `${table} ${rows}`), tables, yield* latest(root)]
          }).pipe(Effect.provide(asking(root)))
        }),
      )
      assert.deepStrictEqual(found[1], found[0])
    }),
  )
})

const timesOf = (table: string): string =>
  ({ runs: "started_at, ended_at, executed_at, published_at", tasks: "started_at, closed_at" })[table] ??
  "run_date"

describe("the gates of a job", () => {
  const never = {
    ...nothing,
    tests: [{ name: "never_c2", sql: "FROM ops.tasks WHERE task_id LIKE '%21/c-2/%'" }],
  }

  it.live("keep a part of a night from becoming current, and hold nothing back", () =>
    onTheWay(
      (root) =>
        Effect.gen(function* () {
          assert.deepStrictEqual(yield* interim(21, ...over), {
            _tag: "Refused",
            message: "a gate of the job did not pass, tests/never_c2.sql: 1 row",
          })
          assert.deepStrictEqual(yield* latest(root), old)
          const { held } = yield* stateOfRun(21)
          assert.deepStrictEqual([held, existsSync(join(root, "published/held"))], [undefined, false])
          assert.deepStrictEqual(yield* problemsIn(root), [])
        }),
      never,
    ),
  )

  it.live(
    "do not ask a part of a night how much it has, and take it out if the whole is held back [interim held]",
    () =>
      inFolder(
        (root) =>
          Effect.gen(function* () {
            yield* append([begin(runOf(20), "2026-11-20"), { _tag: "RunAccepted", run_id: runOf(20) }])
            for (const customer of three) yield* arrive(20, customer)
            yield* publishStage(runOf(20))
            yield* append([{ _tag: "OutcomePublished", run_id: runOf(20) }])
            yield* append([begin(runOf(21), "2026-11-21")])
            yield* arrive(21, "c-1")
            yield* append([plannedOf(21, "c-2"), plannedOf(21, "c-3")])
            assert.deepStrictEqual(yield* interim(21, "c-1"), {
              _tag: "Interim",
              version: 2,
              tasks: 1,
              of: 3,
            })
            assert.deepStrictEqual(yield* latest(root), ["c-1 21", "c-2 20", "c-3 20"])
            yield* publishStage(runOf(21))
            const { held } = yield* stateOfRun(21)
            assert.deepStrictEqual(
              held?.fact.gates.map(({ gate }) => gate),
              ["coverage"],
            )
            assert.deepStrictEqual(yield* latest(root), old)
            assert.deepStrictEqual(manifestOf(root)?.runs[runOf(21)], undefined)
            assert.deepStrictEqual([yield* problemsIn(root), yield* due], [[], 0])
          }),
        { ...nothing, coverage: 0.9, rows: { min: 0.9, nights: 7 } },
      ),
  )
})

describe("a run that the service kept from beginning, and that began after all", () => {
  it.live("is in the tables as before, without a task, if a gate holds the whole of it back", () =>
    inFolder(
      (root) =>
        Effect.gen(function* () {
          yield* append([begin(runOf(21), "2026-11-21")])
          yield* publishStage(runOf(21))
          yield* arrive(21, "c-1")
          yield* append([plannedOf(21, "c-2")])
          assert.deepStrictEqual(yield* interim(21, "c-1"), { _tag: "Interim", version: 2, tasks: 1, of: 2 })
          yield* publishStage(runOf(21))
          assert.deepStrictEqual(yield* column(root, "SELECT run_id, tasks FROM ops.runs"), [
            `${runOf(21)} 0`,
          ])
          assert.deepStrictEqual([yield* latest(root), yield* problemsIn(root)], [[], []])
        }),
      { ...nothing, coverage: 0.9 },
    ),
  )
})

const plannedOf = (day: number, customer: string): Fact => ({
  _tag: "TaskPlanned",
  run_id: runOf(day),
  task_id: taskOf(day, customer),
  customer_id: anId(customer),
  engine_reference: anId(engine),
  features: ["customer_information_read"],
})

describe("people who look after the folder while a run is not over", () => {
  it.live("find it intact, put the last whole version back, and lose nothing of the run by it", () =>
    afterPart((root) =>
      Effect.gen(function* () {
        const back = yield* Effect.flatMap(storeOf(root), rollback)
        assert.deepStrictEqual(back, {
          _tag: "RolledBack",
          version: 3,
          to: 1,
          from: 1,
          without: [runOf(21)],
        })
        assert.deepStrictEqual([yield* latest(root), yield* problemsIn(root)], [old, []])
        assert.deepStrictEqual(yield* interim(21, ...over), {
          _tag: "Refused",
          message: "an earlier version of the tables was put back",
        })
        assert.deepStrictEqual(yield* latest(root), old)
        yield* finish
        assert.deepStrictEqual([yield* latest(root), yield* problemsIn(root)], [whole, []])
      }),
    ),
  )

  it.live(
    "rebuild and repair the tables: the part of the run stays, or goes as a whole if a file is gone",
    () =>
      afterPart((root) =>
        Effect.gen(function* () {
          const rebuilt = yield* Effect.flatMap(storeOf(root), (store) => rebuild(store, true))
          assert.deepStrictEqual([rebuilt.version, rebuilt.runs], [3, 1])
          assert.deepStrictEqual([yield* latest(root), yield* problemsIn(root)], [part, []])
          rmSync(join(root, "tables/customer_profiles/run_date=2026-11-21"), { recursive: true })
          const repaired = yield* Effect.flatMap(storeOf(root), (store) => repair(store))
          assert.deepStrictEqual(repaired, {
            done: [
              `${runOf(21)}: taken out of the tables, since files of it were gone: \`nightjar run\` resumes it`,
            ],
            left: [],
          })
          assert.deepStrictEqual([yield* latest(root), yield* problemsIn(root)], [old, []])
          yield* finish
          assert.deepStrictEqual([yield* latest(root), yield* problemsIn(root)], [whole, []])
        }),
      ),
  )

  it.live("remove a customer: the rows of the run that goes on are gone too, and it ends without them", () =>
    afterPart((root) =>
      Effect.gen(function* () {
        const store = yield* storeOf(root)
        yield* checkWhole(store)
        const plan = yield* planForget(store, anId("c-1"))
        if (plan === undefined) return assert.fail("nothing is known of the customer")
        yield* forget(store, plan, () => Effect.succeed(false))
        assert.deepStrictEqual([yield* latest(root), yield* problemsIn(root)], [["c-2 21", "c-3 20"], []])
        assert.deepStrictEqual(yield* interim(21, ...over), {
          _tag: "Interim",
          version: 4,
          tasks: 1,
          of: 2,
        })
        yield* finish
        assert.deepStrictEqual([yield* latest(root), yield* problemsIn(root)], [["c-2 21", "c-3 21"], []])
        assert.deepStrictEqual(yield* column(root, "SELECT * FROM ops.tasks WHERE customer_id = 'c-1'"), [])
      }),
    ),
  )

  it.live("copy the folder, and finish the run in the copy", () =>
    afterPart((root) =>
      Effect.gen(function* () {
        const copy = join(yield* folder, "copy")
        assert.deepStrictEqual((yield* backup(root, copy)).version, 2)
        const ended = Effect.gen(function* () {
          assert.deepStrictEqual([yield* latest(copy), yield* problemsIn(copy)], [part, []])
          yield* finish
          assert.deepStrictEqual([yield* latest(copy), yield* problemsIn(copy)], [whole, []])
        })
        yield* Effect.provide(ended, Layer.fresh(asking(copy)))
      }),
    ),
  )
})

describe("what is in the way of a version of a run that goes on", () => {
  const room = { databaseBytes: 100, landedBytes: 20 }
  const needed = 64 * 1024 * 1024 + 360

  it("is a disk without room for the run beside it", () => {
    assert.deepStrictEqual(
      [needed, needed - 1].map((freeBytes) => leavesRoom({ ...room, freeBytes })),
      [true, false],
    )
  })

  it.live("is a write that fails: what was current stays, and the run is published later", () =>
    Effect.gen(function* () {
      const root = yield* whileGoingOn
      let isFull = false
      const full = () =>
        Object.assign(new Error("ENOSPC: no space left on device, write"), { code: "ENOSPC" })
      const calls: FileCalls = {
        ...machineCalls,
        write: (...call) => {
          if (isFull) throw full()
          return machineCalls.write(...call)
        },
      }
      yield* Effect.gen(function* () {
        const before = readFileSync(layoutOf(root).manifest, "utf8")
        isFull = true
        const failed = yield* Effect.flip(interim(21, ...over))
        isFull = false
        assert.match(failed.message, /no space left on device/)
        assert.deepStrictEqual(readFileSync(layoutOf(root).manifest, "utf8"), before)
        assert.deepStrictEqual([yield* latest(root), yield* problemsIn(root)], [old, []])
        yield* finish
        assert.deepStrictEqual(yield* latest(root), whole)
      }).pipe(Effect.provide(asking(root, undefined, calls)))
    }),
  )
})
