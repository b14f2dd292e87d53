/**
 * What really happened to the flow sessions without an execution, for the observers of tests: which they
 * are, their states over time, every read, and every read that came too soon (section 8).
 */
import type { FlowEventName } from "../../service/Vocabulary.ts"
import type { FlowPhase } from "../state/FlowMoves.ts"
import type { FlowState } from "../state/FlowSession.ts"
import type { SessionRead } from "../state/ReadLimit.ts"
import { flowEventsOf } from "../state/FlowTimeline.ts"

export interface SessionSeen {
  readonly session_id: string
  readonly application: string
  readonly customer_id?: string
  /** For a standing session: when it was first read. */
  readonly found_at?: number
  /** So far and, if no further step is taken, in the future. */
  readonly phases: ReadonlyArray<Pick<FlowPhase, "from" | "status" | "cursor" | "started" | "closed">>
  readonly events: ReadonlyArray<{ readonly event: FlowEventName; readonly at: number }>
  readonly results_reads: ReadonlyArray<SessionRead>
  /** Reads that found the session locked (504). */
  readonly locked_at: ReadonlyArray<number>
  /** Reads within five seconds of the last one: the caller broke the limit. */
  readonly too_soon_at: ReadonlyArray<number>
}

export const sessionsSeen = (state: FlowState): ReadonlyArray<SessionSeen> =>
  [...state.sessions.values()].map((session) => {
    const { session_id, application, customer_id } = session.created
    return {
      session_id,
      application,
      ...(customer_id === undefined ? {} : { customer_id }),
      ...(session.foundAt === undefined ? {} : { found_at: session.foundAt }),
      phases: session.phases.map(({ from, status, cursor, started, closed }) => ({
        from,
        status,
        cursor,
        started,
        closed,
      })),
      events: flowEventsOf(session),
      results_reads: session.reads,
      locked_at: session.lockedAt,
      too_soon_at: session.refusedAt,
    }
  })
