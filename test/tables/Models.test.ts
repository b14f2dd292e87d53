/**
 * The analyst's own SQL in every published version: made in the order of its references, described by its comments,
 * kept through a rebuild and through the runs of other jobs, and never the reason why nothing is published.
 */
import { rmSync } from "node:fs"
import { join } from "node:path"
import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import type { SqlFile } from "../../src/jobs/Job.ts"
import { keptModels, publishedModels } from "../../src/tables/Models.ts"
import { Publisher } from "../../src/tables/Publisher.ts"
import { repair } from "../../src/tables/Repair.ts"
import { anId } from "../harness/Id.ts"
import {
  append,
  begin,
  folder,
  foundation,
  layers,
  profileOf,
  publish,
  resultsOf,
  rowsOf,
  storeOf,
  succeed,
} from "./night.ts"
import { live } from "../harness/Steps.ts"

/** A gate that cannot be asked has not passed: this one needs a model. */
const gates = {
  keys: false,
  tests: [{ name: "few", sql: "SELECT 1 WHERE (SELECT customers FROM people) > 9" }],
}

const living = (root: string, models?: ReadonlyArray<SqlFile>) => layers(root, models && { models, gates })

const night = Effect.fnUntraced(function* (job: string, day: number) {
  const run_id = anId(`${job}.2026-11-${day}`)
  yield* append([{ ...begin(run_id, `2026-11-${day}`), job } as never])
  yield* succeed(run_id, `${job}-${day}`, `c-${day}`, resultsOf(profileOf("Ana")))
  const { models } = yield* publish(run_id)
  yield* append([{ _tag: "RunEnded", run_id, exit_code: 0, leftovers: false }])
  yield* Effect.flatMap(Publisher, (publisher) => publisher.publishOutcome(run_id))
  return models
})

const described = Effect.fnUntraced(function* (root: string) {
  const { families } = yield* storeOf(root)
  return yield* publishedModels(join(root, "nightjar.duckdb"), families)
})

const models: ReadonlyArray<SqlFile> = [
  // Refers to one that comes later by its name.
  { name: "people", sql: "-- Customers and\n-- their number.\nSELECT count(*) AS customers FROM those;" },
  {
    name: "runs_over",
    sql: "-- materialized: table\n-- Runs that ended.\nSELECT run_id FROM ops.runs WHERE ended_at IS NOT NULL",
  },
  { name: "those", sql: "SELECT DISTINCT customer_id FROM nights.customer_profiles" },
]
const column = (name: string, type: string) => ({ name, type, comment: "" })
const made = [
  {
    schema: "main",
    name: "people",
    kind: "view",
    comment: "Customers and their number.",
    columns: [column("customers", "BIGINT")],
  },
  {
    schema: "main",
    name: "runs_over",
    kind: "table",
    comment: "Runs that ended.",
    columns: [column("run_id", "VARCHAR")],
  },
  {
    schema: "main",
    name: "those",
    kind: "view",
    comment: "A model of a job.",
    columns: [column("customer_id", "VARCHAR")],
  },
]

describe("a job's models", () => {
  live(
    "are made in the order of their references, tables with the outcome, and outlive a rebuild and other jobs",
    function* () {
      const root = yield* folder
      yield* Effect.gen(function* () {
        assert.deepStrictEqual(yield* night("nightly", 20), [])
        assert.deepStrictEqual(yield* described(root), made as never)
        assert.deepStrictEqual(yield* rowsOf(root, "SELECT * FROM runs_over"), [
          { run_id: "nightly.2026-11-20" },
        ])
      }).pipe(Effect.provide(living(root, models)))
      yield* Effect.gen(function* () {
        assert.deepStrictEqual(yield* night("weekly", 21), [])
        assert.deepStrictEqual(yield* rowsOf(root, "SELECT * FROM people"), [{ customers: 2 }])
        rmSync(join(root, "nightjar.duckdb"))
        yield* repair(yield* storeOf(root))
        assert.deepStrictEqual(yield* described(root), made as never)
        assert.deepStrictEqual(yield* night("nightly", 22), [])
        assert.deepStrictEqual(yield* described(root), [])
      }).pipe(Effect.provide(living(root)))
    },
  )

  live(
    "cost only themselves if they cannot be made: clashes, cycles, files, more than one statement",
    function* () {
      const root = yield* folder
      const failed = yield* Effect.provide(
        night("nightly", 20),
        living(root, [
          { name: "customer_profiles", sql: "SELECT 1" },
          { name: "people", sql: "SELECT 1 AS customers" },
          { name: "loop_a", sql: "SELECT * FROM loop_b" },
          { name: "loop_b", sql: "SELECT * FROM loop_a" },
          { name: "outside", sql: "SELECT * FROM read_csv('/etc/hosts')" },
          { name: "two", sql: "SELECT 1) AS m; DROP TABLE ops.runs; --" },
          { name: "between", sql: "SELECT 1) AS m; DROP TABLE ops.runs; SELECT * FROM (SELECT 1" },
          { name: "whole", sql: "SELECT 1 AS one -- with a comment at the end" },
        ]),
      )
      assert.deepStrictEqual(
        failed?.map(({ name }) => name),
        ["customer_profiles", "loop_a", "loop_b", "outside", "two", "between"],
      )
      assert.strictEqual(failed?.[0]?.why, "a table or view of this name already exists")
      yield* Effect.gen(function* () {
        assert.deepStrictEqual(yield* rowsOf(root, "SELECT one FROM whole"), [{ one: 1 }])
        assert.deepStrictEqual(yield* rowsOf(root, "SELECT count(*)::INTEGER AS n FROM ops.runs"), [{ n: 1 }])
      }).pipe(Effect.provide(foundation(root)))
    },
  )
})

describe("the models of a job that another replaces", () => {
  live("stay when that one publishes what one of its runs left [run replaced models]", function* () {
    const root = yield* folder
    const modelsOf = (name: string) => [{ name, sql: "SELECT count(*) AS customers FROM customers" }]
    yield* Effect.provide(night("old", 20), layers(root, { job: "old", models: modelsOf("people") }))
    const heir = layers(root, { job: "heir", models: modelsOf("others") })
    yield* Effect.provide(night("old", 21), heir)
    const kept = yield* Effect.provide(Effect.flatMap(storeOf(root), keptModels), foundation(root))
    assert.deepStrictEqual(
      kept.map(({ job, name }) => [job, name]),
      [
        ["heir", "others"],
        ["old", "people"],
      ],
    )
  })
})
