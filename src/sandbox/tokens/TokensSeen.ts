/**
 * Tokens as observers of tests see them: where each came from, when its state changes, and what was done
 * with it. It contains neither the stored login nor any half of its key.
 */
import { locksAt } from "./DecideTokens.ts"
import type { SandboxState } from "../state/SandboxState.ts"

export interface TokenSeen {
  readonly token_id: string
  readonly application: string
  readonly customer_id: string
  readonly engine_reference: string
  readonly features: ReadonlyArray<string>
  /** The execution whose ticket was exchanged for it. */
  readonly execution_id: string
  readonly exchanged_at: number
  readonly expires_at: number
  /** When the login of one of its runs is refused, as far as the run's life is planned. */
  readonly locks_at?: number
  readonly revoked_at?: number
  /** Whether the stored credentials are still there. */
  readonly holds_credentials: boolean
  /** Executions that it started. */
  readonly runs: ReadonlyArray<string>
  /** Starts with it that were refused because a run was in flight. */
  readonly conflicts: number
}

export const tokensSeen = (state: SandboxState): ReadonlyArray<TokenSeen> =>
  [...state.tokens.tokens.values()].map((token) => {
    const { exchanged, expiresAt, revokedAt, runs, conflicts } = token
    const locks_at = locksAt(state, token)
    return {
      token_id: exchanged.token_id,
      application: exchanged.application,
      customer_id: exchanged.customer_id,
      engine_reference: exchanged.engine_reference,
      features: exchanged.features,
      execution_id: exchanged.execution_id,
      exchanged_at: exchanged.at,
      expires_at: expiresAt,
      ...(locks_at === undefined ? {} : { locks_at }),
      ...(revokedAt === undefined ? {} : { revoked_at: revokedAt }),
      holds_credentials: token.sealed_login !== undefined,
      runs,
      conflicts,
    }
  })
