/**
 * Data of a finished version that is older than its job allows, by customer, engine and feature: those that
 * the newest whole run of the job asked for, each by the limits of its engine. Only the nights within the
 * longest limit and a month before it are read, however many there are: whoever succeeded in none of them
 * counts from the first of them that asked.
 */
import { Duration, Effect, Schema } from "effect"
import { withinMachineTime } from "../base/Time.ts"
import { literal } from "../base/DuckDbFailed.ts"
import type { Freshness, FreshnessLimits } from "../jobs/Job.ts"
import type { RunStarted, StaleData } from "../ledger/RunFacts.ts"
import { openClosedOff } from "./BuildDatabase.ts"
import type { Store } from "./Store.ts"
import { runsInOrder, sameSql } from "./View.ts"

/** How many days before the longest limit are read: a job that runs once a month is still seen twice. */
const daysBefore = 31
const namedMax = 3
const askedWithin = Duration.minutes(10)

type AskedRun = Pick<typeof RunStarted.Type, "job" | "run_date">

const Ages = Schema.Array(
  Schema.Struct({
    customer_id: Schema.NullOr(Schema.String),
    engine_reference: Schema.String,
    feature: Schema.NullOr(Schema.String),
    age: Schema.Int,
  }),
)

const daysIn = ({ warnDays, errorDays }: FreshnessLimits): ReadonlyArray<number> =>
  [warnDays, errorDays].filter((days) => days !== undefined)

/** What is older than the shortest of all limits; as far back as the longest of them asks for. */
const agesSql = ({ job, run_date }: AskedRun, limits: ReadonlyArray<number>): string => {
  const [shortest, longest] = [Math.min(...limits), Math.max(...limits)]
  const today = `DATE ${literal(run_date)}`
  return `
  WITH own AS (
    SELECT r.run_id, r.run_date, r.parent, r.tasks, o.nth
    FROM runs AS r JOIN (${runsInOrder}) AS o USING (run_id)
    WHERE r.job = ${literal(job)} AND r.run_date <= ${today}
  ),
  asked AS (
    SELECT DISTINCT customer_id, engine_reference, feature FROM coverage
    WHERE engine_reference IS NOT NULL AND run_id = (
      SELECT arg_max(run_id, nth) FROM own WHERE parent IS NULL AND tasks > 0)
  ), told AS (
    SELECT c.customer_id, c.engine_reference, c.feature, c.run_date, c.outcome
    FROM coverage AS c JOIN own USING (run_id)
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

/** One that is older than its limit. */
interface Beyond {
  readonly days: number
  readonly text: string
}

const beyond = (all: ReadonlyArray<Beyond>) => ({
  days: all.reduce((shortest, { days }) => Math.min(shortest, days), Number.POSITIVE_INFINITY),
  count: all.length,
  examples: all.slice(0, namedMax).map(({ text }) => text),
})

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
    const found = yield* Schema.decodeUnknownEffect(Ages)(rows)
    const failed: Array<Beyond> = []
    const warned: Array<Beyond> = []
    for (const { customer_id, engine_reference, feature, age } of found) {
      const { warnDays, errorDays } =
        (Object.hasOwn(engines, engine_reference) ? engines[engine_reference] : undefined) ?? ofJob
      const whose = [...(customer_id === null ? [] : [reveal(customer_id)]), engine_reference, feature ?? []]
      const text = whose.flat().join(" ")
      if (errorDays !== undefined && age > errorDays) failed.push({ days: errorDays, text })
      else if (warnDays !== undefined && age > warnDays) warned.push({ days: warnDays, text })
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
