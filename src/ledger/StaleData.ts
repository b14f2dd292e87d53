/**
 * Data that is older than the `freshness` of its job allows, as a publication found it: numbers, and the
 * first few by their ids. It is part of the fact of a publication, so that the summary reports it.
 */
import { Schema } from "effect"

/** Customers, engines and features beyond their limits. */
const BeyondLimit = Schema.Struct({
  /** The limit; the shortest of those that are exceeded, if engines have limits of their own. */
  days: Schema.Int,
  count: Schema.Int,
  /** The oldest first: `<customer_id> <engine_reference> <feature>`. */
  examples: Schema.Array(Schema.String),
})

export const StaleData = Schema.Struct({
  /** Beyond `warn_after` and not beyond `error_after`. */
  warned: Schema.optionalKey(BeyondLimit),
  /** Beyond `error_after`: the run does not end with 0. */
  failed: Schema.optionalKey(BeyondLimit),
  /** Why the tables could not be asked. */
  unknown: Schema.optionalKey(Schema.String),
})
export type StaleData = typeof StaleData.Type
