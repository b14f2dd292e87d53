/**
 * The flow API's calls (sections 4.10 and 4.12): a session's current results, and its documents. What an
 * answer contains is decided purely; this module only adds clock and wire.
 */
import { Effect } from "effect"
import { decideResults } from "../executions/DecideCalls.ts"
import { decideFlowResults, findFlowSession } from "./DecideFlow.ts"
import { documentBytes, documentsOf } from "../data/Documents.ts"
import { flowSessionBody, sessionDocuments } from "./FlowBody.ts"
import { noteDelivery } from "../executions/NoteDelivery.ts"
import { resultsAreWhole } from "../executions/Progress.ts"
import { flowResultsBody } from "../executions/Results.ts"
import { shapeResults } from "../readings/ShapeFlow.ts"
import { beginCall, recordEvents, settle } from "../core/SandboxCore.ts"
import type { Call } from "../core/SandboxCore.ts"
import { findSession } from "../state/SandboxState.ts"

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
