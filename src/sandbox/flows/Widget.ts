/**
 * The widget's calls: each is decided, recorded, and answered with the session as the code that draws a
 * widget needs it. All shapes are our own, since the reference shows none of this.
 */
import { Effect } from "effect"
import { given } from "../../base/Schemas.ts"
import { answered, beginCall, refused, settle } from "../core/SandboxCore.ts"
import type { Call, Look } from "../core/SandboxCore.ts"
import { consentDocuments, defaultSignature, givenConsent } from "../data/Documents.ts"
import { checkForm } from "../engines/AnswerEngines.ts"
import { findEngine } from "../engines/EngineCatalogue.ts"
import { whyUnavailable } from "../engines/EngineDefinition.ts"
import type { EngineDefinition } from "../engines/EngineDefinition.ts"
import { judgeCode } from "../executions/AnswerExecutions.ts"
import { openParameters } from "../executions/JudgeRequest.ts"
import { findFlowSession } from "./AnswerFlows.ts"
import { featuresOf, planSource } from "./StandingSessions.ts"
import { readFlowPlan } from "./StandingScripts.ts"
import { refusalOf } from "../state/FlowMoves.ts"
import type { FlowSessionCreated, FlowStep, FlowStepName } from "../state/FlowMoves.ts"
import { flowEventsOf, flowMomentOf } from "../state/FlowTimeline.ts"
import type { FlowSession } from "../state/FlowTimeline.ts"
import { fingerprint } from "../state/Reading.ts"
import type { ErrorItem } from "../state/ResultsPlan.ts"
import { momentAt } from "../state/SandboxState.ts"

interface CreateRequest {
  readonly customer_id?: string
  readonly features?: ReadonlyArray<string>
  readonly behaviour?: string
}

/** A bare identifier is accepted without a signature. */
type SignedDocument =
  | string
  | {
      readonly document_id: string
      readonly signature_provider?: string
      readonly signature_metadata?: Readonly<Record<string, unknown>>
    }

export type StepRequest =
  | Exclude<FlowStep, { _tag: "consent" | "connect" | "answer" }>
  | {
      readonly _tag: "consent"
      readonly features?: ReadonlyArray<string>
      readonly documents?: ReadonlyArray<SignedDocument>
    }
  | {
      readonly _tag: "connect"
      readonly engine_reference: string
      readonly parameters: Readonly<Record<string, unknown>>
      readonly features?: ReadonlyArray<string>
    }
  | { readonly _tag: "answer"; readonly code: string }

const sessionNotFound = refused({ _tag: "NotFound", detail: "session not found" })
const conflict = (detail: string) => ({ _tag: "Conflict", detail }) as const
const invalid = (detail: ReadonlyArray<ErrorItem>) => ({
  _tag: "Invalid" as const,
  detail: detail.map((item) => ({ ...item, loc: ["body", ...item.loc] })),
})
const wrongValue = (loc: ErrorItem["loc"], msg: string) => invalid([{ loc, msg, type: "value_error" }])

/** Answers the new session's id. */
const decideCreate = (
  { state, seed, at, application: { app_id: application } }: Look,
  request: CreateRequest,
  offered: ReadonlyArray<string>,
) => {
  const ordinal = state.flows.sessions.size
  const created: FlowSessionCreated = {
    _tag: "FlowSessionCreated",
    at,
    application,
    session_id: fingerprint("flow-session", seed, application, ordinal, at).slice(0, 24),
    ...given({ customer_id: request.customer_id }),
    features: [...new Set(request.features ?? offered)],
    plan: readFlowPlan(request.behaviour ?? ""),
  }
  return answered(created.session_id, created)
}

/** A step ready to be recorded, or why there is none. */
type Prepared = FlowStep | ReturnType<typeof conflict | typeof invalid>

const prepareConsent = (
  { created }: FlowSession,
  { features, documents }: Extract<StepRequest, { _tag: "consent" }>,
): Prepared => {
  const accepted = [...new Set(features ?? created.features)]
  const foreign = accepted.find((code) => !created.features.includes(code))
  if (foreign !== undefined) return wrongValue(["features"], `${foreign} is not offered`)
  const all = consentDocuments.map(({ document_id }) => ({ document_id }))
  const signed = (documents ?? all).map((document) => {
    if (typeof document === "string") return { document_id: document }
    return { ...defaultSignature, ...document }
  })
  const known = consentDocuments.flatMap(({ document_id, version, hash }) => {
    const signature = signed.find((document) => document.document_id === document_id)
    return signature === undefined ? [] : [{ ...signature, version, hash }]
  })
  if (known.length !== consentDocuments.length || signed.length !== known.length) {
    return wrongValue(["documents"], "every document of the form is accepted once, and no other")
  }
  return { _tag: "consent", features: accepted, documents: known }
}

const wordsIn = (engine: EngineDefinition, parameters: Readonly<Record<string, unknown>>): string => {
  const text = parameters[engine.wordsField]
  return typeof text === "string" ? text : ""
}

/** The features that the customer let this session read. */
const acceptedFeatures = (session: FlowSession, at: number): ReadonlyArray<string> =>
  session.created.plan.asksConsent
    ? (givenConsent(session, at)?.accepted_features ?? [])
    : session.created.features

const prepareConnect = (
  { seed, at }: Look,
  session: FlowSession,
  request: Extract<StepRequest, { _tag: "connect" }>,
): Prepared => {
  const engine = findEngine(request.engine_reference)
  if (engine === undefined) return wrongValue(["engine_reference"], "no such engine")
  const unavailable = whyUnavailable(engine, session.created.application, at)
  if (unavailable !== undefined) return conflict(unavailable)
  const { values, findings } = openParameters(request.parameters)
  const wrong = findings.length > 0 ? findings : checkForm(engine.parameters, values)
  const errors = wrong.map(({ error }) => error)
  if (errors.length > 0) {
    return invalid(errors.map((error) => ({ ...error, loc: ["parameters", ...error.loc] })))
  }
  const accepted = acceptedFeatures(session, at)
  const foreign = request.features?.find((code) => !accepted.includes(code))
  if (foreign !== undefined) return wrongValue(["features"], `${foreign} was not accepted`)
  const features = (request.features ?? accepted).filter((code) =>
    engine.features.some((one) => one === code),
  )
  if (features.length === 0) return conflict("the source offers nothing that the customer accepted")
  const ordinal = session.sources.filter(
    (source) => source.started.engine_reference === engine.reference,
  ).length
  const words = wordsIn(engine, values)
  const { created } = session
  return { _tag: "connect", source: planSource({ seed, at, created, engine, features, words, ordinal }) }
}

const prepareAnswer = ({ seed, at }: Look, session: FlowSession, code: string): Prepared => {
  const asking = session.sources.find(
    (source) => source.started.at <= at && momentAt(source, at).phase.challenge !== undefined,
  )
  if (asking === undefined) return conflict("no source asks for anything")
  const { challenge } = asking.started.timeline
  return { _tag: "answer", source_id: asking.source_id, ...judgeCode(seed, challenge?.codeHash, code) }
}

const prepare = (look: Look, session: FlowSession, request: StepRequest): Prepared => {
  switch (request._tag) {
    case "consent":
      return prepareConsent(session, request)
    case "connect":
      return prepareConnect(look, session, request)
    case "answer":
      return prepareAnswer(look, session, request.code)
    default:
      return request
  }
}

/** The steps that a session currently allows, for code that draws a widget or chooses steps at random. */
export const allowedSteps = (session: FlowSession, at: number): ReadonlyArray<FlowStepName> => {
  const phase = flowMomentOf(session.phases, at)
  const names = ["start", "consent", "connect", "answer", "leave", "cancel", "client-cancel"] as const
  const asks = session.sources.some((source) => momentAt(source, at).phase.challenge !== undefined)
  return names.filter(
    (name) =>
      refusalOf(phase, session.created.plan.asksConsent, name) === undefined && (name !== "answer" || asks),
  )
}

/** Answers the session's id. */
const decideStep = (look: Look, session_id: string, request: StepRequest) => {
  const { at } = look
  const there = findFlowSession(look, session_id)
  if (there === undefined) return sessionNotFound
  const { session, found } = there
  const engine = request._tag === "connect" ? request.engine_reference : undefined
  const phase = flowMomentOf(session.phases, at)
  const detail = refusalOf(phase, session.created.plan.asksConsent, request._tag, engine)
  const step = detail === undefined ? prepare(look, session, request) : conflict(detail)
  return "detail" in step
    ? refused(step, ...found)
    : answered(session_id, ...found, { _tag: "FlowStepTaken", at, session_id, step })
}

const iso = (at: number): string => new Date(at).toISOString()

const sourceView = (source: FlowSession["sources"][number], at: number) => {
  const { phase } = momentAt(source, at)
  return {
    engine_reference: source.started.engine_reference,
    status_reason: phase.status_reason,
    ...given({ action_required_expires: phase.challenge && iso(phase.challenge.expires) }),
  }
}

const sessionView = (session: FlowSession, at: number) => {
  const phase = flowMomentOf(session.phases, at)
  const { session_id, customer_id, features, plan } = session.created
  return {
    session_id,
    ...given({ customer_id }),
    session_status: phase.status,
    session_cursor: phase.cursor,
    is_closed: phase.closed,
    features,
    documents: plan.asksConsent ? consentDocuments : [],
    sources: session.sources
      .filter((source) => source.started.at <= at)
      .map((source) => sourceView(source, at)),
    steps: allowedSteps(session, at),
    events: flowEventsOf(session)
      .filter((event) => event.at <= at)
      .map((event) => ({ event: event.event, date: iso(event.at) })),
  }
}

/** What a consent form offers if the session is created without naming features. */
const usualFeatures = featuresOf([
  "es-tax-agency:website",
  "es-social-security:website",
  "es-university:website",
  "es-traffic:website",
])

/** The session as it is once what was decided is recorded. */
const viewOf = (decide: (call: Call) => ReturnType<typeof decideCreate | typeof decideStep>) =>
  Effect.gen(function* () {
    const call = yield* beginCall
    const session = call.state.flows.sessions.get(yield* settle(call, decide(call)))
    return session === undefined ? yield* settle(call, sessionNotFound) : sessionView(session, call.at)
  })

export const createSession = (request: CreateRequest) =>
  viewOf((call) => decideCreate(call, request, usualFeatures))

/** 4.10 has no such call: code that draws the widget reads the session here. */
export const viewSession = (session_id: string) =>
  viewOf((call) => {
    const there = findFlowSession(call, session_id)
    return there === undefined ? sessionNotFound : answered(session_id, ...there.found)
  })

export const takeStep = (session_id: string, request: StepRequest) =>
  viewOf((call) => decideStep(call, session_id, request))
