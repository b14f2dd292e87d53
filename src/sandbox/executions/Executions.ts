/**
 * The calls of the direct execution API (sections 4.1 to 4.5 and 4.12), each decided as the contract's own
 * answer and the events that it causes. A start is checked in the reference's order: the engine, what the
 * application and the engine allow, conflicts; forms and encryption are judged only after the acceptance.
 */
import { Struct } from "effect"
import { given } from "../../base/Schemas.ts"
import { answered, decidedBy, noteStateRead, refused, type Call } from "../core/SandboxCore.ts"
import { checkForm, type FormFinding } from "../engines/AnswerEngines.ts"
import { findEngine } from "../engines/EngineCatalogue.ts"
import { challengeForms, whyUnavailable, type EngineDefinition } from "../engines/EngineDefinition.ts"
import { challengeHash, endOf, planTimeline, readBehaviour, stillbornTimeline } from "./Behaviour.ts"
import type { Behaviour } from "./Behaviour.ts"
import { findFault, invalidItems, isSealed, loginHashes, namedByEnd, openParameters } from "./JudgeRequest.ts"
import { unknownEngine } from "./JudgeRequest.ts"
import type { Fault, OpenedValues } from "./JudgeRequest.ts"
import { askedFeatures, planResults, type AskedFeature } from "./PlanResults.ts"
import { familyBody, profileBody } from "./Results.ts"
import { acceptanceBody, challengeBody, stateBody, statusMessage } from "./StateBody.ts"
import { withConflictId } from "../readings/ShapeAnswer.ts"
import { executionIds, fingerprint } from "../state/Reading.ts"
import { findExecution, momentAt, openExecutions, runsOf } from "../state/SandboxState.ts"
import type { Execution, SandboxEvent, SandboxState, StartRefused, Started } from "../state/SandboxState.ts"
import { statusCodeOf } from "../state/Timeline.ts"
import { issueTicket, type TicketExchanged } from "../state/TokenState.ts"
import type { StartRequest, ValidationItem } from "../../service/Execution.ts"
import type { StatusReason } from "../../service/Vocabulary.ts"

type Access = Pick<Started, "application" | "customer_id" | "engine_reference">

/** Somebody else's run, in flight since `at`, for `foreignMs`: one per customer and engine. */
const foreignRun = (
  { seed, at, reading }: Call,
  access: Access,
  engine: EngineDefinition,
  foreignMs: number,
): Started => {
  const { application, customer_id, engine_reference } = access
  const behaviour = { queueMs: 0, runMs: foreignMs }
  const about = { seed, ...access, ordinal: 0, behaviour }
  const asked = askedFeatures(engine, { customer_id, engine_reference, parameters: {} })
  return {
    _tag: "Started",
    at,
    ...access,
    ...executionIds(reading, seed, "foreign", application, customer_id, engine_reference, at),
    external_execution_id: `somebody-else-${fingerprint("foreign", seed, customer_id).slice(0, 8)}`,
    foreign: true,
    timeline: planTimeline({ ...about, interaction: false, timeoutMs: Math.max(foreignMs, 1_200_000) }),
    results: planResults({ seed, customer_id, engine_reference, asked, behaviour, end: "COMPLETED", at }),
    login_key: fingerprint("foreign-login", seed, customer_id),
    locking_hash: `v1.${fingerprint("foreign-locking", seed, customer_id)}`,
    parameters_errors: [],
    configurations_errors: [],
  }
}

const hadForeignRun = (state: SandboxState, access: Access): boolean =>
  [...state.executions.values()].some(
    ({ started }) => started.foreign && Struct.keys(access).every((name) => started[name] === access[name]),
  )

/** 4.12: the token that a start came with, and what prevents it. */
interface TokenOfStart extends Pick<TicketExchanged, "token_id" | "login_key" | "locking_hash"> {
  readonly fault?: Extract<StatusReason, "T10N_REJECTED" | "T10N_EXCEPTION">
}

export interface StartInput extends Call {
  /** For a tokenized start: with the stored login as its parameters, or without any if it cannot be read. */
  readonly request: StartRequest
  readonly token?: TokenOfStart
}

/** The text that is read for behaviour words. */
export const wordsIn = ({ wordsField }: EngineDefinition, values: OpenedValues["values"]): string => {
  const text = values[wordsField]
  return typeof text === "string" ? text : ""
}

/** 4.1: same customer and engine, unless both external ids differ; or one external id; or one token. */
const findConflict = (input: StartInput): Started | undefined => {
  const { at, request, token } = input
  const open = openExecutions(input, request.customer_id, at).map(({ started }) => started)
  return open.find((started) => {
    const ours = request.external_execution_id
    const theirs = started.external_execution_id
    if (ours !== undefined && ours === theirs) return true
    if (token !== undefined && token.token_id === started.token_id) return true
    if (started.engine_reference !== request.engine_reference) return false
    return started.foreign || ours === undefined || theirs === undefined
  })
}

const refusal = (
  { at, application, request, token }: StartInput,
  outcome: StartRefused["outcome"],
  execution_id?: string,
): StartRefused => ({
  _tag: "StartRefused",
  at,
  application: application.app_id,
  customer_id: request.customer_id,
  engine_reference: request.engine_reference,
  ...given({ external_execution_id: request.external_execution_id, token_id: token?.token_id }),
  outcome,
  ...given({ execution_id }),
})

/** 2.5: what every acceptance-shaped body has; the rest is present only if an execution exists. */
const acceptanceOf = ({ application, request }: StartInput, status_reason: StatusReason) => ({
  app_id: application.app_id,
  customer_id: request.customer_id,
  auth_origin: "app-secret" as const,
  engine_reference: request.engine_reference,
  status_code: statusCodeOf(status_reason),
  status_reason,
})

/** 422 */
export const invalidStart = (input: StartInput, detail: ReadonlyArray<ValidationItem>) =>
  refused({ _tag: "Invalid", detail }, refusal(input, "invalid"))

/** 4.12: the application does not have the token. */
export const unknownToken = (input: StartInput) =>
  refused({ _tag: "NotFound", detail: "no such token" }, refusal(input, "unknown_token"))

const unavailable = (input: StartInput, detail: string) =>
  refused({ _tag: "Unavailable", detail }, refusal(input, "unavailable"))

export const t10nForbidden = (input: StartInput) =>
  refused({ _tag: "Refused", ...acceptanceOf(input, "T10N_FORBIDDEN") }, refusal(input, "t10n_forbidden"))

/** 4.1, 409: with the ids of the run in flight. */
const conflict = (input: StartInput, running: Started, ...begun: ReadonlyArray<Started>) => {
  const ids = withConflictId(input.reading, acceptanceBody(running), input.request)
  const answer = { _tag: "AlreadyExecuting", ...acceptanceOf(input, "ALREADY_EXECUTING"), ...ids } as const
  return refused(answer, ...begun, refusal(input, "conflict", running.execution_id))
}

const wantsTicket = ({ base_configurations }: StartRequest): boolean =>
  base_configurations?.tokenized_access === true

/** 3.1: an obstacle to a token or a ticket comes before errors in the request. */
const findStartFault = (
  engine: EngineDefinition,
  { request, token, at, reading }: StartInput,
  asked: ReadonlyArray<AskedFeature>,
  opened: OpenedValues,
): Fault | undefined => {
  if (token?.fault !== undefined) return { reason: token.fault, kind: "parameters", findings: [] }
  if (engine.tokenizes || !wantsTicket(request)) return findFault(engine, request, asked, opened, at, reading)
  const loc = ["base_configurations", "tokenized_access"]
  const error = { loc, msg: "the engine has no tokenization", type: "t10n_not_available" }
  return { reason: "T10N_NOT_AVAILABLE", kind: "configurations", findings: [{ error, input: undefined }] }
}

const planStart = (
  input: StartInput,
  engine: EngineDefinition,
  behaviour: Behaviour,
  opened: OpenedValues,
) => {
  const { seed, at, request, application, reading } = input
  const { customer_id, engine_reference } = request
  const ordinal = runsOf(input.state, application.app_id, customer_id, engine_reference)
  const asked = askedFeatures(engine, request)
  const fault = findStartFault(engine, input, asked, opened)
  const timeoutMs = (request.base_configurations?.execution_timeout ?? 1200) * 1000
  const interaction = request.base_configurations?.customer_interaction_available ?? false
  const about = { seed, application: application.app_id, customer_id, engine_reference, ordinal, behaviour }
  const timeline =
    fault === undefined
      ? planTimeline({ ...about, interaction, timeoutMs, asked: asked.map(({ code }) => code) })
      : stillbornTimeline(fault.reason, timeoutMs)
  const results = planResults({
    seed,
    customer_id,
    engine_reference,
    asked,
    behaviour,
    end: endOf(behaviour, ordinal, asked.length),
    at,
    unlocked: request.base_configurations?.unlock_protected_data ?? false,
  })
  const named = fault ?? namedByEnd(engine, asked, timeline.end)
  const ids = executionIds(reading, seed, application.app_id, customer_id, engine_reference, ordinal, at)
  return { fault, named, timeline, results, ids }
}

const accept = (input: StartInput, engine: EngineDefinition, behaviour: Behaviour, opened: OpenedValues) => {
  const { seed, at, request, application, token } = input
  const { fault, named, timeline, results, ids } = planStart(input, engine, behaviour, opened)
  const { execution_id } = ids
  const ticketed =
    wantsTicket(request) && engine.tokenizes
      ? issueTicket(seed, at, execution_id, request.parameters, behaviour.unreadable ?? false)
      : undefined
  const hashes = token?.fault === undefined ? loginHashes(seed, engine, request.parameters, opened) : token
  const errors = named?.findings.map(({ error }) => error) ?? []
  const started: Started = {
    _tag: "Started",
    at,
    application: application.app_id,
    ...ids,
    customer_id: request.customer_id,
    engine_reference: request.engine_reference,
    ...given({ external_execution_id: request.external_execution_id }),
    foreign: false,
    timeline,
    results,
    login_key: hashes.login_key,
    locking_hash: hashes.locking_hash,
    ...given({ token_id: token?.token_id }),
    parameters_errors: named?.kind === "parameters" ? errors : [],
    configurations_errors: named?.kind === "configurations" ? errors : [],
    ...given({ hooks_extra_data: request.hooks_extra_data }),
  }
  const wrong = fault?.findings.map(({ input: value }) => value) ?? []
  if (wrong.length > 0) input.inputs.set(execution_id, wrong)
  // 2.5: its purpose is not shown; own choice: it is there on request, and opens nothing.
  const session_token =
    behaviour.sessionToken === true ? fingerprint("session-token", seed, execution_id) : undefined
  return answered(
    {
      _tag: "Accepted",
      ...acceptanceOf(input, "ACCEPTED"),
      ...acceptanceBody(started),
      ...given({ ticket: ticketed?.ticket, session_token }),
    },
    started,
    ...(ticketed === undefined ? [] : [ticketed.issued]),
  )
}

export const decideStart = (input: StartInput) => {
  const { state, at, application, request, reading } = input
  const malformed = invalidItems(request)
  const engine = findEngine(request.engine_reference)
  if (engine === undefined && malformed.length === 0 && reading.unknown_engine_start === "unavailable") {
    return unavailable(input, unknownEngine.msg)
  }
  if (engine === undefined) return invalidStart(input, [unknownEngine, ...malformed])
  if (malformed.length > 0) return invalidStart(input, malformed)
  const detail = whyUnavailable(engine, application.app_id, at)
  if (detail !== undefined) return unavailable(input, detail)
  if (wantsTicket(request) && !application.mayTokenize) return t10nForbidden(input)
  const interaction = request.base_configurations?.customer_interaction_available ?? false
  if (engine.frequency === "always" && !interaction) {
    const answer = { _tag: "Refused", ...acceptanceOf(input, "CUSTOMER_INTERVENTION_REQUIRED") } as const
    return refused(answer, refusal(input, "intervention_required"))
  }
  const running = findConflict(input)
  if (running !== undefined) return conflict(input, running)
  const opened = openParameters(request.parameters)
  const behaviour = readBehaviour(wordsIn(engine, opened.values))
  const { customer_id, engine_reference } = request
  const access = { application: application.app_id, customer_id, engine_reference }
  if (behaviour.foreignMs !== undefined && behaviour.foreignMs > 0 && !hadForeignRun(state, access)) {
    const foreign = foreignRun(input, access, engine, behaviour.foreignMs)
    return conflict(input, foreign, foreign)
  }
  return accept(input, engine, behaviour, opened)
}

/** 4.1 */
export const startExecution = decidedBy((call, request: StartRequest) => decideStart({ ...call, request }))

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
  const findings = checkForm(challengeForms[challenge?.reason ?? "MFA_REQUIRED"], opened.values)
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

/** 4.4: under one reading, the state shows it a second later. */
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
  const late = reading.abort_effect === "late" ? { stops_at: at + 1_000 } : {}
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
  { at }: Call,
  { started: { execution_id }, delivered }: Execution,
  source: string,
  records: ReadonlyArray<Item>,
): ReadonlyArray<SandboxEvent> => {
  const counts = countFamilies(records)
  const isKnown = JSON.stringify(counts) === JSON.stringify(delivered.get(source))
  return isKnown ? [] : [{ _tag: "RecordsDelivered", at, execution_id, source, counts }]
}

/** 4.12: 404 also if the run has read no profile. */
export const readProfile = decidedBy((call, execution_id: string) => {
  const execution = findExecution(call, execution_id)
  if (execution === undefined) return notFound
  const body = profileBody(call.seed, execution, call.at)
  if (body === undefined) return refused({ _tag: "NotFound", detail: "no profile was read" })
  return answered(body, ...(body.is_closed ? deliveryOf(call, execution, "profile", [body.profile]) : []))
})

/** 4.12, own addition: the records of one family. */
export const readRecords = decidedBy((call, execution_id: string, family: string) => {
  const execution = findExecution(call, execution_id)
  const body = execution && familyBody(call.seed, execution, family, call.at)
  if (execution === undefined || body === undefined)
    return refused({ _tag: "NotFound", detail: "no such results" })
  const { is_final, records } = body
  return answered(body, ...(is_final ? deliveryOf(call, execution, `records/${family}`, records) : []))
})
