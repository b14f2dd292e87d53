/**
 * Results of a flow session (section 2.7). `data` stays unknown here: every object in it that carries
 * `product` and `sub_family` is a record, and the records room reads those.
 */
import { Schema } from "effect"
import { FeatureCode } from "./Engine.ts"
import { open } from "./Open.ts"

/** 2.7: an accepted document of a consent. */
export const AcceptedDocument = open({
  version: Schema.String,
  hash: Schema.String,
  sign_date: Schema.optionalKey(Schema.String),
  signature_provider: Schema.optionalKey(Schema.String),
  signature_metadata: Schema.optionalKey(Schema.Record(Schema.String, Schema.Unknown)),
})

/** 2.7: the consent audit trail. */
export const Consent = open({
  accepted_date: Schema.optionalKey(Schema.String),
  accepted_features: Schema.optionalKey(Schema.Array(FeatureCode)),
  user_ip: Schema.optionalKey(Schema.String),
  user_agent: Schema.optionalKey(Schema.String),
  origin: Schema.optionalKey(Schema.String),
  accepted_documents: Schema.optionalKey(Schema.Record(Schema.String, AcceptedDocument)),
})

/**
 * 2.7: the session status code and cursor have no documented field names, so they live among the unknown
 * fields.
 */
export const flowResultsFields = {
  data: Schema.Unknown,
  retrieved_features: Schema.Array(FeatureCode),
  consent: Schema.optionalKey(Schema.NullOr(Consent)),
  is_closed: Schema.Boolean,
}
