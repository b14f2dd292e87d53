/**
 * What the sources of an execution or a flow session will return, as stored in the events: a plan of counts
 * and delays, never a record. Records are made from it when they are read.
 */
import { Schema } from "effect"
import { featureStatusReasons } from "../../service/Vocabulary.ts"
import { ResolvedSettings } from "./FeatureSettings.ts"
import type { Phase, Timeline } from "./Timeline.ts"

/** Section 7: one error in what was sent; never the value itself. */
export const ErrorItem = Schema.Struct({
  loc: Schema.Array(Schema.Union([Schema.String, Schema.Finite])),
  msg: Schema.String,
  type: Schema.String,
})
export type ErrorItem = typeof ErrorItem.Type

/** One requested feature and what its source will return. */
export const FeaturePlan = Schema.Struct({
  code: Schema.String,
  records: Schema.Int,
  /** What a run that ends well says about it. */
  outcome: Schema.Literals(featureStatusReasons),
  /** The reference's settings for this feature, if it has any (4.1). */
  settings: Schema.optionalKey(ResolvedSettings),
  /** Dates that were moved to the limits of the engine. */
  adapted: Schema.optionalKey(Schema.Array(Schema.String)),
  /** Its protected fields were not unlocked. */
  shielded: Schema.optionalKey(Schema.Boolean),
  /** The outcome that a behaviour word sets for it, while the run works or when it is over. */
  said: Schema.optionalKey(Schema.Literals(featureStatusReasons)),
  kinds: Schema.optionalKey(Schema.Array(Schema.String)),
})
export type FeaturePlan = typeof FeaturePlan.Type

/** What the flow session of an execution will show. */
export const ResultsPlan = Schema.Struct({
  features: Schema.Array(FeaturePlan),
  session: Schema.Literals(["answers", "unknown", "unstarted"]),
  neverFinal: Schema.Boolean,
  lateMs: Schema.Finite,
  lockedMs: Schema.Finite,
  documents: Schema.Int,
  odd: Schema.Boolean,
  /** The customer is a company, whatever the seed. */
  company: Schema.optionalKey(Schema.Boolean),
})
export type ResultsPlan = typeof ResultsPlan.Type

/** One source being read for one customer: what an execution and a flow session's source have in common. */
export interface Retrieval {
  readonly started: {
    readonly at: number
    readonly session_id: string
    /** For several sources in one session. */
    readonly source_id?: string
    readonly customer_id: string
    readonly engine_reference: string
    readonly timeline: Timeline
    readonly results: ResultsPlan
  }
  readonly phases: readonly [Phase, ...ReadonlyArray<Phase>]
}
