/**
 * A reader of the job file who has only the tables: with pseudonyms, nothing in them follows the order in which the
 * job names its customers. A night of sixty of them in virtual time, published as it is on a machine; then the place
 * of every row and every value of every column is compared with the places of the customers in the job.
 */
import { hash } from "node:crypto"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { assert, describe } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { DuckDb } from "../../src/base/DuckDb.ts"
import type { Job } from "../../src/jobs/Job.ts"
import { Ledger } from "../../src/ledger/Ledger.ts"
import { runNight } from "../../src/run/Nightly.ts"
import { Publisher } from "../../src/tables/Publisher.ts"
import { PublisherDuckDb } from "../../src/tables/PublisherDuckDb.ts"
import { inOrder, readPseudonymKey } from "../../src/tables/Treatments.ts"
import { placeOf } from "../../src/tables/DataDictionary.ts"
import { systemTables } from "../../src/tables/SystemTables.ts"
import { otherRecordsTable, rejectedRecordsTable } from "../../src/records/RecordTables.ts"
import { standingSessionId } from "../../src/sandbox/flows/StandingSessions.ts"
import { anId } from "../harness/Id.ts"
import { customer, features, jobOf, live as lived, makeNights, options } from "../harness/SmallNights.ts"
import { folder, opened, publisherOptions, relationsIn, sourcesIn, unsortedIn } from "./night.ts"
import { live } from "../harness/Steps.ts"

const customersCount = 60
const key = readPseudonymKey(Redacted.make(hash("sha256", "of the night", "hex")))!
const reference = { _tag: "Env", name: "KEY" } as const
const columns = { customer_profiles: ["name", "alias"] }

const ascending = Array.from({ length: customersCount }, (_, at) => `customer-${String(at).padStart(4, "0")}`)
/** Whoever ends alike takes as long as the others, and those that end otherwise are all over the job. */
const wordsAt = (at: number): string => {
  const ends = ["end-INCORRECT_CREDENTIALS", "heal-1-SOURCE_NOT_AVAILABLE", "partial"]
  const [end] = ends.slice(at % 13)
  return ["queue-1", "run-30", "records-6", "attach-1", "odd", ...(end === undefined ? [] : [end])].join("+")
}

/** Each customer on one engine or two, with the same features in either order, and a session. */
const drawnJob = (ids: ReadonlyArray<string>): Job => {
  const names = ["accounts_read", "cards_read", "customer_information_read"]
  const assignments = ids.flatMap((id, at) => {
    const one = customer(id, wordsAt(at), at % 17 === 5 ? "no" : undefined)
    const { login } = one
    const plain = login._tag === "Parameters" ? { ...login, tokenized_access: false } : login
    const asked = features(...(at < customersCount / 2 ? names : names.toReversed()))
    const bank = { ...one, login: plain, features: asked }
    const tax = {
      ...bank,
      engine_reference: anId("sandbox-tax:website"),
      features: features("customer_information_read"),
    }
    return at % 2 === 0 ? [tax, bank] : [bank]
  })
  const place = { file: "job.yaml", line: 1, column: 1 }
  const sessions = ids.map((id, at) => ({
    session_id: anId(standingSessionId(256 + at)),
    customer_id: anId(id),
    place,
  }))
  return {
    ...jobOf(assignments),
    concurrency: { max_in_flight: 6, per_engine: 4 },
    sessions,
    pseudonyms: { key: reference, columns, places: new Map() },
  }
}

/** Spearman's coefficient: the correlation of the places of two lists, equal values sharing theirs. */
const places = <A extends string | number>(values: ReadonlyArray<A>): ReadonlyArray<number> => {
  const at = Map.groupBy(
    values.toSorted((a, b) => (a < b ? -1 : a > b ? 1 : 0)).map((value, place) => [value, place] as const),
    ([value]) => value,
  )
  return values.map((value) => {
    const alike = at.get(value)!
    return (alike[0]![1] + alike.at(-1)![1]) / 2
  })
}
const mean = (values: ReadonlyArray<number>) => values.reduce((sum, each) => sum + each, 0) / values.length
const correlation = <A extends string | number>(
  one: ReadonlyArray<number>,
  other: ReadonlyArray<A>,
): number => {
  const [a, b] = [places(one), places(other)]
  const [meanA, meanB] = [mean(a), mean(b)]
  const product = mean(a.map((each, at) => (each - meanA) * (b[at]! - meanB)))
  const spread = (values: ReadonlyArray<number>, middle: number) =>
    Math.sqrt(mean(values.map((each) => (each - middle) ** 2)))
  const by = spread(a, meanA) * spread(b, meanB)
  return by === 0 ? 0 : product / by
}

/** Chance exceeds it once in 30,000 draws; what follows the job's order is at 1. */
const boundOf = (count: number): number => 4.15 / Math.sqrt(count - 1)
/** Of fewer customers, chance alone may put all in order. */
const fewest = 25

/** The first row of each customer, in the rows of one engine, or of sessions. */
type Firsts = ReadonlyArray<{ readonly rank: number; readonly place: number; readonly row: Row }>
type Row = Readonly<Record<string, unknown>>

/** What in the rows follows the job's order more than chance does; `look` hears what was compared. */
const followingIn = (name: string, all: Firsts, look: (what: string) => void): ReadonlyArray<string> => {
  const following = (what: string, of: ReadonlyArray<readonly [rank: number, value: string | number]>) => {
    if (of.length < fewest) return []
    look(what)
    const [ranks, values] = [of.map(([rank]) => rank), of.map(([, value]) => value)]
    const value = correlation(ranks, values)
    return Math.abs(value) > boundOf(of.length) ? [`${what}: ${value.toFixed(2)}`] : []
  }
  const columnsOf = Object.keys(all[0]?.row ?? {}).flatMap((column) => {
    const told = all.filter(({ row }) => row[column] !== null)
    const isNumber = told.every(({ row }) => !Number.isNaN(Number(row[column])))
    const cell = (row: Row) => (isNumber ? Number(row[column]) : String(row[column]))
    return following(
      `${name}.${column}`,
      told.map(({ rank, row }) => [rank, cell(row)]),
    )
  })
  return [
    ...following(
      name,
      all.map(({ rank, place }) => [rank, place]),
    ),
    ...columnsOf,
  ]
}

/** Every table, view and Parquet file: what follows the job's order in it, or names a session of the job. */
const whatFollows = Effect.fnUntraced(function* (root: string, ids: ReadonlyArray<string>) {
  const rankOf = new Map(ids.map((id, rank) => [key.pseudonymOf("customer_id", id), rank]))
  const connection = yield* opened(root)
  const sources = [
    ...(yield* sourcesIn(root, connection)),
    ...(yield* relationsIn(connection)).map((name) => [name, name] as const),
  ]
  const found: Array<string> = []
  const looked: Array<string> = []
  for (const [name, source] of sources) {
    const rows = yield* connection.rows(`SELECT COLUMNS(*)::VARCHAR FROM ${source}`)
    if (rows.some((row) => JSON.stringify(row).includes(standingSessionId(0).slice(0, 16))))
      found.push(`${name}: a session of the job`)
    const firsts = new Map<string, Firsts[number]>()
    rows.forEach((row, place) => {
      const rank = rankOf.get(String(row["customer_id"]))
      const group = `${row["engine_reference"]} ${rank}`
      if (rank !== undefined && !firsts.has(group)) firsts.set(group, { rank, place, row })
    })
    for (const [, group] of Map.groupBy(firsts.values(), ({ row }) => row["engine_reference"]))
      found.push(...followingIn(name, group, (what) => looked.push(what)))
  }
  return { found, looked }
}, Effect.scoped)

/** The night in virtual time; then its tables, with the outcome of the deletions, as on a machine. */
const publishedNight = Effect.fnUntraced(function* (root: string, ids: ReadonlyArray<string>) {
  const nights = makeNights({}, { families: [] })
  const job = drawnJob(ids)
  const fixed = Effect.map(Ledger, (ledger) => ({
    ...ledger,
    fingerprintKey: Effect.succeed(Buffer.from(hash("sha256", "of the folder", "hex"), "hex")),
  }))
  const { run_id } = lived(nights, Effect.provideServiceEffect(runNight(job, options), Ledger, fixed))
  const layers = PublisherDuckDb.layer({
    ...publisherOptions(root),
    pseudonyms: { key, reference, policy: { check: key.check, columns: inOrder(columns) } },
  }).pipe(
    Layer.provideMerge(Layer.mergeAll(nights.ledger, nights.landing, DuckDb.layer, NodeFileSystem.layer)),
  )
  return yield* Effect.gen(function* () {
    const publisher = yield* Publisher
    yield* publisher.publish(run_id)
    yield* publisher.publishOutcome(run_id)
    const { found, looked } = yield* whatFollows(root, ids)
    return { found, looked, unsorted: yield* unsortedIn(root) }
  }).pipe(Effect.provide(layers))
})

describe("the order in which a job names its customers", () => {
  // Their ids are in the order of the job too: nothing may follow either.
  live(
    "is not in any table, time or file with pseudonyms [promise 19 times] [promise 19 order] [promise 19 sessions]",
    function* () {
      const root = yield* folder
      const { found, looked, unsorted } = yield* publishedNight(root, ascending)
      const compared = new Set(looked)
      const names = [...systemTables, otherRecordsTable, rejectedRecordsTable].map(({ name }) =>
        placeOf(name),
      )
      // Of the first and the last of these no row is about a customer, and the service told no such errors.
      assert.deepStrictEqual(
        names.filter((name) => !compared.has(name)),
        ["ops.runs", "ops.execution_errors", "ops.engine_descriptions"],
      )
      const others = [
        "main.emails",
        "main.documents",
        "main.customers",
        "history.customer_profiles",
        "main.coverage",
      ]
      const times = [
        "ops.tasks.started_at",
        "ops.tasks.closed_at",
        "ops.executions.date_created",
        "ops.deletions.asked_at",
      ]
      for (const each of [...others, ...times, "ops.sessions.pulled_at"])
        assert.isTrue(compared.has(each), each)
      assert.deepStrictEqual(found, [])
      assert.deepStrictEqual(unsorted, [])
    },
  )
})
