/**
 * The calls of the direct execution API as answers of the contract (sections 4.1 to 4.5 and 4.12): a
 * decision, its events recorded, the body read from the state after them.
 */
import { Context, Effect } from "effect"
import { beginCall, noteStateRead, recordEvents, settle } from "../core/SandboxCore.ts"
import type { Call, Decision, Look, SandboxCore } from "../core/SandboxCore.ts"
import { checkForm } from "../engines/AnswerEngines.ts"
import type { FormFinding } from "../engines/AnswerEngines.ts"
import { challengeForm } from "../engines/EngineDefinition.ts"
import { challengeHash } from "./Behaviour.ts"
import { decideStart } from "./DecideStart.ts"
import type { StartDecision } from "./DecideStart.ts"
import { isSealed, openParameters } from "./JudgeRequest.ts"
import { resultsAreFinal, retrievedAt } from "./PlanResults.ts"
import { familyBody, profileBody } from "./Results.ts"
import { acceptanceBody, challengeBody, stateBody, statusMessage } from "./StateBody.ts"
import { withConflictId } from "../readings/ShapeAnswer.ts"
import { closesAt, findExecution, findSession, momentAt } from "../state/SandboxState.ts"
import type { Application, Execution } from "../state/SandboxState.ts"
import { heldUntil, judgeRead, statusCodeOf } from "../state/Timeline.ts"
import type { StartRequest } from "../../service/Execution.ts"
import type { StatusReason } from "../../service/Vocabulary.ts"

const plain = <Answer>(answer: Answer): Decision<Answer> => ({ answer, events: [] })

export type ReadAnswer =
  | { readonly _tag: "Closed" | "Working"; readonly execution: Execution }
  | { readonly _tag: "ActionRequired"; readonly execution: Execution; readonly expires: number }
  | { readonly _tag: "NotFound" }

/** 4.2. The first read of a final state is an event: a caller who deletes before it has not read it. */
export const decideRead = (look: Look, execution_id: string): Decision<ReadAnswer> => {
  const { at } = look
  const execution = findExecution(look, execution_id)
  if (execution === undefined) return plain({ _tag: "NotFound" })
  const { phase, closed } = momentAt(execution, at)
  if (phase.challenge !== undefined) {
    return plain({ _tag: "ActionRequired", execution, expires: phase.challenge.expires })
  }
  if (!closed) return plain({ _tag: "Working", execution })
  const isFirst = execution.finalStateReadAt === undefined
  return {
    answer: { _tag: "Closed", execution },
    events: isFirst ? [{ _tag: "FinalStateRead", at, execution_id }] : [],
  }
}

export type ResumeAnswer =
  | { readonly _tag: "Accepted"; readonly execution: Execution }
  | { readonly _tag: "BadRequest"; readonly detail: "not_waiting_for_action" | "execution_already_closed" }
  | { readonly _tag: "Gone" }
  | { readonly _tag: "Invalid" }
  | { readonly _tag: "Unavailable"; readonly detail: "ENGINE_UNAVAILABLE" }
  | { readonly _tag: "NotFound" }

/** 4.3. The call cannot recognise a wrong value: the source judges it later, as it judges a real one. */
export const decideResume = (look: Look, execution_id: string, payload: unknown): Decision<ResumeAnswer> => {
  const { at, seed } = look
  const execution = findExecution(look, execution_id)
  if (execution === undefined) return plain({ _tag: "NotFound" })
  const { phase, closed } = momentAt(execution, at)
  if (typeof payload === "string" && !isSealed(payload)) return plain({ _tag: "Invalid" })
  if (closed && phase.status_reason === "ACTION_TIMEOUT") return plain({ _tag: "Gone" })
  if (closed) return plain({ _tag: "BadRequest", detail: "execution_already_closed" })
  if (phase.challenge === undefined) return plain({ _tag: "BadRequest", detail: "not_waiting_for_action" })
  if (execution.started.timeline.parts) {
    const answer = { _tag: "Unavailable", detail: "ENGINE_UNAVAILABLE" } as const
    return { answer, events: [{ _tag: "Parted", at, execution_id }] }
  }
  return {
    answer: { _tag: "Accepted", execution },
    events: [{ _tag: "Resumed", at, execution_id, ...judgeAnswer(execution, seed, payload) }],
  }
}

/** 4.3: values of the body, or the whole of it, may come encrypted. */
const judgeAnswer = (execution: Execution, seed: number, payload: unknown) => {
  const refused = (fault: "form" | "encryption", findings: ReadonlyArray<FormFinding>) => ({
    right: false,
    fault,
    payload_errors: findings.map(({ error }) => error),
  })
  const opened = openParameters(payload)
  if (opened.findings.length > 0) return refused("encryption", opened.findings)
  const { challenge } = execution.started.timeline
  const findings = checkForm(challengeForm(challenge?.reason ?? "MFA_REQUIRED"), opened.values)
  if (findings.length > 0) return refused("form", findings)
  const right = challengeHash(seed, String(opened.values["code"])) === challenge?.codeHash
  const wrong = { loc: ["code"], msg: "the source refused the code", type: "value_error.code" }
  return { right, payload_errors: right ? [] : [wrong] }
}

/** 4.4: for how long the state does not show an abort. */
const abortLateMs = { at_once: 0, late: 1_000 } as const

/** 4.4 */
export const decideAbort = (
  look: Look,
  execution_id: string,
): Decision<"NoContent" | "NotModified" | "NotFound" | "Conflict"> => {
  const { at, reading } = look
  const execution = findExecution(look, execution_id)
  if (execution === undefined) return plain("NotFound")
  if (momentAt(execution, at).closed) return plain("NotModified")
  // It is already being stopped; another abort does not delay it.
  if (execution.stop !== undefined && execution.stop.at > at) return plain("NoContent")
  if (at < execution.started.at + execution.started.timeline.unstoppableMs) return plain("Conflict")
  const lateMs = abortLateMs[reading.abort_effect]
  const late = lateMs === 0 ? {} : { stops_at: at + lateMs }
  return { answer: "NoContent", events: [{ _tag: "Aborted", at, execution_id, ...late }] }
}

/** 4.5 */
export const decideDelete = (
  look: Look,
  execution_id: string,
): Decision<"NoContent" | "NotFound" | "Conflict"> => {
  const { at } = look
  const execution = findExecution(look, execution_id)
  if (execution === undefined) return plain("NotFound")
  if (!momentAt(execution, at).closed) return plain("Conflict")
  return { answer: "NoContent", events: [{ _tag: "Deleted", at, execution_id }] }
}

export type ResultsAnswer =
  | { readonly _tag: "FlowResults"; readonly execution: Execution }
  | { readonly _tag: "NotFound" | "NeverStarted" | "TooManyRequests" | "LockTimeout" }

/** 4.10. The flow API has a session once its login was accepted; before that nobody started it. */
export const decideResults = (look: Look, session_id: string): Decision<ResultsAnswer> => {
  const { at } = look
  const execution = findSession(look, session_id)
  if (execution === undefined || execution.started.results.session === "unknown") {
    return plain({ _tag: "NotFound" })
  }
  const { phase, closed } = momentAt(execution, at)
  if (execution.started.results.session === "unstarted" || phase.authentication_status !== "AUTH_OK") {
    return plain({ _tag: "NeverStarted" })
  }
  const { execution_id, results } = execution.started
  const elsewhere = closed && at < closesAt(execution) + results.lockedMs
  switch (judgeRead(execution.session, at, elsewhere)) {
    case "TooManyRequests":
      return { answer: { _tag: "TooManyRequests" }, events: [{ _tag: "ResultsRefused", at, execution_id }] }
    case "LockTimeout":
      return { answer: { _tag: "LockTimeout" }, events: [{ _tag: "ResultsLocked", at, execution_id }] }
    case "FlowResults": {
      const is_closed = resultsAreFinal(execution, at)
      const until = heldUntil(at, retrievedAt(execution, at))
      return {
        answer: { _tag: "FlowResults", execution },
        events: [{ _tag: "ResultsRead", at, execution_id, is_closed, heldUntil: until }],
      }
    }
  }
}

/** A fault takes the answer of the current call: its content reaches nobody. */
export const AnswerLost = Context.Reference<boolean>("nightjar/sandbox/AnswerLost", {
  defaultValue: () => false,
})

type Item = Readonly<Record<string, unknown>>

const countFamilies = (records: ReadonlyArray<Item>): Readonly<Record<string, number>> => {
  const counts: Record<string, number> = {}
  for (const { sub_family } of records)
    if (typeof sub_family === "string") counts[sub_family] = (counts[sub_family] ?? 0) + 1
  return counts
}

const isSame = (one: object, other: object | undefined): boolean =>
  JSON.stringify(one) === JSON.stringify(other)

/** `source`: which of the results sources answered; equal answers of one source leave one event. */
export const noteDelivery = Effect.fnUntraced(function* (
  core: SandboxCore,
  { started, delivered }: Execution,
  source: string,
  at: number,
  records: ReadonlyArray<Item>,
) {
  if (yield* AnswerLost) return
  const counts = countFamilies(records)
  if (isSame(counts, delivered.get(source))) return
  const { execution_id } = started
  recordEvents(core, [{ _tag: "RecordsDelivered", at, execution_id, source, counts }])
})

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
