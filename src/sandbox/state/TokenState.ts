/**
 * The tickets and tokens of the embedded service as a fold of their events (sections 2.6 and 3.3). Stored
 * credentials are dropped from the state as soon as a ticket is used or its execution deleted, a token is
 * revoked, or the first event occurs at or after their expiry; no decision ever uses them later.
 */
import { isClosedPhase } from "./Timeline.ts"
import type { Phase } from "./Timeline.ts"
import type { ExchangeRefused, TicketExchanged, TokenEvent } from "./TokenEvent.ts"

/** Section 8: 90 days from the exchange; use does not extend it. */
const tokenLifetimeMs = 90 * 24 * 3_600_000
/** Ticket lifetime: not shown; own choice: half an hour from the moment it becomes exchangeable. */
const ticketLifetimeMs = 30 * 60_000
/** How often the fold checks for expired tickets: each check goes through the pending ones. */
const ticketLookMs = 5 * 60_000

export interface PendingTicket {
  readonly verifier: string
  readonly sealed_login: string
  readonly unreadable: boolean
}
type TicketEnd = "spent" | "expired" | "deleted" | "login_not_accepted"
export type Ticket = PendingTicket | { readonly gone: TicketEnd }

export interface StoredToken {
  readonly exchanged: Omit<TicketExchanged, "sealed_login">
  readonly expiresAt: number
  /** Undefined once they are gone: revoked or expired. */
  readonly sealed_login: string | undefined
  readonly revokedAt?: number
  /** Executions that were started with it, in order; deleted ones too. */
  readonly runs: ReadonlyArray<string>
  /** Starts that were refused because a run was in flight. */
  readonly conflicts: number
}

export interface TokenState {
  /** By execution. */
  readonly tickets: Map<string, Ticket>
  /** Executions whose tickets are still to be exchanged. */
  readonly pending: Set<string>
  /** By id, in the order of their exchanges. */
  readonly tokens: Map<string, StoredToken>
  /** Ids of tokens that are not known to have expired, oldest first. */
  readonly unexpired: Array<string>
  readonly refusedExchanges: Array<ExchangeRefused>
  ticketsLookedAtMs: number
}

export const emptyTokenState = (): TokenState => ({
  tickets: new Map(),
  pending: new Set(),
  tokens: new Map(),
  unexpired: [],
  refusedExchanges: [],
  ticketsLookedAtMs: Number.NEGATIVE_INFINITY,
})

/** 2.6 and 6.1: exchangeable once the source has accepted the login; undefined if it never did or will. */
export const ticketWindow = (
  phases: ReadonlyArray<Phase>,
): { readonly from: number; readonly until: number } | undefined => {
  const accepted = phases.find((phase) => phase.authentication_status === "AUTH_OK")
  return accepted && { from: accepted.from, until: accepted.from + ticketLifetimeMs }
}

export const dropTicket = (tokens: TokenState, execution_id: string, gone: TicketEnd): void => {
  if (!tokens.pending.delete(execution_id)) return
  tokens.tickets.set(execution_id, { gone })
}

const changeToken = (
  tokens: TokenState,
  token_id: string,
  change: (token: StoredToken) => StoredToken,
): void => {
  const token = tokens.tokens.get(token_id)
  if (token !== undefined) tokens.tokens.set(token_id, change(token))
}

/** Drops what has expired at `at`; `phasesOf` gives the life of a ticket's execution. */
export const dropExpired = (
  tokens: TokenState,
  at: number,
  phasesOf: (execution_id: string) => ReadonlyArray<Phase>,
): void => {
  for (;;) {
    const eldest = tokens.unexpired[0]
    const expiresAt = eldest === undefined ? undefined : tokens.tokens.get(eldest)?.expiresAt
    if (eldest === undefined || expiresAt === undefined || at < expiresAt) break
    tokens.unexpired.shift()
    changeToken(tokens, eldest, (token) => ({ ...token, sealed_login: undefined }))
  }
  if (tokens.pending.size === 0 || at < tokens.ticketsLookedAtMs + ticketLookMs) return
  tokens.ticketsLookedAtMs = at
  for (const execution_id of tokens.pending) {
    const phases = phasesOf(execution_id)
    const window = ticketWindow(phases)
    const last = phases.at(-1)
    if (window !== undefined && at >= window.until) dropTicket(tokens, execution_id, "expired")
    if (window === undefined && last !== undefined && isClosedPhase(last) && at >= last.from) {
      dropTicket(tokens, execution_id, "login_not_accepted")
    }
  }
}

export const addRun = (tokens: TokenState, token_id: string, execution_id: string): void =>
  changeToken(tokens, token_id, (token) => ({ ...token, runs: [...token.runs, execution_id] }))

export const addConflict = (tokens: TokenState, token_id: string): void =>
  changeToken(tokens, token_id, (token) => ({ ...token, conflicts: token.conflicts + 1 }))

export const applyTokenEvent = (tokens: TokenState, event: TokenEvent): void => {
  switch (event._tag) {
    case "TicketIssued": {
      const { execution_id, verifier, sealed_login, unreadable } = event
      tokens.pending.add(execution_id)
      return void tokens.tickets.set(execution_id, { verifier, sealed_login, unreadable })
    }
    case "TicketExchanged": {
      const { sealed_login, ...exchanged } = event
      tokens.pending.delete(event.execution_id)
      tokens.tickets.set(event.execution_id, { gone: "spent" })
      tokens.unexpired.push(event.token_id)
      return void tokens.tokens.set(event.token_id, {
        exchanged,
        expiresAt: event.at + tokenLifetimeMs,
        sealed_login,
        runs: [],
        conflicts: 0,
      })
    }
    case "ExchangeRefused":
      return void tokens.refusedExchanges.push(event)
    case "TokenRevoked":
      return changeToken(tokens, event.token_id, (token) => ({
        ...token,
        sealed_login: undefined,
        revokedAt: event.at,
      }))
  }
}
