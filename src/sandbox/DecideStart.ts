/**
 * Decides what a start brings about (section 4.1): what it answers, and which events. Pure: state, time and
 * request in, decision out. The order of the checks is the reference's: the engine first, then what the
 * application and the engine allow, then conflicts; forms and encryption are judged only after the
 * acceptance.
 */
import type { StartRequest } from "../contract/Execution.ts"
import type { StatusReason } from "../contract/Vocabulary.ts"
import { readBehaviour } from "./Behaviour.ts"
import type { Behaviour } from "./Behaviour.ts"
import { findEngine } from "./EngineCatalogue.ts"
import type { EngineDefinition } from "./EngineCatalogue.ts"
import { findFault, loginHashes } from "./JudgeRequest.ts"
import { askedFeatures, planResults } from "./PlanResults.ts"
import { endOf, planTimeline, stillbornTimeline } from "./PlanTimeline.ts"
import type { SandboxEvent, Started, StartRefused } from "./SandboxEvent.ts"
import { openExecutions, runsOf } from "./SandboxState.ts"
import type { Execution, SandboxState } from "./SandboxState.ts"
import { fingerprint } from "./Seeded.ts"

/** An application of the service and what it may do (section 5). */
export interface Application {
  readonly app_id: string
  readonly mayTokenize: boolean
}

export type StartDecision = { readonly events: ReadonlyArray<SandboxEvent> } & (
  | {
      readonly _tag: "Accepted"
      readonly execution_id: string
      readonly ticket: string | undefined
      /** Values of wrong fields, in the order of the event's errors: for the echo, never for the journal. */
      readonly inputs: ReadonlyArray<unknown>
    }
  | {
      readonly _tag: "Refused"
      readonly reason: Extract<StatusReason, "CUSTOMER_INTERVENTION_REQUIRED" | "T10N_FORBIDDEN">
    }
  /** The run in flight. */
  | { readonly _tag: "Conflict"; readonly execution_id: string }
  | { readonly _tag: "Unavailable" }
  | { readonly _tag: "Invalid" }
)

export interface StartInput {
  readonly seed: number
  readonly at: number
  readonly application: Application
  readonly request: StartRequest
}

/** The text that is read for behaviour words. */
const wordsOf = (engine: EngineDefinition, parameters: StartRequest["parameters"]): Behaviour => {
  const text = typeof parameters === "string" ? undefined : parameters[engine.wordsField]
  return typeof text === "string" ? readBehaviour(text) : {}
}

/** 4.1: same customer and engine, unless both external ids are there and differ; or the same external id. */
const findConflict = (
  state: SandboxState,
  application: string,
  at: number,
  wanted: Pick<StartRequest, "customer_id" | "engine_reference" | "external_execution_id">,
): Execution | undefined =>
  openExecutions(state, application, wanted.customer_id, at).find(({ started }) => {
    const ours = wanted.external_execution_id
    const theirs = started.external_execution_id
    if (ours !== undefined && ours === theirs) return true
    if (started.engine_reference !== wanted.engine_reference) return false
    return started.foreign || ours === undefined || theirs === undefined
  })

const externalId = ({ external_execution_id }: StartRequest) =>
  external_execution_id === undefined ? {} : { external_execution_id }

const refusal = (
  input: StartInput,
  outcome: StartRefused["outcome"],
  execution_id?: string,
): StartRefused => ({
  _tag: "StartRefused",
  at: input.at,
  application: input.application.app_id,
  customer_id: input.request.customer_id,
  engine_reference: input.request.engine_reference,
  ...externalId(input.request),
  outcome,
  ...(execution_id === undefined ? {} : { execution_id }),
})

/**
 * UUID-shaped for executions, ObjectId-shaped for sessions: never equal, never to be taken for one another.
 */
const idsOf = (seed: number, ...parts: ReadonlyArray<string | number>) => {
  const hex = fingerprint("execution", seed, ...parts)
  return {
    execution_id: [8, 12, 16, 20, 32]
      .map((end, index) => hex.slice([0, 8, 12, 16, 20][index], end))
      .join("-"),
    session_id: fingerprint("session", seed, ...parts).slice(0, 24),
  }
}

const planStart = (
  state: SandboxState,
  input: StartInput,
  engine: EngineDefinition,
  behaviour: Behaviour,
) => {
  const { seed, at, request, application } = input
  const { customer_id, engine_reference } = request
  const ordinal = runsOf(state, application.app_id, customer_id, engine_reference)
  const asked = askedFeatures(engine, request)
  const fault = findFault(engine, request, asked)
  const timeoutMs = (request.base_configurations?.execution_timeout ?? 1200) * 1000
  const interaction = request.base_configurations?.customer_interaction_available ?? false
  const about = { seed, application: application.app_id, customer_id, engine_reference, ordinal, behaviour }
  const timeline =
    fault === undefined
      ? planTimeline({ ...about, interaction, timeoutMs })
      : stillbornTimeline(fault.reason, timeoutMs)
  const results = planResults({
    seed,
    customer_id,
    engine_reference,
    asked,
    behaviour,
    end: endOf(behaviour, ordinal),
  })
  const ids = idsOf(seed, application.app_id, customer_id, engine_reference, ordinal, at)
  return { fault, timeline, results, ids }
}

const accept = (
  state: SandboxState,
  input: StartInput,
  engine: EngineDefinition,
  behaviour: Behaviour,
): StartDecision => {
  const { seed, at, request, application } = input
  const { fault, timeline, results, ids } = planStart(state, input, engine, behaviour)
  const ticket =
    request.base_configurations?.tokenized_access === true
      ? fingerprint("ticket", seed, ids.execution_id)
      : undefined
  const errors = fault?.findings.map(({ error }) => error) ?? []
  const started: Started = {
    _tag: "Started",
    at,
    application: application.app_id,
    ...ids,
    customer_id: request.customer_id,
    engine_reference: request.engine_reference,
    ...externalId(request),
    foreign: false,
    timeline,
    results,
    ...loginHashes(seed, engine, request.parameters),
    ...(ticket === undefined ? {} : { ticket_hash: fingerprint("ticket-hash", seed, ticket) }),
    parameters_errors: fault?.kind === "parameters" ? errors : [],
    configurations_errors: fault?.kind === "configurations" ? errors : [],
  }
  const inputs = fault?.findings.map(({ input: value }) => value) ?? []
  return { _tag: "Accepted", execution_id: ids.execution_id, ticket, inputs, events: [started] }
}

/**
 * Somebody else's run, in flight since now: it answers reads like any other, and is none of the caller's
 * business.
 */
const foreignRun = (input: StartInput, engine: EngineDefinition, foreignMs: number): Started => {
  const { seed, at, application, request } = input
  const { customer_id, engine_reference } = request
  const behaviour: Behaviour = { queueMs: 0, runMs: foreignMs }
  const about = {
    seed,
    application: application.app_id,
    customer_id,
    engine_reference,
    ordinal: 0,
    behaviour,
  }
  const asked = askedFeatures(engine, { customer_id, engine_reference, parameters: {} })
  return {
    _tag: "Started",
    at,
    application: application.app_id,
    ...idsOf(seed, "foreign", application.app_id, customer_id, engine_reference, at),
    customer_id,
    engine_reference,
    external_execution_id: `somebody-else-${fingerprint("foreign", seed, customer_id).slice(0, 8)}`,
    foreign: true,
    timeline: planTimeline({ ...about, interaction: false, timeoutMs: Math.max(foreignMs, 1_200_000) }),
    results: planResults({ seed, customer_id, engine_reference, asked, behaviour, end: "COMPLETED" }),
    login_key: fingerprint("foreign-login", seed, customer_id),
    locking_hash: `v1.${fingerprint("foreign-locking", seed, customer_id)}`,
    parameters_errors: [],
    configurations_errors: [],
  }
}

const hadForeignRun = (state: SandboxState, input: StartInput): boolean => {
  const { application, request } = input
  return [...state.executions.values()].some(
    ({ started }) =>
      started.foreign &&
      started.application === application.app_id &&
      started.customer_id === request.customer_id &&
      started.engine_reference === request.engine_reference,
  )
}

export const decideStart = (state: SandboxState, input: StartInput): StartDecision => {
  const { application, request, at } = input
  const engine = findEngine(request.engine_reference)
  if (engine === undefined) return { _tag: "Invalid", events: [refusal(input, "invalid")] }
  if (engine.maintenance) return { _tag: "Unavailable", events: [refusal(input, "unavailable")] }
  if (request.base_configurations?.tokenized_access === true && !application.mayTokenize) {
    return { _tag: "Refused", reason: "T10N_FORBIDDEN", events: [refusal(input, "t10n_forbidden")] }
  }
  const interaction = request.base_configurations?.customer_interaction_available ?? false
  if (engine.frequency === "always" && !interaction) {
    const events = [refusal(input, "intervention_required")]
    return { _tag: "Refused", reason: "CUSTOMER_INTERVENTION_REQUIRED", events }
  }
  const conflict = findConflict(state, application.app_id, at, request)
  if (conflict !== undefined) {
    const { execution_id } = conflict.started
    return { _tag: "Conflict", execution_id, events: [refusal(input, "conflict", execution_id)] }
  }
  const behaviour = wordsOf(engine, request.parameters)
  if (behaviour.foreignMs !== undefined && behaviour.foreignMs > 0 && !hadForeignRun(state, input)) {
    const foreign = foreignRun(input, engine, behaviour.foreignMs)
    const events = [foreign, refusal(input, "conflict", foreign.execution_id)]
    return { _tag: "Conflict", execution_id: foreign.execution_id, events }
  }
  return accept(state, input, engine, behaviour)
}
