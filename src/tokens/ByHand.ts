/**
 * A ticket exchanged and a token revoked by hand (sections 4.6 and 4.7), at the service and in the store:
 * nothing is stored that the service did not return, and nothing is dropped without its answer.
 */
import { Clock, Effect } from "effect"
import type { Redacted } from "effect"
import type { ExecutionId } from "../service/Ids.ts"
import { Service } from "../client/Service.ts"
import { append, Ledger } from "../ledger/Ledger.ts"
import { storedFact } from "./ExchangeTicket.ts"
import { defaultTokenName, tokenKeys, tokenLifetimeMs } from "./StoredToken.ts"
import type { OpenTokenStore } from "./TokenStore.ts"

/** The login of an execution in this folder's ledger, as the breaker identifies it. */
const fingerprintOf = Effect.fnUntraced(function* (execution_id: ExecutionId) {
  const ledger = yield* Ledger
  for (const { fact } of (yield* ledger.runs).toReversed()) {
    const attempts = [...((yield* ledger.state(fact.run_id))?.tasks.values() ?? [])].flatMap(
      (task) => task.attempts,
    )
    const known = attempts.find((attempt) => attempt.execution_id === execution_id)
    if (known !== undefined) return known.fingerprint
  }
  return undefined
})

const refused =
  "the service gives the same answer for every reason: unknown, wrong, used or expired ticket, login not " +
  "accepted yet, another application, tokenization not enabled"
const incomplete = "the service returned a token without its customer and engine, so it cannot be stored"
const lost = "the answer was lost twice, so the ticket may be used up"

/**
 * 4.6. A name that another access already holds is not taken from it: the token is then stored under its
 * default name, because there is only one and its ticket is used up. Not interruptible, so that a token
 * that arrived is not lost.
 */
export const exchangeByHand = Effect.fn("Tokens.exchangeByHand")(function* (
  store: OpenTokenStore,
  given: {
    readonly execution_id: ExecutionId
    readonly ticket: Redacted.Redacted<string>
    readonly name: string | undefined
  },
) {
  const service = yield* Service
  const fingerprint = yield* fingerprintOf(given.execution_id)
  const exchanged_at = Math.trunc(yield* Clock.currentTimeMillis)
  const asked = service.exchangeTicket(given.execution_id, given.ticket)
  const answer = yield* asked.pipe(
    Effect.catchTag("AnswerLost", () => asked),
    Effect.catchTag("AnswerLost", () => Effect.succeed({ _tag: "Lost" } as const)),
  )
  if (answer._tag === "Lost") return { _tag: "NoToken", message: lost } as const
  if (answer._tag === "Refused") return { _tag: "NoToken", message: refused } as const
  const { customer_id, engine_reference, app_id, features = [], locking_hash } = answer.context
  if (customer_id === undefined || engine_reference === undefined)
    return { _tag: "NoToken", message: incomplete } as const
  const holder = (yield* store.tokens).find((one) => one.service === store.service && one.name === given.name)
  const isFree =
    holder === undefined ||
    (holder.customer_id === customer_id && holder.engine_reference === engine_reference)
  const byDefault = defaultTokenName(customer_id, engine_reference)
  const token = {
    name: isFree ? (given.name ?? byDefault) : byDefault,
    token_id: answer.token.token_id,
    customer_id,
    engine_reference,
    app_id,
    features,
    locking_hash,
    fingerprint,
    exchanged_at,
    expires_at: exchanged_at + tokenLifetimeMs,
  }
  yield* store.keepToken(token, answer.token.token_key, given.execution_id)
  yield* append(storedFact(token, undefined))
  return { _tag: "Stored", token } as const
}, Effect.uninterruptible)

/** 4.7. Without an answer the token stays as it is. Undefined if this service has no token with that name. */
export const revokeByHand = Effect.fn("Tokens.revokeByHand")(function* (
  store: OpenTokenStore,
  named: string,
) {
  const token = (yield* store.tokens).find((one) => one.name === named && one.service === store.service)
  if (token === undefined) return undefined
  const service = yield* Service
  const answer = yield* service.revokeToken(token.token_id)
  yield* store.dropToken(token, "REVOKED")
  yield* append({ _tag: "TokenRevoked", ...tokenKeys(token) })
  return { token, answer }
})
