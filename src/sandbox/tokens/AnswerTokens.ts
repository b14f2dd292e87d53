/**
 * Tickets and tokens as answers of the contract (sections 4.6, 4.7 and 4.12): a decision, its events
 * recorded, a body. `ticket` and `token_key` are passed to the caller and never stored.
 */
import { Effect } from "effect"
import type { TokenizedStartRequest } from "../../service/Token.ts"
import { answerStart } from "../executions/AnswerExecutions.ts"
import { decideTokenizedStart, malformedTokenId } from "./DecideTokenizedStart.ts"
import { decideExchange, decideRevoke, findToken, isTokenId, locksAt, tokenStatusAt } from "./DecideTokens.ts"
import type { ExchangeInput } from "./DecideTokens.ts"
import { beginCall, recordEvents, settle } from "../core/SandboxCore.ts"
import type { StoredToken } from "../state/TokenState.ts"

const notFound = { _tag: "NotFound", detail: "no such token" } as const
const malformed = { _tag: "Invalid", detail: [malformedTokenId(["path", "token_id"])] } as const

/** 4.12: answers as 4.1 does, and 404 for a token that the application does not have. */
export const startTokenized = Effect.fnUntraced(function* (request: TokenizedStartRequest) {
  const start = { ...(yield* beginCall), request }
  const decision = decideTokenizedStart(start)
  if (decision._tag === "NotFound") {
    recordEvents(start, decision.events)
    return yield* Effect.fail(notFound)
  }
  if (decision._tag === "Mismatched") {
    recordEvents(start, decision.events)
    return yield* Effect.fail({ _tag: "Invalid" as const, detail: decision.detail })
  }
  return yield* answerStart(start, decision)
})

/** 2.6 */
const contextOf = ({ exchanged }: StoredToken | { readonly exchanged: StoredToken["exchanged"] }) => ({
  engine_reference: exchanged.engine_reference,
  app_id: exchanged.application,
  customer_id: exchanged.customer_id,
  features: exchanged.features,
  locking_hash: exchanged.locking_hash,
})

/** 4.6: one answer for every failure. */
export const exchangeTicket = Effect.fnUntraced(function* (request: ExchangeInput["request"]) {
  const call = yield* beginCall
  const answer = settle(call, decideExchange({ ...call, request }))
  if (answer._tag === "Forbidden") {
    return yield* Effect.fail({ _tag: answer._tag, detail: "the ticket cannot be exchanged" })
  }
  const { token, token_key } = answer
  return {
    _tag: answer._tag,
    token: { token_id: token.token_id, token_key },
    context: contextOf({ exchanged: token }),
  }
})

const iso = (at: number): string => new Date(at).toISOString()
const dated = (name: string, at: number | undefined) => (at === undefined ? {} : { [name]: iso(at) })

/** 4.12: the answer is not shown; own choice of its fields. */
export const readToken = Effect.fnUntraced(function* (token_id: string) {
  const call = yield* beginCall
  if (!isTokenId(token_id)) return yield* Effect.fail(malformed)
  const token = findToken(call, token_id)
  if (token === undefined) return yield* Effect.fail(notFound)
  const lockedAt = locksAt(call.state, token)
  return {
    token_id,
    status: tokenStatusAt(call.state, token, call.at),
    context: contextOf(token),
    date_created: iso(token.exchanged.at),
    date_expires: iso(token.expiresAt),
    ...dated("date_locked", lockedAt !== undefined && lockedAt <= call.at ? lockedAt : undefined),
    ...dated("date_revoked", token.revokedAt),
  }
})

/** 4.7 */
export const revokeToken = Effect.fnUntraced(function* (token_id: string) {
  const call = yield* beginCall
  if (!isTokenId(token_id)) return yield* Effect.fail(malformed)
  const _tag = settle(call, decideRevoke(call, token_id))
  if (_tag === "NotFound") return yield* Effect.fail(notFound)
  return _tag === "NoContent" ? { _tag } : { _tag }
})
