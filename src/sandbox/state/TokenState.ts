/**
 * The tickets and tokens of the embedded service as a fold of their events (sections 2.6 and 3.3). Stored
 * credentials are dropped from the state as soon as a ticket is used or its execution deleted, a token is
 * revoked, or the first event occurs at or after their expiry; no decision ever uses them later.
 */
import { createCipheriv, createDecipheriv, hkdfSync, timingSafeEqual } from "node:crypto"
import { Schema } from "effect"
import { acceptedIn, endIn, type Phase } from "./Timeline.ts"
import type { StartRequest } from "../../service/Execution.ts"

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
type Ticket = PendingTicket | { readonly gone: TicketEnd }

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
export const ticketWindow = (phases: ReadonlyArray<Phase>) => {
  const accepted = acceptedIn(phases)
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
    const closedAt = endIn(phases)?.from ?? Number.POSITIVE_INFINITY
    if (window !== undefined && at >= window.until) dropTicket(tokens, execution_id, "expired")
    if (window === undefined && at >= closedAt) dropTicket(tokens, execution_id, "login_not_accepted")
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

// Logins in these events are encrypted under a ticket or `token_key` that no event contains.

const at = Schema.Finite

/** A start was given a ticket: the login waits for the exchange, encrypted under it. */
const TicketIssued = Schema.TaggedStruct("TicketIssued", {
  at,
  execution_id: Schema.String,
  verifier: Schema.String,
  sealed_login: Schema.String,
  /** A behaviour word makes the stored result of the exchange unreadable. */
  unreadable: Schema.Boolean,
})
type TicketIssued = typeof TicketIssued.Type

const TicketExchanged = Schema.TaggedStruct("TicketExchanged", {
  at,
  execution_id: Schema.String,
  token_id: Schema.String,
  application: Schema.String,
  customer_id: Schema.String,
  engine_reference: Schema.String,
  features: Schema.Array(Schema.String),
  login_key: Schema.String,
  locking_hash: Schema.String,
  service_half: Schema.String,
  verifier: Schema.String,
  sealed_login: Schema.String,
})
export type TicketExchanged = typeof TicketExchanged.Type

const exchangeFaults = [
  "not_enabled",
  "unknown",
  "foreign",
  "wrong_ticket",
  "spent",
  "expired",
  "deleted",
  "login_not_accepted",
] as const
/** For observers only: the caller gets none of this (4.6). */
const ExchangeRefused = Schema.TaggedStruct("ExchangeRefused", {
  at,
  application: Schema.String,
  /** Only for existing executions; anything else that a caller sends is not kept. */
  execution_id: Schema.optionalKey(Schema.String),
  fault: Schema.Literals(exchangeFaults),
})
export type ExchangeRefused = typeof ExchangeRefused.Type

const TokenRevoked = Schema.TaggedStruct("TokenRevoked", { at, token_id: Schema.String })

export const TokenEvents = Schema.Union([TicketIssued, TicketExchanged, ExchangeRefused, TokenRevoked]).pipe(
  Schema.toTaggedUnion("_tag"),
)
type TokenEvent = typeof TokenEvents.Type

// AES-256-GCM under HKDF-SHA256 keys of what only the caller has. A secret encrypts one text, so its nonce is
// derived from it too.

const keyBytes = 32
const nonceBytes = 12
const tagBytes = 16
const prefix = "v1."

const derive = (secret: string, salt: string, purpose: string, bytes: number): Buffer =>
  Buffer.from(hkdfSync("sha256", secret, salt, `nightjar sandbox: ${purpose}`, bytes))

/** The key and the context it is bound to: with another context, the text cannot be opened. */
export interface Seal {
  readonly secret: string
  readonly purpose: "ticket" | "token"
  readonly context: string
}

const keyAndNonce = ({ secret, purpose, context }: Seal): readonly [Buffer, Buffer] => {
  const material = derive(secret, context, `${purpose} seal`, keyBytes + nonceBytes)
  return [material.subarray(0, keyBytes), material.subarray(keyBytes)]
}

export const sealText = (seal: Seal, text: string): string => {
  const cipher = createCipheriv("aes-256-gcm", ...keyAndNonce(seal)).setAAD(Buffer.from(seal.context))
  const sealed = [cipher.update(text, "utf8"), cipher.final(), cipher.getAuthTag()]
  return `${prefix}${Buffer.concat(sealed).toString("base64url")}`
}

/** Throws if key, nonce or context differ, or if the text or the tag after it is damaged. */
export const openGcm = (key: Buffer, nonce: Buffer, bytes: Buffer, context = ""): string => {
  const decipher = createDecipheriv("aes-256-gcm", key, nonce, { authTagLength: tagBytes })
    .setAAD(Buffer.from(context))
    .setAuthTag(bytes.subarray(-tagBytes))
  const opened = [decipher.update(bytes.subarray(0, -tagBytes)), decipher.final()]
  return Buffer.concat(opened).toString("utf8")
}

/** Undefined if the secret or the context differs, or the encrypted text is damaged. */
export const openSealed = (seal: Seal, sealed: string): string | undefined => {
  if (!sealed.startsWith(prefix)) return undefined
  const bytes = Buffer.from(sealed.slice(prefix.length), "base64url")
  try {
    return openGcm(...keyAndNonce(seal), bytes, seal.context)
  } catch {
    return undefined
  }
}

/** A ticket for one start: not derivable from the seed alone, because the login is part of it. */
const ticketFor = (seed: number, execution_id: string, login: string): string =>
  derive(login, `${seed}.${execution_id}`, "ticket", keyBytes).toString("hex")

/** The caller's half of a token's key: derived from the ticket, which the service does not keep. */
export const tokenKeyFor = (seed: number, token_id: string, ticket: string): string =>
  derive(ticket, `${seed}.${token_id}`, "token_key", keyBytes).toString("base64url")

/** The service's half; it stays with the service, and alone it opens nothing. */
export const serviceHalfFor = (seed: number, token_id: string): string =>
  derive(String(seed), token_id, "service half", keyBytes).toString("base64url")

/** What is kept of a ticket, and of a `token_key`: enough to recognise it, not enough to use it. */
export const verifierOf = (kind: "ticket" | "token_key", secret: string, salt: string): string =>
  derive(secret, salt, `${kind} verifier`, keyBytes).toString("hex")

export const isVerified = (expected: string, given: string): boolean => {
  const [a, b] = [Buffer.from(expected), Buffer.from(given)]
  return a.length === b.length && timingSafeEqual(a, b)
}

export const ticketSeal = (ticket: string, execution_id: string): Seal => ({
  secret: ticket,
  purpose: "ticket",
  context: execution_id,
})

export const issueTicket = (
  seed: number,
  at: number,
  execution_id: string,
  parameters: StartRequest["parameters"],
  unreadable: boolean,
): { readonly ticket: string; readonly issued: TicketIssued } => {
  const login = JSON.stringify(parameters)
  const ticket = ticketFor(seed, execution_id, login)
  const issued: TicketIssued = {
    _tag: "TicketIssued",
    at,
    execution_id,
    verifier: verifierOf("ticket", ticket, execution_id),
    sealed_login: sealText(ticketSeal(ticket, execution_id), login),
    unreadable,
  }
  return { ticket, issued }
}
