/**
 * What a report takes from the published tables: durations and failures per engine over the last runs of the
 * job, and the coverage of its own run. One look at the database, however many runs it holds.
 */
import { Effect, Schema } from "effect"
import { outcomes } from "../service/EndRow.ts"
import type { PublishedFacts } from "../report/Report.ts"
import { withPublished } from "./PublishedDatabase.ts"

/** The runs that the engines' lines cover. */
const runsMax = 30
/** Far more engines and features than any job has. */
const rowsMax = 50_000

const enginesSql = `
  WITH chosen AS (
    SELECT run_id, started_at FROM runs
    WHERE job = $1 AND started_at <= (SELECT started_at FROM runs WHERE run_id = $2)
    ORDER BY started_at DESC, run_id DESC LIMIT ${runsMax}
  ), timed AS (
    SELECT run_id, chosen.started_at AS night, engine_reference, outcome,
      CASE WHEN closed_at >= tasks.started_at
        THEN epoch_ms(closed_at) - epoch_ms(tasks.started_at) END AS took
    FROM tasks JOIN chosen USING (run_id) WHERE engine_reference IS NOT NULL
  )
  SELECT run_id, engine_reference, count(*)::INTEGER AS tasks,
    count(*) FILTER (outcome <> 'succeeded')::INTEGER AS not_succeeded,
    quantile_cont(took, 0.5)::DOUBLE AS p50_ms, quantile_cont(took, 0.95)::DOUBLE AS p95_ms
  FROM timed GROUP BY run_id, night, engine_reference
  ORDER BY night, run_id, engine_reference LIMIT ${rowsMax}`

const coverageSql = `
  SELECT engine_reference, coalesce(feature, '') AS feature, outcome, count(*)::INTEGER AS customers
  FROM coverage WHERE run_id = $1 AND engine_reference IS NOT NULL
  GROUP BY ALL ORDER BY ALL LIMIT ${rowsMax}`

const maybeMs = Schema.NullOr(Schema.Finite)
const EngineRows = Schema.Array(
  Schema.Struct({
    run_id: Schema.String,
    engine_reference: Schema.String,
    tasks: Schema.Int,
    not_succeeded: Schema.Int,
    p50_ms: maybeMs,
    p95_ms: maybeMs,
  }),
)
const CoverageRows = Schema.Array(
  Schema.Struct({
    engine_reference: Schema.String,
    feature: Schema.String,
    outcome: Schema.Literals(outcomes),
    customers: Schema.Int,
  }),
)

/** Fails if the database cannot be read; undefined if nothing is published yet. */
export const publishedFacts = Effect.fn("PublishedFacts.read")(function* (
  output: string,
  { job, run_id }: { readonly job: string; readonly run_id: string },
) {
  return yield* withPublished(output, ({ rows }) =>
    Effect.gen(function* () {
      const engines = yield* Schema.decodeUnknownEffect(EngineRows)(yield* rows(enginesSql, [job, run_id]))
      const coverage = yield* Schema.decodeUnknownEffect(CoverageRows)(yield* rows(coverageSql, [run_id]))
      const found: PublishedFacts = {
        engines: engines.map((night) => ({
          ...night,
          p50_ms: night.p50_ms ?? undefined,
          p95_ms: night.p95_ms ?? undefined,
        })),
        coverage,
      }
      return found
    }),
  )
})
