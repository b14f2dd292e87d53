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
const RejectedCount = Schema.Struct({ table: Schema.NullOr(Schema.String), count: Schema.Int })
export type RejectedCount = typeof RejectedCount.Type

/** Records of one family, which is a product with its `sub_family`. */
const FamilyCount = Schema.Struct({ product: Schema.String, sub_family: Schema.String, records: Schema.Int })
export type FamilyCount = typeof FamilyCount.Type

/** Records of families without a schema: how many, of how many families, and of which the most. */
const OtherRecords = Schema.Struct({
  records: Schema.Int,
  families: Schema.Int,
  most: Schema.Array(FamilyCount),
})
export type OtherRecords = typeof OtherRecords.Type

/** A model of a job that could not be made. */
const FailedModel = Schema.Struct({ name: Schema.String, why: Schema.String })
export type FailedModel = typeof FailedModel.Type

/** A table whose Delta log was not brought up to date. */
const DeltaNote = Schema.Struct({
  table: Schema.String,
  why: Schema.String,
  /** Its files are not all alike: it has no log until they are. */
  is_left_out: Schema.optionalKey(Schema.Literal(true)),
})
export type DeltaNote = typeof DeltaNote.Type

/** Fields of the fact of a publication. */
export const tableNotes = {
  misfits: Schema.optionalKey(Schema.Array(MisfitCount)),
  rejected: Schema.optionalKey(Schema.Array(RejectedCount)),
  /** Absent in ledgers from before it was recorded. */
  other: Schema.optionalKey(OtherRecords),
  /** Values of earlier runs that do not fit a type that has changed since. */
  unfit: Schema.optionalKey(Schema.Array(MisfitCount)),
  /** Models that this version lacks. */
  models: Schema.optionalKey(Schema.Array(FailedModel)),
  /** Tables whose record schema is in no folder any more; the kept one was used. */
  gone: Schema.optionalKey(Schema.Array(Schema.String)),
  delta: Schema.optionalKey(Schema.Array(DeltaNote)),
}
