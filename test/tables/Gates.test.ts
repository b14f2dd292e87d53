/**
 * A version that does not pass the gates of its job: kept aside and readable, with what was current untouched and
 * without a receipt; contained in the next version that passes; let through by a person; and what rollback, rebuild,
 * repair and a copy of the folder make of a run of which an earlier version is published.
 */
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { DuckDb } from "../../src/base/DuckDb.ts"
import { pendingDeletions } from "../../src/ledger/RunState.ts"
import { dueDeletions } from "../../src/task/DeleteExecutions.ts"
import type { Gates } from "../../src/jobs/Job.ts"
import { Landing } from "../../src/landing/Landing.ts"
import { Ledger } from "../../src/ledger/Ledger.ts"
import { publishStage } from "../../src/run/PublishMeanwhile.ts"
import { filesBelow, readManifest } from "../../src/tables/Manifest.ts"
import { staleIn } from "../../src/tables/AskGates.ts"
import { nightExitCode } from "../../src/ledger/WholeNight.ts"
import { alarmCodeOf, exitCodeOf } from "../../src/report/Finish.ts"
import { meaningOfExit } from "../../src/report/RenderSummary.ts"
import { summarise } from "../../src/report/Summary.ts"
import { copiesOf } from "../harness/CopiesOf.ts"
import { anId } from "../harness/Id.ts"
import {
  append,
  begin,
  damageBody,
  drained,
  folder,
  layers,
  profileOf,
  resultsOf,
  rowsOf,
  stateOf,
  storeOf,
  succeed,
  liveIn,
} from "./night.ts"
import type { RunId } from "../../src/service/Ids.ts"
import { backup } from "../../src/folder/Backup.ts"
import { rebuild } from "../../src/tables/Rebuild.ts"
import { repair } from "../../src/tables/Repair.ts"
import { live } from "../harness/Steps.ts"

const nothing: Gates = { keys: false, tests: [] }
const test = (sql: string): Gates => ({ ...nothing, tests: [{ name: "told", sql }] })
const date = (day: number) => `2026-11-${day}`
const runOf = (day: number) => anId(`nightly.${date(day)}`)

/** One customer per name, each with one profile; publishing is left to the test. */
const land = Effect.fnUntraced(function* (day: number, ...names: ReadonlyArray<string>) {
  yield* append([begin(runOf(day), date(day))])
  yield* arrive(day, ...names)
})

const arrive = Effect.fnUntraced(function* (day: number, ...names: ReadonlyArray<string>) {
  const run_id = runOf(day)
  for (const name of names) {
    const id = `${day}-${name}`
    yield* succeed(run_id, id, name, resultsOf(profileOf(name)), stateOf(id, name))
    yield* drained(run_id, id, name)
  }
})

/** One life of the program with these gates, over a folder that outlives it. */
const asking = (root: string, gates: Gates | undefined) => layers(root, gates && { gates })

const state = Effect.fnUntraced(function* (day: number) {
  const found = yield* Effect.flatMap(Ledger, (ledger) => ledger.state(runOf(day)))
  return found ?? (yield* Effect.die("no such run"))
})

const current = (root: string) =>
  Effect.map(rowsOf(root, "SELECT DISTINCT run_id FROM ops.runs ORDER BY 1"), (rows) =>
    rows.map((row) => String(row["run_id"]).slice(-2)),
  )

const gatesOf = (day: number) =>
  Effect.map(state(day), ({ held }) => held?.fact.gates.map(({ gate, found }) => `${gate}: ${found}`) ?? [])

/** One customer per name; whose feature fails and whose is read. */
const mixed = Effect.fnUntraced(function* (day: number, customers: Readonly<Record<string, boolean>>) {
  yield* append([begin(runOf(day), date(day))])
  for (const [name, isRead] of Object.entries(customers)) {
    const id = `${day}-${name}`
    const status_reason = isRead ? "FEATURE_COMPLETED" : "FEATURE_FAILED"
    const features = [{ code: "customer_information_read", status_reason }]
    const data = isRead ? [profileOf(name)] : []
    yield* succeed(runOf(day), id, name, resultsOf(...data), stateOf(id, name, { features }))
    yield* drained(runOf(day), id, name)
  }
  yield* publishStage(runOf(day))
})

describe("limits of freshness", () => {
  it.live("that cannot be compared cost no version, and are told", () =>
    Effect.gen(function* () {
      const root = yield* folder
      const store = yield* storeOf(root)
      const stale = yield* staleIn(store, { job: "nightly", run_date: date(20) }, { error_after: 3 })
      assert.deepStrictEqual(Object.keys(stale), ["unknown"])
      assert.match(stale.unknown ?? "", /database does not exist/)
    }).pipe(Effect.provide(Layer.merge(DuckDb.layer, NodeFileSystem.layer))),
  )

  it.live("of an engine win over those of the job, key by key, however far apart they are", () =>
    Effect.gen(function* () {
      const store = yield* storeOf(yield* folder)
      const { build } = store.layout
      mkdirSync(dirname(build), { recursive: true })
      const ages: Readonly<Record<string, number>> = { bank: 5, tax: 5, slow: 5, old: 70 }
      yield* Effect.scoped(
        Effect.gen(function* () {
          const connection = yield* (yield* DuckDb).open({ path: build, access: "read-write" })
          yield* connection.run(
            `CREATE SCHEMA ops; CREATE SCHEMA store; CREATE TABLE ops.runs AS SELECT concat('r', d) AS run_id, DATE '2026-11-21' - d AS run_date, 'nightly' AS job,
              NULL AS parent, 4 AS tasks, 100 - d AS sequence, NULL AS started_at FROM unnest([0, 5, 70]) AS days(d)`,
          )
          yield* connection.run(
            "CREATE TABLE store._runs AS SELECT run_id, sequence AS seq, run_date AS e, true AS whole FROM ops.runs",
          )
          yield* connection.run(
            `CREATE TABLE ops.coverage AS SELECT run_id, run_date, 'c-1' AS customer_id, e.name AS engine_reference, 'f' AS feature,
              CASE WHEN run_date = DATE '2026-11-21' - e.age THEN 'succeeded' ELSE 'failed' END AS outcome
              FROM ops.runs, (VALUES ${Object.entries(ages)
                .map(([name, age]) => `('${name}', ${age})`)
                .join(", ")}) AS e(name, age)`,
          )
        }),
      )
      const run = { job: "nightly", run_date: "2026-11-21" }
      const engines = { tax: { warn_after: 2, error_after: 4 }, slow: { warn_after: 30, error_after: 60 } }
      assert.deepStrictEqual(yield* staleIn(store, run, { warn_after: 2, error_after: 60, engines }), {
        warned: { days: 2, count: 1, examples: ["c-1 bank f"] },
        failed: { days: 4, count: 2, examples: ["c-1 old f", "c-1 tax f"] },
      })
      assert.deepStrictEqual(yield* staleIn(store, run, { engines: { tax: { warn_after: 4 } } }), {
        warned: { days: 4, count: 1, examples: ["c-1 tax f"] },
      })
    }).pipe(Effect.scoped, Effect.provide(Layer.merge(DuckDb.layer, NodeFileSystem.layer))),
  )

  live(
    "are compared with the last success, or with the first night if there was none [freshness limits]",
    function* () {
      const root = yield* folder
      const told = yield* Effect.provide(
        Effect.gen(function* () {
          yield* mixed(20, { gone: true, old: true, well: true })
          yield* mixed(21, { fresh: true, never: false, old: false, well: true })
          yield* mixed(24, { fresh: false, never: false, new: false, old: false, well: true })
          return yield* Effect.forEach([20, 21, 24], state)
        }),
        layers(root, { freshness: { warn_after: 1, error_after: 3 } }),
      )
      const whose = (name: string) => `${name} es-tax-agency:website customer_information_read`
      assert.deepStrictEqual(
        told.map(({ published }) => published?.fact.stale),
        [
          undefined,
          undefined,
          {
            warned: { days: 1, count: 2, examples: [whose("fresh"), whose("never")] },
            failed: { days: 3, count: 1, examples: [whose("old")] },
          },
        ],
      )
      const codes = told.map((run) => alarmCodeOf(run, { after_export: "keep", exit_on: "new" }, undefined))
      assert.deepStrictEqual(codes, [0, 0, 3])
      const ended = told.map((run) => ({
        ...run,
        ended: { at: 0, exit_code: 0, leftovers: false, kept: 0 },
      }))
      assert.deepStrictEqual([nightExitCode(ended.slice(0, 2)), nightExitCode(ended.slice(1))], [0, 3])
      const summary = summarise(told[2] ?? (yield* Effect.die("no run")))
      const { stale, warnings } = summary
      assert.deepStrictEqual(
        [meaningOfExit({ ...summary, exit_code: 3 }), stale, warnings],
        [
          "the run has ended; some data is older than `freshness` in the job allows",
          told[2]?.published?.fact.stale,
          [
            `1 feature without new data for more than 3 days: ${whose("old")} [data-too-old]`,
            `2 features without new data for more than 1 day: ${whose("fresh")}, ${whose("never")} [data-old]`,
            "in tasks that succeeded, 4 features did not: customer_information_read FEATURE_FAILED (4) [features-left]",
          ],
        ],
      )
    },
  )
})

/** A first night of one customer, without gates. */
const afterSmallNight = copiesOf((root) =>
  Effect.provide(Effect.andThen(land(20, "c-1"), publishStage(runOf(20))), asking(root, undefined)),
)

describe("a gate", () => {
  live(
    "counts the records of a family wherever they stand, so a schema more is neither loss nor gain",
    function* () {
      const root = yield* folder
      const gates: Gates = { ...nothing, rows: { min: 0.9, nights: 7 } }
      const night = Effect.fnUntraced(function* (day: number, accounts: number) {
        const records = Array.from({ length: accounts }, (_, index) => [
          { product: "accounts", sub_family: "account:checking", iban: `ES${index}` },
          { product: "cards", sub_family: "of their own", number: `${index}` },
        ])
        yield* append([begin(runOf(day), date(day))])
        yield* succeed(runOf(day), `${day}`, "c-1", resultsOf(...records.flat()))
        yield* publishStage(runOf(day))
        return yield* gatesOf(day)
      })
      yield* Effect.provide(night(20, 12), asking(root, gates))
      const ownSchemas = yield* folder
      const schema = `table: accounts
comment: Accounts at a bank.
product: accounts
sub_families: ["account:checking"]
features: [accounts_read]
columns:
  iban: { type: VARCHAR, comment: c }
`
      writeFileSync(join(ownSchemas, "accounts.yaml"), schema)
      const found = Effect.gen(function* () {
        assert.deepStrictEqual(yield* night(21, 12), [])
        assert.deepStrictEqual(yield* night(22, 5), ["rows: accounts has 5 of 12, other_records has 5 of 12"])
        const rows = yield* rowsOf(
          root,
          "SELECT run_date::VARCHAR AS d, 'accounts' AS t, count(*)::INT AS n FROM nights.accounts GROUP BY ALL " +
            "UNION ALL SELECT run_date::VARCHAR, product, count(*) FROM nights.other_records GROUP BY ALL ORDER BY ALL",
        )
        assert.deepStrictEqual(
          rows.map(({ d, t, n }) => [d, t, n]),
          [
            ["2026-11-20", "accounts", 12],
            ["2026-11-20", "cards", 12],
            ["2026-11-21", "accounts", 12],
            ["2026-11-21", "cards", 12],
          ],
        )
        assert.deepStrictEqual(
          yield* rowsOf(root, "SELECT 1 FROM nights.accounts WHERE run_date = '2026-11-20'"),
          [],
        )
      })
      yield* Effect.provide(found, layers(root, { ownSchemas, gates }))
    },
  )
})

describe("a version that a gate holds back", () => {
  const passes = test("SELECT 1 WHERE (SELECT max(run_date) FROM ops.runs) = '2026-11-21'")

  live(
    "is readable aside, changes nothing that is current, and may be deleted only once the next version that passes contains it [gate receipts] [gate released]",
    function* () {
      const root = yield* afterSmallNight
      yield* Effect.gen(function* () {
        const before = filesBelow(join(root, "tables"))
        yield* land(21, "c-1")
        // Published before its newest body came: what that version proved is no permission any more.
        yield* append([
          {
            _tag: "RunPublished",
            run_id: runOf(21),
            version: 1,
            receipts: [{ execution_id: anId("e-21-c-1"), landed_sha256: "0", whole: true }],
          },
        ])
        assert.strictEqual(dueDeletions(yield* state(21)).length, 1)
        yield* arrive(21, "c-2")
        assert.deepStrictEqual(yield* publishStage(runOf(21)), [])
        const held = yield* state(21)
        const database = `published/held/${runOf(21)}.duckdb`
        assert.deepStrictEqual(summarise(held).held, {
          database,
          gates: [{ gate: "tests/told.sql", expected: "no rows", found: "1 row" }],
        })
        assert.deepStrictEqual(summarise(held).warnings.slice(0, 2), [
          "the gate tests/told.sql did not pass: 1 row; expected: no rows [gate-failed]",
          `the new tables were not made current: they are in ${database} in the output folder [version-held]`,
        ])
        assert.deepStrictEqual(
          [dueDeletions(held), pendingDeletions(held), exitCodeOf(held, "delete")],
          [[], 0, 3],
        )
        assert.deepStrictEqual(yield* current(root), ["20"])
        assert.deepStrictEqual(filesBelow(join(root, "tables")), before)
        const duckdb = yield* DuckDb
        const aside = yield* Effect.scoped(
          Effect.flatMap(duckdb.open({ path: join(root, database), access: "read-only" }), (connection) =>
            connection.rows("SELECT count(*)::INTEGER AS n FROM customer_profiles"),
          ),
        )
        assert.deepStrictEqual(aside, [{ n: 2 }])
        yield* append([{ _tag: "RunEnded", run_id: runOf(21), exit_code: 3, leftovers: true }])
        yield* append([{ _tag: "OutcomePublished", run_id: runOf(21) }])
        yield* land(22, "c-1")
        assert.deepStrictEqual(yield* publishStage(runOf(22)), [runOf(21)])
        assert.deepStrictEqual(yield* current(root), ["20", "21", "22"])
        const released = yield* state(21)
        assert.deepStrictEqual(
          [released.held, dueDeletions(released).map(({ execution_id }) => execution_id)],
          [undefined, [anId("e-21-c-1"), anId("e-21-c-2")]],
        )
        assert.deepStrictEqual(readdirSync(join(root, "published/held")), [])
        assert.isUndefined((yield* state(22)).published?.fact.without)
      }).pipe(Effect.provide(asking(root, passes)))
    },
  )

  live(
    "stays back if a body of it has changed: the next version that passes lacks it, and says so",
    function* () {
      const root = yield* folder
      yield* Effect.gen(function* () {
        yield* land(21, "c-1")
        yield* publishStage(runOf(21))
        const [body] = yield* Effect.flatMap(Landing, (landing) => landing.list(runOf(21)))
        const { ref } = body ?? (yield* Effect.die("no body"))
        damageBody(root, runOf(21), ref)
        yield* land(22, "c-1")
        assert.deepStrictEqual(yield* publishStage(runOf(22)), [])
        assert.deepStrictEqual(yield* current(root), ["22"])
        assert.deepStrictEqual((yield* state(22)).published?.fact.without, [runOf(21)])
        const back = yield* state(21)
        assert.deepStrictEqual(
          [back.held?.fact.run_id, back.published, dueDeletions(back)],
          [runOf(21), undefined, []],
        )
      }).pipe(Effect.provide(asking(root, passes)))
    },
  )
})

/** Does not pass as soon as anybody is called Eve. */
const noEve = {
  keys: true,
  tests: [{ name: "no_eve", sql: "SELECT 1 FROM nights.customer_profiles WHERE name = 'Eve'" }],
}
const models = [{ name: "people", sql: "SELECT DISTINCT name FROM nights.customer_profiles" }]

const withModels = (root: string) => layers(root, { gates: noEve, models })

const arriveAs = Effect.fnUntraced(function* (run_id: RunId, customer: string, name: string) {
  const id = `${run_id}-${customer}`
  yield* succeed(run_id, id, customer, resultsOf(profileOf(name)), stateOf(id, customer))
  yield* drained(run_id, id, customer)
})

/** Ana's two nights are published; then Eve arrives in the second one, and is held back. */
const heldNights = Effect.gen(function* () {
  for (const day of [20, 21]) {
    yield* append([begin(runOf(day), `2026-11-${day}`)])
    yield* arriveAs(runOf(day), "c-1", "Ana")
    yield* publishStage(runOf(day))
  }
  yield* arriveAs(runOf(21), "c-2", "Eve")
  yield* publishStage(runOf(21))
})

const accept = Effect.gen(function* () {
  yield* append([{ _tag: "RunAccepted", run_id: runOf(21) }])
  yield* publishStage(runOf(21))
})

/** Day and name of every profile that readers find. */
const profiles = (root: string) =>
  Effect.map(rowsOf(root, "SELECT run_id, name FROM nights.customer_profiles ORDER BY ALL"), (rows) =>
    rows.map((row) => `${String(row["run_id"]).slice(-2)} ${String(row["name"])}`),
  )
const due = Effect.gen(function* () {
  const ledger = yield* Ledger
  const state = yield* ledger.state(runOf(21))
  return state === undefined ? undefined : dueDeletions(state).length
})
const people = (root: string) => rowsOf(root, "SELECT count(*)::INTEGER AS n FROM people")
const text = "a gate of its job holds its newest version back: `nightjar accept` publishes it"
const heldPath = "published/held/nightly.2026-11-21.duckdb"

describe("a run with a version that is held back", () => {
  liveIn(folder, withModels)(
    "keeps its published tables in `rebuild` and `repair`, which ask no gate, and is let through in a copy, too [gate rebuilt]",
    function* (root) {
      yield* heldNights
      const rebuilt = yield* rebuild(yield* storeOf(root), true)
      assert.deepStrictEqual(rebuilt.kept, [{ run_id: runOf(21), reason: text, pruned: false }])
      assert.deepStrictEqual([yield* profiles(root), yield* due], [["20 Ana", "21 Ana"], 0])
      assert.deepStrictEqual(yield* people(root), [{ n: 1 }])
      const files = readManifest(join(root, "tables/manifest.json"))?.runs[runOf(21)]?.files ?? []
      const lost = files.find(({ table }) => table === "customer_profiles")?.path ?? ""
      rmSync(join(root, lost))
      const { left } = yield* repair(yield* storeOf(root))
      assert.deepStrictEqual(left, [`${runOf(21)}: its tables are not derived again: ${text}`])
      const copy = join(yield* folder, "copy")
      yield* backup(root, copy)
      yield* Effect.gen(function* () {
        assert.isTrue(existsSync(join(copy, heldPath)))
        // Without the job's own files: what is published again has the models that are kept.
        rmSync(join(copy, "nightjar.duckdb"))
        yield* repair(yield* storeOf(copy))
        assert.deepStrictEqual(yield* people(copy), [{ n: 1 }])
        yield* accept
        assert.deepStrictEqual([yield* profiles(copy), yield* due], [["20 Ana", "21 Ana", "21 Eve"], 2])
      }).pipe(Effect.provide(withModels(copy)))
    },
  )
})
