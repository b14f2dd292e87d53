/**
 * The flow API's calls (sections 4.10 and 4.12): a session's current results, and its documents. What an
 * answer contains is decided purely; this module only adds clock and wire.
 */
import { Effect } from "effect"
import { beginCall, recordEvents, settle } from "../core/SandboxCore.ts"
import type { Call, Decision, Look } from "../core/SandboxCore.ts"
import { documentBytes, documentsOf, givenConsent } from "../data/Documents.ts"
import type { SessionDocument } from "../data/Documents.ts"
import { decideResults, noteDelivery } from "../executions/AnswerExecutions.ts"
import { resultsAreFinal, resultsAreWhole, retrievedAt } from "../executions/PlanResults.ts"
import { flowResultsBody, retrievalData, retrievedFeatures } from "../executions/Results.ts"
import { planStanding } from "./StandingSessions.ts"
import { shapeResults } from "../readings/ShapeAnswer.ts"
import type { FlowSessionEvent } from "../state/FlowMoves.ts"
import { flowEventsOf, flowMomentOf, newFlowSession } from "../state/FlowTimeline.ts"
import type { FlowSession, FlowSource, FlowState } from "../state/FlowTimeline.ts"
import { findSession } from "../state/SandboxState.ts"
import { heldUntil, judgeRead } from "../state/Timeline.ts"

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

/** Not shown; own choice: the flow API's errors have the shape of most others, `{detail: string}`. */
const refusals = {
  NotFound: "session not found",
  NeverStarted: "the customer never started this session",
  TooManyRequests: "one request per five seconds",
  LockTimeout: "the session is locked",
} as const

/** ObjectId: any other form is not a session identifier (422), unless a reading accepts any text. */
const isObjectId = (text: string): boolean => /^[0-9a-f]{24}$/i.test(text)

/** 4.10 for a flow session without an execution. */
const readOwnSession = (call: Call, session_id: string) => {
  const answer = settle(call, decideFlowResults(call, session_id))
  return answer._tag === "FlowResults"
    ? Effect.succeed(
        shapeResults(call.reading, {
          _tag: answer._tag,
          ...flowSessionBody(call.seed, answer.session, call.at),
        }),
      )
    : Effect.fail({ _tag: answer._tag, detail: refusals[answer._tag] })
}

/** 4.10 */
export const readFlowResults = Effect.fnUntraced(function* (session_id: string) {
  const call = yield* beginCall
  if (call.reading.flow_session_ids === "object_id" && !isObjectId(session_id)) {
    const item = { loc: ["path", "session_id"], msg: "not an ObjectId", type: "value_error" }
    return yield* Effect.fail({ _tag: "Invalid" as const, detail: [item] })
  }
  if (!call.state.bySession.has(session_id)) return yield* readOwnSession(call, session_id)
  const answer = settle(call, decideResults(call, session_id))
  if (answer._tag !== "FlowResults") {
    return yield* Effect.fail({ _tag: answer._tag, detail: refusals[answer._tag] })
  }
  const body = flowResultsBody(call.seed, answer.execution, call.at)
  if (body.is_closed)
    yield* noteDelivery(call, answer.execution, "flow", call.at, Object.values(body.data).flat())
  return shapeResults(call.reading, { _tag: answer._tag, ...body })
})

const documentsAt = (call: Call, session_id: string) => {
  const { state, at } = call
  if (state.bySession.has(session_id)) {
    const execution = findSession(call, session_id)
    return execution !== undefined && resultsAreWhole(execution, at) ? documentsOf(execution) : []
  }
  const there = findFlowSession(call, session_id)
  if (there === undefined) return []
  recordEvents(call, there.found)
  return sessionDocuments(there.session, at)
}

/** 4.12: a document is there once its session's records are complete. */
export const downloadAttachment = Effect.fnUntraced(function* (session_id: string, attachment_id: string) {
  const documents = documentsAt(yield* beginCall, session_id)
  const document = documents.find((candidate) => candidate.attachment_id === attachment_id)
  if (document === undefined)
    return yield* Effect.fail({ _tag: "NotFound" as const, detail: "no such attachment" })
  return { media_type: document.media_type, bytes: documentBytes(document) }
})

/** For observers. Phases are those so far and, if no further step is taken, in the future. */
export const sessionsSeen = (state: FlowState) =>
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
