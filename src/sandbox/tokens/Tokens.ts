/**
 * Tickets and tokens (sections 2.6, 4.6, 4.7 and 4.12). `ticket` and `token_key` are passed to the caller
 * and never stored.
 */
import { Schema, Struct } from "effect"
import { given } from "../../base/Schemas.ts"
import { answered, decidedBy, refused, type Look } from "../core/SandboxCore.ts"
import { findEngine } from "../engines/EngineCatalogue.ts"
import { decideStart, invalidStart, t10nForbidden, unknownToken } from "../executions/Executions.ts"
import type { StartInput } from "../executions/Executions.ts"
import { fingerprint } from "../state/Reading.ts"
import type { SandboxState } from "../state/SandboxState.ts"
import { iso, isJudged } from "../state/Timeline.ts"
import { isVerified, openSealed, sealText, serviceHalfFor, ticketSeal } from "../state/TokenState.ts"
import { ticketWindow, tokenKeyFor, verifierOf, type Seal, type StoredToken } from "../state/TokenState.ts"
import { type TicketExchanged } from "../state/TokenState.ts"
import { LoginParameters, type StartRequest, type ValidationItem } from "../../service/Execution.ts"
import type { ExchangeRequest, TokenizedStartRequest } from "../../service/Execution.ts"

/** Form of a token id: not shown; own choice. */
const isTokenId = (text: string): boolean => /^t10n-[0-9a-f]{32}$/.test(text)

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
const findToken = ({ state, application }: Look, token_id: string): StoredToken | undefined => {
  const token = state.tokens.tokens.get(token_id)
  return token?.exchanged.application === application.app_id ? token : undefined
}

/** 3.2: when the source refused the login in a run of the token, or will, as far as its life is planned. */
const locksAt = (state: SandboxState, token: StoredToken): number | undefined => {
  const refusals = token.runs.flatMap((execution_id) => {
    const judged = state.executions.get(execution_id)?.phases.find(isJudged)
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

/** All conditions of 4.6, or the one that is not met. */
const findExchangeable = ({ state, at, application }: Look, request: typeof ExchangeRequest.Type) => {
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

/** 2.6 */
const contextOf = (exchanged: StoredToken["exchanged"]) => ({
  engine_reference: exchanged.engine_reference,
  app_id: exchanged.application,
  customer_id: exchanged.customer_id,
  features: exchanged.features,
  locking_hash: exchanged.locking_hash,
})

/**
 * 4.6: the ticket is used up; the login is encrypted again, under a key that needs the caller's half. One
 * answer for every failure.
 */
export const exchangeTicket = decidedBy((call, request: typeof ExchangeRequest.Type) => {
  const { state, seed, at, application } = call
  const found = findExchangeable(call, request)
  if (typeof found === "string") {
    const known = state.executions.has(request.execution_id) ? { execution_id: request.execution_id } : {}
    const answer = { _tag: "Forbidden", detail: "the ticket cannot be exchanged" } as const
    const about = { at, application: application.app_id, ...known }
    return refused(answer, { _tag: "ExchangeRefused", ...about, fault: found })
  }
  const { started } = found.execution
  const token_id = `t10n-${fingerprint("token", seed, started.execution_id).slice(0, 32)}`
  const token_key = tokenKeyFor(seed, token_id, request.ticket)
  const facts: TokenFacts = {
    ...Struct.pick(started, [
      "execution_id",
      "application",
      "customer_id",
      "engine_reference",
      "locking_hash",
    ]),
    token_id,
    features: started.results.features.map(({ code }) => code),
    service_half: serviceHalfFor(seed, token_id),
  }
  // The login of a token that must be unreadable is encrypted under a key that nobody has.
  const seal = tokenSeal(facts, found.ticket.unreadable ? "" : token_key)
  const token: TicketExchanged = {
    _tag: "TicketExchanged",
    at,
    ...facts,
    login_key: started.login_key,
    verifier: verifierOf("token_key", token_key, token_id),
    sealed_login: sealText(seal, found.login),
  }
  return answered({ _tag: "Exchanged", token: { token_id, token_key }, context: contextOf(token) }, token)
})

const malformedTokenId = (loc: ReadonlyArray<string>): ValidationItem => ({
  loc,
  msg: "not a token id",
  type: "value_error.token_id",
})
const notFound = refused({ _tag: "NotFound", detail: "no such token" })
const malformed = refused({ _tag: "Invalid", detail: [malformedTokenId(["path", "token_id"])] })

/** 4.7. Revoking an expired or locked token: not shown; own choice: it is revoked like any other. */
export const revokeToken = decidedBy((call, token_id: string) => {
  const { at } = call
  if (!isTokenId(token_id)) return malformed
  const token = findToken(call, token_id)
  if (token === undefined) return notFound
  if (token.revokedAt !== undefined) return answered({ _tag: "NotModified" })
  return answered({ _tag: "NoContent" }, { _tag: "TokenRevoked", at, token_id })
})

/** What a token opens for a start: the login, or why it opens nothing (3.1). */
const openToken = (
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

// 4.12, not shown; own choice: the checks of 4.1 once the token is the application's and the request fits it;
// a token that opens nothing is accepted and closes at once.

/** 2.6: locked to one engine, one customer and a fixed list, of which a run may ask for fewer. */
const mismatches = ({ exchanged }: StoredToken, request: TokenizedStartRequest) => {
  const item = (isWrong: boolean, loc: ReadonlyArray<string | number>, of: string) =>
    isWrong
      ? [{ loc: ["body", ...loc], msg: `not ${of} of this token`, type: "value_error.token_context" }]
      : []
  const offered = findEngine(exchanged.engine_reference)?.features ?? []
  return [
    ...item(request.engine_reference !== exchanged.engine_reference, ["engine_reference"], "the engine"),
    ...item(request.customer_id !== exchanged.customer_id, ["customer_id"], "the customer"),
    ...(request.features ?? []).flatMap((feature, position) => {
      const code = typeof feature === "string" ? feature : feature.code
      // 4.1: what the engine does not implement is ignored, so it cannot widen the list.
      const widens = offered.some((known) => known === code) && !exchanged.features.includes(code)
      return item(widens, ["features", position], "among the features")
    }),
  ]
}

const decodeLogin = Schema.decodeUnknownSync(Schema.fromJsonString(LoginParameters))

/**
 * The start as it would have been with its parameters. A tokenized run gives no ticket (own choice): that
 * would extend a token, whose expiry does not depend on use.
 */
const asParametrised = (
  { token: _token, features, base_configurations, ...request }: TokenizedStartRequest,
  token: StoredToken,
  login: string | undefined,
): StartRequest => ({
  ...request,
  parameters: login === undefined ? {} : decodeLogin(login),
  features: features ?? token.exchanged.features,
  base_configurations: { ...base_configurations, tokenized_access: false },
})

/** 4.12: answers as 4.1 does, and 404 for a token that the application does not have. */
export const startTokenized = decidedBy((call, request: TokenizedStartRequest) => {
  const { state, at, application } = call
  const { token: named, ...asked } = request
  const unopened: StartInput = { ...call, request: { ...asked, parameters: {} } }
  if (!application.mayTokenize) return t10nForbidden(unopened)
  if (!isTokenId(named.token_id)) {
    return invalidStart(unopened, [malformedTokenId(["body", "token", "token_id"])])
  }
  const token = findToken(call, named.token_id)
  if (token === undefined) return unknownToken(unopened)
  const { token_id, login_key, locking_hash } = token.exchanged
  const opened = openToken(state, token, named.token_key, at)
  const start: StartInput = {
    ...unopened,
    request: asParametrised(request, token, "login" in opened ? opened.login : undefined),
    token: { token_id, login_key, locking_hash, ...("fault" in opened ? { fault: opened.fault } : {}) },
  }
  const detail = mismatches(token, request)
  return detail.length > 0 ? invalidStart(start, detail) : decideStart(start)
})

/** 4.12: the answer is not shown; own choice of its fields. */
export const readToken = decidedBy((call, token_id: string) => {
  if (!isTokenId(token_id)) return malformed
  const token = findToken(call, token_id)
  if (token === undefined) return notFound
  const lockedAt = locksAt(call.state, token)
  return answered({
    token_id,
    status: tokenStatusAt(call.state, token, call.at),
    context: contextOf(token.exchanged),
    date_created: iso(token.exchanged.at),
    date_expires: iso(token.expiresAt),
    ...given({
      date_locked: lockedAt !== undefined && lockedAt <= call.at ? iso(lockedAt) : undefined,
      date_revoked: token.revokedAt === undefined ? undefined : iso(token.revokedAt),
    }),
  })
})

/** For observers: `locks_at` as far as its runs are planned, `conflicts` of starts with a run in flight. */
export const tokensSeen = (state: SandboxState) =>
  [...state.tokens.tokens.values()].map((token) => {
    const { exchanged, expiresAt, revokedAt, runs, conflicts } = token
    return {
      ...Struct.pick(exchanged, [
        "token_id",
        "application",
        "customer_id",
        "engine_reference",
        "features",
        "execution_id",
      ]),
      exchanged_at: exchanged.at,
      expires_at: expiresAt,
      ...given({ locks_at: locksAt(state, token), revoked_at: revokedAt }),
      holds_credentials: token.sealed_login !== undefined,
      runs,
      conflicts,
    }
  })
