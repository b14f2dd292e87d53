/**
 * Decides the calls on tickets and tokens (sections 2.6, 3.3, 4.6, 4.7 and 4.12). Pure: from state, time
 * and call to an answer and the events to record. A locked token is one whose login a source refused in a
 * run that it started: derived from that run's life, so that it locks at the moment of the refusal.
 */
import type { Decision, Look } from "../core/SandboxCore.ts"
import type { SandboxEvent } from "../state/SandboxEvent.ts"
import type { Execution, SandboxState } from "../state/SandboxState.ts"
import {
  damageSealed,
  isVerified,
  openSealed,
  sealText,
  serviceHalfFor,
  tokenKeyFor,
  verifierOf,
} from "../state/Sealing.ts"
import type { Seal } from "../state/Sealing.ts"
import { fingerprint } from "../state/Seeded.ts"
import { ticketSeal } from "../state/Tickets.ts"
import type { ExchangeRefused, TicketExchanged } from "../state/TokenEvent.ts"
import { ticketWindow } from "../state/TokenState.ts"
import type { PendingTicket, StoredToken } from "../state/TokenState.ts"

/** Form of a token id: not shown; own choice. */
export const isTokenId = (text: string): boolean => /^t10n-[0-9a-f]{32}$/.test(text)

type TokenFacts = Omit<TicketExchanged, "_tag" | "at" | "sealed_login" | "verifier" | "login_key">

/** 2.6: the key is derived from both halves, and bound to everything that the token is locked to. */
const tokenSeal = (token: TokenFacts, token_key: string): Seal => ({
  secret: `${token_key}.${token.service_half}`,
  purpose: "token",
  context: JSON.stringify([
    token.token_id,
    token.application,
    token.engine_reference,
    token.customer_id,
    token.features,
  ]),
})

/** The token that the application can see: another's looks as if it never existed (4.7). */
export const findToken = ({ state, application }: Look, token_id: string): StoredToken | undefined => {
  const token = state.tokens.tokens.get(token_id)
  return token?.exchanged.application === application.app_id ? token : undefined
}

/** 3.2: when the source refused a login of the token, or will, as far as the run's life is planned. */
export const locksAt = (state: SandboxState, token: StoredToken): number | undefined => {
  const refusals = token.runs.flatMap((execution_id) => {
    const judged = state.executions
      .get(execution_id)
      ?.phases.find((phase) => phase.authentication_status !== "not-performed")
    return judged === undefined || judged.authentication_status === "AUTH_OK" ? [] : [judged.from]
  })
  return refusals.length === 0 ? undefined : Math.min(...refusals)
}

/** Names of the states: only described in 3.3; own choice. */
type TokenStatus = "active" | "locked" | "revoked" | "expired"

/** 3.3. A dropped token stays dropped, even if a clock is set back. */
export const tokenStatusAt = (state: SandboxState, token: StoredToken, at: number): TokenStatus => {
  if (token.revokedAt !== undefined) return "revoked"
  if (at >= token.expiresAt || token.sealed_login === undefined) return "expired"
  return at >= (locksAt(state, token) ?? Number.POSITIVE_INFINITY) ? "locked" : "active"
}

export interface ExchangeInput extends Look {
  readonly request: { readonly execution_id: string; readonly ticket: string }
}

export type ExchangeAnswer =
  | { readonly _tag: "Exchanged"; readonly token: TicketExchanged; readonly token_key: string }
  | { readonly _tag: "Forbidden" }

interface Exchangeable {
  readonly execution: Execution
  readonly ticket: PendingTicket
  readonly login: string
}

/** All conditions of 4.6, or the one that is not met. */
const findExchangeable = (input: ExchangeInput): Exchangeable | ExchangeRefused["fault"] => {
  const { state, at, application, request } = input
  if (!application.mayTokenize) return "not_enabled"
  const execution = state.executions.get(request.execution_id)
  const ticket = state.tokens.tickets.get(request.execution_id)
  if (execution === undefined || ticket === undefined) return "unknown"
  if (execution.started.application !== application.app_id) return "foreign"
  if ("gone" in ticket) return ticket.gone
  const given = verifierOf("ticket", request.ticket, request.execution_id)
  if (!isVerified(ticket.verifier, given)) return "wrong_ticket"
  const window = ticketWindow(execution.phases)
  if (window === undefined || at < window.from) return "login_not_accepted"
  if (at >= window.until) return "expired"
  const login = openSealed(ticketSeal(request.ticket, request.execution_id), ticket.sealed_login)
  return login === undefined ? "wrong_ticket" : { execution, ticket, login }
}

/** 4.6: the ticket is used up; the login is encrypted again, under a key that needs the caller's half. */
export const decideExchange = (input: ExchangeInput): Decision<ExchangeAnswer> => {
  const { state, seed, at, application, request } = input
  const found = findExchangeable(input)
  if (typeof found === "string") {
    const known = state.executions.has(request.execution_id) ? { execution_id: request.execution_id } : {}
    const refused = { _tag: "ExchangeRefused", at, application: application.app_id, ...known } as const
    return { answer: { _tag: "Forbidden" }, events: [{ ...refused, fault: found }] }
  }
  const { started } = found.execution
  const token_id = `t10n-${fingerprint("token", seed, started.execution_id).slice(0, 32)}`
  const token_key = tokenKeyFor(seed, token_id, request.ticket)
  const facts: TokenFacts = {
    execution_id: started.execution_id,
    token_id,
    application: started.application,
    customer_id: started.customer_id,
    engine_reference: started.engine_reference,
    features: started.results.features.map(({ code }) => code),
    locking_hash: started.locking_hash,
    service_half: serviceHalfFor(seed, token_id),
  }
  const sealed = sealText(tokenSeal(facts, token_key), found.login)
  const token: TicketExchanged = {
    _tag: "TicketExchanged",
    at,
    ...facts,
    login_key: started.login_key,
    verifier: verifierOf("token_key", token_key, token_id),
    sealed_login: found.ticket.unreadable ? damageSealed(sealed) : sealed,
  }
  return { answer: { _tag: "Exchanged", token, token_key }, events: [token] }
}

/** 4.7. Revoking an expired or locked token: not shown; own choice: it is revoked like any other. */
export const decideRevoke = (
  look: Look,
  token_id: string,
): Decision<"NoContent" | "NotModified" | "NotFound"> => {
  const { at } = look
  const token = findToken(look, token_id)
  if (token === undefined) return { answer: "NotFound", events: [] }
  if (token.revokedAt !== undefined) return { answer: "NotModified", events: [] }
  const revoked: SandboxEvent = { _tag: "TokenRevoked", at, token_id }
  return { answer: "NoContent", events: [revoked] }
}

/** What a token opens for a start: the login, or why it opens nothing (3.1). */
export const openToken = (
  state: SandboxState,
  token: StoredToken,
  token_key: string,
  at: number,
): { readonly login: string } | { readonly fault: "T10N_REJECTED" | "T10N_EXCEPTION" } => {
  const { exchanged, sealed_login } = token
  const given = verifierOf("token_key", token_key, exchanged.token_id)
  const fits = isVerified(exchanged.verifier, given)
  if (!fits || sealed_login === undefined || tokenStatusAt(state, token, at) !== "active") {
    return { fault: "T10N_REJECTED" }
  }
  const login = openSealed(tokenSeal(exchanged, token_key), sealed_login)
  return login === undefined ? { fault: "T10N_EXCEPTION" } : { login }
}
