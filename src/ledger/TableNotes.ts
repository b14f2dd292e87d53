/**
 * What a publication says about the tables besides their rows: values that did not fit their columns, and
 * records that were rejected. It is part of the fact of a publication, so that the summary reports it.
 */
import { Schema } from "effect"

/** How many values did not fit a column; `column` is `extra` for fields that a schema does not have. */
export const MisfitCount = Schema.Struct({
  table: Schema.String,
  column: Schema.String,
  count: Schema.Int,
})
export type MisfitCount = typeof MisfitCount.Type

/**
 * How many records were rejected, by the table they would have gone to; `table` is null for values that are
 * not records and for bodies that cannot be read.
 */
export const RejectedCount = Schema.Struct({ table: Schema.NullOr(Schema.String), count: Schema.Int })
export type RejectedCount = typeof RejectedCount.Type
