/**
 * What happens to an execution after its start (sections 4.2 to 4.5 and 4.12): each call is decided as the
 * contract's own answer and the events that it causes.
 */
import { answered, decidedBy, noteStateRead, refused } from "../core/SandboxCore.ts"
import type { Call } from "../core/SandboxCore.ts"
import { checkForm } from "../engines/AnswerEngines.ts"
import type { FormFinding } from "../engines/AnswerEngines.ts"
import { challengeForm } from "../engines/EngineDefinition.ts"
import { challengeHash } from "./Behaviour.ts"
import { isSealed, openParameters } from "./JudgeRequest.ts"
import { familyBody, profileBody } from "./Results.ts"
import { acceptanceBody, challengeBody, stateBody, statusMessage } from "./StateBody.ts"
import { findExecution, momentAt } from "../state/SandboxState.ts"
import type { Execution, SandboxEvent } from "../state/SandboxState.ts"

const notFound = refused({ _tag: "NotFound", detail: "no such execution" })

/** A read that finds an execution is counted. */
const findRead = (call: Call, execution_id: string) => {
  const execution = findExecution(call, execution_id)
  if (execution === undefined) return undefined
  noteStateRead(call.watch, execution_id, call.at)
  return { execution, ...momentAt(execution, call.at) }
}

/** 4.2. The first read of a final state is an event: a caller who deletes before it has not read it. */
export const readExecution = decidedBy((call, execution_id: string) => {
  const { at, reading, state } = call
  const found = findRead(call, execution_id)
  if (found === undefined) return notFound
  const { execution, phase, closed } = found
  const body = (inputs: ReadonlyArray<unknown> = []) => stateBody(execution, at, inputs, state.hooks)
  if (phase.challenge !== undefined) {
    const whole = reading.challenge_body === "state" ? body() : {}
    return refused({ _tag: "ActionRequired", ...whole, ...challengeBody(execution, phase.challenge.expires) })
  }
  if (!closed) return answered({ _tag: "Working", ...body() })
  const answer = { _tag: "Closed", ...body(call.inputs.get(execution_id)) } as const
  if (execution.finalStateReadAt !== undefined) return answered(answer)
  return answered(answer, { _tag: "FinalStateRead", at, execution_id })
})

/** 4.12: a poll has no body, so it does not count as having read the final state. */
export const pollExecution = decidedBy((call, execution_id: string) => {
  const found = findRead(call, execution_id)
  if (found === undefined) return refused({ _tag: "NotFound" })
  if (found.phase.challenge !== undefined) return refused({ _tag: "ActionRequired" })
  return found.closed ? answered({ _tag: "Closed" }) : answered({ _tag: "Working" })
})

/** What an execution id looks like is not shown; own choice: an impossible one is malformed. */
const isExecutionId = (text: string): boolean => /^[A-Za-z0-9_-]{1,128}$/.test(text)
const notAnId = refused({
  _tag: "Invalid",
  detail: [{ loc: ["path", "execution_id"], msg: "not an execution id", type: "value_error" }],
})
const notAnAnswer = refused({
  _tag: "Invalid",
  detail: [{ loc: ["body"], msg: "neither an object nor an encrypted string", type: "type_error.object" }],
})

/** 4.3: values of the body, or the whole of it, may come encrypted. */
const judgeAnswer = (execution: Execution, seed: number, payload: unknown) => {
  const wrong = (fault: "form" | "encryption", findings: ReadonlyArray<FormFinding>) => ({
    right: false,
    fault,
    payload_errors: findings.map(({ error }) => error),
  })
  const opened = openParameters(payload)
  if (opened.findings.length > 0) return wrong("encryption", opened.findings)
  const { challenge } = execution.started.timeline
  const findings = checkForm(challengeForm(challenge?.reason ?? "MFA_REQUIRED"), opened.values)
  if (findings.length > 0) return wrong("form", findings)
  return judgeCode(seed, challenge?.codeHash, String(opened.values["code"]))
}

/** The source's own verdict on a code. */
export const judgeCode = (seed: number, codeHash: string | undefined, code: string) => {
  const right = challengeHash(seed, code) === codeHash
  const wrong = { loc: ["code"], msg: "the source refused the code", type: "value_error.code" }
  return { right, payload_errors: right ? [] : [wrong] }
}

/** 4.3. The call cannot recognise a wrong value: the source judges it later, as it judges a real one. */
export const resumeExecution = decidedBy((call, execution_id: string, payload: unknown) => {
  const { at, seed } = call
  if (!isExecutionId(execution_id)) return notAnId
  const execution = findExecution(call, execution_id)
  if (execution === undefined) return notFound
  const { phase, closed } = momentAt(execution, at)
  if (typeof payload === "string" && !isSealed(payload)) return notAnAnswer
  if (closed && phase.status_reason === "ACTION_TIMEOUT") {
    return refused({ _tag: "Gone", detail: "ACTION_TIMEOUT" })
  }
  if (closed) return refused({ _tag: "BadRequest", detail: "execution_already_closed" })
  if (phase.challenge === undefined) return refused({ _tag: "BadRequest", detail: "not_waiting_for_action" })
  if (execution.started.timeline.parts) {
    const parted = { _tag: "Parted", at, execution_id } as const
    return refused({ _tag: "Unavailable", detail: "ENGINE_UNAVAILABLE" }, parted)
  }
  return answered(
    {
      _tag: "Accepted",
      ...acceptanceBody(execution.started),
      status_code: "ONGOING",
      status_reason: "ACCEPTED",
      status_message: statusMessage("ACCEPTED"),
    },
    { _tag: "Resumed", at, execution_id, ...judgeAnswer(execution, seed, payload) },
  )
})

/** 4.4: for how long the state does not show an abort. */
const abortLateMs = { at_once: 0, late: 1_000 } as const

/** 4.4 */
export const abortExecution = decidedBy((call, execution_id: string) => {
  const { at, reading } = call
  if (!isExecutionId(execution_id)) return notAnId
  const execution = findExecution(call, execution_id)
  if (execution === undefined) return notFound
  if (momentAt(execution, at).closed) return answered({ _tag: "NotModified" })
  // It is already being stopped; another abort does not delay it.
  if (execution.stop !== undefined && execution.stop.at > at) return answered({ _tag: "NoContent" })
  if (at < execution.started.at + execution.started.timeline.unstoppableMs) {
    return refused({ _tag: "Conflict", detail: "cannot be stopped at the moment" })
  }
  const lateMs = abortLateMs[reading.abort_effect]
  const late = lateMs === 0 ? {} : { stops_at: at + lateMs }
  return answered({ _tag: "NoContent" }, { _tag: "Aborted", at, execution_id, ...late })
})

/** 4.5 */
export const deleteExecution = decidedBy((call, execution_id: string) => {
  const { at } = call
  if (!isExecutionId(execution_id)) return notAnId
  const execution = findExecution(call, execution_id)
  if (execution === undefined) return notFound
  if (!momentAt(execution, at).closed) return refused({ _tag: "Conflict", detail: "still running" })
  call.inputs.delete(execution_id)
  return answered({ _tag: "NoContent" }, { _tag: "Deleted", at, execution_id })
})

type Item = Readonly<Record<string, unknown>>

const countFamilies = (records: ReadonlyArray<Item>): Readonly<Record<string, number>> => {
  const counts: Record<string, number> = {}
  for (const { sub_family } of records)
    if (typeof sub_family === "string") counts[sub_family] = (counts[sub_family] ?? 0) + 1
  return counts
}

/** `source`: which of the results sources answered; equal answers of one source leave one event. */
export const deliveryOf = (
  { at, answerLost }: Call,
  { started: { execution_id }, delivered }: Execution,
  source: string,
  records: ReadonlyArray<Item>,
): ReadonlyArray<SandboxEvent> => {
  const counts = countFamilies(records)
  const isKnown = JSON.stringify(counts) === JSON.stringify(delivered.get(source))
  return answerLost || isKnown ? [] : [{ _tag: "RecordsDelivered", at, execution_id, source, counts }]
}

/** 4.12: 404 also if the run has read no profile. */
export const readProfile = decidedBy((call, execution_id: string) => {
  const execution = findExecution(call, execution_id)
  const body = execution && profileBody(call.seed, execution, call.at)
  if (execution === undefined || body === undefined) return notFound
  return answered(body, ...(body.is_closed ? deliveryOf(call, execution, "profile", [body.profile]) : []))
})

/** 4.12, own addition: the records of one family; undefined if there are none. */
export const readRecords = decidedBy((call, execution_id: string, family: string) => {
  const execution = findExecution(call, execution_id)
  const body = execution && familyBody(call.seed, execution, family, call.at)
  if (execution === undefined || body === undefined) return answered(undefined)
  const { is_final, records } = body
  return answered(body, ...(is_final ? deliveryOf(call, execution, `records/${family}`, records) : []))
})
