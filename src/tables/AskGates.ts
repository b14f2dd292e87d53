/**
 * The gates of a job, asked of a finished version before it becomes current. They measure the whole night, so
 * that a rerun of a few tasks is no small night; one that cannot be asked has not passed. What was found is
 * told in numbers, never with values of records.
 */
import { Duration, Effect, Struct } from "effect"
import type { Connection } from "../base/DuckDb.ts"
import { identifier, literal } from "../base/DuckDbFailed.ts"
import { counted, listed } from "../base/Text.ts"
import { withinMachineTime } from "../base/Time.ts"
import type { Freshness, Gates } from "../jobs/Job.ts"
import type { FailedGate, RunStarted, StaleData } from "../ledger/RunFacts.ts"
import { newestAnswer, type RunState } from "../ledger/RunState.ts"
import type { RunId } from "../service/Ids.ts"
import type { RecordFamily } from "../records/RecordSchema.ts"
import { otherRecordsTable, rejectedRecordsTable } from "../records/RecordTables.ts"
import { asSubquery, openClosedOff } from "./BuildDatabase.ts"
import { placeOf, publishedTables } from "./DataDictionary.ts"
import { inDatabase } from "./Publisher.ts"
import { sameSql } from "./Answers.ts"
import type { Store } from "./Manifest.ts"

type AskedRun = Pick<typeof RunStarted.Type, "job" | "run_date" | "part">

/** A gate that takes longer than this has not passed. */
const askedWithin = Duration.minutes(10)
/** Tables with fewer rows vary too much from night to night to be compared. */
const comparedRowsMin = 10
const namedMax = 3

interface Asking {
  /** The finished database; it is only read, and its SQL can open no other file. */
  readonly connection: Connection
  readonly families: ReadonlyArray<RecordFamily>
  readonly run: AskedRun
  /** SQL: the ids of the runs of the night. */
  readonly runs: string
}

/** What was found if the gate did not pass. */
type Gate = Effect.Effect<string | undefined, { readonly message: string }>

const percentOf = (share: number): string => `${Math.floor(share * 1_000) / 10}%`

const recordTablesOf = ({ families }: Asking): ReadonlyArray<string> => [
  ...families.map(({ table }) => table),
  otherRecordsTable.name,
]

/**
 * SQL: the run of each record of a family. Those of nights before it had a schema are in `other_records`, so
 * a schema more is no loss there, and no gain of its own. A family whose records another one has by now gets
 * no more.
 */
const recordsOf = ({ families }: Asking) => {
  const other = `nights.${identifier(otherRecordsTable.name)}`
  const rowsIn = (table: string, where: string) => `SELECT run_id FROM ${table} WHERE ${where}`
  const isOf = ({ product, subFamilies }: RecordFamily): string =>
    `(product = ${literal(product)} AND sub_family IN (${subFamilies.map(literal).join(", ")}))`
  const fed = families.filter(({ subFamilies }) => subFamilies.length > 0)
  const own = fed.map((family) => ({
    name: family.table,
    rows: `${rowsIn(`nights.${identifier(family.table)}`, "true")} UNION ALL ${rowsIn(other, isOf(family))}`,
  }))
  const rest = ["false", ...fed.map(isOf)].join(" OR ")
  return [...own, { name: otherRecordsTable.name, rows: rowsIn(other, `(${rest}) IS NOT TRUE`) }]
}

/** Within these, a business key identifies a record. */
const withinKey = ["task_id", "session_id", "product", "sub_family"]

/** A record's own id is unique however often its business key is. */
const businessKeys = (families: ReadonlyArray<RecordFamily>) =>
  families.flatMap(({ table, key }) =>
    key.length === 0
      ? []
      : [{ name: table, key: ["run_id", ...withinKey, ...key], told: `${table} (${key.join(", ")})` }],
  )

const askKeys = Effect.fnUntraced(function* ({ connection, families, runs }: Asking, keys: Gates["keys"]) {
  const found: Array<string> = []
  const own = publishedTables(families).map(({ name, key }) => ({ name, key, told: name }))
  for (const { name, key, told } of [...own, ...(keys === "business" ? businessKeys(families) : [])]) {
    if (key.length === 0) continue
    const [row] = yield* connection.rows(`SELECT count(*)::INTEGER AS n FROM (
      SELECT 1 FROM ${placeOf(name)} WHERE run_id IN (${runs})
      GROUP BY ${key.map(identifier).join(", ")} HAVING count(*) > 1) AS repeated`)
    const repeated = Number(row?.["n"])
    if (repeated > 0) found.push(`${counted(repeated, "key")} of ${told}`)
  }
  return found.length === 0 ? undefined : `repeated: ${listed(found, namedMax)}`
})

const askRows = Effect.fnUntraced(function* (asking: Asking, min: number, nights: number) {
  const job = literal(asking.run.job)
  const date = `DATE ${literal(asking.run.run_date)}`
  const found: Array<string> = []
  for (const { name, rows } of recordsOf(asking)) {
    const [row] = yield* asking.connection.rows(`WITH before AS (
        SELECT run_date FROM ops.runs
        WHERE job = ${job} AND run_date < ${date} AND tasks > 0 AND part IS NULL
        GROUP BY run_date ORDER BY run_date DESC LIMIT ${Math.trunc(nights)}),
      sizes AS (SELECT r.run_date, count(t.run_id) AS n
        FROM ops.runs AS r LEFT JOIN (${rows}) AS t ON t.run_id = r.run_id
        WHERE r.job = ${job} AND r.run_date IN (SELECT run_date FROM before) AND r.part IS NULL
        GROUP BY r.run_date)
      SELECT (SELECT median(n) FROM sizes)::DOUBLE AS usual,
        (SELECT count(*) FROM (${rows}) AS t WHERE run_id IN (${asking.runs}))::INTEGER AS now`)
    const usual = Number(row?.["usual"] ?? 0)
    const now = Number(row?.["now"])
    if (usual >= comparedRowsMin && now < usual * min) found.push(`${name} has ${now} of ${usual}`)
  }
  return found.length === 0 ? undefined : listed(found, namedMax)
})

const askRejected = Effect.fnUntraced(function* (asking: Asking, max: number) {
  const { connection, runs } = asking
  const records = recordTablesOf(asking).map(
    (name) => `(SELECT count(*) FROM nights.${identifier(name)} WHERE run_id IN (${runs}))`,
  )
  const rejected = placeOf(rejectedRecordsTable.name)
  const [row] = yield* connection.rows(`SELECT (${records.join(" + ")})::INTEGER AS kept,
    (SELECT count(*) FROM ${rejected} WHERE run_id IN (${runs}))::INTEGER AS lost`)
  const lost = Number(row?.["lost"])
  const all = lost + Number(row?.["kept"])
  return all === 0 || lost / all <= max
    ? undefined
    : `${lost} of ${counted(all, "record")} (${percentOf(lost / all)})`
})

const askCoverage = Effect.fnUntraced(function* ({ connection, runs }: Asking, min: number) {
  const [row] = yield* connection.rows(`SELECT count(*)::INTEGER AS n,
      (count(*) FILTER (outcome = 'succeeded'))::INTEGER AS good
    FROM (SELECT arg_max(c.outcome, coalesce(r.sequence, 0)) AS outcome
      FROM ops.coverage AS c JOIN ops.runs AS r USING (run_id) WHERE c.run_id IN (${runs})
      GROUP BY c.customer_id, c.engine_reference, c.feature,
        CASE WHEN c.engine_reference IS NULL THEN c.session_id END) AS newest`)
  const all = Number(row?.["n"])
  const good = Number(row?.["good"])
  return all === 0 || good / all >= min ? undefined : `${good} of ${all} succeeded (${percentOf(good / all)})`
})

/** What never succeeded is not stale: `coverage` is the gate for it. */
const askFreshness = Effect.fnUntraced(function* ({ connection, run }: Asking, days: number) {
  const rows = yield* connection.rows(`SELECT c.engine_reference AS engine, c.feature,
      min(date_diff('day', c.fresh_date, DATE ${literal(run.run_date)})) AS age
    FROM coverage AS c JOIN ops.runs AS r USING (run_id)
    WHERE r.job = ${literal(run.job)} AND c.feature IS NOT NULL
    GROUP BY c.engine_reference, c.feature HAVING age > ${Math.trunc(days)} ORDER BY ALL`)
  const found = rows.map(
    ({ engine, feature, age }) => `${String(engine)} ${String(feature)}: ${counted(Number(age), "day")} old`,
  )
  return found.length === 0 ? undefined : listed(found, namedMax)
})

const askTest = Effect.fnUntraced(function* ({ connection }: Asking, sql: string) {
  const query = yield* asSubquery(connection, sql)
  const [row] = yield* connection.rows(`SELECT count(*)::INTEGER AS n FROM ${query} AS found`)
  const found = Number(row?.["n"])
  return found === 0 ? undefined : counted(found, "row")
})

type AskedGate = Omit<FailedGate, "found"> & { readonly ask: Gate }

const gatesOf = (asking: Asking, gates: Gates): ReadonlyArray<AskedGate> => {
  const { keys, rows, rejected, coverage, freshness: days, tests } = gates
  const all: Array<AskedGate> = []
  const add = (gate: string, ask: Gate, expected: string) => all.push({ gate, expected, ask })
  if (keys !== false) add("keys", askKeys(asking, keys), "no key twice")
  if (rows?.min !== undefined) {
    const before = `the median of ${counted(rows.nights, "night")} before`
    add("rows", askRows(asking, rows.min, rows.nights), `${percentOf(rows.min)} of ${before}`)
  }
  if (rejected !== undefined)
    add("rejected", askRejected(asking, rejected), `at most ${percentOf(rejected)} of the records rejected`)
  if (coverage !== undefined) {
    const succeeded = "of customers, engines and features succeeded"
    add("coverage", askCoverage(asking, coverage), `at least ${percentOf(coverage)} ${succeeded}`)
  }
  if (days !== undefined) {
    const every = "data of every engine and feature"
    add("freshness", askFreshness(asking, days), `${every} at most ${counted(days, "day")} old`)
  }
  for (const { name, sql } of tests) add(`tests/${name}.sql`, askTest(asking, sql), "no rows")
  return all
}

/** Those that can be asked of a part of a night or job: how much it has, and how fresh, says nothing. */
export const gatesOfPart = (gates: Gates): Gates => Struct.pick(gates, ["keys", "rejected", "tests"])

/**
 * Nothing is asked of a run that a person let through, or that has no tasks. Nor of one to which nothing was
 * added since it was published: it would be held back again while its deletions are pending.
 */
export const isAsked = ({ accepted, published, held, tasks }: RunState): boolean =>
  accepted !== true &&
  tasks.size > 0 &&
  (held !== undefined ||
    published === undefined ||
    [...tasks.values()].some(
      (task) => Math.max(newestAnswer(task), task.settled?.seq ?? Infinity) > published.seq,
    ))

export const failedGates = Effect.fn("Publishing.askGates")(function* (
  { layout, families }: Store,
  state: RunState,
  all: Gates | undefined,
) {
  const failed: Array<FailedGate> = []
  if (all === undefined || !isAsked(state)) return failed
  const { started: run } = state
  const connection = yield* openClosedOff(layout.build, "read-only")
  const night = `job = ${literal(run.job)} AND run_date = DATE ${literal(run.run_date)}`
  const part = run.part === undefined ? "part IS NULL" : `part = ${literal(run.part)}`
  const runs = `SELECT run_id FROM ops.runs WHERE ${night} AND ${part}`
  const asked = run.part === undefined ? all : gatesOfPart(all)
  for (const { gate, expected, ask } of gatesOf({ connection, families, run, runs }, asked)) {
    const found = yield* ask.pipe(
      withinMachineTime(askedWithin),
      Effect.catch(({ message }) => Effect.succeed(`it could not be asked: ${message.split("\n", 1)[0]}`)),
    )
    if (found !== undefined) failed.push({ gate, expected, found })
  }
  return failed
}, inDatabase)

// Data that is older than its job allows, by customer, engine and feature of its newest whole run. Only
// nights within the longest limit and a month before it are read: whoever succeeded in none of them counts
// from the first of them that asked.

/** How many days before the longest limit are read: a job that runs once a month is still seen twice. */
const daysBefore = 31

const daysIn = ({ warn_after, error_after }: Omit<Freshness, "engines">): ReadonlyArray<number> =>
  [warn_after, error_after].filter((days) => days !== undefined)

/** What is older than the shortest of all limits; as far back as the longest of them asks for. */
const agesSql = ({ job, run_date }: AskedRun, limits: ReadonlyArray<number>): string => {
  const [shortest, longest] = [Math.min(...limits), Math.max(...limits)]
  const today = `DATE ${literal(run_date)}`
  return `
  WITH own AS (
    SELECT r.run_id, r.run_date, o.whole, o.seq
    FROM ops.runs AS r JOIN store._runs AS o USING (run_id)
    WHERE r.job = ${literal(job)} AND r.run_date <= ${today}
  ),
  asked AS (
    SELECT DISTINCT customer_id, engine_reference, feature FROM ops.coverage
    WHERE engine_reference IS NOT NULL AND run_id = (
      SELECT arg_max(run_id, seq) FROM own WHERE whole)
  ), told AS (
    SELECT c.customer_id, c.engine_reference, c.feature, c.run_date, c.outcome
    FROM ops.coverage AS c JOIN own USING (run_id)
    WHERE c.run_date >= ${today} - ${longest + daysBefore}
  ), ages AS (
    SELECT a.customer_id, a.engine_reference, a.feature, CAST(date_diff('day',
      coalesce(max(t.run_date) FILTER (t.outcome = 'succeeded'), min(t.run_date)),
      ${today}) AS INTEGER) AS age
    FROM asked AS a JOIN told AS t ON ${sameSql("a", "t", ["customer_id", "engine_reference", "feature"])}
    GROUP BY ALL
  )
  SELECT customer_id, engine_reference, feature, age
  FROM ages WHERE age > ${shortest} ORDER BY age DESC, customer_id, engine_reference, feature`
}

interface Beyond {
  readonly days: number
  readonly text: string
}

const beyond = (all: ReadonlyArray<Beyond>) => ({
  days: all.reduce((shortest, { days }) => Math.min(shortest, days), Number.POSITIVE_INFINITY),
  count: all.length,
  examples: all.slice(0, namedMax).map(({ text }) => text),
})

const sharedSessionsSql = (run_id: string): string =>
  `SELECT count(DISTINCT n.session_id) AS shared FROM ops.sessions AS n
    JOIN store._sessions AS g ON g._alone = n.session_id
      AND g.customer_id IS DISTINCT FROM n.customer_id
    WHERE n.run_id = ${literal(run_id)} AND n.engine_reference IS NULL AND n.records IS NOT NULL`

/** How many sessions the run read for their customer that the tables have for another one, too. */
export const sharedSessionsIn = Effect.fn("Publishing.askSessions")(
  function* (store: Store, run_id: RunId) {
    const connection = yield* openClosedOff(store.layout.build, "read-only")
    const [row] = yield* connection.rows(sharedSessionsSql(run_id))
    return Number(row?.["shared"] ?? 0)
  },
  Effect.scoped,
  withinMachineTime(askedWithin),
  Effect.catch(() => Effect.succeed(0)),
)

/** `reveal`: the customer whom the tables call so; what is told stays with the operator. */
export const staleIn = Effect.fn("Publishing.askFreshness")(
  function* (
    store: Store,
    run: AskedRun,
    { engines = {}, ...ofJob }: Freshness,
    reveal: (customer_id: string) => string = (customer_id) => customer_id,
  ) {
    const connection = yield* openClosedOff(store.layout.build, "read-only")
    const all = [ofJob, ...Object.values(engines)]
    const rows = yield* connection.rows(agesSql(run, all.flatMap(daysIn)))
    const failed: Array<Beyond> = []
    const warned: Array<Beyond> = []
    for (const row of rows) {
      const [engine, age] = [String(row["engine_reference"]), Number(row["age"])]
      const { warn_after, error_after } =
        (Object.hasOwn(engines, engine) ? engines[engine] : undefined) ?? ofJob
      const customer = row["customer_id"] === null ? [] : reveal(String(row["customer_id"]))
      const text = [customer, engine, row["feature"] ?? []].flat().join(" ")
      if (error_after !== undefined && age > error_after) failed.push({ days: error_after, text })
      else if (warn_after !== undefined && age > warn_after) warned.push({ days: warn_after, text })
    }
    const stale: StaleData = {
      ...(warned.length === 0 ? {} : { warned: beyond(warned) }),
      ...(failed.length === 0 ? {} : { failed: beyond(failed) }),
    }
    return stale
  },
  Effect.scoped,
  withinMachineTime(askedWithin),
  // Tables that cannot be asked are no reason to lose their version.
  Effect.catch(({ message }) => Effect.succeed<StaleData>({ unknown: message.split("\n", 1)[0] ?? "" })),
)
