/**
 * What happened to tickets and tokens (sections 2.6 and 3.3), event by event. Logins in them are encrypted
 * under a key that the service does not have: neither ticket nor `token_key` is ever in an event.
 */
import { Schema } from "effect"

const at = Schema.Finite

/** A start was given a ticket: the login waits for the exchange, encrypted under it. */
const TicketIssued = Schema.TaggedStruct("TicketIssued", {
  at,
  execution_id: Schema.String,
  verifier: Schema.String,
  sealed_login: Schema.String,
  /** A behaviour word makes the stored result of the exchange unreadable. */
  unreadable: Schema.Boolean,
})
export type TicketIssued = typeof TicketIssued.Type

const TicketExchanged = Schema.TaggedStruct("TicketExchanged", {
  at,
  execution_id: Schema.String,
  token_id: Schema.String,
  application: Schema.String,
  customer_id: Schema.String,
  engine_reference: Schema.String,
  features: Schema.Array(Schema.String),
  login_key: Schema.String,
  locking_hash: Schema.String,
  service_half: Schema.String,
  verifier: Schema.String,
  sealed_login: Schema.String,
})
export type TicketExchanged = typeof TicketExchanged.Type

const exchangeFaults = [
  "not_enabled",
  "unknown",
  "foreign",
  "wrong_ticket",
  "spent",
  "expired",
  "deleted",
  "login_not_accepted",
] as const
/** For observers only: the caller gets none of this (4.6). */
const ExchangeRefused = Schema.TaggedStruct("ExchangeRefused", {
  at,
  application: Schema.String,
  /** Only for existing executions; anything else that a caller sends is not kept. */
  execution_id: Schema.optionalKey(Schema.String),
  fault: Schema.Literals(exchangeFaults),
})
export type ExchangeRefused = typeof ExchangeRefused.Type

const TokenRevoked = Schema.TaggedStruct("TokenRevoked", { at, token_id: Schema.String })

const TokenEvents = Schema.Union([TicketIssued, TicketExchanged, ExchangeRefused, TokenRevoked]).pipe(
  Schema.toTaggedUnion("_tag"),
)
export const tokenEventSchemas = TokenEvents.members
export type TokenEvent = typeof TokenEvents.Type

export const isTokenEvent = (event: { readonly _tag: string }): event is TokenEvent =>
  Object.hasOwn(TokenEvents.cases, event._tag)
