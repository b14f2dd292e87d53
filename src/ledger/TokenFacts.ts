/**
 * The facts about tickets and tokens: what happened to them, by their names and ids. Their values are in
 * the token store and nowhere else.
 */
import { Schema } from "effect"
import { ExecutionId, RunId, TaskId } from "../service/Ids.ts"
import { access, attempt, task } from "./FactKeys.ts"

/** The start was answered with a ticket; its value is in the token store and nowhere else. */
export const TicketIssued = Schema.TaggedStruct("TicketIssued", { ...attempt, execution_id: ExecutionId })
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
/** No longer used: EXPIRED, LOCKED, TOKEN_UNKNOWN or the service's own T10N reason. */
export const TokenDropped = Schema.TaggedStruct("TokenDropped", {
  ...task,
  ...token,
  reason: Schema.String,
})
/** Revoked by hand (4.7). */
export const TokenRevoked = Schema.TaggedStruct("TokenRevoked", token)

export const tokenFacts = [
  TicketIssued,
  TicketDropped,
  TokenStored,
  TokenExpiring,
  TokenDropped,
  TokenRevoked,
] as const
