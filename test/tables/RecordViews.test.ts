/**
 * History, changes and coverage over nights in a drawn order: reruns of older nights after newer ones, several of
 * them, two jobs, failures. A model computes what the views have to say; the rows are written into an empty database.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import fc from "fast-check"
import { DuckDb } from "../../src/base/DuckDb.ts"
import type { Connection } from "../../src/base/DuckDb.ts"
import { placeEmptyDatabase } from "../../src/tables/EmptyDatabase.ts"
import { engine, folder, foundation, storeOf } from "./night.ts"

const feature = "customer_information_read"
const customers = ["c-1", "c-2"]

/** A run as the views see it: its date, and each customer's name; null is a failed task. */
interface Night {
  readonly day: number
  readonly names: ReadonlyArray<string | null>
}

const dateOf = (day: number): string => `2026-11-${10 + day}`
/** In the order in which they began, the first is 1. */
const runOf = (index: number): string => `run-${String(index + 1).padStart(2, "0")}`

const drawnNights = fc.array(
  fc.record({
    day: fc.integer({ min: 0, max: 6 }),
    names: fc.tuple(
      ...customers.map(() => fc.option(fc.constantFrom("Ana", "Bea", "Cid"), { freq: 3, nil: null })),
    ),
  }),
  { minLength: 2, maxLength: 9 },
)

const fill = Effect.fnUntraced(function* ({ run }: Connection, nights: ReadonlyArray<Night>) {
  yield* run("BEGIN; DELETE FROM runs; DELETE FROM coverage; DELETE FROM customer_profiles")
  for (const [index, { day, names }] of nights.entries()) {
    const run_id = runOf(index)
    const date = dateOf(day)
    yield* run(
      "INSERT INTO runs BY NAME SELECT ? AS run_id, 'nightly' AS job, ?::DATE AS run_date, 2 AS tasks, ? AS sequence",
      [run_id, date, index + 1],
    )
    for (const [place, name] of names.entries()) {
      const lineage = `${`'${run_id}' AS run_id, DATE '${date}' AS run_date, `}'${customers[place]}' AS customer_id,
        '${engine}' AS engine_reference, 's-${index}-${place}' AS session_id`
      yield* run(
        `INSERT INTO coverage BY NAME SELECT ${lineage}, '${feature}' AS feature,
          '${name === null ? "failed" : "succeeded"}' AS outcome`,
      )
      if (name === null) continue
      yield* run(
        `INSERT INTO customer_profiles BY NAME SELECT ${lineage}, 't-${index}-${place}' AS task_id,
          'r-${customers[place]}-${name}' AS record_id, '${name}' AS content_id, '${name}' AS name,
          'customer_information' AS product, 'customer_information:user_profile' AS sub_family`,
      )
    }
  }
  yield* run("COMMIT")
})

interface Version {
  readonly customer: string
  readonly name: string
  readonly since: number
  until: number | null
}

/** A run looks when it begins: after all that began before it, whatever date it repeats. */
const seenOn = (nights: ReadonlyArray<Night>) =>
  nights.map((_, index) => Math.max(...nights.slice(0, index + 1).map(({ day }) => day)))

const versionsOf = (nights: ReadonlyArray<Night>): ReadonlyArray<Version> => {
  const versions: Array<Version> = []
  for (const [place, customer] of customers.entries()) {
    let open: Version | undefined
    for (const [index, { names }] of nights.entries()) {
      const name = names[place] ?? null
      if (name === null || name === open?.name) continue
      if (open !== undefined) open.until = index
      open = { customer, name, since: index, until: null }
      versions.push(open)
    }
  }
  return versions
}

const standingAt = (versions: ReadonlyArray<Version>, moment: number) =>
  new Map(
    versions
      .filter(({ since, until }) => since <= moment && (until === null || until > moment))
      .map(({ customer, name }) => [customer, name]),
  )

/** `customer: before > after` between the last runs that had looked by these days. */
const changesOf = (nights: ReadonlyArray<Night>, earlier: number, later: number) => {
  const versions = versionsOf(nights)
  const lastBy = (day: number) => seenOn(nights).findLastIndex((seen) => seen <= day)
  const [before, after] = [standingAt(versions, lastBy(earlier)), standingAt(versions, lastBy(later))]
  return customers.flatMap((customer) => {
    const [was, is] = [before.get(customer), after.get(customer)]
    return was === is ? [] : [`${customer}: ${was} > ${is}`]
  })
}

const historySql = `SELECT customer_id, name, valid_from, valid_to, since_run_id, until_run_id
  FROM customer_profiles_history ORDER BY customer_id, since_run_id`

/** A pair of rows without a business key is one that is gone and one that was added. */
const changesSql = `SELECT customer_id || ': ' || coalesce(max(before->>'$.name'), 'undefined') || ' > ' ||
    coalesce(max(after->>'$.name'), 'undefined') AS told
  FROM changes(?, ?) WHERE table_name = 'customer_profiles' GROUP BY customer_id ORDER BY customer_id`

const freshSql = `SELECT customer_id, fresh_date, age_days FROM coverage_current
  WHERE fresh_date IS NOT NULL ORDER BY customer_id`

const checkViews = Effect.fnUntraced(function* (connection: Connection, nights: ReadonlyArray<Night>) {
  yield* fill(connection, nights)
  const seen = seenOn(nights)
  const on = (index: number | null) => (index === null ? null : dateOf(seen[index] ?? 0))
  const history = yield* connection.query(historySql)
  assert.deepStrictEqual(
    history.rows,
    versionsOf(nights).map(({ customer, name, since, until }) => [
      customer,
      name,
      on(since),
      on(until),
      runOf(since),
      until === null ? null : runOf(until),
    ]),
  )
  assert.deepStrictEqual(
    history.rows.filter(([, , from, to]) => typeof to === "string" && to < String(from)),
    [],
  )
  for (const [earlier, later] of [
    [0, 3],
    [2, 6],
    [4, 5],
  ] as const) {
    const told = yield* connection.rows(changesSql, [dateOf(earlier), dateOf(later)])
    assert.deepStrictEqual(
      told.map((row) => row["told"]),
      changesOf(nights, earlier, later),
    )
  }
  const fresh = yield* connection.query(freshSql)
  assert.deepStrictEqual(
    fresh.rows,
    customers.flatMap((customer, place) => {
      const last = nights.findLastIndex(({ names }) => names[place] !== null)
      return last === -1 ? [] : [[customer, on(last), (seen.at(-1) ?? 0) - (seen[last] ?? 0)]]
    }),
  )
})

describe("the views over time", () => {
  it.live("say of nights in any order when a run looked, so that no version ends before it begins", () =>
    Effect.gen(function* () {
      const root = yield* folder
      const store = yield* storeOf(root)
      yield* placeEmptyDatabase(store)
      const duckdb = yield* DuckDb
      const connection = yield* duckdb.open({ path: store.layout.build, access: "read-write", threads: 1 })
      const check = (nights: ReadonlyArray<Night>) => checkViews(connection, nights)
      // A rerun of an older night finds what two newer ones had already replaced.
      yield* check([
        { day: 0, names: ["Ana", null] },
        { day: 1, names: ["Bea", "Ana"] },
        { day: 0, names: ["Ana", "Bea"] },
        { day: 2, names: ["Cid", "Bea"] },
        { day: 1, names: ["Ana", null] },
        { day: 0, names: ["Cid", "Cid"] },
      ])
      const draws = fc.sample(drawnNights, {
        seed: 18,
        numRuns: Number(process.env["NIGHTJAR_NIGHTS"] ?? 4),
      })
      yield* Effect.forEach(draws, check, { discard: true })
    }).pipe((test) =>
      Effect.flatMap(folder, (root) => Effect.provide(test, foundation(root))).pipe(Effect.scoped),
    ),
  )
})
