/**
 * The facts about a customer who was removed, none of which says who it was: what takes the place of a fact
 * about the customer, the receipt, and the end of the removal.
 */
import { Schema } from "effect"
import { RunId } from "../service/Ids.ts"

/** A fact about the customer stood here; only its place, its time and its run are left. */
export const FactForgotten = Schema.TaggedStruct("FactForgotten", {
  run_id: Schema.optionalKey(RunId),
  /** The receipt that says why. */
  receipt: Schema.String,
})

/** What was found of the customer. Counts only: nothing in it is derived from an id or a value. */
export const ForgetCounts = Schema.Struct({
  /** Runs that knew the customer. */
  runs: Schema.Int,
  facts: Schema.Int,
  /** Landed bodies. */
  bodies: Schema.Int,
  /** Downloaded for the customer; one that another customer has too stays. */
  documents: Schema.Int,
  /** Rows of the current tables. */
  rows: Schema.Int,
  /** Versions that a gate holds back: copies of all tables, removed whole. */
  held: Schema.Int,
  /** Stored tokens and tickets. */
  tokens: Schema.Int,
  /** Recordings that `acquaint` made. */
  recordings: Schema.Int,
  /** Executions that the service no longer has. */
  deleted: Schema.Int,
  /** Of these: deleted although not everything they counted is proved to have been here. */
  given_up: Schema.Int,
  /** Executions and tokens that were left at the service on purpose. */
  left_at_service: Schema.Int,
  /** Logins that were rejected or are not proved: their keyed hashes stay, so that they still count. */
  logins_kept: Schema.Int,
})
export type ForgetCounts = typeof ForgetCounts.Type

/**
 * The receipt. It is written in one transaction with the facts that it replaces; from `sealed_from` on, every
 * fact's hash was computed again.
 */
export const CustomerForgotten = Schema.TaggedStruct("CustomerForgotten", {
  receipt: Schema.String,
  sealed_from: Schema.Int,
  ...ForgetCounts.fields,
})
export type CustomerForgotten = typeof CustomerForgotten.Type

/** Everything else of the customer is gone from the folder too. */
export const ForgetFinished = Schema.TaggedStruct("ForgetFinished", { receipt: Schema.String })
