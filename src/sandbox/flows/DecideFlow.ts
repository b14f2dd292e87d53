/**
 * Decides a read of a flow session's results (section 4.10), and finds the session that an id names: one
 * that was created, or a standing one, whose life counts from its first read. Pure.
 */
import type { Decision, Look } from "../core/SandboxCore.ts"
import { recordsShownAt } from "./FlowBody.ts"
import type { FlowSessionEvent } from "../state/FlowEvent.ts"
import { newFlowSession } from "../state/FlowSession.ts"
import type { FlowSession } from "../state/FlowSession.ts"
import { flowMomentOf } from "../state/FlowTimeline.ts"
import { heldUntil, judgeRead } from "../state/ReadLimit.ts"
import { planStanding } from "./StandingSessions.ts"

interface FoundSession {
  readonly session: FlowSession
  /** What the read itself caused. */
  readonly found: ReadonlyArray<FlowSessionEvent>
}

/** Another application's session looks as if it never existed (sections 5 and 7). */
export const findFlowSession = (look: Look, session_id: string): FoundSession | undefined => {
  const { state, seed, at, application } = look
  const known = state.flows.sessions.get(session_id)
  if (known !== undefined) {
    return known.created.application === application.app_id ? { session: known, found: [] } : undefined
  }
  const standing = planStanding(seed, at, session_id)
  if (standing === undefined || standing.created.application !== application.app_id) return undefined
  const { created, steps } = standing
  return {
    session: newFlowSession(created, steps, at),
    found: [{ _tag: "FlowSessionFound", at, created, steps }],
  }
}

type FlowResultsAnswer =
  | { readonly _tag: "FlowResults"; readonly session: FlowSession }
  | { readonly _tag: "NotFound" | "NeverStarted" | "TooManyRequests" | "LockTimeout" }

const isLockedElsewhere = (session: FlowSession, at: number): boolean => {
  const started = session.phases.find((phase) => phase.started)
  return started !== undefined && at < started.from + session.created.plan.lockedMs
}

export const decideFlowResults = (look: Look, session_id: string): Decision<FlowResultsAnswer> => {
  const { at } = look
  const there = findFlowSession(look, session_id)
  if (there === undefined) return { answer: { _tag: "NotFound" }, events: [] }
  const { session, found } = there
  const phase = flowMomentOf(session.phases, at)
  if (!phase.started) return { answer: { _tag: "NeverStarted" }, events: found }
  switch (judgeRead(session, at, isLockedElsewhere(session, at))) {
    case "TooManyRequests":
      return {
        answer: { _tag: "TooManyRequests" },
        events: [...found, { _tag: "FlowResultsRefused", at, session_id }],
      }
    case "LockTimeout":
      return {
        answer: { _tag: "LockTimeout" },
        events: [...found, { _tag: "FlowResultsLocked", at, session_id }],
      }
    case "FlowResults": {
      const until = heldUntil(at, recordsShownAt(session, at))
      const read = { _tag: "FlowResultsRead" as const, at, session_id, is_closed: phase.closed }
      return {
        answer: { _tag: "FlowResults", session },
        events: [...found, { ...read, heldUntil: until }],
      }
    }
  }
}
