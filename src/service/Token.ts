/**
 * Tickets and tokens (sections 2.6, 4.6, 4.7 and 4.12). A ticket is shown once and used up by its exchange;
 * `token_key` is the only copy of the caller's half of the key, so both are secrets everywhere.
 */
import { Schema } from "effect"
import { FeatureCode } from "./Engine.ts"
import { BaseConfigurations, RequestedFeature } from "./Execution.ts"
import { nullableOptional, open } from "./Open.ts"

/** 4.6 */
export const ExchangeRequest = Schema.Struct({ execution_id: Schema.String, ticket: Schema.String })

/** 2.6 */
export const TokenPair = open({ token_id: Schema.String, token_key: Schema.String })

/** 2.6: `features` is the fixed list; a run with the token may request fewer, never more. */
export const TokenContext = open({
  engine_reference: Schema.String,
  app_id: Schema.String,
  customer_id: Schema.String,
  features: Schema.Array(FeatureCode),
  locking_hash: nullableOptional(Schema.String),
})

/** 4.6, 200 */
export const exchangedFields = { token: TokenPair, context: TokenContext }

/**
 * 4.12: the body is not shown. Assumed here, in this one place: the body of 4.1 with the exchanged pair as
 * `token` instead of `parameters`. A service that wants another shape answers 422, and nothing ran.
 */
export const TokenizedStartRequest = Schema.Struct({
  engine_reference: Schema.String,
  customer_id: Schema.String,
  token: Schema.Struct({ token_id: Schema.String, token_key: Schema.String }),
  external_execution_id: Schema.optionalKey(Schema.String),
  base_configurations: Schema.optionalKey(BaseConfigurations),
  features: Schema.optionalKey(Schema.Array(RequestedFeature)),
  hooks_extra_data: Schema.optionalKey(Schema.Record(Schema.String, Schema.String)),
  configurations: Schema.optionalKey(Schema.Record(Schema.String, Schema.Unknown)),
})
export type TokenizedStartRequest = typeof TokenizedStartRequest.Type
