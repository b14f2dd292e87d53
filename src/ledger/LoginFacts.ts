/**
 * The facts about logins: which account one opens, and what became of it. From them the accounts of the
 * ledger are derived (`AccountTables.ts`).
 */
import { Schema } from "effect"
import { CustomerId, EngineReference, RunId, TaskId } from "../service/Ids.ts"
import { loginVerdicts } from "./Accounts.ts"
import { attempt, task } from "./FactKeys.ts"

/** Which account a login opens, as `AccountKeys` describes it; keyed hashes. */
export const SentKeys = Schema.Struct({
  account: Schema.String,
  identity: Schema.Array(Schema.String),
  password: Schema.String,
  row: Schema.optionalKey(Schema.String),
  /** Names of earlier versions under which something is known of it. */
  former: Schema.optionalKey(Schema.Array(Schema.String)),
})
/** The breaker opened: these credentials are not sent again until released. */
export const CredentialRejected = Schema.TaggedStruct("CredentialRejected", {
  run_id: RunId,
  /** Task and customer are absent once the customer was removed (`nightjar forget`). */
  task_id: Schema.optionalKey(TaskId),
  fingerprint: Schema.String,
  /** The attempt whose login it was. */
  of_attempt: Schema.optionalKey(Schema.Int),
  login: Schema.optionalKey(SentKeys),
  /** As versions up to 0.17.0 knew the account. */
  account: Schema.optionalKey(Schema.String),
  customer_id: Schema.optionalKey(CustomerId),
  engine_reference: EngineReference,
  reason: Schema.String,
})
/** What became of the login of an attempt, if it was not rejected (`Accounts.ts`). */
export const LoginJudged = Schema.TaggedStruct("LoginJudged", {
  ...attempt,
  account: Schema.String,
  password: Schema.String,
  fingerprint: Schema.optionalKey(Schema.String),
  verdict: Schema.Literals(loginVerdicts),
  /** What came back, for people. */
  said: Schema.optionalKey(Schema.String),
})
/** A person allows a login, or all of an account, again. */
export const CredentialReleased = Schema.TaggedStruct("CredentialReleased", {
  fingerprint: Schema.optionalKey(Schema.String),
  account: Schema.optionalKey(Schema.String),
  /** How many more logins may be sent to an account that is held; without it, nothing counts any more. */
  logins: Schema.optionalKey(Schema.Int),
  /** Why, in the words of the person who did it. */
  because: Schema.optionalKey(Schema.String),
})
/** The source accepted a login to an account of which it had rejected others; up to version 0.17.0. */
export const LoginAccepted = Schema.TaggedStruct("LoginAccepted", { ...task, account: Schema.String })

export const loginFacts = [CredentialRejected, CredentialReleased, LoginJudged, LoginAccepted] as const
