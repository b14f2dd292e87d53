/**
 * Versions of a run that goes on: what readers find in them, what they leave as it was, and what becomes of them when
 * the run is over, held back, cut off, or when people look after the folder meanwhile.
 */
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { DuckDb } from "../../src/base/DuckDb.ts"
import { dueDeletions } from "../../src/task/DeleteExecutions.ts"
import { lockFolder } from "../../src/base/FolderLock.ts"
import type { Gates } from "../../src/jobs/Job.ts"
import type { Fact } from "../../src/ledger/Fact.ts"
import { Ledger } from "../../src/ledger/Ledger.ts"
import type { Problem } from "../../src/messages/Catalogue.ts"
import { publishStage } from "../../src/run/PublishMeanwhile.ts"
import { placeOf } from "../../src/tables/DataDictionary.ts"
import { keptVersions } from "../../src/tables/KeptVersions.ts"
import { layoutOf, readManifest } from "../../src/tables/Manifest.ts"
import { leavesRoom } from "../../src/tables/PublisherDuckDb.ts"
import { Publisher } from "../../src/tables/Publisher.ts"
import { repair } from "../../src/tables/Repair.ts"
import { verifyBeside } from "../../src/tables/Verify.ts"
import { copiesOf } from "../harness/CopiesOf.ts"
import { anId } from "../harness/Id.ts"
import {
  append,
  begin,
  drained,
  engine,
  folder,
  layers,
  problemsIn,
  profileOf,
  resultsOf,
  rowsOf,
  stateOf,
  storeOf,
  succeed,
  liveIn,
} from "./night.ts"
import { effect } from "../harness/Steps.ts"

const runOf = (day: number) => anId(`nightly.2026-11-${day}`)
const taskOf = (day: number, customer: string) => anId(`${runOf(day)}/${customer}/${engine}`)
const nothing: Gates = { keys: false, tests: [] }

const asking = (root: string, gates?: Gates) => layers(root, gates && { gates })

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

describe("`verify` beside a run that publishes", () => {
  const problem = (where: string, id: Problem["id"] = "file-differs"): Problem => ({
    where,
    id,
    problem: `${where} differs`,
    next: "",
  })
  const [lost, other] = [problem("lost"), problem("of an older version")]
  const cut = problem("tables", "publication-interrupted")

  /** What is said after these looks, after each of which a version is published if it says so; and how many there were. */
  const said = (
    isBusy: boolean,
    ...looks: ReadonlyArray<readonly [published: boolean, ...found: ReadonlyArray<Problem>]>
  ) =>
    Effect.gen(function* () {
      const root = yield* folder
      const layout = layoutOf(root)
      mkdirSync(layout.tables)
      writeFileSync(layout.manifest, "")
      if (isBusy) yield* lockFolder(join(root, "run.lock"))
      let count = 0
      const look = Effect.sync(() => {
        const [isPublished, ...found] = looks[Math.min(count++, looks.length - 1)]!
        if (isPublished) writeFileSync(layout.manifest, String(count))
        return found
      })
      const fiber = yield* Effect.forkChild(verifyBeside(layout, look))
      yield* TestClock.adjust("10 seconds")
      return [yield* Fiber.join(fiber), count]
    }).pipe(Effect.scoped)

  effect("takes no new version for damage, and finds what every look has, five times at most", function* () {
    assert.deepStrictEqual(
      [
        yield* said(true, [false, lost]),
        yield* said(true, [true, other], [false]),
        yield* said(true, [true, lost, other], [false, lost]),
        yield* said(true, [true, lost], [false, other]),
        yield* said(true, [true, lost]),
      ],
      [
        [[lost], 1],
        [[], 2],
        [[lost], 2],
        [[], 2],
        [[lost], 5],
      ],
    )
  })

  effect("leaves out what a run is writing, and names what a killed one left", function* () {
    assert.deepStrictEqual(
      [yield* said(true, [false, lost, cut]), yield* said(false, [false, lost, cut])],
      [
        [[lost], 1],
        [[lost, cut], 1],
      ],
    )
  })
})

describe("a version of a run that goes on", () => {
  liveIn(whileGoingOn)(
    "has whole tasks only and everybody else's records of the night before, gives no receipts, disturbs no reader, and takes no place among the versions that are kept [interim whole] [interim kept]",
    function* (root) {
      const duckdb = yield* DuckDb
      const reader = yield* duckdb.open({ path: join(root, "nightjar.duckdb"), access: "read-only" })
      const read = Effect.map(reader.rows("SELECT name FROM customer_profiles ORDER BY name"), (rows) =>
        rows.map(({ name }) => String(name)),
      )
      assert.deepStrictEqual(yield* read, old)
      const done = yield* interim(21, ...over)
      assert.deepStrictEqual(done, {
        _tag: "InterimPublished",
        run_id: runOf(21),
        version: 2,
        tasks: 2,
        of: 3,
      })
      assert.deepStrictEqual([yield* read, yield* latest(root)], [old, part])
      const ofTonight = (columns: string, table: string) =>
        column(root, `SELECT ${columns} FROM ${placeOf(table)} WHERE run_id = '${runOf(21)}' ORDER BY ALL`)
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
      // A task without a verdict is left out, whatever is said.
      yield* interim(21, "c-1", "c-3")
      assert.deepStrictEqual(yield* latest(root), ["c-1 21", "c-2 20", "c-3 20"])
      assert.deepStrictEqual(yield* ofTonight("name", "customer_profiles"), ["c-1 21"])
      assert.deepStrictEqual(yield* kept(root), [1])
      yield* finish
      assert.deepStrictEqual([yield* due, yield* latest(root), yield* read], [3, whole, old])
      assert.deepStrictEqual([yield* kept(root), yield* problemsIn(root)], [[1], []])
      const { files = [] } = manifestOf(root)?.runs[runOf(21)] ?? {}
      const left = readdirSync(join(root, "tables/customer_profiles/run_date=2026-11-21"))
      assert.deepStrictEqual([left.length, files.every(({ path }) => path.includes("-v4"))], [1, true])
    },
  )
})

describe("the gates of a job", () => {
  const never = {
    ...nothing,
    tests: [{ name: "never_c2", sql: "FROM ops.tasks WHERE task_id LIKE '%21/c-2/%'" }],
  }

  liveIn(whileGoingOn, (root) => asking(root, never))(
    "keep a part of a night from becoming current, and hold nothing back",
    function* (root) {
      assert.deepStrictEqual(yield* interim(21, ...over), {
        _tag: "InterimRefused",
        run_id: runOf(21),
        message: "a gate of the job did not pass, tests/never_c2.sql: 1 row",
      })
      assert.deepStrictEqual(yield* latest(root), old)
      const { held } = yield* stateOfRun(21)
      assert.deepStrictEqual([held, existsSync(join(root, "published/held"))], [undefined, false])
    },
  )

  liveIn(folder, (root) => asking(root, { ...nothing, coverage: 0.9, rows: { min: 0.9, nights: 7 } }))(
    "do not ask a part of a night how much it has, and take it out if the whole is held back [interim held]",
    function* (root) {
      yield* append([begin(runOf(20), "2026-11-20"), { _tag: "RunAccepted", run_id: runOf(20) }])
      for (const customer of three) yield* arrive(20, customer)
      yield* publishStage(runOf(20))
      yield* append([{ _tag: "OutcomePublished", run_id: runOf(20) }])
      yield* append([begin(runOf(21), "2026-11-21")])
      yield* arrive(21, "c-1")
      yield* append([plannedOf(21, "c-2"), plannedOf(21, "c-3")])
      assert.deepStrictEqual(yield* interim(21, "c-1"), {
        _tag: "InterimPublished",
        run_id: runOf(21),
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
    },
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
  liveIn(whileGoingOn)(
    "repair the tables: the part of the run goes as a whole if a file of it is gone",
    function* (root) {
      yield* interim(21, ...over)
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
      assert.deepStrictEqual(yield* latest(root), whole)
    },
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
})
