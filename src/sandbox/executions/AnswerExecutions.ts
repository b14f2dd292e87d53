/**
 * The calls of the direct execution API as answers of the contract (sections 4.1 to 4.5 and 4.12): a
 * decision, its events recorded, the body read from the state after them.
 */
import { Effect } from "effect"
import type { StartRequest } from "../../service/Execution.ts"
import type { StatusReason } from "../../service/Vocabulary.ts"
import { noteStateRead } from "../core/CallWatch.ts"
import { decideAbort, decideDelete, decideRead, decideResume } from "./DecideCalls.ts"
import { decideStart } from "./DecideStart.ts"
import type { Application } from "../state/Application.ts"
import type { StartDecision } from "./DecideStart.ts"
import { statusMessage } from "./Messages.ts"
import { familyBody, profileBody } from "./Results.ts"
import { withConflictId } from "../readings/ShapeAcceptance.ts"
import { noteDelivery } from "./NoteDelivery.ts"
import { beginCall, recordEvents, settle } from "../core/SandboxCore.ts"
import type { Call, SandboxCore } from "../core/SandboxCore.ts"
import { findExecution } from "../state/SandboxState.ts"
import { acceptanceBody, challengeBody, stateBody } from "./StateBody.ts"
import { statusCodeOf } from "../state/Timeline.ts"

const notFound = { _tag: "NotFound", detail: "no such execution" } as const

type StartedAs = Pick<StartRequest, "customer_id" | "engine_reference" | "external_execution_id">

/** 2.5: what every acceptance-shaped body has; the rest is present only if an execution exists. */
const acceptanceOf = (application: Application, request: StartedAs, status_reason: StatusReason) => ({
  app_id: application.app_id,
  customer_id: request.customer_id,
  auth_origin: "app-secret" as const,
  engine_reference: request.engine_reference,
  status_code: statusCodeOf(status_reason),
  status_reason,
})

const idsOf = ({ state }: SandboxCore, execution_id: string) => {
  const execution = state.executions.get(execution_id)
  return execution === undefined ? { execution_id } : acceptanceBody(execution)
}

/** 4.1 and 4.12: the answer to a decided start, with its events recorded. */
export const answerStart = Effect.fnUntraced(function* (
  start: Call & { readonly request: StartedAs },
  decision: StartDecision,
) {
  const { application, request } = start
  recordEvents(start, decision.events)
  switch (decision._tag) {
    case "Accepted":
      if (decision.inputs.length > 0) start.inputs.set(decision.execution_id, decision.inputs)
      return {
        _tag: "Accepted" as const,
        ...acceptanceOf(application, request, "ACCEPTED"),
        ...idsOf(start, decision.execution_id),
        ...(decision.ticket === undefined ? {} : { ticket: decision.ticket }),
        ...(decision.session_token === undefined ? {} : { session_token: decision.session_token }),
      }
    case "Conflict":
      return yield* Effect.fail({
        _tag: "AlreadyExecuting" as const,
        ...acceptanceOf(application, request, "ALREADY_EXECUTING"),
        ...withConflictId(start.reading, idsOf(start, decision.execution_id), request),
      })
    case "Refused":
      return yield* Effect.fail({
        _tag: "Refused" as const,
        ...acceptanceOf(application, request, decision.reason),
      })
    case "Unavailable":
      return yield* Effect.fail({ _tag: "Unavailable" as const, detail: decision.detail })
    case "Invalid":
      return yield* Effect.fail({ _tag: "Invalid" as const, detail: decision.detail })
  }
})

/** 4.1 */
export const startExecution = Effect.fnUntraced(function* (request: StartRequest) {
  const start = { ...(yield* beginCall), request }
  return yield* answerStart(start, decideStart(start))
})

/** 4.2 */
export const readExecution = Effect.fnUntraced(function* (execution_id: string) {
  const call = yield* beginCall
  const answer = settle(call, decideRead(call, execution_id))
  if (answer._tag !== "NotFound") noteStateRead(call.watch, execution_id, call.at)
  switch (answer._tag) {
    case "NotFound":
      return yield* Effect.fail(notFound)
    case "ActionRequired":
      return yield* Effect.fail({
        _tag: answer._tag,
        ...(call.reading.challenge_body === "state"
          ? stateBody(answer.execution, call.at, [], call.state.hooks)
          : {}),
        ...challengeBody(answer.execution, answer.expires),
      })
    case "Closed":
      return {
        _tag: answer._tag,
        ...stateBody(answer.execution, call.at, call.inputs.get(execution_id) ?? [], call.state.hooks),
      }
    case "Working":
      return { _tag: answer._tag, ...stateBody(answer.execution, call.at, [], call.state.hooks) }
  }
})

/** 4.12: a poll has no body, so it does not count as having read the final state. */
export const pollExecution = Effect.fnUntraced(function* (execution_id: string) {
  const call = yield* beginCall
  const { _tag } = decideRead(call, execution_id).answer
  if (_tag !== "NotFound") noteStateRead(call.watch, execution_id, call.at)
  if (_tag === "Closed") return { _tag }
  if (_tag === "Working") return { _tag }
  return yield* Effect.fail({ _tag })
})

/** What an execution id looks like is not shown; own choice: an impossible one is malformed. */
const isExecutionId = (text: string): boolean => /^[A-Za-z0-9_-]{1,128}$/.test(text)
const notAnId = {
  _tag: "Invalid",
  detail: [{ loc: ["path", "execution_id"], msg: "not an execution id", type: "value_error" }],
} as const

const notAnAnswer = {
  loc: ["body"],
  msg: "neither an object nor an encrypted string",
  type: "type_error.object",
}

/** 4.3 */
export const resumeExecution = Effect.fnUntraced(function* (execution_id: string, payload: unknown) {
  const call = yield* beginCall
  if (!isExecutionId(execution_id)) return yield* Effect.fail(notAnId)
  const answer = settle(call, decideResume(call, execution_id, payload))
  switch (answer._tag) {
    case "NotFound":
      return yield* Effect.fail(notFound)
    case "Invalid":
      return yield* Effect.fail({ _tag: answer._tag, detail: [notAnAnswer] })
    case "Gone":
      return yield* Effect.fail({ _tag: answer._tag, detail: "ACTION_TIMEOUT" })
    case "BadRequest":
      return yield* Effect.fail(answer)
    case "Unavailable":
      return yield* Effect.fail(answer)
    case "Accepted":
      return {
        ...acceptanceBody(answer.execution),
        _tag: answer._tag,
        status_code: "ONGOING" as const,
        status_reason: "ACCEPTED" as const,
        status_message: statusMessage("ACCEPTED"),
      }
  }
})

/** 4.4 */
export const abortExecution = Effect.fnUntraced(function* (execution_id: string) {
  const call = yield* beginCall
  if (!isExecutionId(execution_id)) return yield* Effect.fail(notAnId)
  const _tag = settle(call, decideAbort(call, execution_id))
  if (_tag === "NotFound") return yield* Effect.fail(notFound)
  if (_tag === "Conflict") return yield* Effect.fail({ _tag, detail: "cannot be stopped at the moment" })
  return _tag === "NoContent" ? { _tag } : { _tag }
})

/** 4.5 */
export const deleteExecution = Effect.fnUntraced(function* (execution_id: string) {
  const call = yield* beginCall
  if (!isExecutionId(execution_id)) return yield* Effect.fail(notAnId)
  const _tag = settle(call, decideDelete(call, execution_id))
  if (_tag === "NotFound") return yield* Effect.fail(notFound)
  if (_tag === "Conflict") return yield* Effect.fail({ _tag, detail: "still running" })
  call.inputs.delete(execution_id)
  return { _tag }
})

/** 4.12: 404 also if the run has read no profile. */
export const readProfile = Effect.fnUntraced(function* (execution_id: string) {
  const call = yield* beginCall
  const execution = findExecution(call, execution_id)
  const body = execution === undefined ? undefined : profileBody(call.seed, execution, call.at)
  if (execution === undefined || body === undefined) return yield* Effect.fail(notFound)
  if (body.is_closed) yield* noteDelivery(call, execution, "profile", call.at, [body.profile])
  return body
})

/** 4.12, own addition: the records of one family; undefined if there are none. */
export const readRecords = Effect.fnUntraced(function* (execution_id: string, family: string) {
  const call = yield* beginCall
  const execution = findExecution(call, execution_id)
  const body = execution === undefined ? undefined : familyBody(call.seed, execution, family, call.at)
  if (execution === undefined || body === undefined) return undefined
  if (body.is_final) yield* noteDelivery(call, execution, `records/${family}`, call.at, body.records)
  return body
})
