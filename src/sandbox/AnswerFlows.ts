/**
 * The flow API's calls (sections 4.10 and 4.12): a session's results as they stand, and its documents.
 * What an answer may hold at its moment is decided purely; here it only meets the clock and the wire.
 */
import { Clock, Effect } from "effect"
import { decideResults } from "./DecideCalls.ts"
import type { Application } from "./DecideStart.ts"
import { documentBytes, documentsOf } from "./Documents.ts"
import { resultsAreFinal, resultsAreWhole } from "./Progress.ts"
import { flowResultsBody } from "./Results.ts"
import { settle } from "./SandboxCore.ts"
import type { SandboxCore } from "./SandboxCore.ts"
import { findSession } from "./SandboxState.ts"

const refusals = {
  NotFound: "session not found",
  NeverStarted: "the customer never started this session",
  TooManyRequests: "one request per five seconds",
  LockTimeout: "the session is locked",
} as const

/** ObjectId: what has another form is no session identifier (422). */
const isObjectId = (text: string): boolean => /^[0-9a-f]{24}$/i.test(text)

/** 4.10 */
export const readFlowResults = Effect.fnUntraced(function* (
  core: SandboxCore,
  { app_id }: Application,
  session_id: string,
) {
  const now = yield* Clock.currentTimeMillis
  if (!isObjectId(session_id)) {
    const item = { loc: ["path", "session_id"], msg: "not an ObjectId", type: "value_error" }
    return yield* Effect.fail({ _tag: "Invalid" as const, detail: [item] })
  }
  const answer = settle(core, decideResults(core.state, now, app_id, session_id, resultsAreFinal))
  if (answer._tag !== "FlowResults") {
    return yield* Effect.fail({ _tag: answer._tag, detail: refusals[answer._tag] })
  }
  return { _tag: answer._tag, ...flowResultsBody(core.seed, answer.execution, now) }
})

export interface Download {
  readonly media_type: string
  readonly bytes: Uint8Array
}

/** 4.12: a document is there once its session's records are whole. */
export const downloadAttachment = Effect.fnUntraced(function* (
  core: SandboxCore,
  { app_id }: Application,
  session_id: string,
  attachment_id: string,
): Effect.fn.Return<Download, { readonly _tag: "NotFound"; readonly detail: string }> {
  const now = yield* Clock.currentTimeMillis
  const execution = findSession(core.state, app_id, session_id)
  const documents = execution !== undefined && resultsAreWhole(execution, now) ? documentsOf(execution) : []
  const document = documents.find((candidate) => candidate.attachment_id === attachment_id)
  if (document === undefined)
    return yield* Effect.fail({ _tag: "NotFound" as const, detail: "no such attachment" })
  return { media_type: document.media_type, bytes: documentBytes(document) }
})
