/**
 * Decides the calls on an existing execution (sections 4.2 to 4.5 and 4.10). Pure: from state, time and
 * call to an answer and the events to record.
 */
import type { Decision, Look } from "../core/SandboxCore.ts"
import { checkForm } from "../engines/CheckForm.ts"
import type { FormFinding } from "../engines/CheckForm.ts"
import { isSealed, openParameters } from "./Encryption.ts"
import { challengeForm } from "../engines/EngineForms.ts"
import { challengeHash } from "./PlanTimeline.ts"
import { heldUntil, judgeRead } from "../state/ReadLimit.ts"
import { resultsAreFinal, retrievedAt } from "./Progress.ts"
import { closesAt, findExecution, findSession, momentAt } from "../state/SandboxState.ts"
import type { Execution } from "../state/SandboxState.ts"

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
