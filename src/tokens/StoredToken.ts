/**
 * Tokens and tickets as the store keeps them (section 2.6), without their secrets: what plans, commands and
 * reports may see.
 */
import type { Redacted } from "effect"
import { accessOf } from "../service/Ids.ts"
import type { Access, CustomerId, EngineReference, ExecutionId, TaskId } from "../service/Ids.ts"

/** A stored token without its key. Times are milliseconds since the epoch. */
export interface StoredToken extends Access {
  readonly name: string
  /** Whose token it is: the origin of `base_url`, or `sandbox`. */
  readonly service: string
  readonly token_id: string
  readonly app_id: string | undefined
  /** The fixed list of section 2.6: a run may request fewer, never more. */
  readonly features: ReadonlyArray<string>
  readonly locking_hash: string | undefined
  /** The login that it was made with, as the breaker identifies it; undefined if it was exchanged by hand. */
  readonly fingerprint: string | undefined
  readonly exchanged_at: number
  readonly expires_at: number
  /** It is no longer used; its key is kept only if the reason leaves a doubt. */
  readonly dropped: { readonly reason: string; readonly at: number } | undefined
  readonly hasKey: boolean
}

/** A ticket that was issued and is not exchanged yet. */
export interface PendingTicket extends Access {
  readonly execution_id: ExecutionId
  readonly service: string
  readonly fingerprint: string | undefined
  /** What the start requested: the token's list, if the service does not return it. */
  readonly features: ReadonlyArray<string>
  readonly issued_at: number
  /** Exchanges that were begun, each recorded before its request was sent. */
  readonly tries: number
}

/** What a fact says about a token. */
export const tokenKeys = (token: Pick<StoredToken, "name" | "token_id" | keyof Access>) => ({
  name: token.name,
  token_id: token.token_id,
  ...accessOf(token),
})

/** 2.6: the lifetime of a token, from its exchange; use does not extend it. */
export const tokenLifetimeMs = 90 * 24 * 60 * 60_000

/** The default name of a token that a job keeps. */
export const defaultTokenName = (customer_id: CustomerId, engine_reference: EngineReference): string =>
  `${customer_id}/${engine_reference}`

export type NewToken = Omit<StoredToken, "service" | "dropped" | "hasKey">
export type NewTicket = Omit<PendingTicket, "service" | "tries">

export interface TokenStoreOptions {
  readonly key: Redacted.Redacted<string>
  /** Tokens belong to a service; those of others are visible but never used. */
  readonly service: string
}

/** A stored token that expires soon, or has expired, and the task that it concerns. */
export interface EndingToken {
  readonly task_id: TaskId
  readonly token: StoredToken
}
