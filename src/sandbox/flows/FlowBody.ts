/**
 * The results body of a flow session without an execution at one moment (sections 2.7 and 4.10): what its
 * sources have returned so far, the consent, and how far the session is. Webhooks carry the same body.
 */
import { givenConsent } from "../data/Consent.ts"
import { documentsOf } from "../data/Documents.ts"
import type { SessionDocument } from "../data/Documents.ts"
import type { FlowSession } from "../state/FlowSession.ts"
import { flowMomentOf } from "../state/FlowTimeline.ts"
import type { FlowSource } from "../state/FlowTimeline.ts"
import { resultsAreFinal, resultsAreWhole, retrievedAt } from "../executions/Progress.ts"
import { retrievalData, retrievedFeatures } from "../executions/Results.ts"

/** The sources that were connected by then. */
const connectedAt = (session: FlowSession, at: number): ReadonlyArray<FlowSource> =>
  session.sources.filter((source) => source.started.at <= at)

/** How many records a read of the session carries. */
export const recordsShownAt = (session: FlowSession, at: number): number =>
  connectedAt(session, at).reduce((total, source) => total + retrievedAt(source, at), 0)

/** 2.7. `session_status` and `session_cursor` are this service's own names: the reference shows none. */
export const flowSessionBody = (seed: number, session: FlowSession, at: number) => {
  const phase = flowMomentOf(session.phases, at)
  const { session_id, customer_id } = session.created
  const sources = connectedAt(session, at).map((source) => ({
    retrieval: source,
    final: phase.closed || resultsAreFinal(source, at),
  }))
  const consent = givenConsent(session, at)
  const codes = sources.flatMap(({ retrieval }) => retrievedFeatures(retrieval, at))
  return {
    session_id,
    ...(customer_id === undefined ? {} : { customer_id }),
    data: retrievalData(seed, sources, at),
    retrieved_features: [...new Set(codes)],
    ...(consent === undefined ? {} : { consent }),
    is_closed: phase.closed,
    session_status: phase.status,
    session_cursor: phase.cursor,
  }
}

/** 4.12: the documents that can be downloaded by now. */
export const sessionDocuments = (session: FlowSession, at: number): ReadonlyArray<SessionDocument> =>
  connectedAt(session, at).flatMap((source) => (resultsAreWhole(source, at) ? documentsOf(source) : []))
