/**
 * A ticket from its issue to its token (sections 2.6, 3.3 and 4.6): encrypted before anything else is done
 * with the answer that contained it, exchanged after AUTH_OK, and tried at most twice, because an exchange
 * whose answer was lost may have used it up. Whatever happens to it, the execution itself is not affected.
 */
import { Clock, Duration, Effect, type Redacted } from "effect"
import { waitMs } from "../base/Time.ts"
import { askedWait, retryWaitMax } from "../client/Pacing.ts"
import { lookWaits } from "../client/Polling.ts"
import { Service } from "../client/Service.ts"
import type { CallFailure, ExchangeAnswer, StartAnswer, StartCall } from "../client/Service.ts"
import type { Fact } from "../ledger/Fact.ts"
import { attemptKeys, taskKeys, type AttemptKeys, type TaskKeys } from "../ledger/FactKeys.ts"
import { Ledger, append } from "../ledger/Ledger.ts"
import { keptKeys, type LoginKeys } from "../privacy/Fingerprint.ts"
import { accessOf, type Access, type ExecutionId } from "../service/Ids.ts"
import { defaultTokenName, tokenKeys, tokenLifetimeMs } from "./StoredToken.ts"
import type { NewToken, PendingTicket } from "./StoredToken.ts"
import { TokenStore, type OpenTokenStore } from "./TokenStore.ts"

type Exchanged = Extract<ExchangeAnswer, { readonly _tag: "Exchanged" }>

/** The attempt whose start asked for a ticket. */
export interface TicketOrder extends AttemptKeys, Access, LoginKeys {
  readonly polling: { readonly min: Duration.Duration; readonly max: Duration.Duration }
}

/** Exchanges that may have reached the service. */
const exchangesMax = 2
/** Exchanges that certainly did not; only a task with no later opportunity tries more than one at a time. */
const unsentMax = 4

/**
 * Keeps the ticket of an answered start. Without a ticket, or if its answer was lost and only the execution
 * was found again, this run gets no token, and the next one asks again.
 */
export const keepTicket = Effect.fnUntraced(function* (
  order: TicketOrder,
  call: StartCall,
  answer: StartAnswer | CallFailure,
  opened: { readonly execution_id: ExecutionId; readonly answer: "accepted" | "adopted" },
) {
  if (!call.base_configurations.tokenized_access) return []
  const store = yield* TokenStore
  if (store._tag === "Closed") return []
  const { execution_id } = opened
  const issued: Fact = { _tag: "TicketIssued", ...attemptKeys(order), execution_id }
  const ticket = answer._tag === "Accepted" ? answer.view.ticket : undefined
  if (ticket !== undefined) {
    const features = call.features.map((feature) => (typeof feature === "string" ? feature : feature.code))
    const issued_at = Math.trunc(yield* Clock.currentTimeMillis)
    const kept = { execution_id, ...accessOf(order), ...madeWith(order), features, issued_at }
    yield* store.keepTicket(kept, ticket)
    return [issued]
  }
  // An earlier process may have kept it and died before it could record that.
  if ((yield* store.pendingTicket(execution_id)) !== undefined) return [issued]
  return [dropped(order, execution_id, opened.answer === "adopted" ? "ANSWER_LOST" : "NOT_ISSUED")]
})

/** Of the login that a token is made with, as far as it is known. */
const madeWith = ({ fingerprint, account }: LoginKeys) => ({
  fingerprint,
  ...(account === undefined ? {} : { login: keptKeys(account) }),
})

/** The token of an answer, as the store keeps it. */
const tokenOf = (
  { token: { token_id }, context: { app_id, locking_hash } }: Exchanged,
  access: Access,
  given: Pick<NewToken, "name" | "features" | "fingerprint" | "login" | "exchanged_at">,
): NewToken => ({
  ...accessOf(access),
  token_id,
  app_id,
  locking_hash,
  ...given,
  expires_at: given.exchanged_at + tokenLifetimeMs,
})

const dropped = (order: TicketOrder, execution_id: ExecutionId, reason: string): Fact => ({
  _tag: "TicketDropped",
  ...attemptKeys(order),
  execution_id,
  reason,
})

const pendingIn = Effect.fnUntraced(function* (execution_id: ExecutionId) {
  const store = yield* TokenStore
  if (store._tag === "Closed") return undefined
  const pending = yield* store.pendingTicket(execution_id)
  return pending && { store, pending }
})

/** Whether a ticket of this execution waits for its login. */
export const hasTicket = (execution_id: ExecutionId) =>
  Effect.map(pendingIn(execution_id), (found) => found !== undefined)

/** True if it still waits: only a last opportunity settles it for good. */
export const exchangeTicket = Effect.fn("ExchangeTicket.exchange")(function* (
  order: TicketOrder,
  execution_id: ExecutionId,
  isLast: boolean,
) {
  const found = yield* pendingIn(execution_id)
  if (found === undefined) return false
  const { store, pending } = found
  let { tries } = pending
  for (let unsent = 0; tries < exchangesMax;) {
    const outcome = yield* exchangeOnce(order, store, pending, tries)
    if (outcome._tag === "Over") return false
    if (outcome._tag === "Lost") tries += 1
    else unsent += 1
    if (outcome._tag === "Unsent" && !isLast) return true
    const asked = outcome._tag === "Unsent" ? outcome.asked : Duration.zero
    if (unsent >= unsentMax || Duration.isGreaterThan(asked, retryWaitMax))
      return yield* letGo(order, store, execution_id, "UNREACHABLE")
    yield* Effect.sleep(waitMs(lookWaits(order.polling), tries + unsent, 0, asked))
  }
  return yield* letGo(order, store, execution_id, "ANSWER_LOST")
})

const letGo = Effect.fnUntraced(function* (
  order: TicketOrder,
  store: OpenTokenStore,
  execution_id: ExecutionId,
  reason: string,
) {
  yield* append(dropped(order, execution_id, reason))
  yield* store.dropTicket(execution_id)
  return false
})

/** Drops the ticket of an execution whose login was not accepted: it can never be exchanged. */
export const forgetTicket = Effect.fnUntraced(function* (order: TicketOrder, execution_id: ExecutionId) {
  const found = yield* pendingIn(execution_id)
  if (found !== undefined) yield* letGo(order, found.store, execution_id, "NO_AUTH_OK")
})

/** One request; not interruptible, so that a token that arrived is not lost. */
const exchangeOnce = Effect.fnUntraced(function* (
  order: TicketOrder,
  store: OpenTokenStore,
  pending: PendingTicket,
  tries: number,
) {
  const service = yield* Service
  const { execution_id } = pending
  const ticket = yield* store.ticketValue(execution_id)
  const exchanged_at = Math.trunc(yield* Clock.currentTimeMillis)
  yield* store.noteTries(execution_id, tries + 1)
  const answer =
    ticket === undefined
      ? ({ _tag: "Refused" } as const)
      : yield* Effect.catch(
          service.exchangeTicket(execution_id, ticket),
          (failure): Effect.Effect<ExchangeAnswer | CallFailure> => Effect.succeed(failure),
        )
  const outcome = readExchange(order, pending, answer, exchanged_at)
  if (outcome._tag === "Unsent") yield* store.noteTries(execution_id, tries)
  if (outcome._tag !== "Over") return outcome
  if (outcome.token === undefined) yield* store.dropTicket(execution_id)
  else yield* store.keepToken(outcome.token, outcome.token_key, execution_id)
  yield* append(...outcome.facts)
  return outcome
}, Effect.uninterruptible)

/** What an answer to an exchange means: pure. */
const readExchange = (
  order: TicketOrder,
  pending: PendingTicket,
  answer: ExchangeAnswer | CallFailure,
  exchanged_at: number,
) => {
  const over = (reason: string) => ({
    _tag: "Over" as const,
    facts: [dropped(order, pending.execution_id, reason)],
    token: undefined,
  })
  switch (answer._tag) {
    case "Exchanged": {
      const { features = pending.features, customer_id, engine_reference } = answer.context
      const isOurs =
        (customer_id ?? pending.customer_id) === pending.customer_id &&
        (engine_reference ?? pending.engine_reference) === pending.engine_reference
      if (!isOurs) return over("FOREIGN_CONTEXT")
      const { fingerprint, login } = pending
      const made = { fingerprint, ...(login === undefined ? {} : { login }) }
      const given = { name: defaultTokenName(pending), features, ...made, exchanged_at }
      const token = tokenOf(answer, pending, given)
      const facts: ReadonlyArray<Fact> = [storedFact(token, taskKeys(order))]
      return { _tag: "Over" as const, facts, token, token_key: answer.token.token_key }
    }
    case "AnswerLost":
      return { _tag: "Lost" as const }
    case "NotSent":
    case "SecretRefused":
    case "Throttled":
      return { _tag: "Unsent" as const, asked: askedWait(answer) }
    case "Refused":
    case "UnexpectedAnswer":
      return over("REFUSED")
  }
}

/** The fact that a token was stored, by a task or by hand. */
const storedFact = (token: NewToken, by: TaskKeys | undefined): Fact => ({
  _tag: "TokenStored",
  ...by,
  ...tokenKeys(token),
  features: token.features,
  expires_at: token.expires_at,
})

// A ticket exchanged and a token revoked by hand (sections 4.6 and 4.7), at the service and in the store:
// nothing is stored that the service did not return, and nothing is dropped without its answer.

/** The login of an execution in this folder's ledger, as the breaker identifies it. */
const loginOfExecution = Effect.fnUntraced(function* (execution_id: ExecutionId) {
  const ledger = yield* Ledger
  for (const { fact } of (yield* ledger.runs).toReversed()) {
    const attempts = [...((yield* ledger.state(fact.run_id))?.tasks.values() ?? [])].flatMap(
      (task) => task.attempts,
    )
    const known = attempts.find((attempt) => attempt.execution_id === execution_id)
    if (known !== undefined) return madeWith(known)
  }
  return { fingerprint: undefined }
})

const refused =
  "the service gives the same answer for every reason: unknown, wrong, used or expired ticket, login not " +
  "accepted yet, another application, tokenization not enabled"
const incomplete = "the service returned a token without its customer and engine, so it cannot be stored"
const lost = "the answer was lost, and no other came, so the ticket may be used up"

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
  const login = yield* loginOfExecution(given.execution_id)
  const exchanged_at = Math.trunc(yield* Clock.currentTimeMillis)
  const asked = service.exchangeTicket(given.execution_id, given.ticket)
  const answer = yield* Effect.catchTag(asked, "AnswerLost", () =>
    Effect.orElseSucceed(asked, () => ({ _tag: "Lost" }) as const),
  )
  if (answer._tag === "Lost") return { _tag: "NoToken", message: lost } as const
  if (answer._tag === "Refused") return { _tag: "NoToken", message: refused } as const
  const { customer_id, engine_reference, features = [] } = answer.context
  if (customer_id === undefined || engine_reference === undefined)
    return { _tag: "NoToken", message: incomplete } as const
  const holder = (yield* store.tokens).find((one) => one.service === store.service && one.name === given.name)
  const isFree =
    holder === undefined ||
    (holder.customer_id === customer_id && holder.engine_reference === engine_reference)
  const access = { customer_id, engine_reference }
  const byDefault = defaultTokenName(access)
  const name = isFree ? (given.name ?? byDefault) : byDefault
  const token = tokenOf(answer, access, { name, features, ...login, exchanged_at })
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
