/**
 * The flow sessions without an execution (those of executions belong to the executions): the steps taken in
 * each, and its life derived from them. The state is a fold of the events.
 */
import type { FlowSessionCreated, FlowSessionEvent, TakenStep } from "./FlowEvent.ts"
import { flowLifeOf } from "./FlowTimeline.ts"
import type { FlowLife } from "./FlowTimeline.ts"
import { afterLock, afterRead, afterRefusal, unread } from "./ReadLimit.ts"
import type { SessionReads } from "./ReadLimit.ts"

export interface FlowSession extends FlowLife, SessionReads {
  readonly created: FlowSessionCreated
  /** A session that nobody created: it existed when it was first read, at `foundAt`. */
  readonly foundAt?: number
  /** In the order of their times. */
  readonly steps: ReadonlyArray<TakenStep>
}

export interface FlowState {
  readonly sessions: Map<string, FlowSession>
}

export const emptyFlowState = (): FlowState => ({ sessions: new Map() })

export const newFlowSession = (
  created: FlowSessionCreated,
  steps: ReadonlyArray<TakenStep> = [],
  foundAt?: number,
): FlowSession => ({
  created,
  steps,
  ...(foundAt === undefined ? {} : { foundAt }),
  ...flowLifeOf({ created, steps }),
  ...unread,
})

/** A standing session's later steps already exist: a new one takes its place between them. */
const withStep = (session: FlowSession, taken: TakenStep): FlowSession => {
  const later = session.steps.findIndex(({ at }) => at > taken.at)
  const steps = session.steps.toSpliced(later < 0 ? session.steps.length : later, 0, taken)
  return { ...session, steps, ...flowLifeOf({ created: session.created, steps }) }
}

/** The fold. Events about sessions that do not exist are ignored: a journal may have lost its beginning. */
export const applyFlowEvent = (state: FlowState, event: FlowSessionEvent): void => {
  if (event._tag === "FlowSessionCreated") {
    return void state.sessions.set(event.session_id, newFlowSession(event))
  }
  if (event._tag === "FlowSessionFound") {
    const { created, steps, at } = event
    return void state.sessions.set(created.session_id, newFlowSession(created, steps, at))
  }
  const session = state.sessions.get(event.session_id)
  if (session === undefined) return
  const { at } = event
  const change = (next: FlowSession) => void state.sessions.set(event.session_id, next)
  switch (event._tag) {
    case "FlowStepTaken":
      return change(withStep(session, { at, step: event.step }))
    case "FlowResultsRead":
      return change(afterRead(session, event))
    case "FlowResultsLocked":
      return change(afterLock(session, at))
    case "FlowResultsRefused":
      return change(afterRefusal(session, at))
  }
}
