/**
 * The flow API's calls (sections 4.10 and 4.12): a session's current results, and its documents. What an
 * answer contains is decided purely; this module only adds clock and wire.
 */
import { Clock, Effect } from "effect"
import { decideResults } from "../executions/DecideCalls.ts"
import { decideFlowResults, findFlowSession } from "./DecideFlow.ts"
import type { Application } from "../state/Application.ts"
import { documentBytes, documentsOf } from "../data/Documents.ts"
import { flowSessionBody, sessionDocuments } from "./FlowBody.ts"
import { noteDelivery } from "../executions/NoteDelivery.ts"
import { resultsAreWhole } from "../executions/Progress.ts"
import { flowResultsBody } from "../executions/Results.ts"
import { shapeResults } from "../readings/ShapeFlow.ts"
import { recordEvents, settle } from "../core/SandboxCore.ts"
import type { SandboxCore } from "../core/SandboxCore.ts"
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
const readOwnSession = (core: SandboxCore, application: string, session_id: string, at: number) => {
  const look = { state: core.state, seed: core.seed, at, application, session_id }
  const answer = settle(core, decideFlowResults(look))
  return answer._tag === "FlowResults"
    ? Effect.succeed(
        shapeResults(core.reading, {
          _tag: answer._tag,
          ...flowSessionBody(core.seed, answer.session, at),
        }),
      )
    : Effect.fail({ _tag: answer._tag, detail: refusals[answer._tag] })
}

/** 4.10 */
export const readFlowResults = Effect.fnUntraced(function* (
  core: SandboxCore,
  { app_id }: Application,
  session_id: string,
) {
  const now = yield* Clock.currentTimeMillis
  if (core.reading.flow_session_ids === "object_id" && !isObjectId(session_id)) {
    const item = { loc: ["path", "session_id"], msg: "not an ObjectId", type: "value_error" }
    return yield* Effect.fail({ _tag: "Invalid" as const, detail: [item] })
  }
  if (!core.state.bySession.has(session_id)) return yield* readOwnSession(core, app_id, session_id, now)
  const answer = settle(core, decideResults(core.state, now, app_id, session_id))
  if (answer._tag !== "FlowResults") {
    return yield* Effect.fail({ _tag: answer._tag, detail: refusals[answer._tag] })
  }
  const body = flowResultsBody(core.seed, answer.execution, now)
  if (body.is_closed)
    yield* noteDelivery(core, answer.execution, "flow", now, Object.values(body.data).flat())
  return shapeResults(core.reading, { _tag: answer._tag, ...body })
})

const documentsAt = (core: SandboxCore, application: string, session_id: string, at: number) => {
  const { state, seed } = core
  if (state.bySession.has(session_id)) {
    const execution = findSession(state, application, session_id)
    return execution !== undefined && resultsAreWhole(execution, at) ? documentsOf(execution) : []
  }
  const there = findFlowSession({ state, seed, at, application, session_id })
  if (there === undefined) return []
  recordEvents(core, there.found)
  return sessionDocuments(there.session, at)
}

export interface Download {
  readonly media_type: string
  readonly bytes: Uint8Array
}

/** 4.12: a document is there once its session's records are complete. */
export const downloadAttachment = Effect.fnUntraced(function* (
  core: SandboxCore,
  { app_id }: Application,
  session_id: string,
  attachment_id: string,
): Effect.fn.Return<Download, { readonly _tag: "NotFound"; readonly detail: string }> {
  const now = yield* Clock.currentTimeMillis
  const documents = documentsAt(core, app_id, session_id, now)
  const document = documents.find((candidate) => candidate.attachment_id === attachment_id)
  if (document === undefined)
    return yield* Effect.fail({ _tag: "NotFound" as const, detail: "no such attachment" })
  return { media_type: document.media_type, bytes: documentBytes(document) }
})
