/**
 * The one place where the embedded service's state changes: events go to the journal first, then into the
 * fold. A decision and its events are settled in one synchronous step, so that what was decided upon is
 * what changes.
 */
import type { Decision } from "./DecideCalls.ts"
import type { Journal } from "./Journal.ts"
import type { SandboxEvent } from "./SandboxEvent.ts"
import { applyEvent } from "./SandboxState.ts"
import type { SandboxState } from "./SandboxState.ts"

export interface SandboxCore {
  readonly seed: number
  readonly state: SandboxState
  readonly journal: Journal | undefined
  /** Values of wrong parameters, for the echo; never journaled, so a restart forgets them. */
  readonly inputs: Map<string, ReadonlyArray<unknown>>
}

export const recordEvents = (core: SandboxCore, events: ReadonlyArray<SandboxEvent>): void => {
  core.journal?.append(events)
  for (const event of events) applyEvent(core.state, event)
}

export const settle = <Answer>(core: SandboxCore, decision: Decision<Answer>): Answer => {
  recordEvents(core, decision.events)
  return decision.answer
}
