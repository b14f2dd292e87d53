/**
 * What a job asks of a new version of the tables before it becomes current (bounds, and tests in SQL), and
 * its own models. A job
 * without `gates` asks nothing, so no default of ours can ever hold back good data.
 */
import { Duration, Effect, Schema } from "effect"
import type { Context } from "./Problem.ts"
import type { Gates } from "./Job.ts"
import { percent, duration, text } from "./Scalars.ts"
import { count, optional } from "./ShapeKeys.ts"
import { readSqlFolder } from "./SqlFolder.ts"
import type { SqlFolderAt } from "./SqlFolder.ts"

/** With how many nights a night is compared. */
const nightsOfRows = 7

export const GatesShape = Schema.Struct({
  keys: optional(Schema.Boolean, "No key repeats in the tables of the night.", true),
  rows: optional(
    Schema.Struct({
      min: optional(percent(1), "Each record table has this share of the median of the nights before."),
      nights: optional(count(1, 60), "How many nights before are compared.", nightsOfRows),
    }),
    "Rows of each record table; tables with a median below 10 rows are not compared.",
  ),
  rejected: optional(percent(0), "The largest share of rejected records in the night."),
  coverage: optional(
    percent(1),
    "The smallest share of customers, engines and features that succeeded in the night.",
  ),
  freshness: Schema.flip(
    optional(
      Schema.flip(duration("1 day", "3660 days")),
      "For each engine and feature, somebody's newest data is not older than this.",
    ),
  ),
  tests: optional(text, "A folder beside the job file: each *.sql is a query without rows if all is well."),
})

const shareOf = (written: string): number => Number.parseInt(written, 10) / 100

const readGates = Effect.fnUntraced(function* (at: SqlFolderAt, written: typeof GatesShape.Type) {
  const { keys = true, rows, rejected, coverage, freshness } = written
  const gates: Gates = {
    keys,
    ...(rows?.min === undefined
      ? {}
      : { rows: { min: shareOf(rows.min), nights: rows.nights ?? nightsOfRows } }),
    ...(rejected === undefined ? {} : { rejected: shareOf(rejected) }),
    ...(coverage === undefined ? {} : { coverage: shareOf(coverage) }),
    ...(freshness === undefined ? {} : { freshnessDays: Math.floor(Duration.toDays(freshness)) }),
    tests: yield* readSqlFolder(at, written.tests),
  }
  return gates
})

/** The parts of a job that come from folders of SQL; without `gates` nothing is asked. */
export const readOwnSql = Effect.fnUntraced(function* (
  { document, findings }: Context,
  folder: string,
  {
    gates,
    models,
  }: { readonly gates?: typeof GatesShape.Type | undefined; readonly models?: string | undefined },
) {
  const at = (...path: ReadonlyArray<string>) => ({ findings, folder, place: document.place(path) })
  return {
    ...(gates === undefined ? {} : { gates: yield* readGates(at("gates", "tests"), gates) }),
    ...(models === undefined ? {} : { models: yield* readSqlFolder(at("models"), models) }),
  }
})
