/** The flow API's calls (sections 4.10 and 4.12): a session's current results, and its documents. */
import { given } from "../../base/Schemas.ts"
import { answered, decidedBy, refused } from "../core/SandboxCore.ts"
import type { Call, Look } from "../core/SandboxCore.ts"
import { documentBytes, documentsOf, givenConsent } from "../data/Documents.ts"
import { deliveryOf } from "../executions/AnswerExecutions.ts"
import { resultsAreFinal, resultsAreWhole, retrievedAt } from "../executions/PlanResults.ts"
import { flowResultsBody, retrievalData, retrievedFeatures } from "../executions/Results.ts"
import { planStanding } from "./StandingSessions.ts"
import { shapeResults } from "../readings/ShapeAnswer.ts"
import type { FlowSessionEvent } from "../state/FlowMoves.ts"
import { flowEventsOf, flowMomentOf, newFlowSession } from "../state/FlowTimeline.ts"
import type { FlowSession, FlowSource, FlowState } from "../state/FlowTimeline.ts"
import type { Retrieval } from "../state/ResultsPlan.ts"
import { closesAt, findSession, momentAt } from "../state/SandboxState.ts"
import type { Execution, SandboxEvent } from "../state/SandboxState.ts"
import { heldUntil, judgeRead } from "../state/Timeline.ts"
import type { SessionReads } from "../state/Timeline.ts"

/** The sources that were connected by then. */
const connectedAt = (session: FlowSession, at: number): ReadonlyArray<FlowSource> =>
  session.sources.filter((source) => source.started.at <= at)

/** How many records a read of the session carries. */
const recordsShownAt = (session: FlowSession, at: number): number =>
  connectedAt(session, at).reduce((total, source) => total + retrievedAt(source, at), 0)

/** 2.7. `session_status` and `session_cursor` are this service's own names: the reference shows none. */
export const flowSessionBody = (seed: number, session: FlowSession, at: number) => {
  const phase = flowMomentOf(session.phases, at)
  const { session_id, customer_id } = session.created
  const sources = connectedAt(session, at).map((source) => ({
    retrieval: source,
    final: phase.closed || resultsAreFinal(source, at),
  }))
  const codes = sources.flatMap(({ retrieval }) => retrievedFeatures(retrieval, at))
  return {
    session_id,
    ...given({ customer_id, consent: givenConsent(session, at) }),
    data: retrievalData(seed, sources, at),
    retrieved_features: [...new Set(codes)],
    is_closed: phase.closed,
    session_status: phase.status,
    session_cursor: phase.cursor,
  }
}

/** 4.12: the documents that can be downloaded by now. */
const wholeDocuments = (source: Retrieval, at: number) =>
  resultsAreWhole(source, at) ? documentsOf(source) : []
export const sessionDocuments = (session: FlowSession, at: number) =>
  connectedAt(session, at).flatMap((source) => wholeDocuments(source, at))

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

/** Not shown; own choice: the flow API's errors have the shape of most others, `{detail: string}`. */
const refusals = {
  NotFound: "session not found",
  NeverStarted: "the customer never started this session",
  TooManyRequests: "one request per five seconds",
  LockTimeout: "the session is locked",
} as const
const refuse = <Tag extends keyof typeof refusals>(_tag: Tag, ...events: ReadonlyArray<SandboxEvent>) =>
  refused({ _tag, detail: refusals[_tag] }, ...events)

type Body = ReturnType<typeof flowResultsBody> | ReturnType<typeof flowSessionBody>

/** A session about to be read, what each outcome leaves, and whether somebody else holds its lock. */
interface Readable extends Record<ReturnType<typeof judgeRead>, SandboxEvent> {
  readonly session: SessionReads
  readonly elsewhere: boolean
  readonly body: () => Body
  /** What its final records leave. */
  readonly delivered?: (data: Body["data"]) => ReadonlyArray<SandboxEvent>
}

/** Section 8: one read per five seconds, under an exclusive lock. `found`: what came before the read. */
const readSession = (call: Call, read: Readable, ...found: ReadonlyArray<SandboxEvent>) => {
  const _tag = judgeRead(read.session, call.at, read.elsewhere)
  if (_tag !== "FlowResults") return refuse(_tag, ...found, read[_tag])
  const body = read.body()
  const delivered = read.delivered?.(body.data) ?? []
  return answered(shapeResults(call.reading, { _tag, ...body }), ...found, read[_tag], ...delivered)
}

const isLockedElsewhere = (session: FlowSession, at: number): boolean => {
  const started = session.phases.find((phase) => phase.started)
  return started !== undefined && at < started.from + session.created.plan.lockedMs
}

/** A flow session without an execution. */
const readOwnSession = (call: Call, session_id: string) => {
  const { at } = call
  const there = findFlowSession(call, session_id)
  if (there === undefined) return refuse("NotFound")
  const { session, found } = there
  const phase = flowMomentOf(session.phases, at)
  if (!phase.started) return refuse("NeverStarted", ...found)
  const until = heldUntil(at, recordsShownAt(session, at))
  const read: Readable = {
    session,
    elsewhere: isLockedElsewhere(session, at),
    body: () => flowSessionBody(call.seed, session, at),
    TooManyRequests: { _tag: "FlowResultsRefused", at, session_id },
    LockTimeout: { _tag: "FlowResultsLocked", at, session_id },
    FlowResults: { _tag: "FlowResultsRead", at, session_id, is_closed: phase.closed, heldUntil: until },
  }
  return readSession(call, read, ...found)
}

/** The flow API has an execution's session once its login was accepted; before that nobody started it. */
const readExecutionSession = (call: Call, execution: Execution) => {
  const { at, seed } = call
  const { execution_id, results } = execution.started
  if (results.session === "unknown") return refuse("NotFound")
  const { phase, closed } = momentAt(execution, at)
  if (results.session === "unstarted" || phase.authentication_status !== "AUTH_OK") {
    return refuse("NeverStarted")
  }
  const is_closed = resultsAreFinal(execution, at)
  const until = heldUntil(at, retrievedAt(execution, at))
  return readSession(call, {
    session: execution.session,
    elsewhere: closed && at < closesAt(execution) + results.lockedMs,
    body: () => flowResultsBody(seed, execution, at),
    delivered: (data) => (is_closed ? deliveryOf(call, execution, "flow", Object.values(data).flat()) : []),
    TooManyRequests: { _tag: "ResultsRefused", at, execution_id },
    LockTimeout: { _tag: "ResultsLocked", at, execution_id },
    FlowResults: { _tag: "ResultsRead", at, execution_id, is_closed, heldUntil: until },
  })
}

/** ObjectId: any other form is not a session identifier (422), unless a reading accepts any text. */
const isObjectId = (text: string): boolean => /^[0-9a-f]{24}$/i.test(text)

/** 4.10 */
export const readFlowResults = decidedBy((call, session_id: string) => {
  if (call.reading.flow_session_ids === "object_id" && !isObjectId(session_id)) {
    const item = { loc: ["path", "session_id"], msg: "not an ObjectId", type: "value_error" }
    return refused({ _tag: "Invalid", detail: [item] })
  }
  if (!call.state.bySession.has(session_id)) return readOwnSession(call, session_id)
  const execution = findSession(call, session_id)
  return execution === undefined ? refuse("NotFound") : readExecutionSession(call, execution)
})

/** 4.12: a document is there once its session's records are complete. */
export const downloadAttachment = decidedBy((call, session_id: string, attachment_id: string) => {
  const { at, state } = call
  const execution = findSession(call, session_id)
  const own = state.bySession.has(session_id) ? undefined : findFlowSession(call, session_id)
  const documents = [
    ...(execution === undefined ? [] : wholeDocuments(execution, at)),
    ...(own === undefined ? [] : sessionDocuments(own.session, at)),
  ]
  const document = documents.find((candidate) => candidate.attachment_id === attachment_id)
  const found = own?.found ?? []
  if (document === undefined) return refused({ _tag: "NotFound", detail: "no such attachment" }, ...found)
  return answered({ media_type: document.media_type, bytes: documentBytes(document) }, ...found)
})

/** For observers. Phases are those so far and, if no further step is taken, in the future. */
export const sessionsSeen = (state: FlowState) =>
  [...state.sessions.values()].map((session) => {
    const { session_id, application, customer_id } = session.created
    return {
      session_id,
      application,
      ...given({ customer_id, found_at: session.foundAt }),
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
