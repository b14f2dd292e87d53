/**
 * Whom an id belongs to: the customer and engine of an execution, a session or a token, whoever asks. For
 * observers and faults only; the service's own answers are limited to the caller's application.
 */
import type { SandboxState } from "../state/SandboxState.ts"

export interface Ids {
  readonly execution_id?: string | undefined
  readonly session_id?: string | undefined
  readonly token_id?: string | undefined
}

export interface Owner {
  readonly customer_id?: string | undefined
  readonly engine_reference?: string | undefined
}

export const ownerOf = (state: SandboxState, ids: Ids): Owner => {
  const bySession = ids.session_id === undefined ? undefined : state.bySession.get(ids.session_id)
  const execution = state.executions.get(ids.execution_id ?? bySession ?? "")
  if (execution !== undefined) return execution.started
  if (ids.token_id !== undefined) return state.tokens.tokens.get(ids.token_id)?.exchanged ?? {}
  const flow = ids.session_id === undefined ? undefined : state.flows.sessions.get(ids.session_id)
  return { customer_id: flow?.created.customer_id }
}
