/**
 * The facts about logins: which account one opens, and what became of it. From them the accounts of the
 * ledger are derived (`AccountTables.ts`).
 */
import { Schema } from "effect"
import { loginVerdicts } from "./Accounts.ts"
import { access, attempt, task } from "./FactKeys.ts"
import { CustomerId, EngineReference, ExecutionId, RunId, TaskId } from "../service/Ids.ts"

/** Which account a login opens, as `AccountKeys` describes it; keyed hashes. */
export const SentKeys = Schema.Struct({
  account: Schema.String,
  identity: Schema.Array(Schema.String),
  plain: Schema.optionalKey(Schema.Array(Schema.String)),
  password: Schema.String,
  secret: Schema.optionalKey(Schema.String),
  row: Schema.optionalKey(Schema.String),
  /** Absent in ledgers from before it was recorded. */
  written: Schema.optionalKey(Schema.String),
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

// Tickets and tokens by their names and ids; their values are in the token store and nowhere else.

/** The start was answered with a ticket; its value is in the token store and nowhere else. */
const TicketIssued = Schema.TaggedStruct("TicketIssued", { ...attempt, execution_id: ExecutionId })
/**
 * A ticket that was not exchanged for a token: NOT_ISSUED, NO_AUTH_OK, REFUSED (the uniform 403),
 * ANSWER_LOST, UNREACHABLE, FOREIGN_CONTEXT (the token is somebody else's). The execution itself is not
 * affected.
 */
export const TicketDropped = Schema.TaggedStruct("TicketDropped", {
  ...attempt,
  execution_id: ExecutionId,
  reason: Schema.String,
})
const token = {
  name: Schema.String,
  token_id: Schema.String,
  ...access,
}
/** Exchanged (4.6): by a task, or by hand, which belongs to no run. `expires_at` is milliseconds. */
export const TokenStored = Schema.TaggedStruct("TokenStored", {
  run_id: Schema.optionalKey(RunId),
  task_id: Schema.optionalKey(TaskId),
  ...token,
  features: Schema.Array(Schema.String),
  expires_at: Schema.Int,
})
/** The task logs in with a token that expires soon. */
export const TokenExpiring = Schema.TaggedStruct("TokenExpiring", {
  ...task,
  ...token,
  expires_at: Schema.Int,
})
/**
 * Not used: LOCKED, TOKEN_UNKNOWN or the service's own T10N reason; or EXPIRED by this machine's clock, which
 * leaves it in the store.
 */
export const TokenDropped = Schema.TaggedStruct("TokenDropped", {
  ...task,
  ...token,
  reason: Schema.String,
})
/** Revoked by hand (4.7). */
const TokenRevoked = Schema.TaggedStruct("TokenRevoked", token)

export const tokenFacts = [
  TicketIssued,
  TicketDropped,
  TokenStored,
  TokenExpiring,
  TokenDropped,
  TokenRevoked,
] as const
